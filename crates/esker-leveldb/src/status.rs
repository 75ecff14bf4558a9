//! What went wrong, in the words of LevelDB: a kind, a colon and the message.

use crate::caller::Caller;
use esker::Error;
use esker_ffi::contain::contained;
use esker_ffi::fork;
use esker_ffi::handles::HandleError;
use std::ffi::c_char;

/// The result of what a function does.
pub type Done<T> = Result<T, Failure>;

/// The text of a failure.
#[derive(Debug)]
pub struct Failure(pub String);

impl Failure {
    pub fn invalid(what: impl AsRef<str>) -> Failure {
        Failure(format!("Invalid argument: {}", what.as_ref()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let kind = match &error {
            Error::InvalidArgument { what } => return Failure::invalid(what),
            Error::Locked { path, .. } => {
                return Failure(format!("IO error: lock {}: already held by process", path.display()));
            }
            Error::NotFound { .. } => "NotFound",
            Error::Corruption { .. } | Error::Decode { .. } => "Corruption",
            Error::Unsupported { .. } | Error::UnsupportedCompression { .. } => "Not implemented",
            Error::MissingComparator { .. } | Error::InCallback { .. } | Error::KeyspaceDropped { .. } => {
                "Invalid argument"
            }
            _ => "IO error",
        };
        Failure(format!("{kind}: {error}"))
    }
}

impl From<HandleError> for Failure {
    fn from(error: HandleError) -> Failure {
        Failure::invalid(error.to_string())
    }
}

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
    run(body).map_err(|failure| eprintln!("libesker_leveldb: {function}: {}", failure.0)).ok()
}
