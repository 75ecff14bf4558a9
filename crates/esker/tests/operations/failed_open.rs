//! An open that fails leaves nothing that would pile up with the next attempts: a full disk gets no
//! fuller.

use crate::calling_env::Telling;
use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error, Options, WriteOptions};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bytes that take as much room when they are compressed.
fn noise(bytes: usize) -> Vec<u8> {
    noise_of(7, bytes)
}

fn noise_of(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// A database that was not closed: what is in the log is written to several tables at the next
/// open.
fn unclosed() -> MemEnv {
    let env = MemEnv::new();
    let db = open(&env);
    for name in ["a", "b", "c"] {
        let keyspace = keyspace(&db, name);
        keyspace.put("large", noise(100_000)).unwrap();
        for number in 0..300u32 {
            keyspace.put(number.to_be_bytes(), [7; 20]).unwrap();
        }
    }
    drop(db);
    env
}

/// Tables, blob files and manifests.
fn made(env: &MemEnv) -> BTreeMap<String, usize> {
    let is_made = |name: &String| name.ends_with(".table") || name.ends_with(".blob") || name.starts_with("MANIFEST");
    files(env).into_iter().filter(|(name, _)| is_made(name)).map(|(name, bytes)| (name, bytes.len())).collect()
}

fn check_whole(env: &MemEnv, what: &str) {
    let db = Db::open(DIRECTORY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    for name in ["a", "b", "c"] {
        assert_eq!(all(&keyspace(&db, name)).len(), 301, "{what}");
    }
    db.verify().unwrap();
}

#[test]
fn whatever_call_fails() {
    let (mut failed, mut removed) = (0, 0);
    for action in [Action::Fail(ErrorKind::StorageFull), Action::FailAfter(ErrorKind::Other)] {
        for nth in 0.. {
            let env = unclosed();
            let (before, current) = (made(&env), files(&env)["CURRENT"].clone());
            let faulty = FaultEnv::new(Arc::new(env.clone()));
            faulty.add(Rule::new(Class::AnyMutating, nth, action));
            let result = Db::open(DIRECTORY, simulated(&env).env(Arc::new(faulty.clone())));
            let what = format!("call {nth}: {action:?}");
            if result.is_err() && files(&env)["CURRENT"] == current {
                assert_eq!(made(&env), before, "{what}");
                removed += 1;
            }
            failed += u32::from(result.is_err());
            drop(result);
            check_whole(&env, &what);
            if faulty.fired() == 0 {
                break;
            }
        }
    }
    assert!(failed > 40 && removed > 40, "{failed} failed, {removed} cleaned up");
}

#[test]
fn a_full_disk_gets_no_fuller() {
    let env = unclosed();
    let before = made(&env);
    let used: usize = env.files().iter().map(|path| env.file_bytes(path).unwrap().len()).sum();
    env.set_capacity(Some(used as u64 + 150_000));
    for attempt in 0..5 {
        assert!(Db::open(DIRECTORY, simulated(&env)).is_err_and(|error| error.is_disk_full()), "attempt {attempt}");
        assert_eq!(made(&env), before, "attempt {attempt}");
    }
    env.set_capacity(None);
    check_whole(&env, "with space again");
}

/// Seen: a full disk was a dead end: the next open wanted to write a table first, and so even
/// deletes, which would have made room, failed. Trigger: a log of more than four segments. Now what
/// was closed opens without a table, and deletes make room.
#[test]
fn what_was_closed_opens_on_a_full_disk_and_deletes_make_room() {
    let env = MemEnv::new();
    let full = || env.files().iter().map(|path| env.file_bytes(path).unwrap().len() as u64).sum::<u64>();
    // Buffers that are not full: all of it stays in the log.
    let options = || simulated(&env).write_buffer_bytes(4 << 20);
    let db = Db::open(DIRECTORY, options()).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..100u32 {
        a.put(number.to_be_bytes(), noise(3000)).unwrap();
    }
    // A file system has room for an edit in the last block of the manifest.
    env.set_capacity(Some(full() + 1000));
    drop(a);
    db.close().unwrap();
    let before = made(&env);
    assert!(before.len() == 1 && full() > 250_000, "{before:?}");
    // Room for a manifest and the first segment of a log, far from enough for the tables.
    env.set_capacity(Some(full() + (40 << 10)));
    for life in 0..3 {
        let db = Db::open(DIRECTORY, options()).unwrap();
        let a = keyspace(&db, "a");
        assert_eq!(all(&a).len(), 100 - life * 10);
        for number in life * 10..(life + 1) * 10 {
            a.delete((number as u32).to_be_bytes()).unwrap();
        }
        drop(a);
        db.close().unwrap();
        assert_eq!(made(&env).len(), 1);
        env.set_capacity(Some(full() + (40 << 10)));
    }
    let db = Db::open(DIRECTORY, options()).unwrap();
    let (a, before) = (keyspace(&db, "a"), full());
    for number in 0..99u32 {
        a.delete(number.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let left: BTreeMap<_, _> = files(&env).into_iter().map(|(name, bytes)| (name, bytes.len())).collect();
    assert!(full() < before / 3, "{} of {before}: {left:?}", full());
    assert_eq!(all(&a).len(), 1);
    drop(a);
    db.close().unwrap();
    env.set_capacity(None);
    let db = open(&env);
    assert_eq!(all(&keyspace(&db, "a")).len(), 1);
    db.verify().unwrap();
}

/// The power may fail at any call of an open that goes back from tables to the log.
#[test]
fn a_power_loss_within_an_open_on_a_full_disk_loses_nothing() {
    let env = MemEnv::new();
    let options = |env: &MemEnv| simulated(env).write_buffer_bytes(4 << 20);
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..100u32 {
        a.put(number.to_be_bytes(), noise(3000)).unwrap();
    }
    drop(a);
    db.close().unwrap();
    let full: u64 = env.files().iter().map(|path| env.file_bytes(path).unwrap().len() as u64).sum();
    let mut calls = 0;
    loop {
        let env = env.kill();
        env.set_capacity(Some(full + (40 << 10)));
        env.crash_after(calls);
        let opened = Db::open(DIRECTORY, options(&env));
        if !env.is_dead() {
            assert_eq!(all(&keyspace(&opened.unwrap(), "a")).len(), 100);
            break;
        }
        drop(opened);
        for (mode, seed) in
            CrashMode::FIXED.iter().map(|mode| (mode, 0)).chain((0..3).map(|at| (&CrashMode::Random, at)))
        {
            let image = env.crash(mode, calls * 10 + seed);
            image.set_capacity(None);
            let db = Db::open(DIRECTORY, options(&image)).unwrap();
            assert_eq!(all(&keyspace(&db, "a")).len(), 100, "after {calls} calls, {mode:?} {seed}");
            db.verify().unwrap();
        }
        calls += 1;
    }
    assert!(calls > 20, "it was to begin with tables: {calls} calls");
}

fn used(env: &MemEnv) -> u64 {
    env.files().iter().map(|path| env.file_bytes(path).unwrap().len() as u64).sum()
}

/// A database of some megabytes, closed, on a disk without room for a single byte more. `flushed`:
/// all of it is in tables, otherwise in the log.
fn full_to_the_last_byte(flushed: bool) -> (MemEnv, Options) {
    full_with(2000, flushed)
}

/// The same with so many keys.
fn full_with(keys: u32, flushed: bool) -> (MemEnv, Options) {
    let env = MemEnv::new();
    let options = simulated(&env).write_buffer_bytes(16 << 20).wal_segment_bytes(16 << 20);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..keys {
        a.put(number.to_be_bytes(), noise_of(number.into(), 3000)).unwrap();
    }
    if flushed {
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    env.set_capacity(Some(used(&env)));
    drop(a);
    db.close().unwrap();
    let tables = made(&env).into_keys().filter(|name| name.ends_with(".table")).count();
    assert_eq!(tables > 0, flushed, "{:?}", made(&env));
    (env, options)
}

/// Opens, deletes ten keys more than `gone` of so many, and says how many there are.
fn delete_ten(options: &Options, keys: u32, gone: u32) -> Db {
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let a = keyspace(&db, "a");
    assert_eq!(a.count(..).unwrap(), u64::from(keys - gone));
    for number in gone..gone + 10 {
        a.delete(number.to_be_bytes()).unwrap();
    }
    db
}

/// A bug that was seen: on a full disk every open failed because it could not create its log
/// segment, or the third failed because each one before had left a segment. Nothing could be
/// deleted then.
#[test]
fn deletes_go_on_from_open_to_open_on_a_disk_without_any_room() {
    for (keys, flushed) in [(2000, false), (2000, true), (300, false), (300, true)] {
        let (env, options) = full_with(keys, flushed);
        for life in 0..25 {
            delete_ten(&options, keys, life * 10).close().unwrap();
        }
        env.set_capacity(None);
        let db = Db::open(DIRECTORY, options).unwrap();
        assert_eq!(keyspace(&db, "a").count(..).unwrap(), u64::from(keys - 250));
        db.verify().unwrap();
    }
}

/// Found in a review, of a change that no release had: what was held back was gone for the first
/// part of the open, and each log segment took all there was.
#[test]
fn an_empty_database_opens_again_and_again_on_a_disk_without_any_room() {
    let env = MemEnv::new();
    let options = simulated(&env).write_buffer_bytes(16 << 20).wal_segment_bytes(16 << 20);
    Db::open(DIRECTORY, options.clone()).unwrap().close().unwrap();
    env.set_capacity(Some(used(&env)));
    for life in 0..25 {
        let db = Db::open(DIRECTORY, options.clone()).unwrap_or_else(|error| panic!("{life}: {error}"));
        db.close().unwrap_or_else(|error| panic!("{life}: {error}"));
        assert!(life > 3 || files(&env)["RESERVE"].len() > 300_000, "{life}: {}", files(&env)["RESERVE"].len());
    }
}

/// Seen: a range delete of everything gave no space back, for want of room for its table: the open
/// had held back again all that was left. That is given up for it.
#[test]
fn a_range_delete_makes_room_on_a_disk_without_any() {
    for (keys, flushed) in [(2000, false), (2000, true), (300, false), (300, true)] {
        let (env, options) = full_with(keys, flushed);
        let before = used(&env);
        let db = Db::open(DIRECTORY, options).unwrap();
        let a = keyspace(&db, "a");
        a.delete_range(..).unwrap();
        db.compact().unwrap_or_else(|error| panic!("{keys} {flushed}: {error}"));
        db.wait_idle().unwrap();
        assert!(used(&env) < before / 2, "{keys} {flushed}: {} of {before} bytes", used(&env));
        a.put("new", "1").unwrap();
        db.close().unwrap();
    }
}

/// The same where the process dies each time, and the open has to write tables first.
#[test]
fn deletes_go_on_from_crash_to_crash_on_a_disk_without_any_room() {
    for keys in [2000, 300] {
        let (mut env, mut options) = full_with(keys, true);
        for life in 0..10 {
            drop(delete_ten(&options, keys, life * 10));
            env = env.kill();
            options = options.env(Arc::new(env.clone()));
        }
        env.set_capacity(None);
        let db = Db::open(DIRECTORY, options).unwrap();
        assert_eq!(keyspace(&db, "a").count(..).unwrap(), u64::from(keys - 100));
        db.verify().unwrap();
    }
}

/// Where the tables that a crash asks for have no room, all stays as it is, the reserve included.
#[test]
fn an_open_that_finds_no_room_holds_back_again_what_it_has_tried() {
    let (env, options) = full_to_the_last_byte(false);
    drop(delete_ten(&options, 2000, 0));
    let env = env.kill();
    let options = options.env(Arc::new(env.clone()));
    let before = made(&env);
    for attempt in 0..5 {
        assert!(Db::open(DIRECTORY, options.clone()).is_err_and(|error| error.is_disk_full()), "attempt {attempt}");
        assert_eq!(made(&env), before, "attempt {attempt}");
        assert!(files(&env)["RESERVE"].len() > 400_000, "attempt {attempt}");
    }
    env.set_capacity(None);
    let db = Db::open(DIRECTORY, options).unwrap();
    assert_eq!(keyspace(&db, "a").count(..).unwrap(), 1990);
}

/// The power may fail at any call of an open that lives on what was held back.
#[test]
fn a_power_loss_within_an_open_without_any_room_loses_nothing() {
    let (env, options) = full_to_the_last_byte(true);
    let mut calls = 0;
    loop {
        let env = env.kill();
        env.crash_after(calls);
        let opened = Db::open(DIRECTORY, options.clone().env(Arc::new(env.clone())));
        if !env.is_dead() {
            assert_eq!(keyspace(&opened.unwrap(), "a").count(..).unwrap(), 2000);
            break;
        }
        drop(opened);
        let modes = CrashMode::FIXED.iter().map(|mode| (mode, 0));
        for (mode, seed) in modes.chain((0..3).map(|at| (&CrashMode::Random, at))) {
            let image = env.crash(mode, calls * 10 + seed);
            // What others may have written into the room that was given up.
            image.set_capacity(None);
            let db = Db::open(DIRECTORY, options.clone().env(Arc::new(image.clone()))).unwrap();
            assert_eq!(keyspace(&db, "a").count(..).unwrap(), 2000, "after {calls} calls, {mode:?} {seed}");
        }
        calls += 1;
    }
    assert!(calls > 10, "{calls} calls");
}

/// Seen: where a flush had found room for its table and not for all of the manifest's edit, each
/// open failed: the table that the torn edit may have announced is kept, which takes a directory.
#[test]
fn an_edit_that_a_full_disk_has_torn_stops_no_open() {
    let (env, options) = full_to_the_last_byte(true);
    let (mut torn, mut kept) = (0, 0);
    for room in (0..400).step_by(10) {
        let env = env.kill();
        env.set_capacity(None);
        let options = options.clone().env(Arc::new(env.clone()));
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let a = keyspace(&db, "a");
        a.delete(0u32.to_be_bytes()).unwrap();
        a.put("new", noise(100)).unwrap();
        let before = used(&env);
        let table_bytes = {
            let trial = env.kill();
            let db = Db::open(DIRECTORY, options.clone().env(Arc::new(trial.clone()))).unwrap();
            let made: BTreeMap<_, _> = made(&trial);
            drop(db);
            made.iter().filter(|(name, _)| name.ends_with(".table")).map(|(_, bytes)| *bytes as u64).min().unwrap()
        };
        env.set_capacity(Some(before + table_bytes + room));
        torn += u32::from(db.flush().is_err_and(|error| error.is_disk_full()));
        drop((a, db));
        let env = env.kill();
        env.set_capacity(Some(used(&env)));
        // What the directory takes of a disk, this environment does not count.
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("lost"));
        let db = Db::open(DIRECTORY, options.env(Arc::new(faulty.clone()))).unwrap_or_else(|e| panic!("{room}: {e}"));
        assert_eq!(keyspace(&db, "a").count(..).unwrap(), 2000, "{room}");
        kept += faulty.fired();
    }
    assert!(torn > 0 && kept > 0, "{torn} torn, {kept} kept");
}

/// No manifest has room for a byte more.
fn full_manifests() -> Rule {
    Rule::new(Class::Append, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("MANIFEST").from_then_on()
}

/// Seen: an open that failed at its manifest left the segment with which it had begun the log, and
/// each attempt another.
#[test]
fn an_open_that_fails_at_its_manifest_leaves_no_segment() {
    let (env, options) = full_to_the_last_byte(true);
    env.set_capacity(None);
    let segments = || files(&env).into_keys().filter(|name| name.ends_with(".wal")).count();
    let before = segments();
    for _ in 0..3 {
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(full_manifests());
        let opened = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone())));
        assert!(opened.is_err_and(|error| error.is_disk_full()) && faulty.fired() > 0);
        assert_eq!(segments(), before);
    }
    assert_eq!(keyspace(&Db::open(DIRECTORY, options).unwrap(), "a").count(..).unwrap(), 2000);
}

/// Seen: a close that found no room for its last edit, and none for another manifest either, gave
/// up what was held back.
#[test]
fn a_close_that_fails_holds_back_what_it_has_tried() {
    let (env, options) = full_to_the_last_byte(true);
    env.set_capacity(None);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone()))).unwrap();
    faulty.add(full_manifests());
    assert!(db.close().is_err_and(|error| error.is_disk_full()));
    assert!(files(&env).contains_key("RESERVE"));
    assert_eq!(keyspace(&Db::open(DIRECTORY, options).unwrap(), "a").count(..).unwrap(), 2000);
}

/// What is held back is for a full disk: any other failure is the caller's to hear.
#[test]
fn a_close_whose_last_edit_fails_for_another_reason_fails() {
    let env = MemEnv::new();
    let options = simulated(&env).wal_segment_bytes(1 << 20);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone()))).unwrap();
    keyspace(&db, "a").put("new", "1").unwrap();
    assert!(files(&env).contains_key("RESERVE"));
    faulty.add(Rule::new(Class::Append, 0, Action::Fail(ErrorKind::Other)).on_names_with("MANIFEST"));
    assert!(db.close().is_err_and(|error| !error.is_disk_full()));
    assert_eq!(faulty.fired(), 1);
    assert_eq!(keyspace(&Db::open(DIRECTORY, options).unwrap(), "a").count(..).unwrap(), 1);
}

/// A database that holds something back, with one write, and with half of the edit that was to name
/// its table.
fn torn() -> (MemEnv, Options) {
    let env = MemEnv::new();
    let options = simulated(&env).wal_segment_bytes(1 << 20);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone()))).unwrap();
    keyspace(&db, "a").put("new", "1").unwrap();
    let half = Action::Partial { kind: ErrorKind::Other, bytes: 8 };
    faulty.add(Rule::new(Class::Append, 0, half).on_names_with("MANIFEST"));
    assert!(db.flush().is_err());
    assert!(made(&env).keys().any(|name| name.ends_with(".table")) && files(&env).contains_key("RESERVE"));
    (env, options)
}

/// The same of the open that gives such a table another name, since the edit may have been made.
#[test]
fn only_on_a_full_disk_does_an_open_try_again_to_keep_what_a_torn_edit_may_have_named() {
    for (kind, opens) in [(ErrorKind::StorageFull, true), (ErrorKind::Other, false)] {
        let (env, options) = torn();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Create, 0, Action::Fail(kind)).on_names_with("lost"));
        let opened = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone())));
        assert_eq!((opened.is_ok(), faulty.fired()), (opens, 1), "{kind:?}");
        drop(opened);
        assert!(files(&env).contains_key("RESERVE"), "{kind:?}");
        assert_eq!(keyspace(&Db::open(DIRECTORY, options).unwrap(), "a").count(..).unwrap(), 1, "{kind:?}");
    }
}

/// Trap: number 0 stands for no manifest. A first one with that number would be taken for none by
/// the next open, until a keyspace brings another.
#[test]
fn an_open_that_fails_behind_the_first_manifest_leaves_no_other() {
    let env = MemEnv::new();
    open(&env).close().unwrap();
    let before = made(&env);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["MANIFEST-000001"]);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    faulty.add(full_manifests());
    assert!(Db::open(DIRECTORY, simulated(&env).env(Arc::new(faulty.clone()))).is_err());
    assert!(faulty.fired() > 0);
    assert_eq!(made(&env), before);
}

/// How many log segments a call makes, or opens so that it could write to them.
fn segments_for_writing(env: &MemEnv, call: impl FnOnce(Options)) -> u32 {
    let (opened, called): (_, Arc<dyn Env>) = (Arc::new(AtomicU32::new(0)), Arc::new(env.clone()));
    let counted = Arc::clone(&opened);
    let told = move |call: &str| {
        if call == "Env::open_log" {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    };
    call(simulated(env).env(Arc::new(Telling { told: Arc::new(told), called })));
    opened.load(Ordering::Relaxed)
}

/// It may be all that is left of a database whose `CURRENT` was lost: it is read, to tell, and its
/// numbers are not given again.
#[test]
fn what_an_interrupted_creation_has_left_is_only_read() {
    let env = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    faulty.add(Rule::new(Class::Rename, 0, Action::Fail(ErrorKind::Other)));
    assert!(Db::open(DIRECTORY, simulated(&env).env(Arc::new(faulty))).is_err());
    let left = files(&env);
    assert!(left.contains_key("000001.wal") && !left.contains_key("CURRENT"), "{:?}", left.keys());
    let checked = segments_for_writing(&env, |options| {
        let refused = Db::verify_directory(DIRECTORY, options, &mut |_| {});
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    });
    assert_eq!(checked, 0);
    // The one that the new log begins with.
    assert_eq!(segments_for_writing(&env, |options| drop(Db::open(DIRECTORY, options).unwrap())), 1);
    let now = files(&env);
    assert!(now.contains_key("000002.wal"), "{:?}", now.keys());
    assert_eq!(now["000001.wal"], left["000001.wal"]);
}

#[test]
fn an_existing_database_is_refused_where_that_is_asked() {
    let env = MemEnv::new();
    let new = || simulated(&env).error_if_exists(true);
    let db = Db::open(DIRECTORY, new()).unwrap();
    keyspace(&db, "names").put("ada", "1815").unwrap();
    assert!(matches!(Db::open(DIRECTORY, new()), Err(Error::Locked { .. })));
    drop(db);
    let before = files(&env);
    let refused = Db::open(DIRECTORY, new()).unwrap_err();
    assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    assert_eq!(refused.to_string(), format!("database in {DIRECTORY} exists already"));
    assert_eq!(files(&env), before);
    // Where both are asked, one of them always fails.
    let both = || new().create_if_missing(false);
    assert!(matches!(Db::open(DIRECTORY, both()), Err(Error::AlreadyExists { .. })));
    let missing = Db::open("elsewhere", both()).unwrap_err();
    assert_eq!(missing.to_string(), "database in elsewhere does not exist");
    let db = open(&env);
    assert_eq!(keyspace(&db, "names").get("ada").unwrap().as_deref(), Some(&b"1815"[..]));
}

/// Seen: "cannot open ....table", or "the table is missing". Trigger: a read-only open beside a
/// writer whose background work removed files faster than they could be opened. Cost: a false
/// alarm, with advice that harms.
#[test]
fn a_writer_that_never_holds_still_is_not_told_as_damage() {
    let env = MemEnv::new();
    let writer = open(&env);
    let written = keyspace(&writer, "k");
    let replace_the_tables = move || {
        written.put("a", noise(100)).unwrap();
        writer.flush().unwrap();
        written.compact().unwrap();
    };
    replace_the_tables();
    let (is_at_work, called): (_, Arc<dyn Env>) = (Arc::new(AtomicBool::new(true)), Arc::new(env.clone()));
    let asked = Arc::clone(&is_at_work);
    let told = move |call: &str| {
        if call == "Env::open" && asked.load(Ordering::Relaxed) {
            replace_the_tables();
        }
    };
    let options = simulated(&env).env(Arc::new(Telling { told: Arc::new(told), called }));
    let refused = Db::open_read_only(DIRECTORY, options.clone());
    let is_told = |reason: &str| reason.contains("try again") && reason.contains("cannot open");
    assert!(matches!(&refused, Err(Error::Stalled { reason }) if is_told(reason)), "{refused:?}");
    is_at_work.store(false, Ordering::Relaxed);
    let reader = Db::open_read_only(DIRECTORY, options).unwrap();
    assert_eq!(keyspace(&reader, "k").get("a").unwrap().as_deref(), Some(&noise(100)[..]));
}

/// Tables in the directory.
fn tables(env: &MemEnv) -> usize {
    made(env).into_keys().filter(|name| name.ends_with(".table")).count()
}

/// A database that holds something back, of five lives: each has written a value of so many bytes,
/// which is in no table. All were closed but the last one, which was if `closes`.
fn of_five_lives(bytes: usize, closes: bool) -> (MemEnv, Options) {
    let env = MemEnv::new();
    let options = simulated(&env).wal_segment_bytes(1 << 20);
    for life in 0..5u8 {
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        keyspace(&db, "a").put([life], noise(bytes)).unwrap();
        if life < 4 || closes {
            db.close().unwrap();
        }
    }
    assert!(tables(&env) == 0 && files(&env).contains_key("RESERVE"));
    (env, options)
}

/// What is held back is for the opens to come: a log of many segments that was closed stays as it
/// is, unless there is little in it. What was not closed has to be written to tables.
#[test]
fn tables_of_an_open_get_what_is_held_back_if_they_are_short_or_must_be_written() {
    // A value of 40,000 bytes is in a blob file, and the log refers to it.
    for (bytes, closes, writes) in
        [(1000, true, true), (40_000, true, true), (30_000, true, false), (30_000, false, true)]
    {
        let what = format!("{bytes} bytes, closed: {closes}");
        let (env, options) = of_five_lives(bytes, closes);
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table"));
        let opened = Db::open(DIRECTORY, options.env(Arc::new(faulty.clone())));
        let db = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((faulty.fired(), tables(&env) > 0), (1, writes), "{what}");
        assert_eq!(all(&keyspace(&db, "a")).len(), 5, "{what}");
        assert!(files(&env).contains_key("RESERVE"), "{what}");
    }
}

/// What is held back is for a full disk, also where the manifest of an open finds no room. Trap:
/// under the number of the one in force it would take its place before it is whole.
#[test]
fn only_on_a_full_disk_does_an_open_try_again_to_write_its_manifest() {
    for (kind, opens) in [(ErrorKind::StorageFull, true), (ErrorKind::Other, false)] {
        let env = MemEnv::new();
        let options = simulated(&env).wal_segment_bytes(1 << 20);
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        keyspace(&db, "a").put("new", "1").unwrap();
        db.close().unwrap();
        let before = files(&env)["CURRENT"].clone();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Create, 0, Action::Fail(kind)).on_names_with("MANIFEST"));
        let opened = Db::open(DIRECTORY, options.clone().env(Arc::new(faulty.clone())));
        assert_eq!((opened.is_ok(), faulty.fired()), (opens, 1), "{kind:?}");
        drop(opened);
        assert_eq!(files(&env)["CURRENT"] != before, opens, "{kind:?}");
        assert!(files(&env).contains_key("RESERVE"), "{kind:?}");
        assert_eq!(keyspace(&Db::open(DIRECTORY, options).unwrap(), "a").count(..).unwrap(), 1, "{kind:?}");
    }
}

/// Loads leave a table and an empty log, and large values that are written without log a blob file.
#[test]
fn without_current_a_table_or_a_blob_file_is_no_new_database() {
    for name in ["000009.table", "000009.blob"] {
        let env = MemEnv::new();
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), vec![7]);
        match Db::open(DIRECTORY, simulated(&env)) {
            Err(Error::Corruption { path, .. }) => assert!(path.ends_with("CURRENT"), "{name}: {path:?}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(files(&env).contains_key(name), "{name}");
    }
}

/// A program that may only read has no right to open a file for writing.
#[test]
fn who_only_reads_opens_no_segment_for_writing() {
    let env = MemEnv::new();
    let db = open(&env);
    keyspace(&db, "a").put("a", "1").unwrap();
    let opened = segments_for_writing(&env, |options| {
        let reader = Db::open_read_only(DIRECTORY, options.clone()).unwrap();
        let follower = Db::open_follower(DIRECTORY, options).unwrap();
        keyspace(&db, "a").put("b", "1").unwrap();
        assert_eq!(follower.catch_up().unwrap().batches, 1);
        assert_eq!(all(&keyspace(&reader, "a")).len(), 1);
    });
    assert_eq!(opened, 0);
}

/// Trap: what is in no log is in a table that the manifest which was read first does not name. What
/// is in the log comes later.
#[test]
fn what_is_changed_while_it_is_read_is_read_again() {
    let env = MemEnv::new();
    let writer = open(&env);
    let written = keyspace(&writer, "k");
    written.put("a", "1").unwrap();
    let (is_first, called): (_, Arc<dyn Env>) = (AtomicBool::new(true), Arc::new(env.clone()));
    let told = move |call: &str| {
        // For the segments of the log.
        if call == "Env::list" && is_first.swap(false, Ordering::Relaxed) {
            written.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
            writer.flush().unwrap();
            written.put("c", "1").unwrap();
        }
    };
    let options = simulated(&env).env(Arc::new(Telling { told: Arc::new(told), called }));
    let reader = Db::open_read_only(DIRECTORY, options).unwrap();
    let keys: Vec<Vec<u8>> = all(&keyspace(&reader, "k")).into_keys().collect();
    assert_eq!(keys, [b"a", b"b", b"c"]);
}

/// Only failures in a row count where nothing has changed: a writer at work may be the reason for
/// any other.
#[test]
fn failures_beside_a_writer_at_work_are_not_counted() {
    let env = MemEnv::new();
    let writer = open(&env);
    let written = keyspace(&writer, "k");
    written.put("a", "1").unwrap();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let (faults, called): (_, Arc<dyn Env>) = (faulty.clone(), Arc::new(faulty.clone()));
    let listings = AtomicU32::new(0);
    let told = move |call: &str| {
        if call != "Env::list" {
            return;
        }
        // For the segments of the log, once in each attempt.
        let attempt = listings.fetch_add(1, Ordering::Relaxed);
        if attempt < 4 {
            written.put("a", "2").unwrap();
            writer.flush().unwrap();
        }
        if attempt < 5 {
            faults.add(Rule::new(Class::Read, 0, Action::Fail(ErrorKind::Other)).on_names_with(".wal"));
        }
    };
    let options = simulated(&env).env(Arc::new(Telling { told: Arc::new(told), called }));
    let reader = Db::open_read_only(DIRECTORY, options).unwrap();
    assert_eq!((all(&keyspace(&reader, "k")).len(), faulty.fired()), (1, 5));
}
