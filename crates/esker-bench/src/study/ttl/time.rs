//! The study's time.

use crate::interrupt::Interrupt;
use esker::{Clock, ManualClock, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// The study's time: the real one, or one that is stepped.
#[derive(Clone)]
pub struct Time {
    pub clock: Arc<dyn Clock>,
    pub stepped: Option<Arc<ManualClock>>,
    pub interrupt: Interrupt,
}

impl Time {
    /// One or the other.
    pub fn new(simulated: bool, interrupt: Interrupt) -> Time {
        if !simulated {
            return Time { clock: Arc::new(SystemClock), stepped: None, interrupt };
        }
        let stepped = Arc::new(ManualClock::new(SystemClock.now_ms()));
        Time { clock: stepped.clone(), stepped: Some(stepped), interrupt }
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Returns at `until_ms`, or when interrupted.
    pub fn wait_until(&self, until_ms: u64) {
        if let Some(stepped) = &self.stepped {
            stepped.set(until_ms.max(stepped.now_ms()));
            return;
        }
        while self.now_ms() < until_ms && !self.interrupt.is_requested() {
            let left = Duration::from_millis(until_ms.saturating_sub(self.now_ms()));
            std::thread::sleep(left.min(Duration::from_millis(200)));
        }
    }
}
