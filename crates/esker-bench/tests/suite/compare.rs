//! Comparing a scoreboard with a kept one.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use esker_bench::study::compare::{Arguments, main};
use std::fmt::Write;
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

/// A scoreboard file in the form of the first kept ones, which lack later fields: rows as (row,
/// engine, median, spread as a fraction).
fn file(path: &Path, rows: &[(&str, &str, f64, f64)]) {
    let mut text = String::new();
    for (row, engine, median, spread) in rows {
        let (min, max) = (median * (1.0 - spread / 2.0), median * (1.0 + spread / 2.0));
        writeln!(
            text,
            "{{\"kind\":\"row\",\"row\":\"{row}\",\"engine\":\"{engine}\",\"engine_version\":\"1\",\"threads\":1,\
             \"micros_per_op\":{median},\"min\":{min},\"max\":{max},\"interval_low\":{min},\"interval_high\":{max},\
             \"ratio_to_best_peer\":null,\"best_peer\":null,\"ratio_to_rocksdb\":null,\"repetitions\":3,\"ops\":1000,\
             \"p99_us\":1.0,\"disk_bytes\":1,\"durability\":null,\"message\":\"\"}}"
        )
        .unwrap();
    }
    text.push_str("{\"kind\":\"mean\",\"row\":\"geometric mean\",\"engine\":\"esker\",\"micros_per_op\":1.0}\n");
    std::fs::write(path, text).unwrap();
}

fn run(words: &[&str]) -> (i32, String) {
    let arguments = Command::parse_from(std::iter::once("x").chain(words.iter().copied())).arguments;
    let mut out = Vec::new();
    let code = main(&arguments, &mut out);
    (code, String::from_utf8(out).unwrap())
}

fn verdict(out: &str, row: &str) -> String {
    let line = out.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no {row} in {out}"));
    line.split_whitespace().rev().nth(1).unwrap().to_string()
}

#[test]
fn a_slow_machine_is_no_loss_and_a_slow_engine_is() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (base, new, rows) = (at("base"), at("new"), at("rows"));
    let kept = [
        ("load", "esker", 1.0, 0.04),
        ("load", "leveldb", 4.0, 0.04),
        ("read", "esker", 1.0, 0.02),
        ("read", "leveldb", 2.0, 0.02),
        ("scan", "esker", 1.0, 0.04),
        ("scan", "leveldb", 2.0, 0.04),
        ("merge", "esker", 1.0, 0.5),
        ("merge", "leveldb", 2.0, 0.1),
    ];
    file(Path::new(&base), &kept);
    // Everything twice as slow, and the reads of Esker 30 % slower than that.
    let measured = [
        ("load", "esker", 2.0, 0.04),
        ("load", "leveldb", 8.0, 0.04),
        ("read", "esker", 2.6, 0.02),
        ("read", "leveldb", 4.0, 0.02),
        ("scan", "esker", 2.26, 0.04),
        ("scan", "leveldb", 4.0, 0.04),
        ("merge", "esker", 2.1, 0.5),
        ("merge", "leveldb", 4.0, 0.1),
    ];
    file(Path::new(&new), &measured);
    let (code, out) = run(&[&base, &new, "--failing", &rows]);
    assert_eq!(code, 1, "{out}");
    assert_eq!(verdict(&out, "load"), "held");
    assert_eq!(verdict(&out, "read"), "LOST");
    // 13 % with 4 % of noise, and 5 % with 36 % of noise.
    assert_eq!(verdict(&out, "scan"), "unclear");
    assert_eq!(verdict(&out, "merge"), "unclear");
    assert_eq!(std::fs::read_to_string(&rows).unwrap(), "read\nscan\nmerge\n");
    assert_eq!(run(&[&base, &new, "--max-loss", "40"]).0, 0);
    assert_eq!(run(&[&base, &base]).0, 0);
}

#[test]
fn a_second_measurement_decides() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (base, new, again) = (at("base"), at("new"), at("again"));
    let board = |path: &str, read: f64, scan: f64| {
        let peer = [("read", "leveldb", 1.0, 0.0), ("scan", "leveldb", 1.0, 0.0)];
        file(Path::new(path), &[peer[0], peer[1], ("read", "esker", read, 0.0), ("scan", "esker", scan, 0.0)]);
    };
    board(&base, 1.0, 1.0);
    board(&new, 1.5, 1.0);
    file(Path::new(&again), &[("read", "esker", 1.05, 0.0), ("read", "leveldb", 1.0, 0.0)]);
    assert_eq!(run(&[&base, &new]).0, 1);
    assert_eq!(run(&[&base, &new, "--again", &again]).0, 0);
    file(Path::new(&again), &[("read", "esker", 1.2, 0.0), ("read", "leveldb", 1.0, 0.0)]);
    assert_eq!(run(&[&base, &new, "--again", &again]).0, 1);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (base, alone, damaged) = (at("base"), at("alone"), at("damaged"));
    file(Path::new(&base), &[("read", "esker", 1.0, 0.0), ("read", "leveldb", 1.0, 0.0)]);
    file(Path::new(&alone), &[("read", "esker", 1.0, 0.0)]);
    std::fs::write(&damaged, "{\"kind\":\"row\"").unwrap();
    assert_eq!(run(&[&base, &alone]).0, 2);
    assert_eq!(run(&[&base, &base, "--yardstick", "rocksdb"]).0, 2);
    assert_eq!(run(&[&base, &damaged]).0, 2);
    assert_eq!(run(&[&base, "no/such/file"]).0, 2);
    assert_eq!(run(&[&base, &base, "--max-loss=nan"]).0, 2);
}

#[test]
fn the_kept_scoreboards_can_be_read() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/results");
    let mut read = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy();
        if name.contains("-scoreboard") && name.ends_with(".jsonl") {
            let path = path.to_str().unwrap();
            let (code, out) = run(&[path, path]);
            assert_eq!(code, 0, "{path}: {out}");
            read += 1;
        }
    }
    assert!(read > 0);
}
