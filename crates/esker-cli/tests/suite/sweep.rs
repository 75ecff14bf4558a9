//! What goes wrong around a sweep, as its user sees it: engines that are not here, and disks that
//! fill. A clear line says so, what was finished stays, and the same command goes on.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use crate::common::small_disk::SmallDisk;
use crate::common::{Sandbox, fails, ok, orderly_line, run, spawn_piped};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Output;

/// The engines that are C libraries: with these arguments none of them is here, on any machine.
const NO_LIBRARIES: [&str; 6] =
    ["--lib", "leveldb=/nonexistent", "--lib", "rocksdb=/nonexistent", "--lib", "kyoto=/nonexistent"];

/// Puts a file of a sweep into the sandbox, with a cell for each engine and value size.
fn write_sweep(sandbox: &Sandbox, engines: &[&str], entries: u32, value_sizes: &[u32]) {
    let file = format!(
        "engines = {engines:?}\n[flags]\nnum = {entries}\n[axes]\nvalue_size = {value_sizes:?}\n\
         [[process]]\nbenchmarks = [\"fillseq\"]\n"
    );
    fs::write(sandbox.path("sweep.toml"), file).unwrap();
}

/// The command line that does it, with the run and the databases in the sandbox.
fn sweep(sandbox: &Sandbox, more: &[&str]) -> Vec<String> {
    let path = |name: &str| sandbox.text(name);
    let fixed = ["sweep", &path("sweep.toml"), "--run", &path("run"), "--db", &path("db")];
    fixed.iter().chain(more).map(|word| word.to_string()).collect()
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What a run keeps: the failure of each cell, by its engine and value size.
fn kept(run: &Path) -> BTreeMap<(String, String), Option<String>> {
    let cells = fs::read_dir(run.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let state = |path: std::path::PathBuf| {
        assert!(path.extension().is_some_and(|extension| extension == "json"), "left behind: {}", path.display());
        let finished: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let text = |value: &Value| value.as_str().map(String::from);
        let (cell, size) = (&finished["cell"], &finished["cell"]["variables"]["value_size"]);
        ((text(&cell["engine"]).unwrap(), text(size).unwrap()), text(&finished["failure"]))
    };
    cells.map(state).collect()
}

#[test]
fn an_engine_that_was_named_and_is_not_here_is_an_error() {
    let sandbox = Sandbox::new("sweep-named");
    write_sweep(&sandbox, &["esker"], 100, &[10]);
    for names in ["leveldb", "esker,leveldb"] {
        let arguments = sweep(&sandbox, &["--engines", names, "--lib", "leveldb=/nonexistent"]);
        let line = fails(2, &words(&arguments));
        assert!(line.starts_with("esker sweep: leveldb: "), "{line}");
        for expected in ["library not found (/nonexistent: ", "; run scripts/peers, or install ", "--lib leveldb=PATH"]
        {
            assert!(line.contains(expected), "{expected}: {line}");
        }
    }
    assert!(!sandbox.path("run").exists() && !sandbox.path("db").exists());
}

#[test]
fn engines_that_nobody_named_and_are_not_here_are_left_out() {
    // Those of the file, and all there are.
    let rest = ["esker", "sqlite", "lmdb", "redb", "fjall"];
    let cases =
        [(&[][..], &["leveldb"][..], &["esker"][..]), (&["--engines", "all"], &["leveldb", "rocksdb", "kyoto"], &rest)];
    for (more, missing, measured) in cases {
        let sandbox = Sandbox::new("sweep-left-out");
        write_sweep(&sandbox, &["leveldb", "esker"], 100, &[10]);
        let output = run(&words(&sweep(&sandbox, &[more, &NO_LIBRARIES].concat())));
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{error}");
        let told: Vec<&str> = error.lines().filter(|line| line.contains("left out")).collect();
        assert_eq!(told.len(), missing.len(), "{error}");
        for (line, engine) in told.iter().zip(missing) {
            assert!(
                line.starts_with(&format!("{engine}: left out: library not found")) && line.contains("install"),
                "{line}"
            );
        }
        assert!(stdout(&output).starts_with(&format!("{} cells done, 0 kept from before\n", measured.len())));
        let expected = measured.iter().map(|engine| ((engine.to_string(), "10".to_string()), None)).collect();
        assert_eq!(kept(&sandbox.path("run")), expected, "{error}");
    }
    let sandbox = Sandbox::new("sweep-none");
    write_sweep(&sandbox, &["leveldb"], 100, &[10]);
    let output = run(&words(&sweep(&sandbox, &NO_LIBRARIES)));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).ends_with("\nesker sweep: none of the engines is here\n"), "{}", stderr(&output));
}

#[test]
fn a_run_directory_on_a_disk_that_fills_keeps_what_was_finished() {
    let sandbox = Sandbox::new("sweep-full-run");
    let run_path = sandbox.path("run");
    let Some(disk) = SmallDisk::mount(&sandbox.path("disk"), 1) else { return };
    // Beside what fills the disk, which a run directory would not have in it.
    std::os::unix::fs::symlink(sandbox.path("disk/run"), &run_path).unwrap();
    fs::create_dir(sandbox.path("disk/run")).unwrap();
    // Long enough to be seen beginning.
    write_sweep(&sandbox, &["esker"], 100_000, &[100, 101, 102]);
    let arguments = sweep(&sandbox, &[]);
    let arguments = words(&arguments);
    let no_room = || {
        let line = orderly_line(&arguments, &run(&arguments));
        assert!(line.starts_with("esker sweep: cannot write ") && line.contains("run.json: No space left"), "{line}");
        assert!(line.contains("; make room, and the same command goes on"), "{line}");
    };

    disk.fill();
    no_room();
    disk.make_room();

    let mut child = spawn_piped(&arguments);
    let mut told = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if line.starts_with("[2/3") {
            disk.fill();
        }
        told.push(line);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{told:?}");
    let line = told.last().unwrap();
    assert!(line.starts_with("esker sweep: cannot write ") && line.contains("/cells/"), "{told:?}");
    assert!(
        line.contains(": No space left on device (os error 28); make room, and the same command goes on"),
        "{line}"
    );
    assert!(line.ends_with(&format!("; finished cells are kept in {}", run_path.display())), "{line}");
    let before = kept(&run_path);
    // The second may just have made it.
    assert!((1..=2).contains(&before.len()) && before.values().all(Option::is_none), "{before:?}");

    // As long as there is no room, nothing is lost, and what is there can be shown.
    no_room();
    assert_eq!(kept(&run_path), before);
    assert!(ok(&["report", run_path.to_str().unwrap()]).contains("fillseq"));

    disk.make_room();
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = format!("{} cells done, {} kept from before\n", 3 - before.len(), before.len());
    assert!(stdout(&output).starts_with(&expected), "{}", stdout(&output));
    assert_eq!(kept(&run_path).len(), 3);
}

/// Peers, and what they say of a full disk. LMDB takes a short write for a broken device; Kyoto
/// Cabinet writes through a mapping, where it is a signal. RocksDB is not here: it may wait until
/// there is room, however long that takes.
const FULL: [(&str, &[&str]); 6] = [
    ("sqlite", &["database or disk is full"]),
    ("leveldb", &["No space left on device"]),
    ("kyoto", &["space", "SIGBUS"]),
    ("lmdb", &["No space left on device", "Input/output error"]),
    ("redb", &["No space left on device"]),
    // Whichever comes first: the write itself, or that of a background thread, after which all
    // writes say no more than that.
    ("fjall", &["No space left on device", "Poisoned"]),
];

/// The second of three databases finds no room. An engine that is not installed is a line, or a
/// failure with `ESKER_REQUIRE_PEERS=1`.
#[test]
fn a_peer_on_a_full_disk_costs_its_cell_and_not_the_run() {
    for (engine, said) in FULL {
        let sandbox = Sandbox::new("sweep-full-peer");
        let Some(_disk) = SmallDisk::mount(&sandbox.path("db"), 64) else { return };
        write_sweep(&sandbox, &["esker"], 1000, &[100, 900_000, 101]);
        let output = run(&words(&sweep(&sandbox, &["--engines", engine])));
        let (out, error) = (stdout(&output), stderr(&output));
        if error.contains("library not found") {
            assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{error}");
            eprintln!("skipped: {error}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{engine}: {out}{error}");
        assert!(out.starts_with("2 cells done, 0 kept from before, 1 failed:\n"), "{engine}: {out}");
        let line = out.lines().nth(1).unwrap();
        assert!(line.starts_with(&format!("  sweep: {engine}, value_size 900000: ")), "{line}");
        assert!(said.iter().any(|words| line.contains(words)), "{line}");
        assert!(error.contains(&format!("\n{}\n[3/3", line.trim())), "told only at the end: {error}");
        for ((_, value_size), failure) in kept(&sandbox.path("run")) {
            assert_eq!(failure.is_some(), value_size == "900000", "{engine}, {value_size}: {failure:?}");
        }
    }
}
