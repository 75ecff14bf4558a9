//! A value reads the same wherever it lies.

use super::{Scratch, THRESHOLD, blob_files, keyspace, simulated, synced, value};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::StringAppend;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, WriteOptions};

const LENGTHS: [usize; 8] = [0, 24, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, 1000, 5000, 20_000];

fn check(k: &Keyspace, note: &str) {
    let expected: Vec<_> = LENGTHS.iter().map(|&bytes| (format!("{bytes:06}").into_bytes(), value(1, bytes))).collect();
    for (key, value) in &expected {
        assert_eq!(k.get(key).unwrap().as_deref(), Some(value.as_slice()), "{note}: {key:?}");
    }
    let pairs = |iter: esker::Iter| iter.map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
    assert!(pairs(k.iter()).eq(expected.iter().cloned()), "{note}: forward");
    let backward: Vec<_> = k.iter().rev().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    assert!(backward.iter().rev().eq(expected.iter()), "{note}: backward");
    // Back and forth over a large value.
    let mut cursor = k.cursor().unwrap();
    cursor.seek(format!("{:06}", 5000)).unwrap();
    for _ in 0..3 {
        assert_eq!(cursor.value(), value(1, 5000), "{note}");
        cursor.prev().unwrap();
        assert_eq!(cursor.value(), value(1, 1000), "{note}");
        cursor.next().unwrap();
    }
}

#[test]
fn the_threshold_changes_no_answer() {
    for threshold in [0, 1, THRESHOLD, usize::MAX] {
        let mem = MemEnv::default();
        let options = || simulated(mem.clone()).min_blob_size(threshold);
        let db = Db::open("/db", options()).unwrap();
        let k = keyspace(&db);
        for bytes in LENGTHS {
            k.put(format!("{bytes:06}"), value(2, bytes * 2)).unwrap();
            k.put(format!("{bytes:06}"), value(1, bytes)).unwrap();
        }
        assert_eq!(db.stats().blob_files > 0, threshold == 1 || threshold == THRESHOLD);
        check(&k, "in memory");
        db.flush().unwrap();
        check(&k, "in a table");
        db.compact().unwrap();
        check(&k, "merged");
        drop((k, db));
        let db = Db::open("/db", options()).unwrap();
        check(&keyspace(&db), "opened again");
        let report = db
            .verify_with(&mut |event| {
                assert!(!matches!(event, esker::VerifyEvent::Progress { done, total } if done > total), "{event:?}");
            })
            .unwrap();
        assert_eq!(report.large_values > 0, threshold == 1 || threshold == THRESHOLD);
        db.close().unwrap();
    }
}

#[test]
fn values_only_in_the_log_survive_close_kill_and_a_read_only_open() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    LENGTHS.iter().for_each(|&bytes| k.put(format!("{bytes:06}"), value(1, bytes)).unwrap());
    check(&keyspace(&Db::open("/db", simulated(mem.kill())).unwrap()), "killed");
    let reader = Db::open_read_only("/db", simulated(mem.clone())).unwrap();
    check(&reader.existing_keyspace("k").unwrap(), "read-only");
    assert!(matches!(reader.existing_keyspace("k").unwrap().put("x", value(1, 1000)), Err(Error::ReadOnly { .. })));
    drop(k);
    db.close().unwrap();
    let safe = mem.crash(&CrashMode::LoseAll, 0);
    for _ in 0..3 {
        let db = Db::open("/db", simulated(safe.clone())).unwrap();
        check(&keyspace(&db), "closed");
        db.close().unwrap();
    }
}

/// Trap: the file that a reader opened with a table has grown since, and what the log refers to
/// lies behind the end it knows.
#[test]
fn a_read_only_open_beside_a_writer_sees_values_behind_those_of_tables() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    k.put("a", value(1, 500)).unwrap();
    db.flush().unwrap();
    k.put("b", value(2, 500)).unwrap();
    assert_eq!(db.stats().blob_files, 1);
    let reader = Db::open_read_only("/db", simulated(mem.clone())).unwrap();
    let seen = reader.existing_keyspace("k").unwrap();
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&value(1, 500)[..]));
    assert_eq!(seen.get("b").unwrap().as_deref(), Some(&value(2, 500)[..]));
}

#[test]
fn batches_hold_their_values_until_they_are_committed() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    let mut batch = db.batch();
    for i in 0..50u64 {
        batch.put(&k, format!("{i:02}"), value(i, 3000)).unwrap();
    }
    let mut abandoned = db.batch();
    abandoned.put(&k, "never", value(99, 3000)).unwrap();
    drop(abandoned);
    // Nothing refers to the files yet but the batch.
    db.compact().unwrap();
    assert_eq!(k.iter().count(), 0);
    batch.commit_and_clear(&synced()).unwrap();
    batch.put(&k, "small", "x").unwrap();
    batch.commit().unwrap();
    let db = Db::open("/db", simulated(mem.crash(&CrashMode::LoseAll, 0))).unwrap();
    let k = keyspace(&db);
    for i in 0..50u64 {
        assert_eq!(k.get(format!("{i:02}")).unwrap().as_deref(), Some(&value(i, 3000)[..]));
    }
    assert!(k.get("never").unwrap().is_none());
}

#[test]
fn operands_meet_a_large_base_everywhere() {
    let append = || KeyspaceOptions::default().merge_operator(StringAppend::new(","));
    let with = |base: &[u8], tail: &[&str]| {
        let tails: Vec<u8> = tail.iter().flat_map(|t| [b",", t.as_bytes()].concat()).collect();
        [base, &tails].concat()
    };
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = db.keyspace("m", append()).unwrap();
    let base = value(3, 2000);
    let check = |expected: &[u8], note: &str| {
        assert_eq!(k.get("key").unwrap().as_deref(), Some(expected), "{note}");
        assert_eq!(k.iter().next().unwrap().unwrap().1.to_vec(), expected, "{note}: forward");
        assert_eq!(k.iter().next_back().unwrap().unwrap().1.to_vec(), expected, "{note}: backward");
    };
    k.put("key", &base).unwrap();
    k.merge("key", "a").unwrap();
    k.merge("key", "b").unwrap();
    check(&with(&base, &["a", "b"]), "in memory");
    let snapshot = db.snapshot();
    db.flush().unwrap();
    check(&with(&base, &["a", "b"]), "flushed");
    k.merge("key", "c").unwrap();
    db.flush().unwrap();
    check(&with(&base, &["a", "b", "c"]), "in two tables");
    assert_eq!(snapshot.get(&k, "key").unwrap().as_deref(), Some(&with(&base, &["a", "b"])[..]));
    drop(snapshot);
    db.compact().unwrap();
    check(&with(&base, &["a", "b", "c"]), "merged");
    let report = db.verify().unwrap();
    assert_eq!(report.large_values, 1, "what came out of the merge is large again");
    // A value that grows past the threshold only by merging.
    k.put("key", "s").unwrap();
    let tail: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    tail.iter().for_each(|tail| k.merge("key", tail).unwrap());
    let tail: Vec<&str> = tail.iter().map(String::as_str).collect();
    check(&with(b"s", &tail), "grown in memory");
    db.compact().unwrap();
    check(&with(b"s", &tail), "grown and merged");
    assert_eq!(db.verify().unwrap().large_values, 1);
    // Deleted and begun anew.
    k.put("key", &base).unwrap();
    k.delete("key").unwrap();
    k.merge("key", "z").unwrap();
    check(b"z", "anew");
    db.compact().unwrap();
    check(b"z", "anew, merged");
}

#[test]
fn a_checkpoint_reads_when_the_original_has_lost_its_files() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    for i in 0..20u64 {
        k.put(format!("{i:02}"), value(i, 3000)).unwrap();
    }
    db.checkpoint("/copy").unwrap();
    for i in 0..20u64 {
        k.put(format!("{i:02}"), value(i + 100, 3000)).unwrap();
    }
    db.compact().unwrap();
    let originals = blob_files(&mem, "/db");
    let copied = blob_files(&mem, "/copy");
    assert!(copied.iter().all(|path| !originals.iter().any(|other| other.file_name() == path.file_name())));
    let safe = mem.crash(&CrashMode::LoseAll, 0);
    let copy = Db::open("/copy", simulated(safe)).unwrap();
    assert_eq!(copy.verify().unwrap().large_values, 20);
    for i in 0..20u64 {
        assert_eq!(keyspace(&copy).get(format!("{i:02}")).unwrap().as_deref(), Some(&value(i, 3000)[..]));
        assert_eq!(k.get(format!("{i:02}")).unwrap().as_deref(), Some(&value(i + 100, 3000)[..]));
    }
}

/// On a real directory with the default threshold: 100 KB and 10 MB, with every way to write, from
/// several threads.
#[test]
fn hundred_kilobytes_and_ten_megabytes() {
    let scratch = Scratch::new("sizes");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db);
    let sizes = [100_000, 10_000_000];
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let k = &k;
            scope.spawn(move || {
                for round in 0..10 {
                    let options = WriteOptions::new().sync(round % 5 == 0).disable_wal(round == 1);
                    k.put_with(format!("{thread}-{round}"), value(thread + round, sizes[0]), &options).unwrap();
                }
                k.put(format!("{thread}-big"), value(thread, sizes[1])).unwrap();
            });
        }
    });
    let check = |db: &Db| {
        let k = keyspace(db);
        for thread in 0..2u64 {
            for round in 0..10 {
                let found = k.get(format!("{thread}-{round}")).unwrap();
                assert!(found.as_deref() == Some(&value(thread + round, sizes[0])[..]), "{thread}-{round}");
            }
            assert!(k.get(format!("{thread}-big")).unwrap().as_deref() == Some(&value(thread, sizes[1])[..]));
        }
        assert_eq!(k.iter().map(|pair| pair.unwrap().1.len()).sum::<usize>(), 20 * sizes[0] + 2 * sizes[1]);
    };
    check(&db);
    let stats = db.stats();
    assert!(stats.wal_bytes < 10_000, "the log holds references: {stats}");
    db.flush().unwrap();
    check(&db);
    assert!(db.stats().flush_bytes < 10_000);
    drop(k);
    db.close().unwrap();
    check(&Db::open(scratch.path(), Options::default()).unwrap());
}
