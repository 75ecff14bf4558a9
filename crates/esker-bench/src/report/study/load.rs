//! Runs as reports read them: from run directories, from runs kept as one file
//! (`sweep::grid::lines`), and from files of records.
//!
//! ```text
//! file = { line }                        one JSON object a line; empty lines are passed over
//! line = record                          `esker bench --json`, `esker study scoreboard --records`
//!      | { part, record }                `esker study scale --json`
//!      | { kind: machine | figure, .. }  the studies; the machine counts, derived figures do not
//!      | { kind: check | cost, .. }      `esker study ttl --records`
//! ```

use crate::judgement::ttl_rows;
use crate::record::{Host, Record, SCHEMA_VERSION};
use crate::sweep::grid::{Cell, Finished, RunDirectory, SCHEMA, StudyRun, lines};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Loads each path. The error is one line.
pub fn runs(paths: &[PathBuf]) -> Result<Vec<StudyRun>, String> {
    paths.iter().map(|path| run(path)).collect()
}

fn run(path: &Path) -> Result<StudyRun, String> {
    if path.is_dir() {
        return RunDirectory::open(path)?.load();
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if text.lines().next().is_some_and(lines::is_run) {
        return lines::read(&text).map_err(|problem| format!("{}: {problem}", path.display()));
    }
    let mut file = Lines::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        file.line(line).map_err(|problem| format!("{}, line {}: {problem}", path.display(), number + 1))?;
    }
    if file.run.finished.is_empty() {
        return Err(format!(
            "{} holds no record: give a run directory, or a file of `esker bench --json` or `esker study ... --records`",
            path.display()
        ));
    }
    // Of files that lack a figure nothing counts, and judgement says that it was not measured.
    let claimed = std::mem::take(&mut file.claimed).into_iter().collect::<Option<Vec<Record>>>();
    if let Some(records) = claimed.filter(|records| !records.is_empty()) {
        file.run.finished.push(cell_of_records(ttl_rows::EXPERIMENT, "esker", records));
    }
    file.run.title = path.file_stem().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Ok(file.run)
}

#[derive(Default)]
struct Lines {
    run: StudyRun,
    /// What claims about times to live turn on; older versions did not keep the figures.
    claimed: Vec<Option<Record>>,
    /// The machine of the lines that do not name theirs.
    host: Host,
}

/// A line that is no bare record.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Row { part: Option<String>, record: Option<Value> },
    Machine { host: Value },
    Check { scenario: String, what: String, held: bool, found: String, figure: Option<u64>, of: Option<u64> },
    Cost { variant: String, num: u64, fillrandom_us: Vec<f64>, readrandom_us: Vec<f64> },
    Figure,
    Mean,
}

const SUMMARY: &str = "a summary of a scoreboard, not records: use the file of `--records`, or `esker study compare`";

impl Lines {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        if value.get("kind").is_none() && value.get("benchmark").is_some() {
            return self.take("", value);
        }
        let esker = self.of_esker();
        let neither = |error| format!("neither a record nor a line of a study: {error}");
        match serde_json::from_value(value).map_err(neither)? {
            Line::Row { record: None, .. } => return Err(SUMMARY.into()),
            Line::Row { part, record: Some(record) } => {
                self.run.study = "scale".into();
                self.take(&part.unwrap_or_default(), record)?;
            }
            Line::Machine { host } => self.host = serde_json::from_value(host).unwrap_or_default(),
            // The verdict of a check is its message.
            Line::Check { scenario, what, held, found, figure, of } => {
                if let Some(row) = ttl_rows::row(&what) {
                    let (ops, message, benchmark) = (of.unwrap_or(1), format!("({found})"), "ttl".into());
                    let claimed = Record { benchmark, row: row.into(), num: ops, ops, message, ..esker.clone() };
                    self.claimed.push(figure.map(|_| Record { found: figure, ..claimed }));
                }
                let message = format!("{}: {found}", if held { "held" } else { "NOT HELD" });
                let record = Record { benchmark: "ttlcheck".into(), row: what, message, ..esker };
                self.run.study = "ttl".into();
                self.run.finished.push(cell_of_records(&scenario, "esker", vec![record]));
            }
            Line::Cost { variant, num, fillrandom_us, readrandom_us } => {
                self.run.study = "ttl".into();
                for (row, figures) in [("fillrandom", fillrandom_us), ("readrandom", readrandom_us)] {
                    for (repetition, micros) in (1..).zip(figures) {
                        let record = cost(row, num, micros, Record { repetition, ..esker.clone() });
                        let mut finished = cell_of_records("cost", "esker", vec![record]);
                        finished.cell.variables = [("entries".to_string(), variant.replace('_', " "))].into();
                        self.run.finished.push(finished);
                    }
                }
            }
            Line::Figure | Line::Mean => {}
        }
        Ok(())
    }

    fn take(&mut self, experiment: &str, record: Value) -> Result<(), String> {
        let record: Record = serde_json::from_value(record).map_err(|error| format!("no record: {error}"))?;
        if record.schema != SCHEMA_VERSION {
            let other = record.schema;
            return Err(format!(
                "a record of schema {other}, this program reads {SCHEMA_VERSION}: use the version that made it"
            ));
        }
        let engine = record.engine.clone();
        self.run.finished.push(cell_of_records(experiment, &engine, vec![record]));
        Ok(())
    }

    /// What all lines of the study of times to live have in common.
    fn of_esker(&self) -> Record {
        Record {
            schema: SCHEMA_VERSION,
            engine: "esker".into(),
            repetition: 1,
            threads: 1,
            host: self.host.clone(),
            ..Record::default()
        }
    }
}

/// What times to live cost in one repetition of a benchmark.
fn cost(benchmark: &str, num: u64, micros: f64, esker: Record) -> Record {
    Record {
        benchmark: benchmark.into(),
        row: benchmark.into(),
        num,
        ops: num,
        micros_per_op: micros,
        micros_per_op_wall: micros,
        ops_per_sec: if micros > 0.0 { 1e6 / micros } else { 0.0 },
        ..esker
    }
}

/// Records that came without a cell, as if one had made them. Thread counts are told apart.
pub fn cell_of_records(experiment: &str, engine: &str, records: Vec<Record>) -> Finished {
    let first = records.first().cloned().unwrap_or_default();
    let threads = (first.threads > 1).then(|| ("threads".to_string(), first.threads.to_string()));
    let variables = threads.into_iter().collect();
    let repetition = first.repetition.max(1);
    let cell = Cell { experiment: experiment.into(), engine: engine.into(), variables, repetition, ..Cell::default() };
    Finished {
        schema: SCHEMA,
        cell,
        seconds: records.iter().map(|record| record.wall_s).sum(),
        records,
        host: first.host,
        finished_unix_s: first.started_unix_s,
        ..Finished::default()
    }
}
