//! A whole run as one file, for keeping: what reports read of it, and nothing else.
//!
//! ```text
//! file  = first { cell }                                               one JSON object a line
//! first = { "kind": "run", "schema": 1, "study", "title", "missing", "flags" }
//! cell  = { "kind": "cell", the fields of `Finished` }                 in the plan's order
//! ```
//!
//! `missing` are the cells of the plan that were not done, `flags` those that all records have in
//! common, with their values. Records lack these, what is zero or empty, the distribution of
//! latencies, the series over time, and the machine where it is the cell's.

use super::cell::{Finished, SCHEMA, StudyRun};
use crate::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The first line.
#[derive(Serialize, Deserialize)]
struct First {
    kind: String,
    schema: u32,
    study: String,
    title: String,
    missing: usize,
    flags: BTreeMap<String, String>,
}

/// Fields of a record that are left out whatever they hold.
const LEFT_OUT: [&str; 2] = ["histogram", "series"];

/// The run as such a file.
pub fn write(run: &StudyRun) -> String {
    let first = First {
        kind: "run".into(),
        schema: SCHEMA,
        study: run.study.clone(),
        title: run.title.clone(),
        missing: run.missing,
        flags: common_flags(run),
    };
    let defaults = record_defaults(first.flags.clone());
    let mut text = json(&first).to_string() + "\n";
    for finished in &run.finished {
        let mut cell = json(finished);
        cell["kind"] = "cell".into();
        let host = cell["host"].clone();
        for record in cell["records"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            record.retain(|name, value| !LEFT_OUT.contains(&name.as_str()) && (name != "host" || *value != host));
            remove_defaults(record, &defaults);
        }
        text.push_str(&format!("{cell}\n"));
    }
    text
}

/// Whether a file that begins with this line was made by [`write()`].
pub fn is_run(line: &str) -> bool {
    serde_json::from_str::<First>(line).is_ok_and(|first| first.kind == "run")
}

/// Reads such a file. The error is one line.
pub fn read(text: &str) -> Result<StudyRun, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let told = |number: u32, problem: String| format!("line {number}: {problem}");
    let (number, first) = lines.next().ok_or("it is empty")?;
    let first: First = serde_json::from_str(first).map_err(|error| told(number, error.to_string()))?;
    if first.schema != SCHEMA {
        return Err(format!(
            "it is of schema {}, this program knows {SCHEMA}: use the version that made it",
            first.schema
        ));
    }
    let defaults = record_defaults(first.flags);
    let cells = lines.map(|(number, line)| cell(line, &defaults).map_err(|problem| told(number, problem)));
    Ok(StudyRun {
        study: first.study,
        title: first.title,
        finished: cells.collect::<Result<_, _>>()?,
        missing: first.missing,
    })
}

fn cell(line: &str, defaults: &Map<String, Value>) -> Result<Finished, String> {
    let mut cell: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    let host = cell["host"].clone();
    for record in cell["records"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        record.entry("host").or_insert_with(|| host.clone());
        add_defaults(record, defaults);
    }
    serde_json::from_value(cell).map_err(|error| format!("no cell: {error}"))
}

/// The flags that every record has with the same value.
fn common_flags(run: &StudyRun) -> BTreeMap<String, String> {
    let mut records = run.finished.iter().flat_map(|finished| &finished.records);
    let mut flags = records.next().map_or_else(BTreeMap::new, |first| first.flags.clone());
    for record in records {
        flags.retain(|name, value| record.flags.get(name) == Some(value));
    }
    flags
}

/// A record of which nothing else is known.
fn record_defaults(flags: BTreeMap<String, String>) -> Map<String, Value> {
    match json(&Record { flags, ..Record::default() }) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Takes out what is as in `defaults`, within objects as well.
fn remove_defaults(object: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    object.retain(|name, value| match (value, defaults.get(name)) {
        (Value::Object(inner), Some(Value::Object(defaults))) => {
            remove_defaults(inner, defaults);
            !inner.is_empty()
        }
        (value, Some(default)) => *value != *default,
        (_, None) => true,
    });
}

/// The reverse.
fn add_defaults(object: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (name, default) in defaults {
        match (object.get_mut(name), default) {
            (Some(Value::Object(inner)), Value::Object(defaults)) => add_defaults(inner, defaults),
            (Some(_), _) => {}
            (None, default) => {
                object.insert(name.clone(), default.clone());
            }
        }
    }
}

/// What has only text, numbers, lists and maps from text becomes JSON.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Host;
    use crate::sweep::grid::Cell;

    fn run() -> StudyRun {
        let host = Host { cores: 2, ..Host::default() };
        let elsewhere = Host { cores: 3, ..Host::default() };
        let flag = |name: &str, value: &str| (name.to_string(), value.to_string());
        let flags = BTreeMap::from([flag("num", "12345"), flag("value_size", "100"), flag("sync", "0")]);
        let plain = Record { row: "fillseq".into(), ops: 7, flags, host: host.clone(), ..Record::default() };
        let mut full = Record { host: elsewhere, histogram: vec![(1.0, 7)], series: vec![7], ..plain.clone() };
        full.flags.insert("num".into(), "9".into());
        full.flags.remove("sync");
        full.options.block_bytes += 1;
        full.counters.flushes = Some(3);
        full.settings.push(("memory".into(), "1 MiB".into()));
        let cell = Cell {
            experiment: "grid".into(),
            engine: "esker".into(),
            variables: [("threads".to_string(), "2".to_string())].into(),
            repetition: 1,
            ..Cell::default()
        };
        let finished = Finished {
            schema: SCHEMA,
            cell,
            records: vec![plain, full],
            failure: Some("full disk".into()),
            seconds: 1.5,
            host,
            finished_unix_s: 9,
        };
        StudyRun { study: "memtable".into(), title: "A title".into(), finished: vec![finished], missing: 3 }
    }

    #[test]
    fn a_run_comes_back_but_for_its_distributions() {
        let text = write(&run());
        assert!(is_run(text.lines().next().unwrap()));
        assert!(!text.contains("histogram") && text.matches("value_size").count() == 1, "{text}");
        let mut expected = run();
        expected.finished[0].records[1].histogram.clear();
        expected.finished[0].records[1].series.clear();
        assert_eq!(read(&text).unwrap(), expected);
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = write(&run());
        let told = |text: &str| read(text).unwrap_err();
        assert!(told(&text.replace("full disk\"", "")).starts_with("line 2: no JSON"));
        assert!(told(&text.replace("\"seconds\"", "\"second\"")).starts_with("line 2: no cell"));
        assert!(told(&text.replacen("\"schema\":1", "\"schema\":9", 1)).contains("schema 9"));
        assert!(told("").contains("empty"));
        assert!(!is_run("{\"kind\":\"row\"}"));
    }
}
