//! The error type. Every variant says what was concerned, and its text what to do.

use crate::range_hash::Difference;
use std::fmt;
use std::io;

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused a call.
    Database(esker::Error),
    /// Stored or received bytes do not have the form they were written in.
    Damaged {
        /// The record or the file.
        object: String,
        /// What was expected and what was found.
        what: String,
    },
    /// A newer version of this crate wrote the record.
    Unsupported {
        /// The record.
        object: String,
        /// The version that it has.
        version: u8,
    },
    /// The log lacks an entry between two that it has, or one that it must have.
    Hole {
        /// The index of the missing entry.
        missing: u64,
    },
    /// Two replicas that applied the same entries have different states. The replica that reports
    /// this applies nothing more.
    Diverged(Box<Difference>),
    /// An earlier failure ended the state machine; it is to be opened again.
    Stopped {
        /// The failure.
        why: String,
    },
    /// The caller passed something that the call cannot take. Nothing was changed.
    InvalidArgument {
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// The thread that did the work ended without a result, as when the runtime shuts down.
    Interrupted,
}

impl Error {
    pub(crate) fn damaged(object: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Damaged { object: object.into(), what: what.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Error {
        Error::InvalidArgument { what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Database(error) => error.fmt(f),
            Error::Damaged { object, what } => {
                write!(f, "{object} is damaged: {what}; remove this replica's directories and let it join anew")
            }
            Error::Unsupported { object, version } => {
                write!(f, "{object} has format {version}, written by a newer version; use that version")
            }
            Error::Hole { missing } => {
                write!(f, "the log lacks entry {missing}; remove this replica's directories and let it join anew")
            }
            Error::Diverged(difference) => difference.fmt(f),
            Error::Stopped { why } => write!(f, "the state machine stopped and has to be opened again: {why}"),
            Error::InvalidArgument { what } => f.write_str(what),
            Error::Interrupted => f.write_str("the work was interrupted by the end of the runtime; open again"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<esker::Error> for Error {
    fn from(error: esker::Error) -> Error {
        Error::Database(error)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Database(esker::Error::Io { source, .. }) => source.kind(),
            Error::Damaged { .. } | Error::Hole { .. } | Error::Diverged(_) => io::ErrorKind::InvalidData,
            Error::Unsupported { .. } => io::ErrorKind::Unsupported,
            Error::InvalidArgument { .. } => io::ErrorKind::InvalidInput,
            Error::Interrupted => io::ErrorKind::Interrupted,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
