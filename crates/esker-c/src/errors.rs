//! Errors and memory.

use crate::caller::Caller;
use crate::codes::*;
use crate::failure::{call, last, not_forked};
use esker_ffi::memory;
use std::ffi::{c_char, c_void};

/// The message of the last call of this thread that failed: where something was wrong, and what to
/// do about it. Empty if none has failed. It is valid until another call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_message() -> *const c_char {
    last(|last| last.map_or(c"".as_ptr(), |last| last.message.as_ptr()))
}

/// The code of the last call of this thread that failed; ESKER_OK if none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_code() -> esker_code {
    last(|last| last.map_or(ESKER_OK, |last| last.code))
}

/// Whether the last call of this thread that failed may succeed later without any change by the
/// caller.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_is_retryable() -> bool {
    last(|last| last.is_some_and(|last| last.retryable))
}

/// Whether the last call of this thread that failed met a full disk or an exhausted quota.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_is_disk_full() -> bool {
    last(|last| last.is_some_and(|last| last.disk_full))
}

/// After ESKER_GONE, the first write whose changes are kept; 0 after any other failure.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_oldest_write() -> u64 {
    last(|last| last.map_or(0, |last| last.oldest_write))
}

/// The name of a code, as `ESKER_CORRUPTION`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_code_name(code: esker_code) -> *const c_char {
    crate::codes::name(code).as_ptr()
}

/// The version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn esker_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The version of the interface that the library has; ESKER_ABI_VERSION is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn esker_abi_version() -> u32 {
    ESKER_ABI_VERSION
}

/// Frees what a call returned in memory: values, texts, lists. NULL does nothing. The same as
/// `free`, where the program and the library have the same C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_free(memory: *mut c_void) {
    // SAFETY: the caller passes what a call has returned, once.
    unsafe { memory::free(memory) }
}

/// A key for messages: printable ASCII as it is, every other byte as `\xNN`, long keys shortened;
/// to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_escape_key(key: *const c_void, key_length: usize, text: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(text, std::ptr::null_mut())?;
        output.set_text(&esker::escape_key(caller.bytes(key, key_length)?))
    })
}

/// Gives the memory that closed databases have left for the next one back to the system. While a
/// database is open, that happens by itself once no open database has been written to for a second.
#[unsafe(no_mangle)]
pub extern "C" fn esker_release_unused_memory() -> esker_code {
    call(|| {
        not_forked()?;
        esker::release_unused_memory();
        Ok(())
    })
}

/// Bytes that no memtable uses, kept for the next one, or for the next database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_unused_memory_bytes(bytes: *mut usize) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(bytes, 0)?;
        not_forked()?;
        output.set(esker::unused_memory_bytes());
        Ok(())
    })
}
