//! The rows of `esker study ttl --records` that decide claims: study `ttl`, experiment `scenarios`,
//! one row for each number.

/// The check that living keys are found.
pub const LIVING: &str = "every sampled key is found while it lives";
/// The check that expired keys are not.
pub const GONE: &str = "no sampled key is found once it has expired";
/// The check that the keys take space.
pub const SIZED: &str = "the range has a size before";
/// The check that a compaction frees it.
pub const EMPTIED: &str = "the range has no size after compaction";

/// The experiment of the rows.
pub const EXPERIMENT: &str = "scenarios";
/// Sampled keys (`ops`) and those of them found while they lived (`found`).
pub const FOUND_BEFORE: &str = "found before expiry";
/// The same once they had expired, before any compaction.
pub const FOUND_AFTER: &str = "found after expiry";
/// Approximate bytes (`found`) of the range of all keys, once loaded.
pub const SIZE_BEFORE: &str = "size before compaction";
/// The same once all had expired and been compacted.
pub const SIZE_AFTER: &str = "size after compaction";

const ROWS: [(&str, &str); 4] =
    [(LIVING, FOUND_BEFORE), (GONE, FOUND_AFTER), (SIZED, SIZE_BEFORE), (EMPTIED, SIZE_AFTER)];

/// The row of a check by its words; `None` if no claim turns on it.
pub fn row(check: &str) -> Option<&'static str> {
    ROWS.iter().find(|(what, _)| *what == check).map(|(_, row)| *row)
}
