//! The names of the files in a database directory. Log segments are named by `wal/segment.rs`.

use crate::base::file_number::{of_digits, to_digits};

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

/// The name of table `number`.
pub fn table(number: u64) -> String {
    format!("{}.table", to_digits(number))
}

/// The name of manifest `number`.
pub fn manifest(number: u64) -> String {
    format!("MANIFEST-{}", to_digits(number))
}

/// The number of the table with this name.
pub fn table_number(name: &str) -> Option<u64> {
    of_digits(name.strip_suffix(".table")?)
}

/// The number of the manifest with this name.
pub fn manifest_number(name: &str) -> Option<u64> {
    of_digits(name.strip_prefix("MANIFEST-")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::file_number::MAX_NUMBER;

    #[test]
    fn only_digits_name_a_file_and_only_numbers_below_the_largest() {
        assert_eq!(table_number("000007.table"), Some(7));
        assert_eq!(manifest_number("MANIFEST-12345678"), Some(12_345_678));
        assert_eq!(table_number("+00007.table"), None);
        assert_eq!(table_number("0000007.table"), None);
        assert_eq!(manifest_number("MANIFEST-"), None);
        assert_eq!(table_number(&table(MAX_NUMBER - 1)), Some(MAX_NUMBER - 1));
        assert_eq!(table_number(&table(MAX_NUMBER)), None);
    }
}
