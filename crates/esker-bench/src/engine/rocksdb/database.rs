//! The open database that the engine and its sessions share.

use super::ffi::{self, Api};
use crate::engine::Description;
use crate::engine::counting::{self, Comparisons};
use crate::engine::dynamic::{Loaded, take_string};
use crate::engine::merge::MergeOperator;
use crate::engine::{EngineError, Result};
use std::ffi::c_char;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// The name of the engine.
pub const NAME: &str = "rocksdb";

/// An open database. `db` is null or live, `options` live, `comparator` null or live.
pub struct RocksDb {
    pub(super) library: &'static Loaded<Api>,
    pub(super) db: *mut ffi::Db,
    pub(super) options: *mut ffi::DbOptions,
    pub(super) comparator: *mut ffi::Comparator,
    /// What the comparator counts into.
    pub(super) comparisons: Option<Box<Comparisons>>,
    pub(super) directory: PathBuf,
    pub(super) operator: Option<MergeOperator>,
    pub(super) disable_wal: bool,
    pub(super) statistics: bool,
    pub(super) levels: i32,
    /// Data blocks that sessions looked at, those still open not included.
    pub(super) blocks_searched: AtomicU64,
    pub(super) description: Description,
}

// SAFETY: RocksDB's database object may be used from any thread; the options are only read after open (their
// statistics are thread-safe).
unsafe impl Send for RocksDb {}
// SAFETY: as above: every call that the adapter makes on a database is thread-safe.
unsafe impl Sync for RocksDb {}

impl Drop for RocksDb {
    fn drop(&mut self) {
        let api = &self.library.api;
        // SAFETY: all were made by the matching constructors, and nothing borrows the database any more (sessions
        // borrow `self`).
        unsafe {
            if !self.db.is_null() {
                (api.rocksdb_close)(self.db);
            }
            (api.rocksdb_options_destroy)(self.options);
            // What it counts into goes after it.
            if !self.comparator.is_null() {
                (api.rocksdb_comparator_destroy)(self.comparator);
            }
        }
    }
}

/// Turns the error that a call left into a `Result`.
pub fn check(api: &Api, error: *mut c_char) -> Result<()> {
    // SAFETY: RocksDB leaves the pointer null or sets it to a string allocated with malloc.
    match unsafe { take_string(error, api.rocksdb_free) } {
        None => Ok(()),
        Some(text) => Err(EngineError(format!("{NAME}: {text}"))),
    }
}

impl RocksDb {
    /// Makes the database compare through a function that counts; to be called before it is opened.
    pub fn count_comparisons(&mut self) {
        let api = &self.library.api;
        let comparisons = self.comparisons.insert(Comparisons::new());
        let (release, compare, name) = (counting::release, counting::compare, counting::name);
        // SAFETY: the options are live; the count lives as long as `self`, whose `Drop` destroys the comparator before it.
        unsafe {
            self.comparator = (api.rocksdb_comparator_create)(comparisons.state(), release, compare, name);
            (api.rocksdb_options_set_comparator)(self.options, self.comparator);
        }
    }

    /// Writes the memtables into tables.
    pub fn flush(&self) -> Result<()> {
        let (api, mut error) = (&self.library.api, ptr::null_mut());
        // SAFETY: the options live for the call, which waits for the flush by default.
        unsafe {
            let options = (api.rocksdb_flushoptions_create)();
            (api.rocksdb_flush)(self.db, options, &mut error);
            (api.rocksdb_flushoptions_destroy)(options);
        }
        check(api, error)
    }
}
