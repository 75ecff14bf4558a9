//! Snapshots.

use crate::caller::{Caller, esker_bytes, esker_range};
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{Handle, esker_keyspace, esker_snapshot};
use crate::read::{copy_into, give_pair, multi_get};
use crate::times::milliseconds;
use std::ffi::{c_char, c_void};

/// Destroys a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn esker_snapshot_destroy(snapshot: *mut esker_snapshot) -> esker_code {
    call(|| esker_snapshot::close(snapshot).map(drop))
}

/// The value of a key in a snapshot, as `esker_keyspace_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_get(
    snapshot: *mut esker_snapshot,
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
        let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
        output.set(object.0.get(&keyspace.0, caller.bytes(key, key_length)?)?)
    })
}

/// Copies the value of a key in a snapshot into a buffer, as `esker_keyspace_get_into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_get_into(
    snapshot: *mut esker_snapshot,
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
            let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
            Ok(object.0.get(&keyspace.0, caller.bytes(key, key_length)?)?)
        })
    })
}

/// The values of many keys in a snapshot, as `esker_keyspace_multi_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_multi_get(
    snapshot: *mut esker_snapshot,
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
            let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
            Ok(object.0.multi_get(&keyspace.0, keys)?)
        })
    })
}

/// Whether a key has a value in a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_contains_key(
    snapshot: *mut esker_snapshot,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(found, false)?;
        let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
        output.set(object.0.contains_key(&keyspace.0, caller.bytes(key, key_length)?)?);
        Ok(())
    })
}

/// When a key of a snapshot expires, as `esker_keyspace_expires_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_expires_at(
    snapshot: *mut esker_snapshot,
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
        let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
        let expiry = object.0.expires_at(&keyspace.0, caller.bytes(key, key_length)?)?;
        found.set(expiry.is_some());
        time.set(expiry.map_or(0, milliseconds));
        Ok(())
    })
}

/// The least key of a snapshot that has a value, as `esker_keyspace_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_first(
    snapshot: *mut esker_snapshot,
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
            let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
            Ok(object.0.first(&keyspace.0)?)
        })
    })
}

/// The greatest key of a snapshot that has a value, as `esker_keyspace_last`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_last(
    snapshot: *mut esker_snapshot,
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
            let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
            Ok(object.0.last(&keyspace.0)?)
        })
    })
}

/// The number of keys in a range of a snapshot. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_count(
    snapshot: *mut esker_snapshot,
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    count: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(count, 0)?;
        let (object, keyspace) = (esker_snapshot::get(snapshot)?, esker_keyspace::get(keyspace)?);
        output.set(object.0.count(&keyspace.0, caller.range(range)?)?);
        Ok(())
    })
}

/// The sequence number of the last write that a snapshot sees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_sequence(snapshot: *mut esker_snapshot, sequence: *mut u64) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(sequence, 0)?;
        output.set(esker_snapshot::get(snapshot)?.0.sequence());
        Ok(())
    })
}
