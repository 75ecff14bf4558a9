//! Counters of work done.

use crate::base::stall_stats::StallStats;
use crate::db::state::write_throttle::FlushSpeed;
use std::sync::atomic::AtomicU64;

/// Work done since open.
#[derive(Debug, Default)]
pub struct Counters {
    pub flushes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub compaction_bytes: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub tables_dropped: AtomicU64,
    /// What the statistics of gets of dropped keyspaces had. Changed with `Inner::keyspaces`.
    pub searched_in_dropped: AtomicU64,
    /// Writers that slept because their memtable was ahead of its target rate.
    pub delays: StallStats,
    /// Writers that a limit stopped.
    pub stops: StallStats,
    /// Writes that failed instead of waiting for either.
    pub refused_writes: AtomicU64,
    /// Dead entries that scans skipped.
    pub skipped_entries: AtomicU64,
    /// Entries whose bytes went because they had expired.
    pub expired_entries: AtomicU64,
    pub flush_speed: FlushSpeed,
}
