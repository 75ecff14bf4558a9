//! The open database that the engine and its sessions share, and one thread's handle on it, with
//! what LevelDB's has not.

use super::blocks::BlocksSearched;
use super::ffi::{self, Api};
use crate::dynamic::{Loaded, bytes};
use crate::leveldb::client::{Client, Handle};
use crate::merge::{MergeOperator, no_operator};
use crate::{Iteration, Operation, Result, Session, WriteMode};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What a client has, and RocksDB's own.
pub struct RocksDbSession<'e> {
    engine: &'e RocksDb,
    api: &'static Api,
    client: Client<'e>,
    /// Counts what this thread looks at, where statistics are requested.
    blocks: Option<BlocksSearched>,
}

impl<'e> RocksDbSession<'e> {
    /// A session on `engine`.
    pub fn new(engine: &'e RocksDb) -> RocksDbSession<'e> {
        let (api, client) = (&engine.library.api, Client::new(&engine.handle));
        // SAFETY: a plain setter on what the client has made.
        unsafe { (api.rocksdb_writeoptions_disable_WAL)(client.write[2], 1) };
        let blocks = engine.statistics.then(|| BlocksSearched::start(api)).flatten();
        RocksDbSession { engine, api, client, blocks }
    }

    fn options(&self, mode: WriteMode) -> *const ffi::WriteOptions {
        // RocksDB refuses a synced write without a log; without a log there is nothing to sync.
        if mode.disable_wal || self.engine.disable_wal {
            self.client.write[2]
        } else if mode.sync {
            self.client.write[1]
        } else {
            self.client.write[0]
        }
    }

    /// Reads straight into the caller's buffer: one copy and no allocation in RocksDB.
    fn get_into(
        &self,
        get: unsafe extern "C" fn(
            *mut ffi::Db,
            *const ffi::ReadOptions,
            *const std::ffi::c_char,
            usize,
            *mut std::ffi::c_char,
            usize,
            *mut usize,
            *mut u8,
            *mut *mut std::ffi::c_char,
        ) -> u8,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        value.clear();
        loop {
            let (mut error, mut len, mut found) = (ptr::null_mut(), 0, 0);
            // SAFETY: database and options are live, the key readable, and the buffer has the
            // capacity stated.
            let copied = unsafe {
                get(
                    self.engine.handle.db,
                    self.client.read,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_mut_ptr().cast(),
                    value.capacity(),
                    &mut len,
                    &mut found,
                    &mut error,
                )
            };
            self.engine.handle.check(error)?;
            if found == 0 {
                return Ok(false);
            }
            if copied != 0 {
                // SAFETY: RocksDB wrote `len` bytes, no more than the capacity.
                unsafe { value.set_len(len) };
                return Ok(true);
            }
            // The value was longer than the buffer, and may have changed again before the next
            // attempt.
            value.reserve(len);
        }
    }

    fn get_pinned(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live and the key readable.
        let pinned = unsafe {
            let (db, read) = (self.engine.handle.db, self.client.read);
            (self.api.rocksdb_get_pinned)(db, read, key.as_ptr().cast(), key.len(), &mut error)
        };
        self.engine.handle.check(error)?;
        if pinned.is_null() {
            return Ok(false);
        }
        value.clear();
        let mut len = 0;
        // SAFETY: the pinned value lives until it is destroyed, after the copy.
        unsafe {
            value.extend_from_slice(bytes((self.api.rocksdb_pinnableslice_value)(pinned, &mut len), len));
            (self.api.rocksdb_pinnableslice_destroy)(pinned);
        }
        Ok(true)
    }
}

impl Drop for RocksDbSession<'_> {
    fn drop(&mut self) {
        if let Some(blocks) = &self.blocks {
            self.engine.blocks_searched.fetch_add(blocks.count(), Ordering::Relaxed);
        }
    }
}

impl Session for RocksDbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.client.put(self.options(mode), key, value)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.client.delete(self.options(mode), key)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        self.client.begin();
        for operation in batch {
            match *operation {
                Operation::Put(key, value) => self.client.stage_put(key, value),
                Operation::Delete(key) => self.client.stage_delete(key),
                Operation::Merge(key, operand) => {
                    self.engine.operator.ok_or_else(|| no_operator(NAME))?;
                    let (k, v) = (key.as_ptr().cast(), operand.as_ptr().cast());
                    // SAFETY: the batch is live and copies what is added.
                    unsafe {
                        (self.api.rocksdb_writebatch_merge)(self.client.batch, k, key.len(), v, operand.len());
                    }
                }
            }
        }
        self.client.commit(self.options(mode))
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), operand.as_ptr().cast());
        // SAFETY: database and options are live, key and operand readable.
        unsafe {
            let (db, options) = (self.engine.handle.db, self.options(mode));
            (self.api.rocksdb_merge)(db, options, k, key.len(), v, operand.len(), &mut error);
        }
        self.engine.handle.check(error)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self.api.rocksdb_get_into_buffer {
            Some(get) => self.get_into(get, key, value),
            None => self.get_pinned(key, value),
        }
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Ok(Box::new(self.client.walk()))
    }
}
