//! Waits for writes.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{Handle, WatchObject, esker_keyspace, esker_watch};
use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

/// Notes from here on whether keys that begin with a prefix are written, for `esker_watch_wait`;
/// the empty prefix is all keys. Loads and the drop of the keyspace count as writes to all of its
/// keys, expiry does not. Destroy it with `esker_watch_destroy`: while there is one, each write
/// compares its keys with the prefixes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_watch(
    keyspace: *mut esker_keyspace,
    prefix: *const c_void,
    prefix_length: usize,
    watch: *mut *mut esker_watch,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(watch, ptr::null_mut())?;
        let keyspace = esker_keyspace::get(keyspace)?;
        esker_watch::give(&output, WatchObject(keyspace.0.watch(caller.bytes(prefix, prefix_length)?)?))
    })
}

/// Destroys a watch. A wait under way goes on to its end.
#[unsafe(no_mangle)]
pub extern "C" fn esker_watch_destroy(watch: *mut esker_watch) -> esker_code {
    call(|| esker_watch::close(watch).map(drop))
}

/// Waits for a write, for at most so many milliseconds; UINT64_MAX waits for as long as it takes.
/// `*written` says whether there was one since the last wait that said so, or since the watch was
/// made; it may also be true without one. Any number of threads may wait; each write ends one wait
/// of one of them. ESKER_READ_ONLY once the database is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_watch_wait(watch: *mut esker_watch, timeout_ms: u64, written: *mut bool) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let written = caller.output(written, false)?;
        written.set(esker_watch::get(watch)?.0.wait(Duration::from_millis(timeout_ms))?);
        Ok(())
    })
}
