//! What gets have searched of a keyspace, and whether they suffer from the number of its runs.
//!
//! A get goes through the runs, newest first. A filter saves nearly every search but the last;
//! without one each run costs a block. When gets search so many tables in probe_misses that merging
//! them costs less, compaction keeps fewer runs (`job/pick/lazy.rs`), until they do not any more.
//! The measure is what is flushed: that is what merging is going to write again.

use crate::base::counter::Counter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Gets suffer if, for each entry that is flushed, they search so many tables in probe_misses. To
/// have half as many runs costs five writes more of an entry or so, a microsecond in the
/// background. A search in probe_misses costs a third of one in memory, and several where blocks
/// are read from files, which is where gets suffer most.
const VAIN_SEARCHES: u64 = 2;

/// Of one keyspace. See the module's comment.
#[derive(Debug, Default)]
pub struct ReadStats {
    /// Tables searched, their filters asked.
    tables: Counter,
    /// Those of them that had nothing for the key.
    probe_misses: Counter,
    /// How many those were at the last flush.
    probe_misses_before: AtomicU64,
    high_read_amp: AtomicBool,
}

impl ReadStats {
    /// Notes that a table is searched.
    #[inline]
    pub fn begin(&self) {
        self.tables.increment();
    }

    /// Notes that there was nothing in it.
    #[inline]
    pub fn probe_missed(&self) {
        self.probe_misses.increment();
    }

    /// Tables searched by gets so far.
    pub fn tables(&self) -> u64 {
        self.tables.sum()
    }

    /// Notes a flush of so many entries. For whoever flushes: one thread at a time.
    pub fn note_flush(&self, entries: u64) {
        let probe_misses = self.probe_misses.sum();
        let before = self.probe_misses_before.swap(probe_misses, Relaxed);
        self.high_read_amp.store(probe_misses - before >= VAIN_SEARCHES.saturating_mul(entries.max(1)), Relaxed);
    }

    /// Whether gets suffered at the last flush.
    pub fn high_read_amp(&self) -> bool {
        self.high_read_amp.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gets_suffer_from_searches_in_vain_for_each_entry_flushed() {
        let searches = ReadStats::default();
        let search = |probe_misses: u64| {
            (0..100).for_each(|_| searches.begin());
            (0..probe_misses).for_each(|_| searches.probe_missed());
        };
        let suffering = || {
            searches.note_flush(10);
            searches.high_read_amp()
        };
        assert!(!suffering(), "nobody reads");
        search(19);
        assert!(!suffering());
        search(20);
        assert!(suffering());
        assert_eq!(searches.tables(), 200);
        assert!(!suffering(), "only what came since the last flush counts");
    }
}
