//! The search for a key's versions in one block.

use super::block::Layout;
use super::found_entry::{FoundEntry, Place, Value};
use crate::base::coding::DecodeError;
use crate::base::compression::Partly;
use crate::base::key::{Sequence, rest_after, same};
use crate::base::key_order::KeyOrder;

/// How the search ended.
pub(super) enum Visited {
    /// The visitor wants no more.
    Stopped,
    /// There are no more versions.
    Complete,
    /// The block ended with a version of the key: the next block may begin with another.
    GoOn,
}

/// The bytes of a block.
pub(super) trait BlockBytes {
    /// The first ones: at least `end` of them, or all.
    fn up_to(&mut self, end: usize) -> Result<&[u8], DecodeError>;
}

impl BlockBytes for &[u8] {
    #[inline]
    fn up_to(&mut self, _: usize) -> Result<&[u8], DecodeError> {
        Ok(self)
    }
}

impl BlockBytes for Partly<'_> {
    fn up_to(&mut self, end: usize) -> Result<&[u8], DecodeError> {
        Partly::up_to(self, end)
    }
}

/// Block and index contradict each other.
pub(super) const INCONSISTENT: DecodeError = DecodeError { offset: 0, expected: "entries as the index describes them" };

/// Hands the versions of `key` in the block with `bytes`, which lies in `place`, to `visit`, until
/// it returns false.
#[inline]
pub(super) fn visit_block(
    mut bytes: impl BlockBytes,
    layout: &Layout,
    key: &[u8],
    max_sequence: Sequence,
    order: &KeyOrder,
    place: Place<'_>,
    visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
) -> Result<Visited, DecodeError> {
    // Everything but the values.
    let columns = bytes.up_to(layout.values)?;
    let Some(rest) = rest_after(key, layout.prefix(columns)) else {
        return Ok(Visited::Complete);
    };
    let first = if order.is_bytewise() {
        layout.lower_bound_of_rest(columns, rest, max_sequence)
    } else {
        layout.lower_bound(columns, key, max_sequence, order)
    };
    for index in first..layout.count {
        let columns = bytes.up_to(layout.values)?;
        if !same(layout.key_rest(columns, index), rest) {
            return Ok(Visited::Complete);
        }
        let (start, end) = layout.value_range(columns, index);
        let bytes = bytes.up_to(end)?;
        let version = FoundEntry {
            sequence: layout.sequence_of(bytes, index),
            kind: layout.kind_of(bytes, index),
            expiry_ms: layout.expiry_of(bytes, index),
            value: Value::new(bytes, start, end, place).ok_or(INCONSISTENT)?,
        };
        if !visit(version) {
            return Ok(Visited::Stopped);
        }
    }
    Ok(Visited::GoOn)
}
