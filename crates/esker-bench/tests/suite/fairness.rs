//! Every rule of comparison, broken on purpose.

#![allow(clippy::unwrap_used)]

use esker_bench::record::{Host, Record, Verification};
use esker_bench::sweep::fairness::{Violation, violations};
use esker_bench::sweep::grid::{Cell, Finished};
use esker_bench::sweep::task::{Step, Task};
use esker_engines::{Compression, Durability, EngineOptions};

const ENGINES: [&str; 3] = ["esker", "leveldb", "rocksdb"];

fn setting(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

fn record(engine: &str) -> Record {
    Record {
        engine: engine.into(),
        benchmark: "fillrandom".into(),
        row: "fillrandom".into(),
        ops: 1000,
        durability: Some(Durability::OperatingSystem),
        options: EngineOptions { cache_bytes: Some(8 << 20), ..EngineOptions::default() },
        settings: vec![
            setting("memory", "2 x 4194304 write buffer + 8388608 block cache"),
            setting("compression", "lz4"),
        ],
        verification: Some(verification("aa")),
        ..Record::default()
    }
}

fn verification(hash: &str) -> Verification {
    Verification { entries: 632, content_hash: hash.into(), sampled: 632, mismatches: 0 }
}

fn finished(engine: &str) -> Finished {
    let task = Task {
        engine: engine.into(),
        repetition: 1,
        flags: Default::default(),
        steps: vec![Step::new("fillrandom", Some("fillrandom"))],
        verify: true,
        ..Task::default()
    };
    let cell = Cell {
        experiment: "baseline".into(),
        engine: engine.into(),
        variant: String::new(),
        variables: [("num".to_string(), "1000".to_string())].into(),
        repetition: 1,
        tasks: vec![task],
    };
    Finished {
        schema: 1,
        cell,
        records: vec![record(engine)],
        failure: None,
        seconds: 1.0,
        host: Host::default(),
        finished_unix_s: 0,
    }
}

/// Three fair cells, of which the second is changed.
fn broken(change: impl Fn(&mut Finished)) -> Vec<Violation> {
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    change(&mut all[1]);
    violations(&all)
}

/// The change breaks one rule, in the second cell only, and the sentence says so.
#[track_caller]
fn breaks(words: &str, change: impl Fn(&mut Finished)) {
    let found = broken(change);
    assert_eq!(found.len(), 1, "{found:?}");
    let violation = &found[0];
    assert_eq!((violation.engine.as_str(), violation.row.as_str()), ("leveldb", "fillrandom"));
    assert!(violation.reason.contains(words), "{}", violation.reason);
    assert!(violation.concerns(&finished("leveldb").cell, "fillrandom"));
    assert!(!violation.concerns(&finished("esker").cell, "fillrandom"));
    assert!(!violation.concerns(&finished("leveldb").cell, "readseq"));
}

#[test]
fn fair_rows_are_left_alone() {
    assert_eq!(broken(|_| {}), []);
    assert_eq!(violations(&[]), []);
    // One engine alone is compared with nobody.
    assert_eq!(violations(&[finished("esker")]), []);
    // What was skipped was not measured.
    assert_eq!(broken(|cell| cell.records[0] = Record { skipped: Some("no".into()), ..record("leveldb") }), []);
    // Other cells are other questions.
    assert_eq!(broken(|cell| (cell.cell.experiment, cell.records[0].ops) = ("sync".into(), 5)), []);
    assert_eq!(broken(|cell| (cell.cell.repetition, cell.records[0].ops) = (2, 5)), []);
}

#[test]
fn another_durability() {
    breaks("its durability is `process` where `operating_system`", |cell| {
        cell.records[0].durability = Some(Durability::Process);
    });
    // Safer than requested is told too: the row costs more than it would.
    breaks("its durability is `device`", |cell| cell.records[0].durability = Some(Durability::Device));
    // Nobody has what was requested, but all the same: that is fair.
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    all.iter_mut().for_each(|cell| cell.records[0].options.disable_wal = true);
    assert_eq!(violations(&all), []);
}

#[test]
fn more_memory() {
    breaks("it has 68.0 MiB of buffer and cache, and esker has 12.0 MiB", |cell| {
        cell.records[0].settings[0] = setting("memory", "4194304 write buffer + 64 MiB (default) block cache");
    });
}

#[test]
fn mapped_memory_beside_the_budget() {
    breaks("it works beside its budget with mapped memory (file mapped up to 268435456)", |cell| {
        cell.records[0].settings[0] = setting("memory", "12582912 page cache + file mapped up to 268435456");
    });
    let lmdb = "page cache of the system, no limit of its own";
    breaks("it works beside its budget with mapped memory (page cache of the system", |cell| {
        cell.records[0].settings[0] = setting("memory", lmdb);
    });
    // Where nobody has another memory, that is fair.
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    all.iter_mut().for_each(|cell| cell.records[0].settings[0] = setting("memory", lmdb));
    assert_eq!(violations(&all), []);
}

#[test]
fn mapped_tables() {
    for (name, value) in [("read_mode", "auto"), ("mmap_read", "first 1000 files (fixed)")] {
        breaks("it works beside its budget with mapped memory (its tables)", |cell| {
            cell.records[0].settings.push(setting(name, value));
        });
    }
    assert_eq!(broken(|cell| cell.records[0].settings.push(setting("mmap_read", "0"))), []);
}

#[test]
fn far_more_memory_than_buffer_and_cache() {
    // Buffer and cache have 12 MiB, and a process has some in any case.
    assert_eq!(broken(|cell| cell.records[0].rss_peak_bytes = (64 + 2 * 12) << 20), []);
    breaks("its resident memory reached more than 4 times its buffer and cache", |cell| {
        cell.records[0].rss_peak_bytes = (64 + 7 * 12) << 20;
    });
}

#[test]
fn a_process_that_is_killed_ends_anywhere() {
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    for (cell, ops) in all.iter_mut().zip([1000, 1024, 1050]) {
        cell.cell.tasks[0].steps = vec![Step::new("killedfill", Some("fillrandom"))];
        let record = &mut cell.records[0];
        (record.benchmark, record.ops) = ("killedfill".into(), ops);
        record.verification = Some(verification(&ops.to_string()));
    }
    assert_eq!(violations(&all), []);
}

#[test]
fn compression_of_some() {
    breaks("its data are not compressed, those of others are", |cell| {
        cell.records[0].settings[1] = setting("compression", "none");
    });
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    for cell in &mut all {
        cell.records[0].options.compression = Compression::None;
        cell.records[0].settings[1] = setting("compression", "none");
    }
    all[2].records[0].settings[1] = setting("compression", "snappy");
    let found = violations(&all);
    assert!(found.len() == 1 && found[0].reason.contains("its data are compressed, those of others not"), "{found:?}");
    // An engine without compression cannot turn it on.
    let mut lmdb = finished("lmdb");
    lmdb.records[0].settings[1] = setting("compression", "none");
    assert_eq!(violations(&[finished("esker"), lmdb]), []);
}

#[test]
fn other_content() {
    breaks("its database holds other entries, unlike that of esker, rocksdb", |cell| {
        cell.records[0].verification = Some(verification("bb"));
    });
    // With two that differ, nobody knows which is right.
    let mut two = [finished("esker"), finished("leveldb")];
    two[1].records[0].verification = Some(verification("bb"));
    assert_eq!(violations(&two).len(), 2);
    // It is about every row of the cell, whichever the look is kept with.
    let found = broken(|cell| {
        cell.records.push(Record { row: "readrandom".into(), ..record("leveldb") });
        cell.records[0].verification = None;
        cell.records[1].verification = Some(verification("bb"));
    });
    let rows: Vec<&str> = found.iter().map(|violation| violation.row.as_str()).collect();
    assert_eq!(rows, ["fillrandom"], "nobody else has a row readrandom");
}

#[test]
fn content_that_chance_decides() {
    let threads = |count: u32, benchmark: &'static str| {
        move |cell: &mut Finished| {
            cell.cell.tasks[0].steps = vec![Step { threads: count, ..Step::new(benchmark, Some("fillrandom")) }];
            cell.cell.tasks[0].flags.insert("merge_operator".into(), "uint64add".into());
            if cell.cell.engine == "leveldb" {
                cell.records[0].verification = Some(verification("bb"));
            }
        }
    };
    let with = |change: &dyn Fn(&mut Finished)| {
        let mut all: Vec<Finished> = ENGINES.map(finished).into();
        all.iter_mut().for_each(change);
        violations(&all)
    };
    // Threads that put beside each other leave the values to chance, but not the number of keys.
    assert_eq!(with(&threads(2, "fillrandom")), []);
    let fewer = |cell: &mut Finished| {
        threads(2, "fillrandom")(cell);
        if cell.cell.engine == "leveldb" {
            cell.records[0].verification.as_mut().unwrap().entries = 631;
        }
    };
    let found = with(&fewer);
    assert!(found.len() == 1 && found[0].reason.contains("holds 631 entries"), "{found:?}");
    // Counters do not depend on the order of merges.
    assert_eq!(with(&threads(2, "mergerandom")).len(), 1);
    assert_eq!(with(&threads(2, "deleterandom")), []);
    assert_eq!(with(&threads(1, "readwhilewriting")), []);
}

#[test]
fn lookups_that_contradict() {
    breaks("3 of 632 sampled entries", |cell| {
        cell.records[0].verification.as_mut().unwrap().mismatches = 3;
    });
    let mut alone = finished("esker");
    alone.records[0].verification.as_mut().unwrap().mismatches = 1;
    let found = violations(&[alone]);
    assert!(found.len() == 1 && found[0].contradicts_itself, "{found:?}");
    assert!(!broken(|cell| cell.records[0].ops = 999)[0].contradicts_itself);
}

#[test]
fn fewer_operations() {
    breaks("it did 999 operations where another did 1000", |cell| cell.records[0].ops = 999);
    breaks("it ended early, after 7 operations", |cell| {
        cell.records[0].ops = 7;
        cell.records[0].message = "(ended early after 0.5 s)".into();
        // It holds less then, which is no second violation.
        cell.records[0].verification = Some(verification("bb"));
    });
    breaks("its run failed: verifymerges: 1 missing", |cell| {
        cell.failure = Some("verifymerges: 1 missing".into());
    });
}

/// A read behind the load.
fn reading(cell: &mut Finished, found: u64) {
    cell.cell.tasks[0].steps.push(Step::new("readrandom", Some("readrandom")));
    let mut read = Record { benchmark: "readrandom".into(), row: "readrandom".into(), ..record(&cell.cell.engine) };
    (read.threads, read.found, read.durability) = (1, Some(found), None);
    read.flags.insert("num".into(), "1000".into());
    cell.records.push(read);
}

/// What breaks a rule where the second of three engines finds fewer keys, once all three are
/// changed.
fn finding_fewer(change: impl Fn(&mut Finished)) -> Vec<Violation> {
    let mut all: Vec<Finished> = ENGINES.map(finished).into();
    for (cell, found) in all.iter_mut().zip([632, 631, 632]) {
        reading(cell, found);
        change(cell);
    }
    violations(&all)
}

#[test]
fn lookups_that_find_another_number_of_keys() {
    let broken = finding_fewer(|_| {});
    let told: Vec<_> = broken.iter().map(|one| (one.engine.as_str(), one.row.as_str(), one.reason.as_str())).collect();
    assert_eq!(told, [("leveldb", "readrandom", "it found 631 keys, unlike esker, rocksdb")]);
    // With two that differ, nobody knows which is right.
    let mut two = [finished("esker"), finished("leveldb")];
    two.iter_mut().zip([632, 631]).for_each(|(cell, found)| reading(cell, found));
    assert_eq!(violations(&two).len(), 2);
    // Threads that put beside each other leave the keys as they are.
    let load = |threads: u32, benchmark: &'static str| Step { threads, ..Step::new(benchmark, Some("fillrandom")) };
    assert_eq!(finding_fewer(|cell| cell.cell.tasks[0].steps[0] = load(2, "fillrandom")).len(), 1);
    // What a limit of time has not ended is as without it.
    let limited = |row: Option<&str>| Step { most_seconds: 5.0, ..Step::new("fillrandom", row) };
    assert_eq!(finding_fewer(|cell| cell.cell.tasks[0].steps[0] = limited(Some("fillrandom"))).len(), 1);
}

#[test]
fn found_keys_that_are_left_to_chance() {
    let first = |cell: &mut Finished, step: Step| cell.cell.tasks[0].steps[0] = step;
    let load = |threads: u32, benchmark: &'static str| Step { threads, ..Step::new(benchmark, Some("fillrandom")) };
    for benchmark in ["readwhilewriting", "ttlchurn", "crash"] {
        assert_eq!(finding_fewer(|cell| first(cell, load(1, benchmark))), [], "{benchmark}");
    }
    assert_eq!(finding_fewer(|cell| first(cell, load(2, "deleterandom"))), []);
    assert_eq!(finding_fewer(|cell| first(cell, Step { most_seconds: 5.0, ..Step::new("fillrandom", None) })), []);
    assert_eq!(finding_fewer(|cell| cell.cell.tasks[0].steps.clear()), []);
    assert_eq!(finding_fewer(|cell| cell.records[1].threads = 2), []);
    assert_eq!(finding_fewer(|cell| cell.records[1].benchmark = "updaterandom".into()), []);
    // Other flags ask for other keys, and an early end has a rule of its own.
    let other = |cell: &mut Finished| {
        let seed = if cell.cell.engine == "leveldb" { "7" } else { "8" };
        cell.records[1].flags.insert("seed".into(), seed.into());
    };
    assert_eq!(finding_fewer(other), []);
    let early = |cell: &mut Finished| {
        if cell.cell.engine == "leveldb" {
            cell.records[1].message = "(ended early after 0.5 s)".into();
        }
    };
    let broken = finding_fewer(early);
    assert!(broken.len() == 1 && broken[0].reason.contains("it ended early"), "{broken:?}");
}

#[test]
fn rows_that_are_done_twice_have_other_keys_each_time() {
    let twice = |found: [[u64; 2]; 3]| {
        let mut all: Vec<Finished> = ENGINES.map(finished).into();
        for (cell, found) in all.iter_mut().zip(found) {
            found.into_iter().for_each(|found| reading(cell, found));
        }
        violations(&all)
    };
    assert_eq!(twice([[632, 640], [632, 640], [632, 640]]), []);
    let broken = twice([[632, 640], [632, 632], [632, 640]]);
    assert!(broken.len() == 1 && broken[0].reason == "it found 632 keys, unlike esker, rocksdb", "{broken:?}");
}

/// A cell of one process for each list of steps, each with its own number of keys, whose lookups
/// found so many.
fn playing(processes: &[(&str, &[&str])], found: &[u64]) -> Finished {
    let mut cell = finished("esker");
    let task = cell.cell.tasks.remove(0);
    cell.records.clear();
    let mut found = found.iter();
    for (number, (num, steps)) in processes.iter().enumerate() {
        let flags = [("num", *num), ("use_existing_db", if number == 0 { "0" } else { "1" })];
        let flags = flags.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let steps: Vec<Step> = steps.iter().map(|name| Step::new(name, Some(name))).collect();
        for step in &steps {
            let num = num.parse().unwrap();
            let mut row = Record { benchmark: step.benchmark.clone(), row: step.benchmark.clone(), ..record("esker") };
            (row.threads, row.num, row.ops) = (1, num, num);
            row.found = if step.benchmark == "readrandom" { found.next().copied() } else { None };
            cell.records.push(row);
        }
        cell.cell.tasks.push(Task { flags, steps, keep: true, ..task.clone() });
    }
    cell
}

#[test]
fn lookups_that_find_another_number_than_the_key_sequence_says() {
    let told = |processes: &[(&str, &[&str])], found: &[u64]| -> Vec<String> {
        violations(&[playing(processes, found)]).into_iter().map(|violation| violation.reason).collect()
    };
    let one_process: [(&str, &[&str]); 1] = [("10000", &["fillrandom", "readrandom"])];
    assert_eq!(told(&one_process, &[6250]), [""; 0]);
    let wrong = violations(&[playing(&one_process, &[6249])]);
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong[0].reason, "it found 6249 keys where the key sequence has it find 6250");
    // Another process has the same numbers again, and one that looks at a fifth of the keys finds
    // more than chance would.
    assert_eq!(told(&[("100000", &["fillrandom"]), ("100000", &["readrandom"])], &[100_000]), [""; 0]);
    assert_eq!(told(&[("100000", &["fillrandom"]), ("20000", &["readrandom"])], &[14_047]), [""; 0]);
    assert_eq!(told(&[("100000", &["fillrandom"]), ("20000", &["readrandom"])], &[14_048]).len(), 1);
    // The default list of db_bench, and what neither adds nor looks up a random key.
    let list: [(&str, &[&str]); 1] = [(
        "10000",
        &[
            "fillseq",
            "fillsync",
            "fillrandom",
            "overwrite",
            "readrandom",
            "readrandom",
            "readseq",
            "readreverse",
            "compact",
            "readrandom",
        ],
    )];
    let mut default = playing(&list, &[8609, 8665, 8634]);
    default.records[1].ops = 10;
    assert_eq!(violations(&[default]), []);
    // What was deleted is not played, and nor is what several threads wrote.
    assert_eq!(told(&[("10000", &["fillrandom", "deleterandom", "readrandom"])], &[1]), [""; 0]);
    let mut threads = playing(&one_process, &[1]);
    threads.cell.tasks[0].steps[0].threads = 2;
    assert_eq!(violations(&[threads]), []);
}

#[test]
fn another_machine() {
    breaks("it was measured on another machine than esker", |cell| cell.records[0].host.cores = 64);
}
