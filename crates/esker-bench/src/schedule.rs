//! A fixed rate of operations with the times at which each should start, fixed before the first. An
//! engine that stalls does not move them: what should have started meanwhile counts as late, as it
//! would for the users who wait. (Measuring from when an operation really started leaves these
//! waits out, which is known as coordinated omission.)

use crate::times::new_histogram;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Nearer to its time than this an operation is waited for by looking at the clock again and again:
/// a sleeping thread is woken up to so much late.
const SPIN: Duration = Duration::from_micros(60);

/// Later than any run ends.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// When the operations of one thread should start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    interval_s: f64,
    first_s: f64,
}

impl Schedule {
    /// The part of thread number `thread` of `threads` that share `per_second` operations a second;
    /// they take turns. The rate is above 0.
    pub fn new(per_second: f64, threads: u32, thread: u32) -> Schedule {
        Schedule { interval_s: f64::from(threads.max(1)) / per_second, first_s: f64::from(thread) / per_second }
    }

    /// When operation number `operation` (from 0) should start, after the beginning.
    #[inline]
    pub fn intended(&self, operation: u64) -> Duration {
        let seconds = self.first_s + operation as f64 * self.interval_s;
        Duration::try_from_secs_f64(seconds).unwrap_or(NEVER).min(NEVER)
    }
}

/// What a thread does until its next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The operation is due.
    Over,
    /// It is due in a moment: look at the clock again.
    Spin,
    /// Sleep that long, then look again.
    Sleep(Duration),
}

/// A schedule in use: when the current operation should have started, when it did, and how long the
/// operations took from then on.
#[derive(Debug)]
pub struct Timetable {
    schedule: Schedule,
    intended: Instant,
    begun: Instant,
    service: Histogram<u64>,
}

impl Timetable {
    /// For a thread whose operations begin about `now`.
    pub fn new(schedule: Schedule, now: Instant) -> Timetable {
        Timetable { schedule, intended: now, begun: now, service: new_histogram() }
    }

    /// Turns to operation number `operation` of a thread that started at `started`.
    #[inline]
    pub fn turn_to(&mut self, operation: u64, started: Instant) {
        self.intended = started + self.schedule.intended(operation);
    }

    /// What to do at `now`; the operation begins when the pause is over.
    #[inline]
    pub fn pause(&mut self, now: Instant) -> Pause {
        match self.intended.checked_duration_since(now) {
            None | Some(Duration::ZERO) => {
                self.begun = now;
                Pause::Over
            }
            Some(left) if left > SPIN => Pause::Sleep(left - SPIN),
            Some(_) => Pause::Spin,
        }
    }

    /// The operation finished at `now`: the time since it should have started. The time since it
    /// did is noted.
    #[inline]
    pub fn finished(&mut self, now: Instant) -> Duration {
        let service = now.saturating_duration_since(self.begun);
        self.service.saturating_record(u64::try_from(service.as_nanos()).unwrap_or(u64::MAX).max(1));
        now.saturating_duration_since(self.intended)
    }

    /// Times in nanoseconds from when operations really started.
    pub fn into_service(self) -> Histogram<u64> {
        self.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread at 1000 operations a second on a clock that is stepped: each operation takes 10
    /// us, but number 500 takes 100 ms.
    fn stalled_once() -> (Histogram<u64>, Histogram<u64>) {
        let started = Instant::now();
        let mut now = started;
        let mut table = Timetable::new(Schedule::new(1000.0, 1, 0), started);
        let mut response = new_histogram();
        for operation in 0..1000 {
            table.turn_to(operation, started);
            loop {
                match table.pause(now) {
                    Pause::Over => break,
                    Pause::Spin => now += Duration::from_nanos(100),
                    Pause::Sleep(time) => now += time,
                }
            }
            now += if operation == 500 { Duration::from_millis(100) } else { Duration::from_micros(10) };
            let latency = table.finished(now);
            response.record(latency.as_nanos() as u64).unwrap();
        }
        (response, table.into_service())
    }

    #[test]
    fn a_stall_is_in_the_latency_of_everything_that_should_have_started_meanwhile() {
        let (response, service) = stalled_once();
        let at_least = |histogram: &Histogram<u64>, ms: u64| histogram.count_between(ms * 1_000_000, 1_000_000_000);
        // The operation itself, and those due 1, 2, ... ms after it: their latencies fall by about
        // a millisecond each.
        assert!((98..=101).contains(&at_least(&response, 2)), "{}", at_least(&response, 2));
        assert!((49..=52).contains(&at_least(&response, 50)));
        assert!(
            (40..=52).contains(&(response.value_at_quantile(0.95) / 1_000_000)),
            "{}",
            response.value_at_quantile(0.95)
        );
        assert!(response.value_at_quantile(0.89) < 1_000_000);
        // From its real start only one was slow.
        assert_eq!(at_least(&service, 2), 1);
        assert!(service.value_at_quantile(0.998) < 1_000_000);
    }

    #[test]
    fn threads_take_turns() {
        let second = |operation| Schedule::new(4.0, 2, 1).intended(operation).as_secs_f64();
        assert_eq!((second(0), second(1), second(4)), (0.25, 0.75, 2.25));
        assert_eq!(Schedule::new(4.0, 2, 0).intended(1).as_secs_f64(), 0.5);
        assert_eq!(Schedule::new(1e-300, 1, 0).intended(u64::MAX), NEVER);
    }

    #[test]
    fn only_the_last_moment_is_spun_away() {
        let now = Instant::now();
        let mut table = Timetable::new(Schedule::new(1.0, 1, 0), now);
        table.turn_to(1, now);
        assert_eq!(table.pause(now), Pause::Sleep(Duration::from_secs(1) - SPIN));
        assert_eq!(table.pause(now + Duration::from_secs(1) - SPIN), Pause::Spin);
        assert_eq!(table.pause(now + Duration::from_secs(1)), Pause::Over);
    }
}
