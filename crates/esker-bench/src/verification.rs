//! What is kept of a look at a whole database; `verify` takes it.

use serde::{Deserialize, Serialize};

/// What a look at a whole database, after a run and outside its times, has shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verification {
    /// Entries that a scan has seen.
    pub entries: u64,
    /// A hash of all of them, in whatever order: 32 hexadecimal digits. Two databases with the same
    /// entries have the same.
    pub content_hash: String,
    /// Entries that were looked up again, one by one.
    pub sampled: u64,
    /// Those of them that a lookup did not find, or found with another value.
    pub mismatches: u64,
}
