//! A broken rule, and the row that breaks it.

use crate::record::Record;
use crate::sweep::grid::{Cell, Finished};
use std::collections::BTreeMap;

/// A row that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// The experiment.
    pub experiment: String,
    /// The engine.
    pub engine: String,
    /// Its variant; empty where there is one only.
    pub variant: String,
    /// What varies.
    pub variables: BTreeMap<String, String>,
    /// The repetition.
    pub repetition: u32,
    /// The row.
    pub row: String,
    /// What is wrong, in one sentence without a full stop.
    pub reason: String,
    /// Whether the database contradicts itself, so that the row is not judged. Every other broken
    /// rule only stands beside the figures.
    pub contradicts_itself: bool,
}

impl Violation {
    /// Whether it is about this row of this cell.
    pub fn concerns(&self, cell: &Cell, row: &str) -> bool {
        self.row == row
            && self.experiment == cell.experiment
            && self.engine == cell.engine
            && self.variant == cell.variant
            && self.repetition == cell.repetition
            && self.variables == cell.variables
    }
}

/// A row with the cell it is of.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) finished: &'a Finished,
    pub(super) record: &'a Record,
}

impl Member<'_> {
    pub(super) fn violation(&self, reason: String) -> Violation {
        let cell = &self.finished.cell;
        Violation {
            experiment: cell.experiment.clone(),
            engine: cell.engine.clone(),
            variant: cell.variant.clone(),
            variables: cell.variables.clone(),
            repetition: cell.repetition,
            row: self.record.row.clone(),
            reason,
            contradicts_itself: false,
        }
    }

    /// Its name beside others.
    pub(super) fn name(&self) -> String {
        let cell = &self.finished.cell;
        if cell.variant.is_empty() { cell.engine.clone() } else { format!("{} ({})", cell.engine, cell.variant) }
    }

    /// Whether its run came to its end: one that did not holds less, which is a rule of its own.
    pub(super) fn is_whole(&self) -> bool {
        let finished = self.finished;
        finished.failure.is_none() && !finished.records.iter().any(Record::ended_early)
    }
}

/// Reports the members whose answer differs from the most frequent one, or all if there is none.
pub(super) fn odd<V, T: Ord>(
    members: &[(&Member<'_>, V)],
    of: impl Fn(&V) -> T,
    what: impl Fn(&V) -> String,
    found: &mut Vec<Violation>,
) {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for (_, answer) in members {
        *counts.entry(of(answer)).or_default() += 1;
    }
    if counts.len() < 2 {
        return;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let mut leading = counts.into_iter().filter(|(_, count)| *count == most).map(|(answer, _)| answer);
    let usual = leading.next().filter(|_| leading.next().is_none());
    for (member, answer) in members.iter().filter(|(_, answer)| usual.as_ref() != Some(&of(answer))) {
        let others = members.iter().filter(|(_, other)| of(other) != of(answer));
        let names: Vec<String> = others.map(|(other, _)| other.name()).collect();
        found.push(member.violation(format!("{} {}", what(answer), names.join(", "))));
    }
}
