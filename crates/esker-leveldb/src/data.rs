//! Puts, deletes and gets.

use crate::caller::Caller;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::status::checked;
use esker_ffi::{handles, memory};
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

fn write_options(options: *const leveldb_writeoptions_t) -> Done<esker::WriteOptions> {
    let sync = *leveldb_writeoptions_t::get(options)?.0.lock();
    Ok(esker::WriteOptions::new().sync(sync))
}

/// The snapshot that reads with these options see, if it is not the newest state.
pub(crate) fn snapshot(options: *const leveldb_readoptions_t) -> Done<Option<Arc<SnapshotObject>>> {
    match leveldb_readoptions_t::get(options)?.0.lock().snapshot {
        0 => Ok(None),
        snapshot => Ok(Some(handles::get(snapshot)?)),
    }
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_put(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let (db, options) = (leveldb_t::get(db)?, write_options(options)?);
        let (key, value) = (caller.bytes(key, keylen)?, caller.bytes(val, vallen)?);
        Ok(db.0.keyspace.put_with(key, value, &options)?)
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_delete(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let (db, options) = (leveldb_t::get(db)?, write_options(options)?);
        Ok(db.0.keyspace.delete_with(caller.bytes(key, keylen)?, &options)?)
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_write(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    batch: *mut leveldb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let (db, options) = (leveldb_t::get(db)?, write_options(options)?);
        let operations = Arc::clone(&leveldb_writebatch_t::get(batch)?.0.lock());
        operations.check()?;
        let mut batch = db.0.db.batch();
        for (key, value) in operations.iter() {
            match value {
                Some(value) => batch.put(&db.0.keyspace, key, value)?,
                None => batch.delete(&db.0.keyspace, key)?,
            }
        }
        Ok(batch.commit_with(&options)?)
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_get(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    caller.set(vallen, 0);
    let copy = checked(&caller, errptr, || {
        let (db, snapshot) = (leveldb_t::get(db)?, snapshot(options)?);
        let key = caller.bytes(key, keylen)?;
        let value = match &snapshot {
            Some(snapshot) => snapshot.0.get(&db.0.keyspace, key)?,
            None => db.0.keyspace.get(key)?,
        };
        let Some(value) = value else { return Ok(ptr::null_mut()) };
        let copy = memory::copy(&value);
        if copy.is_null() {
            return Err(Failure("IO error: there is no memory for the value".into()));
        }
        caller.set(vallen, value.len());
        Ok(copy)
    });
    copy.unwrap_or(ptr::null_mut())
}
