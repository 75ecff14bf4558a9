//! The options of a write.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::{Done, call};
use crate::objects::{Exclusive, Handle, WriteOptionsObject, esker_write_options};
use esker::{StallPolicy, WriteOptions};
use std::time::Duration;

/// Makes options with their defaults. Destroy them with `esker_write_options_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_write_options_create(options: *mut *mut esker_write_options) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(options, std::ptr::null_mut())?;
        esker_write_options::give(&output, WriteOptionsObject(Exclusive::new(WriteOptions::new())))
    })
}

/// Destroys options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_destroy(options: *mut esker_write_options) -> esker_code {
    call(|| esker_write_options::close(options).map(drop))
}

fn set(options: *mut esker_write_options, change: impl FnOnce(WriteOptions) -> WriteOptions) -> esker_code {
    call(|| {
        let object = esker_write_options::get(options)?;
        let mut options = object.0.wait();
        *options = change(*options);
        Ok(())
    })
}

/// The options of a call: NULL are the defaults.
pub(crate) fn write_options_or_default(options: *const esker_write_options) -> Done<WriteOptions> {
    if options.is_null() {
        return Ok(WriteOptions::new());
    }
    Ok(*esker_write_options::get(options)?.0.wait())
}

/// Whether the write, and everything before it, is on the device when the call returns.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_sync(options: *mut esker_write_options, yes: bool) -> esker_code {
    set(options, |options| options.sync(yes))
}

/// Whether the log is left out: the write is lost with the process until a flush.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_disable_wal(options: *mut esker_write_options, yes: bool) -> esker_code {
    set(options, |options| options.disable_wal(yes))
}

/// The time to live of what is written, in milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_ttl(options: *mut esker_write_options, milliseconds: u64) -> esker_code {
    set(options, |options| options.ttl(Duration::from_millis(milliseconds)))
}

/// Fails with ESKER_WRITE_STALLED where writes are stalled, after waiting for at most so many
/// milliseconds; 0 does not wait. UINT64_MAX, the default, waits for as long as it takes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_stall(options: *mut esker_write_options, milliseconds: u64) -> esker_code {
    set(options, |options| {
        options.stall(match milliseconds {
            u64::MAX => StallPolicy::Wait,
            0 => StallPolicy::Fail,
            other => StallPolicy::For(Duration::from_millis(other)),
        })
    })
}
