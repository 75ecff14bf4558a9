//! The study, tiny and in this process.

use esker_bench::interrupt::Interrupt;
use esker_bench::study::planned::Planned;
use esker_bench::sweep::grid::{Cell, Execution, GridArguments, Plan, RunDirectory, run_study};
use esker_bench::sweep::task::Task;
use esker_bench::workload;
use esker_engines::registry;
use std::collections::BTreeSet;
use std::path::Path;

const TINY: [(&str, &str); 9] = [
    ("num", "2000"),
    ("requests", "1000"),
    ("scans", "100"),
    ("long_scans", "5"),
    ("ttl_ms", "20"),
    ("opens", "1000"),
    ("logs_mib", "1"),
    ("rates", "1000"),
    ("rate_seconds", "1"),
];

fn planned(arguments: &str, engines: &[&str], numbers: &[(&str, &str)]) -> Result<Plan, String> {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    Planned::find("workloads").unwrap().plan(&arguments, engines, numbers)
}

fn run(base: &Path, only: &str) -> (i32, RunDirectory) {
    let path = base.join("run");
    let arguments = GridArguments {
        run: Some(path.clone()),
        db: Some(base.join("db")),
        engines: Some("esker,redb".into()),
        ..GridArguments::default()
    };
    let make = |engines: &[String]| {
        let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
        planned(&format!("--quick --only {only}"), &engines, &TINY)
    };
    let kinds = registry::KINDS;
    let mut out = Vec::new();
    let execution = Execution::here(&kinds, Interrupt::new());
    let code = run_study(execution, "study workloads", &arguments, "all", make, &mut out);
    (code, RunDirectory::open(&path).unwrap())
}

#[test]
fn every_experiment_makes_its_rows() {
    let base = tempfile::tempdir().unwrap();
    let (code, directory) = run(base.path(), "mixes,queue,tombstones,expiry,counters,rates");
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
    let (code, directory) = run(base.path(), "log");
    assert_eq!(code, 1);
    let failures: Vec<_> = directory.finished().unwrap().into_iter().filter_map(|done| done.failure).collect();
    assert_eq!(failures.len(), 6);
    assert!(failures[0].contains("needs a process of its own"), "{}", failures[0]);
}

fn full() -> Plan {
    planned("", &["esker", "lmdb"], &[]).unwrap()
}

#[test]
fn every_new_benchmark_has_its_row() {
    let plan = full();
    let steps = || plan.cells.iter().flat_map(|cell| &cell.tasks).flat_map(|task| &task.steps);
    for step in steps() {
        assert!(workload::find(&step.benchmark).is_some(), "{}", step.benchmark);
    }
    let rows: BTreeSet<&str> = steps().filter_map(|step| step.row.as_deref()).collect();
    let expected = [
        "prefixtombstones",
        "queue",
        "recover",
        "reopen",
        "ttlchurn",
        "ycsba",
        "ycsbb",
        "ycsbc",
        "ycsbd",
        "ycsbe",
        "ycsbf",
        "zipfiancounters",
    ];
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn no_cell_is_there_twice_and_flags_are_right() {
    let plan = full();
    let hashes: BTreeSet<String> = plan.cells.iter().map(Cell::hash).collect();
    assert_eq!(hashes.len(), plan.cells.len());
    for task in plan.cells.iter().flat_map(|cell| &cell.tasks) {
        let config = Task { engine: "esker".into(), ..task.clone() }.config().unwrap();
        assert_eq!(config.num.to_string(), task.flags["num"]);
    }
}

#[test]
fn a_task_that_dies_leaves_its_database_to_the_next() {
    let plan = full();
    for cell in plan.cells.iter().filter(|cell| ["open", "log"].contains(&cell.experiment.as_str())) {
        let [before, after] = &cell.tasks[..] else { panic!("{}", cell.name()) };
        assert!(before.dies() && before.keep && !after.dies() && !after.keep);
        assert_eq!(after.flags["use_existing_db"], "1");
        assert_eq!(before.flags["num"], after.flags["num"]);
        let writes = |task: &Task, name: &str| {
            task.steps.iter().find(|step| step.benchmark == name).and_then(|step| step.writes)
        };
        assert_eq!(writes(before, "crash"), writes(after, "recover"));
    }
}

#[test]
fn experiments_can_be_chosen_and_repeated() {
    let cells =
        |arguments: &str| planned(&format!("--quick {arguments}"), &["esker"], &[]).map(|plan| plan.cells.len());
    assert_eq!((cells("--only queue"), cells("--only queue --repeat 4"), cells("--only open")), (Ok(1), Ok(4), Ok(6)));
    assert!(cells("--repeat 0").is_err());
}
