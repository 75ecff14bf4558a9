//! Which commands CLIENT PAUSE holds up, and until when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Which commands are held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseKind {
    /// Those that may write, and transactions with one of them.
    Write,
    /// All.
    All,
}

/// The pause of all clients. Commands that come meanwhile wait; nothing is refused.
#[derive(Debug, Default)]
pub struct Pause {
    /// In milliseconds since the epoch; 0 without a pause.
    until_ms: AtomicU64,
    is_of_all: AtomicBool,
    ended: Notify,
}

impl Pause {
    /// Begins a pause. One that there is already is not made shorter, or of fewer commands.
    pub fn begin(&self, kind: PauseKind, until_ms: u64) {
        if kind == PauseKind::All {
            self.is_of_all.store(true, Ordering::Release);
        }
        self.until_ms.fetch_max(until_ms, Ordering::AcqRel);
    }

    /// Ends the pause.
    pub fn end(&self) {
        self.until_ms.store(0, Ordering::Release);
        self.is_of_all.store(false, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Until when commands are held up, in milliseconds since the epoch.
    pub fn until_ms(&self) -> u64 {
        self.until_ms.load(Ordering::Acquire)
    }

    /// Which commands are held up at that time.
    pub fn kind(&self, now_ms: u64) -> Option<PauseKind> {
        let until_ms = self.until_ms();
        if until_ms == 0 {
            return None;
        }
        if until_ms <= now_ms {
            // Not one that has just begun.
            if self.until_ms.compare_exchange(until_ms, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.is_of_all.store(false, Ordering::Release);
                self.ended.notify_waiters();
            }
            return None;
        }
        Some(if self.is_of_all.load(Ordering::Acquire) { PauseKind::All } else { PauseKind::Write })
    }

    /// Waits until the pause ends, or is over after that time; it may have been made longer.
    pub async fn wait(&self, now_ms: u64) {
        let ended = self.ended.notified();
        tokio::pin!(ended);
        // One that ends between the look at the time and the wait is not missed.
        ended.as_mut().enable();
        let until_ms = self.until_ms();
        // It is over, one way or the other.
        let _ = timeout(Duration::from_millis(until_ms.saturating_sub(now_ms)), ended).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_and_ends() {
        let pause = Pause::default();
        assert_eq!(pause.kind(0), None);
        pause.begin(PauseKind::All, 100);
        pause.begin(PauseKind::Write, 50);
        assert_eq!((pause.kind(99), pause.until_ms()), (Some(PauseKind::All), 100));
        assert_eq!((pause.kind(100), pause.until_ms()), (None, 0));
        pause.begin(PauseKind::Write, 300);
        assert_eq!(pause.kind(200), Some(PauseKind::Write));
        pause.end();
        assert_eq!(pause.kind(200), None);
    }
}
