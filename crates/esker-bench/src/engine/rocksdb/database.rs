//! The open database that the engine and its sessions share.

use super::ffi::Api;
use crate::engine::dynamic::Loaded;
use crate::engine::leveldb::Handle;
use crate::engine::merge::MergeOperator;
use crate::engine::{Description, Result};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// The name of the engine.
pub const NAME: &str = "rocksdb";

/// An open database.
pub struct RocksDb {
    pub(super) handle: Handle,
    pub(super) library: &'static Loaded<Api>,
    pub(super) directory: PathBuf,
    pub(super) operator: Option<MergeOperator>,
    pub(super) disable_wal: bool,
    pub(super) statistics: bool,
    pub(super) levels: i32,
    /// Data blocks that sessions looked at, those still open not included.
    pub(super) blocks_searched: AtomicU64,
    pub(super) description: Description,
}

impl RocksDb {
    /// Writes the memtables into tables.
    pub fn flush(&self) -> Result<()> {
        let (api, mut error) = (&self.library.api, ptr::null_mut());
        // SAFETY: the options live for the call, which waits for the flush by default.
        unsafe {
            let options = (api.rocksdb_flushoptions_create)();
            (api.rocksdb_flush)(self.handle.db, options, &mut error);
            (api.rocksdb_flushoptions_destroy)(options);
        }
        self.handle.check(error)
    }
}
