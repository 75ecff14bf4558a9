//! Panics end where C begins.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic in it becomes an error with its message.
///
/// # Errors
/// The message of the panic.
///
/// ```
/// assert_eq!(esker_ffi::contain::contained(|| 7), Ok(7));
/// let message = esker_ffi::contain::contained(|| -> u32 { panic!("too much") });
/// assert_eq!(message, Err("too much".to_owned()));
/// ```
pub fn contained<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    // What the body has changed is behind locks that are not poisoned, or is the engine's, which
    // turns read-only where a panic interrupts a write.
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| message_of(&*payload))
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic").to_owned()
}
