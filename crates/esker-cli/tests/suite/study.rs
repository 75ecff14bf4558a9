//! Studies run each engine in a process of this command.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("esker-study-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn study(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker")).arg("study").args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_board_of_two_engines_is_made_by_their_processes() {
    let base = directory("board");
    let (db, json) = (base.join("db"), base.join("board.jsonl"));
    let files = ["--db", db.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let what = ["scoreboard", "--num=2000", "--repeat=1", "--engines=esker,redb", "--rows=while"];
    let output = study(&[&what[..], &files[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let text = std::fs::read_to_string(&json).unwrap();
    for row in ["readwhilewriting", "scanwhilewriting", "readwhilewriting, 20000 writes/s"] {
        for engine in ["esker", "redb"] {
            let line = text.lines().find(|line| {
                line.contains(&format!("\"row\":\"{row}\"")) && line.contains(&format!("\"engine\":\"{engine}\""))
            });
            let line = line.unwrap_or_else(|| panic!("no {row} of {engine}: {text}{error}"));
            assert!(line.contains("\"writer_ops_per_sec\":") && !line.contains("\"rss_peak_bytes\":0,"), "{line}");
        }
    }
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn opening_is_reported() {
    let base = directory("open");
    let db = base.join("db");
    let output = study(&["scale", "--parts=open", "--open-entries=1000", "--db", db.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("esker, open, empty: median ms:"), "{text}");
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn the_childs_command_refuses_what_is_no_task() {
    assert_eq!(study(&["child"]).status.code(), Some(2));
    let help = study(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(!help.contains("child") && !help.contains("killed-writer"));
    assert_eq!(study(&["killed-writer"]).status.code(), Some(2));
    assert_eq!(study(&["killed-writer", "--order-from-standard-input"]).status.code(), Some(2));
}

/// A process puts keys, is killed, and everything that it had said it had put is there.
#[test]
fn acknowledged_puts_survive_the_death_of_the_process() {
    let base = directory("killed");
    for engine in ["esker", "leveldb", "rocksdb", "sqlite", "lmdb", "redb", "fjall"] {
        let json = base.join(format!("{engine}.jsonl"));
        let (db, file) = (format!("--db={}", base.join("db").display()), format!("--json={}", json.display()));
        let named = format!("--engine={engine}");
        let arguments = ["bench", &named, "--benchmarks=killedfill", "--num=2000", &db, &file];
        let output = Command::new(env!("CARGO_BIN_EXE_esker")).args(arguments).stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("library not found") {
            assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{error}");
            eprintln!("skipped: {error}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{error}");
        let row: serde_json::Value = serde_json::from_str(std::fs::read_to_string(&json).unwrap().trim()).unwrap();
        let (acknowledged, found) = (row["ops"].as_u64().unwrap(), row["found"].as_u64().unwrap());
        assert!(acknowledged >= 2000, "{engine}: {row}");
        assert_eq!(found, acknowledged, "{engine}: {}", row["message"]);
        assert_eq!(row["durability"], "operating_system", "{engine}");
    }
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn a_database_whose_process_died_is_opened_by_the_next() {
    let base = directory("recovery");
    let (db, run) = (base.join("db"), base.join("run"));
    let files = ["--db", db.to_str().unwrap(), "--run", run.to_str().unwrap()];
    let what = ["workloads", "--quick", "--only=open", "--engines=esker"];
    let output = study(&[&what[..], &files[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let cells = std::fs::read_dir(run.join("cells")).unwrap();
    let texts: Vec<String> = cells.map(|cell| std::fs::read_to_string(cell.unwrap().path()).unwrap()).collect();
    // Two sizes, three times.
    assert_eq!(texts.len(), 6, "{error}");
    for text in texts {
        assert!(text.contains("(1000 of 1000 sampled entries are there)"), "{text}");
        assert!(text.contains("\"reopen\"") && text.contains("\"failure\":null"), "{text}");
    }
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn a_report_needs_a_run() {
    let output = Command::new(env!("CARGO_BIN_EXE_esker")).args(["report", "no-such-run"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("esker report: cannot read no-such-run: ") && error.lines().count() == 1, "{error}");
}
