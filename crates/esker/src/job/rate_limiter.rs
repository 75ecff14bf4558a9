//! The rate limiter: a token bucket that starts empty and holds a moment's worth.

use std::time::{Duration, Instant};

/// The most that the bucket holds.
const LARGEST_CREDIT: Duration = Duration::from_millis(100);

/// Spends at most so many bytes a second.
#[derive(Debug)]
pub struct RateLimiter {
    bytes_per_second: u64,
    /// Until when everything spent so far is paid for.
    paid_until: Instant,
}

impl RateLimiter {
    /// Zero bytes a second: no limit.
    pub fn new(bytes_per_second: u64, now: Instant) -> RateLimiter {
        RateLimiter { bytes_per_second, paid_until: now }
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.bytes_per_second > 0
    }

    /// Spends `bytes`, and says until when to wait before the next are spent.
    pub fn spend(&mut self, bytes: u64, now: Instant) -> Instant {
        if self.is_limited() {
            let earliest = now.checked_sub(LARGEST_CREDIT).unwrap_or(now);
            let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
            self.paid_until = self.paid_until.max(earliest) + cost;
        }
        self.paid_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_takes_its_time_and_pauses_save_up_little() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut limiter = RateLimiter::new(1000, start);
        assert_eq!(limiter.spend(500, start), after(500));
        assert_eq!(limiter.spend(500, after(500)), after(1000));
        assert_eq!(limiter.spend(500, after(9000)), after(9400), "100 ms were saved up, not 8 s");
        assert_eq!(RateLimiter::new(0, start).spend(u64::MAX, after(1)), start);
    }
}
