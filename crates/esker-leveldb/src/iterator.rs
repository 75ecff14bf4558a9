//! Iterators.

use crate::caller::Caller;
use crate::data::snapshot;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::status::{checked, told};
use esker::Cursor;
use esker_ffi::handles::{self, Lender, Object};
use esker_ffi::lent::Loan;
use esker_ffi::{fork, memory};
use parking_lot::Mutex;
use std::ffi::c_char;
use std::num::NonZero;
use std::ptr;

/// An iterator. One call at a time uses it; its slot of the table of handles owns it, so that a
/// step takes one lock, and what reads the key and the value none.
pub(crate) struct Iterator(Mutex<Position>);

/// Its cursor, if it could be made, and what failed last.
struct Position {
    cursor: Option<Cursor>,
    error: Option<String>,
}

impl Object for Iterator {
    const NAME: &'static str = "a leveldb_iterator_t";
}

impl Lender for Iterator {
    const KIND: NonZero<u32> = NonZero::<u32>::MIN;

    #[inline]
    fn loan(&mut self) -> Option<(&[u8], &[u8])> {
        let cursor = self.0.get_mut().cursor.as_ref().filter(|cursor| cursor.valid())?;
        Some((cursor.key(), cursor.value()))
    }
}

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
        let handle = handles::insert_owned(Box::new(Iterator(Mutex::new(position))))?;
        Ok(ptr::without_provenance_mut(handle))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iter: *mut leveldb_iterator_t) {
    told("leveldb_iter_destroy", || {
        handles::remove_owned::<Iterator>(iter.addr())?;
        Ok(())
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iter: *const leveldb_iterator_t) -> u8 {
    u8::from(lent("leveldb_iter_valid", iter).is_some())
}

/// Moves, and keeps the error. What moved goes on behind an error that it has told.
fn step(function: &str, iter: *mut leveldb_iterator_t, step: impl FnOnce(&mut Cursor) -> Done<()>) {
    told(function, || {
        handles::with(iter.addr(), |Iterator(position)| {
            let position = position.get_mut();
            let Some(cursor) = &mut position.cursor else { return };
            if let Err(failure) = step(cursor) {
                position.error = Some(failure.0);
            }
        })?;
        Ok(())
    });
}

/// As [`step`], to another place: the error before is that of another one.
fn seek(function: &str, iter: *mut leveldb_iterator_t, seek: impl FnOnce(&mut Cursor) -> Done<()>) {
    told(function, || {
        handles::with(iter.addr(), |Iterator(position)| {
            let position = position.get_mut();
            let Some(cursor) = &mut position.cursor else { return };
            position.error = seek(cursor).err().map(|failure| failure.0);
        })?;
        Ok(())
    });
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
    lend("leveldb_iter_key", &caller, iter, klen, |loan| loan.key)
}

/// See LevelDB's header. At no key it is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(iter: *const leveldb_iterator_t, vlen: *mut usize) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    lend("leveldb_iter_value", &caller, iter, vlen, |loan| loan.value)
}

/// What the iterator is at.
#[inline]
fn lent(function: &str, iter: *const leveldb_iterator_t) -> Option<Loan> {
    match handles::lent::<Iterator>(iter.addr()) {
        Some(loan) if fork::check().is_ok() => Some(loan),
        // The rest calls the engine, or is a mistake.
        _ => told(function, || Ok(handles::loan::<Iterator>(iter.addr())?)).flatten(),
    }
}

/// The bytes that the iterator is at, which stay until it moves.
#[inline]
fn lend(
    function: &str,
    caller: &Caller,
    iter: *const leveldb_iterator_t,
    length: *mut usize,
    part: impl FnOnce(Loan) -> (*const u8, usize),
) -> *const c_char {
    let (start, bytes) = lent(function, iter).map_or((ptr::null(), 0), part);
    caller.set(length, bytes);
    if bytes == 0 { memory::start_of(&[]) } else { start.cast() }
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(iter: *const leveldb_iterator_t, errptr: *mut *mut c_char) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let error = handles::with(iter.addr(), |Iterator(position)| position.get_mut().error.clone())?;
        error.map_or(Ok(()), |error| Err(Failure(error)))
    });
}
