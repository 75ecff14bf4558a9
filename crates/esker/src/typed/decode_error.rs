//! The error for bytes that are no encoding of the type that they are read as.

use crate::error::{Error, escape_key};
use std::any::type_name;
use std::fmt;

/// Why bytes are not the encoding of a type: what was expected, and what was found. A codec returns
/// it; calls turn it into [`Error::Decode`], with the keyspace and the key.
///
/// ```
/// use esker::typed::{DecodeError, KeyCodec};
/// let error: DecodeError = u64::decode_key(b"ada").unwrap_err();
/// assert_eq!(error.to_string(), "expected 8 bytes of a u64, found 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DecodeError(pub String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

impl DecodeError {
    /// The error of a call that met `key`, or its value, which is not a `T`.
    #[cold]
    pub(super) fn of_key<T>(self, keyspace: &str, key: &[u8]) -> Error {
        self.at::<T>(keyspace, key, "key")
    }

    #[cold]
    pub(super) fn of_value<T>(self, keyspace: &str, key: &[u8]) -> Error {
        self.at::<T>(keyspace, key, "value")
    }

    fn at<T>(self, keyspace: &str, key: &[u8], part: &'static str) -> Error {
        let (keyspace, key) = (keyspace.to_owned(), escape_key(key));
        Error::Decode { keyspace, key, part, expected: type_name::<T>(), what: self.0 }
    }
}
