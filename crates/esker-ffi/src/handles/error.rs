//! Why a handle cannot be used.

use std::fmt;

/// Why a handle names nothing that can be used.
///
/// ```
/// use esker_ffi::handles::HandleError;
/// let error = HandleError::Null { expected: "a session" };
/// assert_eq!(error.to_string(), "NULL instead of a session");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleError {
    /// The null pointer.
    Null {
        /// What was to be passed.
        expected: &'static str,
    },
    /// A pointer that no function of the library has returned.
    NoHandle {
        /// What was to be passed.
        expected: &'static str,
    },
    /// It was closed.
    Closed {
        /// What was to be passed.
        expected: &'static str,
    },
    /// It names something else.
    OtherType {
        /// What was to be passed.
        expected: &'static str,
        /// What was passed.
        found: &'static str,
    },
    /// The call is made from inside of a call of the same object, as by a comparator.
    Within {
        /// What was passed.
        expected: &'static str,
    },
    /// There are too many handles.
    Full,
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandleError::Null { expected } => write!(f, "NULL instead of {expected}"),
            HandleError::NoHandle { expected } => write!(f, "a pointer that is no handle instead of {expected}"),
            HandleError::Closed { expected } => {
                write!(f, "{expected} was to be passed, and the handle was closed before")
            }
            HandleError::OtherType { expected, found } => write!(f, "{found} instead of {expected}"),
            HandleError::Within { expected } => {
                write!(f, "{expected} is in use by the call that this one is made from; return from that first")
            }
            HandleError::Full => write!(f, "there are too many handles; close some"),
        }
    }
}

impl std::error::Error for HandleError {}
