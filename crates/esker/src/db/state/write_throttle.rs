//! The rate of flushes, and the target rate of a memtable. (`write_controller/delay.rs` sets and
//! enforces it.)

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Immutable memtables of one keyspace that may wait for their flush.
pub const MAX_IMMUTABLE_MEMTABLES: usize = 2;

/// How fast flushes are: nanoseconds for each KiB of memtable, a moving average.
#[derive(Debug, Default)]
pub struct FlushSpeed(AtomicU64);

impl FlushSpeed {
    /// Notes a flush of so many bytes of entries. Call with the job lock.
    pub fn note(&self, bytes: usize, took: Duration) {
        let Some(now) = took.as_nanos().checked_div(bytes as u128 >> 10) else { return };
        let now = u64::try_from(now).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let before = self.0.load(Relaxed);
        // One that hung, as all do while the machine sleeps, says little about the next.
        let now = if before == 0 { now } else { now.min(before.saturating_mul(4)) };
        self.0.store(if before == 0 { now } else { (3 * before + now) / 4 }, Relaxed);
    }

    /// How long the flush of so many bytes of entries takes.
    pub fn time_for(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as u64 >> 10).saturating_mul(self.0.load(Relaxed)))
    }
}

/// How fast a memtable may fill.
#[derive(Debug)]
pub struct WriteThrottle {
    /// Bytes of the memtable, its index included, at which a write checks the target rate.
    pub limit_bytes: usize,
    /// Bytes of entries whose time is counted in `due`.
    pub counted_bytes: usize,
    /// When what is counted may be there: until then nothing more is written.
    pub due: Instant,
    /// When the limit was last moved.
    pub passed: Instant,
}

impl WriteThrottle {
    /// That of a new memtable: no limit below its size.
    pub fn unlimited(size_bytes: usize) -> WriteThrottle {
        let now = Instant::now();
        WriteThrottle { limit_bytes: size_bytes, counted_bytes: 0, due: now, passed: now }
    }
}
