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
mod slots;

use parking_lot::Mutex;
use ring::Ring;
use slots::Shared;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use slots::{Hit, Slots, Weigh};

/// A cache of `T` with a byte budget.
pub struct Cache<T: Weigh> {
    budget: usize,
    shared: Arc<Shared>,
    ring: Mutex<Ring<T>>,
}

impl<T: Weigh> Cache<T> {
    /// An empty cache that keeps at most `budget_bytes`; with 0 it keeps nothing.
    pub fn new(budget_bytes: usize) -> Cache<T> {
        Cache { budget: budget_bytes, shared: Arc::default(), ring: Mutex::new(Ring::new()) }
    }

    /// Slots for the `count` blocks of a table. Their memory is only taken when the first block is kept.
    pub fn slots(&self, count: usize) -> Arc<Slots<T>> {
        Arc::new(Slots::new(count, &self.shared))
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

    /// The memory held by cached values, in bytes.
    pub fn usage_bytes(&self) -> usize {
        self.shared.usage.load(Ordering::Relaxed)
    }

    /// Lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.shared.hits()
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

#[cfg(test)]
mod tests;
