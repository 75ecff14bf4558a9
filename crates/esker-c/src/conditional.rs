//! Conditional writes.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{Handle, esker_keyspace, esker_write_options};
use crate::write_options::write_options_or_default;
use esker::CompareAndSwap;
use std::ffi::{c_char, c_void};

/// Sets the value of a key that has none. `*existing` is NULL if it did, or the value that the key
/// has, to be freed with `esker_free`. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_put_if_absent(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    options: *const esker_write_options,
    existing: *mut *mut c_char,
    existing_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output_bytes(existing, existing_length)?;
        let options = write_options_or_default(options)?;
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        output.set(esker_keyspace::get(keyspace)?.0.put_if_absent_with(key, value, &options)?)
    })
}

/// Sets the value of a key that has the expected one, both of which may be NULL for none.
/// `*swapped` says whether it did; if not, `*current` is the value that the key has, to be freed
/// with `esker_free`, or NULL. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compare_and_swap(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    expected: *const c_void,
    expected_length: usize,
    value: *const c_void,
    value_length: usize,
    options: *const esker_write_options,
    swapped: *mut bool,
    current: *mut *mut c_char,
    current_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        // First what must be NULL after a failure.
        let (current, swapped) = (caller.output_bytes(current, current_length)?, caller.output(swapped, false)?);
        let options = write_options_or_default(options)?;
        let key = caller.bytes(key, key_length)?;
        let expected = caller.optional_bytes(expected, expected_length)?;
        let value = caller.optional_bytes(value, value_length)?;
        match esker_keyspace::get(keyspace)?.0.compare_and_swap_with(key, expected, value, &options)? {
            CompareAndSwap::Swapped => swapped.set(true),
            CompareAndSwap::Unequal { current: found } => current.set(found)?,
        }
        Ok(())
    })
}

/// Merges an operand, and returns what the key holds then, to be freed with `esker_free`, or NULL.
/// `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_merge_and_get(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
    options: *const esker_write_options,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output_bytes(value, value_length)?;
        let options = write_options_or_default(options)?;
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        output.set(esker_keyspace::get(keyspace)?.0.merge_and_get_with(key, operand, &options)?)
    })
}

/// Deletes a key, and returns the value that it had, to be freed with `esker_free`, or NULL.
/// `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_take(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    options: *const esker_write_options,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output_bytes(value, value_length)?;
        let options = write_options_or_default(options)?;
        output.set(esker_keyspace::get(keyspace)?.0.take_with(caller.bytes(key, key_length)?, &options)?)
    })
}
