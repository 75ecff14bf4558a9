//! What `esker study ttl --records FILE` kept, as a run that judgement and reports read: study `ttl`, experiment `scenarios`, one row for each number
//! that a claim turns on.

use super::scenario::{EMPTIED, GONE, LIVING, SIZED};
use crate::record::{Host, Record, SCHEMA_VERSION};
use crate::study::grid::{Cell, Finished, StudyRun};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The experiment of the rows.
pub const EXPERIMENT: &str = "scenarios";
/// Sampled keys (`ops`) and those of them found while they lived (`found`).
pub const FOUND_BEFORE: &str = "found before expiry";
/// The same once they had expired, before any compaction.
pub const FOUND_AFTER: &str = "found after expiry";
/// Approximate bytes (`found`) of the range of all keys, once loaded.
pub const SIZE_BEFORE: &str = "size before compaction";
/// The same once all had expired and been compacted.
pub const SIZE_AFTER: &str = "size after compaction";

const ROWS: [(&str, &str); 4] =
    [(LIVING, FOUND_BEFORE), (GONE, FOUND_AFTER), (SIZED, SIZE_BEFORE), (EMPTIED, SIZE_AFTER)];

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Machine { host: Box<Host> },
    Check(Check),
    Cost {},
}

#[derive(Deserialize)]
struct Check {
    what: String,
    found: String,
    figure: Option<u64>,
    of: Option<u64>,
}

/// Reads a record file. The error is one line that names it.
pub fn read(path: &Path) -> Result<StudyRun, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut host = Host::default();
    let mut records = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}:{}", path.display(), index + 1);
        let line = serde_json::from_str::<Line>(line)
            .map_err(|error| format!("{}: not a line of `esker study ttl --records`: {error}", place()))?;
        match line {
            Line::Machine { host: machine } => host = *machine,
            Line::Check(check) => {
                let Some((_, row)) = ROWS.iter().find(|(what, _)| *what == check.what) else { continue };
                let figure = check.figure.ok_or_else(|| {
                    format!("{}: of an older version, without figures: run `esker study ttl --records` again", place())
                })?;
                records.push(record(row, figure, check));
            }
            Line::Cost {} => {}
        }
    }
    if records.is_empty() {
        return Err(format!("{} holds no check of `esker study ttl`", path.display()));
    }
    for record in &mut records {
        record.host = host.clone();
    }
    let cell = Cell {
        experiment: EXPERIMENT.into(),
        engine: "esker".into(),
        variant: String::new(),
        variables: Default::default(),
        repetition: 1,
        tasks: Vec::new(),
    };
    let finished = Finished {
        schema: crate::study::grid::SCHEMA,
        cell,
        records,
        failure: None,
        seconds: 0.0,
        host,
        finished_unix_s: 0,
    };
    Ok(StudyRun { study: "ttl".into(), title: "Time to live".into(), finished: vec![finished], missing: 0 })
}

fn record(row: &str, figure: u64, check: Check) -> Record {
    let ops = check.of.unwrap_or(1);
    Record {
        schema: SCHEMA_VERSION,
        engine: "esker".into(),
        benchmark: "ttl".into(),
        row: row.into(),
        repetition: 1,
        threads: 1,
        num: ops,
        ops,
        found: Some(figure),
        message: format!("({})", check.found),
        ..Record::default()
    }
}
