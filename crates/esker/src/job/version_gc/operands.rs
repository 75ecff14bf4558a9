//! Merge operands of one key in one stripe, collected from the newest to the oldest and combined
//! with each other where the operator can.
//!
//! Each is combined with its newer neighbour only once that one is no larger, as in the counting of
//! a binary number: a hundred thousand operands that are appended to each other are copied
//! seventeen times each, not a hundred thousand times. Operands still apart at the end are combined
//! by [`Operands::settle`].

use crate::base::key::{Entry, Kind, Sequence};
use crate::merge_operator::{MergeOperator, contained};

/// Operands up to this many bytes are combined at once: copying them costs less than keeping them.
const SHORT_BYTES: usize = 256;

/// One operand, or several combined.
pub struct Operand {
    /// Of the newest write in it, as is the expiry.
    pub sequence: Sequence,
    /// `Merge`; `MergeFirst` if the oldest write in it is that.
    pub kind: Kind,
    pub expiry_ms: u64,
    pub value: Vec<u8>,
}

/// See the module's comment.
#[derive(Default)]
pub struct Operands {
    pub stripe: usize,
    /// Newest first.
    pub entries: Vec<Operand>,
}

impl Operands {
    /// Adds an operand older than all there are.
    pub fn push_older(&mut self, operator: Option<&dyn MergeOperator>, entry: &Entry<'_>) {
        let Entry { key, sequence, kind, expiry_ms, value } = *entry;
        let mut older = Operand { sequence, kind, expiry_ms, value: value.to_vec() };
        while let (Some(operator), Some(newer)) = (operator, self.entries.last())
            && newer.value.len() <= older.value.len().max(SHORT_BYTES)
            && let Some(merged) = contained::partial_merge(operator, key, &older.value, &newer.value)
        {
            older = newer.upon(&older, merged);
            self.entries.pop();
        }
        self.entries.push(older);
    }

    /// Combines what was left apart for its size. No more operands will come.
    pub fn settle(&mut self, operator: Option<&dyn MergeOperator>, key: &[u8]) {
        let Some(operator) = operator else { return };
        let mut newest_last: Vec<Operand> = Vec::with_capacity(self.entries.len());
        // From the oldest, which are the smallest.
        for newer in std::mem::take(&mut self.entries).into_iter().rev() {
            let merged = newest_last
                .last()
                .and_then(|older| contained::partial_merge(operator, key, &older.value, &newer.value));
            match (merged, newest_last.last_mut()) {
                (Some(merged), Some(older)) => *older = newer.upon(older, merged),
                _ => newest_last.push(newer),
            }
        }
        newest_last.reverse();
        self.entries = newest_last;
    }

    /// The operands, oldest first.
    pub fn oldest_first(&self) -> Vec<&[u8]> {
        self.entries.iter().rev().map(|operand| operand.value.as_slice()).collect()
    }
}

impl Operand {
    /// What stands for `older` and this one, whose combination is `merged`.
    fn upon(&self, older: &Operand, merged: Vec<u8>) -> Operand {
        Operand { sequence: self.sequence, kind: older.kind, expiry_ms: self.expiry_ms, value: merged }
    }
}
