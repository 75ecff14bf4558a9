//! A fixed rate of operations: the same offered load for every engine.

use std::time::{Duration, Instant};

/// Says when the next operation is due. One that fell behind catches up, so that the rate is an average.
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
        if done < self.due {
            return true;
        }
        self.due = (self.started.elapsed().as_secs_f64() * self.per_second) as u64;
        if done < self.due {
            return true;
        }
        std::thread::sleep(Self::NAP);
        false
    }
}

/// Whether a writer that was asked for `wanted` operations a second has kept up: within a fiftieth.
pub fn kept_up(achieved: f64, wanted: f64) -> bool {
    achieved >= wanted * 0.98
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_never_exceeded() {
        let mut pace = Pace::new(10_000.0);
        let started = Instant::now();
        let mut done = 0;
        while started.elapsed() < Duration::from_millis(100) {
            done += u64::from(pace.admits(done));
        }
        let most = (started.elapsed().as_secs_f64() * 10_000.0) as u64;
        assert!(done <= most && done > 100, "{done} of {most}");
        assert!(kept_up(99.0, 100.0) && !kept_up(97.0, 100.0));
    }
}
