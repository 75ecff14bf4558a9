//! Picks the blob files to be rewritten so that their values are compressed. Pure: the files and
//! the bytes referred to in, numbers out.
//!
//! A write stores a value uncompressed, at the speed of the system. An idle database has the time
//! to compress it, once: a rewritten value is never considered again. Each table that refers to the
//! values is rewritten too, so files are taken together until the tables are the smaller part of
//! the work.

use std::collections::BTreeSet;

/// What deciding needs to know of a blob file whose values may shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrinkable {
    pub number: u64,
    /// Bytes that tables refer to.
    pub live_bytes: u64,
}

/// Fewer bytes of values are not worth the work.
const LEAST_BYTES: u64 = 16 << 20;
/// Nor is less than this part of all large values.
const LEAST_PART: u64 = 16;
/// Once there are so many bytes of values, that is enough at a time: as much more space is needed
/// until the old files go.
const ENOUGH_BYTES: u64 = 256 << 20;

/// The least that is due by itself, with so many bytes of large values in all.
pub fn least_bytes(all_bytes: u64) -> u64 {
    (all_bytes / LEAST_PART).clamp(LEAST_BYTES, ENOUGH_BYTES)
}

/// The files to be rewritten next, oldest first. `least_bytes`: the fewest bytes of values.
/// `would_shrink`: whether a sample of a file says so; called for as few as possible.
/// `table_bytes`: of the tables that refer to some of the files. `drain_requested`: by a caller,
/// whatever the tables cost.
pub fn due(
    files: &[Shrinkable],
    least_bytes: u64,
    mut would_shrink: impl FnMut(u64) -> bool,
    table_bytes: impl Fn(&BTreeSet<u64>) -> u64,
    drain_requested: bool,
) -> BTreeSet<u64> {
    let possible = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.live_bytes));
    if possible < least_bytes {
        return BTreeSet::new();
    }
    let (mut chosen, mut bytes) = (BTreeSet::new(), 0u64);
    for file in files.iter().filter(|file| would_shrink(file.number)) {
        chosen.insert(file.number);
        bytes = bytes.saturating_add(file.live_bytes);
        if bytes >= ENOUGH_BYTES && table_bytes(&chosen) <= bytes {
            return chosen;
        }
    }
    let pays = bytes >= least_bytes && (drain_requested || table_bytes(&chosen) <= bytes);
    if pays { chosen } else { BTreeSet::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn files(live: &[u64]) -> Vec<Shrinkable> {
        live.iter().zip(1..).map(|(&mib, number)| Shrinkable { number, live_bytes: mib * MIB }).collect()
    }

    /// As [`due`], of files that would all shrink.
    fn due_of(live: &[u64], tables: impl Fn(&BTreeSet<u64>) -> u64, drain_requested: bool) -> Vec<u64> {
        let least = if drain_requested { 0 } else { least_bytes(0) };
        due(&files(live), least, |_| true, tables, drain_requested).into_iter().collect()
    }

    #[test]
    fn files_are_due_when_it_pays() {
        assert_eq!(due_of(&[], |_| 0, true), []);
        assert_eq!(due_of(&[15], |_| 0, false), [], "little");
        assert_eq!(due_of(&[15], |_| 0, true), [1], "asked for");
        assert_eq!(due_of(&[16], |_| 16 * MIB, false), [1]);
        assert_eq!(due_of(&[16], |_| 17 * MIB, false), [], "the tables are more than what they refer to");
        assert_eq!(due_of(&[16], |_| 17 * MIB, true), [1]);
        assert_eq!(due_of(&[9, 9], |_| 0, false), [1, 2]);
    }

    #[test]
    fn a_part_of_what_there_is_up_to_a_file() {
        assert_eq!([0, 256, 1024, 1 << 20].map(|mib| least_bytes(mib * MIB) / MIB), [16, 16, 64, 256]);
    }

    #[test]
    fn files_are_taken_together_until_the_tables_are_less() {
        assert_eq!(due_of(&[256; 6], |_| 0, false), [1]);
        assert_eq!(due_of(&[100; 6], |_| 0, false), [1, 2, 3]);
        assert_eq!(due_of(&[256; 6], |_| 1024 * MIB, false), [1, 2, 3, 4]);
        assert_eq!(due_of(&[256; 6], |_| 10_000 * MIB, false), []);
        assert_eq!(due_of(&[256; 6], |_| 10_000 * MIB, true), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn as_few_files_as_possible_are_looked_at() {
        let mut looked_at = Vec::new();
        let mut look = |number| {
            looked_at.push(number);
            number > 1
        };
        assert_eq!(due(&files(&[256; 4]), MIB, &mut look, |_| 0, false), BTreeSet::from([2]));
        assert_eq!(due(&files(&[1, 2]), 4 * MIB, &mut look, |_| 0, false), BTreeSet::new());
        assert_eq!(looked_at, [1, 2]);
        assert_eq!(due(&files(&[20, 20]), 16 * MIB, |_| false, |_| 0, true), BTreeSet::new(), "nothing would shrink");
    }
}
