//! A job that fails again and again keeps no other one from being done, least of all one that makes
//! room.

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::merge::StringAppend;
use esker::{CompactionFilter, Db, Decision, KeyspaceOptions, ManualClock, Options, Ttl, WriteOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
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

/// Seen: a compaction never ended. Trigger: two keyspaces whose compactions had found no room, and
/// then there was some for that of the one whose name comes behind.
#[test]
fn of_two_compactions_that_found_no_room_each_is_tried_again() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env).target_file_bytes(1 << 20)).unwrap();
    let small = keyspace(&db, "b");
    for number in 0..10 {
        for key in 0..50 {
            keyspace(&db, "a").put(format!("{key:02}{number}"), noise(number * 50 + key, 800)).unwrap();
            small.put(format!("{key:02}"), noise(number * 50 + key, 3000)).unwrap();
        }
        db.flush().unwrap();
    }
    let tables = files(&env).into_iter().filter(|(name, _)| name.ends_with(".table"));
    let bytes: u64 = tables.map(|(_, bytes)| bytes.len() as u64).sum();
    env.set_capacity(Some(bytes + (100 << 10)));
    (0..4).for_each(|_| assert!(db.wait_idle().is_err()));
    assert_eq!(small.runs().len(), 10);
    // One run of it takes 150 KB, and one of the other 400.
    env.set_capacity(Some(bytes + (250 << 10)));
    (0..2).for_each(|_| drop(db.wait_idle()));
    assert_eq!(small.runs().len(), 1);
}

type Decide = fn(u32) -> Decision;

/// Decides by the number of the key, and waits at large ones until it may go on.
struct Gate {
    decide: Decide,
    met: Arc<AtomicU64>,
    open_until: Arc<AtomicU64>,
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }
    fn decide(&self, key: &[u8], _: &[u8]) -> Decision {
        let key = u32::from_be_bytes(key.try_into().unwrap());
        self.met.fetch_max(key.into(), SeqCst);
        wait_until("the gate is opened", || u64::from(key) < self.open_until.load(SeqCst));
        (self.decide)(key)
    }
}

/// Opens the gate when it goes, so that a test that fails does not wait for a thread behind it.
struct Opened<'a>(&'a AtomicU64);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.store(u64::MAX, SeqCst);
    }
}

/// Values of a memtable for whose table there is no room, and of one for which there is some that
/// is held back.
const MANY: u64 = 1300;
const FEW: u64 = 80;

/// A database with 6000 entries in keyspace `a` that its compaction meets at a gate, and then in
/// keyspace `b` a memtable of so many values that is flushed on a full disk.
fn compacted_on_a_full_disk(threads: usize, gate_at: u64, decide: fn(u32) -> Decision, values: u64) -> (MemEnv, Db) {
    let env = MemEnv::new();
    let options = Options::default().env(Arc::new(env.clone())).background_threads(threads);
    let options = options.target_file_bytes(32 << 10).write_buffer_bytes(1 << 20);
    let db = Db::open(DIRECTORY, options).unwrap();
    let (met, open_until) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(gate_at)));
    let gate = Gate { decide, met: Arc::clone(&met), open_until: Arc::clone(&open_until) };
    let a = db.keyspace("a", KeyspaceOptions::default().compaction_filter(gate)).unwrap();
    let b = keyspace(&db, "b");
    (0..6000u32).for_each(|key| a.put(key.to_be_bytes(), noise(key.into(), 20)).unwrap());
    db.flush().unwrap();
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| a.compact());
        let _opened = Opened(&open_until);
        wait_until("the compaction has begun", || met.load(SeqCst) >= gate_at);
        env.set_capacity(Some(used(&env) + 500 * values));
        let unlogged = WriteOptions::new().disable_wal(true);
        (0..values).for_each(|key| b.put_with(key.to_be_bytes(), noise(key, 1000), &unlogged).unwrap());
        // The flush is tried at a yield point.
        open_until.fetch_max(5000, SeqCst);
        if values == FEW {
            db.flush().unwrap();
        } else {
            wait_until("a flush has failed", || db.health().problem.is_some());
            // A caller is told at once, and does not wait for the end of the compaction.
            let error = db.flush().unwrap_err();
            assert!(error.is_disk_full(), "{error}");
        }
        env.set_capacity(None);
        open_until.store(u64::MAX, SeqCst);
        match compacting.join().unwrap() {
            // One thread may have written while the flush had taken all room.
            Err(error) if error.is_disk_full() && threads > 1 => wait_until("it is done", || a.compact().is_ok()),
            other => other.unwrap(),
        }
    });
    db.wait_idle().unwrap();
    assert_eq!((db.health().problem, b.iter().count()), (None, values as usize));
    (env, db)
}

/// Seen: a long compaction was given up. Trigger: a flush inside it found no room. Cost: what it
/// had done, each time, and the room that it would have made.
#[test]
fn a_compaction_goes_on_where_a_flush_inside_it_finds_no_room() {
    let decisions: [(Decide, usize); 2] = [(|_| Decision::Remove, 0), (|_| Decision::Keep, 6000)];
    for (decide, left) in decisions {
        let (env, db) = compacted_on_a_full_disk(1, 100, decide, MANY);
        assert_eq!((keyspace(&db, "a").iter().count(), db.stats().compactions), (left, 1));
        drop(db);
        assert_eq!(keyspace(&open(&env), "a").iter().count(), left);
    }
}

/// Seen: tables of a part of a compaction that had ended were removed, and then named by the
/// manifest. Trigger: a flush that finds no room, and then what is held back, while the other part
/// has written nothing. Cost: the entries, from the next open on.
#[test]
fn a_flush_that_finds_no_room_removes_no_tables_of_the_compaction_around_it() {
    let decide = |key| if key < 2000 { Decision::Keep } else { Decision::Remove };
    for values in [FEW, MANY] {
        let (env, db) = compacted_on_a_full_disk(2, 4500, decide, values);
        assert_eq!(keyspace(&db, "a").iter().count(), 2000);
        drop(db);
        let db = open(&env);
        assert_eq!(keyspace(&db, "a").iter().filter(Result::is_ok).count(), 2000);
        db.verify().unwrap();
    }
}

/// Seen: deletes that make room were not flushed. Trigger: older writes of another keyspace for
/// whose table there is no room. Cost: the disk stayed full, also for the next open.
#[test]
fn a_flush_that_finds_no_room_keeps_no_other_from_being_done() {
    let env = MemEnv::new();
    let open = || Db::open(DIRECTORY, simulated(&env).write_buffer_bytes(4 << 20).wal_segment_bytes(4 << 20)).unwrap();
    let db = open();
    let b = keyspace(&db, "b");
    (0..1000).for_each(|key: u64| b.put(key.to_be_bytes(), noise(key, 1000)).unwrap());
    db.flush().unwrap();
    let unlogged = WriteOptions::new().disable_wal(true);
    (0..1000u64).for_each(|key| keyspace(&db, "a").put_with(key.to_be_bytes(), noise(key, 1000), &unlogged).unwrap());
    env.set_capacity(Some(used(&env) + (8 << 10)));
    b.delete_range(..).unwrap();
    let error = db.flush().unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    let _ = db.wait_idle();
    assert_eq!(b.runs().iter().map(|run| run.bytes).filter(|&bytes| bytes > 100_000).count(), 0);
    db.flush().unwrap();
    assert_eq!((keyspace(&db, "a").iter().count(), b.iter().count()), (1000, 0));
}

/// Seen: what is held back for a small table was gone, and no table written. Trigger: a background
/// thread, and a memtable of more than 1024 entries beside a log that wants its next segment. Cost:
/// no deletes any more, nor an open.
#[test]
fn what_is_held_back_for_a_table_goes_to_no_log_segment() {
    let env = MemEnv::new();
    let options = || Options::default().env(Arc::new(env.clone())).background_threads(1);
    let db = Db::open(DIRECTORY, options()).unwrap();
    let a = keyspace(&db, "a");
    (0..2000).for_each(|key: u64| a.put(key.to_be_bytes(), noise(key, 500)).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    env.set_capacity(Some(used(&env) + (8 << 10)));
    // Together more than an eighth of a segment, in memtables that take little.
    (0..1200u64).for_each(|key| a.delete(key.to_be_bytes()).unwrap());
    (0..100u64).for_each(|key| keyspace(&db, "b").put(key.to_be_bytes(), noise(key, 1000)).unwrap());
    db.flush().unwrap();
    assert_eq!(a.iter().count(), 800);
}

/// Seen: the error of a failure that was over. Trigger: an attempt before the call had failed.
#[test]
fn waiting_tells_of_the_work_that_it_waits_for() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, Options::default().env(Arc::new(env.clone())).background_threads(1)).unwrap();
    let a = keyspace(&db, "a");
    for _ in 0..3 {
        (0..2000).for_each(|key: u64| a.put(key.to_be_bytes(), noise(key, 1000)).unwrap());
        env.set_capacity(Some(used(&env)));
        assert!(db.flush().is_err());
        a.put("key", "value").unwrap();
        assert!(db.wait_idle().is_err());
        env.set_capacity(None);
        db.wait_idle().unwrap();
    }
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
