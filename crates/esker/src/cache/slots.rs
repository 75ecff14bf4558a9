//! The slots: where the blocks of one table are cached, and what is counted there.

use super::buffer_pool::BufferPool;
use crate::base::counter::Counter;
use crate::base::prefetch::{prefetch_address, prefetch_first};
use crate::base::sync::{ArcSwapOption, AtomicU64, AtomicUsize, Guard, OnceLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a cached thing costs.
pub trait Weigh: Send + Sync {
    /// The memory it holds, in bytes.
    fn weight(&self) -> usize;

    /// The bytes that a reader needs first, besides the value itself: loaded while the value is.
    fn first_bytes(&self) -> &[u8] {
        &[]
    }
}

/// Of the bytes that a reader needs first, this much is loaded early: of a block, usually header,
/// prefix and the rests of short keys.
const FIRST_LINES: usize = 8;

/// A value found in the cache: alive while this is held, without having touched its reference
/// count.
pub type Hit<T> = Guard<Option<Arc<T>>>;

/// The places of one table's blocks in the cache. Dropping the last reference frees what is cached
/// there.
pub struct Slots<T: Weigh> {
    count: usize,
    pub(super) slots: OnceLock<Box<[Slot<T>]>>,
    shared: Arc<Shared>,
}

/// The place of one block.
pub(super) struct Slot<T> {
    /// Stored to only under the ring's mutex, or by `drop`.
    value: ArcSwapOption<T>,
    /// The address of the bytes that a reader needs first, one less if that is odd, with the lowest
    /// bit set if the value was requested since the hand last passed. Only a hint: it may belong to
    /// another value than the one that is found beside it, or to none.
    mark: AtomicUsize,
}

const REFERENCED: usize = 1;

impl<T: Weigh> Slot<T> {
    fn empty() -> Slot<T> {
        Slot { value: ArcSwapOption::empty(), mark: AtomicUsize::new(0) }
    }

    /// The value. While the processor waits for it, it loads what the value points to as well: two
    /// misses in the time of one.
    #[inline]
    fn load(&self) -> Option<Hit<T>> {
        let mark = self.mark.load(Ordering::Relaxed);
        prefetch_address(mark, FIRST_LINES);
        let hit = self.value.load();
        if hit.is_none() {
            return None;
        }
        if mark & REFERENCED == 0 {
            self.mark.fetch_or(REFERENCED, Ordering::Relaxed);
        }
        Some(hit)
    }

    /// What is in it, with a reference of its own.
    pub(super) fn present(&self) -> Option<Arc<T>> {
        self.value.load_full()
    }

    /// Fills it. Under the ring's mutex.
    pub(super) fn fill(&self, value: Arc<T>) {
        let address = value.first_bytes().as_ptr().addr();
        self.mark.store(address & !REFERENCED, Ordering::Relaxed);
        self.value.store(Some(value));
    }

    /// Whether it was requested since the last call.
    fn take_reference(&self) -> bool {
        self.mark.fetch_and(!REFERENCED, Ordering::Relaxed) & REFERENCED != 0
    }
}

impl<T: Weigh> Slots<T> {
    pub(super) fn new(count: usize, shared: &Arc<Shared>) -> Slots<T> {
        Slots { count, slots: OnceLock::new(), shared: Arc::clone(shared) }
    }

    /// Starts loading slot `index`.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if let Some(slots) = self.slots.get() {
            prefetch_first(slots.get(index..).unwrap_or_default());
        }
    }

    /// The value in slot `index`, which may be looked up later: this counts for nothing.
    #[inline]
    pub fn peek(&self, index: usize) -> Option<Hit<T>> {
        self.slots.get().and_then(|slots| slots.get(index)).map(|slot| slot.value.load())
    }

    /// The value in slot `index`, counted as a hit or a miss.
    #[inline]
    pub fn lookup(&self, index: usize) -> Option<Hit<T>> {
        let slot = self.slots.get().and_then(|slots| slots.get(index));
        if let Some(hit) = slot.and_then(Slot::load) {
            self.shared.hits.increment();
            return Some(hit);
        }
        self.shared.misses.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// The memory of the slots themselves, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.get().map_or(0, |slots| std::mem::size_of_val::<[Slot<T>]>(slots))
    }

    pub(super) fn allocate(&self) -> &[Slot<T>] {
        self.slots.get_or_init(|| (0..self.count).map(|_| Slot::empty()).collect())
    }

    /// Empties slot `index` unless it was requested since the last call; returns the weight freed.
    /// Without `spare` the flag is ignored.
    pub(super) fn reclaim(&self, index: usize, spare: bool) -> Option<usize> {
        let slot = self.slots.get()?.get(index)?;
        if spare && slot.take_reference() {
            return None;
        }
        Some(self.empty(slot))
    }

    /// Empties a slot; the weight that is free then.
    fn empty(&self, slot: &Slot<T>) -> usize {
        let Some(value) = slot.value.swap(None) else { return 0 };
        let weight = value.weight();
        // Before the value is dropped: its memory is kept if there is room for it.
        self.shared.usage.fetch_sub(weight, Ordering::Relaxed);
        weight
    }
}

impl<T: Weigh> Drop for Slots<T> {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        let held = slots.iter().filter(|slot| self.empty(slot) > 0).count();
        self.shared.dead.fetch_add(held, Ordering::Relaxed);
    }
}

impl<T: Weigh> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Bytes of a value that is alive, counted until this is dropped.
pub struct Charge {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(shared: &Arc<Shared>, bytes: usize) -> Charge {
        shared.charged.fetch_add(bytes, Ordering::Relaxed);
        Charge { shared: Arc::clone(shared), bytes }
    }

    /// Ends it. The value's memory is kept for another if there is room for it.
    pub fn end(self, memory: Vec<u8>) {
        let shared = Arc::clone(&self.shared);
        drop(self);
        shared.pool.keep(memory, shared.room_for_pool());
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shared.charged.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Charge").field(&self.bytes).finish()
    }
}

/// What the slot arrays share with the cache they belong to.
#[derive(Default)]
pub(super) struct Shared {
    /// Looked at when something is inserted or freed only; changed under the ring's mutex.
    pub(super) budget: AtomicUsize,
    /// Whether values that readers hold outside the cache use up the budget as well.
    pub(super) counts_pinned: bool,
    /// Memory of values that have left the cache.
    pub(super) pool: BufferPool,
    /// The memory held by cached values, in bytes.
    pub(super) usage: AtomicUsize,
    /// The memory of all values with a charge that are alive, in bytes.
    pub(super) charged: AtomicUsize,
    /// Ring entries whose slot array is gone: a hint when to sweep the ring.
    pub(super) dead: AtomicUsize,
    /// Lookups that found their block.
    pub(super) hits: Counter,
    /// Lookups that did not find their block.
    pub(super) misses: AtomicU64,
}

impl Shared {
    pub(super) fn new(budget_bytes: usize, counts_pinned: bool) -> Shared {
        Shared { budget: AtomicUsize::new(budget_bytes), counts_pinned, ..Shared::default() }
    }

    /// What uses up the budget, besides the pool.
    pub(super) fn used_bytes(&self) -> usize {
        let used = if self.counts_pinned { &self.charged } else { &self.usage };
        used.load(Ordering::Relaxed)
    }

    fn room_for_pool(&self) -> usize {
        self.budget.load(Ordering::Relaxed).saturating_sub(self.used_bytes())
    }

    /// Frees what there is no room for any more.
    pub(super) fn trim_pool(&self) {
        self.pool.trim(self.room_for_pool());
    }
}
