//! Runs as reports read them: from run directories, from runs kept as one file
//! (`study::grid::lines`), and from files of records.
//!
//! ```text
//! file = { line }                        one JSON object a line; empty lines are passed over
//! line = record                          `esker bench --json`, `esker study scoreboard --records`
//!      | { part, record }                `esker study scale --json`
//!      | { kind: machine | figure, .. }  the studies; the machine counts, derived figures do not
//!      | { kind: check | cost, .. }      `esker study ttl --records`
//! ```

use crate::record::{Host, Record, SCHEMA_VERSION};
use crate::study::grid::{Cell, Finished, RunDirectory, SCHEMA, StudyRun, lines};
use crate::study::ttl::kept;
use serde_json::Value;
use std::collections::BTreeMap;
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
        file.run.finished.push(cell_of_records(kept::EXPERIMENT, "esker", records));
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

impl Lines {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut value: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        let kind = value["kind"].as_str().map(String::from);
        match kind.as_deref() {
            None if value.get("benchmark").is_some() => self.take("", record(value)?),
            Some("row") if value.get("record").is_some() => {
                self.run.study = "scale".into();
                let part = value["part"].as_str().unwrap_or_default().to_string();
                self.take(&part, record(value["record"].take())?);
            }
            Some("row") => {
                return Err(
                    "a summary of a scoreboard, not records: use the file of `--records`, or `esker study compare`"
                        .into(),
                );
            }
            Some("machine") => {
                self.host = serde_json::from_value(value["host"].take()).unwrap_or_default();
            }
            Some("check") => self.check(&value),
            Some("cost") => self.cost(&value),
            Some("figure" | "mean") => {}
            _ => return Err("neither a record nor a line of a study".into()),
        }
        Ok(())
    }

    fn take(&mut self, experiment: &str, record: Record) {
        let engine = record.engine.clone();
        self.run.finished.push(cell_of_records(experiment, &engine, vec![record]));
    }

    /// A check of the study of times to live: its verdict is its message.
    fn check(&mut self, value: &Value) {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_string();
        if let Some(row) = kept::row(&text("what")) {
            let ops = value["of"].as_u64().unwrap_or(1);
            self.claimed.push(value["figure"].as_u64().map(|figure| Record {
                benchmark: "ttl".into(),
                row: row.into(),
                num: ops,
                ops,
                found: Some(figure),
                message: format!("({})", text("found")),
                ..self.of_esker(1)
            }));
        }
        let verdict = if value["held"].as_bool() == Some(true) { "held" } else { "NOT HELD" };
        let record = Record {
            benchmark: "ttlcheck".into(),
            row: text("what"),
            message: format!("{verdict}: {}", text("found")),
            ..self.of_esker(1)
        };
        self.run.study = "ttl".into();
        self.run.finished.push(cell_of_records(&text("scenario"), "esker", vec![record]));
    }

    /// What times to live cost: one list of figures for each benchmark.
    fn cost(&mut self, value: &Value) {
        self.run.study = "ttl".into();
        let num = value["num"].as_u64().unwrap_or(0);
        for (benchmark, name) in [("fillrandom", "fillrandom_us"), ("readrandom", "readrandom_us")] {
            let figures = value[name].as_array().into_iter().flatten().filter_map(Value::as_f64);
            for (repetition, micros) in (1..).zip(figures) {
                let record = Record {
                    benchmark: benchmark.into(),
                    row: benchmark.into(),
                    num,
                    ops: num,
                    micros_per_op: micros,
                    micros_per_op_wall: micros,
                    ops_per_sec: if micros > 0.0 { 1e6 / micros } else { 0.0 },
                    ..self.of_esker(repetition)
                };
                let mut finished = cell_of_records("cost", "esker", vec![record]);
                finished.cell.variables = [("entries".to_string(), words(&value["variant"]))].into();
                self.run.finished.push(finished);
            }
        }
    }

    fn of_esker(&self, repetition: u32) -> Record {
        Record {
            schema: SCHEMA_VERSION,
            engine: "esker".into(),
            repetition,
            threads: 1,
            host: self.host.clone(),
            ..Record::default()
        }
    }
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.replace('_', " "))
}

fn record(value: Value) -> Result<Record, String> {
    let record: Record = serde_json::from_value(value).map_err(|error| format!("no record: {error}"))?;
    match record.schema {
        SCHEMA_VERSION => Ok(record),
        other => Err(format!(
            "a record of schema {other}, this program reads {SCHEMA_VERSION}: use the version that made it"
        )),
    }
}

/// Records that came without a cell, as if one had made them. Thread counts are told apart.
pub fn cell_of_records(experiment: &str, engine: &str, records: Vec<Record>) -> Finished {
    let first = records.first().cloned().unwrap_or_default();
    let mut variables = BTreeMap::new();
    if first.threads > 1 {
        variables.insert("threads".to_string(), first.threads.to_string());
    }
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
