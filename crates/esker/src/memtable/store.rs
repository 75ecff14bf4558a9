//! The memtable itself: its parts, and reads of one key.

use super::arena::{Arena, START};
use super::index::Index;
use super::sorted_runs::Order;
use super::tombstones::TombstoneSets;
use crate::base::key::{Entry, Sequence, same};
use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::base::range_tombstone::RangeTombstones;
use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex};
use crate::error::Result;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The unit in which the system gives out memory.
const PAGE_BYTES: usize = 4096;

/// Memory is prefaulted so far ahead of the writer: what it fills in some ten milliseconds, for
/// which the background thread may be busy.
const TOUCHED_AHEAD_BYTES: usize = 8 << 20;

/// Recent writes of one keyspace. `MemtableWriter` alone changes it; everything else only reads.
pub struct Memtable {
    pub(super) arena: Arena,
    pub(super) index: Index,
    /// Arena bytes used; entries before it are complete.
    pub(super) end: AtomicUsize,
    /// Entries that are not dead.
    pub(super) live: AtomicUsize,
    /// The first and last write in here; 0 while there is none.
    pub(super) first_sequence: AtomicU64,
    pub(super) last_sequence: AtomicU64,
    /// When the last of the entries that expire does; 0 while there is none.
    pub(super) last_expiry_ms: AtomicU64,
    /// Whether a write in here is in no log.
    pub(super) unlogged: AtomicBool,
    /// Whether a write in here is a merge, or was one before it was combined with others.
    pub(super) merges: AtomicBool,
    pub(super) index_bytes: AtomicUsize,
    pub(super) sorted: Mutex<Order>,
    pub(super) tombstones: TombstoneSets,
    /// Bytes of the sorted runs; not waited for here.
    pub(super) order_bytes: AtomicUsize,
    /// The blob files that entries refer to or referred to, and the bytes of all values in them
    /// that were written here.
    pub(super) blobs: Mutex<BTreeSet<u64>>,
    pub(super) blob_bytes: AtomicU64,
    pub(super) sample: Mutex<KeySample>,
}

/// The sample that questions about the same keys share: see `size.rs`.
#[derive(Default)]
pub struct KeySample {
    /// [`Memtable::end`] at the first of them.
    pub(super) end: usize,
    /// Those that were answered without it.
    pub(super) questions: u32,
    /// What is at so many times eight bytes; `None` until it is in order.
    pub(super) sorted: Option<Vec<u32>>,
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable").field("bytes", &self.bytes()).field("live", &self.live()).finish()
    }
}

impl Memtable {
    /// An empty memtable with this arena and room for about `expected_keys` keys.
    pub(super) fn new(arena: Arena, expected_keys: usize, pool: &Arc<MemoryPool>) -> Memtable {
        let index = Index::new(expected_keys, pool);
        Memtable {
            arena,
            index_bytes: AtomicUsize::new(index.bytes()),
            index,
            end: AtomicUsize::new(START),
            live: AtomicUsize::new(0),
            first_sequence: AtomicU64::new(0),
            last_sequence: AtomicU64::new(0),
            last_expiry_ms: AtomicU64::new(0),
            unlogged: AtomicBool::new(false),
            merges: AtomicBool::new(false),
            sorted: Mutex::default(),
            tombstones: TombstoneSets::default(),
            order_bytes: AtomicUsize::new(0),
            blobs: Mutex::default(),
            blob_bytes: AtomicU64::new(0),
            sample: Mutex::default(),
        }
    }

    /// The order of its keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        self.arena.order()
    }

    /// Hands the versions of `key` at or before `max_sequence` to `visit`, newest first, until it
    /// breaks.
    #[inline]
    pub fn get(
        &self,
        key: &[u8],
        hash: u64,
        max_sequence: Sequence,
        visit: &mut impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.is_empty() {
            // A thread that has waited for a write to be acknowledged sees it here as well.
            return ControlFlow::Continue(());
        }
        let mut at = self.index.get(hash, |offset| self.is_at(offset, key));
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

    /// Whether the entry at `offset` has this key.
    #[inline]
    fn is_at(&self, offset: usize, key: &[u8]) -> bool {
        // The value as well: it probably is the key.
        self.arena.prefetch_entry(offset);
        same(self.arena.entry(offset).key(), key)
    }

    /// Prefetches what [`Memtable::get`] reads first for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if !self.is_empty() {
            self.index.prefetch(hash);
        }
    }

    /// Loads what a write of `key` reads: its slot in the index, and its newest entry.
    #[inline(never)]
    pub fn warm(&self, key: &[u8], hash: u64) {
        if !self.is_empty() {
            std::hint::black_box(self.index.get(hash, |offset| self.is_at(offset, key)));
        }
    }

    /// Where the next entry will be. Under the writer lock: behind all writes made so far, and
    /// before all later ones.
    pub fn end(&self) -> usize {
        self.end.load(Ordering::Acquire)
    }

    /// Hands the keys of all entries from `from` on, an earlier [`Memtable::end`] or 0, to `visit`,
    /// in the order of writing.
    pub fn keys_from(&self, from: usize, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let end = self.end();
        let mut at = from.max(START);
        while at < end {
            let entry = self.arena.entry(at);
            visit(entry.key())?;
            at = entry.end();
        }
        Ok(())
    }

    /// Whether a merge was ever written in here: what was combined since is apart in the log. To be
    /// asked under the writer lock.
    pub fn has_merges(&self) -> bool {
        self.merges.load(Ordering::Relaxed)
    }

    /// Whether a range was ever deleted in here.
    #[inline]
    pub fn has_range_tombstones(&self) -> bool {
        self.tombstones.any()
    }

    /// The newest range tombstone over `key` at or before `max_sequence`; 0 if there is none.
    #[inline]
    pub fn cover(&self, key: &[u8], max_sequence: Sequence) -> Sequence {
        self.tombstones.cover(key, max_sequence)
    }

    /// All range tombstones written before the call, in sets that may overlap.
    pub fn range_tombstones(&self) -> Vec<Arc<RangeTombstones>> {
        self.tombstones.sets()
    }

    /// Bytes of memory that the range tombstones take.
    pub fn range_tombstone_bytes(&self) -> usize {
        self.tombstones.bytes()
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.end.load(Ordering::Relaxed) + self.index_bytes.load(Ordering::Relaxed) + self.tombstones.bytes()
    }

    /// Prefaults memory that the writer will come to if it goes on: not far ahead, and not more
    /// than was written, so that small memtables stay small. For the background thread.
    pub fn touch_ahead(&self) {
        let end = self.end.load(Ordering::Relaxed);
        self.arena.touch_until(end + end.min(TOUCHED_AHEAD_BYTES));
        let capacity = self.arena.capacity();
        // It is full when entries and index together are as long as the arena.
        let entries_end = capacity.saturating_sub(self.index_bytes.load(Ordering::Relaxed));
        let expected = (self.live() as u64).saturating_mul(entries_end as u64) / end.max(1) as u64;
        self.index.prepare_next(self.live(), expected as usize, end >= capacity / 2);
    }

    /// Bytes that the system has backed with memory for it, as far as they are known: entries,
    /// index and sorted runs. 0 while it is empty.
    pub fn resident_bytes(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        // An index made for many keys is touched page by page.
        let index = self.index.bytes().min(self.live().max(1).saturating_mul(PAGE_BYTES));
        let arena = self.end.load(Ordering::Relaxed).max(self.arena.touched());
        arena + index + self.order_bytes.load(Ordering::Relaxed) + self.tombstones.bytes()
    }

    /// Entries that a flush would read.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether nothing was ever written.
    #[inline]
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

    /// When everything in here that expires has expired; 0 if nothing does.
    pub fn last_expiry_ms(&self) -> u64 {
        self.last_expiry_ms.load(Ordering::Relaxed)
    }

    /// Whether a write in here is in no log.
    pub fn has_unlogged_writes(&self) -> bool {
        self.unlogged.load(Ordering::Relaxed)
    }

    /// The blob files that entries refer to. Some may be named that only superseded entries refer
    /// to.
    pub fn blob_files(&self) -> BTreeSet<u64> {
        self.blobs.lock().clone()
    }

    /// Bytes of the large values written here, in blob files.
    #[inline]
    pub fn blob_bytes(&self) -> u64 {
        self.blob_bytes.load(Ordering::Relaxed)
    }
}
