//! How often and how long writers have waited for one kind of reason.

use crate::base::sync::{AtomicU64, AtomicUsize};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Waits of one kind. A wait counts when it begins; its time counts when it ends.
#[derive(Debug, Default)]
pub struct StallStats {
    count: AtomicU64,
    micros: AtomicU64,
    waiting: AtomicUsize,
}

impl StallStats {
    /// A writer waits until the returned value is dropped.
    pub fn begin(&self) -> Stall<'_> {
        self.count.fetch_add(1, Relaxed);
        self.waiting.fetch_add(1, Relaxed);
        Stall { stats: self, since: Instant::now() }
    }

    /// Waits that have begun.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Microseconds of the waits that have ended.
    pub fn micros(&self) -> u64 {
        self.micros.load(Relaxed)
    }

    /// Whether a writer waits at the moment.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }
}

/// One wait.
pub struct Stall<'a> {
    stats: &'a StallStats,
    since: Instant,
}

impl Stall<'_> {
    /// How long it has lasted.
    pub fn elapsed(&self) -> std::time::Duration {
        self.since.elapsed()
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.stats.micros.fetch_add(self.since.elapsed().as_micros() as u64, Relaxed);
        self.stats.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wait_lasts_until_it_is_over() {
        let stats = StallStats::default();
        let wait = stats.begin();
        assert!(stats.is_waiting());
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!((stats.count(), stats.micros()), (1, 0));
        drop(wait);
        assert!(!stats.is_waiting() && stats.count() == 1 && stats.micros() >= 2000);
    }
}
