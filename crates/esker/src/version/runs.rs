//! The runs of one keyspace: immutable, replaced as a whole.

use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::table::{Table, TableSummary};
use std::sync::Arc;

/// Tables that do not overlap, in the order of their keys: one sorted sequence.
#[derive(Debug, Clone)]
pub struct Run {
    /// Runs with a greater number hold newer writes.
    pub id: u64,
    pub tables: Vec<Arc<Table>>,
    /// Those of all its tables.
    pub range_tombstones: Arc<RangeTombstones>,
}

impl Run {
    /// A run of tables in the order of their keys.
    pub fn new(id: u64, tables: Vec<Arc<Table>>) -> Run {
        let all = tables.iter().map(|table| table.range_tombstones());
        let range_tombstones = Arc::new(RangeTombstones::concatenate(all));
        Run { id, tables, range_tombstones }
    }

    /// The table that can hold `key`.
    #[inline]
    pub fn table_for(&self, key: &[u8]) -> Option<&Arc<Table>> {
        let at = match self.tables.as_slice() {
            [_] => 0,
            // By the smallest key: a range tombstone may end where the next table begins. All
            // tables of a run have one order, which is looked up once.
            [first, ..] if first.order().is_bytewise() => {
                self.tables.partition_point(|table| table.summary().smallest_key.as_slice() <= key).saturating_sub(1)
            }
            tables => {
                let is_at_or_before =
                    |table: &Arc<Table>| table.order().compare(&table.summary().smallest_key, key).is_le();
                tables.partition_point(is_at_or_before).saturating_sub(1)
            }
        };
        self.tables.get(at).filter(|table| table.summary().spans(key))
    }

    /// Whether a table spans a key from the smallest of table `first` to the largest of table
    /// `last`.
    pub fn overlaps(&self, first: &TableSummary, last: &TableSummary) -> bool {
        let at = self.tables.partition_point(|table| table.summary().is_before(&first.smallest_key));
        self.tables.get(at).is_some_and(|table| !last.is_before(&table.summary().smallest_key))
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.summary().file_bytes).sum()
    }

    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|table| table.summary().entries).sum()
    }
}

/// All runs, newest first.
#[derive(Debug, Clone, Default)]
pub struct Version {
    pub runs: Vec<Arc<Run>>,
}

impl Version {
    /// A version made of tables with the ids of their runs.
    pub fn from_tables(tables: impl IntoIterator<Item = (u64, Arc<Table>)>) -> Version {
        let mut runs = std::collections::BTreeMap::<u64, Vec<Arc<Table>>>::new();
        for (run, table) in tables {
            runs.entry(run).or_default().push(table);
        }
        let sorted = runs.into_iter().rev().map(|(id, mut tables)| {
            let order = tables.first().map_or(KeyOrder::Bytewise, |table| table.order().clone());
            order.sort(&mut tables, |table| &table.summary().smallest_key);
            Arc::new(Run::new(id, tables))
        });
        Version { runs: sorted.collect() }
    }

    /// This version without the tables numbered in `removed`, and with `added`.
    pub fn edited(&self, removed: &[u64], added: impl IntoIterator<Item = (u64, Arc<Table>)>) -> Version {
        let kept = self.tables().filter(|(_, table)| !removed.contains(&table.summary().file_number));
        Version::from_tables(kept.chain(added))
    }

    /// Every table with the id of its run.
    pub fn tables(&self) -> impl Iterator<Item = (u64, Arc<Table>)> {
        self.runs.iter().flat_map(|run| run.tables.iter().map(|table| (run.id, Arc::clone(table))))
    }

    /// The oldest run that can take the tables: neither it nor any newer run has a key between
    /// theirs. Sequential loads are written once this way. While a compaction runs, only runs newer
    /// than its newest input, `above`, can: what it reads will be replaced as a whole.
    pub fn deepest_free_run(&self, tables: &[Arc<Table>], above: Option<u64>) -> Option<u64> {
        let (first, last) = (tables.first()?.summary(), tables.last()?.summary());
        let candidates = self.runs.iter().take_while(|run| above.is_none_or(|newest| run.id > newest));
        let free = candidates.take_while(|run| !run.overlaps(first, last)).last()?;
        Some(free.id)
    }

    /// The first pair of neighbours in a run that overlap, by file number: there must be none.
    /// Where a comparator may break its laws there may be some, and none is reported: it is noted
    /// as a fault of the comparator.
    pub fn overlap(&self) -> Option<(u64, u64)> {
        let found = self.any_overlap();
        let order = self.tables().next().map_or(KeyOrder::Bytewise, |(_, table)| table.order().clone());
        if found.is_some() && !order.is_trusted() {
            order.note_fault();
            return None;
        }
        found
    }

    fn any_overlap(&self) -> Option<(u64, u64)> {
        self.runs.iter().flat_map(|run| run.tables.windows(2)).find_map(|pair| {
            let (left, right) = (pair[0].summary(), pair[1].summary());
            (!left.is_before(&right.smallest_key)).then_some((left.file_number, right.file_number))
        })
    }
}
