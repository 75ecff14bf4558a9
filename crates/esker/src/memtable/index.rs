//! The hash index of a memtable: from a key to its newest entry. One writer, readers without locks.
//!
//! Open addressing over slots of 64 bits: the upper 32 bits of the key's hash, and the entry's
//! arena offset in units of eight bytes; 0 is an empty slot. A key's first slot is the highest bits
//! of that half hash, so that growing copies slots almost in order and never reads an entry. Slots
//! are never emptied. When three quarters are used the writer copies them to a table twice as large
//! and publishes that; the smaller ones stay until the memtable goes, for the readers that may
//! still be in them. A table that is made for as many keys as an earlier memtable had is at most
//! two thirds full with them: it does not grow for a few keys more, which in a large memtable would
//! stall every writer.

use crate::base::memory::{Memory, MemoryPool};
use crate::base::prefetch::prefetch_address;
use crate::base::sync::{AtomicPtr, AtomicU64, Mutex, raw};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// With few slots, few keys make an index grow.
const SMALLEST_BITS: u32 = if cfg!(esker_loom) { 2 } else { 6 };

struct Slots {
    /// A slot's index is the half hash shifted right by this.
    shift: u32,
    /// Slots less one: their number is a power of two.
    mask: usize,
    memory: Memory,
}

impl Slots {
    /// A table on the heap, owned by the holder of the pointer.
    fn new(bits: u32, pool: &MemoryPool) -> NonNull<Slots> {
        let slots = 1usize << bits;
        let slots = Slots { shift: 32 - bits, mask: slots - 1, memory: pool.take_zeroed(slots * 8) };
        raw::begin(slots.memory.start().as_ptr(), slots.mask + 1);
        NonNull::from(Box::leak(Box::new(slots)))
    }

    #[inline]
    fn slot(&self, at: usize) -> &AtomicU64 {
        assert!(at <= self.mask);
        // SAFETY: the memory has eight bytes for each slot (checked), is aligned to 64 and was
        // zeroed, lives as long as `self`, and is only ever reached in this way.
        unsafe { raw::word(self.memory.start().as_ptr().add(at * 8)) }
    }

    fn slots(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..=self.mask).map(|at| self.slot(at))
    }

    /// The slots from the first one for `half_hash` on, around the end.
    #[inline]
    fn probe(&self, half_hash: u32) -> impl Iterator<Item = &AtomicU64> {
        let first = (half_hash >> self.shift) as usize;
        (0..=self.mask).map(move |step| self.slot((first + step) & self.mask))
    }
}

#[inline]
fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[inline]
fn pack(half_hash: u32, offset: usize) -> u64 {
    u64::from(half_hash) << 32 | (offset / 8) as u64
}

#[inline]
fn offset_of(slot: u64) -> usize {
    (slot as u32) as usize * 8
}

/// The number of slots that `keys` keys need, as a power of two.
fn bits_for(keys: usize) -> u32 {
    (keys.saturating_mul(3) / 2 + 1).next_power_of_two().trailing_zeros().clamp(SMALLEST_BITS, 31)
}

/// See the module's comment.
pub struct Index {
    pool: Arc<MemoryPool>,
    current: AtomicPtr<Slots>,
    /// Every table ever published, the last one current.
    tables: Mutex<Vec<Published>>,
}

/// Owns a table that readers may be in.
struct Published(NonNull<Slots>);

// SAFETY: it is an owning pointer to a `Slots`, which is itself `Send`.
unsafe impl Send for Published {}

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: made from a box in `Slots::new`, owned by this value alone, and dropped only with
        // the index, when no reader is left.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What the writer found.
pub enum Found<'a> {
    /// The key's newest entry is at this offset; the slot can be set to a newer one.
    Entry(usize, Slot<'a>),
    /// The key has no entry; the slot is free for it.
    Free(Slot<'a>),
}

/// A slot that the writer may set.
pub struct Slot<'a>(&'a AtomicU64, u32);

impl Slot<'_> {
    /// Publishes the entry at `offset`, which must be complete.
    #[inline]
    pub fn publish(self, offset: usize) {
        self.0.store(pack(self.1, offset), Ordering::Release);
    }
}

impl Index {
    /// An index that holds `expected` keys before it grows.
    pub fn new(expected: usize, pool: &Arc<MemoryPool>) -> Index {
        let slots = Slots::new(bits_for(expected), pool);
        let tables = Mutex::new(vec![Published(slots)]);
        Index { pool: Arc::clone(pool), current: AtomicPtr::new(slots.as_ptr()), tables }
    }

    /// Prefaults memory for the next table: the one that this index will grow to, if it is to grow
    /// before it holds `expected` keys, or else that of the next index for as many, if `ends_soon`.
    /// `used`: its keys so far. For the background.
    pub fn prepare_next(&self, used: usize, expected: usize, ends_soon: bool) {
        let slots = self.current().mask + 1;
        let will_grow = expected >= slots / 4 * 3;
        if will_grow && used * 3 >= slots {
            self.pool.prepare_zeroed(2 * slots * 8);
        } else if !will_grow && ends_soon {
            self.pool.prepare_zeroed(8 << bits_for(expected));
        }
    }

    #[inline]
    fn current(&self) -> &Slots {
        // SAFETY: the pointer was published with release after the table was complete, and every
        // published table lives in `tables`, from which nothing is removed before the index itself
        // is dropped.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> usize {
        let tables = self.tables.lock();
        // SAFETY: published tables live as long as the index.
        tables.iter().map(|table| unsafe { table.0.as_ref() }.memory.bytes()).sum()
    }

    /// Prefetches the first slots that `get` and `find` read for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let table = self.current();
        let first = (half(hash) >> table.shift) as usize;
        prefetch_address(table.memory.start().as_ptr().addr() + first * 8, 1);
    }

    /// The offset of the newest entry that `is_key` accepts among those whose half hash agrees.
    #[inline]
    pub fn get(&self, hash: u64, mut is_key: impl FnMut(usize) -> bool) -> Option<usize> {
        let half_hash = half(hash);
        for slot in self.current().probe(half_hash) {
            let value = slot.load(Ordering::Acquire);
            if value == 0 {
                return None;
            }
            if (value >> 32) as u32 == half_hash && is_key(offset_of(value)) {
                return Some(offset_of(value));
            }
        }
        None
    }

    /// Slots that there are, with keys and without.
    pub fn slots(&self) -> usize {
        self.current().mask + 1
    }

    /// Shows the newest entries of about `wanted` slots' keys, of all keys if there are no more
    /// slots, until `visit` returns false. Which ones, the hashes decide.
    pub fn sample(&self, wanted: usize, mut visit: impl FnMut(usize) -> bool) {
        let table = self.current();
        let step = (table.mask + 1).div_ceil(wanted.max(1));
        for slot in table.slots().step_by(step) {
            let value = slot.load(Ordering::Acquire);
            if value != 0 && !visit(offset_of(value)) {
                return;
            }
        }
    }

    /// As `get`, for the one writer, with the slot to set.
    #[inline]
    pub fn find(&self, hash: u64, mut is_key: impl FnMut(usize) -> bool) -> Found<'_> {
        let half_hash = half(hash);
        loop {
            for slot in self.current().probe(half_hash) {
                let value = slot.load(Ordering::Relaxed);
                if value == 0 {
                    return Found::Free(Slot(slot, half_hash));
                }
                if (value >> 32) as u32 == half_hash && is_key(offset_of(value)) {
                    return Found::Entry(offset_of(value), Slot(slot, half_hash));
                }
            }
            // Unreachable while `reserve` keeps slots free; growing is the right answer all the
            // same.
            self.grow();
        }
    }

    /// Makes room for one key more than the `used` ones. For the one writer.
    #[inline]
    pub fn reserve(&self, used: usize) {
        if used * 4 >= (self.current().mask + 1) * 3 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&self) {
        let old = self.current();
        let published = Published(Slots::new(33 - old.shift, &self.pool));
        // SAFETY: just made, and owned by `published`, which lives in `tables` from the end of this
        // function on.
        let larger = unsafe { published.0.as_ref() };
        for slot in old.slots() {
            let value = slot.load(Ordering::Relaxed);
            if value != 0
                && let Some(free) = larger.probe((value >> 32) as u32).find(|s| s.load(Ordering::Relaxed) == 0)
            {
                free.store(value, Ordering::Relaxed);
            }
        }
        self.current.store(published.0.as_ptr(), Ordering::Release);
        self.tables.lock().push(published);
    }
}
