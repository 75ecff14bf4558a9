//! A fixed rate of operations: the same offered load for every engine.

use std::time::{Duration, Instant};

/// Says when the next operation is due. One that fell behind catches up, so that the rate is an
/// average.
#[derive(Debug)]
pub struct Pace {
    per_second: f64,
    started: Instant,
    /// Operations that are due by now; the clock is read again only when they are done.
    due: u64,
}

impl Pace {
    const NAP: Duration = Duration::from_millis(1);

    /// Starts now. The rate is above 0.
    pub fn new(per_second: f64) -> Pace {
        Pace { per_second, started: Instant::now(), due: 0 }
    }

    /// Whether operation number `done` (from 0) may start. If not, a moment was slept.
    #[inline]
    pub fn admits(&mut self, done: u64) -> bool {
        let due = self.is_due(done, Instant::now);
        if !due {
            std::thread::sleep(Self::NAP);
        }
        due
    }

    #[inline]
    fn is_due(&mut self, done: u64, now: impl FnOnce() -> Instant) -> bool {
        if done < self.due {
            return true;
        }
        self.due = ((now() - self.started).as_secs_f64() * self.per_second) as u64;
        done < self.due
    }
}

/// Whether a writer has kept up with the `wanted` operations a second that were requested: within a
/// fiftieth.
pub fn kept_up(achieved: f64, wanted: f64) -> bool {
    achieved >= wanted * 0.98
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_never_exceeded() {
        let mut pace = Pace::new(10_000.0);
        let started = pace.started;
        let after = |micros| started + Duration::from_micros(micros);
        // Each operation takes 10 us, and number 300 as long as 500 should. No time is exactly when
        // one is due.
        let (mut now_us, mut done) = (5, 0);
        while now_us < 100_000 {
            if pace.is_due(done, || after(now_us)) {
                assert!(done < now_us / 100, "operation {done} is early, at {now_us} us");
                now_us += if done == 300 { 50_000 } else { 10 };
                done += 1;
            } else {
                assert!(done >= now_us / 100, "operation {done} was due, at {now_us} us");
                now_us += Pace::NAP.as_micros() as u64;
            }
        }
        assert!((980..=1000).contains(&done), "it did not catch up: {done}");
    }

    #[test]
    fn the_clock_is_read_only_when_what_was_due_is_done() {
        let mut pace = Pace::new(1000.0);
        let later = pace.started + Duration::from_millis(10) + Duration::from_micros(500);
        assert!(pace.is_due(0, || later));
        assert!((1..10).all(|done| pace.is_due(done, || unreachable!("number {done} was due"))));
        assert!(!pace.is_due(10, || later));
    }

    #[test]
    fn a_fiftieth_less_is_as_asked() {
        assert!(kept_up(99.0, 100.0) && !kept_up(97.0, 100.0));
    }
}
