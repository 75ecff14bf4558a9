//! The rows of kept runs, found by what they are of. Lookups and judgements read runs through this
//! and nothing else.

use crate::record::Record;
use crate::sweep::fairness::{Violation, violations};
use crate::sweep::grid::{Cell, StudyRun};
use esker_engines::ENGINES;
use std::collections::BTreeSet;

/// One row of a run, with the cell it was made in.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The study.
    pub study: &'a str,
    /// The cell.
    pub cell: &'a Cell,
    /// What was measured.
    pub record: &'a Record,
    /// The rules of fairness that it breaks, each in a sentence without a full stop.
    pub notes: Vec<String>,
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
    /// Rows whose own lookups contradict them; first of their notes is how.
    contradicted: Vec<Row<'a>>,
    /// Rows that were left out, each with the reason in its record.
    skipped: Vec<Row<'a>>,
    /// Cells that failed, with the reason. Their rows count as missing: what found the fault may be
    /// a step behind the row.
    failed: Vec<(&'a str, &'a Cell, &'a str)>,
}

impl<'a> Measurements<'a> {
    /// Takes the runs apart.
    pub fn of(runs: &'a [StudyRun]) -> Measurements<'a> {
        let mut all = Measurements::default();
        for run in runs {
            let broken = violations(&run.finished);
            for finished in &run.finished {
                let (study, cell) = (run.study.as_str(), &finished.cell);
                all.failed.extend(finished.failure.as_deref().map(|reason| (study, cell, reason)));
                for record in &finished.records {
                    let mut broken: Vec<&Violation> =
                        broken.iter().filter(|violation| violation.concerns(cell, &record.row)).collect();
                    broken.sort_by_key(|violation| !violation.contradicts_itself);
                    let notes = broken.iter().map(|violation| violation.reason.clone()).collect();
                    let row = Row { study, cell, record, notes };
                    if record.skipped.is_some() {
                        all.skipped.push(row);
                    } else if finished.failure.is_some() || record.ops == 0 {
                        continue;
                    } else if broken.first().is_some_and(|violation| violation.contradicts_itself) {
                        all.contradicted.push(row);
                    } else {
                        all.rows.push(row);
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

    /// Every one of [`ENGINES`] that has a cell, in that order. What only serves as a yardstick
    /// (the device itself) is none of them.
    pub fn engines(&self) -> Vec<&'static str> {
        let of_rows = self.every_row().map(|row| row.cell.engine.as_str());
        let found: BTreeSet<&str> =
            of_rows.chain(self.failed.iter().map(|(_, cell, _)| cell.engine.as_str())).collect();
        ENGINES.into_iter().filter(|engine| found.contains(engine)).collect()
    }

    /// Those that are not used too.
    fn every_row(&self) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().chain(&self.skipped).chain(&self.contradicted)
    }

    /// Every size (`num`) that the rows wanted were measured at.
    pub fn sizes(&self, query: &Query<'_>) -> BTreeSet<u64> {
        self.wanted(query).map(|row| row.record.num).collect()
    }

    fn wanted(&self, query: &Query<'_>) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().filter(|row| query.is_of(row.study, row.cell) && row.record.row == query.row)
    }

    /// The rows wanted, of every variant. Where runs of several sizes are given, the largest
    /// counts: figures of different sizes are never taken for repetitions of each other.
    pub fn select(&self, query: &Query<'_>) -> Vec<&Row<'a>> {
        self.sizes(query).last().map_or_else(Vec::new, |largest| self.of_size(query, *largest))
    }

    fn of_size(&self, query: &Query<'_>, num: u64) -> Vec<&Row<'a>> {
        self.wanted(query).filter(|row| row.record.num == num).collect()
    }

    /// The rows wanted, of the size `num` or else the largest, and of one variant: SQLite with row
    /// ids, as in 2011, where there are several; else the first by name, which is the one without a
    /// name if there is that.
    pub fn rows_of_one_variant(&self, query: &Query<'_>, num: Option<u64>) -> Vec<&Row<'a>> {
        let mut found = num.map_or_else(|| self.select(query), |num| self.of_size(query, num));
        let variants: BTreeSet<&str> = found.iter().map(|row| row.cell.variant.as_str()).collect();
        let chosen = variants.get("rowid").or(variants.first()).copied();
        found.retain(|row| Some(row.cell.variant.as_str()) == chosen);
        found
    }

    /// Why there is nothing, in one line without a full stop.
    pub fn reason(&self, query: &Query<'_>) -> String {
        let Query { study, experiment, engine, row, .. } = query;
        let is_wanted = |there: &Row<'_>| query.is_of(there.study, there.cell) && there.record.row == *row;
        let skipped = self.skipped.iter().find(|row| is_wanted(row)).and_then(|row| row.record.skipped.as_deref());
        let failed = self.failed.iter().find(|(study, cell, _)| query.is_of(study, cell)).map(|(_, _, reason)| *reason);
        if let Some(reason) = skipped {
            return format!("{engine} skipped {row}: {reason}");
        }
        if let Some(reason) = failed {
            return format!("the cell of {engine} failed: {reason}");
        }
        if let Some(contradicted) = self.contradicted.iter().find(|row| is_wanted(row)) {
            let reason = contradicted.notes.first().map_or("", String::as_str);
            return format!("{row} of {engine} is not judged, for {reason}");
        }
        let of_study = || self.every_row().filter(|row| row.study == *study);
        if of_study().next().is_none() {
            return format!("these runs hold nothing of the study {study}");
        }
        if !of_study().any(|row| row.cell.experiment == *experiment) {
            return format!("these runs hold nothing of the experiment {experiment} of {study}");
        }
        format!("these runs hold no {row} of {engine} in the experiment {experiment} of {study}")
    }
}
