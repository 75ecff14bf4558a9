//! Operations at fixed times.

use super::altered::{self, STALL, Wrong};
use super::run;
use esker_bench::record::Record;
use esker_bench::reference;

/// Operations that took at least so many milliseconds.
fn at_least(row: &Record, ms: f64) -> u64 {
    row.histogram.iter().filter(|(bound, _)| *bound >= ms * 1000.0).map(|(_, operations)| operations).sum()
}

#[test]
fn a_stall_is_in_the_latency_of_everything_that_waits_for_it() {
    let base = tempfile::tempdir().unwrap();
    let list = "--benchmarks=fillseq --num=1000 --rate=1000";
    let (code, rows) = run(altered::kind(Wrong::StallsOnce), base.path(), list);
    let row = &rows[0];
    assert_eq!((code, row.ops, row.rate_wanted_per_sec), (0, 1000, Some(1000.0)));
    assert!(row.wall_s > 0.99, "{} s", row.wall_s);
    // Those due in the first half of the stall are later than its second half is long.
    assert!(at_least(row, 50.0) >= 48, "{:?}", row.histogram);
    assert!(row.latency.p99_us > 50_000.0, "{}", row.latency.p99_us);
    let service = row.service.unwrap();
    assert!(service.max_us >= STALL.as_micros() as f64);
    assert!(service.p90_us < 50_000.0, "only one operation was slow, {service:?}");

    // Without a rate the same stall is one operation's.
    let (_, rows) = run(altered::kind(Wrong::StallsOnce), base.path(), "--benchmarks=fillseq --num=1000");
    assert!((1..48).contains(&at_least(&rows[0], 50.0)) && rows[0].service.is_none());
}

#[test]
fn every_kind_of_benchmark_keeps_its_rate() {
    let base = tempfile::tempdir().unwrap();
    let list = "fillseq,readseq,readrandom,ycsba,readwhilewriting,filluniquerandom,fillbatch,compact,queue";
    let flags = format!("--benchmarks={list} --num=300 --threads=2 --rate=3000");
    let (code, rows) = run(reference::KIND, base.path(), &flags);
    assert_eq!((code, rows.len()), (0, 9));
    for row in &rows {
        match row.benchmark.as_str() {
            "fillbatch" => assert!(row.skipped.as_deref().is_some_and(|reason| reason.contains("--rate"))),
            "compact" => assert_eq!((row.rate_wanted_per_sec, row.service), (None, None)),
            name => {
                // The last of n operations is due n - 1 intervals after the first.
                let least = (row.ops - 1) as f64 / 3000.0;
                assert!(row.wall_s >= least * 0.99, "{name}: {} operations in {} s", row.ops, row.wall_s);
                assert!(row.message.contains("(rate: "), "{name}: {}", row.message);
                assert!(
                    row.service
                        .is_some_and(|service| service.p50_us > 0.0 && service.p50_us <= row.latency.p50_us * 1.01)
                );
                let counted: u64 = row.histogram.iter().map(|(_, operations)| operations).sum();
                assert_eq!(counted, row.ops, "{name}: every operation has its latency");
            }
        }
    }
}

#[test]
fn a_rate_beyond_the_engine_is_told_and_ends_at_the_limit() {
    let base = tempfile::tempdir().unwrap();
    let list = "--benchmarks=fillseq --num=1000000000 --rate=1000000000 --max_seconds=0.3 --value_size=8";
    let (code, rows) = run(reference::KIND, base.path(), list);
    assert_eq!(code, 0);
    assert!(rows[0].message.contains("of 1000000000/s, did not keep up"), "{}", rows[0].message);
    assert!(rows[0].message.contains("ended early"));
    // A rate of next to nothing waits no longer than it may.
    let list = "--benchmarks=fillseq,readseq --num=10 --rate=0.001 --max_seconds=0.2";
    let (code, rows) = run(reference::KIND, base.path(), list);
    assert_eq!((code, rows[0].ops), (0, 1));
    assert!(rows[0].wall_s < 300.0, "the next one is due after 1000 s");
    // What is measured on a part of the entries says so.
    assert!(rows.iter().all(|row| row.short_load.as_deref() == Some("fillseq")), "{rows:?}");
    let (_, rows) = run(reference::KIND, base.path(), "--benchmarks=fillseq,readseq --num=10");
    assert!(rows.iter().all(|row| row.short_load.is_none()), "{rows:?}");
}
