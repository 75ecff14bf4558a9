//! The rows of kept runs, found by what they are of. Lookups and judgements read runs through this and nothing else.

use crate::engine::ENGINES;
use crate::record::Record;
use crate::study::grid::{Cell, StudyRun};
use std::collections::BTreeSet;

/// One row of a run, with the cell it was made in.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The study.
    pub study: &'a str,
    /// The cell.
    pub cell: &'a Cell,
    /// What was measured.
    pub record: &'a Record,
}

/// Which rows are wanted. Variables that are not named may have any value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<'q> {
    /// The study.
    pub study: &'q str,
    /// Its experiment.
    pub experiment: &'q str,
    /// The engine.
    pub engine: &'q str,
    /// The row within the cell.
    pub row: &'q str,
    /// Values that variables must have.
    pub variables: &'q [(&'q str, &'q str)],
}

impl Query<'_> {
    fn is_of(&self, study: &str, cell: &Cell) -> bool {
        let has = |(name, value): &(&str, &str)| cell.variables.get(*name).is_some_and(|there| there == value);
        self.study == study
            && self.experiment == cell.experiment
            && self.engine == cell.engine
            && self.variables.iter().all(has)
    }
}

/// Everything that some runs measured.
#[derive(Debug, Clone, Default)]
pub struct Measurements<'a> {
    rows: Vec<Row<'a>>,
    /// Rows that were left out, each with the reason in its record.
    skipped: Vec<Row<'a>>,
    /// Cells that ended early, with the reason.
    failed: Vec<(&'a str, &'a Cell, &'a str)>,
}

impl<'a> Measurements<'a> {
    /// Takes the runs apart.
    pub fn of(runs: &'a [StudyRun]) -> Measurements<'a> {
        let mut all = Measurements::default();
        for run in runs {
            for finished in &run.finished {
                let study = run.study.as_str();
                all.failed.extend(finished.failure.as_deref().map(|reason| (study, &finished.cell, reason)));
                for record in &finished.records {
                    let row = Row { study, cell: &finished.cell, record };
                    match &record.skipped {
                        Some(_) => all.skipped.push(row),
                        None if record.ops > 0 => all.rows.push(row),
                        None => {}
                    }
                }
            }
        }
        all
    }

    /// Every row, in the order of the runs.
    pub fn rows(&self) -> &[Row<'a>] {
        &self.rows
    }

    /// Every one of [`ENGINES`] that has a cell, in that order. What only serves as a yardstick (the device itself) is none of them.
    pub fn engines(&self) -> Vec<&'static str> {
        let of_rows = self.rows.iter().chain(&self.skipped).map(|row| row.cell.engine.as_str());
        let found: BTreeSet<&str> =
            of_rows.chain(self.failed.iter().map(|(_, cell, _)| cell.engine.as_str())).collect();
        ENGINES.into_iter().filter(|engine| found.contains(engine)).collect()
    }

    /// The rows wanted, of every variant. Where runs of several sizes are given, the largest counts: figures of different sizes are never
    /// taken for repetitions of each other.
    pub fn select(&self, query: &Query<'_>) -> Vec<Row<'a>> {
        let wanted = |row: &&Row<'a>| query.is_of(row.study, row.cell) && row.record.row == query.row;
        let mut found: Vec<Row<'a>> = self.rows.iter().filter(wanted).copied().collect();
        let largest = found.iter().map(|row| row.record.num).max();
        found.retain(|row| Some(row.record.num) == largest);
        found
    }

    /// The records wanted, of one variant: SQLite with row ids, as in 2011, where there are several; else the first by name, which is the one
    /// without a name if there is that.
    pub fn records(&self, query: &Query<'_>) -> Vec<&'a Record> {
        let found = self.select(query);
        let variants: BTreeSet<&str> = found.iter().map(|row| row.cell.variant.as_str()).collect();
        let chosen = variants.get("rowid").or(variants.first()).copied();
        found.iter().filter(|row| Some(row.cell.variant.as_str()) == chosen).map(|row| row.record).collect()
    }

    /// Why there is nothing, in one line without a full stop.
    pub fn reason(&self, query: &Query<'_>) -> String {
        let Query { study, experiment, engine, row, .. } = query;
        let of_row = |skipped: &&Row<'_>| query.is_of(skipped.study, skipped.cell) && skipped.record.row == *row;
        let skipped = self.skipped.iter().find(of_row).and_then(|row| row.record.skipped.as_deref());
        let failed = self.failed.iter().find(|(study, cell, _)| query.is_of(study, cell)).map(|(_, _, reason)| *reason);
        if let Some(reason) = skipped {
            return format!("{engine} skipped {row}: {reason}");
        }
        if let Some(reason) = failed {
            return format!("the cell of {engine} failed: {reason}");
        }
        let studies = || self.rows.iter().chain(&self.skipped);
        if !studies().any(|row| row.study == *study) {
            return format!("these runs hold nothing of the study {study}");
        }
        if !studies().any(|row| row.study == *study && row.cell.experiment == *experiment) {
            return format!("these runs hold nothing of the experiment {experiment} of {study}");
        }
        format!("these runs hold no {row} of {engine} in the experiment {experiment} of {study}")
    }
}
