//! The memtable: recent writes of one keyspace in memory.
//!
//! An arena holds the entries in the order of writing, a hash index finds the newest one of a key, and order is made when a scan or
//! a flush asks for it (`order.rs`). Writes go through the one [`MemtableWriter`]; reads need no lock.
//!
//! A write whose key's newest entry no snapshot can see supersedes that entry: it is marked dead and never flushed, or, where both values have eight
//! bytes, changed in place. Otherwise the new entry points to the older one.

use crate::base::key::{Entry, Kind, NEVER, Sequence};
use crate::base::memory::MemoryPool;
use crate::merge_operator::MergeOperator;
use arena::{Arena, Stored};
use index::{Found, Index};
use order::Order;
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

mod arena;
mod cursor;
mod index;
mod order;

pub use arena::{MAX_ARENA_BYTES, entry_bytes};
pub use cursor::RunCursor;

/// Offset of the first entry: 0 means "none" in the index.
const START: usize = 8;

/// See the module's comment.
pub struct Memtable {
    arena: Arena,
    index: Index,
    /// Arena bytes used; entries before it are complete.
    end: AtomicUsize,
    /// Entries that are not dead.
    live: AtomicUsize,
    /// The first and last write in here; 0 while there is none.
    first_sequence: AtomicU64,
    last_sequence: AtomicU64,
    /// Whether a write in here is in no log.
    unlogged: AtomicBool,
    index_bytes: AtomicUsize,
    order: Mutex<Order>,
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable").field("bytes", &self.bytes()).field("live", &self.live()).finish()
    }
}

impl Memtable {
    /// An empty memtable for `capacity` bytes of entries and about `expected_keys` keys, with its only writer.
    pub fn create(capacity: usize, expected_keys: usize, pool: &Arc<MemoryPool>) -> (Arc<Memtable>, MemtableWriter) {
        let index = Index::new(expected_keys);
        let memtable = Arc::new(Memtable {
            arena: Arena::new(capacity.saturating_add(START), pool),
            index_bytes: AtomicUsize::new(index.bytes()),
            index,
            end: AtomicUsize::new(START),
            live: AtomicUsize::new(0),
            first_sequence: AtomicU64::new(0),
            last_sequence: AtomicU64::new(0),
            unlogged: AtomicBool::new(false),
            order: Mutex::default(),
        });
        let writer = MemtableWriter { memtable: Arc::clone(&memtable), keys: 0 };
        (memtable, writer)
    }

    #[inline]
    fn stored(&self, offset: u32) -> Stored<'_> {
        self.arena.entry(offset as usize * 8)
    }

    /// Hands the versions of `key` at or before `max_sequence` to `visit`, newest first, until it breaks.
    #[inline]
    pub fn get(
        &self,
        key: &[u8],
        hash: u64,
        max_sequence: Sequence,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut at = self.index.get(hash, |offset| self.arena.entry(offset).key() == key);
        while let Some(offset) = at {
            let stored = self.arena.entry(offset);
            let sequence = stored.sequence();
            if sequence <= max_sequence {
                let mut eight = [0; 8];
                let value = stored.value(&mut eight);
                visit(Entry { key, sequence, kind: stored.kind(), expiry_ms: stored.expiry_ms(), value })?;
            }
            at = stored.older();
        }
        ControlFlow::Continue(())
    }

    /// Cursors that together pass every entry written before the call.
    pub fn cursors(self: &Arc<Memtable>) -> Vec<RunCursor> {
        let end = self.end.load(Ordering::Acquire);
        let runs = self.order.lock().extend(self, START, end);
        runs.into_iter().map(|run| RunCursor::new(Arc::clone(self), run)).collect()
    }

    /// One cursor over everything, for a memtable that is no longer written.
    pub fn sealed_cursor(self: &Arc<Memtable>) -> RunCursor {
        let end = self.end.load(Ordering::Acquire);
        let run = self.order.lock().seal(self, START, end);
        RunCursor::new(Arc::clone(self), run)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.end.load(Ordering::Relaxed) + self.index_bytes.load(Ordering::Relaxed)
    }

    /// Entries that a flush would look at.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.first_sequence.load(Ordering::Relaxed) == 0
    }

    /// The first write in here; 0 while there is none.
    pub fn first_sequence(&self) -> Sequence {
        self.first_sequence.load(Ordering::Relaxed)
    }

    /// The last write in here; 0 while there is none.
    pub fn last_sequence(&self) -> Sequence {
        self.last_sequence.load(Ordering::Relaxed)
    }

    /// Whether a write in here is in no log.
    pub fn has_unlogged_writes(&self) -> bool {
        self.unlogged.load(Ordering::Relaxed)
    }
}

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

    /// Notes that a write in no log follows.
    pub fn set_unlogged(&self) {
        self.memtable.unlogged.store(true, Ordering::Relaxed);
    }

    /// Applies one operation. The caller has made sure that its entry has room.
    pub fn apply(&mut self, hash: u64, entry: Entry<'_>, context: WriteContext<'_>) {
        let memtable = Arc::clone(&self.memtable);
        memtable.note_sequence(entry.sequence);
        memtable.index.reserve(self.keys);
        match memtable.index.find(hash, |offset| memtable.arena.entry(offset).key() == entry.key) {
            Found::Free(slot) => {
                self.keys += 1;
                slot.publish(memtable.append(entry, 0));
                let tables = self.keys;
                if tables.is_power_of_two() {
                    memtable.index_bytes.store(memtable.index.bytes(), Ordering::Relaxed);
                }
            }
            Found::Entry(at, slot) => {
                let old = memtable.arena.entry(at);
                if old.sequence() <= context.newest_snapshot {
                    return slot.publish(memtable.append(entry, at));
                }
                if fold_in_place(old, &entry, context.adds_uint64) {
                    return;
                }
                let folded = fold(old, &entry, context.operator);
                let whole = match &folded {
                    Fold::Superseded => Some(entry),
                    Fold::Into(kind, value) => Some(Entry { kind: *kind, value, ..entry }),
                    Fold::KeepBoth => None,
                };
                match whole.filter(|whole| memtable.fits(whole, context.reserved)) {
                    Some(whole) => {
                        let new = memtable.append(whole, old.older().unwrap_or(0));
                        // Dead before its successor can be found: a scan that sees both must pass over one.
                        old.set_dead();
                        memtable.live.fetch_sub(1, Ordering::Relaxed);
                        slot.publish(new);
                    }
                    None => slot.publish(memtable.append(entry, at)),
                }
            }
        }
    }
}

impl Memtable {
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
        self.live.fetch_add(1, Ordering::Relaxed);
        at
    }
}

/// Whether `entry` could be put into `old` by changing its eight bytes.
#[inline]
fn fold_in_place(old: Stored<'_>, entry: &Entry<'_>, adds_uint64: bool) -> bool {
    let Ok(eight) = <[u8; 8]>::try_from(entry.value) else { return false };
    if old.value_length() != 8 || entry.expiry_ms != NEVER || old.expiry_ms() != NEVER {
        return false;
    }
    let operand = u64::from_le_bytes(eight);
    let value = match (old.kind(), entry.kind) {
        (Kind::Put, Kind::Put) => operand,
        (Kind::Put | Kind::Merge, Kind::Merge) if adds_uint64 => old.eight().wrapping_add(operand),
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

/// What stands for `old` followed by `entry`, when no snapshot can tell them apart.
fn fold(old: Stored<'_>, entry: &Entry<'_>, operator: Option<&dyn MergeOperator>) -> Fold {
    if entry.kind != Kind::Merge {
        return Fold::Superseded;
    }
    let Some(operator) = operator else { return Fold::KeepBoth };
    if old.expiry_ms() != NEVER || entry.expiry_ms != NEVER {
        return Fold::KeepBoth;
    }
    let mut eight = [0; 8];
    let existing = old.value(&mut eight);
    // A panicking operator must not take the writer's lock with it: its operands are kept, and reads report it.
    let merged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match old.kind() {
        Kind::Merge => operator.partial_merge(entry.key, existing, entry.value).map(|v| (Kind::Merge, v)),
        kind => {
            let existing = (kind == Kind::Put).then_some(existing);
            match operator.full_merge(entry.key, existing, &[entry.value]) {
                Ok(Some(value)) => Some((Kind::Put, value)),
                Ok(None) => Some((Kind::Delete, Vec::new())),
                Err(_) => None,
            }
        }
    }));
    match merged {
        Ok(Some((kind, value))) if value.len() <= crate::base::key::MAX_VALUE_BYTES => Fold::Into(kind, value),
        _ => Fold::KeepBoth,
    }
}

#[cfg(test)]
mod tests;
