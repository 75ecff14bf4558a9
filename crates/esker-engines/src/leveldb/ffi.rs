//! The part of LevelDB's C interface (`leveldb/c.h`, 1.22 and later) that the adapter uses.
//! RocksDB's began as a copy of it: what both have under the same name, but for its beginning, is
//! [`Base`].

use crate::counting::{Compare, Name, Release};
use crate::dynamic::{LibrarySpec, c_api};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// Declares types of which only the library knows what they hold.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        $($(#[$meta])*
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        })*
    };
}
pub(crate) use opaque;

opaque! {
    /// `leveldb_t`
    Db,
    /// `leveldb_options_t`
    DbOptions,
    /// `leveldb_readoptions_t`
    ReadOptions,
    /// `leveldb_writeoptions_t`
    WriteOptions,
    /// `leveldb_writebatch_t`
    WriteBatch,
    /// `leveldb_iterator_t`
    Iter,
    /// `leveldb_cache_t`
    Cache,
    /// `leveldb_filterpolicy_t`
    FilterPolicy,
    /// `leveldb_comparator_t`
    Comparator,
}

c_api! {
    /// The functions that RocksDB's library has too.
    pub struct Base {
        fn open(options: *const DbOptions, name: *const c_char, error: *mut *mut c_char) -> *mut Db;
        fn close(db: *mut Db);
        fn put(db: *mut Db, options: *const WriteOptions, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize, error: *mut *mut c_char);
        fn delete(db: *mut Db, options: *const WriteOptions, key: *const c_char, key_len: usize, error: *mut *mut c_char);
        fn write(db: *mut Db, options: *const WriteOptions, batch: *mut WriteBatch, error: *mut *mut c_char);
        fn create_iterator(db: *mut Db, options: *const ReadOptions) -> *mut Iter;
        fn property_value(db: *mut Db, name: *const c_char) -> *mut c_char;
        fn compact_range(db: *mut Db, start: *const c_char, start_len: usize, limit: *const c_char, limit_len: usize);
        fn iter_destroy(iter: *mut Iter);
        fn iter_valid(iter: *const Iter) -> u8;
        fn iter_seek_to_first(iter: *mut Iter);
        fn iter_seek_to_last(iter: *mut Iter);
        fn iter_seek(iter: *mut Iter, key: *const c_char, key_len: usize);
        fn iter_next(iter: *mut Iter);
        fn iter_prev(iter: *mut Iter);
        fn iter_key(iter: *const Iter, len: *mut usize) -> *const c_char;
        fn iter_value(iter: *const Iter, len: *mut usize) -> *const c_char;
        fn iter_get_error(iter: *const Iter, error: *mut *mut c_char);
        fn writebatch_create() -> *mut WriteBatch;
        fn writebatch_destroy(batch: *mut WriteBatch);
        fn writebatch_clear(batch: *mut WriteBatch);
        fn writebatch_put(batch: *mut WriteBatch, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize);
        fn writebatch_delete(batch: *mut WriteBatch, key: *const c_char, key_len: usize);
        fn options_create() -> *mut DbOptions;
        fn options_destroy(options: *mut DbOptions);
        fn options_set_create_if_missing(options: *mut DbOptions, value: u8);
        fn options_set_write_buffer_size(options: *mut DbOptions, bytes: usize);
        fn options_set_max_open_files(options: *mut DbOptions, files: c_int);
        fn options_set_compression(options: *mut DbOptions, kind: c_int);
        fn options_set_comparator(options: *mut DbOptions, comparator: *mut Comparator);
        fn comparator_create(state: *mut c_void, destructor: Release, compare: Compare, name: Name) -> *mut Comparator;
        fn comparator_destroy(comparator: *mut Comparator);
        fn cache_create_lru(capacity: usize) -> *mut Cache;
        fn cache_destroy(cache: *mut Cache);
        fn readoptions_create() -> *mut ReadOptions;
        fn readoptions_destroy(options: *mut ReadOptions);
        fn writeoptions_create() -> *mut WriteOptions;
        fn writeoptions_destroy(options: *mut WriteOptions);
        fn writeoptions_set_sync(options: *mut WriteOptions, value: u8);
        fn free(pointer: *mut c_void);
    } optional {
    } data {
    }
}

c_api! {
    /// The functions of the library.
    pub struct Api over Base, "leveldb_" {
        fn leveldb_get(db: *mut Db, options: *const ReadOptions, key: *const c_char, key_len: usize, value_len: *mut usize, error: *mut *mut c_char) -> *mut c_char;
        fn leveldb_options_set_filter_policy(options: *mut DbOptions, policy: *mut FilterPolicy);
        fn leveldb_options_set_cache(options: *mut DbOptions, cache: *mut Cache);
        fn leveldb_options_set_block_size(options: *mut DbOptions, bytes: usize);
        fn leveldb_options_set_max_file_size(options: *mut DbOptions, bytes: usize);
        fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut FilterPolicy;
        fn leveldb_filterpolicy_destroy(policy: *mut FilterPolicy);
        fn leveldb_major_version() -> c_int;
        fn leveldb_minor_version() -> c_int;
    } optional {
    } data {
    }
}

/// Where the library is found.
pub static LIBRARY: LibrarySpec<Api> = LibrarySpec {
    engine: "leveldb",
    names: &["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so", "libleveldb.dylib"],
    cached: &["libleveldb.so.1d", "libleveldb.so"],
    install: "the Debian package libleveldb1d",
    loaded: Mutex::new(Vec::new()),
};
