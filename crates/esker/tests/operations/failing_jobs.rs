//! A job that fails again and again keeps no other one from being done, least of all one that makes
//! room.

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::merge::StringAppend;
use esker::{Db, KeyspaceOptions, ManualClock, Options, Ttl};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that no compression makes smaller.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = esker::internals::Random::new(seed);
    (0..bytes).map(|_| random.next() as u8).collect()
}

fn ending(env: &MemEnv, ending: &str) -> Vec<String> {
    files(env).into_keys().filter(|name| name.ends_with(ending)).collect()
}

fn used(env: &MemEnv) -> u64 {
    env.files().iter().map(|path| env.file_bytes(path).unwrap().len() as u64).sum()
}

/// Several tables of keyspace `a`, which are due for a compaction once there are a few more.
fn with_runs(db: &Db, runs: u32) {
    let a = keyspace(db, "a");
    for run in 0..runs {
        for key in 0..50u32 {
            a.put(key.to_be_bytes(), noise(u64::from(run * 50 + key), 40)).unwrap();
        }
        let _ = db.flush();
        let _ = db.wait_idle();
    }
}

/// Seen: their files stayed, open, until another compaction. Trigger: readers held them when they
/// were dropped, and the compaction that is due reads a damaged table. Cost: memory, descriptors
/// and space, without bound.
#[test]
fn tables_of_dropped_keyspaces_go_beside_a_compaction_that_fails() {
    let env = MemEnv::new();
    let db = open(&env);
    with_runs(&db, 1);
    let [table] = &ending(&env, ".table")[..] else { panic!("one table") };
    assert!(env.flip_bit(&Path::new(DIRECTORY).join(table), 30, 1));
    let before = (0..40).find(|_| {
        with_runs(&db, 1);
        db.health().problem.is_some()
    });
    assert!(before.is_some(), "no compaction has read it: {:?}", db.health());
    let before = ending(&env, ".table").len();
    let mut readers = Vec::new();
    for _ in 0..20 {
        let t = keyspace(&db, "t");
        t.put("key", "value").unwrap();
        let _ = db.flush();
        readers.push((db.snapshot(), t.iter()));
        let _ = db.drop_keyspace("t");
    }
    drop(readers);
    let _ = db.wait_idle();
    assert_eq!(ending(&env, ".table").len(), before);
}

/// Seen: expired tables stayed on a full disk. Trigger: no room for the next log segment, which the
/// background thread prepares before all else. Cost: the disk stayed full.
#[test]
fn what_has_expired_goes_where_there_is_no_room_for_a_log_segment() {
    let env = MemEnv::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = Options::default().env(Arc::new(env.clone())).clock(clock.clone());
    let options = options.background_threads(1).wal_segment_bytes(64 << 10);
    let db = Db::open(DIRECTORY, options).unwrap();
    let settings = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(Duration::from_secs(100)) });
    let names = db.keyspace("names", settings).unwrap();
    (0..300).for_each(|key: u64| names.put(key.to_be_bytes(), noise(key, 1000)).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(!ending(&env, ".table").is_empty());
    env.set_capacity(Some(used(&env) + (8 << 10)));
    (0..10).for_each(|key: u64| names.put(key.to_be_bytes(), noise(key, 1000)).unwrap());
    clock.advance(Duration::from_secs(1000));
    // It ends at once where an earlier round has failed.
    wait_until("expired tables go", || {
        let _ = db.wait_idle();
        ending(&env, ".table").is_empty()
    });
}

/// Seen: the tables of another keyspace were not merged. Trigger: a compaction for which there is
/// no room, in a keyspace whose name comes before. Cost: reads slower and slower, and the room that
/// the other one would have made.
#[test]
fn a_compaction_that_finds_no_room_keeps_no_other_from_being_done() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env).target_file_bytes(1 << 20)).unwrap();
    let small = keyspace(&db, "b");
    for number in 0..10 {
        small.put("key", noise(number, 40)).unwrap();
        for key in 0..50 {
            keyspace(&db, "a").put(format!("{key:02}{number}"), noise(number * 50 + key, 800)).unwrap();
        }
        db.flush().unwrap();
    }
    let before = small.runs().len();
    // The log gives its space back first.
    let tables = files(&env).into_iter().filter(|(name, _)| name.ends_with(".table"));
    let bytes: u64 = tables.map(|(_, bytes)| bytes.len() as u64).sum();
    env.set_capacity(Some(bytes + (100 << 10)));
    let failed = (0..3).filter(|_| db.wait_idle().is_err()).count();
    assert!(before == 10 && failed == 3, "{before} runs, {failed} failed");
    assert_eq!(small.runs().len(), 1);
}

/// Seen: a database that had been closed did not open on a full disk. Trigger: operands in a log of
/// many segments make large values when they are merged. Cost: no deletes, which would make room.
#[test]
fn merges_that_become_large_values_keep_no_database_from_opening_on_a_full_disk() {
    let env = MemEnv::new();
    let open = || Db::open(DIRECTORY, simulated(&env).write_buffer_bytes(4 << 20).min_blob_size(1000)).unwrap();
    let sums = |db: &Db| db.keyspace("sums", KeyspaceOptions::default().merge_operator(StringAppend::new(""))).unwrap();
    for life in 0..3u64 {
        let db = open();
        sums(&db).merge(life.to_be_bytes(), noise(life, 40_000)).unwrap();
        db.close().unwrap();
    }
    let segments = ending(&env, ".wal").len();
    assert!(segments >= 5, "{segments} segments of a log");
    env.set_capacity(Some(used(&env) + (70 << 10)));
    for _ in 0..3 {
        let db = open();
        for life in 0..3u64 {
            assert_eq!(sums(&db).get(life.to_be_bytes()).unwrap(), Some(noise(life, 40_000).into()));
        }
        db.close().unwrap();
    }
    assert_eq!(ending(&env, ".blob"), Vec::<String>::new());
}
