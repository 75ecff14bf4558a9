//! Where the tables of a job begin and end.

use crate::base::key_order::KeyOrder;
use crate::version::runs::Version;

/// Where one table ends and the next begins, always between two keys. By default only the size
/// decides.
#[derive(Clone, Debug, Default)]
pub struct OutputSplitter {
    /// Bytes at which another table begins, if less than what the options say.
    pub target_file_bytes: Option<u64>,
    /// Keys at which another table begins if the one at hand has half of its size: with the same
    /// ends, tables of several runs can be compacted together without much of their neighbours.
    /// Ascending.
    pub boundaries: Vec<Vec<u8>>,
    /// First keys of tables that stay as they are, in the run that is written: no table may reach
    /// over one of them. Ascending.
    pub kept: Vec<Vec<u8>>,
}

/// A compaction of upper runs makes at least this many tables, so that they can go down in pieces.
const UPPER_TABLES: u64 = 8;
/// But none for this few bytes.
const LEAST_BYTES: u64 = 1 << 20;

impl OutputSplitter {
    /// For a run of about `bytes` that will go into the last run of `version` later, not as a
    /// whole.
    pub fn above_last(version: &Version, bytes: u64) -> OutputSplitter {
        let first_keys = version.runs.last().into_iter().flat_map(|run| &run.tables).map(|table| table.summary());
        OutputSplitter {
            target_file_bytes: Some((bytes / UPPER_TABLES).max(LEAST_BYTES)),
            boundaries: first_keys.map(|summary| summary.smallest_key.clone()).collect(),
            kept: Vec::new(),
        }
    }
}

/// The way through the keys at which tables may or must be cut.
#[derive(Debug)]
pub struct Passage<'a> {
    boundaries: &'a [Vec<u8>],
    kept: &'a [Vec<u8>],
    order: &'a KeyOrder,
    /// Bytes at which a table is full.
    full_bytes: u64,
    /// Bytes from which a cut is considered.
    look_bytes: u64,
}

impl<'a> Passage<'a> {
    pub fn new(splitter: &'a OutputSplitter, target_file_bytes: u64, order: &'a KeyOrder) -> Passage<'a> {
        let full_bytes = splitter.target_file_bytes.map_or(target_file_bytes, |bytes| bytes.min(target_file_bytes));
        let look_bytes = match (splitter.kept.as_slice(), splitter.boundaries.as_slice()) {
            ([], []) => full_bytes,
            ([], _) => full_bytes / 2,
            _ => 0,
        };
        Passage { boundaries: &splitter.boundaries, kept: &splitter.kept, order, full_bytes, look_bytes }
    }

    /// Whether a table of so many bytes may have to end before the next key.
    #[inline]
    pub fn looks(&self, bytes: u64) -> bool {
        bytes >= self.look_bytes
    }

    /// Whether a table of so many bytes ends between its last key and the next, which is another.
    pub fn ends(&mut self, bytes: u64, last_key: &[u8], next_key: &[u8]) -> bool {
        let must = passes(self.order, &mut self.kept, last_key, next_key);
        let may = bytes >= self.full_bytes / 2 && passes(self.order, &mut self.boundaries, last_key, next_key);
        must || may || bytes >= self.full_bytes
    }
}

/// Whether one of `keys`, which are ascending, lies behind `last` and not behind `next`. Those up
/// to `next` are passed.
fn passes(order: &KeyOrder, keys: &mut &[Vec<u8>], last: &[u8], next: &[u8]) -> bool {
    let mut between = false;
    while let Some((key, later)) = keys.split_first()
        && !order.less(next, key)
    {
        between |= order.less(last, key);
        *keys = later;
    }
    between
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_end_at_what_is_kept_at_boundaries_and_when_full() {
        let keys = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        let splitter =
            OutputSplitter { target_file_bytes: Some(100), boundaries: keys(&["c", "f", "j"]), kept: keys(&["h"]) };
        let mut passage = Passage::new(&splitter, 1000, &KeyOrder::Bytewise);
        assert!(!passage.ends(10, b"a", b"d"), "too small for a boundary");
        assert!(!passage.ends(60, b"d", b"e"), "the boundary before is passed");
        assert!(passage.ends(60, b"e", b"f"));
        assert!(passage.ends(1, b"g", b"i"), "a table lies between");
        assert!(!passage.ends(99, b"i", b"ii"));
        assert!(passage.ends(100, b"ii", b"iii"));
        let none = OutputSplitter::default();
        let mut passage = Passage::new(&none, 1000, &KeyOrder::Bytewise);
        assert!(!passage.looks(999) && passage.looks(1000) && passage.ends(1000, b"a", b"b"));
    }
}
