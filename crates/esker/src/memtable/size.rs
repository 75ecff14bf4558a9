//! The part of a memtable between two keys, from its unsorted keys.

use super::store::{KeySample, Memtable};
use crate::base::key_order::KeyOrder;
use std::sync::atomic::Ordering;

/// Slots of the index that are read.
const SAMPLE: usize = 4096;
/// Where not every slot is read, a sample stands for the memtable until that has grown by
/// `1/GROWTH`.
const GROWTH: usize = 1024;
/// Questions about the same keys after which their sample is sorted: a sort costs as much as half
/// a dozen questions without one, and then a question next to nothing.
const WORTH_SORTING: u32 = 3;

impl Memtable {
    /// Whether any key, or a part of a range tombstone, lies from `smallest` to `largest`, both
    /// included. Looks at every key at worst.
    pub fn touches(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let order = self.order();
        let sets = if self.has_range_tombstones() { self.range_tombstones() } else { Vec::new() };
        let mut fragments = sets.iter().flat_map(|set| set.fragments());
        if fragments.any(|found| !order.less(largest, &found.start) && order.is_before_end(smallest, &found.end)) {
            return true;
        }
        let mut found = false;
        self.index.sample(usize::MAX, |offset| {
            let key = self.arena.entry(offset).key();
            found |= !order.less(key, smallest) && !order.less(largest, key);
            !found
        });
        found
    }

    /// About the bytes that keys from `start` on and before `end` take. Where the index has few
    /// slots every key counts, otherwise those of a sample of some thousand that their hashes
    /// choose. A key that is being written meanwhile may be missing until others were.
    pub fn approximate_bytes(&self, start: &[u8], end: Option<&[u8]>) -> u64 {
        let bytes = self.end.load(Ordering::Relaxed) as u64;
        self.share(bytes, start, end)
    }

    /// About the number of entries between them, in the same way.
    pub fn approximate_entries(&self, start: &[u8], end: Option<&[u8]>) -> u64 {
        self.share(self.live() as u64, start, end)
    }

    /// What the keys from `start` on and before `end` have of `whole`.
    fn share(&self, whole: u64, start: &[u8], end: Option<&[u8]>) -> u64 {
        let (inside, seen) = match self.order() {
            // Nothing of the program's is called under the lock.
            KeyOrder::Bytewise => self.counted_in_order(start, end),
            KeyOrder::Marked(_) => None,
        }
        .unwrap_or_else(|| self.counted(start, end));
        // An arena has at most 32 GiB, and a sample some thousand keys: the product fits.
        whole * inside / seen.max(1)
    }

    /// Sampled keys from `start` on and before `end`, and all of them.
    fn counted(&self, start: &[u8], end: Option<&[u8]>) -> (u64, u64) {
        let order = self.order();
        let (mut seen, mut inside) = (0u64, 0u64);
        self.index.sample(SAMPLE, |offset| {
            let key = self.arena.entry(offset).key();
            seen += 1;
            let is_inside = !order.less(key, start) && end.is_none_or(|end| order.less(key, end));
            inside += u64::from(is_inside);
            true
        });
        (inside, seen)
    }

    /// As [`Memtable::counted`], in the bytewise order and by a search; `None` at the first
    /// questions about these keys.
    fn counted_in_order(&self, start: &[u8], end: Option<&[u8]>) -> Option<(u64, u64)> {
        let mut sample = self.sample.lock();
        let now = self.end();
        let allowance = if self.index.slots() <= SAMPLE { 0 } else { sample.end / GROWTH };
        if sample.end == 0 || now > sample.end + allowance {
            *sample = KeySample { end: now, ..KeySample::default() };
        }
        if sample.questions < WORTH_SORTING {
            sample.questions += 1;
            return None;
        }
        let sorted = sample.sorted.get_or_insert_with(|| self.sorted_sample());
        let before = |bound: &[u8]| sorted.partition_point(|&at| self.arena.stored(at).key() < bound);
        let inside = end.map_or(sorted.len(), before).saturating_sub(before(start));
        Some((inside as u64, sorted.len() as u64))
    }

    fn sorted_sample(&self) -> Vec<u32> {
        // With the keys at hand, which a comparison would look for in the arena.
        let mut sampled: Vec<(&[u8], u32)> = Vec::new();
        self.index.sample(SAMPLE, |offset| {
            sampled.push((self.arena.entry(offset).key(), (offset / 8) as u32));
            true
        });
        sampled.sort_unstable();
        sampled.into_iter().map(|(_, at)| at).collect()
    }
}
