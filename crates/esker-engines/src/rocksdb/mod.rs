//! RocksDB through its C interface.
//!
//! Settings: `EngineOptions` map one to one; RocksDB's own defaults stay for what is not requested,
//! except a 10-bit Bloom filter (its tuning guide's advice; the library's default is none) and the
//! recommended cache (hyper clock where the library has it). LZ4, or Snappy in a build without LZ4.
//! Counters need `statistics=1`, because RocksDB's statistics cost time.

mod blocks;
mod database;
mod ffi;
mod merge_callbacks;
mod plan;

use super::dynamic::{self, Loaded, take_string};
use super::leveldb::client::Handle;
use super::merge::MergeOperator;
use super::settings::{make_directory, switch, wait_until_quiet};
use super::{
    Capabilities, Compression, Counters, Engine, EngineError, EngineKind, EngineOptions, MemorySplit, Opened, Result,
    Session, Tree,
};
use database::{NAME, RocksDb, RocksDbSession};
use ffi::Api;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Compression kinds of `rocksdb/c.h`, best first, for `Compression::Lz`.
const LZ_KINDS: [(i32, &str); 2] = [(4, "lz4"), (1, "snappy")];

/// The registry row of RocksDB. It can merge where it is opened with an operator.
pub const KIND: EngineKind = EngineKind {
    name: NAME,
    title: "RocksDB",
    capabilities: Capabilities {
        disable_wal: true,
        compact: true,
        compression: true,
        concurrent_writers: true,
        ..Capabilities::ORDERED
    },
    memory: MemorySplit::fastest([12, 12, 25]),
    open,
    probe: |library| Ok(version(dynamic::load(&ffi::LIBRARY, library)?)),
};

/// The C interface has no version function, so this is what the file beside the library says, or
/// only its name.
fn version(library: &Loaded<Api>) -> String {
    let beside = Path::new(&library.path).with_extension("so.version");
    match std::fs::read_to_string(beside) {
        Ok(version) => format!("{} ({})", version.trim(), library.file_name()),
        Err(_) => format!("version unknown ({})", library.file_name()),
    }
}

/// The version that RocksDB itself writes into the OPTIONS file of a database.
fn recorded_version(directory: &Path) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("OPTIONS-")));
    let text = std::fs::read_to_string(files.iter().max()?).ok()?;
    text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version=").map(str::to_string))
}

fn open(directory: &Path, options: &EngineOptions, library: Option<&Path>) -> Result<Opened> {
    let library = dynamic::load(&ffi::LIBRARY, library)?;
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    let codecs = if options.compression == Compression::None { &[(0, "none")][..] } else { &LZ_KINDS };
    let mut failure = EngineError(format!("{NAME}: no compression to try"));
    for codec in codecs {
        match open_with(directory, options, library, operator, *codec) {
            Ok(opened) => return Ok(opened),
            // A build without this codec says so at open; anything else is a real failure.
            Err(e) if e.0.contains("not linked") => failure = e,
            Err(e) => return Err(e),
        }
    }
    Err(failure)
}

fn open_with(
    directory: &Path,
    options: &EngineOptions,
    library: &'static Loaded<Api>,
    operator: Option<MergeOperator>,
    codec: (i32, &str),
) -> Result<Opened> {
    let api = &library.api;
    let mut handle = Handle::new(NAME, &api.base, options)?;
    // SAFETY: the options are live.
    let mut settings = unsafe {
        match operator {
            None => {}
            Some(MergeOperator::UInt64Add) => (api.rocksdb_options_set_uint64add_merge_operator)(handle.options),
            Some(operator) => {
                let operator = merge_callbacks::create(api, operator).ok_or_else(|| {
                    EngineError(format!("{NAME}: this library allows no merge operator but uint64add"))
                })?;
                (api.rocksdb_options_set_merge_operator)(handle.options, operator);
            }
        }
        plan::apply(api, handle.options, options, codec)?
    };
    settings.add("comparator", handle.comparator());
    settings.add("merge", operator.map_or("none", MergeOperator::name));
    make_directory(NAME, directory)?;
    handle.open(directory)?;
    let mut description = settings.describe(&KIND, version(library));
    description.capabilities.merge = operator.is_some();
    if let Some(number) = recorded_version(directory) {
        description.version = format!("{number} ({})", library.file_name());
    }
    let engine = RocksDb {
        handle,
        library,
        directory: directory.to_path_buf(),
        operator,
        disable_wal: options.disable_wal,
        statistics: switch(options, "statistics")?.unwrap_or(false),
        levels: plan::levels(options)?,
        blocks_searched: AtomicU64::new(0),
    };
    Ok(Opened::new(engine, description))
}

impl RocksDb {
    fn number_property(&self, name: &str) -> u64 {
        self.property(name).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

impl Engine for RocksDb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RocksDbSession::new(self)))
    }

    fn compact_all(&self) -> Result<()> {
        self.flush()?;
        self.handle.compact();
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let api = &self.library.api;
        let (Some(wait), Some(create), Some(destroy)) = (
            api.rocksdb_wait_for_compact,
            api.rocksdb_wait_for_compact_options_create,
            api.rocksdb_wait_for_compact_options_destroy,
        ) else {
            while self.number_property("num-running-compactions") + self.number_property("num-running-flushes") > 0 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            wait_until_quiet(&self.directory);
            return Ok(());
        };
        let mut error = ptr::null_mut();
        // SAFETY: the options live for the call.
        unsafe {
            let options = create();
            wait(self.handle.db, options, &mut error);
            destroy(options);
        }
        self.handle.check(error)
    }

    fn property(&self, name: &str) -> Option<String> {
        self.handle.property(name)
    }

    fn tree(&self) -> Option<Tree> {
        self.handle.tree(self.levels)
    }

    fn counters(&self) -> Counters {
        let comparisons = self.handle.comparisons();
        if !self.statistics {
            let text = self.property("rocksdb.stats").unwrap_or_default();
            return Counters { comparisons, ..parse_totals(&text) };
        }
        // SAFETY: the options are live and their statistics thread-safe; the answer is allocated
        // with malloc.
        let text = unsafe {
            let text = (self.library.api.rocksdb_options_statistics_get_string)(self.handle.options);
            take_string(text, self.handle.api.free)
        };
        let counts = self.library.api.rocksdb_perfcontext_metric.is_some();
        let files_probed = counts.then(|| self.blocks_searched.load(Ordering::Relaxed));
        Counters { comparisons, files_probed, ..parse_counters(&text.unwrap_or_default()) }
    }
}

/// Reads the totals of the property `rocksdb.stats`, which is there without statistics: gigabytes
/// (of 2^30) with a few decimals.
///
/// ```text
/// Cumulative WAL: 1000K writes, 0 syncs, 1000000.00 writes per sync, written: 0.13 GB, 98.01 MB/s
/// Flush(GB): cumulative 0.121, interval 0.121
/// Cumulative compaction: 0.31 GB write, 222.00 MB/s write, 0.20 GB read, 143.00 MB/s read, 1.4 seconds
/// ```
///
/// What compactions have written there includes flushes.
fn parse_totals(text: &str) -> Counters {
    let after = |start: &str, name: &str| -> u64 {
        let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(start)).unwrap_or_default();
        let number = rest.split_once(name).and_then(|(_, rest)| rest.split([' ', ',']).find(|word| !word.is_empty()));
        let gigabytes: f64 = number.and_then(|number| number.parse().ok()).unwrap_or(0.0);
        (gigabytes.max(0.0) * f64::from(1 << 30)) as u64
    };
    let flush_bytes = after("Flush(GB):", "cumulative");
    let compaction_bytes = after("Cumulative compaction:", "").saturating_sub(flush_bytes);
    Counters { wal_bytes: after("Cumulative WAL:", "written:"), flush_bytes, compaction_bytes, ..Counters::default() }
}

/// Reads the lines `rocksdb.wal.bytes COUNT : 123` of the statistics: their names are stable
/// between versions, the numbers of the tickers are not.
fn parse_counters(text: &str) -> Counters {
    let line = |name: &str| text.lines().find(|line| line.split_whitespace().next() == Some(name));
    let ticker = |name: &str| -> u64 {
        line(name).and_then(|line| line.rsplit(':').next()).and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    // Of a distribution, the number of values: `... P100 : 5.0 COUNT : 3 SUM : 9`.
    let values = |name: &str| -> Option<u64> {
        let (_, rest) = line(name)?.split_once(" COUNT : ")?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Counters {
        comparisons: None,
        flushes: values("rocksdb.db.flush.micros"),
        compactions: values("rocksdb.compaction.times.micros"),
        files_probed: None,
        wal_bytes: ticker("rocksdb.wal.bytes"),
        flush_bytes: ticker("rocksdb.flush.write.bytes"),
        compaction_bytes: ticker("rocksdb.compact.write.bytes"),
        read_bytes: ticker("rocksdb.bytes.read"),
        cache_hits: ticker("rocksdb.block.cache.hit"),
        cache_misses: ticker("rocksdb.block.cache.miss"),
        stall_micros: ticker("rocksdb.stall.micros"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text = "** DB Stats **\nCumulative writes: 100K writes, ingest: 0.14 GB, 3.1 MB/s\n\
                    Cumulative WAL: 100K writes, 0 syncs, 100000.00 writes per sync, written: 0.50 GB, 3.0 MB/s\n\
                    Flush(GB): cumulative 0.250, interval 0.250\n\
                    Cumulative compaction: 0.75 GB write, 2.2 MB/s write, 0.20 GB read, 1.4 MB/s read, 1.4 seconds\n\
                    Interval compaction: 0.00 GB write, 0.00 MB/s write\n";
        let counters = parse_totals(text);
        assert_eq!((counters.wal_bytes, counters.flush_bytes, counters.compaction_bytes), (1 << 29, 1 << 28, 1 << 29));
        assert_eq!(parse_totals("nothing of it"), Counters::default());
    }

    #[test]
    fn counters_are_read_by_name() {
        let text = "rocksdb.block.cache.miss COUNT : 7\nrocksdb.wal.bytes COUNT : 123\nrocksdb.db.get.micros P50 : 0.0 COUNT : 1\n\
                    rocksdb.db.flush.micros P50 : 3.0 P100 : 9.000000 COUNT : 12 SUM : 40\n";
        let counters = parse_counters(text);
        assert_eq!((counters.cache_misses, counters.wal_bytes, counters.cache_hits), (7, 123, 0));
        assert_eq!((counters.flushes, counters.compactions), (Some(12), None));
    }
}
