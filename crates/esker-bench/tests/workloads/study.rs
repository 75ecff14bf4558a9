//! The study, tiny and in this process.

use esker_bench::engine::registry;
use esker_bench::interrupt::Interrupt;
use esker_bench::study::grid::{GridArguments, RunDirectory, run_study_with};
use esker_bench::study::workloads::plan::{EXPERIMENTS, Experiment, QUICK, Size, plan};
use std::path::Path;

const TINY: Size = Size {
    num: 2000,
    requests: 1000,
    scans: 100,
    long_scans: 5,
    ttl_ms: 20,
    opens: &[1000],
    logs_mib: &[1],
    rates: &[1000],
    rate_seconds: 1,
    ..QUICK
};

fn run(base: &Path, only: &[Experiment]) -> (i32, RunDirectory) {
    let path = base.join("run");
    let arguments = GridArguments {
        run: Some(path.clone()),
        db: Some(base.join("db")),
        engines: Some("esker,redb".into()),
        ..GridArguments::default()
    };
    let make = |engines: &[String]| plan(engines, &TINY, only, 1);
    let kinds = registry::kinds();
    let mut out = Vec::new();
    let code = run_study_with("study workloads", &arguments, "all", make, &kinds, &mut out, Interrupt::new());
    (code, RunDirectory::open(&path).unwrap())
}

#[test]
fn every_experiment_makes_its_rows() {
    let base = tempfile::tempdir().unwrap();
    let only: Vec<Experiment> =
        EXPERIMENTS.into_iter().filter(|e| !matches!(e, Experiment::Open | Experiment::Log)).collect();
    let (code, directory) = run(base.path(), &only);
    assert_eq!(code, 0);
    let finished = directory.finished().unwrap();
    // Two numbers of threads, and one cell of each other experiment, by two engines.
    assert_eq!(finished.len(), 14);
    for done in &finished {
        assert_eq!(done.failure, None);
        let rows = if done.cell.experiment == "mixes" { 6 } else { 1 };
        assert_eq!(done.records.len(), rows, "{}", done.cell.name());
        for record in &done.records {
            let left_out = done.cell.experiment == "expiry" && record.engine == "redb";
            assert_eq!(record.skipped.is_some(), left_out, "{}: {}", done.cell.name(), record.row);
            assert_eq!(record.row, record.benchmark);
            assert!(left_out || record.ops > 0);
            assert_eq!(record.service.is_some(), done.cell.experiment == "rates");
        }
    }
    let read = finished.iter().flat_map(|done| &done.records).find(|record| record.row == "ycsbc").unwrap();
    assert_eq!(read.found, Some(read.ops), "the mixes work on a full load");
}

#[test]
fn what_must_die_does_not_do_so_in_this_process() {
    let base = tempfile::tempdir().unwrap();
    let (code, directory) = run(base.path(), &[Experiment::Log]);
    assert_eq!(code, 1);
    let failures: Vec<_> = directory.finished().unwrap().into_iter().filter_map(|done| done.failure).collect();
    assert_eq!(failures.len(), 6);
    assert!(failures[0].contains("needs a process of its own"), "{}", failures[0]);
}
