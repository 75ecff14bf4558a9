//! Changes of the expiry of keys.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::{Done, call};
use crate::objects::{Handle, esker_keyspace};
use crate::times::time;
use esker::Keyspace;
use std::ffi::c_void;
use std::time::Duration;

fn change(
    caller: &Caller,
    keyspace: *mut esker_keyspace,
    (key, key_length): (*const c_void, usize),
    found: *mut bool,
    change: impl FnOnce(&Keyspace, &[u8]) -> esker::Result<bool>,
) -> Done<()> {
    let found = caller.output(found, false)?;
    found.set(change(&esker_keyspace::get(keyspace)?.0, caller.bytes(key, key_length)?)?);
    Ok(())
}

/// Gives the value of a key so many milliseconds to live from now on. `found` says whether it has
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_touch(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    ttl_ms: u64,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        change(&caller, keyspace, (key, key_length), found, |keyspace, key| {
            keyspace.touch(key, Duration::from_millis(ttl_ms))
        })
    })
}

/// Makes the value of a key expire at a time, in milliseconds since 1970; ESKER_NEVER
/// is never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_expire_at(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    expires_at_ms: u64,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        change(&caller, keyspace, (key, key_length), found, |keyspace, key| {
            keyspace.expire_at(key, time(expires_at_ms))
        })
    })
}

/// Makes the value of a key one that never expires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_persist(
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| change(&caller, keyspace, (key, key_length), found, |keyspace, key| keyspace.persist(key)))
}
