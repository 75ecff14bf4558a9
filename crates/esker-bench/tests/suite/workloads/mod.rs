//! The workloads of the study of that name, small, on every engine that is here: what they find is
//! exact, and what they check fails on an engine that is wrong.

#![allow(clippy::unwrap_used)]

mod altered;
mod rate;
mod recovery;
mod study;

use altered::Wrong;
use esker_bench::bench::bench_with;
use esker_bench::interrupt::Interrupt;
use esker_bench::progress::Display;
use esker_bench::record::Record;
use esker_bench::reference;
use esker_engines::{EngineKind, EngineOptions, registry};
use std::path::Path;

/// Runs `esker bench` on one engine: its exit code, and its rows.
fn run(kind: EngineKind, base: &Path, arguments: &str) -> (i32, Vec<Record>) {
    let json = base.join("rows.jsonl");
    let mut words: Vec<String> = arguments.split_whitespace().map(String::from).collect();
    words.push(format!("--engine={}", kind.name));
    words.push(format!("--db={}", base.join("db").display()));
    words.push(format!("--json={}", json.display()));
    let code = bench_with(&words, &[kind], &mut Vec::new(), Display::Hidden, Interrupt::new);
    let text = std::fs::read_to_string(json).unwrap();
    (code, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The engines that are here. A C library that is not installed is a line, or a failure with
/// `ESKER_REQUIRE_PEERS=1`.
fn present() -> Vec<EngineKind> {
    let mut kinds = vec![reference::KIND];
    for kind in registry::KINDS {
        match (kind.probe)(None) {
            Ok(_) => kinds.push(kind),
            Err(missing) => {
                assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
                eprintln!("skipped: {missing}");
            }
        }
    }
    kinds
}

fn number(message: &str, name: &str) -> u64 {
    let rest = message.split_once(&format!("{name}:")).unwrap_or_else(|| panic!("no {name} in {message}")).1;
    rest.split([' ', ')']).next().unwrap().parse().unwrap()
}

#[test]
fn every_mix_finds_what_was_loaded_and_inserted() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let list = "fillshuffled,ycsba,ycsbb,ycsbc,ycsbf,ycsbd,ycsbe,readseq";
        let (code, rows) =
            run(kind, base.path(), &format!("--benchmarks={list} --num=2000 --writes=2000 --reads=4000"));
        assert_eq!((code, rows.len()), (0, 8), "{name}");
        let message = |mix: &str| rows.iter().find(|row| row.benchmark == mix).unwrap().message.clone();
        for (mix, reads, kinds) in [
            ("ycsba", 900..1100, vec!["reads", "updates"]),
            ("ycsbb", 1850..1950, vec!["reads", "updates"]),
            ("ycsbc", 2000..2001, vec!["reads"]),
            ("ycsbf", 2000..2001, vec!["reads"]),
            ("ycsbd", 1850..1950, vec!["reads", "inserts"]),
        ] {
            let text = message(mix);
            assert!(reads.contains(&number(&text, "reads")), "{name} {mix}: {text}");
            assert_eq!(number(&text, "reads"), number(&text, "found"), "{name} {mix}: {text}");
            assert_eq!(kinds.iter().map(|kind| number(&text, kind)).sum::<u64>(), 2000, "{name} {mix}: {text}");
        }
        assert!((900..1100).contains(&number(&message("ycsbf"), "updates")));
        let scans = message("ycsbe");
        assert_eq!(number(&scans, "scans") + number(&scans, "inserts"), 2000, "{name}: {scans}");
        let length = number(&scans, "entries") as f64 / number(&scans, "scans") as f64;
        assert!((44.0..57.0).contains(&length), "{name}: {length} entries a scan");
        // Both that insert add their keys to those that were loaded, and no more.
        let inserted = number(&message("ycsbd"), "inserts") + number(&scans, "inserts");
        assert_eq!(rows[7].ops, 2000 + inserted, "{name}");
    }
}

#[test]
fn threads_read_what_others_have_inserted() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let list = "--benchmarks=fillseq,ycsbd,ycsbe --num=1000 --threads=3 --writes=1000";
        let (code, rows) = run(kind, base.path(), list);
        assert_eq!((code, rows[1].ops), (0, 3000), "{name}");
        // The first thread's message.
        assert_eq!(number(&rows[1].message, "reads"), number(&rows[1].message, "found"), "{name}");
    }
}

#[test]
fn a_queue_keeps_every_entry_until_it_is_taken() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let (code, rows) = run(kind, base.path(), "--benchmarks=queue,readseq --num=3000 --threads=2");
        assert_eq!((code, rows[0].ops), (0, 6000), "{name}: {:?}", rows.first());
        let text = &rows[0].message;
        assert_eq!(number(text, "put") + number(text, "taken"), 3000, "{name}: {text}");
        assert_eq!(number(text, "put") - number(text, "taken"), number(text, "left"), "{name}: {text}");
    }
}

#[test]
fn prefixes_show_what_was_not_deleted() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let list = "--benchmarks=fillshuffled,prefixtombstones,readseq --num=2000 --reads=1000 --threads=2";
        let (code, rows) = run(kind, base.path(), list);
        assert_eq!((code, rows[1].ops, rows[1].found), (0, 200, Some(500)), "{name}");
        // Each of two threads counts what is left once.
        assert_eq!(rows[2].ops, 200, "{name}");
    }
}

#[test]
fn counters_hold_every_addition() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let open = kind.open;
        let list = "--benchmarks=zipfiancounters --num=500 --writes=3000 --threads=2 --merge_operator=uint64add";
        let (code, rows) = run(kind, base.path(), list);
        assert_eq!((code, rows[0].ops, rows[0].bytes), (0, 6000, 6000 * 24), "{name}");
        let options = EngineOptions { merge_operator: Some("uint64add".into()), ..EngineOptions::default() };
        let engine = open(&base.path().join("db").join(name).join("db"), &options, None).unwrap();
        let mut session = engine.session().unwrap();
        let mut iteration = session.iterate().unwrap();
        let (mut sum, mut most) = (0, 0);
        let mut there = iteration.seek_to_first().unwrap();
        while there {
            let count = u64::from_le_bytes(iteration.value().try_into().unwrap());
            (sum, most) = (sum + count, most.max(count));
            there = iteration.next().unwrap();
        }
        assert_eq!(sum, 6000, "{name}");
        assert!(most > 500, "{name}: the most popular of 500 counters has {most} of 6000");
        drop(iteration);
        drop(session);
        engine.close().unwrap();
    }
}

#[test]
fn entries_expire_while_they_are_scanned() {
    for kind in present() {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let list = "--benchmarks=ttlchurn,fillseq,readseq --num=3000 --reads=200000 --rate=500 --writes=50 --ttl_ms=40 --writes_per_second=20000";
        let (code, rows) = run(kind, base.path(), list);
        assert_eq!((code, rows.len()), (0, 3), "{name}");
        if name != "esker" {
            assert_eq!(rows[0].skipped.as_deref(), Some("engine has no time to live of its own"), "{name}");
            continue;
        }
        let text = &rows[0].message;
        assert_eq!(rows[0].ops, 200, "{text}");
        assert!(number(text, "entries") > 0 && number(text, "hidden") > 0, "{text}");
        assert!(rows[0].writer_ops_per_sec.unwrap() > 0.0);
        // What follows is a database without expiry again.
        assert_eq!(rows[2].ops, 50);
        assert!(rows[0].options.ttl && !rows[1].options.ttl);
    }
}

#[test]
fn an_engine_that_is_wrong_is_found_out() {
    for (wrong, list) in [
        (Wrong::LosesAPut, "queue"),
        (Wrong::IgnoresADelete, "queue"),
        (Wrong::IgnoresADelete, "fillseq,prefixtombstones"),
        (Wrong::DeletesTwo, "fillseq,prefixtombstones"),
        (Wrong::DeletesTwo, "fillshuffled,prefixtombstones"),
        (Wrong::NothingExpires, "ttlchurn"),
        (Wrong::ExpiresAtOnce, "ttlchurn"),
    ] {
        let base = tempfile::tempdir().unwrap();
        // So many keys that the writer does not come to all of them again before they expire.
        let num = if list == "ttlchurn" { 100_000 } else { 3000 };
        // So many reads that they do not end before the writer has had its turn, however busy the
        // machine is: the first wrong answer ends them.
        let reads = if list == "ttlchurn" { 50_000_000 } else { 100_000 };
        let flags = format!("--benchmarks={list} --num={num} --reads={reads} --ttl_ms=20");
        let (code, rows) = run(altered::kind(wrong), base.path(), &flags);
        assert_eq!((code, rows.len()), (1, list.split(',').count() - 1), "{list}");
    }
}

#[test]
fn what_is_not_known_to_have_been_there_is_not_missed() {
    let base = tempfile::tempdir().unwrap();
    let flags =
        "--benchmarks=fillrandom,prefixtombstones,fillseq,deleterandom,prefixtombstones --num=3000 --reads=10000";
    let (code, rows) = run(reference::KIND, base.path(), flags);
    assert_eq!((code, rows.len()), (0, 5));
}

#[test]
fn a_thread_that_panics_is_a_failure_and_no_wait() {
    for (wrong, list, rows_before) in [
        (Wrong::PanicsAtSession, "fillseq --threads=3", 0),
        (Wrong::PanicsAtPut, "fillseq --threads=3", 0),
        (Wrong::PanicsAtGet, "fillseq,readwhilewriting --threads=1", 1),
        // The load is within its first puts; the writer beside the readers is not.
        (Wrong::PanicsAtPut, "fillseq,readwhilewriting --writes=600 --reads=100000000", 1),
    ] {
        let base = tempfile::tempdir().unwrap();
        let (code, rows) = run(altered::kind(wrong), base.path(), &format!("--benchmarks={list} --num=1000"));
        assert_eq!((code, rows.len()), (1, rows_before), "{list}");
    }
}

#[test]
fn more_keys_than_can_be_watched_are_an_error() {
    let base = tempfile::tempdir().unwrap();
    let (code, rows) =
        run(altered::kind(Wrong::NothingExpires), base.path(), "--benchmarks=ttlchurn --num=1000000000000000");
    assert_eq!((code, rows.len()), (1, 0));
}
