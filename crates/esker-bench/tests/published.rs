//! That no published figure and no claim is lost: our data file against the survey it was made from, which is kept beside the project in
//! `../shared/published.json` and is not part of it. Where that is missing the tests are skipped with a line, but in CI they fail.

#![allow(clippy::unwrap_used)]

use esker_bench::published;
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
            published::records().iter().find(|record| record.id == id).unwrap_or_else(|| panic!("{id} is missing"));
        assert!(same(Some(our.figure), &their["figure"]), "{id}: figure {}", our.figure);
        assert!(same(our.published_ratio, &their["published_ratio_to_baseline"]), "{id}: ratio");
        assert!(same(our.recomputed_ratio, &their["recomputed_ratio_to_baseline"]), "{id}: recomputed ratio");
        assert!(same(our.bar_px.map(f64::from), &their["bar_px"]), "{id}: bar");
        assert!(same(our.bar_implies, &their["bar_implied_value"]), "{id}: what the bar implies");
        assert!(same(our.micros_per_op, &their["derived_micros_per_op"]), "{id}: micros");
    }
    let ids: BTreeSet<&str> = published::records().iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids.len(), theirs.len(), "an id of ours is double or of nobody");
}

#[test]
fn every_claim_is_here_in_other_words_with_its_figures() {
    let Some(survey) = survey() else { return };
    let theirs: Vec<&str> = list(&survey, "hypotheses").iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    let ours: Vec<&str> = published::hypotheses().iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!((ours.len(), &ours), (34, &theirs));
    for (their, our) in list(&survey, "hypotheses").iter().zip(published::hypotheses()) {
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
    for grid in published::grids() {
        let theirs: Vec<Vec<f64>> =
            serde_json::from_value(survey["grids"][grid.row.replace(' ', "_")]["values"].clone()).unwrap();
        assert_eq!(grid.values, theirs, "{}", grid.row);
    }
    let theirs = list(&survey, "consistency_checks");
    assert_eq!(published::consistency_checks().len(), theirs.len());
    for their in theirs.iter().filter_map(|check| check["record"].as_str()) {
        assert!(published::consistency_checks().iter().any(|check| check.record == their), "{their}");
    }
    for their in survey["golden"]["found_counts"].as_array().unwrap() {
        let (loaded, found) = (their["N"].as_u64().unwrap(), their["new_process_num_N_div_5"].as_u64().unwrap());
        assert!(published::golden_found().iter().any(|golden| (golden.loaded, golden.found) == (loaded, found)));
    }
}

#[test]
fn a_comparison_leaves_no_record_out_and_says_why_there_is_nothing() {
    let compared = published::compare(&[]);
    let ids: Vec<&str> = compared.iter().map(|compared| compared.record.id.as_str()).collect();
    let all: Vec<&str> = published::records().iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, all);
    for compared in &compared {
        assert!(compared.measured.is_empty(), "{}", compared.record.id);
        assert!(compared.note.contains("Not measured: these runs hold nothing"), "{}", compared.note);
    }
}
