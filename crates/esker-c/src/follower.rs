//! Followers.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::{call, not_forked};
use crate::objects::{DbObject, FollowerObject, Handle, esker_db, esker_follower, esker_options};
use crate::options::options_or_default;
use esker::Db;
use esker_ffi::fork;
use std::ffi::c_char;
use std::ptr;

/// Opens a database for reading behind its writer. `options` may be NULL. Destroy the handle with
/// `esker_follower_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_follower_open(
    path: *const c_char,
    options: *const esker_options,
    follower: *mut *mut esker_follower,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(follower, ptr::null_mut())?;
        not_forked()?;
        fork::watch();
        let opened = Db::open_follower(caller.path(path)?, options_or_default(options)?)?;
        esker_follower::give(&output, FollowerObject(opened))
    })
}

/// Destroys a follower. Handles that were made of it can be read until they are destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_follower_destroy(follower: *mut esker_follower) -> esker_code {
    call(|| esker_follower::close(follower).map(drop))
}

/// Reads what the writer has written since. `*sequence` is the number of the last write that the
/// follower has; it may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_follower_catch_up(follower: *mut esker_follower, sequence: *mut u64) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let mut ignored = 0;
        let output = caller.output(if sequence.is_null() { &raw mut ignored } else { sequence }, 0)?;
        output.set(esker_follower::get(follower)?.0.catch_up()?.sequence);
        Ok(())
    })
}

/// How far the follower is behind what the writer has written: the batches and the bytes of log
/// that it has not read, and the number of the last write in them, that which it has if there is
/// none. It stays where it is. `*known` is false where the log from there on is gone, because it is
/// in tables, which `esker_follower_catch_up` reads; the numbers are 0 then. Each of the last four
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_follower_lag(
    follower: *mut esker_follower,
    known: *mut bool,
    batches: *mut u64,
    log_bytes: *mut u64,
    sequence: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let known = caller.optional_output(known, false);
        let numbers = [batches, log_bytes, sequence].map(|number| caller.optional_output(number, 0));
        let Some(lag) = esker_follower::get(follower)?.0.lag()? else { return Ok(()) };
        for (number, value) in numbers.iter().zip([lag.batches, lag.log_bytes, lag.sequence]) {
            number.iter().for_each(|number| number.set(value));
        }
        known.iter().for_each(|known| known.set(true));
        Ok(())
    })
}

/// The database of a follower, to be read. Close it with `esker_db_close`, which ends the follower
/// too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_follower_db(follower: *mut esker_follower, db: *mut *mut esker_db) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(db, ptr::null_mut())?;
        esker_db::give(&output, DbObject(esker_follower::get(follower)?.0.db().clone()))
    })
}
