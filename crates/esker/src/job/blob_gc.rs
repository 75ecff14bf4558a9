//! Picks the blob files to be emptied. Pure: the files and the bytes referred to in, numbers out.
//!
//! A value that nothing refers to takes space until its file is removed. A file with more than half
//! of such garbage is emptied: its live values are copied elsewhere, at most as many bytes as that
//! frees.

use std::collections::BTreeSet;

/// What deciding needs to know of a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobShape {
    pub number: u64,
    pub bytes: u64,
    /// Bytes that tables refer to.
    pub live_bytes: u64,
}

/// Garbage in all files together that is tolerated.
const TOLERATED_BYTES: u64 = 16 << 20;

/// The files to be emptied. Unless `eager`, none as long as at most half of all bytes is garbage.
pub fn condemned(files: &[BlobShape], eager: bool) -> BTreeSet<u64> {
    let sum = |bytes: fn(&BlobShape) -> u64| files.iter().fold(0u64, |sum, file| sum.saturating_add(bytes(file)));
    let (total, live) = (sum(|file| file.bytes), sum(|file| file.live_bytes));
    let due = total / 2 > live && total - live > TOLERATED_BYTES;
    if !due && !eager {
        return BTreeSet::new();
    }
    files.iter().filter(|file| file.live_bytes < file.bytes / 2).map(|file| file.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(files: &[(u64, u64)]) -> Vec<BlobShape> {
        let numbered = files.iter().zip(1..);
        numbered.map(|(&(bytes, live_bytes), number)| BlobShape { number, bytes, live_bytes }).collect()
    }

    #[test]
    fn files_are_condemned_when_garbage_prevails() {
        let none = BTreeSet::new();
        let mib = 1 << 20;
        assert_eq!(condemned(&[], true), none);
        assert_eq!(condemned(&shapes(&[(100 * mib, 100 * mib), (100 * mib, 10 * mib)]), false), none);
        assert_eq!(
            condemned(&shapes(&[(100 * mib, 100 * mib), (100 * mib, 10 * mib)]), true),
            BTreeSet::from([2]),
            "asked for, it is done at once"
        );
        assert_eq!(condemned(&shapes(&[(10 * mib, 0)]), false), none, "a little is tolerated");
        assert_eq!(
            condemned(&shapes(&[(100 * mib, 60 * mib), (100 * mib, 10 * mib), (100 * mib, 0)]), false),
            BTreeSet::from([2, 3])
        );
        assert_eq!(condemned(&shapes(&[(40, 100)]), true), none, "a value that two versions refer to counts twice");
    }
}
