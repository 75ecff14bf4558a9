//! The slots: where the blocks of one table are cached, and what is counted there.

use crate::base::prefetch::prefetch_first;
use arc_swap::{ArcSwapOption, Guard};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What a cached thing costs.
pub trait Weigh: Send + Sync {
    /// The memory it holds, in bytes.
    fn weight(&self) -> usize;
}

/// A value found in the cache: alive while this is held, without having touched its reference count.
pub type Hit<T> = Guard<Option<Arc<T>>>;

/// The places of one table's blocks in the cache. Dropping the last reference frees what is cached there.
pub struct Slots<T: Weigh> {
    count: usize,
    pub(super) slots: OnceLock<Box<[Slot<T>]>>,
    shared: Arc<Shared>,
}

/// The place of one block.
pub(super) struct Slot<T> {
    /// Stored to only under the ring's mutex, or by `drop`.
    pub(super) value: ArcSwapOption<T>,
    /// Asked for since the hand last passed.
    pub(super) referenced: AtomicBool,
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
        if let Some(slot) = self.slots.get().and_then(|slots| slots.get(index)) {
            let hit = slot.value.load();
            if hit.is_some() {
                if !slot.referenced.load(Ordering::Relaxed) {
                    slot.referenced.store(true, Ordering::Relaxed);
                }
                self.shared.hits[counter_index()].0.fetch_add(1, Ordering::Relaxed);
                return Some(hit);
            }
        }
        self.shared.misses.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// The memory of the slots themselves, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.get().map_or(0, |slots| std::mem::size_of_val::<[Slot<T>]>(slots))
    }

    pub(super) fn allocate(&self) -> &[Slot<T>] {
        self.slots.get_or_init(|| {
            (0..self.count)
                .map(|_| Slot { value: ArcSwapOption::empty(), referenced: AtomicBool::new(false) })
                .collect()
        })
    }

    /// Empties slot `index` unless it was asked for since the last call; returns the weight freed. Without
    /// `spare` the flag is not looked at.
    pub(super) fn reclaim(&self, index: usize, spare: bool) -> Option<usize> {
        let slot = self.slots.get()?.get(index)?;
        if spare && slot.referenced.swap(false, Ordering::Relaxed) {
            return None;
        }
        Some(slot.value.swap(None).map_or(0, |value| value.weight()))
    }
}

impl<T: Weigh> Drop for Slots<T> {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        let (mut held, mut freed) = (0, 0);
        for value in slots.iter().filter_map(|slot| slot.value.swap(None)) {
            held += 1;
            freed += value.weight();
        }
        self.shared.usage.fetch_sub(freed, Ordering::Relaxed);
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
    /// The memory held by cached values, in bytes.
    pub(super) usage: AtomicUsize,
    /// The memory of all values with a charge that are alive, in bytes.
    pub(super) charged: AtomicUsize,
    /// Ring entries whose slot array is gone: a hint when to sweep the ring.
    pub(super) dead: AtomicUsize,
    hits: [Counter; COUNTERS],
    /// Lookups that did not find their block.
    pub(super) misses: AtomicU64,
}

impl Shared {
    /// Lookups that found their block.
    pub(super) fn hits(&self) -> u64 {
        self.hits.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

const COUNTERS: usize = 16;

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

thread_local! {
    static COUNTER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which counter this thread adds to.
#[inline]
fn counter_index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    COUNTER.with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(NEXT.fetch_add(1, Ordering::Relaxed) % COUNTERS);
        }
        cell.get()
    })
}
