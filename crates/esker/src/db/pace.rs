//! How fast flushes are, and how fast a memtable may fill. (`pacing.rs` sets and keeps the pace.)

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Full memtables of one keyspace that may wait for their flush.
pub const MAX_FROZEN: usize = 2;

/// How fast flushes are: nanoseconds for each KiB of memtable, a moving average.
#[derive(Debug, Default)]
pub struct FlushSpeed(AtomicU64);

impl FlushSpeed {
    /// Notes a flush. Call with the job lock.
    pub fn note(&self, bytes: usize, took: Duration) {
        let Some(now) = took.as_nanos().checked_div(bytes as u128 >> 10) else { return };
        let now = u64::try_from(now).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let before = self.0.load(Relaxed);
        self.0.store(if before == 0 { now } else { (3 * before + now) / 4 }, Relaxed);
    }

    /// How long the flush of a memtable of so many bytes takes.
    pub fn time_for(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as u64 >> 10).saturating_mul(self.0.load(Relaxed)))
    }
}

/// How fast a memtable may fill.
#[derive(Debug)]
pub struct Pace {
    /// Bytes of the memtable at which a write looks closer.
    pub limit_bytes: usize,
    pub since: Instant,
}

impl Pace {
    /// No limit below the size of the memtable.
    pub fn unlimited(size_bytes: usize) -> Pace {
        Pace { limit_bytes: size_bytes, since: Instant::now() }
    }
}
