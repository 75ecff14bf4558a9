//! Errors of the engine as Python exceptions, whose classes are in `esker/_errors.py`.

use crate::merge;
use esker::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::Path;

/// The class of that name in `esker._errors`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("esker._errors")?.getattr(name)?.cast_into::<PyType>()?)
}

/// An exception of the class of that name. One that cannot be made is the exception instead.
pub fn new(py: Python<'_>, name: &str, message: &str) -> PyErr {
    class(py, name).map_or_else(|error| error, |class| PyErr::from_type(class, (message.to_owned(),)))
}

#[cold]
pub fn closed(py: Python<'_>, what: &str) -> PyErr {
    new(py, "ClosedError", &format!("{what} is closed"))
}

#[cold]
pub fn forked(py: Python<'_>) -> PyErr {
    let message = "this process was forked from one with an open database, and can use none; start processes by \
                   `spawn`, or close all databases before";
    new(py, "ForkedError", message)
}

#[cold]
pub fn in_callback(py: Python<'_>, message: &str) -> PyErr {
    new(py, "InCallbackError", message)
}

#[cold]
pub fn finished(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("the {what} is finished"))
}

/// The result of the end of a `with` block that an exception is leaving: that a handle was closed,
/// or is another process's, does not replace the exception.
pub fn unless_closed(py: Python<'_>, result: PyResult<()>) -> PyResult<()> {
    let is_closed = |error: &PyErr| class(py, "ClosedError").is_ok_and(|class| error.is_instance(py, &class));
    if result.as_ref().is_err_and(is_closed) { Ok(()) } else { result }
}

/// Whether the exception is one of a conflict.
pub fn is_conflict(py: Python<'_>, exception: &PyErr) -> bool {
    class(py, "ConflictError").is_ok_and(|class| exception.is_instance(py, &class))
}

/// The exception for an error of the engine.
#[cold]
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let exception = match &error {
        Error::Io { source, .. } => io(py, &error, source),
        other => new(py, name(other), &other.to_string()),
    };
    if let Err(failure) = describe(exception.value(py), &error) {
        return failure;
    }
    if let Error::MergeFailed { reason: message, .. } | Error::InvalidArgument { what: message } = &error {
        exception.set_cause(py, merge::cause(message));
    }
    exception
}

/// As a value of the standard class, whose attribute `errno` programs look at.
fn io(py: Python<'_>, error: &Error, source: &std::io::Error) -> PyErr {
    let Some(code) = source.raw_os_error() else { return new(py, "IOError", &error.to_string()) };
    class(py, "IOError").map_or_else(|error| error, |class| PyErr::from_type(class, (code, error.to_string())))
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => "IOError",
        Error::Corruption { .. } => "CorruptionError",
        Error::InCallback { .. } => "InCallbackError",
        Error::InvalidArgument { .. } => "InvalidArgumentError",
        Error::Locked { .. } => "LockedError",
        Error::KeyspaceDropped { .. } => "KeyspaceDroppedError",
        Error::MissingMergeOperator { .. } => "MissingMergeOperatorError",
        Error::MissingComparator { .. } => "MissingComparatorError",
        Error::MergeFailed { .. } => "MergeError",
        Error::Conflict { .. } => "ConflictError",
        Error::Stalled { .. } => "StalledError",
        Error::WriteStalled { .. } => "WriteStalledError",
        Error::ReadOnly { .. } => "ReadOnlyError",
        Error::Unsupported { .. } | Error::UnsupportedCompression { .. } => "UnsupportedError",
        Error::NotFound { .. } => "NotFoundError",
        Error::AlreadyExists { .. } => "AlreadyExistsError",
        Error::Gone { .. } => "GoneError",
        _ => "Error",
    }
}

/// Sets the attributes of the exception.
fn describe(exception: &Bound<'_, PyAny>, error: &Error) -> PyResult<()> {
    let path_of = |path: &Path| exception.setattr("path", path.to_string_lossy().into_owned());
    if error.is_retryable() {
        exception.setattr("retryable", true)?;
    }
    match error {
        Error::Io { path, .. } | Error::Unsupported { path, .. } | Error::UnsupportedCompression { path, .. } => {
            path_of(path)
        }
        Error::Corruption { path, offset, .. } => {
            exception.setattr("offset", *offset)?;
            path_of(path)
        }
        Error::Locked { path, holder } => {
            exception.setattr("holder", *holder)?;
            path_of(path)
        }
        Error::InCallback { database } => path_of(database),
        Error::KeyspaceDropped { keyspace } => exception.setattr("keyspace", keyspace),
        Error::Conflict { keyspace, key } => {
            exception.setattr("keyspace", keyspace)?;
            exception.setattr("key", key)
        }
        Error::MissingMergeOperator { keyspace, operator } => {
            exception.setattr("keyspace", keyspace)?;
            exception.setattr("operator", operator)
        }
        Error::Gone { oldest } => exception.setattr("oldest_write", *oldest),
        Error::MissingComparator { keyspace, comparator } => {
            exception.setattr("keyspace", keyspace)?;
            exception.setattr("comparator", comparator)
        }
        Error::MergeFailed { keyspace, key, operator, .. } => {
            exception.setattr("keyspace", keyspace)?;
            exception.setattr("key", key)?;
            exception.setattr("operator", operator)
        }
        Error::WriteStalled { keyspace, cause, .. } => {
            exception.setattr("keyspace", keyspace.as_deref())?;
            exception.setattr("hint", cause.hint())
        }
        _ => Ok(()),
    }
}
