//! Iterators.

use crate::caller::Caller;
use crate::data::snapshot;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::status::{checked, told};
use esker::Cursor;
use esker_ffi::memory;
use parking_lot::Mutex;
use std::ffi::c_char;
use std::ptr;

fn create(db: *mut leveldb_t, options: *const leveldb_readoptions_t) -> Done<Cursor> {
    let (db, snapshot) = (leveldb_t::get(db)?, snapshot(options)?);
    Ok(match &snapshot {
        Some(snapshot) => snapshot.0.cursor(&db.0.keyspace)?,
        None => db.0.keyspace.cursor()?,
    })
}

/// See LevelDB's header. One that could not be made is at no key, and has the error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
) -> *mut leveldb_iterator_t {
    told("leveldb_create_iterator", || {
        let position = match create(db, options) {
            Ok(cursor) => Position { cursor: Some(cursor), error: None },
            Err(failure) => Position { cursor: None, error: Some(failure.0) },
        };
        leveldb_iterator_t::make(Iterator(Mutex::new(position)))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iter: *mut leveldb_iterator_t) {
    told("leveldb_iter_destroy", || leveldb_iterator_t::close(iter));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iter: *const leveldb_iterator_t) -> u8 {
    let valid = told("leveldb_iter_valid", || {
        let object = leveldb_iterator_t::get(iter)?;
        let position = object.0.lock();
        Ok(position.cursor.as_ref().is_some_and(Cursor::valid))
    });
    u8::from(valid == Some(true))
}

/// Moves, and keeps the error. What moved goes on behind an error that it has told.
fn step(function: &str, iter: *mut leveldb_iterator_t, step: impl FnOnce(&mut Cursor) -> Done<()>) {
    told(function, || {
        let object = leveldb_iterator_t::get(iter)?;
        let mut position = object.0.lock();
        let Some(cursor) = &mut position.cursor else { return Ok(()) };
        let moved = step(cursor);
        if let Err(failure) = moved {
            position.error = Some(failure.0);
        }
        Ok(())
    });
}

/// As [`step`], to another place: the error before is that of another one.
fn seek(function: &str, iter: *mut leveldb_iterator_t, seek: impl FnOnce(&mut Cursor) -> Done<()>) {
    told(function, || {
        let object = leveldb_iterator_t::get(iter)?;
        let mut position = object.0.lock();
        if position.cursor.is_some() {
            position.error = None;
        }
        Ok(())
    });
    step(function, iter, seek);
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iter: *mut leveldb_iterator_t) {
    seek("leveldb_iter_seek_to_first", iter, |cursor| Ok(cursor.seek_to_first()?));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iter: *mut leveldb_iterator_t) {
    seek("leveldb_iter_seek_to_last", iter, |cursor| Ok(cursor.seek_to_last()?));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek(iter: *mut leveldb_iterator_t, k: *const c_char, klen: usize) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    seek("leveldb_iter_seek", iter, |cursor| Ok(cursor.seek(caller.bytes(k, klen)?)?));
}

/// See LevelDB's header. At no key it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iter: *mut leveldb_iterator_t) {
    step("leveldb_iter_next", iter, |cursor| Ok(cursor.next()?));
}

/// See LevelDB's header. At no key it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iter: *mut leveldb_iterator_t) {
    step("leveldb_iter_prev", iter, |cursor| Ok(cursor.prev()?));
}

/// See LevelDB's header. At no key it is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_key(iter: *const leveldb_iterator_t, klen: *mut usize) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    lend("leveldb_iter_key", &caller, iter, klen, Cursor::key)
}

/// See LevelDB's header. At no key it is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(iter: *const leveldb_iterator_t, vlen: *mut usize) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    lend("leveldb_iter_value", &caller, iter, vlen, Cursor::value)
}

/// The bytes of the cursor, which stay until it moves.
fn lend(
    function: &str,
    caller: &Caller,
    iter: *const leveldb_iterator_t,
    length: *mut usize,
    part: impl FnOnce(&Cursor) -> &[u8],
) -> *const c_char {
    caller.set(length, 0);
    let lent = told(function, || {
        let object = leveldb_iterator_t::get(iter)?;
        let position = object.0.lock();
        let Some(cursor) = position.cursor.as_ref().filter(|cursor| cursor.valid()) else { return Ok(c"".as_ptr()) };
        let bytes = part(cursor);
        caller.set(length, bytes.len());
        Ok(memory::start_of(bytes))
    });
    lent.unwrap_or(c"".as_ptr())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(iter: *const leveldb_iterator_t, errptr: *mut *mut c_char) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let object = leveldb_iterator_t::get(iter)?;
        let error = object.0.lock().error.clone();
        error.map_or(Ok(()), |error| Err(Failure(error)))
    });
}
