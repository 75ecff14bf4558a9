//! The input of picking, the shape of a version, and its output, a plan.

use crate::base::key::Sequence;
use crate::base::key_order::KeyOrder;
use crate::table::TableSummary;
use std::ops::{Bound, Range};

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableShape<'a> {
    pub number: u64,
    pub bytes: u64,
    /// Those of the large values that it refers to, in other files.
    pub blob_bytes: u64,
    pub entries: u64,
    pub deletes: u64,
    pub expiring_entries: u64,
    pub smallest_expiry_ms: u64,
    pub largest_expiry_ms: u64,
    /// The newest write in it.
    pub newest: Sequence,
    pub smallest: &'a [u8],
    /// The end of what the table says anything about.
    pub largest: Bound<&'a [u8]>,
    /// Rewriting it has been tried, and gained nothing.
    pub rewrite_futile: bool,
}

impl<'a> TableShape<'a> {
    pub fn new(summary: &'a TableSummary, rewrite_futile: bool) -> TableShape<'a> {
        TableShape {
            number: summary.file_number,
            bytes: summary.file_bytes,
            blob_bytes: summary.blobs.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            entries: summary.entries,
            deletes: summary.deletes,
            expiring_entries: summary.expiring_entries,
            smallest_expiry_ms: summary.smallest_expiry_ms,
            largest_expiry_ms: summary.largest_expiry_ms,
            newest: summary.largest_sequence,
            smallest: &summary.smallest_key,
            largest: match summary.largest_exclusive {
                false => Bound::Included(&summary.largest_key),
                // An empty end is behind every key.
                true if summary.largest_key.is_empty() => Bound::Unbounded,
                true => Bound::Excluded(&summary.largest_key),
            },
            rewrite_futile,
        }
    }

    /// With the large values that it refers to.
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.blob_bytes)
    }
}

/// A run: its tables in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct RunShape<'a> {
    pub bytes: u64,
    pub tables: Vec<TableShape<'a>>,
    pub order: KeyOrder,
}

impl<'a> RunShape<'a> {
    /// Of keys in the bytewise order.
    #[cfg(test)]
    pub fn new(tables: Vec<TableShape<'a>>) -> RunShape<'a> {
        RunShape::new_in(KeyOrder::Bytewise, tables)
    }

    pub fn new_in(order: KeyOrder, tables: Vec<TableShape<'a>>) -> RunShape<'a> {
        RunShape { bytes: tables.iter().map(|table| table.bytes).sum(), tables, order }
    }

    /// The tables with keys from `smallest` to `largest`.
    pub fn overlapping(&self, smallest: &[u8], largest: Bound<&[u8]>) -> Range<usize> {
        let start = self.tables.partition_point(|table| !self.order.is_below(table.largest, smallest));
        let end = self.tables.partition_point(|table| self.order.is_below(largest, table.smallest));
        start..end.max(start)
    }
}

/// A keyspace: its runs, newest first, and what else decides.
#[derive(Clone, Debug, Default)]
pub struct Shape<'a> {
    pub runs: Vec<RunShape<'a>>,
    /// No write came for a while.
    pub paused: bool,
    /// What expires until then counts as deleted; 0 where nothing expires.
    pub expired_until_ms: u64,
    /// What the oldest live snapshot reads at; the greatest number if there is none.
    pub oldest_snapshot: Sequence,
    /// Bytes from which a run is a level of its own.
    pub level_base_bytes: u64,
    /// Dead entries that scans have skipped since the last full compaction.
    pub tombstones_skipped: u64,
    /// Gets have high read amplification.
    pub high_read_amp: bool,
}

impl<'a> Shape<'a> {
    /// Bytes of all tables and of the large values that they refer to.
    pub fn bytes(&self) -> u64 {
        let tables = self.runs.iter().flat_map(|run| &run.tables);
        tables.fold(0, |sum, table| sum.saturating_add(table.all_bytes()))
    }

    /// Whether rewriting a table of the last run would drop or combine nothing: at the bottom, an
    /// entry that nothing needs to tell from others has no sequence number left.
    pub fn is_finished(&self, table: &TableShape<'_>) -> bool {
        table.newest == 0 && (table.expiring_entries == 0 || table.smallest_expiry_ms > self.expired_until_ms)
    }

    /// The order of the keys; any if there is no run.
    pub fn order(&self) -> &KeyOrder {
        self.runs.first().map_or(&KeyOrder::Bytewise, |run| &run.order)
    }

    /// Whether no run older than `run` has keys from `smallest` to `largest`.
    pub fn nothing_below(&self, run: usize, smallest: &[u8], largest: Bound<&[u8]>) -> bool {
        self.runs.iter().skip(run + 1).all(|older| older.overlapping(smallest, largest).is_empty())
    }

    /// Tables of the runs from `first` to `last` that can be compacted into the last of them
    /// without any write passing an older one: those with keys from `smallest` to `largest`, and in
    /// each older run those with keys in the range of any taken from a newer one.
    pub fn closure(&self, first: usize, last: usize, smallest: &'a [u8], largest: Bound<&'a [u8]>) -> Vec<Part> {
        let (mut smallest, mut largest) = (smallest, largest);
        let mut parts = Vec::new();
        for (at, run) in self.runs.iter().enumerate().take(last + 1).skip(first) {
            let tables = run.overlapping(smallest, largest);
            if let [leftmost, .., rightmost] | [leftmost @ rightmost] = &run.tables[tables.clone()] {
                smallest = run.order.min(smallest, leftmost.smallest);
                largest = run.order.later(largest, rightmost.largest);
                parts.push(Part { run: at, tables });
            }
        }
        parts
    }

    /// Whether nothing older than what the plan reads exists for any of its keys.
    pub fn is_bottom(&self, plan: &Plan) -> bool {
        let below = |run: usize, tables: &[TableShape<'_>]| {
            tables.iter().all(|table| self.nothing_below(run, table.smallest, table.largest))
        };
        match plan {
            Plan::Merge { last, .. } => last + 1 == self.runs.len(),
            // Between the runs of the parts nothing is left out: see `closure`.
            Plan::Partial { parts, target } => {
                parts.iter().all(|part| below(*target, &self.runs[part.run].tables[part.tables.clone()]))
            }
            Plan::Rewrite { run, table } => below(*run, &self.runs[*run].tables[*table..=*table]),
            Plan::Drop { .. } => true,
        }
    }
}

/// Neighbouring tables of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub run: usize,
    pub tables: Range<usize>,
}

/// What to do. Runs are counted from the newest, the tables of a run from the smallest key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Compact the whole runs from index `first` to index `last`, both included, into one in the
    /// place of the first.
    Merge { first: usize, last: usize },
    /// Compact these tables, of neighbouring runs, newest first, into the run `target`, the oldest
    /// of them. Nothing else in there, or between there and the newest part, has keys in the range
    /// of a part that is newer.
    Partial { parts: Vec<Part>, target: usize },
    /// Rewrite a table, in its place.
    Rewrite { run: usize, table: usize },
    /// Remove the tables with these numbers without reading them.
    Drop { tables: Vec<u64> },
}
