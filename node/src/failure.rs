//! Errors as JavaScript sees them: an `Error` with a `code` and whether the call can be repeated.

use napi::bindgen_prelude::{JsObjectValue, JsValue, Object};
use napi::{Env, Error};

/// The code of a call that its signal has ended.
const ABORTED: &str = "LEVEL_ABORTED";

/// A call that failed, in a form that any thread can hold.
#[derive(Clone, Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
    retryable: bool,
    /// All that a verification has found damaged.
    damage: Vec<String>,
}

impl Failure {
    /// A verification that has found this damage.
    pub fn of_verification(error: esker::Error, damage: Vec<String>) -> Failure {
        Failure { damage, ..Failure::from(error) }
    }

    /// The database is not open, or not any more.
    pub fn not_open() -> Failure {
        Failure::new("LEVEL_DATABASE_NOT_OPEN", "Database is not open")
    }

    /// The snapshot was closed.
    pub fn snapshot_not_open() -> Failure {
        Failure::new("LEVEL_SNAPSHOT_NOT_OPEN", "Snapshot is not open: cannot use snapshot after close()")
    }

    /// The iterator was closed.
    pub fn iterator_not_open() -> Failure {
        Failure::new("LEVEL_ITERATOR_NOT_OPEN", "Iterator is not open: cannot read after close()")
    }

    /// The reader of changes was closed.
    pub fn changes_not_open() -> Failure {
        Failure::new("LEVEL_CHANGES_NOT_OPEN", "The reader of changes is not open: cannot use it after close()")
    }

    /// Another call of the reader of changes is under way.
    pub fn changes_busy() -> Failure {
        Failure::new("LEVEL_CHANGES_BUSY", "The reader of changes is busy: await a call before the next one")
    }

    /// The watch was closed.
    pub fn watch_not_open() -> Failure {
        Failure::new("LEVEL_WATCH_NOT_OPEN", "The watch is not open: cannot wait after close()")
    }

    /// The transaction was committed or rolled back.
    pub fn transaction_not_open() -> Failure {
        Failure::new("LEVEL_TRANSACTION_NOT_OPEN", "The transaction is not open: it was committed or rolled back")
    }

    /// Another call of the transaction is under way.
    pub fn transaction_busy() -> Failure {
        Failure::new("LEVEL_TRANSACTION_BUSY", "The transaction is busy: await a call before the next one")
    }

    /// The system has no thread for a wait.
    pub fn no_thread(error: &std::io::Error) -> Failure {
        Failure { retryable: true, ..Failure::new("LEVEL_IO_ERROR", format!("no thread for a wait: {error}")) }
    }

    /// The call was aborted by its signal.
    pub fn aborted() -> Failure {
        Failure::new(ABORTED, "Operation has been aborted")
    }

    /// An argument that the call cannot take.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new("LEVEL_INVALID_ARGUMENT", message)
    }

    /// A panic of the engine or of this crate, with its text.
    pub fn panicked(text: &str) -> Failure {
        Failure::new("LEVEL_INTERNAL", format!("internal error: {text}"))
    }

    fn new(code: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), retryable: false, damage: Vec::new() }
    }

    /// The `Error` of JavaScript.
    pub fn into_object<'env>(self, env: &'env Env) -> napi::Result<Object<'env>> {
        let mut object = env.create_error(Error::from_reason(self.message.as_str()))?;
        object.set_named_property("code", self.code)?;
        object.set_named_property("retryable", self.retryable)?;
        if !self.damage.is_empty() {
            object.set_named_property("damage", self.damage)?;
        }
        if self.code == ABORTED {
            // As that of the web: `catch` clauses look at the name.
            object.set_named_property("name", "AbortError")?;
        }
        Ok(object)
    }

    /// The error to throw, or to reject a promise with.
    pub fn into_error(self, env: &Env) -> Error {
        match self.into_object(env) {
            Ok(object) => Error::from_unknown_without_coercion(object.to_unknown()),
            // The environment ends: nobody sees it.
            Err(error) => error,
        }
    }
}

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Failure {
        let retryable = error.is_retryable();
        Failure { retryable, ..Failure::new(code(&error), error.to_string()) }
    }
}

/// The codes that other `abstract-level` databases use, where there is one.
fn code(error: &esker::Error) -> &'static str {
    match error {
        esker::Error::Io { .. } => "LEVEL_IO_ERROR",
        esker::Error::Corruption { .. } => "LEVEL_CORRUPTION",
        esker::Error::InvalidArgument { .. } => "LEVEL_INVALID_ARGUMENT",
        esker::Error::Locked { .. } => "LEVEL_LOCKED",
        esker::Error::NotFound { .. } => "LEVEL_MISSING",
        esker::Error::AlreadyExists { .. } => "LEVEL_EXISTS",
        esker::Error::ReadOnly { .. } => "LEVEL_READ_ONLY",
        esker::Error::MissingMergeOperator { .. } | esker::Error::MergeFailed { .. } => "LEVEL_MERGE_FAILED",
        esker::Error::KeyspaceDropped { .. } => "LEVEL_KEYSPACE_DROPPED",
        // Comparators of programs are none of the package's.
        esker::Error::Unsupported { .. }
        | esker::Error::UnsupportedCompression { .. }
        | esker::Error::MissingComparator { .. } => "LEVEL_NOT_SUPPORTED",
        esker::Error::Gone { .. } => "LEVEL_GONE",
        esker::Error::Conflict { .. } => "LEVEL_CONFLICT",
        esker::Error::WriteStalled { .. } | esker::Error::Stalled { .. } => "LEVEL_STALLED",
        _ => "LEVEL_ERROR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn failures_that_need_another_engine_or_machine_to_make() {
        let comparator = esker::Error::MissingComparator { keyspace: "default".into(), comparator: "reverse".into() };
        let write_stalled = esker::Error::WriteStalled {
            keyspace: None,
            cause: esker::StallCause::LogSegment,
            waited: Duration::from_millis(1),
        };
        let stalled = esker::Error::Stalled { reason: "the writer is faster".into() };
        let gone = esker::Error::Gone { oldest: 7 };
        let expected = [
            (comparator, "LEVEL_NOT_SUPPORTED", false),
            (write_stalled, "LEVEL_STALLED", true),
            (stalled, "LEVEL_STALLED", true),
            (gone, "LEVEL_GONE", false),
        ];
        for (error, code, retryable) in expected {
            let text = error.to_string();
            let failure = Failure::from(error);
            assert_eq!((failure.code, failure.retryable, failure.message), (code, retryable, text));
        }
    }
}
