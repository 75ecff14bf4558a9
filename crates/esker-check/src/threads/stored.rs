//! What the threads store: numbers, under a clock that stands still, so that expiries that count
//! from a write are known.

use crate::Checked;
use crate::state::shown;
use esker::Slice;

/// What the clock shows, in milliseconds since the Unix epoch.
pub(super) const NOW: u64 = 1_900_000_000_000;

/// The number that was read; 0 where there is none.
pub(super) fn number(found: esker::Result<Option<Slice>>) -> Checked<u64> {
    match found.map_err(|error| format!("a read failed: {error}"))? {
        None => Ok(0),
        Some(bytes) => {
            bytes[..].try_into().map(u64::from_le_bytes).map_err(|_| format!("a number is {}", shown(&bytes)))
        }
    }
}
