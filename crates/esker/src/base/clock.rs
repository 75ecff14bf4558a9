//! Wall-clock time, injectable so that tests can step it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of wall-clock time.
///
/// A clock may call its own database as far as a [`crate::MergeOperator`] may. One that calls
/// itself that way gets the system's time in the end.
///
/// ```
/// use esker::Clock;
/// /// Half past nothing, for ever.
/// #[derive(Debug)]
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now_ms(&self) -> u64 { 1_800_000 }
/// }
/// let options = esker::Options::default().clock(std::sync::Arc::new(Stopped));
/// ```
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since the Unix epoch.
    ///
    /// ```
    /// use esker::{Clock, ManualClock};
    /// assert_eq!(ManualClock::new(1_000).now_ms(), 1_000);
    /// ```
    fn now_ms(&self) -> u64;
}

/// The operating system's clock.
///
/// ```
/// use esker::{Clock, SystemClock};
/// assert!(SystemClock.now_ms() > 0);
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that is set by calls.
///
/// ```
/// use esker::{Clock, ManualClock, Options};
/// let clock = std::sync::Arc::new(ManualClock::new(1_000));
/// let options = Options::default().clock(clock.clone());
/// clock.set(2_000);
/// assert_eq!(clock.now_ms(), 2_000);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    ///
    /// ```
    /// let clock = esker::ManualClock::new(1_000); // a second after the beginning of 1970
    /// ```
    pub fn new(now_ms: u64) -> ManualClock {
        ManualClock(AtomicU64::new(now_ms))
    }

    /// Sets the time shown.
    ///
    /// ```
    /// use esker::Clock;
    /// let clock = esker::ManualClock::new(1_000);
    /// clock.set(500); // backwards, too
    /// assert_eq!(clock.now_ms(), 500);
    /// ```
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// Moves the time shown ahead by `by`, in whole milliseconds; at the end of time it stays. Time
    /// that threads add at once is added up.
    ///
    /// ```
    /// use esker::Clock;
    /// let clock = esker::ManualClock::new(1_000);
    /// clock.advance(std::time::Duration::from_secs(2));
    /// assert_eq!(clock.now_ms(), 3_000);
    /// ```
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        // The closure always yields a time, so that there is no failure to look at.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now_ms| Some(now_ms.saturating_add(by)));
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stops_at_its_end() {
        let clock = ManualClock::new(1_000);
        clock.advance(Duration::from_micros(2_900));
        assert_eq!(clock.now_ms(), 1_002);
        for by in [Duration::MAX, Duration::from_millis(1)] {
            clock.advance(by);
            assert_eq!(clock.now_ms(), u64::MAX);
        }
    }
}
