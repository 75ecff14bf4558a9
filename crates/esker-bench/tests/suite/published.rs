//! That no published figure and no claim is lost: our data file against the survey it was made
//! from, which is kept beside the project in `../shared/published.json` and is not part of it.
//! Where that is missing the tests are skipped with a line, but in CI they fail.

#![allow(clippy::unwrap_used)]

use esker_bench::flags::Given;
use esker_bench::published;
use esker_bench::record::{Host, Record};
use esker_bench::study::planned::Planned;
use esker_bench::sweep::grid::{Finished, Plan, SCHEMA, StudyRun};
use esker_engines::{Counters, ENGINES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The survey; none if it is not here and need not be.
fn survey() -> Option<Value> {
    // The manifest is two levels below the project's root.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published.json");
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(error) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{}: {error}", path.display());
            eprintln!("skipped: no ../shared/published.json beside the project");
            None
        }
    }
}

fn list<'a>(survey: &'a Value, name: &str) -> &'a Vec<Value> {
    survey[name].as_array().unwrap()
}

fn same(ours: Option<f64>, theirs: &Value) -> bool {
    match (ours.filter(|value| value.is_finite()), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-9 * theirs.abs(),
        (None, None) => true,
        _ => false,
    }
}

#[test]
fn every_record_and_every_figure_is_here() {
    let Some(survey) = survey() else { return };
    let theirs = list(&survey, "records");
    assert_eq!(theirs.len(), 205);
    for their in theirs {
        let id = their["id"].as_str().unwrap();
        let our =
            published::DATA.records.iter().find(|record| record.id == id).unwrap_or_else(|| panic!("{id} is missing"));
        assert!(same(Some(our.figure), &their["figure"]), "{id}: figure {}", our.figure);
        assert!(same(our.published_ratio, &their["published_ratio_to_baseline"]), "{id}: ratio");
        assert!(same(our.recomputed_ratio, &their["recomputed_ratio_to_baseline"]), "{id}: recomputed ratio");
        assert!(same(our.bar_px.map(f64::from), &their["bar_px"]), "{id}: bar");
        assert!(same(our.bar_implies, &their["bar_implied_value"]), "{id}: what the bar implies");
        assert!(same(our.micros_per_op, &their["derived_micros_per_op"]), "{id}: micros");
    }
    let ids: BTreeSet<&str> = published::DATA.records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids.len(), theirs.len(), "an id of ours is double or of nobody");
}

#[test]
fn every_claim_is_here_in_other_words_with_its_figures() {
    let Some(survey) = survey() else { return };
    let theirs: Vec<&str> = list(&survey, "hypotheses").iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    let ours: Vec<&str> = published::DATA.hypotheses.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!((ours.len(), &ours), (34, &theirs));
    for (their, our) in list(&survey, "hypotheses").iter().zip(&published::DATA.hypotheses) {
        assert_ne!(their["claim"].as_str().unwrap(), our.claim, "{}", our.id);
        let mut figures = Vec::new();
        numbers(&their["published"], &mut figures);
        for figure in figures {
            let near = |ours: &f64| (ours - figure).abs() <= 1e-3 * figure.abs().max(1.0);
            assert!(our.published.values().any(near), "{}: {figure} is missing", our.id);
        }
    }
}

fn numbers(value: &Value, into: &mut Vec<f64>) {
    match value {
        Value::Number(number) => into.extend(number.as_f64()),
        Value::Array(values) => values.iter().for_each(|value| numbers(value, into)),
        Value::Object(values) => values.values().for_each(|value| numbers(value, into)),
        _ => {}
    }
}

#[test]
fn every_grid_check_and_golden_number_is_here() {
    let Some(survey) = survey() else { return };
    for row in published::GRID_ROWS {
        let theirs: published::Grid =
            serde_json::from_value(survey["grids"][row.replace(' ', "_")]["values"].clone()).unwrap();
        assert_eq!(published::DATA.grid(row), Some(theirs), "{row}");
    }
    let theirs = list(&survey, "consistency_checks");
    assert_eq!(published::DATA.consistency_checks.len(), theirs.len());
    for their in theirs.iter().filter_map(|check| check["record"].as_str()) {
        assert!(published::DATA.consistency_checks.iter().any(|check| check.record == their), "{their}");
    }
    for their in survey["golden"]["found_counts"].as_array().unwrap() {
        let (loaded, found) = (their["N"].as_u64().unwrap(), their["new_process_num_N_div_5"].as_u64().unwrap());
        assert!(published::DATA.golden_found.iter().any(|golden| (golden.loaded, golden.found) == (loaded, found)));
    }
}

#[test]
fn a_comparison_leaves_no_record_out_and_says_why_there_is_nothing() {
    let compared = published::compare(&[]);
    let ids: Vec<&str> = compared.iter().map(|compared| compared.record.id.as_str()).collect();
    let all: Vec<&str> = published::DATA.records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, all);
    for compared in &compared {
        assert!(compared.measured.is_empty(), "{}", compared.record.id);
        assert!(compared.note.contains("Not measured: these runs hold nothing"), "{}", compared.note);
    }
}

/// The run that a plan makes, every row of it with some figure.
fn as_if_run(plan: Plan) -> StudyRun {
    let finished = plan.cells.into_iter().map(|cell| {
        let steps = cell.tasks.iter().flat_map(|task| task.steps.iter().map(move |step| (task, step)));
        let records = steps.filter_map(|(task, step)| {
            // What is not given has its default, which the records of a real run hold too.
            let mut flags = Given::default().all();
            flags.extend(task.flags.clone());
            Some(Record {
                engine: cell.engine.clone(),
                benchmark: step.benchmark.clone(),
                row: step.row.clone()?,
                threads: step.threads,
                num: 1000,
                ops: 1000,
                found: Some(700),
                wall_s: 1.0,
                micros_per_op: 2.0,
                micros_per_op_wall: 2.0,
                ops_per_sec: 5e5,
                mb_per_sec: 50.0,
                counters: Counters { comparisons: Some(9), ..Counters::default() },
                host: Host { file_system: "ext4".into(), ..Host::default() },
                flags,
                ..Record::default()
            })
        });
        let records = records.collect();
        Finished {
            schema: SCHEMA,
            cell,
            records,
            failure: None,
            seconds: 1.0,
            host: Host::default(),
            finished_unix_s: 0,
        }
    });
    StudyRun { study: plan.study, title: plan.title, finished: finished.collect(), ..StudyRun::default() }
}

/// A row that is renamed in a plan would otherwise only show as "Not measured" in a report of
/// hours.
#[test]
fn every_record_is_answered_by_a_row_that_a_study_makes() {
    let planned = |study: &str, arguments: &[&str]| {
        as_if_run(Planned::find(study).unwrap().plan(arguments, &ENGINES, &[]).unwrap())
    };
    let runs = [
        planned("rmw", &["--scale=1", "--experiments=seed"]),
        planned("memtable", &[]),
        planned("leveldb-2011", &["--repeat=1"]),
    ];
    let compared = published::compare(&runs);
    assert_eq!(compared.len(), 205);
    let lost: Vec<String> = compared
        .iter()
        .filter(|compared| {
            !compared.record.engine.split(' ').next().is_some_and(|published| {
                compared.measured.iter().any(|measured| published.to_lowercase() == measured.engine)
            })
        })
        .map(|compared| format!("{}: {}", compared.record.id, compared.note))
        .collect();
    assert!(lost.is_empty(), "{lost:#?}");
}
