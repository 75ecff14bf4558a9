//! [`EngineOptions`] in RocksDB's terms.

use super::ffi::{self, Api};
use crate::engine::merge::MergeOperator;
use crate::engine::settings::{Settings, number, switch};
use crate::engine::{Compression, Durability, EngineError, EngineOptions, Result};

/// RocksDB takes no less, and says nothing.
const LEAST_WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Smaller caches are LRU.
const LEAST_HYPER_CLOCK_BYTES: u64 = 1 << 20;

/// Everything the adapter sets. What is `None` keeps RocksDB's default.
pub struct Plan {
    write_buffer: usize,
    cache: usize,
    hyper_clock: bool,
    block: usize,
    max_file: Option<u64>,
    level_base: Option<u64>,
    bloom_bits: i32,
    pub compress: bool,
    zstd: bool,
    open_files: i32,
    background_jobs: i32,
    num_levels: Option<i32>,
    level0: [Option<i32>; 3],
    min_level_to_compress: Option<i32>,
    compaction_style: i32,
    mmap_read: bool,
    wal_bytes_per_sync: Option<u64>,
    pub statistics: bool,
    pub comparisons: bool,
    pub operator: Option<MergeOperator>,
    pub disable_wal: bool,
    sync: bool,
}

/// zstd in `rocksdb/c.h`.
const ZSTD_KIND: i32 = 7;

impl Plan {
    /// Reads and checks the options.
    pub fn new(options: &EngineOptions, api: &Api) -> Result<Plan> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let jobs = number(options, "max_background_jobs")?.or(number(options, "max_background_compactions")?);
        Ok(Plan {
            write_buffer: size(options.write_buffer_bytes).max(LEAST_WRITE_BUFFER_BYTES),
            cache: size(options.cache_bytes.unwrap_or(32 << 20)),
            // It ends the process if it is made without room.
            hyper_clock: api.rocksdb_cache_create_hyper_clock.is_some()
                && options.cache_bytes.is_none_or(|bytes| bytes >= LEAST_HYPER_CLOCK_BYTES),
            block: size(options.block_bytes),
            max_file: options.max_file_bytes,
            level_base: number(options, "max_bytes_for_level_base")?,
            bloom_bits: options.bloom_bits.unwrap_or(10).max(0),
            compress: options.compression != Compression::None,
            zstd: options.compression == Compression::Zstd,
            open_files: if options.open_files == 0 { -1 } else { i32::try_from(options.open_files).unwrap_or(-1) },
            background_jobs: jobs.unwrap_or(2).max(1),
            num_levels: number(options, "num_levels")?,
            level0: [
                number(options, "level0_file_num_compaction_trigger")?,
                number(options, "level0_slowdown_writes_trigger")?,
                number(options, "level0_stop_writes_trigger")?,
            ],
            min_level_to_compress: number(options, "min_level_to_compress")?.filter(|level| *level >= 0),
            compaction_style: number(options, "compaction_style")?.unwrap_or(0),
            mmap_read: switch(options, "mmap_read")?.unwrap_or(false),
            wal_bytes_per_sync: number(options, "wal_bytes_per_sync")?,
            statistics: switch(options, "statistics")?.unwrap_or(false),
            comparisons: switch(options, "comparisons")?.unwrap_or(false),
            operator: MergeOperator::from_option(options.merge_operator.as_deref())?,
            disable_wal: options.disable_wal,
            sync: options.sync,
        })
    }

    /// Applies everything but compression kind and merge operator, which depend on what the library
    /// can do.
    ///
    /// # Safety
    /// `options` is live.
    pub unsafe fn apply(&self, api: &Api, options: *mut ffi::DbOptions) {
        // SAFETY: plain setters on live options.
        unsafe {
            (api.base.options_set_write_buffer_size)(options, self.write_buffer);
            (api.base.options_set_max_open_files)(options, self.open_files);
            (api.rocksdb_options_set_max_background_jobs)(options, self.background_jobs);
            (api.rocksdb_options_set_allow_mmap_reads)(options, u8::from(self.mmap_read));
            (api.rocksdb_options_set_compaction_style)(options, self.compaction_style);
            if let Some(bytes) = self.max_file {
                (api.rocksdb_options_set_target_file_size_base)(options, bytes);
            }
            if let Some(bytes) = self.level_base {
                (api.rocksdb_options_set_max_bytes_for_level_base)(options, bytes);
                // Level targets counted up from a given base are what that flag means; the default
                // counts down from the last level.
                (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 0);
            }
            if let Some(levels) = self.num_levels {
                (api.rocksdb_options_set_num_levels)(options, levels);
            }
            let level0 = [
                api.rocksdb_options_set_level0_file_num_compaction_trigger,
                api.rocksdb_options_set_level0_slowdown_writes_trigger,
                api.rocksdb_options_set_level0_stop_writes_trigger,
            ];
            for (set, value) in level0.into_iter().zip(self.level0) {
                if let Some(files) = value {
                    set(options, files);
                }
            }
            if let Some(bytes) = self.wal_bytes_per_sync {
                (api.rocksdb_options_set_wal_bytes_per_sync)(options, bytes);
            }
            if self.statistics {
                (api.rocksdb_options_enable_statistics)(options);
            }
            self.apply_table(api, options);
        }
    }

    /// # Safety
    /// `options` is live.
    unsafe fn apply_table(&self, api: &Api, options: *mut ffi::DbOptions) {
        // SAFETY: the objects are made here; RocksDB shares ownership of cache and table options
        // and takes over the filter policy.
        unsafe {
            let table = (api.rocksdb_block_based_options_create)();
            (api.rocksdb_block_based_options_set_block_size)(table, self.block);
            let cache = match api.rocksdb_cache_create_hyper_clock.filter(|_| self.hyper_clock) {
                Some(create) => create(self.cache, 0),
                None => (api.base.cache_create_lru)(self.cache),
            };
            (api.rocksdb_block_based_options_set_block_cache)(table, cache);
            (api.base.cache_destroy)(cache);
            if self.bloom_bits > 0 {
                let filter = (api.rocksdb_filterpolicy_create_bloom_full)(f64::from(self.bloom_bits));
                (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
            }
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            (api.rocksdb_block_based_options_destroy)(table);
        }
    }

    /// Sets the compression kind, and per level where that was requested. An error if the library
    /// cannot be told to use zstd in the last level.
    ///
    /// # Safety
    /// `options` is live, and the number of levels is set.
    pub unsafe fn apply_compression(&self, api: &Api, options: *mut ffi::DbOptions, kind: i32) -> Result<()> {
        // SAFETY: plain setters on live options.
        unsafe {
            (api.base.options_set_compression)(options, kind);
            if self.zstd {
                let set = api.rocksdb_options_set_bottommost_compression;
                let set =
                    set.ok_or_else(|| EngineError("rocksdb: this library cannot set the last level's codec".into()))?;
                set(options, ZSTD_KIND);
            }
            if let Some(level) = self.min_level_to_compress.filter(|_| self.compress) {
                (api.rocksdb_options_set_min_level_to_compress)(options, level.min(self.num_levels.unwrap_or(7)));
            }
        }
        Ok(())
    }

    /// The levels of the tree: what was requested, or RocksDB's default.
    pub fn levels(&self) -> i32 {
        self.num_levels.unwrap_or(7)
    }

    /// The settings for the report.
    pub fn settings(&self, compression: &str) -> Settings {
        let (durability, how) = match (self.disable_wal, self.sync) {
            (true, _) => (Durability::Process, "WriteOptions::disableWAL"),
            (false, true) => (Durability::Device, "WriteOptions::sync: fdatasync of the log"),
            (false, false) => (Durability::OperatingSystem, "log handed to write(2) before a put returns"),
        };
        let memory = format!("2 x {} write buffer + {} block cache", self.write_buffer, self.cache);
        let compression = match self.zstd {
            true => format!("{compression}, zstd in the last level"),
            false => compression.to_owned(),
        };
        let mut settings = Settings::new(durability, how, memory, &compression);
        let shown = |value: Option<i64>| value.map_or("default".to_string(), |v| v.to_string());
        settings.add("write_buffer_size", self.write_buffer);
        settings.add("block_cache", format!("{} {}", if self.hyper_clock { "hyper clock" } else { "LRU" }, self.cache));
        settings.add("block_size", self.block);
        settings.add("target_file_size_base", shown(self.max_file.map(|v| v as i64)));
        settings.add("max_bytes_for_level_base", shown(self.level_base.map(|v| v as i64)));
        settings.add("bloom_bits", self.bloom_bits);
        settings.add("max_open_files", self.open_files);
        settings.add("max_background_jobs", self.background_jobs);
        settings.add("num_levels", shown(self.num_levels.map(i64::from)));
        let triggers: Vec<String> = self.level0.iter().map(|v| shown(v.map(i64::from))).collect();
        settings.add("level0_triggers", triggers.join("/"));
        settings.add("min_level_to_compress", shown(self.min_level_to_compress.map(i64::from)));
        settings.add("compaction_style", self.compaction_style);
        settings.add("mmap_read", u8::from(self.mmap_read));
        settings.add("statistics", u8::from(self.statistics));
        settings.add("comparator", if self.comparisons { "counting" } else { "built in" });
        settings.add("merge", self.operator.map_or("none", MergeOperator::name));
        settings
    }
}
