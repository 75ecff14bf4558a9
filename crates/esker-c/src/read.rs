//! Reads of a keyspace.

use crate::caller::{Caller, esker_bytes, esker_range};
use crate::codes::{ESKER_BUFFER_TOO_SHORT, ESKER_OK, esker_code};
use crate::failure::{Done, Failure, call};
use crate::objects::{Handle, esker_keyspace};
use crate::times::milliseconds;
use esker::Slice;
use esker_ffi::memory;
use std::ffi::{c_char, c_void};

/// The value of a key, to be freed with `esker_free`. `*value` is NULL if the key has none; that of
/// an empty value is not. A zero byte that is not counted follows the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_get(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output_bytes(value, value_length)?;
        output.set(esker_keyspace::get(keyspace)?.0.get(caller.bytes(key, key_length)?)?)
    })
}

/// Copies the value of a key into a buffer. `found` says whether the key has one, `value_length`
/// how long it is; if that is more than `buffer_length`, nothing is copied and the code is
/// ESKER_BUFFER_TOO_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_get_into(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    buffer_length: usize,
    value_length: *mut usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        copy_into(&caller, (buffer, buffer_length), (value_length, found), || {
            Ok(esker_keyspace::get(keyspace)?.0.get(caller.bytes(key, key_length)?)?)
        })
    })
}

pub(crate) fn copy_into(
    caller: &Caller,
    (buffer, buffer_length): (*mut c_void, usize),
    (length, found): (*mut usize, *mut bool),
    read: impl FnOnce() -> Done<Option<Slice>>,
) -> Done<()> {
    let (length, found) = (caller.output(length, 0)?, caller.output(found, false)?);
    let Some(value) = read()? else { return Ok(()) };
    found.set(true);
    length.set(value.len());
    if value.len() > buffer_length {
        let what = format!("the value has {} bytes, the buffer {buffer_length}", value.len());
        return Err(Failure::new(ESKER_BUFFER_TOO_SHORT, what));
    }
    caller.fill(buffer, &value)
}

/// The values of many keys, all of one moment: as `esker_keyspace_get` for each. `codes` may be
/// NULL; otherwise it gets what each came to. Returns the first that is not ESKER_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_multi_get(
    keyspace: *mut esker_keyspace,
    keys: *const esker_bytes,
    count: usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    codes: *mut esker_code,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        multi_get(&caller, (keys, count), (values, value_lengths, codes), |keys| {
            Ok(esker_keyspace::get(keyspace)?.0.multi_get(keys))
        })
    })
}

/// What a call for many keys returns, by the places of its results.
pub(crate) type Results = (*mut *mut c_char, *mut usize, *mut esker_code);

pub(crate) fn multi_get(
    caller: &Caller,
    (keys, count): (*const esker_bytes, usize),
    (values, lengths, codes): Results,
    read: impl FnOnce(Vec<&[u8]>) -> Done<Vec<esker::Result<Option<Slice>>>>,
) -> Done<()> {
    let values = caller.outputs(values, count, std::ptr::null_mut())?;
    let lengths = caller.outputs(lengths, count, 0)?;
    let codes = if codes.is_null() { Vec::new() } else { caller.outputs(codes, count, ESKER_OK)? };
    let keys = caller.array(keys, count)?;
    let keys: Vec<&[u8]> = keys.iter().map(|key| caller.bytes(key.data, key.length)).collect::<Done<_>>()?;
    let mut first = Ok(());
    for (index, value) in read(keys)?.into_iter().enumerate() {
        let copied = value.map_err(Failure::from).and_then(|value| {
            let Some(value) = value else { return Ok(()) };
            let copy = memory::copy(&value);
            if copy.is_null() {
                return Err(Failure::out_of_memory());
            }
            values[index].set(copy);
            lengths[index].set(value.len());
            Ok(())
        });
        if let Err(failure) = copied {
            if let Some(code) = codes.get(index) {
                code.set(failure.code);
            }
            first = first.and(Err(failure));
        }
    }
    first
}

/// Whether a key has a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_contains_key(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(found, false)?;
        output.set(esker_keyspace::get(keyspace)?.0.contains_key(caller.bytes(key, key_length)?)?);
        Ok(())
    })
}

/// When a key expires, in milliseconds since 1970; ESKER_NEVER if it does not. `found` says whether
/// it has a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_expires_at(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
    expires_at_ms: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (found, time) = (caller.output(found, false)?, caller.output(expires_at_ms, 0)?);
        let expiry = esker_keyspace::get(keyspace)?.0.expires_at(caller.bytes(key, key_length)?)?;
        found.set(expiry.is_some());
        time.set(expiry.map_or(0, milliseconds));
        Ok(())
    })
}

/// A pair as two results.
pub(crate) type PairResults = (*mut *mut c_char, *mut usize, *mut *mut c_char, *mut usize);

pub(crate) fn give_pair(
    caller: &Caller,
    (key, key_length, value, value_length): PairResults,
    read: impl FnOnce() -> Done<Option<(Slice, Slice)>>,
) -> Done<()> {
    // Both are NULL after a failure, also after that of the other one.
    let (key, value) = (caller.output_bytes(key, key_length), caller.output_bytes(value, value_length));
    let (key, value) = (key?, value?);
    let Some((found_key, found_value)) = read()? else { return Ok(()) };
    key.set_with(&found_key, &value, &found_value)
}

/// The least key that has a value, and the value, both to be freed with `esker_free`. `*key` is
/// NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_first(
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || Ok(esker_keyspace::get(keyspace)?.0.first()?))
    })
}

/// The greatest key that has a value, as `esker_keyspace_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_last(
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || Ok(esker_keyspace::get(keyspace)?.0.last()?))
    })
}

/// Deletes the least key and returns it with its value, as `esker_keyspace_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_pop_first(
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || {
            Ok(esker_keyspace::get(keyspace)?.0.pop_first()?)
        })
    })
}

/// The number of keys in a range that have a value. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_count(
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    count: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(count, 0)?;
        output.set(esker_keyspace::get(keyspace)?.0.count(caller.range(range)?)?);
        Ok(())
    })
}
