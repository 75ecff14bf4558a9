//! How a flush shares its thread with the work that writers and scans need meanwhile.
//!
//! A writer into fresh memory can use as much of it as one thread prefaults. If it got that much,
//! the flush would not go on, and the writer would stop for the flush in the end. So once the next
//! memtable waits too, the other work is limited to half of the time.

use std::time::{Duration, Instant};

/// Of one flush.
pub struct TimeShare {
    flush: Duration,
    others: Duration,
    /// When the time last passed from one to the other.
    passed: Instant,
}

impl TimeShare {
    /// The flush begins.
    pub fn new(at: Instant) -> TimeShare {
        TimeShare { flush: Duration::ZERO, others: Duration::ZERO, passed: at }
    }

    /// Notes that the flush pauses. True if it has had as much time as the other work.
    pub fn pause(&mut self, at: Instant) -> bool {
        self.flush += at - self.passed;
        self.passed = at;
        self.others <= self.flush
    }

    /// The flush goes on.
    pub fn go_on(&mut self, at: Instant) {
        self.others += at - self.passed;
        self.passed = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_get_no_more_of_the_time_than_the_flush() {
        let mut at = Instant::now();
        let mut shares = TimeShare::new(at);
        let mut after = |millis| {
            at += Duration::from_millis(millis);
            at
        };
        assert!(shares.pause(after(1)), "they have had nothing yet");
        shares.go_on(after(10));
        for _ in 2..10 {
            assert!(!shares.pause(after(1)), "they have had more than the flush");
            shares.go_on(after(0));
        }
        assert!(shares.pause(after(1)), "ten of twenty");
        shares.go_on(after(1));
        assert!(!shares.pause(after(0)), "eleven of 21");
    }
}
