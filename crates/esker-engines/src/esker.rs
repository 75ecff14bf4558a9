//! Esker itself.
//!
//! Settings: its defaults, with the write buffer, cache, block size, table size, filter and
//! compression that were requested, `wal_plain`, `min_level_to_compress` and `mmap_read`.
//! `disable_wal` and `sync` are per write. Merge and expiry are the engine's own. A scan is the
//! engine's cursor, which lends keys and values.

use super::settings::{Settings, number, switch};
use super::{
    Capabilities, Compression, Counters, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration,
    MemorySplit, Opened, Operation, Result, Session, Tree, WriteMode,
};
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions, Options, ReadMode, Ttl, WalMode, WriteOptions, merge};
use std::path::Path;
use std::time::Duration;

/// The registry row of Esker.
pub const KIND: EngineKind = EngineKind {
    name: "esker",
    title: "Esker",
    capabilities: Capabilities {
        merge: true,
        batch: true,
        reverse: true,
        disable_wal: true,
        compact: true,
        compression: true,
        concurrent_writers: true,
        ttl: true,
    },
    memory: MemorySplit::fastest([12, 50, 12]),
    open,
    probe: |_| Ok(version()),
};

const NAME: &str = KIND.name;

fn version() -> String {
    let build = if cfg!(debug_assertions) { "debug assertions on" } else { "release" };
    format!("{} ({build})", env!("CARGO_PKG_VERSION"))
}

fn failed(error: esker::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

fn engine_options(options: &EngineOptions) -> Result<Options> {
    let write_buffer = usize::try_from(options.write_buffer_bytes).unwrap_or(usize::MAX);
    let mut engine = Options::default().write_buffer_bytes(write_buffer);
    if let Some(bytes) = options.cache_bytes {
        engine = engine.block_cache_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    engine = engine.block_bytes(usize::try_from(options.block_bytes).unwrap_or(usize::MAX));
    if let Some(bytes) = options.max_file_bytes {
        engine = engine.target_file_bytes(bytes);
    }
    if let Some(bits) = options.bloom_bits {
        engine = engine.filter_bits_per_key(u32::try_from(bits).unwrap_or(0));
    }
    engine = engine.compression(match options.compression {
        Compression::None => esker::Compression::None,
        Compression::Lz => esker::Compression::Lz4,
        // LZ4 above the last run, by itself.
        Compression::Zstd => esker::Compression::Zstd,
    });
    if stores_upper_runs(options)? {
        engine = engine.upper_compression(esker::Compression::None);
    }
    if switch(options, "wal_plain")? == Some(true) {
        engine = engine.wal_mode(WalMode::Plain);
    }
    if switch(options, "mmap_read")? == Some(false) {
        engine = engine.read_mode(ReadMode::Pread);
    }
    if let Some(threads) = background_threads(options)? {
        engine = engine.background_threads(threads);
    }
    Ok(engine)
}

/// Whether upper runs are to be stored as they are: what levels below a number are elsewhere, where
/// level 0 is one of them.
fn stores_upper_runs(options: &EngineOptions) -> Result<bool> {
    let level = number::<i32>(options, "min_level_to_compress")?;
    Ok(level.is_some_and(|level| level > 0) && options.compression != Compression::None)
}

/// Flags of other engines' trees that have no counterpart here.
const NOT_OBEYED: [&str; 6] = [
    "num_levels",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "max_bytes_for_level_base",
    "max_compaction_bytes",
];

/// The threads that a merge may be divided among, if that was requested: with more than one,
/// another flushes beside them.
fn background_threads(options: &EngineOptions) -> Result<Option<usize>> {
    const MOST: usize = 64;
    Ok(number::<usize>(options, "max_background_jobs")?.map(|jobs| jobs.saturating_sub(1).clamp(1, MOST)))
}

/// The compaction style that was requested; the engine's default is neither of these.
fn style(options: &EngineOptions) -> Result<Option<(CompactionStyle, &'static str)>> {
    match number::<u32>(options, "compaction_style")? {
        None => Ok(None),
        Some(0) => Ok(Some((CompactionStyle::Leveled, "leveled"))),
        Some(1) => Ok(Some((CompactionStyle::Tiered, "tiered"))),
        Some(other) => Err(EngineError(format!("{NAME}: --compaction_style={other}: use 0 (leveled) or 1 (tiered)"))),
    }
}

fn keyspace_options(options: &EngineOptions) -> Result<KeyspaceOptions> {
    let mut keyspace = KeyspaceOptions::default();
    if let Some((style, _)) = style(options)? {
        keyspace = keyspace.compaction_style(style);
    }
    if options.ttl {
        keyspace = keyspace.ttl(Ttl::Enabled { default: None });
    }
    let name = match options.merge_operator.as_deref() {
        None => return Ok(keyspace),
        Some("stringappend") => "stringappend:2c",
        Some(name) => name,
    };
    let operator = merge::built_in(name).ok_or_else(|| {
        EngineError(format!("{NAME}: no merge operator `{name}`: use uint64add, put, max or stringappend"))
    })?;
    Ok(keyspace.shared_merge_operator(operator))
}

fn open(directory: &Path, options: &EngineOptions, _library: Option<&Path>) -> Result<Opened> {
    let engine = engine_options(options)?;
    let description = settings(options)?.describe(&KIND, version());
    let db = Db::open(directory, engine).map_err(failed)?;
    let keyspace = db.keyspace("bench", keyspace_options(options)?).map_err(failed)?;
    Ok(Opened::new(Esker { keyspace, db }, description))
}

fn settings(options: &EngineOptions) -> Result<Settings> {
    let plain = switch(options, "wal_plain")? == Some(true);
    let (durability, how) = match (options.disable_wal, options.sync, plain) {
        (true, ..) => (Durability::Process, "WriteOptions::disable_wal"),
        (false, true, _) => (Durability::Device, "WriteOptions::sync: fdatasync of the log"),
        (false, false, true) => {
            (Durability::OperatingSystem, "plain write: log handed to write(2) before a put returns")
        }
        (false, false, false) => (Durability::OperatingSystem, "log records are stored into a shared file mapping"),
    };
    let cache = options.cache_bytes.map_or("64 MiB (default)".to_owned(), |bytes| bytes.to_string());
    let compression = match options.compression {
        Compression::None => "none",
        Compression::Lz => "lz4",
        Compression::Zstd => "lz4, zstd in the last run",
    };
    let memory = format!("{} write buffer + {cache} block cache", options.write_buffer_bytes);
    let mut settings = Settings::new(durability, how, memory, compression);
    settings.add("write_buffer_bytes", options.write_buffer_bytes);
    settings.add("block_cache_bytes", cache);
    settings.add("block_bytes", options.block_bytes);
    settings.add("filter_bits_per_key", options.bloom_bits.map_or(10, |bits| bits.max(0)));
    let mapped = switch(options, "mmap_read")? != Some(false);
    settings.add("read_mode", if mapped { "auto" } else { "pread" });
    let threads = background_threads(options)?.map(|threads| threads.to_string());
    settings.add("background_threads", threads.as_deref().unwrap_or("1, 2 while writers wait for merges (default)"));
    if options.ttl {
        settings.add("ttl", "enabled: nine bytes more for each entry that expires");
    }
    settings.add("compaction_style", style(options)?.map_or("lazy leveling (default)", |(_, name)| name));
    let upper = match (stores_upper_runs(options)?, options.compression) {
        (true, _) => "none",
        (false, Compression::Zstd) => "lz4 (default beside zstd)",
        (false, _) => "as compression",
    };
    settings.add("upper_compression", upper);
    settings.add("merge", options.merge_operator.as_deref().unwrap_or("none"));
    let ignored: Vec<&str> = NOT_OBEYED.into_iter().filter(|name| options.extra.contains_key(*name)).collect();
    if !ignored.is_empty() {
        settings.add("not obeyed", ignored.join(", "));
    }
    Ok(settings)
}

struct Esker {
    keyspace: Keyspace,
    db: Db,
}

impl Engine for Esker {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(EskerSession { keyspace: self.keyspace.clone(), batch: self.db.batch() }))
    }

    fn compact_all(&self) -> Result<()> {
        self.db.compact().map_err(failed)
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_idle().map_err(failed)
    }

    fn property(&self, name: &str) -> Option<String> {
        match name.trim_start_matches("esker.") {
            "stats" | "sstables" | "levelstats" => Some(self.db.stats().to_string()),
            _ => None,
        }
    }

    fn counters(&self) -> Counters {
        let stats = self.db.stats();
        Counters {
            // Its memtables are indexed by hash and its lookups in them compare no order: there is
            // no count to read.
            comparisons: None,
            flushes: Some(stats.flushes),
            compactions: Some(stats.compactions),
            files_probed: Some(stats.tables_searched),
            wal_bytes: stats.wal_bytes,
            flush_bytes: stats.flush_bytes + stats.blob_written_bytes,
            compaction_bytes: stats.compaction_bytes,
            read_bytes: stats.compaction_read_bytes,
            cache_hits: stats.cache_hits,
            cache_misses: stats.cache_misses,
            stall_micros: stats.stall_micros + stats.delay_micros,
        }
    }

    fn tree(&self) -> Option<Tree> {
        let stats = self.db.stats();
        let runs = stats.keyspaces.iter().map(|keyspace| keyspace.runs.len() as u64).max().unwrap_or(0);
        Some(Tree { files: stats.table_files, level0_files: None, runs })
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Esker { db, keyspace, .. } = *self;
        drop(keyspace);
        db.close().map_err(failed)
    }
}

struct EskerSession {
    keyspace: Keyspace,
    batch: esker::Batch,
}

fn write_options(mode: WriteMode) -> WriteOptions {
    // As RocksDB's users have to: a write that leaves the log out cannot be synced.
    WriteOptions::new().sync(mode.sync && !mode.disable_wal).disable_wal(mode.disable_wal)
}

impl Session for EskerSession {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.keyspace.put_with(key, value, &write_options(mode)).map_err(failed)
    }

    fn put_ttl(&mut self, key: &[u8], value: &[u8], ttl: Duration, mode: WriteMode) -> Result<()> {
        self.keyspace.put_with(key, value, &write_options(mode).ttl(ttl)).map_err(failed)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.keyspace.delete_with(key, &write_options(mode)).map_err(failed)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        self.batch.clear();
        for operation in batch {
            let added = match operation {
                Operation::Put(key, value) => self.batch.put(&self.keyspace, key, value),
                Operation::Delete(key) => self.batch.delete(&self.keyspace, key),
                Operation::Merge(key, operand) => self.batch.merge(&self.keyspace, key, operand),
            };
            added.map_err(failed)?;
        }
        self.batch.commit_and_clear(&write_options(mode)).map_err(failed)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.keyspace.merge_with(key, operand, &write_options(mode)).map_err(failed)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.keyspace.get_into(key, value).map_err(failed)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Ok(Box::new(EskerIteration(self.keyspace.cursor().map_err(failed)?)))
    }
}

struct EskerIteration(esker::Cursor);

impl EskerIteration {
    #[inline]
    fn arrived(&self, moved: esker::Result<()>) -> Result<bool> {
        moved.map_err(failed)?;
        Ok(self.0.valid())
    }
}

impl Iteration for EskerIteration {
    fn seek_to_first(&mut self) -> Result<bool> {
        let moved = self.0.seek_to_first();
        self.arrived(moved)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        let moved = self.0.seek_to_last();
        self.arrived(moved)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let moved = self.0.seek(key);
        self.arrived(moved)
    }

    fn next(&mut self) -> Result<bool> {
        let moved = self.0.next();
        self.arrived(moved)
    }

    fn prev(&mut self) -> Result<bool> {
        let moved = self.0.prev();
        self.arrived(moved)
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> &[u8] {
        self.0.value()
    }
}
