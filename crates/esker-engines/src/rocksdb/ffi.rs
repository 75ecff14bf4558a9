//! The part of RocksDB's C interface (`rocksdb/c.h`) that the adapter uses beside what
//! LevelDB's has too. Functions that older versions lack are optional.

use crate::dynamic::{LibrarySpec, c_api};
use crate::leveldb::ffi::opaque;
pub use crate::leveldb::ffi::{Base, Cache, Db, DbOptions, FilterPolicy, ReadOptions, WriteBatch, WriteOptions};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

opaque! {
    /// `rocksdb_block_based_table_options_t`
    TableOptions,
    /// `rocksdb_perfcontext_t`
    PerfContext,
    /// `rocksdb_mergeoperator_t`
    MergeOperator,
    /// `rocksdb_pinnableslice_t`
    PinnableSlice,
    /// `rocksdb_flushoptions_t`
    FlushOptions,
    /// `rocksdb_wait_for_compact_options_t`
    WaitOptions,
}

/// Folds operands, oldest first, into an existing value (null if absent); the answer is allocated
/// with malloc.
pub type FullMerge = unsafe extern "C" fn(
    state: *mut c_void,
    key: *const c_char,
    key_len: usize,
    existing: *const c_char,
    existing_len: usize,
    operands: *const *const c_char,
    operand_lens: *const usize,
    operand_count: c_int,
    success: *mut u8,
    new_len: *mut usize,
) -> *mut c_char;

/// Folds operands, oldest first, into one; the answer is allocated with malloc.
pub type PartialMerge = unsafe extern "C" fn(
    state: *mut c_void,
    key: *const c_char,
    key_len: usize,
    operands: *const *const c_char,
    operand_lens: *const usize,
    operand_count: c_int,
    success: *mut u8,
    new_len: *mut usize,
) -> *mut c_char;

c_api! {
    /// The functions of the library.
    pub struct Api over Base, "rocksdb_" {
        fn rocksdb_merge(db: *mut Db, options: *const WriteOptions, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize, error: *mut *mut c_char);
        fn rocksdb_get_pinned(db: *mut Db, options: *const ReadOptions, key: *const c_char, key_len: usize, error: *mut *mut c_char) -> *mut PinnableSlice;
        fn rocksdb_pinnableslice_value(slice: *const PinnableSlice, len: *mut usize) -> *const c_char;
        fn rocksdb_pinnableslice_destroy(slice: *mut PinnableSlice);
        fn rocksdb_flush(db: *mut Db, options: *const FlushOptions, error: *mut *mut c_char);
        fn rocksdb_flushoptions_create() -> *mut FlushOptions;
        fn rocksdb_flushoptions_destroy(options: *mut FlushOptions);
        fn rocksdb_writebatch_merge(batch: *mut WriteBatch, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize);
        fn rocksdb_options_set_target_file_size_base(options: *mut DbOptions, bytes: u64);
        fn rocksdb_options_set_max_bytes_for_level_base(options: *mut DbOptions, bytes: u64);
        fn rocksdb_options_set_max_background_jobs(options: *mut DbOptions, jobs: c_int);
        fn rocksdb_options_set_num_levels(options: *mut DbOptions, levels: c_int);
        fn rocksdb_options_set_level0_file_num_compaction_trigger(options: *mut DbOptions, files: c_int);
        fn rocksdb_options_set_level0_slowdown_writes_trigger(options: *mut DbOptions, files: c_int);
        fn rocksdb_options_set_level0_stop_writes_trigger(options: *mut DbOptions, files: c_int);
        fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: *mut DbOptions, value: u8);
        fn rocksdb_options_set_compaction_style(options: *mut DbOptions, style: c_int);
        fn rocksdb_options_set_min_level_to_compress(options: *mut DbOptions, level: c_int);
        fn rocksdb_options_set_allow_mmap_reads(options: *mut DbOptions, value: u8);
        fn rocksdb_options_set_wal_bytes_per_sync(options: *mut DbOptions, bytes: u64);
        fn rocksdb_options_set_merge_operator(options: *mut DbOptions, operator: *mut MergeOperator);
        fn rocksdb_options_set_uint64add_merge_operator(options: *mut DbOptions);
        fn rocksdb_options_set_block_based_table_factory(options: *mut DbOptions, table: *mut TableOptions);
        fn rocksdb_options_enable_statistics(options: *mut DbOptions);
        fn rocksdb_options_statistics_get_string(options: *mut DbOptions) -> *mut c_char;
        fn rocksdb_mergeoperator_create(
            state: *mut c_void,
            destructor: unsafe extern "C" fn(*mut c_void),
            full_merge: FullMerge,
            partial_merge: PartialMerge,
            delete_value: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
            name: unsafe extern "C" fn(*mut c_void) -> *const c_char,
        ) -> *mut MergeOperator;
        fn rocksdb_block_based_options_create() -> *mut TableOptions;
        fn rocksdb_block_based_options_destroy(options: *mut TableOptions);
        fn rocksdb_block_based_options_set_block_size(options: *mut TableOptions, bytes: usize);
        fn rocksdb_block_based_options_set_block_cache(options: *mut TableOptions, cache: *mut Cache);
        fn rocksdb_block_based_options_set_filter_policy(options: *mut TableOptions, policy: *mut FilterPolicy);
        fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy;
        fn rocksdb_writeoptions_disable_WAL(options: *mut WriteOptions, value: c_int);
    } optional {
        fn rocksdb_cache_create_hyper_clock(capacity: usize, entry_charge: usize) -> *mut Cache;
        fn rocksdb_options_set_bottommost_compression(options: *mut DbOptions, kind: c_int);
        fn rocksdb_get_into_buffer(db: *mut Db, options: *const ReadOptions, key: *const c_char, key_len: usize, buffer: *mut c_char, buffer_len: usize, value_len: *mut usize, found: *mut u8, error: *mut *mut c_char) -> u8;
        fn rocksdb_wait_for_compact(db: *mut Db, options: *mut WaitOptions, error: *mut *mut c_char);
        fn rocksdb_wait_for_compact_options_create() -> *mut WaitOptions;
        fn rocksdb_wait_for_compact_options_destroy(options: *mut WaitOptions);
        fn rocksdb_set_perf_level(level: c_int);
        fn rocksdb_perfcontext_create() -> *mut PerfContext;
        fn rocksdb_perfcontext_reset(context: *mut PerfContext);
        fn rocksdb_perfcontext_metric(context: *mut PerfContext, metric: c_int) -> u64;
        fn rocksdb_perfcontext_destroy(context: *mut PerfContext);
        fn malloc(bytes: usize) -> *mut c_void;
    } data {
    }
}

#[cfg(target_arch = "aarch64")]
const JNI: &[&str] = &["librocksdbjni-linux-aarch64.so"];
#[cfg(not(target_arch = "aarch64"))]
const JNI: &[&str] = &["librocksdbjni-linux64.so"];

/// Where the library is found. RocksDB's Java artifact exports the whole C interface beside its
/// own, in a current version.
pub static LIBRARY: LibrarySpec<Api> = LibrarySpec {
    engine: "rocksdb",
    names: &[
        "librocksdb.so",
        "librocksdb.so.10",
        "librocksdb.so.9",
        "librocksdb.so.8",
        "librocksdb.so.7.8",
        "librocksdb.dylib",
    ],
    cached: JNI,
    install: "a package with librocksdb.so",
    loaded: Mutex::new(Vec::new()),
};
