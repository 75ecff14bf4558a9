//! Ranges of keys as they are passed: two bounds and flags.

use crate::values::{Input, bound};
use std::ops::Bound;

/// The flags of a range.
const LOWER_EXCLUSIVE: u32 = 1;
const UPPER_EXCLUSIVE: u32 = 2;
const REVERSE: u32 = 4;

/// Which keys, and in which order.
#[derive(Clone)]
pub struct KeyRange {
    /// The least.
    pub lower: Bound<Vec<u8>>,
    /// The greatest.
    pub upper: Bound<Vec<u8>>,
    /// From the greatest to the least.
    pub reverse: bool,
}

/// The range of two keys, each of which may be missing, and of flags.
pub fn key_range(lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) -> KeyRange {
    KeyRange {
        lower: bound(lower, flags & LOWER_EXCLUSIVE != 0),
        upper: bound(upper, flags & UPPER_EXCLUSIVE != 0),
        reverse: flags & REVERSE != 0,
    }
}
