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

/// A time of so many milliseconds since 1970.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    // Every count of milliseconds is a time where seconds have 64 bits.
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}
