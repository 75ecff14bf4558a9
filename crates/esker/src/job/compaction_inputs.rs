//! A plan applied to a version: which tables are read, and where the result goes.

use super::output_splitter::OutputSplitter;
use super::pick::shape::{Part, Plan};
use crate::table::Table;
use crate::version::runs::{Run, Version};
use std::sync::Arc;

/// The inputs and the place of the output of a compaction.
#[derive(Clone, Debug)]
pub struct CompactionInputs {
    /// Whole runs or parts of some, newest first.
    pub inputs: Vec<Arc<Run>>,
    /// The run of the result, which takes the place of its inputs.
    pub run: u64,
    /// That run is the last.
    pub into_last: bool,
    /// The newest run it reads from.
    pub newest: u64,
    /// The oldest run of the plan, which need not be among the inputs: of it no table may overlap
    /// what goes into it.
    oldest: u64,
    /// Where its tables end.
    pub splitter: OutputSplitter,
    /// Tables of the inputs that become part of the result as they are, each with the run that it
    /// was in.
    pub kept: Vec<(u64, Arc<Table>)>,
}

impl CompactionInputs {
    /// `None` for a plan that reads nothing.
    pub fn new(version: &Version, plan: &Plan) -> Option<CompactionInputs> {
        let part = |part: &Part| -> Option<Arc<Run>> {
            let run = version.runs.get(part.run)?;
            Some(Arc::new(Run::new(run.id, run.tables.get(part.tables.clone())?.to_vec())))
        };
        let (inputs, run, oldest) = match plan {
            Plan::Drop { .. } => return None,
            // Newer runs than the newest input have greater ids than it, older ones than the oldest
            // smaller.
            Plan::Merge { first, last } => {
                let inputs = version.runs.get(*first..=*last)?.to_vec();
                (inputs, version.runs.get(*first)?.id, *last)
            }
            // What stays of the newer runs has no key in the range of what goes into the target:
            // see `Shape::closure`.
            Plan::Partial { parts, target } => {
                let inputs = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
                (inputs, version.runs.get(*target)?.id, *target)
            }
            Plan::Rewrite { run, table } => {
                let input = part(&Part { run: *run, tables: *table..*table + 1 })?;
                (vec![input], version.runs.get(*run)?.id, *run)
            }
        };
        let into_last = oldest + 1 == version.runs.len();
        let newest = inputs.first().map_or(run, |run| run.id);
        let bytes = inputs.iter().map(|run| run.bytes()).sum();
        let splitter = match plan {
            Plan::Merge { .. } if !into_last => OutputSplitter::above_last(version, bytes),
            _ => OutputSplitter::default(),
        };
        let oldest = version.runs.get(oldest)?.id;
        Some(CompactionInputs { inputs, run, into_last, newest, oldest, splitter, kept: Vec::new() })
    }

    /// Takes tables that overlap nothing in the other inputs out of these, if `may_stay` allows it:
    /// they need not be rewritten. Its argument says whether the table is of the plan's oldest run.
    ///
    /// No entry passes another of its key that way: all between a table's run and the result's that
    /// has keys in its range is read (see `new`), and there is none. The result gets no table that
    /// reaches over one that stays. Range tombstones could, from both sides of it; with any,
    /// nothing stays.
    pub fn keep_apart(&mut self, may_stay: impl Fn(&Table, bool) -> bool) {
        if self.inputs.iter().any(|run| !run.range_tombstones.is_empty()) {
            return;
        }
        let stays = |at: usize, run: &Run, table: &Arc<Table>| {
            let mut others = self.inputs.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, run)| run);
            may_stay(table, run.id == self.oldest) && !others.any(|run| run.overlaps(table.summary(), table.summary()))
        };
        let mut inputs = Vec::new();
        let mut kept = Vec::new();
        for (at, run) in self.inputs.iter().enumerate() {
            let (stay, go): (Vec<_>, Vec<_>) = run.tables.iter().cloned().partition(|table| stays(at, run, table));
            kept.extend(stay.into_iter().map(|table| (run.id, table)));
            if !go.is_empty() {
                inputs.push(Arc::new(Run::new(run.id, go)));
            }
        }
        self.inputs = inputs;
        self.splitter.kept = kept.iter().map(|(_, table)| table.summary().smallest_key.clone()).collect();
        if let Some((_, table)) = kept.first() {
            table.order().sort(&mut self.splitter.kept, |key| key);
        }
        self.kept = kept;
    }

    /// Bytes of the tables it reads.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().map(|run| run.bytes()).sum()
    }

    /// Entries of the tables it reads.
    pub fn entries(&self) -> u64 {
        self.inputs.iter().map(|run| run.entries()).sum()
    }
}
