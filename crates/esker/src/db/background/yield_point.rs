//! What a compaction does at its yield points: what is more urgent, and it keeps to its rate limit.

use crate::db::background::flush::{RETRY_AFTER, flush_what_has_room, prepare_segment, rotate_log_holders};
use crate::db::state::inner::Inner;
use crate::error::{Error, Result};
use crate::job::rate_limiter::RateLimiter;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a compaction that waits for its rate limit sleeps before it checks for other work.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The yield points of one compaction.
pub struct YieldPoint<'a> {
    inner: &'a Inner,
    limiter: RateLimiter,
    /// When a flush last found no room. The compaction goes on: it may make some.
    no_room_since: Option<Instant>,
}

impl<'a> YieldPoint<'a> {
    /// Those of a compaction that begins now.
    pub fn new(inner: &'a Inner) -> YieldPoint<'a> {
        let limiter = RateLimiter::new(inner.options.compaction_bytes_per_second, Instant::now());
        YieldPoint { inner, limiter, no_room_since: None }
    }

    /// Whether the compaction has a rate limit.
    pub fn is_limited(&self) -> bool {
        self.limiter.is_limited()
    }

    /// Does what is more urgent, and waits as long as the rate limit says; `bytes` were read since
    /// the last time.
    pub fn pass(&mut self, bytes: u64) -> Result<()> {
        self.look()?;
        if !self.limiter.is_limited() {
            return Ok(());
        }
        let until = self.limiter.spend(bytes, Instant::now());
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            std::thread::sleep(left.min(LOOK_AGAIN));
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        let inner = self.inner;
        if inner.stopping.load(Relaxed) {
            return Err(Error::ReadOnly { why: "the database is being closed".into() });
        }
        // A long compaction must not keep log segments from being released.
        rotate_log_holders(inner);
        // Inside a call of the program no time passes, so that the same calls do the same.
        let is_too_soon = |since: Instant| inner.inline_jobs() || since.elapsed() < RETRY_AFTER;
        if self.no_room_since.is_some_and(is_too_soon) {
            prepare_segment(inner);
            return Ok(());
        }
        let is_full = flush_what_has_room(inner)?.is_some();
        self.no_room_since = is_full.then(Instant::now);
        Ok(())
    }
}
