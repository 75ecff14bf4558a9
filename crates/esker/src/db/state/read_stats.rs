//! What gets have searched of a keyspace, and whether they suffer from the number of its runs.
//!
//! A get goes through the runs, newest first. A filter saves nearly every search but the last; without one each run costs a block. When gets search so many
//! tables in vain that merging them costs less, compaction keeps fewer runs (`job/pick/lazy.rs`), until they do not any more. The measure is what is flushed: that is
//! what merging is going to write again.

use crate::base::counter::Counter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Gets suffer if, for each entry that is flushed, they search so many tables in vain. To have half as many runs costs five writes more of an entry or so, a
/// microsecond in the background. A search in vain costs a third of one in memory, and several where blocks are read from files, which is where gets suffer most.
const VAIN_SEARCHES: u64 = 2;

/// Of one keyspace. See the module's comment.
#[derive(Debug, Default)]
pub struct Searches {
    /// Tables searched, their filters asked.
    tables: Counter,
    /// Those of them that had nothing for the key.
    vain: Counter,
    /// How many those were at the last flush.
    vain_before: AtomicU64,
    gets_suffer: AtomicBool,
}

impl Searches {
    /// Notes that a table is searched.
    #[inline]
    pub fn begin(&self) {
        self.tables.increment();
    }

    /// Notes that there was nothing in it.
    #[inline]
    pub fn in_vain(&self) {
        self.vain.increment();
    }

    /// Tables searched by gets so far.
    pub fn tables(&self) -> u64 {
        self.tables.sum()
    }

    /// Notes a flush of so many entries. For whoever flushes: one thread at a time.
    pub fn note_flush(&self, entries: u64) {
        let vain = self.vain.sum();
        let before = self.vain_before.swap(vain, Relaxed);
        self.gets_suffer.store(vain - before >= VAIN_SEARCHES.saturating_mul(entries.max(1)), Relaxed);
    }

    /// Whether gets suffered at the last flush.
    pub fn gets_suffer(&self) -> bool {
        self.gets_suffer.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gets_suffer_from_searches_in_vain_for_each_entry_flushed() {
        let searches = Searches::default();
        let search = |vain: u64| {
            (0..100).for_each(|_| searches.begin());
            (0..vain).for_each(|_| searches.in_vain());
        };
        let suffering = || {
            searches.note_flush(10);
            searches.gets_suffer()
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
