//! Counters of work done.

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
    pub stalls: AtomicU64,
    pub stall_micros: AtomicU64,
    /// Dead entries that scans passed.
    pub skipped_entries: AtomicU64,
    /// Entries whose bytes went because they had expired.
    pub expired_entries: AtomicU64,
    pub flush_speed: FlushSpeed,
}
