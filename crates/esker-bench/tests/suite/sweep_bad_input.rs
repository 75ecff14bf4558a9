//! What goes wrong around a sweep: a disk that fills, an engine that is missing, a run of another
//! version. Each is one clear line, what was finished stays, and the same command goes on.

#![allow(clippy::unwrap_used)]

use esker_bench::interrupt::Interrupt;
use esker_bench::reference;
use esker_bench::sweep::grid::{Execution, RunDirectory};
use esker_bench::sweep::sweep_with;
use esker_engines::{Engine, EngineError, EngineKind, Iteration, Opened, Result as EngineResult, Session, WriteMode};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

/// Puts that still fit.
static ROOM: AtomicI64 = AtomicI64::new(0);

/// The reference engine on a disk with room for so many puts.
fn small_disk() -> EngineKind {
    EngineKind {
        open: |directory, options, library| {
            let opened = (reference::KIND.open)(directory, options, library)?;
            Ok(Opened::new(SmallDisk(opened.engine), opened.description))
        },
        ..reference::KIND
    }
}

struct SmallDisk(Box<dyn Engine>);

impl Engine for SmallDisk {
    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(SmallSession(self.0.session()?)))
    }
}

struct SmallSession<'e>(Box<dyn Session + 'e>);

impl Session for SmallSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> EngineResult<()> {
        if ROOM.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(EngineError("No space left on device (os error 28)".into()));
        }
        self.0.put(key, value, mode)
    }
    fn delete(&mut self, key: &[u8], mode: WriteMode) -> EngineResult<()> {
        self.0.delete(key, mode)
    }
    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> EngineResult<()> {
        self.0.merge(key, operand, mode)
    }
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.0.get(key, value)
    }
    fn iterate(&mut self) -> EngineResult<Box<dyn Iteration + '_>> {
        self.0.iterate()
    }
}

/// Runs a sweep below `base`; its exit code and what it prints.
fn sweep(base: &Path, file: &str, more: &[&str], kinds: &[EngineKind]) -> (i32, String) {
    let path = base.join("sweep.toml");
    std::fs::write(&path, file).unwrap();
    let (run, db) = (base.join("run"), base.join("db"));
    let fixed = [path.to_str().unwrap(), "--run", run.to_str().unwrap(), "--db", db.to_str().unwrap()];
    let arguments: Vec<String> = fixed.iter().chain(more).map(|text| text.to_string()).collect();
    let mut out = Vec::new();
    let code = sweep_with(&arguments, &mut out, || Execution::here(kinds, Interrupt::new()));
    (code, String::from_utf8(out).unwrap())
}

fn file(engines: &str, value_sizes: &str) -> String {
    format!(
        "engines = [{engines}]\n[flags]\nnum = 1000\n[axes]\nvalue_size = [{value_sizes}]\n\
         [[process]]\nbenchmarks = [\"fillseq\"]\n"
    )
}

#[test]
fn a_disk_that_fills_costs_the_cells_that_do_not_fit() {
    let base = tempfile::tempdir().unwrap();
    let file = file("\"reference\"", "10, 20, 30");
    ROOM.store(1500, Ordering::Relaxed);
    let (code, out) = sweep(base.path(), &file, &[], &[small_disk()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.starts_with("1 cells done, 0 kept from before, 2 failed:"), "{out}");
    assert!(out.contains("value_size 20: fillseq: No space left on device (os error 28)"), "{out}");
    let kept = RunDirectory::open(&base.path().join("run")).unwrap().finished().unwrap();
    let states: Vec<bool> = kept.iter().map(|cell| cell.failure.is_none()).collect();
    assert_eq!(states, [true, false, false]);
    assert_eq!(kept[0].records[0].ops, 1000);
    // There is room again: what failed is done, what was finished is not done again.
    ROOM.store(2000, Ordering::Relaxed);
    let (code, out) = sweep(base.path(), &file, &[], &[small_disk()]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("2 cells done, 1 kept from before"), "{out}");
    let again = RunDirectory::open(&base.path().join("run")).unwrap().finished().unwrap();
    assert!(again.iter().all(|cell| cell.failure.is_none()));
    assert_eq!(again[0], kept[0]);
}

/// The same with a real file system that is too small, where this process may mount one.
#[test]
fn a_full_file_system_ends_a_cell_and_not_the_run() {
    let base = tempfile::tempdir().unwrap();
    let db = base.path().join("db");
    std::fs::create_dir(&db).unwrap();
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&db).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a file system cannot be mounted here");
        return;
    }
    let kinds = esker_engines::registry::KINDS;
    let (code, out) = sweep(base.path(), &file("\"esker\"", "100, 900_000, 200"), &[], &kinds);
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&db).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(code, 1, "{out}");
    assert!(out.starts_with("2 cells done, 0 kept from before, 1 failed:"), "{out}");
    assert!(out.contains("value_size 900_000") || out.contains("value_size 900000"), "{out}");
    assert!(out.to_lowercase().contains("space"), "{out}");
}

#[test]
fn a_missing_engine_is_left_out_or_an_error() {
    let missing = || EngineKind {
        name: "leveldb",
        open: |_, _, _| Err(EngineError("not here".into())),
        probe: |_| Err(EngineError("leveldb: library not found; install it".into())),
        ..reference::KIND
    };
    let base = tempfile::tempdir().unwrap();
    let file = file("\"leveldb\", \"reference\"", "10");
    let kinds = [missing(), reference::KIND];
    let (code, out) = sweep(base.path(), &file, &[], &kinds);
    assert!(code == 0 && out.starts_with("1 cells done"), "{code} {out}");
    let (code, out) = sweep(base.path(), &file, &["--engines", "leveldb,reference"], &kinds);
    assert!(code == 2 && out.is_empty(), "{code} {out}");
}

#[test]
fn a_run_of_another_version_or_study_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let file = file("\"reference\"", "10");
    let run = base.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    for text in ["{\"schema\": 99, \"plan\": 5}", "not JSON"] {
        std::fs::write(run.join("run.json"), text).unwrap();
        let (code, out) = sweep(base.path(), &file, &[], &[reference::KIND]);
        assert!(code == 2 && out.is_empty(), "{code} {out}");
        assert_eq!(std::fs::read_to_string(run.join("run.json")).unwrap(), text);
    }
}

/// What is left of a run that found no room for its plan is taken up again; nobody else's file is.
#[test]
fn a_run_that_could_not_begin_begins_again() {
    let base = tempfile::tempdir().unwrap();
    let file = file("\"reference\"", "10");
    let run = base.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("run.new"), "{\"schema\":1,\"pl").unwrap();
    std::fs::write(run.join("lock"), "of somebody else").unwrap();
    let (code, out) = sweep(base.path(), &file, &[], &[reference::KIND]);
    assert!(code == 2 && out.is_empty(), "{code} {out}");
    assert_eq!(std::fs::read_to_string(run.join("lock")).unwrap(), "of somebody else");
    std::fs::write(run.join("lock"), "").unwrap();
    let (code, out) = sweep(base.path(), &file, &[], &[reference::KIND]);
    assert!(code == 0 && out.starts_with("1 cells done"), "{code} {out}");
    assert!(!run.join("run.new").exists());
}

#[test]
fn wrong_command_lines() {
    let base = tempfile::tempdir().unwrap();
    let good = file("\"reference\"", "10");
    let kinds = [reference::KIND];
    for more in [&["--nosuch"][..], &["--repeat", "0"], &["--engines", "nosuch"]] {
        assert_eq!(sweep(base.path(), &good, more, &kinds).0, 2, "{more:?}");
    }
    let typo = good.replace("value_size", "valu_size");
    assert_eq!(sweep(base.path(), &typo, &[], &kinds).0, 2);
    assert!(!base.path().join("run").exists());
    let (code, out) = sweep(base.path(), &good, &["--plan-only", "--repeat", "2"], &kinds);
    assert!(code == 0 && out.trim_end().ends_with("2 cells"), "{out}");
    let (code, _) = sweep(base.path(), &good, &["--help"], &kinds);
    assert_eq!(code, 0);
}
