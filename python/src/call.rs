//! Calls of the engine.

use crate::errors;
use crate::interrupt::interruptible;
use pyo3::prelude::*;

/// Calls the engine with the interpreter released.
///
/// # Errors
/// Those of the engine as exceptions, and the interrupt of a callback, which goes first.
#[inline]
pub fn call<T: Send>(py: Python<'_>, work: impl FnOnce() -> esker::Result<T> + Send) -> PyResult<T> {
    let (result, interrupt) = interruptible(py, work);
    match interrupt {
        None => result.map_err(|error| errors::raise(py, error)),
        Some(interrupt) => {
            // A handle, perhaps, and dropping one may wait for a thread that waits to be attached.
            py.detach(|| drop(result));
            Err(interrupt)
        }
    }
}
