//! What a command answers, before it is encoded for the protocol of the connection.

use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::cell::Cell;

/// How deep lists of lists may be. No command has deeper ones.
const MOST_LEVELS: usize = 64;

thread_local! {
    static LEVELS: Cell<usize> = const { Cell::new(0) };
}

/// Reads a list, which may come from another node: one that is too deep would fill the stack.
fn nested<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    let levels = LEVELS.get();
    if levels == MOST_LEVELS {
        return Err(D::Error::custom("a reply has too many levels"));
    }
    LEVELS.set(levels + 1);
    let read = T::deserialize(deserializer);
    LEVELS.set(levels);
    read
}

/// A reply. RESP2 lacks some of the forms; `encode` has what stands for them there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// A status such as `OK`.
    Status(Cow<'static, str>),
    /// An error: its code, a space and the text.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// Whether something is so.
    Boolean(bool),
    /// A byte string.
    Bulk(Bytes),
    /// A text with its format, `txt`.
    Verbatim(String),
    /// No value, in the place of a byte string.
    Nil,
    /// No value, in the place of an array.
    NilArray,
    /// A list.
    #[serde(deserialize_with = "nested")]
    Array(Vec<Reply>),
    /// A set: in RESP2 a list.
    #[serde(deserialize_with = "nested")]
    Set(Vec<Reply>),
    /// Keys with their values, one after the other: in RESP2 a list of both.
    #[serde(deserialize_with = "nested")]
    Map(Vec<(Reply, Reply)>),
    /// Members with their values: in RESP2 a list of both, else a list of lists of two.
    #[serde(deserialize_with = "nested")]
    Pairs(Vec<(Reply, Reply)>),
    /// Nothing at all is sent.
    Silence,
}

impl Reply {
    /// The status `OK`.
    pub const OK: Reply = Reply::Status(Cow::Borrowed("OK"));

    /// A byte string of a copy of `bytes`.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Reply {
        Reply::Bulk(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// A byte string, or nothing.
    pub fn optional(bytes: Option<impl AsRef<[u8]>>) -> Reply {
        bytes.map_or(Reply::Nil, Reply::bulk)
    }

    /// A number of things.
    pub fn count(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// An error with its code.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Reply {
        Reply::Error(text.into())
    }

    /// A list of byte strings.
    pub fn bulks(items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Reply {
        Reply::Array(items.into_iter().map(Reply::bulk).collect())
    }

    /// The bytes that it has in memory or on the wire, about.
    pub fn size_bytes(&self) -> usize {
        /// Those of what is around the text.
        const FRAME_BYTES: usize = 8;
        let pairs = |pairs: &[(Reply, Reply)]| pairs.iter().map(|(a, b)| a.size_bytes() + b.size_bytes()).sum();
        let inner: usize = match self {
            Reply::Status(text) | Reply::Error(text) => text.len(),
            Reply::Bulk(bytes) => bytes.len(),
            Reply::Verbatim(text) => text.len(),
            Reply::Array(items) | Reply::Set(items) => items.iter().map(Reply::size_bytes).sum(),
            Reply::Map(items) | Reply::Pairs(items) => pairs(items),
            Reply::Integer(_)
            | Reply::Double(_)
            | Reply::Boolean(_)
            | Reply::Nil
            | Reply::NilArray
            | Reply::Silence => 0,
        };
        FRAME_BYTES + inner
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_reply_that_is_read_are_limited() {
        let nest = |levels: usize| (0..levels).fold(Reply::Nil, |inner, _| Reply::Array(vec![inner]));
        let read = |reply: &Reply| postcard::from_bytes::<Reply>(&postcard::to_stdvec(reply).unwrap());
        for _ in 0..2 {
            assert_eq!(read(&nest(MOST_LEVELS)).unwrap(), nest(MOST_LEVELS));
            assert!(read(&nest(MOST_LEVELS + 1)).is_err());
        }
        // As many levels as a stack does not have.
        let list = postcard::to_stdvec(&nest(1)).unwrap()[..2].repeat(1_000_000);
        assert!(postcard::from_bytes::<Reply>(&list).is_err());
    }
}
