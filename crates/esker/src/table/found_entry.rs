//! One version of a key as a point read hands it out.

use super::block::Block;
use crate::base::key::{Kind, Sequence};
use crate::base::slice::Slice;
use std::ops::Deref;
use std::sync::Arc;

/// One version of the key looked up.
#[derive(Debug)]
pub struct FoundEntry<'a> {
    /// The write that made this version.
    pub sequence: Sequence,
    /// What the version does.
    pub kind: Kind,
    /// When it expires, in milliseconds since the Unix epoch; [`crate::base::key::NEVER`] if it
    /// does not.
    pub expiry_ms: u64,
    /// The value, or the operand of a merge; empty for a delete.
    pub value: Value<'a>,
}

/// A value where it lies. Nothing is counted or copied before the value is taken.
#[derive(Debug)]
pub struct Value<'a> {
    /// What `place` has from `start` on.
    bytes: &'a [u8],
    start: usize,
    place: Place<'a>,
}

/// What a value lies in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Block(&'a Arc<Block>),
    /// A block in the mapping, or in memory that the next read uses again.
    Passing,
}

impl<'a> Value<'a> {
    /// The bytes from `start` to `end` of the block with `block_bytes`, which lies in `place`; none
    /// if it has fewer.
    #[inline]
    pub(super) fn new(block_bytes: &'a [u8], start: usize, end: usize, place: Place<'a>) -> Option<Value<'a>> {
        let bytes = block_bytes.get(start..end)?;
        Some(Value { bytes, start, place })
    }

    /// The value to keep.
    #[inline]
    pub fn to_slice(&self) -> Slice {
        match self.place {
            Place::Block(block) => Slice::pinned(block, self.start, self.bytes.len()),
            Place::Passing => Slice::copy(self.bytes),
        }
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}
