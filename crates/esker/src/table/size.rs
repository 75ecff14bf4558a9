//! How much of a table a range of keys takes, by its index alone.

use super::reader::Table;
use crate::base::key::MAX_SEQUENCE;

impl Table {
    /// The approximate bytes of the file that the keys in `start..end` take; without `end` the
    /// range ends with the table. Counts whole blocks, and filter and index in proportion. The
    /// result is 0 only if the table has no such key.
    pub fn approximate_bytes(&self, start: &[u8], end: Option<&[u8]>) -> u64 {
        let outside =
            self.summary.is_before(start) || end.is_some_and(|end| !self.order().less(&self.summary.smallest_key, end));
        let Some(last) = self.index.len().checked_sub(1).filter(|_| !outside) else { return 0 };
        let first = self.index.find(start, MAX_SEQUENCE);
        let last = end.map_or(last, |end| self.index.find(end, MAX_SEQUENCE).min(last));
        let (Some(from), Some(to)) = (self.index.handle(first), self.index.handle(last)) else { return 0 };
        let covered = (to.offset + to.bytes).saturating_sub(from.offset);
        let scaled = u128::from(covered) * u128::from(self.summary.file_bytes);
        (scaled / u128::from(self.index.data_end().max(1))) as u64
    }

    /// About the number of entries with those keys, in proportion to their bytes.
    pub fn approximate_entries(&self, start: &[u8], end: Option<&[u8]>) -> u64 {
        let bytes = u128::from(self.approximate_bytes(start, end));
        let scaled = bytes * u128::from(self.summary.entries);
        scaled.div_ceil(u128::from(self.summary.file_bytes.max(1))) as u64
    }
}
