//! The names of the files in a database directory. Log segments are named by `wal/segment.rs`.

/// The pointer to the current manifest.
pub const CURRENT: &str = "CURRENT";
/// What becomes [`CURRENT`] by renaming.
pub const CURRENT_TEMPORARY: &str = "CURRENT.tmp";
/// The file that marks a checkpoint that is not complete.
pub const UNFINISHED: &str = "CHECKPOINT";
/// The file that marks a repair that is not complete.
pub const REPAIR: &str = "REPAIR";
/// The directory to which a repair moves unusable files.
pub const LOST: &str = "lost";
/// The file that carries the lock.
pub const LOCK: &str = "LOCK";

/// Numbers of files and log segments are below this: counting on from one cannot overflow.
pub const MAX_NUMBER: u64 = crate::wal::format::MAX_NUMBER;

/// The name of table `number`.
pub fn table(number: u64) -> String {
    format!("{number:06}.table")
}

/// The name of manifest `number`.
pub fn manifest(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&number| number < MAX_NUMBER)
}

/// The number of the table with this name.
pub fn table_number(name: &str) -> Option<u64> {
    number(name.strip_suffix(".table")?)
}

/// The number of the manifest with this name.
pub fn manifest_number(name: &str) -> Option<u64> {
    number(name.strip_prefix("MANIFEST-")?)
}
