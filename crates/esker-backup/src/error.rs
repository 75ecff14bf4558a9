//! The error type. Every variant says what was concerned, and its text what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible call.
///
/// ```
/// fn newest(target: &esker_backup::Target) -> esker_backup::Result<Option<u64>> {
///     Ok(target.list()?.backups.last().map(|backup| backup.number))
/// }
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Where clients ask the machine for credentials if none are set, at Amazon, Google and Microsoft.
/// The errors of a store have no kind for that.
const ASKED_FOR_CREDENTIALS: [&str; 3] =
    ["/latest/api/token", "/computeMetadata/v1/instance/service-accounts", "/metadata/identity/oauth2/token"];

/// What went wrong, where, and what to do. The text has that of the cause; `source()` returns the
/// cause itself, so that a report of all causes has its text twice.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// use esker_backup::Error;
/// match target.restore(None, "restored") {
///     Ok(backup) => println!("backup {}", backup.number),
///     Err(Error::NotFound { what }) => println!("there is no {what}"),
///     Err(Error::Damaged { object, what }) => println!("{object}: {what}; use another backup"),
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused: the checkpoint that a backup is made of, or the check of a source.
    Database(esker::Error),
    /// The store refused a call, after the retries.
    Store {
        /// What was being done, as a verb phrase: `"read"`, `"write"`.
        operation: &'static str,
        /// The object or the prefix concerned.
        object: String,
        /// The cause as the store reported it.
        source: object_store::Error,
    },
    /// The operating system refused a call on a local file.
    Io {
        /// What was being done, as a verb phrase.
        operation: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The cause as the system reported it.
        source: io::Error,
    },
    /// Bytes are not those that were written.
    Damaged {
        /// The object or the file.
        object: String,
        /// What was expected and what was found.
        what: String,
    },
    /// A newer version of this crate has written to the target.
    Unsupported {
        /// The object that says so.
        object: String,
        /// What this version does not know.
        what: String,
    },
    /// There is no such backup, or no such target.
    NotFound {
        /// What is missing, and where to look.
        what: String,
    },
    /// The caller passed something that the call cannot take. Nothing was changed.
    InvalidArgument {
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// The target holds backups of another database: "the newest" would be that of either, and a
    /// number of backups to keep would count both. Nothing was copied.
    AnotherDatabase {
        /// What tells them apart.
        what: String,
    },
    /// The call was cancelled. A backup that was being made exists whole, or not at all; backups
    /// that were being removed are gone, or still there.
    Cancelled,
    /// Other creates and prunes of this target came first each time.
    Contended,
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { operation, path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(object: impl fmt::Display, what: impl Into<String>) -> Error {
        Error::Damaged { object: object.to_string(), what: what.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Error {
        Error::InvalidArgument { what: what.into() }
    }

    /// The text of an error of the store, with the code and the message of an answer in XML in
    /// place of all of it, which may have thousands of characters.
    fn told(source: &object_store::Error) -> String {
        let text = source.to_string();
        let between = |from: &str, to: &str| Some(text.split_once(from)?.1.split_once(to)?.0);
        let xml = text.find("<?xml").or_else(|| text.find("<Error"));
        let parts =
            (xml, between("<Code>", "</Code>"), between("<Message>", "</Message>"), text.rsplit_once("</Error>"));
        match parts {
            (Some(start), Some(code), Some(message), Some((_, rest))) => {
                format!("{}{code}: {message}{rest}", &text[..start])
            }
            _ => text,
        }
    }

    /// What to do about an error of the store.
    fn advice(source: &object_store::Error) -> &'static str {
        let text = source.to_string();
        if ASKED_FOR_CREDENTIALS.iter().any(|path| text.contains(path)) {
            "no credentials are set (for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), and the machine has none; \
             set them, then run it again"
        } else if text.contains(" http://") && text.contains("builder error") {
            "without TLS it is reached only with AWS_ALLOW_HTTP=true (for S3); use https, or set that"
        } else {
            "check the target, then run it again"
        }
    }

    /// A backup that is missing, or all.
    pub(crate) fn no_backup(what: impl fmt::Display) -> Error {
        Error::NotFound { what: format!("{what}; list the backups of the target") }
    }

    /// Whether the object is not there.
    pub(crate) fn is_missing_object(&self) -> bool {
        matches!(self, Error::Store { source: object_store::Error::NotFound { .. }, .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Database(error) => write!(f, "{error}"),
            Error::Store { operation, object, source } => {
                write!(f, "cannot {operation} {object}: {}; {}", Error::told(source), Error::advice(source))
            }
            Error::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}; check the path and the device", path.display())
            }
            Error::Damaged { object, what } => {
                write!(f, "{object} is damaged: {what}; verify the target, and use another backup")
            }
            Error::Unsupported { object, what } => write!(f, "{object} has {what}; use a newer version of Esker"),
            Error::NotFound { what } => write!(f, "there is no {what}"),
            Error::InvalidArgument { what } => write!(f, "invalid argument: {what}"),
            Error::AnotherDatabase { what } => {
                write!(f, "{what}; name another target, or set `Create::any_database`")
            }
            Error::Cancelled => write!(f, "cancelled; list the backups of the target to see what it holds"),
            Error::Contended => write!(f, "other backups and prunes of this target came first; run it again"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Although the text has that of each: who walks over them looks for a type or a kind.
            Error::Database(error) => Some(error),
            Error::Store { source, .. } => Some(source),
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<esker::Error> for Error {
    fn from(error: esker::Error) -> Error {
        Error::Database(error)
    }
}
