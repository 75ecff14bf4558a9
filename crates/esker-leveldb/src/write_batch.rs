//! Batches: operations that are kept until they are written.

use crate::caller::Caller;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::operations::Operations;
use crate::status::told;
use esker_ffi::memory::start_of;
use parking_lot::Mutex;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> *mut leveldb_writebatch_t {
    let object = WriteBatch(Mutex::default());
    told("leveldb_writebatch_create", || leveldb_writebatch_t::make(object)).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: *mut leveldb_writebatch_t) {
    told("leveldb_writebatch_destroy", || leveldb_writebatch_t::close(batch));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: *mut leveldb_writebatch_t) {
    told("leveldb_writebatch_clear", || {
        let object = leveldb_writebatch_t::get(batch)?;
        let mut shared = object.0.lock();
        Arc::make_mut(&mut shared).clear();
        Ok(())
    });
}

/// Changes a batch. Where that fails, the batch lacks an operation from here on, and no call writes
/// it.
fn changed(batch: *mut leveldb_writebatch_t, change: impl FnOnce(&mut Operations) -> Done<()>) -> Done<()> {
    let object = leveldb_writebatch_t::get(batch)?;
    let mut shared = object.0.lock();
    let operations = Arc::make_mut(&mut shared);
    let done = change(operations);
    if let Err(failure) = &done {
        operations.refuse(failure.what());
    }
    done
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut leveldb_writebatch_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    told("leveldb_writebatch_put", || {
        changed(batch, |operations| {
            operations.add(caller.bytes(key, klen)?, Some(caller.bytes(val, vlen)?));
            Ok(())
        })
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_delete(batch: *mut leveldb_writebatch_t, key: *const c_char, klen: usize) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    told("leveldb_writebatch_delete", || {
        changed(batch, |operations| {
            operations.add(caller.bytes(key, klen)?, None);
            Ok(())
        })
    });
}

type Put = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>;
type Deleted = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize)>;

/// See LevelDB's header. The functions may change the batch; they are passed what it held before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const leveldb_writebatch_t,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    told("leveldb_writebatch_iterate", || {
        let operations = Arc::clone(&leveldb_writebatch_t::get(batch)?.0.lock());
        let (Some(put), Some(deleted)) = (put, deleted) else {
            return Err(Failure::invalid("NULL for a function"));
        };
        for (key, value) in operations.iter() {
            // SAFETY: the caller has passed the functions for this state; key and value live until
            // they return.
            unsafe {
                match value {
                    Some(value) => put(state, start_of(key), key.len(), start_of(value), value.len()),
                    None => deleted(state, start_of(key), key.len()),
                }
            }
        }
        Ok(())
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    destination: *mut leveldb_writebatch_t,
    source: *const leveldb_writebatch_t,
) {
    told("leveldb_writebatch_append", || {
        // The two may be one: the lock of the source goes before that of the destination is taken.
        let source = leveldb_writebatch_t::get(source);
        let appended = source.map(|source| Arc::clone(&source.0.lock()));
        changed(destination, |operations| {
            let appended: Arc<Operations> = appended?;
            operations.append(&appended);
            Ok(())
        })
    });
}
