//! What gets and scans have searched of a keyspace, and whether they suffer from the number of its runs.
//!
//! A get goes through the runs, newest first. A filter saves nearly every search but the last; without one each run costs a block. When gets search so many
//! tables in vain that merging them costs less, compaction keeps fewer runs (`job/pick/lazy.rs`), until they do not any more. The measure is what is flushed: that is
//! what merging is going to write again.
//!
//! A search of a scan looks into every run, and no filter helps. While scans do that beside writers, the writers are not let so far ahead of compaction (`write_delay.rs`).

use crate::base::counter::Counter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Gets suffer if, for each entry that is flushed, they search so many tables in vain. To have half as many runs costs five writes more of an entry or so, a
/// microsecond in the background. A search in vain costs a third of one in memory, and several where blocks are read from files, which is where gets suffer most.
const VAIN_SEARCHES: u64 = 2;

/// Scans suffer if they search the runs more than once for so many entries that are flushed. Beside a writer that is let ahead a search takes some 70 microseconds more; to hold
/// the writer back costs it 0.3 for each entry. What is counted must not depend on how many runs there are, or holding back would end as soon as it helps.
const ENTRIES_FOR_A_SCAN: u64 = 256;

/// How long between two looks whether scans still search: one that waits for its turn on a processor has not ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How much was written to a memtable and searched by scans at a point of time.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    at: Instant,
    keys: usize,
    scans: u64,
}

/// Of one keyspace. See the module's comment.
#[derive(Debug, Default)]
pub struct Searches {
    /// Tables searched, their filters asked.
    tables: Counter,
    /// Those of them that had nothing for the key.
    vain: Counter,
    /// Searches of scans, each in all runs.
    scans: Counter,
    /// How many those were at the last flush.
    vain_before: AtomicU64,
    scans_before: AtomicU64,
    gets_suffer: AtomicBool,
    scans_suffer: AtomicBool,
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

    /// Notes that a scan searches all runs.
    #[inline]
    pub fn scan(&self) {
        self.scans.increment();
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
        let scans = self.scans.sum();
        let before = self.scans_before.swap(scans, Relaxed);
        self.scans_suffer.store(scans - before > entries / ENTRIES_FOR_A_SCAN, Relaxed);
    }

    /// The state when a memtable has so many keys.
    pub fn look(&self, at: Instant, keys: usize) -> Look {
        Look { at, keys, scans: self.scans.sum() }
    }

    /// Looks again whether scans suffer, when the memtable has so many keys: whoever writes is held back for them, and has much to write before the next flush. Call with
    /// the writer lock.
    pub fn look_again(&self, last: &mut Look, at: Instant, keys: usize) {
        if at.saturating_duration_since(last.at) < BETWEEN_LOOKS {
            return;
        }
        let now = self.look(at, keys);
        if now.scans - last.scans <= keys.saturating_sub(last.keys) as u64 / ENTRIES_FOR_A_SCAN {
            self.scans_suffer.store(false, Relaxed);
        }
        *last = now;
    }

    /// Whether scans suffered at the last flush, and have gone on.
    pub fn scans_suffer(&self) -> bool {
        self.scans_suffer.load(Relaxed)
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

    #[test]
    fn scans_suffer_when_they_search_beside_writers() {
        let searches = Searches::default();
        let suffering = |scans: u64| {
            (0..scans).for_each(|_| searches.scan());
            searches.note_flush(10 * ENTRIES_FOR_A_SCAN);
            searches.scans_suffer()
        };
        assert!(!suffering(0), "nobody scans");
        assert!(!suffering(10));
        assert!(suffering(11));
        assert!(!suffering(10), "only what came since the last flush counts");
    }

    #[test]
    fn scans_that_have_ended_are_not_waited_for_until_the_next_flush() {
        let searches = Searches::default();
        let scan = |count: u64| (0..count).for_each(|_| searches.scan());
        scan(2);
        searches.note_flush(ENTRIES_FOR_A_SCAN);
        let begun = Instant::now();
        let mut look = searches.look(begun, 100);
        searches.look_again(&mut look, begun + BETWEEN_LOOKS / 2, 10_000);
        assert!(searches.scans_suffer(), "too soon to tell");
        scan(1 + 10_000 / ENTRIES_FOR_A_SCAN);
        searches.look_again(&mut look, begun + BETWEEN_LOOKS, 10_100);
        assert!(searches.scans_suffer(), "they go on");
        searches.look_again(&mut look, begun + 2 * BETWEEN_LOOKS, 10_100);
        assert!(!searches.scans_suffer(), "they have ended");
    }
}
