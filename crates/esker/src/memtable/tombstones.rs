//! The range tombstones of a memtable, apart from its entries.
//!
//! The one writer adds them to a list of immutable sets, of which each is at least about twice as
//! large as the next, so that a tombstone is copied a logarithm of times. Readers load the list;
//! while it is empty, one counter says so.
//!
//! Of several tombstones over a key, older ones that no reader needs are left out. A registered
//! reader needs the newest one at or before its own sequence number. One that is not registered
//! takes the last write of all finished batches as its own, `finished` below, for what the batch at
//! work has not written itself (`search_covered` in `db/read/get.rs`); it may be late, and what it
//! needs be left out. It can tell, by this promise of [`TombstoneSets::add`]:
//!
//! * A tombstone is left out only for a newer one over the same keys that is of a finished batch.
//!   The end of that batch was published (`Inner::last_sequence`) before the set without the older
//!   one is.
//!
//! So a reader that has loaded `finished`, then looked a tombstone up, and then finds `finished` as
//! it was, has missed none: a set that lacks what it needs would have shown it a later end. If the
//! end has moved, it has missed none either as long as no tombstone newer than its own number lies
//! over the key: something took the place of whatever was left out. Otherwise it begins again; each
//! time a batch was finished, so writers as a whole go on.
//!
//! The interleavings are tried by `db/interleavings/tombstones.rs`.

use crate::base::key::Sequence;
use crate::base::range_tombstone::RangeTombstones;
use crate::base::sync::{ArcSwap, AtomicUsize};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module's comment.
#[derive(Default)]
pub struct TombstoneSets {
    /// Tombstones ever added. Stored after `sets`.
    added: AtomicUsize,
    bytes: AtomicUsize,
    /// Largest first.
    sets: ArcSwap<Vec<Arc<RangeTombstones>>>,
}

impl TombstoneSets {
    /// Whether there ever was one.
    #[inline]
    pub fn any(&self) -> bool {
        self.added.load(Ordering::Acquire) > 0
    }

    /// The newest over `key` at or before `max_sequence`; 0 if there is none.
    #[inline]
    pub fn cover(&self, key: &[u8], max_sequence: Sequence) -> Sequence {
        if self.any() { self.search(key, max_sequence) } else { 0 }
    }

    #[inline(never)]
    fn search(&self, key: &[u8], max_sequence: Sequence) -> Sequence {
        self.sets.load().iter().map(|set| set.cover(key, max_sequence)).max().unwrap_or(0)
    }

    /// The memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// All of them, in sets that may overlap.
    pub fn sets(&self) -> Vec<Arc<RangeTombstones>> {
        self.sets.load().to_vec()
    }

    /// Adds one. For the one writer only. `newest_snapshot`: what the newest live snapshot reads
    /// at; `finished`: the last write of the batches before this one.
    pub fn add(&self, new: RangeTombstones, newest_snapshot: Sequence, finished: Sequence) {
        let mut sets = self.sets();
        let mut new = Arc::new(new);
        // Not the sum of all sets, which would make each tombstone cost as much as there are.
        let mut bytes = self.bytes();
        while let Some(last) = sets.pop_if(|last| new.fragments().len() * 2 >= last.fragments().len()) {
            bytes -= last.memory_bytes();
            let both = RangeTombstones::union([&*last, &*new]);
            new = Arc::new(both.reduced(|newest_first| needed(newest_first, newest_snapshot, finished)));
        }
        self.bytes.store(bytes + new.memory_bytes(), Ordering::Relaxed);
        sets.push(new);
        self.sets.store(Arc::new(sets));
        self.added.store(self.added.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// Those of the batch that is not finished, between which it may have written the same keys; the
/// newest of the finished ones; and all that snapshots may need.
fn needed(newest_first: &[Sequence], newest_snapshot: Sequence, finished: Sequence) -> Vec<Sequence> {
    let old = newest_first.partition_point(|&sequence| sequence > newest_snapshot);
    let (new, old) = newest_first.split_at(old);
    let unfinished = new.iter().take_while(|&&sequence| sequence > finished);
    let finished = new.iter().find(|&&sequence| sequence <= finished);
    unfinished.chain(finished).chain(old).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::base::range_tombstone::tombstone_bytes;

    #[test]
    fn bytes_are_those_of_all_sets() {
        let tombstones = TombstoneSets::default();
        for sequence in 1..=300u64 {
            // Some lie over earlier ones, which are left out or divided.
            let start = (sequence * 7919 % 100).to_be_bytes();
            let end = (sequence * 7919 % 100 + sequence % 5 + 1).to_be_bytes();
            tombstones.add(RangeTombstones::one(&start, &end, sequence), sequence / 2, sequence - 1);
            let sum: usize = tombstones.sets().iter().map(|set| set.memory_bytes()).sum();
            assert_eq!(tombstones.bytes(), sum, "with {sequence}");
        }
    }

    #[test]
    fn none_takes_more_than_was_reserved_for_it() {
        // From all on the same keys to none over another.
        for (seed, keys) in [(1, 10), (2, 1000), (3, 1 << 40)] {
            let (tombstones, mut random) = (TombstoneSets::default(), Random::new(seed));
            let mut reserved = 0;
            for sequence in 1..=1000u64 {
                let start = random.below(keys);
                let end = start + 1 + random.below(20);
                let (start, end) = (start.to_be_bytes(), end.to_be_bytes());
                tombstones.add(RangeTombstones::one(&start, &end, sequence), 0, sequence - 1);
                reserved += tombstone_bytes(start.len(), end.len());
                assert!(tombstones.bytes() <= reserved, "seed {seed}: {} bytes of {reserved}", tombstones.bytes());
            }
        }
    }
}
