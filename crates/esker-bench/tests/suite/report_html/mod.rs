//! The HTML report, from outside: complete, well formed, escaped, and free of requests to the
//! network.

#![allow(clippy::unwrap_used)]

pub mod markup;
pub mod synthetic;

use crate::pages::kept;
use esker_bench::record::{Record, Run};
use esker_bench::report::{render_html, write_html};
use esker_engines::ENGINES;
use markup::{check, text};

#[test]
fn a_full_run_is_shown_completely() {
    let run = synthetic::full();
    let path = kept("report.html");
    write_html(&run, &path).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(page, render_html(&run));
    let elements = check(&page);
    assert!(!page.contains("http://") && !page.contains("https://"));
    let shown = text(&page);
    for name in ["Esker", "LevelDB", "RocksDB", "SQLite", "Kyoto Cabinet", "LMDB", "redb", "fjall"] {
        assert!(shown.contains(name), "{name}");
    }
    for (row, ..) in synthetic::ROWS {
        assert!(shown.contains(row), "{row}");
    }
    let sections =
        elements.iter().filter(|element| element.name == "section" && element.attribute("class") == Some("part"));
    assert_eq!(sections.count(), synthetic::ROWS.len());
    // A chart of bars and two plots.
    assert_eq!(elements.iter().filter(|element| element.name == "figure").count(), 3 * synthetic::ROWS.len());
    for words in [
        "LevelDB, SQLite, Kyoto Cabinet, LMDB, redb and fjall: (read-modify-write: engine has no merge)",
        "(632150 of 1000000 found)",
        "engine cannot leave its log out",
        "Not of equal durability",
        "fdatasync per write",
        "Made-up Processor 9000",
        "--repetitions=3",
        "301",
        "100000 in fill100K",
        "2030-01-02T03:04:05Z",
        "0.10 to 0.30 over the records",
    ] {
        assert!(shown.contains(words), "{words}");
    }
    assert!(!shown.contains("NaN") && !shown.contains("inf\u{d7}"));
}

#[test]
fn figures_are_medians_and_ratios_follow_from_them() {
    let mut records = Vec::new();
    for (repetition, esker, rocksdb) in [(1, 2.0, 8.0), (2, 4.0, 9.0), (3, 2.5, 10.0)] {
        for (engine, micros) in [("rocksdb", rocksdb), ("esker", esker), ("fjall", 1.25)] {
            let mut record = synthetic::record(engine, "fillrandom", repetition, None);
            record.micros_per_op = micros;
            record.ops_per_sec = 1e6 / micros;
            records.push(record);
        }
    }
    let page = render_html(&Run { records, ..Run::default() });
    check(&page);
    let shown = text(&page);
    // Medians: 2.5 and 9, and 3.6 times as fast as RocksDB but half as fast as the best peer.
    for words in ["2.500", "9.000", "3.60\u{d7}", "slower: 0.50\u{d7}", "best: 1.250", "400,000", "250,000 to 500,000"]
    {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(shown.contains("0 of 1"));
}

#[test]
fn thread_counts_are_told_apart() {
    let mut run = Run::default();
    for threads in [1, 4] {
        let mut record = synthetic::record("esker", "readrandom", 1, None);
        record.threads = threads;
        record.micros_per_op = 1.5;
        run.records.push(record);
    }
    let page = render_html(&run);
    check(&page);
    assert!(text(&page).contains("readrandom, 1 thread") && text(&page).contains("readrandom, 4 threads"));
}

#[test]
fn hostile_text_is_escaped_everywhere() {
    let evil = "</style></title><script>alert(\"1\")</script><img src='x' onerror=\"a&b\">";
    let mut run = Run { title: evil.into(), ..Run::default() };
    for engine in [evil, "esker"] {
        let mut record = synthetic::record(engine, evil, 1, None);
        record.benchmark = format!("{evil}2");
        record.engine_version = evil.into();
        record.message = evil.into();
        record.micros_per_op = 1.0;
        record.ops_per_sec = 1e6;
        record.histogram = vec![(1.0, 5), (2.0, 5)];
        record.settings = vec![(evil.into(), evil.into())];
        record.flags = [(evil.to_string(), evil.to_string())].into();
        record.options.merge_operator = Some(evil.into());
        record.options.extra = [(evil.to_string(), evil.to_string())].into();
        run.records.push(record.clone());
        run.records.push(Record { skipped: Some(evil.into()), threads: 2, ..record });
    }
    let host = &mut run.host;
    for field in [&mut host.cpu, &mut host.kernel, &mut host.file_system, &mut host.mount_options, &mut host.governor] {
        *field = evil.into();
    }
    for field in [&mut host.esker_build, &mut host.command_line, &mut host.date] {
        *field = evil.into();
    }
    let page = render_html(&run);
    check(&page);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn runs_without_records_say_so() {
    let page = render_html(&Run::default());
    check(&page);
    assert!(text(&page).contains("This run holds no records."));
}

#[test]
fn bare_and_strange_records_do_no_harm() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX];
    for value in odd {
        let mut run = Run::default();
        for engine in ENGINES {
            let mut record = Record { engine: engine.into(), benchmark: "fillseq".into(), ..Record::default() };
            for field in
                [&mut record.wall_s, &mut record.micros_per_op, &mut record.ops_per_sec, &mut record.latency.max_us]
            {
                *field = value;
            }
            record.latency.p50_us = value;
            record.series_interval_s = value;
            record.series = vec![0, u64::MAX, 3, 0];
            record.histogram = vec![(value, u64::MAX), (1.0, u64::MAX), (value, 0)];
            run.records.push(record);
        }
        check(&render_html(&run));
        run.records.truncate(1);
        check(&render_html(&run));
    }
}

#[test]
fn a_run_where_everything_was_skipped_is_shown() {
    let skipped = |engine: &&str| Record {
        engine: engine.to_string(),
        benchmark: "fillseq".into(),
        skipped: Some("library is missing".into()),
        ..Record::default()
    };
    let page = render_html(&Run { records: ENGINES.iter().map(skipped).collect(), ..Run::default() });
    check(&page);
    assert!(text(&page).contains("skipped: library is missing"));
    assert!(text(&page).contains("no ratios"));
}
