//! The scoreboard end to end, on reference engines under the names of real ones.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use esker_bench::interrupt::Interrupt;
use esker_bench::reference;
use esker_bench::study::scoreboard::{Arguments, main};
use esker_bench::sweep::grid::{Execution, RunDirectory};
use esker_engines::{EngineError, EngineKind};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn kind(name: &'static str) -> EngineKind {
    EngineKind { name, ..reference::KIND }
}

fn run(base: &Path, text: &str, interrupt: Interrupt) -> (i32, String) {
    let missing = EngineKind {
        name: "kyoto",
        open: |_, _, _| Err(EngineError("not here".into())),
        probe: |_| Err(EngineError("install it".into())),
        ..reference::KIND
    };
    run_with(&[kind("esker"), kind("rocksdb"), kind("lmdb"), missing], base, text, interrupt)
}

fn run_with(kinds: &[EngineKind], base: &Path, text: &str, interrupt: Interrupt) -> (i32, String) {
    let db = base.join("db");
    let words = ["x", "--num=2000", "--db", db.to_str().unwrap()].into_iter().chain(text.split_whitespace());
    let arguments = Command::parse_from(words).arguments;
    let mut out = Vec::new();
    let code = main(&arguments, &mut out, Execution::here(kinds, interrupt));
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn a_quick_board_has_every_row_of_every_engine() {
    let base = tempfile::tempdir().unwrap();
    let (json, html, records) = (base.path().join("b.jsonl"), base.path().join("b.html"), base.path().join("r.jsonl"));
    let files = format!("--json {} --html {} --records {}", json.display(), html.display(), records.display());
    let (code, out) = run(base.path(), &format!("--quick {files}"), Interrupt::new());
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("geometric mean") && out.contains("vs best peer"));
    let lines = std::fs::read_to_string(&json).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows: Vec<_> = lines.iter().filter(|line| line["kind"] == "row").collect();
    for name in
        ["fillseq", "fillsync", "readrandom settled", "updaterandom, 10 threads", "mergerandom with log, 1 thread"]
    {
        assert_eq!(rows.iter().filter(|line| line["row"] == name).count(), 3, "{name}");
    }
    for line in &rows {
        for field in ["micros_per_op", "min", "max", "ratio_to_best_peer", "ratio_to_rocksdb"] {
            assert!(line[field].as_f64().unwrap() > 0.0, "{field} of {line}");
        }
    }
    assert_eq!(lines.len() - rows.len(), 3);
    assert_eq!(std::fs::read_to_string(&records).unwrap().lines().count(), rows.len());
    assert!(html.exists());
}

#[test]
fn repetitions_and_chosen_rows() {
    let base = tempfile::tempdir().unwrap();
    let (code, out) = run(base.path(), "--repeat=3 --engines=rocksdb,esker --rows=readhot --csv", Interrupt::new());
    assert_eq!(code, 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[1].starts_with("readhot,rocksdb,") && lines[1].contains(",1,3,2000,"), "{out}");
}

#[test]
fn rows_of_a_list_are_measured_again_in_their_groups() {
    let base = tempfile::tempdir().unwrap();
    let list = base.path().join("rows");
    std::fs::write(&list, "zipfian\nupdaterandom, 2 threads\n").unwrap();
    let arguments = format!("--repeat=1 --engines=esker,rocksdb --rows-from={} --csv", list.display());
    let (code, out) = run(base.path(), &arguments, Interrupt::new());
    assert_eq!((code, out.lines().count()), (0, 5), "{out}");
    assert!(out.contains("zipfian,esker,") && out.contains("\"updaterandom, 2 threads\",rocksdb,"), "{out}");
    std::fs::write(&list, "no such row\n").unwrap();
    assert_eq!(run(base.path(), &arguments, Interrupt::new()).0, 2);
}

#[test]
fn a_run_that_is_kept_goes_on() {
    let base = tempfile::tempdir().unwrap();
    let (directory, records) = (base.path().join("run"), base.path().join("r.jsonl"));
    let files = format!("--run {} --records {}", directory.display(), records.display());
    let measured = |arguments: &str| {
        let (code, out) = run(base.path(), &format!("--rows=readhot {files} {arguments}"), Interrupt::new());
        assert_eq!(code, 0, "{out}");
        let text = std::fs::read_to_string(&records).unwrap();
        text.lines().map(String::from).collect::<Vec<String>>()
    };
    let first = measured("--repeat=1 --engines=rocksdb");
    let both = measured("--repeat=2 --engines=rocksdb,esker");
    assert_eq!((first.len(), both.len()), (1, 4));
    assert!(both.contains(&first[0]), "what was measured before stands as it was");
    assert_eq!(measured("--repeat=2 --engines=rocksdb,esker"), both, "nothing was left to do");
    let kept = RunDirectory::open(&directory).unwrap().load().unwrap();
    assert_eq!((kept.study.as_str(), kept.finished.len(), kept.missing), ("scoreboard", 4, 0));
    let interrupt = Interrupt::new();
    interrupt.request();
    let (code, out) = run(base.path(), &format!("--rows=readhot {files} --repeat=3 --engines=esker"), interrupt);
    assert_eq!(code, 130, "{out}");
    assert!(Command::try_parse_from(["x", "--quick", "--run", "d"]).is_err(), "a quick one is limited in time");
}

#[test]
fn rows_that_were_done_before_an_interrupt_are_shown() {
    static INTERRUPT: LazyLock<Interrupt> = LazyLock::new(Interrupt::new);
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let base = tempfile::tempdir().unwrap();
    let interrupting = EngineKind {
        open: |directory, options, library| {
            // Each load begins with a database of its own; the third is interrupted.
            if OPENED.fetch_add(1, Ordering::Relaxed) == 3 {
                INTERRUPT.request();
            }
            (reference::KIND.open)(directory, options, library)
        },
        ..kind("esker")
    };
    let arguments = format!("--repeat=1 --rows=100K --csv --run {}", base.path().join("run").display());
    let (code, out) = run_with(&[interrupting], base.path(), &arguments, INTERRUPT.clone());
    assert_eq!((code, out.lines().count()), (130, 3), "{out}");
    let kept = RunDirectory::open(&base.path().join("run")).unwrap().load().unwrap();
    assert_eq!((kept.finished.len(), kept.missing), (0, 1), "what is kept is whole");
}

#[test]
fn mixed_work_shows_its_writers() {
    let base = tempfile::tempdir().unwrap();
    let json = base.path().join("b.jsonl");
    let arguments = format!("--repeat=1 --engines=esker --rows=scanwhilewriting --json {}", json.display());
    let (code, out) = run(base.path(), &arguments, Interrupt::new());
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("writer beside the readers") && out.contains("latency: p99"), "{out}");
    let text = std::fs::read_to_string(&json).unwrap();
    let paced = text.lines().find(|line| line.contains("scanwhilewriting, 20000 writes/s")).unwrap();
    assert!(paced.contains("\"writer_wanted_per_sec\":20000.0"), "{paced}");
}

#[test]
fn exit_codes() {
    let base = tempfile::tempdir().unwrap();
    assert_eq!(run(base.path(), "--quick --rows=fillseq --require-ratio=1e9", Interrupt::new()).0, 1);
    assert_eq!(run(base.path(), "--quick --rows=fillseq --engines=esker,kyoto", Interrupt::new()).0, 1);
    assert_eq!(run(base.path(), "--engines=nosuch", Interrupt::new()).0, 2);
    assert_eq!(run(base.path(), "--lib=x", Interrupt::new()).0, 2);
    assert_eq!(run(base.path(), "--json=/no/such/place", Interrupt::new()).0, 1);
    let interrupt = Interrupt::new();
    interrupt.request();
    assert_eq!(run(base.path(), "--quick", interrupt).0, 130);
    assert_eq!(esker_bench::study_main(&["nosuch".into()]), 2);
    assert_eq!(esker_bench::study_main(&["--help".into()]), 0);
}
