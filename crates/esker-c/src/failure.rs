//! What went wrong in a call, and how its caller in C learns of it.

use crate::codes::*;
use esker::Error;
use esker_ffi::contain::contained;
use esker_ffi::fork::{self, Forked};
use esker_ffi::handles::HandleError;
use std::cell::RefCell;
use std::ffi::CString;

/// The result of what a function does.
pub type Done<T> = Result<T, Failure>;

/// A code with its message.
#[derive(Debug)]
pub struct Failure {
    pub code: esker_code,
    pub message: String,
    pub retryable: bool,
    /// Whether the disk is full, or a quota is used up.
    pub disk_full: bool,
    /// The first write whose changes are kept, where that is what is wrong.
    pub oldest_write: u64,
}

impl Failure {
    pub fn new(code: esker_code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), retryable: false, disk_full: false, oldest_write: 0 }
    }

    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(ESKER_INVALID_ARGUMENT, format!("invalid argument: {}", message.into()))
    }

    pub fn out_of_memory() -> Failure {
        Failure::new(ESKER_OUT_OF_MEMORY, "there is no memory for the result")
    }

    pub fn busy(what: &str) -> Failure {
        Failure::new(ESKER_BUSY_HANDLE, format!("{what} is in use by another call; one thread at a time may use it"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = code_of(&error);
        let oldest_write = if let Error::Gone { oldest } = error { oldest } else { 0 };
        let (retryable, disk_full) = (error.is_retryable(), error.is_disk_full());
        Failure { code, message: error.to_string(), retryable, disk_full, oldest_write }
    }
}

fn code_of(error: &Error) -> esker_code {
    match error {
        Error::Io { .. } => ESKER_IO,
        Error::Corruption { .. } => ESKER_CORRUPTION,
        Error::InCallback { .. } => ESKER_IN_CALLBACK,
        Error::InvalidArgument { .. } => ESKER_INVALID_ARGUMENT,
        Error::Locked { .. } => ESKER_LOCKED,
        Error::KeyspaceDropped { .. } => ESKER_KEYSPACE_DROPPED,
        Error::MissingMergeOperator { .. } => ESKER_MISSING_MERGE_OPERATOR,
        Error::MergeFailed { .. } => ESKER_MERGE_FAILED,
        Error::Conflict { .. } => ESKER_CONFLICT,
        Error::Stalled { .. } => ESKER_STALLED,
        Error::WriteStalled { .. } => ESKER_WRITE_STALLED,
        Error::ReadOnly { .. } => ESKER_READ_ONLY,
        Error::Unsupported { .. } => ESKER_UNSUPPORTED,
        Error::UnsupportedCompression { .. } => ESKER_UNSUPPORTED_COMPRESSION,
        Error::NotFound { .. } => ESKER_NOT_FOUND,
        Error::MissingComparator { .. } => ESKER_MISSING_COMPARATOR,
        Error::AlreadyExists { .. } => ESKER_ALREADY_EXISTS,
        Error::Gone { .. } => ESKER_GONE,
        _ => ESKER_OTHER,
    }
}

impl From<Forked> for Failure {
    fn from(forked: Forked) -> Failure {
        Failure::new(ESKER_FORKED, forked.to_string())
    }
}

impl From<HandleError> for Failure {
    fn from(error: HandleError) -> Failure {
        let code = match error {
            HandleError::Closed { .. } => ESKER_CLOSED_HANDLE,
            HandleError::Full => ESKER_OUT_OF_MEMORY,
            HandleError::Within { .. } => ESKER_BUSY_HANDLE,
            HandleError::Null { .. } | HandleError::NoHandle { .. } | HandleError::OtherType { .. } => {
                ESKER_WRONG_HANDLE
            }
        };
        Failure::new(code, error.to_string())
    }
}

/// The last failure of a thread.
pub struct Last {
    pub code: esker_code,
    pub message: CString,
    pub retryable: bool,
    pub disk_full: bool,
    pub oldest_write: u64,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Reads the last failure of this thread: none at its end, where destructors of the program may
/// still call.
pub fn last<T>(read: impl Fn(Option<&Last>) -> T) -> T {
    let found = LAST.try_with(|last| last.try_borrow().ok().map(|last| read(last.as_ref())));
    found.ok().flatten().unwrap_or_else(|| read(None))
}

/// Fails in a child of fork: nothing of the engine may be touched there.
pub fn not_forked() -> Done<()> {
    Ok(fork::check()?)
}

/// Runs what a function does. A failure is kept for `esker_last_error_message`; no panic passes.
///
/// In a child of fork the body runs as well, so that it sets its results. It fails where it takes,
/// makes or closes a handle, or works on files: see `not_forked`.
pub fn call(body: impl FnOnce() -> Done<()>) -> esker_code {
    let done = contained(body);
    let done = done.unwrap_or_else(|panic| {
        Err(Failure::new(ESKER_PANIC, format!("the library panicked: {panic}; this is a defect of it")))
    });
    let Err(failure) = done else { return ESKER_OK };
    // A mistake in the arguments is the smaller one.
    let failure = not_forked().err().unwrap_or(failure);
    let Failure { code, retryable, disk_full, oldest_write, .. } = failure;
    // A zero byte would end the message for C.
    let message = CString::new(failure.message.replace('\0', "\\0")).unwrap_or_default();
    // At the end of a thread there is nobody to read it.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some(Last { code, message, retryable, disk_full, oldest_write });
        }
    });
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_full_disk_is_told_from_other_failures_of_files() {
        let fail = |kind: ErrorKind| {
            assert_eq!(call(|| Err(Error::io("append to", "7.table", kind.into()).into())), ESKER_IO);
            last(|last| last.map(|last| (last.disk_full, last.retryable)))
        };
        assert_eq!(fail(ErrorKind::StorageFull), Some((true, true)));
        assert_eq!(fail(ErrorKind::QuotaExceeded), Some((true, true)));
        assert_eq!(fail(ErrorKind::PermissionDenied), Some((false, false)));
        assert_eq!(call(|| Err(Failure::busy("a batch"))), ESKER_BUSY_HANDLE);
        assert_eq!(last(|last| last.map(|last| last.disk_full)), Some(false));
    }
}
