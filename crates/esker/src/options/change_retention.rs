//! How long changes are kept for their readers.

use std::fmt;
use std::time::Duration;

/// How long changes are kept: [`Options::keep_changes`](crate::Options::keep_changes).
///
/// Whole segments of the log are given up, oldest first, so that somewhat more is kept than this
/// says, never less.
///
/// ```
/// use esker::{ChangeRetention, Options};
/// use std::time::Duration;
/// let for_a_day = Options::default().keep_changes(ChangeRetention::Time(Duration::from_secs(86_400)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeRetention {
    /// At least the changes in the last so many bytes of log segments, beyond those that recovery
    /// needs. A segment has the size of its file, also where an open or a pause has ended it early.
    Bytes(u64),
    /// Keeps at least the changes of this last period. Older changes are removed by the next flush,
    /// or when the database becomes idle. Changes that an open finds count from that open on.
    Time(Duration),
    /// What is kept stays, all of it, as long as the database is open; where none are kept, none
    /// are. For a program that works on the database of another one for a moment, as the command
    /// line does: opened without any retention, it would end the changes of the other.
    AsBefore,
}

impl fmt::Display for ChangeRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeRetention::Bytes(bytes) => write!(f, "{bytes} bytes"),
            ChangeRetention::Time(time) => write!(f, "{time:?}"),
            ChangeRetention::AsBefore => f.write_str("as before"),
        }
    }
}
