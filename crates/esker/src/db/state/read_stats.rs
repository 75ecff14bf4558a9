//! Statistics of a keyspace's point reads: tables probed, and whether read amplification is high.
//!
//! A get goes through the runs, newest first. A filter saves nearly every probe but the last;
//! without one each run costs a block. When the probe misses of gets cost more than compacting the
//! runs would, compaction keeps fewer runs (`job/pick/lazy.rs`) until they no longer do. The
//! measure is the entries flushed: these are what compaction is going to write again.

use crate::base::counter::Counter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Read amplification is high at so many probe misses for each entry flushed. Halving the number of
/// runs costs about five more writes of an entry, a microsecond in the background. A probe miss
/// costs a third of a microsecond in memory, and several where blocks are read from files, which is
/// where read amplification hurts most.
const VAIN_SEARCHES: u64 = 2;

/// Of one keyspace. See the module's comment.
#[derive(Debug, Default)]
pub struct ReadStats {
    /// Tables probed after their filters were checked.
    tables: Counter,
    /// Probe misses: those of them without an entry for the key.
    probe_misses: Counter,
    /// How many those were at the last flush.
    probe_misses_before: AtomicU64,
    high_read_amp: AtomicBool,
}

impl ReadStats {
    /// Notes that a table is probed.
    #[inline]
    pub fn begin(&self) {
        self.tables.increment();
    }

    /// Notes that the probe was a miss.
    #[inline]
    pub fn probe_missed(&self) {
        self.probe_misses.increment();
    }

    /// Tables searched by gets so far.
    pub fn tables(&self) -> u64 {
        self.tables.sum()
    }

    /// Notes a flush of so many entries. Called by the thread that flushes: one at a time.
    pub fn note_flush(&self, entries: u64) {
        let probe_misses = self.probe_misses.sum();
        let before = self.probe_misses_before.swap(probe_misses, Relaxed);
        self.high_read_amp.store(probe_misses - before >= VAIN_SEARCHES.saturating_mul(entries.max(1)), Relaxed);
    }

    /// Whether read amplification was high at the last flush.
    pub fn high_read_amp(&self) -> bool {
        self.high_read_amp.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_misses_count_for_each_entry_flushed() {
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
