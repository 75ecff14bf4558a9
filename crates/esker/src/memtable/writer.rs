//! Writes: one entry appended, and what it supersedes folded into it.

use super::arena::{Stored, entry_bytes};
use super::index::Found;
use super::store::Memtable;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, MAX_VALUE_BYTES, NEVER, Sequence};
use crate::base::memory::MemoryPool;
use crate::base::range_tombstone::RangeTombstones;
use crate::merge_operator::MergeOperator;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a write needs to know of its surroundings.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    /// The newest sequence number that a live snapshot or iterator reads at; 0 if there is none.
    pub newest_snapshot: Sequence,
    /// The keyspace's operator.
    pub operator: Option<&'a dyn MergeOperator>,
    /// The operator is the built-in `uint64add`.
    pub adds_uint64: bool,
    /// Arena bytes that later operations of the same batch were promised.
    pub reserved: usize,
}

/// The one writer of a memtable.
#[derive(Debug)]
pub struct MemtableWriter {
    memtable: Arc<Memtable>,
    keys: usize,
}

impl MemtableWriter {
    /// The memtable it writes.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Distinct keys written.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Whether entries of `bytes` (see [`entry_bytes`]) fit.
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.memtable.arena.capacity() - self.memtable.end.load(Ordering::Relaxed) >= bytes
    }

    /// Starts loading what [`MemtableWriter::apply`] needs first for a key with this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.memtable.index.prefetch(hash);
    }

    /// Notes that a write in no log follows.
    pub fn set_unlogged(&self) {
        self.memtable.unlogged.store(true, Ordering::Relaxed);
    }

    /// Deletes the keys from `start` on and before `end`; an empty `end` is behind every key. `newest_snapshot` as in [`WriteContext`]; `finished`:
    /// the last write of the batches before this one.
    pub fn delete_range(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: Sequence,
        newest_snapshot: Sequence,
        finished: Sequence,
    ) {
        self.memtable.note_sequence(sequence);
        self.memtable.tombstones.add(RangeTombstones::one(start, end, sequence), newest_snapshot, finished);
    }

    /// Applies one operation. The caller has made sure that its entry has room.
    pub fn apply(&mut self, hash: u64, entry: Entry<'_>, context: WriteContext<'_>) {
        let MemtableWriter { memtable, keys } = self;
        memtable.note_sequence(entry.sequence);
        if entry.expiry_ms != NEVER {
            memtable.last_expiry_ms.fetch_max(entry.expiry_ms, Ordering::Relaxed);
        }
        memtable.index.reserve(*keys);
        match memtable.index.find(hash, |offset| memtable.arena.entry(offset).key() == entry.key) {
            Found::Free(slot) => {
                *keys += 1;
                slot.publish(memtable.append(entry, 0));
                if keys.is_power_of_two() {
                    memtable.index_bytes.store(memtable.index.bytes(), Ordering::Relaxed);
                }
            }
            Found::Entry(at, slot) => {
                let old = memtable.arena.entry(at);
                if old.sequence() <= context.newest_snapshot {
                    return slot.publish(memtable.append(entry, at));
                }
                let covered = memtable.cover(entry.key, MAX_SEQUENCE) > old.sequence();
                if !covered && fold_in_place(old, &entry, context.adds_uint64) {
                    return;
                }
                let folded = fold(old, &entry, context.operator, covered);
                let whole = match &folded {
                    Fold::Superseded => Some(entry),
                    // What stands for both expires with the newer.
                    Fold::Into(Kind::Delete, _) => {
                        Some(Entry { kind: Kind::Delete, expiry_ms: NEVER, value: &[], ..entry })
                    }
                    Fold::Into(kind, value) => Some(Entry { kind: *kind, value, ..entry }),
                    Fold::KeepBoth => None,
                };
                match whole.filter(|whole| memtable.fits(whole, context.reserved)) {
                    Some(whole) => {
                        let new = memtable.append(whole, old.older().unwrap_or(0));
                        // Dead before its successor can be found: a scan that sees both must pass over one.
                        old.set_dead();
                        memtable.live.store(memtable.live() - 1, Ordering::Relaxed);
                        slot.publish(new);
                    }
                    None => slot.publish(memtable.append(entry, at)),
                }
            }
        }
    }
}

impl Memtable {
    /// An empty memtable for `capacity` bytes of entries and about `expected_keys` keys, with its only writer.
    pub fn create(capacity: usize, expected_keys: usize, pool: &Arc<MemoryPool>) -> (Arc<Memtable>, MemtableWriter) {
        let memtable = Arc::new(Memtable::new(capacity, expected_keys, pool));
        let writer = MemtableWriter { memtable: Arc::clone(&memtable), keys: 0 };
        (memtable, writer)
    }

    fn note_sequence(&self, sequence: Sequence) {
        if self.first_sequence.load(Ordering::Relaxed) == 0 {
            self.first_sequence.store(sequence, Ordering::Relaxed);
        }
        self.last_sequence.store(sequence, Ordering::Relaxed);
    }

    fn fits(&self, entry: &Entry<'_>, reserved: usize) -> bool {
        let bytes = entry_bytes(entry.key.len(), entry.value.len(), entry.expiry_ms);
        self.arena.capacity() - self.end.load(Ordering::Relaxed) >= bytes + reserved
    }

    /// For the one writer.
    fn append(&self, entry: Entry<'_>, older: usize) -> usize {
        let at = self.end.load(Ordering::Relaxed);
        let bytes = self.arena.write_entry(at, &entry, (older / 8) as u32);
        self.end.store(at + bytes, Ordering::Release);
        self.live.store(self.live() + 1, Ordering::Relaxed);
        at
    }
}

/// Whether `entry` could be put into `old` by changing its eight bytes.
#[inline]
fn fold_in_place(old: Stored<'_>, entry: &Entry<'_>, adds_uint64: bool) -> bool {
    let Ok(eight) = <[u8; 8]>::try_from(entry.value) else { return false };
    // A reader must never see one's value with the other's expiry.
    if old.value_length() != 8 || entry.expiry_ms != old.expiry_ms() {
        return false;
    }
    let operand = u64::from_le_bytes(eight);
    let value = match (old.kind(), entry.kind) {
        (Kind::Put, Kind::Put) => operand,
        (Kind::Put | Kind::Merge | Kind::MergeFirst, Kind::Merge) if adds_uint64 => old.eight().wrapping_add(operand),
        _ => return false,
    };
    old.set_eight(value);
    old.set_sequence(entry.sequence);
    true
}

enum Fold {
    /// The new entry stands for both as it is.
    Superseded,
    /// An entry of this kind and value stands for both.
    Into(Kind, Vec<u8>),
    /// Both are needed.
    KeepBoth,
}

/// What stands for `old` followed by `entry`, when no snapshot can tell them apart. `covered`: a range tombstone lies between them.
fn fold(old: Stored<'_>, entry: &Entry<'_>, operator: Option<&dyn MergeOperator>, covered: bool) -> Fold {
    if entry.kind != Kind::Merge {
        return Fold::Superseded;
    }
    let Some(operator) = operator else { return Fold::KeepBoth };
    let mut eight = [0; 8];
    let existing = old.value(&mut eight);
    // A panicking operator must not take the writer's lock with it: its operands are kept, and reads report it.
    let merged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        match if covered { Kind::Delete } else { old.kind() } {
            kind @ (Kind::Merge | Kind::MergeFirst) => {
                operator.partial_merge(entry.key, existing, entry.value).map(|value| (kind, value))
            }
            // The value is not in memory.
            Kind::PutLarge => None,
            kind @ (Kind::Put | Kind::Delete) => {
                let existing = (kind == Kind::Put).then_some(existing);
                match operator.full_merge(entry.key, existing, &[entry.value]) {
                    Ok(Some(value)) => Some((Kind::Put, value)),
                    Ok(None) => Some((Kind::Delete, Vec::new())),
                    Err(_) => None,
                }
            }
        }
    }));
    match merged {
        Ok(Some((kind, value))) if value.len() <= MAX_VALUE_BYTES => Fold::Into(kind, value),
        _ => Fold::KeepBoth,
    }
}
