//! How long a write may wait that is not to wait for as long as it takes.

use crate::options::StallPolicy;
use std::time::{Duration, Instant};

/// How long a write that is not to wait tries to get the writer lock: others hold it for the time
/// of a write, unless they are stalled themselves.
pub const TURN: Duration = Duration::from_millis(10);

/// The limit of one call, all of its waits taken together.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimit {
    began: Instant,
    until: Instant,
}

impl WaitLimit {
    /// The limit of a call that begins now; `None` if it waits without a limit.
    #[inline]
    pub fn begin(policy: StallPolicy) -> Option<WaitLimit> {
        if policy == StallPolicy::Wait { None } else { WaitLimit::at(policy, Instant::now()) }
    }

    /// A time that ends beyond all clocks is no limit.
    #[cold]
    fn at(policy: StallPolicy, began: Instant) -> Option<WaitLimit> {
        let most = match policy {
            StallPolicy::Wait => return None,
            StallPolicy::Fail => Duration::ZERO,
            StallPolicy::For(most) => most,
        };
        Some(WaitLimit { began, until: began.checked_add(most)? })
    }

    /// When the waiting ends.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// What is left of it; none if it is used up.
    pub fn left(&self) -> Option<Duration> {
        Some(self.until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// Until when the writer lock is tried.
    pub fn turn(&self) -> Instant {
        self.until.max(self.began + TURN)
    }

    /// How long the call has lasted, as far as it was to wait at all.
    pub fn waited(&self) -> Duration {
        if self.until == self.began { Duration::ZERO } else { self.began.elapsed() }
    }

    /// The policy for what is left of the call.
    pub fn policy(&self) -> StallPolicy {
        self.left().map_or(StallPolicy::Fail, StallPolicy::For)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_for_the_whole_call_and_none_is_none() {
        let now = Instant::now();
        assert!(WaitLimit::at(StallPolicy::Wait, now).is_none());
        assert!(WaitLimit::at(StallPolicy::For(Duration::MAX), now).is_none());
        let fail = WaitLimit::at(StallPolicy::Fail, now).unwrap();
        assert_eq!((fail.left(), fail.turn(), fail.waited()), (None, now + TURN, Duration::ZERO));
        assert_eq!(fail.policy(), StallPolicy::Fail);
        let hour = Duration::from_secs(3600);
        let long = WaitLimit::at(StallPolicy::For(hour), now).unwrap();
        assert!(long.left().is_some_and(|left| left <= hour));
        assert_eq!((long.until(), long.turn()), (now + hour, now + hour));
        assert!(matches!(long.policy(), StallPolicy::For(left) if left <= hour));
    }
}
