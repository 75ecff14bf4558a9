//! Cursors: positions that seek and step in both directions.

use crate::caller::{Caller, Output, esker_range};
use crate::codes::esker_code;
use crate::failure::{Done, call};
use crate::objects::{CursorObject, Exclusive, Handle, Position, esker_cursor, esker_keyspace, esker_snapshot};
use esker::Cursor;
use esker_ffi::memory;
use std::ffi::{c_char, c_void};
use std::ptr;

const NAME: &str = "an esker_cursor";

/// Makes a cursor over a keyspace, at no key: of a snapshot, or of this moment if `snapshot` is
/// NULL. With `keys_only` its values are empty, and large ones are not loaded, unless operands are
/// merged into them. Destroy it with `esker_cursor_destroy`. It may outlive the handles that it was
/// made of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_create(
    keyspace: *mut esker_keyspace,
    snapshot: *mut esker_snapshot,
    keys_only: bool,
    cursor: *mut *mut esker_cursor,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(cursor, ptr::null_mut())?;
        let cursor = open(keyspace, snapshot, keys_only)?;
        give(&output, cursor, keys_only)
    })
}

fn open(keyspace: *mut esker_keyspace, snapshot: *mut esker_snapshot, keys_only: bool) -> Done<Cursor> {
    let keyspace = esker_keyspace::get(keyspace)?;
    let cursor = match snapshot.is_null() {
        true => keyspace.0.cursor()?,
        false => esker_snapshot::get(snapshot)?.0.cursor(&keyspace.0)?,
    };
    Ok(if keys_only { cursor.keys_only() } else { cursor })
}

fn give(output: &Output<'_, *mut esker_cursor>, cursor: Cursor, keys_only: bool) -> Done<()> {
    esker_cursor::give(output, CursorObject(Exclusive::new(Position { cursor, has_values: !keys_only })))
}

/// As `esker_cursor_create`, for the keys of a range alone: no move finds one outside. `range` may
/// be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_create_within(
    keyspace: *mut esker_keyspace,
    snapshot: *mut esker_snapshot,
    keys_only: bool,
    range: *const esker_range,
    cursor: *mut *mut esker_cursor,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(cursor, ptr::null_mut())?;
        let range = caller.range(range)?;
        let cursor = open(keyspace, snapshot, keys_only)?.within(range);
        give(&output, cursor, keys_only)
    })
}

/// Destroys a cursor.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_destroy(cursor: *mut esker_cursor) -> esker_code {
    call(|| esker_cursor::close(cursor).map(drop))
}

fn step(cursor: *mut esker_cursor, step: impl FnOnce(&mut Cursor) -> Done<()>) -> esker_code {
    call(|| step(&mut esker_cursor::get(cursor)?.0.lock(NAME)?.cursor))
}

/// Moves to the first key. After a failure of this or any other move the cursor is at no key; after
/// ESKER_MERGE_FAILED the next step goes on behind the key that failed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_seek_to_first(cursor: *mut esker_cursor) -> esker_code {
    step(cursor, |cursor| Ok(cursor.seek_to_first()?))
}

/// Moves to the last key.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_seek_to_last(cursor: *mut esker_cursor) -> esker_code {
    step(cursor, |cursor| Ok(cursor.seek_to_last()?))
}

/// Moves to the first key at or after a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_seek(
    cursor: *mut esker_cursor,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    step(cursor, |cursor| Ok(cursor.seek(caller.bytes(key, key_length)?)?))
}

/// Moves to the last key at or before a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_seek_for_prev(
    cursor: *mut esker_cursor,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    step(cursor, |cursor| Ok(cursor.seek_for_prev(caller.bytes(key, key_length)?)?))
}

/// Moves to the next key. At no key it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_next(cursor: *mut esker_cursor) -> esker_code {
    step(cursor, |cursor| Ok(cursor.next()?))
}

/// Moves to the key before. At no key it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_prev(cursor: *mut esker_cursor) -> esker_code {
    step(cursor, |cursor| Ok(cursor.prev()?))
}

/// Whether the cursor is at a key; false also for a handle that is wrong.
#[unsafe(no_mangle)]
pub extern "C" fn esker_cursor_valid(cursor: *mut esker_cursor) -> bool {
    let mut valid = false;
    let done = call(|| {
        valid = esker_cursor::get(cursor)?.0.lock(NAME)?.cursor.valid();
        Ok(())
    });
    done == crate::codes::ESKER_OK && valid
}

/// The key at the cursor, which is lent until the cursor moves or is destroyed; NULL at none, and
/// for a handle that is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_key(cursor: *mut esker_cursor, length: *mut usize) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    lend(&caller, cursor, length, |position| position.cursor.key())
}

/// The value at the cursor, lent as the key. It may lie in a mapped file: should its medium fail
/// while it is read, the next move fails with ESKER_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_value(cursor: *mut esker_cursor, length: *mut usize) -> *const c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    lend(&caller, cursor, length, |position| if position.has_values { position.cursor.value() } else { &[] })
}

fn lend(
    caller: &Caller,
    cursor: *mut esker_cursor,
    length: *mut usize,
    part: impl FnOnce(&Position) -> &[u8],
) -> *const c_char {
    let mut lent = ptr::null();
    call(|| {
        let length = caller.output(length, 0)?;
        let object = esker_cursor::get(cursor)?;
        let position = object.0.lock(NAME)?;
        if position.cursor.valid() {
            let bytes = part(&position);
            length.set(bytes.len());
            lent = memory::start_of(bytes);
        }
        Ok(())
    });
    lent
}
