//! Writes to a keyspace. Where options may be NULL, NULL are the defaults.

use crate::caller::{Caller, esker_range};
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{Handle, esker_keyspace, esker_write_options};
use crate::times::time;
use crate::write_options::write_options_or_default;
use std::ffi::c_void;

/// Sets the value of a key. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_put(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    options: *const esker_write_options,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let options = write_options_or_default(options)?;
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        Ok(esker_keyspace::get(keyspace)?.0.put_with(key, value, &options)?)
    })
}

/// Sets the value of a key until a time, in milliseconds since 1970; ESKER_NEVER is never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_put_until(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    expires_at_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        Ok(esker_keyspace::get(keyspace)?.0.put_until(key, value, time(expires_at_ms))?)
    })
}

/// Deletes a key, which need not exist. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_delete(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    options: *const esker_write_options,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let options = write_options_or_default(options)?;
        Ok(esker_keyspace::get(keyspace)?.0.delete_with(caller.bytes(key, key_length)?, &options)?)
    })
}

/// Combines an operand with what a key holds, without reading it. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_merge(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
    options: *const esker_write_options,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let options = write_options_or_default(options)?;
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        Ok(esker_keyspace::get(keyspace)?.0.merge_with(key, operand, &options)?)
    })
}

/// Deletes every key of a range, for the price of a put. `range` and `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_delete_range(
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    options: *const esker_write_options,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let options = write_options_or_default(options)?;
        Ok(esker_keyspace::get(keyspace)?.0.delete_range_with(caller.range(range)?, &options)?)
    })
}

/// Deletes every key that begins with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_delete_prefix(
    keyspace: *mut esker_keyspace,
    prefix: *const c_void,
    prefix_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| Ok(esker_keyspace::get(keyspace)?.0.delete_prefix(caller.bytes(prefix, prefix_length)?)?))
}
