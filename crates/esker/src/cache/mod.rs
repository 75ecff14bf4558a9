//! The block cache: one byte budget over all tables, no lock on a hit.
//!
//! Every table has an array with one slot per block, so that a lookup is an index and not a hash. A hit reads
//! the slot and sets its flag if it was clear; it allocates nothing and writes no shared line that is already
//! as it should be. Inserting and evicting happen under one mutex, on a CLOCK ring over the slots of all
//! tables.
//!
//! Scans do not flush the cache: a new block enters with its flag clear, so that one which is never asked for
//! again goes at the next turn of the hand, and callers that read in bulk do not insert at all.

mod ring;

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;
use ring::Ring;
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

/// A cache of `T` with a byte budget.
pub struct Cache<T: Weigh> {
    budget: usize,
    shared: Arc<Shared>,
    ring: Mutex<Ring<T>>,
}

/// What the slot arrays share with the cache they belong to.
#[derive(Default)]
struct Shared {
    usage: AtomicUsize,
    /// Ring entries whose slot array is gone: a hint when to sweep the ring.
    dead: AtomicUsize,
    hits: [Counter; COUNTERS],
    misses: AtomicU64,
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

impl<T: Weigh> Cache<T> {
    /// An empty cache that keeps at most `budget_bytes`; with 0 it keeps nothing.
    pub fn new(budget_bytes: usize) -> Cache<T> {
        Cache { budget: budget_bytes, shared: Arc::default(), ring: Mutex::new(Ring::new()) }
    }

    /// Slots for the `count` blocks of a table. Their memory is only taken when the first block is kept.
    pub fn slots(&self, count: usize) -> Arc<Slots<T>> {
        Arc::new(Slots { count, slots: OnceLock::new(), shared: Arc::clone(&self.shared) })
    }

    /// Keeps `value` in slot `index`, evicting others as needed, and returns what the slot holds from now on:
    /// `value`, or what another thread put there first.
    pub fn insert(&self, slots: &Arc<Slots<T>>, index: usize, value: Arc<T>) -> Arc<T> {
        let weight = value.weight();
        if weight > self.budget {
            return value;
        }
        let mut ring = self.ring.lock();
        let Some(slot) = slots.allocate().get(index) else { return value };
        if let Some(present) = slot.value.load_full() {
            return present;
        }
        if self.shared.dead.load(Ordering::Relaxed) > ring.len() / 2 {
            ring.sweep();
            self.shared.dead.store(0, Ordering::Relaxed);
        }
        while self.shared.usage.load(Ordering::Relaxed) + weight > self.budget {
            match ring.evict() {
                Some(freed) => self.shared.usage.fetch_sub(freed, Ordering::Relaxed),
                // What is left is being freed by tables that are just closing: there is no room yet.
                None => return value,
            };
        }
        slot.referenced.store(false, Ordering::Relaxed);
        slot.value.store(Some(Arc::clone(&value)));
        self.shared.usage.fetch_add(weight, Ordering::Relaxed);
        ring.push(slots, index);
        value
    }

    /// The budget in bytes.
    pub fn budget_bytes(&self) -> usize {
        self.budget
    }

    /// The memory held by cached values, in bytes.
    pub fn usage_bytes(&self) -> usize {
        self.shared.usage.load(Ordering::Relaxed)
    }

    /// Lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.shared.hits.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }

    /// Lookups that did not.
    pub fn misses(&self) -> u64 {
        self.shared.misses.load(Ordering::Relaxed)
    }
}

impl<T: Weigh> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("budget", &self.budget)
            .field("usage", &self.usage_bytes())
            .finish_non_exhaustive()
    }
}

/// The places of one table's blocks in the cache. Dropping the last reference frees what is cached there.
pub struct Slots<T: Weigh> {
    count: usize,
    slots: OnceLock<Box<[Slot<T>]>>,
    shared: Arc<Shared>,
}

struct Slot<T> {
    /// Stored to only under the ring's mutex, or by `drop`.
    value: ArcSwapOption<T>,
    /// Asked for since the hand last passed.
    referenced: AtomicBool,
}

impl<T: Weigh> Slots<T> {
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

    fn allocate(&self) -> &[Slot<T>] {
        self.slots.get_or_init(|| {
            (0..self.count)
                .map(|_| Slot { value: ArcSwapOption::empty(), referenced: AtomicBool::new(false) })
                .collect()
        })
    }

    /// Empties slot `index` unless it was asked for since the last call; returns the weight freed. Without
    /// `spare` the flag is not looked at.
    fn reclaim(&self, index: usize, spare: bool) -> Option<usize> {
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

#[cfg(test)]
mod tests;
