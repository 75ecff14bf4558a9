//! What went wrong, in the words of LevelDB: a kind, a colon and the message.

use esker::Error;
use esker_ffi::handles::HandleError;

/// The result of what a function does.
pub type Done<T> = Result<T, Failure>;

/// The kind of most failures.
const INVALID: &str = "Invalid argument: ";

/// The text of a failure.
#[derive(Debug)]
pub struct Failure(pub String);

impl Failure {
    pub fn invalid(what: impl AsRef<str>) -> Failure {
        Failure(format!("{INVALID}{}", what.as_ref()))
    }

    /// The text without the kind, where that is an argument that is invalid.
    pub fn what(&self) -> &str {
        self.0.strip_prefix(INVALID).unwrap_or(&self.0)
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
