//! The scale study, tiny and in this process: every part makes its rows and figures.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use esker_bench::interrupt::Interrupt;
use esker_bench::study::scale::{Arguments, main};
use esker_bench::sweep::grid::Execution;
use esker_engines::registry;
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn run(base: &Path, text: &str, interrupt: Interrupt) -> (i32, String, Vec<serde_json::Value>) {
    let (db, json) = (base.join("db"), base.join("lines.jsonl"));
    let fixed = ["x", "--db", db.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let arguments = Command::parse_from(fixed.into_iter().chain(text.split_whitespace())).arguments;
    let mut out = Vec::new();
    let code = main(&arguments, &mut out, Execution::here(&registry::KINDS, interrupt));
    let lines = std::fs::read_to_string(json).unwrap_or_default();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (code, String::from_utf8(out).unwrap(), lines)
}

#[test]
fn every_part_makes_its_rows_and_figures() {
    let base = tempfile::tempdir().unwrap();
    let sizes =
        "--nums 2000,4000 --reads 1000 --threads 1,2 --threads-num 4000 --open-entries 3000 --dataset-gb 0.0005";
    let (code, out, lines) = run(base.path(), sizes, Interrupt::new());
    assert_eq!(code, 0, "{out}");
    assert_eq!(lines[0]["kind"], "machine");
    let row = |part: &str, row: &str| {
        lines.iter().filter(|line| line["part"] == part && line["record"]["row"] == row).count()
    };
    for name in ["mergerandom", "fillrandom", "readrandom"] {
        assert_eq!((row("grow", name), row("threads", name)), (2, 2), "{name}: {out}");
    }
    for name in ["create", "open, empty", "open, 3000 entries"] {
        assert_eq!(row("open", name), 1, "{name}: {out}");
    }
    for name in ["load", "settle", "readrandom", "readseq"] {
        assert_eq!(row("dataset", name), 1, "{name}: {out}");
    }
    let figure = |part: &str, row: &str, name: &str| {
        let found = lines.iter().find(|line| {
            line["kind"] == "figure" && line["part"] == part && line["row"] == row && line["name"] == name
        });
        found.and_then(|line| line["value"].as_f64()).unwrap_or(f64::NAN)
    };
    assert!(figure("grow", "fillrandom", "cost at the most entries over that at the fewest") > 0.0);
    assert!(figure("threads", "mergerandom", "least rate over that of the fewest threads") > 0.0);
    assert!(figure("open", "create", "median ms") > 0.0 && figure("open", "open, empty", "longest ms") > 0.0);
    // What was loaded is all there, and found.
    let scan = lines.iter().find(|line| line["record"]["row"] == "readseq").unwrap();
    assert_eq!(scan["record"]["ops"], scan["record"]["num"]);
    let reads = lines.iter().find(|line| line["part"] == "dataset" && line["record"]["row"] == "readrandom").unwrap();
    assert_eq!(reads["record"]["found"], 1000);
}

#[test]
fn exit_codes() {
    let base = tempfile::tempdir().unwrap();
    for wrong in ["--parts dataset", "--nums 10", "--threads 0", "--engines nosuch", "--dataset-gb 0", "--repeat 0"] {
        assert_eq!(run(base.path(), wrong, Interrupt::new()).0, 2, "{wrong}");
    }
    let interrupt = Interrupt::new();
    interrupt.request();
    assert_eq!(run(base.path(), "--parts open --open-entries 1000", interrupt).0, 130);
}
