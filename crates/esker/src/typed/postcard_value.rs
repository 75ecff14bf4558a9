//! Values of any type that serde can serialize, in the format of the crate postcard.

use super::decode_error::DecodeError;
use super::value::{EncodeValue, ValueCodec};
use crate::base::slice::Slice;
use crate::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Deref;

/// A value of any type that serde can serialize, stored in Postcard's format: compact, without the
/// names of fields. So a field that is added, removed or moved makes what is stored unreadable, or
/// readable as something else; put an enum with a variant for each version around what may change.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::TypedKeyspace;
/// use esker::typed::Postcard;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct User {
///     name: String,
///     born: Option<u16>,
/// }
/// let users: TypedKeyspace<u64, Postcard<User>> = TypedKeyspace::open(&db, "users", Default::default())?;
/// users.put(7, Postcard(User { name: "Ada".into(), born: Some(1815) }))?;
/// let user = users.get(7)?.expect("it was put");
/// assert_eq!(user.name, "Ada");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Postcard<T>(pub T);

impl<T> Deref for Postcard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Postcard<T> {
    fn from(value: T) -> Postcard<T> {
        Postcard(value)
    }
}

impl<T: Serialize> EncodeValue<Postcard<T>> for Postcard<T> {
    fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let refused = |error| Error::invalid(format!("the value cannot be serialized: {error}"));
        *buffer = postcard::to_extend(&self.0, std::mem::take(buffer)).map_err(refused)?;
        Ok(buffer)
    }
}

impl<T: Serialize + DeserializeOwned> ValueCodec for Postcard<T> {
    fn decode_value(stored: Slice) -> std::result::Result<Postcard<T>, DecodeError> {
        let refused = |error| DecodeError(format!("expected its form in Postcard, found another: {error}"));
        match postcard::take_from_bytes(&stored).map_err(refused)? {
            (value, []) => Ok(Postcard(value)),
            (_, rest) => Err(DecodeError(format!("expected the end of the value, found {} bytes more", rest.len()))),
        }
    }
}
