//! Outputs of callbacks.

use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::{Done, call};
use crate::objects::{Handle, OutputObject, Produced, esker_output};
use esker_ffi::handles;
use parking_lot::Mutex;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// Puts a copy of a value, an operand or a replacement into the output of a callback. Valid in the
/// callback only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_output_set(
    output: *mut esker_output,
    value: *const c_void,
    length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let value = Produced::Value(caller.bytes(value, length)?.to_vec());
        *esker_output::get(output)?.0.lock() = value;
        Ok(())
    })
}

/// Says in `esker_full_merge` that the key has no value.
#[unsafe(no_mangle)]
pub extern "C" fn esker_output_delete(output: *mut esker_output) -> esker_code {
    call(|| {
        *esker_output::get(output)?.0.lock() = Produced::Deleted;
        Ok(())
    })
}

/// Says why a callback fails, before it returns false.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_output_fail(output: *mut esker_output, reason: *const c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let reason = caller.c_text(reason, "a reason")?.to_string_lossy().into_owned();
        *esker_output::get(output)?.0.lock() = Produced::Failed(reason);
        Ok(())
    })
}

/// Calls a function with an output, and returns what it returned and what it has put there.
pub(crate) fn with_output<T>(body: impl FnOnce(*mut esker_output) -> T) -> Done<(T, Produced)> {
    let object = Arc::new(OutputObject(Mutex::default()));
    let handle = handles::insert(Arc::clone(&object))?;
    let returned = body(ptr::without_provenance_mut(handle));
    handles::remove::<OutputObject>(handle)?;
    let produced = std::mem::take(&mut *object.0.lock());
    Ok((returned, produced))
}
