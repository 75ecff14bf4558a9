//! `esker stats` for machines and for people who watch.
#![allow(clippy::unwrap_used)]

use crate::common::{Sandbox, fails, ok};
use esker::{Db, METRICS, MetricKind, Options, PrometheusText, WriteOptions};
use std::fs;

#[test]
fn prometheus_prints_every_metric_of_the_directory_and_nothing_else() {
    let sandbox = Sandbox::new("prometheus");
    let db = sandbox.text("data");
    ok(&["put", "--db", &db, "ada", "1815"]);
    let text = ok(&["stats", "--db", &db, "--prometheus"]);
    for line in [
        "esker_sequence_last_total 1",
        "esker_keyspace_count 1",
        "esker_keyspace_memtable_entries{keyspace=\"default\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let types = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    // But one: whether the program that writes can do so, a look at the directory does not tell.
    assert_eq!(types, METRICS.iter().filter(|metric| metric.kind != MetricKind::Histogram).count() - 1);
    // Seen: `esker_health_writable 0` of a healthy database, which the dashboard shows as an alarm.
    assert!(!text.contains("esker_health_writable"), "{text}");
}

/// Seen: 4680 and 0 bytes of memtables in one output.
#[test]
fn figures_of_the_same_thing_are_the_same() {
    let sandbox = Sandbox::new("same-figures");
    let db = sandbox.text("data");
    ok(&["put", "--db", &db, "ada", "1815"]);
    for command in ["stats", "compact", "stats"] {
        let text = ok(&[command, "--db", &db]);
        if command == "compact" {
            continue;
        }
        let stats: serde_json::Value = serde_json::from_str(&ok(&["stats", "--db", &db, "--json"])).unwrap();
        let of = |name: &str| stats["memory"][name].as_u64().unwrap();
        assert_eq!(stats["memtable_bytes"], of("memtable_bytes") + of("immutable_memtable_bytes"), "{stats}, {text}");
        let text = ok(&["stats", "--db", &db, "--prometheus"]);
        let figure = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name}: {text}")).parse::<u64>().unwrap()
        };
        let parts = figure("esker_memory_memtable_bytes") + figure("esker_memory_immutable_memtable_bytes");
        assert_eq!(figure("esker_memtable_bytes"), parts, "{text}");
    }
}

#[test]
fn watching_a_directory_shows_what_a_writer_beside_it_does() {
    let sandbox = Sandbox::new("watch");
    let path = sandbox.text("data");
    let db = Db::open(&path, Options::default()).unwrap();
    let names = db.keyspace("names", Default::default()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let text = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0u64.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                // At the pace of the device.
                names.put_with(number.to_be_bytes(), "1815", &WriteOptions::new().sync(true)).unwrap();
            }
        });
        let text = ok(&["stats", "--db", &path, "--watch", "0.3", "--times", "3"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        text
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("writes/s=0 ") && lines[0].ends_with("runs[names]=0"), "{text}");
    assert!(!lines[1].starts_with("writes/s=0 ") && !lines[2].starts_with("writes/s=0 "), "{text}");
    // What only the writer knows is unknown.
    let unknown = " cache_hit_rate=- stalls/s=- stalled=- ";
    assert!(lines.iter().all(|line| line.contains(unknown)), "{text}");
}

/// Seen: stalls and cache hits were never shown of a directory.
#[test]
fn watching_a_directory_shows_the_figures_that_the_writer_leaves_there() {
    let sandbox = Sandbox::new("watch-left");
    let path = sandbox.text("data");
    let db = Db::open(&path, Options::default()).unwrap();
    let names = db.keyspace("names", Default::default()).unwrap();
    names.put("ada", "1815").unwrap();
    db.flush().unwrap();
    let leave = || {
        let mut text = PrometheusText::new();
        db.record(&mut text);
        fs::write(sandbox.path("data/esker.prom.new"), text.to_string()).unwrap();
        fs::rename(sandbox.path("data/esker.prom.new"), sandbox.path("data/esker.prom")).unwrap();
    };
    leave();
    let shown = ok(&["stats", "--db", &path, "--watch", "0.05", "--times", "2"]);
    for part in ["stalls/s=0.0", "cache_hit_rate=-", "refused/s=0.0", "stalled=0", "runs[names]=1"] {
        assert!(shown.lines().all(|line| line.contains(part)), "{part}: {shown}");
    }
    // What a program has left that ended long ago tells nothing.
    let file = fs::File::options().write(true).open(sandbox.path("data/esker.prom")).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    let shown = ok(&["stats", "--db", &path, "--watch", "0.05", "--times", "1"]);
    assert!(shown.contains("stalls/s=- ") && shown.contains("runs[names]=1"), "{shown}");
    // The file is none of the database's, and in nobody's way.
    leave();
    drop((names, db));
    let db = Db::open(&path, Options::default()).unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    assert!(ok(&["verify", "--db", &path]).starts_with("no damage"));
}

#[test]
fn watching_a_file_shows_the_stalls_and_the_cache_of_the_program_that_writes_it() {
    let sandbox = Sandbox::new("watch-file");
    let db = Db::open(sandbox.text("data"), Options::default()).unwrap();
    db.keyspace("names", Default::default()).unwrap();
    let mut text = PrometheusText::new();
    db.record(&mut text);
    let file = sandbox.path("esker.prom");
    fs::write(&file, text.to_string()).unwrap();
    let shown = ok(&["stats", "--watch", "0.05", "--times", "2", "--from", file.to_str().unwrap()]);
    for part in ["stalls/s=0.0", "cache_hit_rate=-", "refused/s=0.0", "stalled=0", "runs[names]=0"] {
        assert!(shown.lines().all(|line| line.contains(part)), "{part}: {shown}");
    }
    fs::write(&file, "half a li").unwrap();
    let told = fails(1, &["stats", "--watch", "--times", "1", "--from", file.to_str().unwrap()]);
    assert!(told.contains("line 1 is no sample") && told.contains("PrometheusText"), "{told}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    for arguments in [
        &["stats", "--db", "d", "--watch", "--json"][..],
        &["stats", "--db", "d", "--prometheus", "--json"],
        &["stats", "--db", "d", "--watch", "0"],
        &["stats", "--db", "d", "--watch", "soon"],
        &["stats", "--db", "d", "--from", "f"],
        &["stats", "--db", "d", "--times", "2"],
        &["stats"],
    ] {
        fails(2, arguments);
    }
}
