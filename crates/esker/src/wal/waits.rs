//! How long writers have waited because the log's next segment was not ready. One waits at a time, under the writer lock.

use crate::base::sync::{AtomicBool, AtomicU64};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Waits {
    count: AtomicU64,
    micros: AtomicU64,
    one_waits: AtomicBool,
}

impl Waits {
    /// Somebody waits, until what this returns is dropped.
    pub fn begin(&self) -> Wait<'_> {
        self.count.fetch_add(1, Relaxed);
        self.one_waits.store(true, Relaxed);
        Wait { waits: self, since: Instant::now() }
    }

    /// Times that a writer began to wait.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Microseconds of those that are over.
    pub fn micros(&self) -> u64 {
        self.micros.load(Relaxed)
    }

    /// Whether somebody waits at the moment.
    pub fn one_waits(&self) -> bool {
        self.one_waits.load(Relaxed)
    }
}

/// A writer waits.
pub struct Wait<'a> {
    waits: &'a Waits,
    since: Instant,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.micros.fetch_add(self.since.elapsed().as_micros() as u64, Relaxed);
        self.waits.one_waits.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wait_lasts_until_it_is_over() {
        let waits = Waits::default();
        let wait = waits.begin();
        assert!(waits.one_waits());
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!((waits.count(), waits.micros()), (1, 0));
        drop(wait);
        assert!(!waits.one_waits() && waits.count() == 1 && waits.micros() >= 2000);
    }
}
