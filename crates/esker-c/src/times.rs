//! Times of the engine as C has them: milliseconds since 1970.

use crate::codes::ESKER_NEVER;
use esker::Expiry;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An expiry in milliseconds since 1970.
pub(crate) fn milliseconds(expiry: Expiry) -> u64 {
    match expiry {
        Expiry::Never => ESKER_NEVER,
        Expiry::At(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(ESKER_NEVER)
        }
    }
}

/// The time that entries live by default: 0 if only writes say so.
pub(crate) fn default_ttl_ms(default: Option<Duration>) -> u64 {
    // Below the value that stands for entries that cannot expire.
    default.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX).min(ESKER_NEVER - 1))
}

/// A time of so many milliseconds since 1970.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    // Every count of milliseconds is a time where seconds have 64 bits.
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}
