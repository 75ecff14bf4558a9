//! Which blob files are to be written again so that their values are compressed. Pure: the files and what refers to them in, numbers out.
//!
//! A write stores a value as it is, which is as fast as the system takes it. A database at rest has the time to make it smaller, once: what is written again is never
//! looked at for this a second time. For it, each table that refers to the values is written again too.

use std::collections::BTreeSet;

/// What deciding needs to know of a blob file whose values may shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrinkable {
    pub number: u64,
    /// Bytes that tables refer to.
    pub live_bytes: u64,
}

/// Fewer bytes of values are not worth the trouble.
const LEAST_BYTES: u64 = 16 << 20;
/// So many bytes of values at a time: as much more space is needed until the old files go.
const MOST_BYTES: u64 = 1 << 30;
/// So many bytes of tables may be written again for each byte of values.
const TABLES_PART: u64 = 4;

/// The files to be written again next, oldest first. `table_bytes`: of the tables that refer to some of the files. `asked_for`: by a caller, even
/// if it saves little.
pub fn due(files: &[Shrinkable], table_bytes: impl Fn(&BTreeSet<u64>) -> u64, asked_for: bool) -> BTreeSet<u64> {
    let mut chosen = BTreeSet::new();
    let mut bytes = 0u64;
    for file in files {
        if !chosen.is_empty() && bytes.saturating_add(file.live_bytes) > MOST_BYTES {
            break;
        }
        chosen.insert(file.number);
        bytes = bytes.saturating_add(file.live_bytes);
    }
    let pays = bytes >= LEAST_BYTES && table_bytes(&chosen) / TABLES_PART <= bytes;
    if asked_for || pays { chosen } else { BTreeSet::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn files(live: &[u64]) -> Vec<Shrinkable> {
        live.iter().zip(1..).map(|(&mib, number)| Shrinkable { number, live_bytes: mib * MIB }).collect()
    }

    #[test]
    fn files_are_due_when_it_pays() {
        let none = BTreeSet::new();
        assert_eq!(due(&[], |_| 0, true), none);
        assert_eq!(due(&files(&[15]), |_| 0, false), none, "little");
        assert_eq!(due(&files(&[15]), |_| 0, true), BTreeSet::from([1]), "asked for");
        assert_eq!(due(&files(&[16]), |_| 64 * MIB, false), BTreeSet::from([1]));
        assert_eq!(due(&files(&[16]), |_| 68 * MIB, false), none, "the tables are larger than what is saved");
        assert_eq!(due(&files(&[9, 9]), |_| 0, false), BTreeSet::from([1, 2]));
    }

    #[test]
    fn a_gibibyte_at_a_time() {
        assert_eq!(due(&files(&[256; 6]), |_| 0, false), BTreeSet::from([1, 2, 3, 4]));
        assert_eq!(due(&files(&[2048, 1]), |_| 0, false), BTreeSet::from([1]), "one file, however long");
    }

    #[test]
    fn only_tables_of_the_chosen_files_count() {
        let of = |chosen: &BTreeSet<u64>| if chosen.contains(&5) { u64::MAX } else { 0 };
        assert_eq!(due(&files(&[256; 6]), of, false).len(), 4);
    }
}
