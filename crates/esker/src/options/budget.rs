//! Derives the sizes of the parts of a database from its memory budget.
//!
//! ```text
//! budget := memtables (at most 1/2)  work of flush and compaction (1/8)  indexes  filters  pinned  cache (the rest)
//! ```

use super::Options;
use super::origin::Origin;

/// No table is aimed at more, whatever the options say: its index and its filter are in memory.
const LARGEST_TARGET_BYTES: u64 = 1 << 30;

/// Memtables of one keyspace that are in memory under load: the active one, one being flushed, and
/// one that waits or fills meanwhile.
const MEMTABLES_PER_KEYSPACE: usize = 3;

/// What all memtables may take together: half of the budget.
pub(super) fn memtable_share(budget: usize) -> usize {
    budget / 2
}

/// What is set aside for flush and compaction: sorting, the filter and index of the table being
/// written, reading ahead.
pub fn working_memory(budget: usize) -> usize {
    budget / 8
}

/// What is set aside for the memtables of so many keyspaces.
pub fn memtable_reservation(options: &Options, keyspaces: usize) -> usize {
    let needed = options.write_buffer_bytes.saturating_mul(MEMTABLES_PER_KEYSPACE).saturating_mul(keyspaces.max(1));
    memtable_share(options.memory_budget_bytes).min(needed)
}

impl Options {
    /// What the memtables of all keyspaces may take together, if there is a budget.
    pub(crate) fn memtable_limit_bytes(&self) -> Option<usize> {
        (self.memory_budget_bytes > 0).then(|| memtable_share(self.memory_budget_bytes))
    }

    /// These options with the sizes that follow from the memory budget in place of those that were
    /// not set, and none larger than the engine makes it.
    pub(crate) fn resolved(&self) -> Options {
        let mut options = self.clone();
        options.target_file_bytes = options.target_file_bytes.min(LARGEST_TARGET_BYTES);
        let budget = self.memory_budget_bytes;
        if budget == 0 {
            return options;
        }
        // Two of them, the active one and the one being flushed, are the share of all memtables.
        let (buffer, file, segment) = (budget / 4, (budget / 8).max(1 << 20) as u64, (budget / 16).max(1 << 20) as u64);
        if options.is_free("write_buffer_bytes") && buffer < options.write_buffer_bytes {
            options.write_buffer_bytes = buffer;
            options.origins.set("write_buffer_bytes", Origin::Budget);
        }
        if options.is_free("target_file_bytes") && file < options.target_file_bytes {
            options.target_file_bytes = file;
            options.origins.set("target_file_bytes", Origin::Budget);
        }
        if options.is_free("wal_segment_bytes") && segment < options.wal_segment_bytes {
            options.wal_segment_bytes = segment;
            options.origins.set("wal_segment_bytes", Origin::Budget);
        }
        let rest = budget - working_memory(budget) - memtable_reservation(&options, 1);
        if options.is_free("block_cache_bytes") || rest < options.block_cache_bytes {
            options.block_cache_bytes = rest;
            options.origins.set("block_cache_bytes", Origin::Budget);
        }
        options
    }

    /// Whether an option was not set by its own setter.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        self.origins.of(name) != Origin::Set
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn what_nobody_set_follows_from_the_budget() {
        let none = Options::default().resolved();
        assert_eq!((none.write_buffer_bytes, none.block_cache_bytes), (64 << 20, 64 << 20));
        let small = Options::default().memory_budget_bytes(32 << 20).resolved();
        assert_eq!((small.write_buffer_bytes, small.block_cache_bytes), (8 << 20, 12 << 20));
        assert_eq!((small.target_file_bytes, small.wal_segment_bytes), (4 << 20, 2 << 20));
        let large = Options::default().memory_budget_bytes(4 << 30).resolved();
        assert_eq!((large.write_buffer_bytes, large.block_cache_bytes), (64 << 20, (3584 - 192) << 20));
        assert_eq!(large.target_file_bytes, 64 << 20);
        // Once more changes nothing.
        assert_eq!(large.resolved().block_cache_bytes, large.block_cache_bytes);
    }

    #[test]
    fn what_was_set_stays_within_the_budget() {
        let set =
            Options::default().write_buffer_bytes(1 << 20).block_cache_bytes(2 << 20).memory_budget_bytes(64 << 20);
        let set = set.resolved();
        assert_eq!((set.write_buffer_bytes, set.block_cache_bytes), (1 << 20, 2 << 20));
        let all = Options::default().block_cache_bytes(1 << 30).memory_budget_bytes(64 << 20).resolved();
        assert_eq!(all.block_cache_bytes, 24 << 20);
    }

    #[test]
    fn a_tiny_budget_is_refused() {
        assert!(Options::default().memory_budget_bytes(1).validate().is_err());
        assert!(Options::default().memory_budget_bytes(1 << 20).validate().is_ok());
    }
}
