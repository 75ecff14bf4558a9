//! How a caller learns what went wrong.

use crate::caller::Caller;
use crate::failure::{Done, Failure};
use esker_ffi::contain::contained;
use esker_ffi::fork;
use esker_ffi::standard_error::write_line;
use std::ffi::c_char;

/// Runs what a function does, and contains its panics.
fn run<T>(body: impl FnOnce() -> Done<T>) -> Done<T> {
    let done = contained(|| {
        fork::check().map_err(|forked| Failure::invalid(forked.to_string()))?;
        body()
    });
    done.unwrap_or_else(|panic| Err(Failure(format!("IO error: the library panicked: {panic}"))))
}

/// Runs what a function with an `errptr` does.
pub fn checked<T>(caller: &Caller, errptr: *mut *mut c_char, body: impl FnOnce() -> Done<T>) -> Option<T> {
    run(body).map_err(|failure| caller.fail(errptr, &failure.0)).ok()
}

/// Runs what a function without an `errptr` does. A failure is a line on standard error.
pub fn told<T>(function: &str, body: impl FnOnce() -> Done<T>) -> Option<T> {
    run(body).map_err(|failure| write_line(&format!("libesker_leveldb: {function}: {}", failure.0))).ok()
}
