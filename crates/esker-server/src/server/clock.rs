//! The time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch, by the system's clock.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
