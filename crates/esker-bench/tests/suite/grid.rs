//! Grids: what is kept is not done again, what failed is, and nothing foreign is touched.

#![allow(clippy::unwrap_used)]

use esker_bench::interrupt::Interrupt;
use esker_bench::reference;
use esker_bench::sweep::grid::{Cell, Ending, Execution, GridArguments, Plan, RunDirectory, execute, run_study};
use esker_bench::sweep::task::{Step, Task};
use esker_engines::{EngineError, EngineKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn task(steps: &[&str], keep: bool, existing: bool) -> Task {
    let mut flags = BTreeMap::from([("num".to_string(), "500".to_string())]);
    if existing {
        flags.insert("use_existing_db".into(), "1".into());
    }
    Task {
        engine: String::new(),
        repetition: 1,
        flags,
        steps: steps.iter().map(|name| Step::new(name, Some(name))).collect(),
        keep,
        verify: false,
        ..Task::default()
    }
}

fn cell(engine: &str, value: u32) -> Cell {
    Cell {
        experiment: "grid".into(),
        engine: engine.into(),
        variant: String::new(),
        variables: [("number".to_string(), value.to_string())].into(),
        repetition: 1,
        tasks: vec![task(&["fillrandom"], true, false), task(&["readrandom"], false, true)],
    }
}

fn plan(cells: Vec<Cell>) -> Plan {
    Plan { study: "test".into(), title: "Test".into(), cells }
}

fn perform(plan: &Plan, run: &Path, kinds: &[EngineKind], db: &Path) -> Result<Ending, String> {
    let directory = RunDirectory::create_or_resume(run, plan)?;
    let execution = Execution { db: db.to_path_buf(), ..Execution::here(kinds, Interrupt::new()) };
    execute(plan, &directory, &execution)
}

#[test]
fn a_cell_is_processes_on_one_directory() {
    let base = tempfile::tempdir().unwrap();
    let run = base.path().join("run");
    let plan = plan(vec![cell("reference", 1)]);
    let ending = perform(&plan, &run, &[reference::KIND], &base.path().join("db")).unwrap();
    assert_eq!(ending, Ending { done: 1, ..Ending::default() });
    let loaded = RunDirectory::open(&run).unwrap().load().unwrap();
    let records = &loaded.finished[0].records;
    assert_eq!(records.iter().map(|record| record.row.as_str()).collect::<Vec<_>>(), ["fillrandom", "readrandom"]);
    // The same keys again, as a process of its own draws them: all are there.
    assert_eq!(records[1].found, Some(500));
    assert!(records.iter().all(|record| !record.host.kernel.is_empty() && record.flags.contains_key("num")));
    assert!(loaded.finished[0].seconds > 0.0 && loaded.finished[0].host.cores >= 1);
    assert_eq!(loaded.missing, 0);
}

static PROBLEM: AtomicBool = AtomicBool::new(false);
static OPENED: AtomicU32 = AtomicU32::new(0);

/// The reference engine under another name, on a disk that is full for a while.
fn failing() -> EngineKind {
    EngineKind {
        name: "esker",
        open: |directory, options, library| {
            OPENED.fetch_add(1, Ordering::SeqCst);
            if PROBLEM.load(Ordering::SeqCst) {
                return Err(EngineError("esker: cannot write: no space left on device".into()));
            }
            (reference::KIND.open)(directory, options, library)
        },
        probe: |_| Ok("here".into()),
        ..reference::KIND
    }
}

#[test]
fn what_is_kept_is_not_done_again_and_what_failed_is() {
    let base = tempfile::tempdir().unwrap();
    let (run, db) = (base.path().join("run"), base.path().join("db"));
    let kinds = [failing(), reference::KIND];
    perform(&plan(vec![cell("esker", 1)]), &run, &kinds, &db).unwrap();
    PROBLEM.store(true, Ordering::SeqCst);
    let all = plan(vec![cell("esker", 1), cell("esker", 2), cell("reference", 3)]);
    let ending = perform(&all, &run, &kinds, &db).unwrap();
    assert_eq!((ending.kept, ending.done, ending.failed.len()), (1, 1, 1), "{ending:?}");
    assert!(ending.failed[0].contains("number 2") && ending.failed[0].contains("no space left"), "{ending:?}");
    let loaded = RunDirectory::open(&run).unwrap().load().unwrap();
    assert_eq!(loaded.finished.len(), 3);
    assert!(loaded.finished[1].failure.as_deref().unwrap().contains("no space"));
    PROBLEM.store(false, Ordering::SeqCst);
    let before = OPENED.load(Ordering::SeqCst);
    let ending = perform(&all, &run, &kinds, &db).unwrap();
    assert_eq!((ending.kept, ending.done, ending.failed.len()), (2, 1, 0), "{ending:?}");
    assert!(OPENED.load(Ordering::SeqCst) > before);
    let loaded = RunDirectory::open(&run).unwrap().load().unwrap();
    assert!(loaded.finished.iter().all(|finished| finished.failure.is_none()));
}

#[test]
fn a_run_grows_and_its_own_order_stays() {
    let base = tempfile::tempdir().unwrap();
    let (run, db) = (base.path().join("run"), base.path().join("db"));
    let kinds = [reference::KIND];
    perform(&plan(vec![cell("reference", 1), cell("reference", 2)]), &run, &kinds, &db).unwrap();
    let ending = perform(&plan(vec![cell("reference", 3), cell("reference", 2)]), &run, &kinds, &db).unwrap();
    assert_eq!((ending.kept, ending.done), (1, 1));
    let numbers: Vec<String> = RunDirectory::open(&run)
        .unwrap()
        .finished()
        .unwrap()
        .iter()
        .map(|finished| finished.cell.variables["number"].clone())
        .collect();
    assert_eq!(numbers, ["1", "2", "3"]);
}

#[test]
fn foreign_damaged_and_newer_directories_are_refused_with_what_to_do() {
    let base = tempfile::tempdir().unwrap();
    let (run, db) = (base.path().join("run"), base.path().join("db"));
    let kinds = [reference::KIND];
    let one = plan(vec![cell("reference", 1)]);
    let foreign = base.path().join("photos");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("cat.jpg"), "cat").unwrap();
    assert!(perform(&one, &foreign, &kinds, &db).unwrap_err().contains("holds no run"));
    assert!(RunDirectory::open(&foreign).err().unwrap().contains("no run directory"));

    perform(&one, &run, &kinds, &db).unwrap();
    let other = Plan { study: "other".into(), ..one.clone() };
    assert!(perform(&other, &run, &kinds, &db).unwrap_err().contains("holds a run of `test`"));
    let held = RunDirectory::create_or_resume(&run, &one).unwrap();
    assert!(perform(&one, &run, &kinds, &db).unwrap_err().contains("another process"));
    drop(held);

    let text = fs::read_to_string(run.join("run.json")).unwrap();
    fs::write(run.join("run.json"), text.replace("\"schema\":1", "\"schema\":99")).unwrap();
    let problem = perform(&one, &run, &kinds, &db).unwrap_err();
    assert!(problem.contains("schema 99") && problem.contains("another directory"), "{problem}");
    fs::write(run.join("run.json"), &text[..text.len() / 2]).unwrap();
    assert!(perform(&one, &run, &kinds, &db).unwrap_err().contains("damaged"));
}

#[test]
fn an_interrupted_cell_is_not_kept() {
    let base = tempfile::tempdir().unwrap();
    let plan = plan(vec![cell("reference", 1)]);
    let directory = RunDirectory::create_or_resume(&base.path().join("run"), &plan).unwrap();
    let interrupt = Interrupt::new();
    interrupt.request();
    let execution = Execution { db: base.path().join("db"), ..Execution::here(&[reference::KIND], interrupt) };
    assert!(execute(&plan, &directory, &execution).unwrap().interrupted);
    assert!(directory.finished().unwrap().is_empty());
    assert_eq!(directory.load().unwrap().missing, 1);
}

static STOP: Mutex<Option<Interrupt>> = Mutex::new(None);

#[test]
fn a_run_that_was_interrupted_goes_on_behind_the_last_cell() {
    // Its user loses patience in the second cell.
    let impatient = || EngineKind {
        name: "lmdb",
        open: |directory, options, library| {
            if let Some(interrupt) = STOP.lock().unwrap().take() {
                interrupt.request();
            }
            (reference::KIND.open)(directory, options, library)
        },
        probe: |_| Ok("here".into()),
        ..reference::KIND
    };
    let base = tempfile::tempdir().unwrap();
    let plan = plan(vec![cell("reference", 1), cell("lmdb", 2), cell("reference", 3)]);
    let directory = RunDirectory::create_or_resume(&base.path().join("run"), &plan).unwrap();
    let kinds = [reference::KIND, impatient()];
    let execution = Execution { db: base.path().join("db"), ..Execution::here(&kinds, Interrupt::new()) };
    *STOP.lock().unwrap() = Some(execution.interrupt.clone());
    let ending = execute(&plan, &directory, &execution).unwrap();
    assert_eq!(ending, Ending { done: 1, interrupted: true, ..Ending::default() });
    let kept = fs::read_dir(base.path().join("run")).unwrap().count();
    let first = directory.finished().unwrap();
    assert!(first.len() == 1 && first[0].cell.engine == "reference" && kept > 0);
    let again = Execution { interrupt: Interrupt::new(), libraries: BTreeMap::new(), ..execution };
    let ending = execute(&plan, &directory, &again).unwrap();
    assert_eq!(ending, Ending { done: 2, kept: 1, ..Ending::default() });
    let finished = directory.finished().unwrap();
    assert_eq!(finished.len(), 3);
    assert_eq!(finished[0].finished_unix_s, first[0].finished_unix_s);
    assert_eq!(finished[0].records, first[0].records);
}

#[test]
fn cells_of_another_build_are_told_of() {
    let base = tempfile::tempdir().unwrap();
    let (run, db) = (base.path().join("run"), base.path().join("db"));
    let two = plan(vec![cell("reference", 1), cell("reference", 2)]);
    perform(&plan(vec![cell("reference", 1)]), &run, &[reference::KIND], &db).unwrap();
    let directory = RunDirectory::create_or_resume(&run, &two).unwrap();
    let mut finished = directory.finished().unwrap().remove(0);
    finished.host.esker_build = "0.0.9 (release)".into();
    directory.keep(&finished).unwrap();
    drop(directory);
    let ending = perform(&two, &run, &[reference::KIND], &db).unwrap();
    assert_eq!(ending, Ending { done: 1, kept: 1, kept_of_others: 1, ..Ending::default() });
}

#[test]
fn a_study_from_its_arguments() {
    let base = tempfile::tempdir().unwrap();
    let arguments = GridArguments {
        run: Some(base.path().join("run")),
        engines: Some("reference".into()),
        db: Some(base.path().join("db")),
        ..GridArguments::default()
    };
    let make = |engines: &[String]| Ok(plan(engines.iter().map(|engine| cell(engine, 1)).collect()));
    let kinds = [reference::KIND];
    let go = |arguments: &GridArguments, out: &mut Vec<u8>| {
        run_study(Execution::here(&kinds, Interrupt::new()), "study test", arguments, "all", make, out)
    };
    let mut out = Vec::new();
    let planned = GridArguments { plan_only: true, ..arguments.clone() };
    assert_eq!(go(&planned, &mut out), 0);
    assert!(!base.path().join("run").exists());
    assert!(String::from_utf8_lossy(&out).contains("grid: reference, number 1\n1 cells"));
    let mut out = Vec::new();
    assert_eq!(go(&arguments, &mut out), 0);
    assert!(String::from_utf8_lossy(&out).starts_with("1 cells done, 0 kept from before\nKept in "));
    let unknown = GridArguments { engines: Some("oracle".into()), ..arguments };
    assert_eq!(go(&unknown, &mut Vec::new()), 2);
}

#[test]
fn a_cell_that_fails_leaves_no_database() {
    let base = tempfile::tempdir().unwrap();
    let mut broken = cell("reference", 1);
    // The first process keeps its database for the second, which fails.
    broken.tasks[1].steps.push(Step::new("readpresent", None));
    broken.tasks[1].flags.insert("fill_seed".into(), "77".into());
    let db = base.path().join("db");
    let ending = perform(&plan(vec![broken]), &base.path().join("run"), &[reference::KIND], &db).unwrap();
    assert_eq!(ending.failed.len(), 1, "{ending:?}");
    let left: Vec<_> = fs::read_dir(db.join("reference")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ESKER_BENCH"]);
}
