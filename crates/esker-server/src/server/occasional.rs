//! Limits the rate of log lines that clients can cause at will.

use std::sync::atomic::{AtomicU64, Ordering};

/// How long there is no other line.
const PAUSE_MS: u64 = 10_000;

/// A line of the log that is written once in ten seconds at most.
#[derive(Debug, Default)]
pub struct Occasional {
    /// When the next one may be written, in milliseconds since the epoch.
    next_ms: AtomicU64,
    passed_over: AtomicU64,
}

impl Occasional {
    /// If the line is to be written: how many were passed over since the last one.
    pub fn take(&self, now_ms: u64) -> Option<u64> {
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let is_first = now_ms >= next_ms
            && self
                .next_ms
                .compare_exchange(next_ms, now_ms.saturating_add(PAUSE_MS), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            return Some(self.passed_over.swap(0, Ordering::Relaxed));
        }
        self.passed_over.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line() {
        let line = Occasional::default();
        assert_eq!(line.take(100), Some(0));
        assert!((100..105).all(|now_ms| line.take(now_ms).is_none()));
        assert_eq!(line.take(100 + PAUSE_MS), Some(5));
    }
}
