//! Writes: one entry appended, and what it supersedes folded into it.

use super::arena::{Appender, Arena, Stored, entry_bytes};
use super::index::Found;
use super::store::Memtable;
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::base::range_tombstone::RangeTombstones;
use crate::merge_operator::chain::LONG_CHAIN;
use crate::merge_operator::{MergeOperator, contained};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Values longer than this are not copied for every operand: up to [`LONG_CHAIN`] operands are kept
/// apart first.
const LONG_VALUE_BYTES: usize = 1024;

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
    pub(super) memtable: Arc<Memtable>,
    pub(super) appender: Appender,
    keys: usize,
    longest_chain: u32,
    /// Once so much was written, the memory that comes next should be prefaulted.
    next_touch: usize,
}

/// Smaller memtables are not worth prefaulting.
const FIRST_TOUCH_BYTES: usize = 256 << 10;
/// How much more has been written at each of the next times, at most: less than is prefaulted.
const TOUCH_STEP_BYTES: usize = 1 << 20;

impl MemtableWriter {
    /// The memtable it writes.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Distinct keys written.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The most merge operands that were kept apart for one key.
    pub fn longest_chain(&self) -> u32 {
        self.longest_chain
    }

    /// Whether entries of `bytes` (see [`entry_bytes`]) fit.
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.memtable.arena.capacity() - self.memtable.end.load(Ordering::Relaxed) >= bytes
    }

    /// Whether [`Memtable::touch_ahead`] should be called now.
    #[inline]
    pub fn wants_memory(&mut self) -> bool {
        let end = self.memtable.end.load(Ordering::Relaxed);
        if end < self.next_touch {
            return false;
        }
        self.next_touch = end + end.min(TOUCH_STEP_BYTES);
        true
    }

    /// Prefetches what [`MemtableWriter::apply`] needs first for a key with this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.memtable.index.prefetch(hash);
    }

    /// Notes that a write in no log follows.
    pub fn set_unlogged(&self) {
        self.memtable.note_unlogged();
    }

    /// Deletes the keys from `start` on and before `end`; an empty `end` is behind every key.
    /// `newest_snapshot` as in [`WriteContext`]; `finished`: the last write of the batches before
    /// this one.
    pub fn delete_range(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: Sequence,
        newest_snapshot: Sequence,
        finished: Sequence,
    ) {
        self.memtable.note_sequence(sequence);
        let order = self.memtable.order();
        if !order.is_before_end(start, end) {
            // A comparator has changed its mind since the range was made.
            order.note_fault();
            return;
        }
        let tombstone = RangeTombstones::one_in(order, start, end, sequence);
        self.memtable.tombstones.add(tombstone, newest_snapshot, finished);
    }

    /// Applies one operation. The caller has made sure that its entry has room. Whether the
    /// operands of the key, which are kept apart, became many by it: then
    /// [`MemtableWriter::replace_chain`] should follow.
    pub fn apply(&mut self, hash: u64, entry: Entry<'_>, context: WriteContext<'_>) -> bool {
        let MemtableWriter { memtable, appender, keys, longest_chain, .. } = self;
        memtable.note_sequence(entry.sequence);
        if entry.expiry_ms != NEVER {
            memtable.last_expiry_ms.fetch_max(entry.expiry_ms, Ordering::Relaxed);
        }
        match entry.kind {
            Kind::Merge | Kind::MergeFirst => memtable.note_merge(),
            Kind::PutBlob => memtable.note_blob(entry.value),
            Kind::Put | Kind::Delete => {}
        }
        memtable.index.reserve(*keys);
        match memtable.index.find(hash, |offset| memtable.arena.entry(offset).key() == entry.key) {
            Found::Free(slot) => {
                *keys += 1;
                slot.publish(memtable.append(appender, entry, 0));
                if keys.is_power_of_two() {
                    memtable.index_bytes.store(memtable.index.bytes(), Ordering::Relaxed);
                }
            }
            Found::Entry(at, slot) => {
                let old = memtable.arena.entry(at);
                if old.sequence() <= context.newest_snapshot {
                    let new = memtable.append(appender, entry, at);
                    slot.publish(new);
                    return grew_long(memtable.arena.entry(new).chain(), longest_chain, context);
                }
                let covered = memtable.cover(entry.key, MAX_SEQUENCE) > old.sequence();
                if !covered && fold_in_place(appender, old, &entry, context.adds_uint64) {
                    return false;
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
                        let new = memtable.append(appender, whole, old.older().unwrap_or(0));
                        // Dead before its successor can be found: a scan that sees both must skip
                        // one.
                        old.set_dead(appender);
                        memtable.live.store(memtable.live() - 1, Ordering::Relaxed);
                        slot.publish(new);
                    }
                    None => {
                        let new = memtable.append(appender, entry, at);
                        slot.publish(new);
                        return grew_long(memtable.arena.entry(new).chain(), longest_chain, context);
                    }
                }
            }
        }
        false
    }
}

/// Whether a chain is now as long as the limit or twice, four times, ... that: what did not work
/// then is not tried again at once.
fn grew_long(chain: u32, longest: &mut u32, context: WriteContext<'_>) -> bool {
    *longest = chain.max(*longest);
    chain >= LONG_CHAIN && chain.is_power_of_two() && context.operator.is_some()
}

impl Memtable {
    /// An empty memtable for `capacity` bytes of entries and about `expected_keys` keys, in the
    /// bytewise order, with its only writer.
    pub fn create(capacity: usize, expected_keys: usize, pool: &Arc<MemoryPool>) -> (Arc<Memtable>, MemtableWriter) {
        Memtable::create_in(KeyOrder::Bytewise, capacity, expected_keys, pool)
    }

    /// As [`Memtable::create`], for keys in another order.
    pub fn create_in(
        order: KeyOrder,
        capacity: usize,
        expected_keys: usize,
        pool: &Arc<MemoryPool>,
    ) -> (Arc<Memtable>, MemtableWriter) {
        let (arena, appender) = Arena::new(capacity, pool);
        let memtable = Arc::new(Memtable::new(arena.in_order(order), expected_keys, pool));
        let writer = MemtableWriter {
            memtable: Arc::clone(&memtable),
            appender,
            keys: 0,
            longest_chain: 0,
            next_touch: FIRST_TOUCH_BYTES,
        };
        (memtable, writer)
    }

    fn note_sequence(&self, sequence: Sequence) {
        if self.first_sequence.load(Ordering::Relaxed) == 0 {
            self.first_sequence.store(sequence, Ordering::Relaxed);
        }
        self.last_sequence.store(sequence, Ordering::Relaxed);
    }

    #[inline]
    fn note_merge(&self) {
        // Loaded first: readers share the line.
        if !self.merges.load(Ordering::Relaxed) {
            self.merges.store(true, Ordering::Relaxed);
        }
    }

    #[cold]
    fn note_blob(&self, reference: &[u8]) {
        if let Some(reference) = BlobReference::decode(reference) {
            self.blobs.lock().insert(reference.file);
            self.blob_bytes.fetch_add(u64::from(reference.length), Ordering::Relaxed);
        }
    }

    pub(super) fn fits(&self, entry: &Entry<'_>, reserved: usize) -> bool {
        let bytes = entry_bytes(entry.key.len(), entry.value.len(), entry.expiry_ms);
        self.arena.capacity() - self.end.load(Ordering::Relaxed) >= bytes + reserved
    }

    pub(super) fn append(&self, appender: &mut Appender, entry: Entry<'_>, older: usize) -> usize {
        let chain = match entry.kind {
            Kind::Merge if older != 0 => self.arena.entry(older).chain() + 1,
            Kind::Merge | Kind::MergeFirst => 1,
            _ => 0,
        };
        let at = self.arena.append(appender, &entry, (older / 8) as u32, chain);
        self.end.store(appender.end(), Ordering::Release);
        self.live.store(self.live() + 1, Ordering::Relaxed);
        at
    }
}

/// Whether `entry` could be put into `old` by changing its eight bytes.
#[inline]
fn fold_in_place(writer: &mut Appender, old: Stored<'_>, entry: &Entry<'_>, adds_uint64: bool) -> bool {
    let Ok(eight) = <[u8; 8]>::try_from(entry.value) else { return false };
    // A reader must never see one's value with the other's expiry.
    let Some(found) = old.eight().filter(|_| entry.expiry_ms == old.expiry_ms()) else { return false };
    let operand = u64::from_le_bytes(eight);
    match (old.kind(), entry.kind) {
        (Kind::Put, Kind::Put) => found.set(operand),
        // In one step: other threads may be adding to it (rule 1 of `in_place.rs`).
        (Kind::Put | Kind::Merge | Kind::MergeFirst, Kind::Merge) if adds_uint64 => found.add(operand),
        _ => return false,
    }
    old.set_sequence(writer, entry.sequence);
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

/// What stands for `old` followed by `entry`, when no snapshot can tell them apart. `covered`: a
/// range tombstone lies between them.
fn fold(old: Stored<'_>, entry: &Entry<'_>, operator: Option<&dyn MergeOperator>, covered: bool) -> Fold {
    if entry.kind != Kind::Merge {
        return Fold::Superseded;
    }
    let Some(operator) = operator else { return Fold::KeepBoth };
    if !covered && old.value_length() > LONG_VALUE_BYTES {
        return Fold::KeepBoth;
    }
    let mut eight = [0; 8];
    let existing = old.value(&mut eight);
    let merged = match if covered { Kind::Delete } else { old.kind() } {
        kind @ (Kind::Merge | Kind::MergeFirst) => {
            contained::partial_merge(operator, entry.key, existing, entry.value).map(|value| (kind, value))
        }
        // The value is not in memory.
        Kind::PutBlob => None,
        kind @ (Kind::Put | Kind::Delete) => {
            let existing = (kind == Kind::Put).then_some(existing);
            match contained::full_merge(operator, entry.key, existing, &[entry.value]) {
                Ok(Some(value)) => Some((Kind::Put, value)),
                Ok(None) => Some((Kind::Delete, Vec::new())),
                Err(_) => None,
            }
        }
    };
    // A failing operator's operands are kept, and reads report it.
    merged.map_or(Fold::KeepBoth, |(kind, value)| Fold::Into(kind, value))
}
