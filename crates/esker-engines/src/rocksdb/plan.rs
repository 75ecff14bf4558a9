//! [`EngineOptions`] in RocksDB's terms.

use super::ffi::{self, Api};
use crate::settings::{Settings, number, switch};
use crate::{Compression, Durability, EngineError, EngineOptions, Result};

/// RocksDB takes no less, and says nothing.
const LEAST_WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Smaller caches are LRU.
const LEAST_HYPER_CLOCK_BYTES: usize = 1 << 20;

/// zstd in `rocksdb/c.h`.
const ZSTD_KIND: i32 = 7;

/// RocksDB's own number of levels.
const LEVELS: i32 = 7;

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or("default".to_string(), |value| value.to_string())
}

/// The levels of the tree: what was requested, or RocksDB's default.
pub fn levels(options: &EngineOptions) -> Result<i32> {
    Ok(number(options, "num_levels")?.unwrap_or(LEVELS))
}

/// Sets what was requested, with this codec for what is compressed; what was not requested keeps
/// RocksDB's default. The settings for the report, but for comparator and merge operator, which
/// depend on what the library can do.
///
/// # Safety
/// `set` is live.
pub unsafe fn apply(
    api: &Api,
    set: *mut ffi::DbOptions,
    options: &EngineOptions,
    (kind, codec): (i32, &str),
) -> Result<Settings> {
    let write_buffer = size(options.write_buffer_bytes).max(LEAST_WRITE_BUFFER_BYTES);
    let cache = size(options.cache_bytes.unwrap_or(32 << 20));
    let mut settings = stated(options, write_buffer, cache, codec);
    // SAFETY: plain setters on live options.
    unsafe {
        (api.base.options_set_write_buffer_size)(set, write_buffer);
        settings.add("write_buffer_size", write_buffer);
        apply_table(api, set, options, cache, &mut settings);
        if let Some(bytes) = options.max_file_bytes {
            (api.rocksdb_options_set_target_file_size_base)(set, bytes);
        }
        settings.add("target_file_size_base", shown(options.max_file_bytes));
        let level_base = number(options, "max_bytes_for_level_base")?;
        if let Some(bytes) = level_base {
            (api.rocksdb_options_set_max_bytes_for_level_base)(set, bytes);
            // Level targets counted up from a given base are what that flag means; the default
            // counts down from the last level.
            (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(set, 0);
        }
        settings.add("max_bytes_for_level_base", shown(level_base));
        settings.add("bloom_bits", bloom_bits(options));
        let open_files = if options.open_files == 0 { -1 } else { i32::try_from(options.open_files).unwrap_or(-1) };
        (api.base.options_set_max_open_files)(set, open_files);
        settings.add("max_open_files", open_files);
        let jobs = number(options, "max_background_jobs")?.or(number(options, "max_background_compactions")?);
        let jobs = jobs.unwrap_or(2).max(1);
        (api.rocksdb_options_set_max_background_jobs)(set, jobs);
        settings.add("max_background_jobs", jobs);
        apply_levels(api, set, options, kind, &mut settings)?;
        let style = number(options, "compaction_style")?.unwrap_or(0);
        (api.rocksdb_options_set_compaction_style)(set, style);
        settings.add("compaction_style", style);
        let mmap_read = u8::from(switch(options, "mmap_read")?.unwrap_or(false));
        (api.rocksdb_options_set_allow_mmap_reads)(set, mmap_read);
        settings.add("mmap_read", mmap_read);
        if let Some(bytes) = number(options, "wal_bytes_per_sync")? {
            (api.rocksdb_options_set_wal_bytes_per_sync)(set, bytes);
        }
        let statistics = switch(options, "statistics")?.unwrap_or(false);
        if statistics {
            (api.rocksdb_options_enable_statistics)(set);
        }
        settings.add("statistics", u8::from(statistics));
    }
    Ok(settings)
}

/// What every engine states.
fn stated(options: &EngineOptions, write_buffer: usize, cache: usize, codec: &str) -> Settings {
    let (durability, how) = match (options.disable_wal, options.sync) {
        (true, _) => (Durability::Process, "WriteOptions::disableWAL"),
        (false, true) => (Durability::Device, "WriteOptions::sync: fdatasync of the log"),
        (false, false) => (Durability::OperatingSystem, "log handed to write(2) before a put returns"),
    };
    let memory = format!("2 x {write_buffer} write buffer + {cache} block cache");
    let zstd = if options.compression == Compression::Zstd { ", zstd in the last level" } else { "" };
    Settings::new(durability, how, memory, &format!("{codec}{zstd}"))
}

fn bloom_bits(options: &EngineOptions) -> i32 {
    options.bloom_bits.unwrap_or(10).max(0)
}

/// # Safety
/// `set` is live.
unsafe fn apply_table(
    api: &Api,
    set: *mut ffi::DbOptions,
    options: &EngineOptions,
    cache: usize,
    settings: &mut Settings,
) {
    // It ends the process if it is made without room.
    let hyper_clock = api.rocksdb_cache_create_hyper_clock.filter(|_| cache >= LEAST_HYPER_CLOCK_BYTES);
    settings.add("block_cache", format!("{} {cache}", if hyper_clock.is_some() { "hyper clock" } else { "LRU" }));
    settings.add("block_size", options.block_bytes);
    // SAFETY: the objects are made here; RocksDB shares ownership of cache and table options
    // and takes over the filter policy.
    unsafe {
        let table = (api.rocksdb_block_based_options_create)();
        (api.rocksdb_block_based_options_set_block_size)(table, size(options.block_bytes));
        let cache = match hyper_clock {
            Some(create) => create(cache, 0),
            None => (api.base.cache_create_lru)(cache),
        };
        (api.rocksdb_block_based_options_set_block_cache)(table, cache);
        (api.base.cache_destroy)(cache);
        if bloom_bits(options) > 0 {
            let filter = (api.rocksdb_filterpolicy_create_bloom_full)(f64::from(bloom_bits(options)));
            (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
        }
        (api.rocksdb_options_set_block_based_table_factory)(set, table);
        (api.rocksdb_block_based_options_destroy)(table);
    }
}

/// The levels, what begins work on them, and how they are compressed. An error if the library
/// cannot be told to use zstd in the last one.
///
/// # Safety
/// `set` is live.
unsafe fn apply_levels(
    api: &Api,
    set: *mut ffi::DbOptions,
    options: &EngineOptions,
    kind: i32,
    settings: &mut Settings,
) -> Result<()> {
    let num_levels = number(options, "num_levels")?;
    let triggers = [
        ("level0_file_num_compaction_trigger", api.rocksdb_options_set_level0_file_num_compaction_trigger),
        ("level0_slowdown_writes_trigger", api.rocksdb_options_set_level0_slowdown_writes_trigger),
        ("level0_stop_writes_trigger", api.rocksdb_options_set_level0_stop_writes_trigger),
    ];
    let first_compressed = number(options, "min_level_to_compress")?.filter(|level: &i32| *level >= 0);
    // SAFETY: plain setters on live options.
    unsafe {
        if let Some(levels) = num_levels {
            (api.rocksdb_options_set_num_levels)(set, levels);
        }
        settings.add("num_levels", shown(num_levels));
        let mut asked = Vec::new();
        for (name, trigger) in triggers {
            let files = number(options, name)?;
            if let Some(files) = files {
                trigger(set, files);
            }
            asked.push(shown(files));
        }
        settings.add("level0_triggers", asked.join("/"));
        (api.base.options_set_compression)(set, kind);
        if options.compression == Compression::Zstd {
            let bottommost = api.rocksdb_options_set_bottommost_compression;
            let bottommost = bottommost
                .ok_or_else(|| EngineError("rocksdb: this library cannot set the last level's codec".into()))?;
            bottommost(set, ZSTD_KIND);
        }
        // For each level, so behind their number.
        if let Some(level) = first_compressed.filter(|_| options.compression != Compression::None) {
            (api.rocksdb_options_set_min_level_to_compress)(set, level.min(num_levels.unwrap_or(LEVELS)));
        }
        settings.add("min_level_to_compress", shown(first_compressed));
    }
    Ok(())
}
