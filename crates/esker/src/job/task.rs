//! A plan applied to a tree: which tables are read, and where the result goes.

use super::pick::shape::{Part, Plan};
use crate::version::tree::{Run, Tree};
use std::sync::Arc;

/// What a merge reads and writes.
#[derive(Clone, Debug)]
pub struct Task {
    /// Whole runs or parts of some, newest first.
    pub inputs: Vec<Arc<Run>>,
    /// The run of the result: the one that its inputs leave the place of.
    pub run: u64,
    /// That run is the last.
    pub into_last: bool,
}

impl Task {
    /// `None` for a plan that reads nothing.
    pub fn new(tree: &Tree, plan: &Plan) -> Option<Task> {
        let part = |part: &Part| -> Option<Arc<Run>> {
            let run = tree.runs.get(part.run)?;
            Some(Arc::new(Run::new(run.id, run.tables.get(part.tables.clone())?.to_vec())))
        };
        let (inputs, run, oldest) = match plan {
            Plan::Drop { .. } => return None,
            // Newer runs than the newest input have greater ids than it, older ones than the oldest smaller.
            Plan::Merge { first, last } => {
                let inputs = tree.runs.get(*first..=*last)?.to_vec();
                (inputs, tree.runs.get(*first)?.id, *last)
            }
            // What stays of the newer runs has no key in the range of what goes into the target: see `Shape::closure`.
            Plan::Partial { parts, target } => {
                let inputs = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
                (inputs, tree.runs.get(*target)?.id, *target)
            }
            Plan::Rewrite { run, table } => {
                let input = part(&Part { run: *run, tables: *table..*table + 1 })?;
                (vec![input], tree.runs.get(*run)?.id, *run)
            }
        };
        Some(Task { inputs, run, into_last: oldest + 1 == tree.runs.len() })
    }

    /// The id of the newest run it reads from.
    pub fn newest(&self) -> u64 {
        self.inputs.first().map_or(self.run, |run| run.id)
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
