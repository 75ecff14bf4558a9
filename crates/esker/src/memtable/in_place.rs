//! Changing a value of eight bytes where it lies, by any thread, beside the writer.
//!
//! The writer and all threads in here change such values by single atomic operations only, so that none is lost: see the rules in `arena.rs`. What the
//! writer makes of an entry by reading it first, to put another in its place, it makes of entries only that are refused here. Entries and
//! their place in the index are the writer's alone.

use super::store::Memtable;
use crate::base::key::{Kind, Sequence};

/// What becomes of a value of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It becomes this.
    Put(u64),
    /// This is added, as `uint64add` does.
    Add(u64),
}

impl Memtable {
    /// Makes `change` of the newest value of `key`, if that lies here and no reader at or before `newest_snapshot` can see it. False, with nothing done, if
    /// only the writer can do it.
    ///
    /// The caller sees to it that no snapshot is taken and nobody flushes this memtable meanwhile.
    #[inline]
    pub fn change_in_place(&self, key: &[u8], hash: u64, change: Change, newest_snapshot: Sequence) -> bool {
        if self.has_range_tombstones() {
            // One may lie over the entry.
            return false;
        }
        let Some(at) = self.index.get(hash, |offset| self.arena.entry(offset).key() == key) else { return false };
        let entry = self.arena.entry(at);
        let Some(eight) = entry.eight() else { return false };
        if entry.sequence() <= newest_snapshot || entry.has_expiry() {
            return false;
        }
        match (entry.kind(), change) {
            (Kind::Put, Change::Put(value)) => eight.set(value),
            (Kind::Put, Change::Add(operand)) => eight.add(operand),
            // The writer may be looking up what a chain comes to.
            (Kind::Merge | Kind::MergeFirst, Change::Add(operand)) if entry.chain() <= 1 => eight.add(operand),
            _ => return false,
        }
        true
    }

    /// Notes that a write in no log is in here.
    #[inline]
    pub fn note_unlogged(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        // Not stored again and again: all threads read this line.
        if !self.unlogged.load(Relaxed) {
            self.unlogged.store(true, Relaxed);
        }
    }
}
