//! The part of a memtable between two keys, from its unsorted keys.

use super::store::Memtable;
use std::sync::atomic::Ordering;

/// Slots of the index that are read.
const SAMPLE: usize = 4096;

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

    /// About the bytes that keys from `start` on and before `end` take. Exact in keys for a small
    /// memtable, otherwise from a sample of some thousand keys that their hashes choose.
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
        let order = self.order();
        let (mut seen, mut inside) = (0u64, 0u64);
        self.index.sample(SAMPLE, |offset| {
            let key = self.arena.entry(offset).key();
            seen += 1;
            let is_inside = !order.less(key, start) && end.is_none_or(|end| order.less(key, end));
            inside += u64::from(is_inside);
            true
        });
        // An arena has at most 4 GiB: the product fits.
        whole * inside / seen.max(1)
    }
}
