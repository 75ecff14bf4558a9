//! The runs of one keyspace: immutable, replaced as a whole.

use crate::table::Table;
use std::sync::Arc;

/// Tables that do not overlap, in the order of their keys: one sorted sequence.
#[derive(Debug, Clone)]
pub struct Run {
    /// Runs with a greater number hold newer writes.
    pub id: u64,
    pub tables: Vec<Arc<Table>>,
}

impl Run {
    /// The table that can hold `key`.
    #[inline]
    pub fn table_for(&self, key: &[u8]) -> Option<&Arc<Table>> {
        let at = match self.tables.len() {
            1 => 0,
            _ => self.tables.partition_point(|table| table.summary().largest_key.as_slice() < key),
        };
        self.tables.get(at).filter(|table| {
            let summary = table.summary();
            summary.smallest_key.as_slice() <= key && key <= summary.largest_key.as_slice()
        })
    }

    /// Whether a table has keys from `smallest` to `largest`, both included.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let at = self.tables.partition_point(|table| table.summary().largest_key.as_slice() < smallest);
        self.tables.get(at).is_some_and(|table| table.summary().smallest_key.as_slice() <= largest)
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
pub struct Tree {
    pub runs: Vec<Arc<Run>>,
}

impl Tree {
    /// A tree of tables with the ids of their runs.
    pub fn from_tables(tables: impl IntoIterator<Item = (u64, Arc<Table>)>) -> Tree {
        let mut runs = std::collections::BTreeMap::<u64, Vec<Arc<Table>>>::new();
        for (run, table) in tables {
            runs.entry(run).or_default().push(table);
        }
        let sorted = runs.into_iter().rev().map(|(id, mut tables)| {
            tables.sort_by(|a, b| a.summary().smallest_key.cmp(&b.summary().smallest_key));
            Arc::new(Run { id, tables })
        });
        Tree { runs: sorted.collect() }
    }

    /// This tree without the tables numbered in `removed`, and with `added`.
    pub fn edited(&self, removed: &[u64], added: impl IntoIterator<Item = (u64, Arc<Table>)>) -> Tree {
        let kept = self.tables().filter(|(_, table)| !removed.contains(&table.summary().file_number));
        Tree::from_tables(kept.chain(added))
    }

    /// Every table with the id of its run.
    pub fn tables(&self) -> impl Iterator<Item = (u64, Arc<Table>)> {
        self.runs.iter().flat_map(|run| run.tables.iter().map(|table| (run.id, Arc::clone(table))))
    }

    /// The oldest run that can take the tables: neither it nor any newer run has a key between theirs. Sequential loads are written once this
    /// way. While a merge is at work, only runs newer than its newest input, `above`, can: what it reads will be replaced as a whole.
    pub fn deepest_free_run(&self, tables: &[Arc<Table>], above: Option<u64>) -> Option<u64> {
        let smallest = &tables.first()?.summary().smallest_key;
        let largest = &tables.last()?.summary().largest_key;
        let candidates = self.runs.iter().take_while(|run| above.is_none_or(|newest| run.id > newest));
        let free = candidates.take_while(|run| !run.overlaps(smallest, largest)).last()?;
        Some(free.id)
    }

    /// The first pair of neighbours in a run that overlap, by file number: there must be none.
    pub fn overlap(&self) -> Option<(u64, u64)> {
        self.runs.iter().flat_map(|run| run.tables.windows(2)).find_map(|pair| {
            let (left, right) = (pair[0].summary(), pair[1].summary());
            (left.largest_key >= right.smallest_key).then_some((left.file_number, right.file_number))
        })
    }
}
