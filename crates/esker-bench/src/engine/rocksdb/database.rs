//! The open database that the engine and its sessions share.

use super::ffi::{self, Api};
use crate::engine::dynamic::{Loaded, take_string};
use crate::engine::merge::MergeOperator;
use crate::engine::settings::Settings;
use crate::engine::{EngineError, Result};
use std::ffi::c_char;
use std::path::PathBuf;
use std::ptr;

/// The name of the engine.
pub const NAME: &str = "rocksdb";

/// An open database. `db` is null or live, `options` live.
pub struct RocksDb {
    pub(super) library: &'static Loaded<Api>,
    pub(super) db: *mut ffi::Db,
    pub(super) options: *mut ffi::DbOptions,
    pub(super) directory: PathBuf,
    pub(super) operator: Option<MergeOperator>,
    pub(super) disable_wal: bool,
    pub(super) statistics: bool,
    pub(super) settings: Settings,
}

// SAFETY: RocksDB's database object may be used from any thread; the options are only read after open (their
// statistics are thread-safe).
unsafe impl Send for RocksDb {}
// SAFETY: as above: every call that the adapter makes on a database is thread-safe.
unsafe impl Sync for RocksDb {}

impl Drop for RocksDb {
    fn drop(&mut self) {
        let api = &self.library.api;
        // SAFETY: both were made by the matching constructors, and nothing borrows the database any more (sessions
        // borrow `self`).
        unsafe {
            if !self.db.is_null() {
                (api.rocksdb_close)(self.db);
            }
            (api.rocksdb_options_destroy)(self.options);
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
