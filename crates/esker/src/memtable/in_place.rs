//! In-place changes of values of eight bytes, by any thread, beside the writer. Why none of these
//! changes is lost:
//!
//! 1. **One step.** Such a value is changed by single atomic operations only, of the threads in
//!    here and of the writer (`fold_in_place`). So of two changes that meet in one entry both
//!    count, in some order. Entries, and their place in the index, are the writer's alone.
//! 2. **No read-modify-write of a changing value.** Where the writer reads the value of an entry in
//!    order to put another entry in its place, no thread in here changes that value any more:
//!    * A keyspace with another operator than `uint64add` is closed to all changes, and one with
//!      `uint64add` to puts (`KeyspaceInner::new`). So where there are merges the only change is an
//!      addition, and to that the writer adds in one step. It folds by reading only if one of both
//!      has not eight bytes or expires: such an entry is refused here.
//!    * Operands of `uint64add` are kept apart only where a snapshot lies between, and one above
//!      another (a chain of more than one) is refused here. The snapshot may have left since the
//!      writer checked, so that a thread that found the first operand without one above it may
//!      still be adding to it when the second one is there. A third one needs another snapshot,
//!      behind the second operand: its registration waits (4), and from then on no thread changes
//!      any of them. So chains of three and more are collapsed (`replace_chain`), and shorter ones
//!      are not.
//!    * An entry below a range tombstone is replaced without being read. A change that did not see
//!      the tombstone comes before it in the order of writes.
//! 3. **An entry that is superseded meanwhile.** A change by a thread that found it before its
//!    successor was published comes before the successor in the order of writes: the successor was
//!    made without reading the value (2), and overrides it.
//! 4. **A thread that needs the value to stay** publishes what keeps others away, and then waits
//!    for all threads at work (`db/state/thread_gate.rs`): each of them either sees what was
//!    published, or is waited for. So do the registration of a snapshot (`newest_snapshot` is read
//!    after entering), a flush (the memtable is rotated first; a thread that enters later finds the
//!    next one), a close and a conditional write (`in_place_barriers`). The barrier of a
//!    conditional write is lowered again: a thread that finds it gone sees the entry that was
//!    written behind it.
//! 5. **A memtable that is rotated meanwhile.** An addition to it counts below the operands in the
//!    next one, whatever they are: they commute. A put would not, which is why there are none
//!    beside merges.
//!
//! In the order of writes a change stands right behind the entry that it is made to. No reader can
//! tell: none is registered between the two.
//!
//! The interleavings of 1 to 5 are tried by `db/interleavings/counters.rs`.

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
    /// Makes `change` of the newest value of `key`, if that lies here and no reader at or before
    /// `newest_snapshot` can see it. False, with nothing done, if only the writer can do it.
    ///
    /// The caller is inside the thread gate (`db/state/thread_gate.rs`) from before it loaded this
    /// memtable and `newest_snapshot` until this returns.
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
            // A longer chain may be about to be collapsed (rule 2).
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
