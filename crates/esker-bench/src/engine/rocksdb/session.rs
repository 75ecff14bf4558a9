//! One thread's handle on RocksDB, and its iterator.

use super::blocks::BlocksSearched;
use super::database::{NAME, RocksDb, check};
use super::ffi::{self, Api};
use crate::engine::dynamic::bytes;
use crate::engine::merge::no_operator;
use crate::engine::{Iteration, Operation, Result, Session, WriteMode};
use std::ptr;
use std::sync::atomic::Ordering;

/// Options and batch, made once.
pub struct RocksDbSession<'e> {
    engine: &'e RocksDb,
    api: &'static Api,
    read: *mut ffi::ReadOptions,
    /// By what the write asks for: plain, synced, without log.
    write: [*mut ffi::WriteOptions; 3],
    batch: *mut ffi::WriteBatch,
    /// Counts what this thread looks at, where statistics are asked for.
    blocks: Option<BlocksSearched>,
}

impl<'e> RocksDbSession<'e> {
    /// A session on `engine`.
    pub fn new(engine: &'e RocksDb) -> RocksDbSession<'e> {
        let api = &engine.library.api;
        // SAFETY: plain constructors and setters; `Drop` destroys the objects.
        unsafe {
            let write = [(); 3].map(|()| (api.rocksdb_writeoptions_create)());
            (api.rocksdb_writeoptions_set_sync)(write[1], 1);
            (api.rocksdb_writeoptions_disable_WAL)(write[2], 1);
            let (read, batch) = ((api.rocksdb_readoptions_create)(), (api.rocksdb_writebatch_create)());
            let blocks = engine.statistics.then(|| BlocksSearched::start(api)).flatten();
            RocksDbSession { engine, api, read, write, batch, blocks }
        }
    }

    fn options(&self, mode: WriteMode) -> *const ffi::WriteOptions {
        // RocksDB refuses a synced write without a log; without a log there is nothing to sync.
        if mode.disable_wal || self.engine.disable_wal {
            self.write[2]
        } else if mode.sync {
            self.write[1]
        } else {
            self.write[0]
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
            // SAFETY: database and options are live, the key readable, and the buffer has the capacity stated.
            let copied = unsafe {
                get(
                    self.engine.db,
                    self.read,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_mut_ptr().cast(),
                    value.capacity(),
                    &mut len,
                    &mut found,
                    &mut error,
                )
            };
            check(self.api, error)?;
            if found == 0 {
                return Ok(false);
            }
            if copied != 0 {
                // SAFETY: RocksDB wrote `len` bytes, no more than the capacity.
                unsafe { value.set_len(len) };
                return Ok(true);
            }
            // The value was longer than the buffer, and may have changed again before the next attempt.
            value.reserve(len);
        }
    }

    fn get_pinned(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live and the key readable.
        let pinned = unsafe {
            (self.api.rocksdb_get_pinned)(self.engine.db, self.read, key.as_ptr().cast(), key.len(), &mut error)
        };
        check(self.api, error)?;
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
        // SAFETY: all were made by the matching constructors and are not used again; iterators borrow the session, so
        // none is left.
        unsafe {
            (self.api.rocksdb_readoptions_destroy)(self.read);
            for write in self.write {
                (self.api.rocksdb_writeoptions_destroy)(write);
            }
            (self.api.rocksdb_writebatch_destroy)(self.batch);
        }
    }
}

impl Session for RocksDbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: database and options are live, key and value readable.
        unsafe {
            (self.api.rocksdb_put)(self.engine.db, self.options(mode), k, key.len(), v, value.len(), &mut error);
        }
        check(self.api, error)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live, the key is readable.
        unsafe {
            (self.api.rocksdb_delete)(self.engine.db, self.options(mode), key.as_ptr().cast(), key.len(), &mut error);
        }
        check(self.api, error)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the batch is live and copies what is added; database and options are live.
        unsafe {
            (self.api.rocksdb_writebatch_clear)(self.batch);
            for operation in batch {
                match *operation {
                    Operation::Put(key, value) => {
                        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                        (self.api.rocksdb_writebatch_put)(self.batch, k, key.len(), v, value.len());
                    }
                    Operation::Delete(key) => {
                        (self.api.rocksdb_writebatch_delete)(self.batch, key.as_ptr().cast(), key.len());
                    }
                    Operation::Merge(key, operand) => {
                        self.engine.operator.ok_or_else(|| no_operator(NAME))?;
                        let (k, v) = (key.as_ptr().cast(), operand.as_ptr().cast());
                        (self.api.rocksdb_writebatch_merge)(self.batch, k, key.len(), v, operand.len());
                    }
                }
            }
            (self.api.rocksdb_write)(self.engine.db, self.options(mode), self.batch, &mut error);
        }
        check(self.api, error)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), operand.as_ptr().cast());
        // SAFETY: database and options are live, key and operand readable.
        unsafe {
            (self.api.rocksdb_merge)(self.engine.db, self.options(mode), k, key.len(), v, operand.len(), &mut error);
        }
        check(self.api, error)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self.api.rocksdb_get_into_buffer {
            Some(get) => self.get_into(get, key, value),
            None => self.get_pinned(key, value),
        }
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        // SAFETY: database and options are live and outlive the iterator, which borrows the session.
        let iter = unsafe { (self.api.rocksdb_create_iterator)(self.engine.db, self.read) };
        Ok(Box::new(RocksDbIteration { api: self.api, iter, positioned: false, _session: self }))
    }
}

/// RocksDB's own iterator; it sees the state at its creation.
struct RocksDbIteration<'s, 'e> {
    api: &'static Api,
    iter: *mut ffi::Iter,
    /// Whether the iterator is on an entry: RocksDB must not be asked to move or to show one otherwise.
    positioned: bool,
    _session: &'s RocksDbSession<'e>,
}

impl RocksDbIteration<'_, '_> {
    fn settle(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        self.positioned = unsafe { (self.api.rocksdb_iter_valid)(self.iter) } != 0;
        if self.positioned {
            return Ok(true);
        }
        let mut error = ptr::null_mut();
        // SAFETY: as above; the error starts as null.
        unsafe { (self.api.rocksdb_iter_get_error)(self.iter, &mut error) };
        check(self.api, error).map(|()| false)
    }
}

impl Drop for RocksDbIteration<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: made by rocksdb_create_iterator and not used again.
        unsafe { (self.api.rocksdb_iter_destroy)(self.iter) };
    }
}

impl Iteration for RocksDbIteration<'_, '_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.rocksdb_iter_seek_to_first)(self.iter) };
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.rocksdb_iter_seek_to_last)(self.iter) };
        self.settle()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the iterator is live and the key readable.
        unsafe { (self.api.rocksdb_iter_seek)(self.iter, key.as_ptr().cast(), key.len()) };
        self.settle()
    }

    fn next(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: the iterator is live and positioned.
        unsafe { (self.api.rocksdb_iter_next)(self.iter) };
        self.settle()
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: as for `next`.
        unsafe { (self.api.rocksdb_iter_prev)(self.iter) };
        self.settle()
    }

    fn key(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: a positioned iterator's key lives until its next move, which needs `&mut self`.
        unsafe { bytes((self.api.rocksdb_iter_key)(self.iter, &mut len), len) }
    }

    fn value(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: as for `key`.
        unsafe { bytes((self.api.rocksdb_iter_value)(self.iter, &mut len), len) }
    }
}
