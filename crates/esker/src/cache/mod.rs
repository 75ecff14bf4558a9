//! The block cache: one byte budget over all tables, no lock on a hit.
//!
//! Every table has an array with one slot per block, so that a lookup is an array access and not a
//! hash. A hit reads the slot and sets its flag if it was clear; it allocates nothing and writes no
//! shared line that is already as it should be. Inserting and evicting happen under one mutex, on a
//! CLOCK ring over the slots of all tables.
//!
//! Scans do not flush the cache: a new block enters with its flag clear, so that one which is never
//! requested again is evicted at the next turn of the hand, and callers that read in bulk do not
//! insert at all.
//!
//! The memory of a value that leaves the cache is kept for the next one (`buffer_pool.rs`): both
//! together stay within the budget.
//!
//! A full cache keeps one in [`ADMITTED_ONE_IN`] of the blocks that are offered: replacing a block
//! for each costs more than decompressing it once more. A block that is requested often is soon
//! offered often enough; among the others it does not matter which ones are kept.

mod buffer_pool;
mod ring;
mod slots;

use crate::base::sync::{AtomicU64, Mutex};
use ring::Ring;
use slots::Shared;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use slots::{Charge, Hit, Slots, Weigh};

/// See the module's comment.
const ADMITTED_ONE_IN: u64 = 8;

/// So many values are evicted for a new one without an effect: readers hold them, and their bytes
/// count as long as they do.
const MOST_IN_VAIN: u32 = 16;

/// A cache of `T` with a byte budget.
pub struct Cache<T: Weigh> {
    shared: Arc<Shared>,
    ring: Mutex<Ring<T>>,
    /// Values offered while there was no room.
    offered: AtomicU64,
}

impl<T: Weigh> Cache<T> {
    /// An empty cache that keeps at most `budget_bytes`; with 0 it keeps nothing.
    pub fn new(budget_bytes: usize) -> Cache<T> {
        Cache::with(Shared::new(budget_bytes, false))
    }

    fn with(shared: Shared) -> Cache<T> {
        Cache { shared: Arc::new(shared), ring: Mutex::new(Ring::new()), offered: AtomicU64::new(0) }
    }

    /// As `new`, but charged values that readers hold outside the cache ([`Cache::charge`]) use up
    /// the budget as well.
    pub fn counting_pinned(budget_bytes: usize) -> Cache<T> {
        Cache::with(Shared::new(budget_bytes, true))
    }

    /// Changes the budget, evicting what no longer fits.
    pub fn set_budget(&self, budget_bytes: usize) {
        let mut ring = self.ring.lock();
        self.shared.budget.store(budget_bytes, Ordering::Relaxed);
        self.make_room(&mut ring, u32::MAX, || self.has_room(0));
        self.shared.trim_pool();
    }

    /// The most bytes kept.
    pub fn budget_bytes(&self) -> usize {
        self.shared.budget.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as alive until the charge is dropped, in the cache or outside. Every value
    /// inserted should hold its charge.
    pub fn charge(&self, bytes: usize) -> Charge {
        Charge::new(&self.shared, bytes)
    }

    /// Bytes that are charged: those cached, and those that readers hold.
    pub fn charged_bytes(&self) -> usize {
        self.shared.charged.load(Ordering::Relaxed)
    }

    /// Evicts until `has_room`; false if that fails: with nothing left to evict, or after as many
    /// values that readers hold as `most_pinned` allows.
    fn make_room(&self, ring: &mut Ring<T>, most_pinned: u32, has_room: impl Fn() -> bool) -> bool {
        let mut pinned = 0;
        while !has_room() {
            let used = self.shared.used_bytes();
            if pinned == most_pinned || !ring.evict() {
                return false;
            }
            pinned = if self.shared.used_bytes() < used { 0 } else { pinned + 1 };
        }
        true
    }

    /// Whether `weight` more fits.
    fn has_room(&self, weight: usize) -> bool {
        // What is to be inserted is charged already.
        let needed = if self.shared.counts_pinned { self.charged_bytes() } else { self.usage_bytes() + weight };
        needed <= self.budget_bytes()
    }

    /// Whether a value of this weight that is yet to be made would be kept: otherwise there may be
    /// no need to make it. Asked once for each.
    pub fn admits(&self, weight: usize) -> bool {
        let used = self.shared.used_bytes();
        weight <= self.budget_bytes() && (used + weight <= self.budget_bytes() || self.is_admitted())
    }

    /// Whether a value that is offered to the full cache is to take the place of others: as if by
    /// dice (SplitMix64), so that no reader's pattern falls in with it.
    fn is_admitted(&self) -> bool {
        let count = self.offered.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mut dice = count.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        dice = (dice ^ (dice >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        dice = (dice ^ (dice >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (dice ^ (dice >> 31)) < u64::MAX / ADMITTED_ONE_IN
    }

    /// Slots for the `count` blocks of a table. Their memory is only taken when the first block is
    /// kept.
    pub fn slots(&self, count: usize) -> Arc<Slots<T>> {
        Arc::new(Slots::new(count, &self.shared))
    }

    /// Keeps `value`, which was admitted, in slot `index`, and returns what the slot holds from now
    /// on, or would: `value`, or what another thread put there first.
    pub fn insert(&self, slots: &Arc<Slots<T>>, index: usize, value: Arc<T>) -> Arc<T> {
        let weight = value.weight();
        if weight > self.budget_bytes() {
            return value;
        }
        let mut ring = self.ring.lock();
        let Some(slot) = slots.allocate().get(index) else { return value };
        if let Some(present) = slot.present() {
            return present;
        }
        if self.shared.dead.load(Ordering::Relaxed) > ring.len() / 2 {
            ring.sweep();
            self.shared.dead.store(0, Ordering::Relaxed);
        }
        if !self.make_room(&mut ring, MOST_IN_VAIN, || self.has_room(weight)) {
            // What is left is being freed by tables that are just closing, or is pinned: there is
            // no room yet.
            return value;
        }
        slot.fill(Arc::clone(&value));
        self.shared.usage.fetch_add(weight, Ordering::Relaxed);
        ring.push(slots, index);
        self.shared.trim_pool();
        value
    }

    /// Memory of at least so many bytes, with whatever was in it, for a value that was admitted: of
    /// one that has left the cache, if there is any. If the value has to take the place of others,
    /// those leave now.
    pub fn memory(&self, bytes: usize) -> Vec<u8> {
        let has_room = || self.shared.used_bytes() + bytes <= self.budget_bytes();
        if !has_room() && bytes <= self.budget_bytes() {
            self.make_room(&mut self.ring.lock(), MOST_IN_VAIN, has_room);
        }
        self.shared.pool.take(bytes)
    }

    /// Memory of values that have left the cache, kept for the next ones, in bytes.
    pub fn pooled_bytes(&self) -> usize {
        self.shared.pool.bytes()
    }

    /// The memory held by cached values, in bytes.
    pub fn usage_bytes(&self) -> usize {
        self.shared.usage.load(Ordering::Relaxed)
    }

    /// Lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.shared.hits.sum()
    }

    /// Lookups that did not.
    pub fn misses(&self) -> u64 {
        self.shared.misses.load(Ordering::Relaxed)
    }
}

impl<T: Weigh> Drop for Cache<T> {
    fn drop(&mut self) {
        // Values that readers still hold keep what the cache shares with them, but not what it has
        // kept for others.
        self.shared.budget.store(0, Ordering::Relaxed);
        self.shared.trim_pool();
    }
}

impl<T: Weigh> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("budget", &self.budget_bytes())
            .field("usage", &self.usage_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
