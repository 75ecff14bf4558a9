//! The benchmark core end to end, on the reference engine.

#![allow(clippy::unwrap_used)]

use esker_bench::bench::bench_with;
use esker_bench::interrupt::Interrupt;
use esker_bench::progress::Display;
use esker_bench::record::Record;
use esker_bench::reference;
use esker_engines::{EngineError, EngineKind};
use std::path::Path;

struct Ran {
    code: i32,
    out: String,
}

fn run_kinds(db: &Path, arguments: &str, kinds: &[EngineKind], interrupt: Interrupt) -> Ran {
    let mut args: Vec<String> = arguments.split_whitespace().map(String::from).collect();
    args.push(format!("--db={}", db.display()));
    let mut out = Vec::new();
    let code = bench_with(&args, kinds, &mut out, Display::Hidden, || interrupt);
    Ran { code, out: String::from_utf8(out).unwrap() }
}

fn run(db: &Path, arguments: &str) -> Ran {
    run_kinds(db, &format!("--engine=reference {arguments}"), &[reference::KIND], Interrupt::new())
}

fn found(out: &str) -> Vec<u64> {
    out.lines().filter_map(|line| line.split_once(" of ")?.0.rsplit_once('(')?.1.parse().ok()).collect()
}

fn records(path: &Path) -> Vec<Record> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn random_reads_find_the_published_numbers_of_keys() {
    let db = tempfile::tempdir().unwrap();
    for (num, expected) in [(10_000, 6250), (100_000, 63_059), (1_000_000, 632_150)] {
        let ran =
            run(db.path(), &format!("--benchmarks=fillrandom,readrandom --num={num} --histogram=0 --value_size=8"));
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains(&format!("({expected} of {num} found)")), "{}", ran.out);
    }
}

#[test]
fn the_default_list_finds_the_published_numbers_of_keys() {
    let db = tempfile::tempdir().unwrap();
    for (num, expected) in [(10_000, [8609, 8665, 8634]), (100_000, [86_501, 86_354, 86_588])] {
        let ran = run(db.path(), &format!("--num={num}"));
        assert_eq!(ran.code, 0);
        assert_eq!(found(&ran.out), expected, "{}", ran.out);
    }
}

#[test]
fn a_process_of_its_own_restarts_the_seeds() {
    let db = tempfile::tempdir().unwrap();
    let ran = run(db.path(), "--benchmarks=fillrandom,readrandom --num=10000 --fresh_process");
    assert_eq!(found(&ran.out), [10_000]);
    // A second process with a fifth of the keys, as the memtable study ran its reader.
    let ran = run(db.path(), "--benchmarks=readrandom --num=2000 --use_existing_db=1");
    assert_eq!(found(&ran.out), [1412]);
    let ran = run(db.path(), "--benchmarks=fillseq,readrandom --num=2000 --use_existing_db=1");
    assert!(ran.out.contains("fillseq      : skipped (--use_existing_db is true)"));
}

#[test]
fn every_benchmark_runs_with_its_number_of_operations() {
    let db = tempfile::tempdir().unwrap();
    let json = db.path().join("rows.jsonl");
    let csv = db.path().join("rows.csv");
    let list = "fillseq,fillseqsync,fillrandsync,fillsync,fillbatch,fillseqbatch,fillrandbatch,overwritebatch,fill100K,fillseq100K,readseq100K,\
                fillrand100K,readrand100K,filluniquerandom,readseq,readreverse,readrandom,readrandomsmall,readmissing,readhot,seekrandom,seekordered,\
                readwhilewriting,overwrite,updaterandom,mergerandom,readrandommergerandom,compact,waitidle,open,crc32c,snappycomp,\
                deleteseq,deleterandom";
    let list: String = list.split_whitespace().collect();
    let flags = "--num=20000 --threads=2 --value_size=8 --merge_operator=uint64add --repeat=2";
    let ran = run(db.path(), &format!("{flags} --benchmarks={list} --json={} --csv={}", json.display(), csv.display()));
    assert_eq!(ran.code, 0, "{}", ran.out);
    let records = records(&json);
    assert_eq!(records.len(), 2 * list.split(',').count());
    let one = |name: &str| records.iter().find(|record| record.benchmark == name).unwrap();
    for (name, ops) in [
        ("fillseq", 40_000),
        ("fillseqsync", 400),
        ("fillrandsync", 400),
        ("fillsync", 40),
        ("fillbatch", 40_000),
        ("fill100K", 40),
        ("filluniquerandom", 20_000),
        ("readseq", 40_000),
        ("readreverse", 40_000),
        ("readrandomsmall", 40),
        ("readseq100K", 40),
        ("readrand100K", 40),
        ("readmissing", 40_000),
        ("readwhilewriting", 40_000),
        ("compact", 1),
        ("open", 2),
        ("crc32c", 256_000),
        ("snappycomp", 0),
        ("deleterandom", 40_000),
    ] {
        assert_eq!(one(name).ops, ops, "{name}");
    }
    assert_eq!(one("fillseq").bytes, 40_000 * 24);
    assert_eq!(one("fill100K").bytes, 40 * 100_016);
    assert_eq!(one("readrandom").bytes, 0);
    assert_eq!(one("readrandom").found, Some(20_000));
    assert_eq!(one("readwhilewriting").threads, 2);
    assert!(one("snappycomp").skipped.is_some());
    assert!(one("mergerandom").message.contains("(read-modify-write: engine has no merge)"));
    let row = one("fillseq");
    assert!(row.latency.p50_us > 0.0 && row.latency.max_us >= row.latency.p99_us && row.wall_s > 0.0);
    // Threads that start late may run one after the other, and then are together no longer than the
    // whole.
    assert!(row.sum_thread_s > 0.0);
    assert!((row.micros_per_op - row.sum_thread_s * 1e6 / 40_000.0).abs() < 1e-9);
    assert!((row.micros_per_op_wall - row.wall_s * 1e6 / 40_000.0).abs() < 1e-9);
    assert_eq!(row.series.iter().sum::<u64>(), 40_000);
    assert_eq!(row.flags["num"], "20000");
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), records.len() + 1);
}

#[test]
fn merges_count_every_operation() {
    let db = tempfile::tempdir().unwrap();
    let flags = "--num=1000 --merge_keys=1 --reads=0 --value_size=8 --merge_operator=uint64add --merge_operand=one";
    let ran = run(db.path(), &format!("{flags} --benchmarks=mergerandom --writes=700 --keygen=rocksdb"));
    assert_eq!(ran.code, 0);
    let options = esker_engines::EngineOptions::default();
    let engine = (reference::KIND.open)(&db.path().join("reference/db"), &options, None).unwrap();
    let mut value = Vec::new();
    assert!(engine.session().unwrap().get(b"0000000000000000", &mut value).unwrap());
    assert_eq!(value, 700u64.to_le_bytes());
}

#[test]
fn merges_need_an_operator() {
    let db = tempfile::tempdir().unwrap();
    let ran = run(db.path(), "--benchmarks=mergerandom --num=10");
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("mergerandom  : skipped (--merge_operator is unknown)"));
    let skipped = run(db.path(), "--benchmarks=fillrandom,mergerandom,readrandom --num=10000");
    let done = run(db.path(), "--benchmarks=fillrandom,compact,readrandom --num=10000");
    assert_eq!(found(&skipped.out), found(&done.out));
}

#[test]
fn exit_codes() {
    let db = tempfile::tempdir().unwrap();
    assert_eq!(run(db.path(), "--num=10 --benchmarks=fillseq,nosuch,readseq").code, 1);
    assert_eq!(run(db.path(), "--nosuchflag").code, 2);
    assert_eq!(run(db.path(), "--num=x").code, 2);
    assert_eq!(run(db.path(), "--json=/no/such/directory/x").code, 1);
    assert_eq!(run(db.path(), "--html=/no/such/directory/x").code, 1);
    let help = run(db.path(), "--help");
    assert_eq!(help.code, 0);
    assert!(help.out.contains("Examples:") && help.out.contains("--write_buffer_size"));
    let list = run(db.path(), "--list");
    assert_eq!(list.code, 0);
    assert!(list.out.contains("fillseq *") && list.out.contains("in memory"));
}

#[test]
fn an_interrupt_keeps_finished_rows() {
    let db = tempfile::tempdir().unwrap();
    let json = db.path().join("rows.jsonl");
    let interrupt = Interrupt::new();
    let later = interrupt.clone();
    let watched = json.clone();
    let watcher = std::thread::spawn(move || {
        while std::fs::read_to_string(&watched).unwrap_or_default().lines().count() < 1 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        later.request();
    });
    // The second benchmark would take far longer than the test may.
    let flags = format!("--benchmarks=fillseq,readrandom --num=5000 --reads=2000000000 --json={}", json.display());
    let ran = run_kinds(db.path(), &format!("--engine=reference {flags}"), &[reference::KIND], interrupt);
    watcher.join().unwrap();
    assert_eq!(ran.code, 130);
    assert_eq!(records(&json).len(), 1);
    assert_eq!(records(&json)[0].benchmark, "fillseq");
}

fn failing_kind() -> EngineKind {
    EngineKind {
        name: "lmdb",
        open: |_, _, _| Err(EngineError("no space left on device".into())),
        probe: |_| Ok("1".into()),
        ..reference::KIND
    }
}

#[test]
fn one_engine_failing_leaves_the_others_alone() {
    let db = tempfile::tempdir().unwrap();
    let kinds = [failing_kind(), reference::KIND];
    let ran = run_kinds(db.path(), "--engine=lmdb,reference --num=100 --benchmarks=fillseq", &kinds, Interrupt::new());
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("fillseq      :"));
}

#[test]
fn a_time_limit_ends_a_benchmark_early() {
    let db = tempfile::tempdir().unwrap();
    let flags = "--benchmarks=fillseq,readrandom --num=1000 --reads=2000000000 --max_seconds=0.2";
    let ran = run(db.path(), flags);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("(ended early after "), "{}", ran.out);
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let db = tempfile::tempdir().unwrap();
    let foreign = db.path().join("reference");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "x").unwrap();
    let ran = run(db.path(), "--benchmarks=fillseq --num=10");
    assert_eq!(ran.code, 1);
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);
}
