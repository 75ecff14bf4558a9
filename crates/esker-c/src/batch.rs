//! Batches.

use crate::caller::{Caller, esker_range};
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{Handle, esker_batch, esker_keyspace, esker_write_options};
use crate::times::time;
use crate::write_options::write_options_or_default;
use std::ffi::c_void;
use std::time::Duration;

const NAME: &str = "an esker_batch";

/// Destroys a batch; what was not committed is not written.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_destroy(batch: *mut esker_batch) -> esker_code {
    call(|| esker_batch::close(batch).map(drop))
}

/// Adds a put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        Ok(object.0.lock(NAME)?.put(&keyspace.0, key, value)?)
    })
}

/// Adds a put with a time to live, which counts from the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put_with_ttl(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        Ok(object.0.lock(NAME)?.put_with_ttl(&keyspace.0, key, value, Duration::from_millis(ttl_ms))?)
    })
}

/// Adds a put until a time, in milliseconds since 1970; ESKER_NEVER is never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put_until(
    batch: *mut esker_batch,
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
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        Ok(object.0.lock(NAME)?.put_until(&keyspace.0, key, value, time(expires_at_ms))?)
    })
}

/// Adds a delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let key = caller.bytes(key, key_length)?;
        Ok(object.0.lock(NAME)?.delete(&keyspace.0, key)?)
    })
}

/// Adds a merge.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_merge(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        Ok(object.0.lock(NAME)?.merge(&keyspace.0, key, operand)?)
    })
}

/// Adds a merge with a time to live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_merge_with_ttl(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        Ok(object.0.lock(NAME)?.merge_with_ttl(&keyspace.0, key, operand, Duration::from_millis(ttl_ms))?)
    })
}

/// Adds a delete of a range. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete_range(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let range = caller.range(range)?;
        Ok(object.0.lock(NAME)?.delete_range(&keyspace.0, range)?)
    })
}

/// Adds a delete of every key that begins with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete_prefix(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    prefix: *const c_void,
    prefix_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let prefix = caller.bytes(prefix, prefix_length)?;
        Ok(object.0.lock(NAME)?.delete_prefix(&keyspace.0, prefix)?)
    })
}

/// Adds a change of the expiry of a key, to so many milliseconds from the commit on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_touch(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let key = caller.bytes(key, key_length)?;
        Ok(object.0.lock(NAME)?.touch(&keyspace.0, key, Duration::from_millis(ttl_ms))?)
    })
}

/// Adds a change of the expiry of a key, to a time in milliseconds since 1970; ESKER_NEVER is
/// never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_expire_at(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    expires_at_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let key = caller.bytes(key, key_length)?;
        Ok(object.0.lock(NAME)?.expire_at(&keyspace.0, key, time(expires_at_ms))?)
    })
}

/// Adds that a key never expires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_persist(
    batch: *mut esker_batch,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (object, keyspace) = (esker_batch::get(batch)?, esker_keyspace::get(keyspace)?);
        let key = caller.bytes(key, key_length)?;
        Ok(object.0.lock(NAME)?.persist(&keyspace.0, key)?)
    })
}

/// The number of operations in a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_count(batch: *mut esker_batch, count: *mut usize) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(count, 0)?;
        output.set(esker_batch::get(batch)?.0.lock(NAME)?.len());
        Ok(())
    })
}

/// Removes all operations.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_clear(batch: *mut esker_batch) -> esker_code {
    call(|| {
        esker_batch::get(batch)?.0.lock(NAME)?.clear();
        Ok(())
    })
}

/// Writes all operations in one atomic step, and empties the batch. After ESKER_WRITE_STALLED they
/// are still there, to be committed again. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_commit(
    batch: *mut esker_batch,
    options: *const esker_write_options,
) -> esker_code {
    call(|| {
        let options = write_options_or_default(options)?;
        Ok(esker_batch::get(batch)?.0.lock(NAME)?.commit_and_clear(&options)?)
    })
}
