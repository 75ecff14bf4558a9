//! Loading sorted pairs: all or nothing, newer than everything before, older than everything after.

use crate::calling_env::Telling;
use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::UInt64Add;
use esker::{Db, Error, Expiry, IngestReport, Keyspace, KeyspaceOptions, Ttl};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn key(number: usize) -> String {
    format!("key{number:05}")
}

fn pairs(count: usize, value: &str) -> Vec<(String, String)> {
    (0..count).map(|number| (key(number), format!("{value} {number}"))).collect()
}

#[test]
fn pairs_are_newer_than_what_was_there_and_older_than_what_comes() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    a.put(key(1), "in a table").unwrap();
    db.flush().unwrap();
    a.put(key(2), "in memory").unwrap();
    a.put("zzz", "in memory, beside").unwrap();
    let snapshot = db.snapshot();
    let mut before = a.iter();
    let report = a.ingest(pairs(1000, "loaded")).unwrap();
    assert_eq!(report.entries, 1000);
    assert!(report.tables > 1 && report.bytes > 10_000, "{report:?}");
    a.put(key(3), "after").unwrap();
    a.delete(key(4)).unwrap();

    let check = |a: &esker::Keyspace| {
        assert_eq!(a.get(key(1)).unwrap().as_deref(), Some(&b"loaded 1"[..]));
        assert_eq!(a.get(key(2)).unwrap().as_deref(), Some(&b"loaded 2"[..]));
        assert_eq!(a.get(key(3)).unwrap().as_deref(), Some(&b"after"[..]));
        assert_eq!(a.get(key(4)).unwrap(), None);
        assert_eq!(a.get("zzz").unwrap().as_deref(), Some(&b"in memory, beside"[..]));
        assert_eq!(all(a).len(), 1000);
    };
    check(&a);
    assert_eq!(snapshot.get(&a, key(2)).unwrap().as_deref(), Some(&b"in memory"[..]));
    assert_eq!(snapshot.get(&a, key(500)).unwrap(), None);
    assert_eq!(snapshot.iter(&a).count(), 3);
    assert_eq!(before.by_ref().count(), 3);
    drop((snapshot, before));
    db.compact().unwrap();
    check(&a);
    drop((a, db));
    // Nothing was synced but by the load itself and after it.
    let after = env.crash(&CrashMode::LoseAll, 0);
    let db = open(&after);
    assert_eq!(all(&keyspace(&db, "a")).len(), 1000);
}

#[test]
fn a_transaction_that_read_or_wrote_a_loaded_key_conflicts() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    a.put(key(1), "before").unwrap();
    let read = |found: &mut dyn FnMut(&mut esker::Transaction)| {
        let mut transaction = db.transaction();
        found(&mut transaction);
        transaction.put(&a, "beside", "mine").unwrap();
        transaction
    };
    let got = read(&mut |t| drop(t.get(&a, key(1)).unwrap()));
    let missed = read(&mut |t| assert_eq!(t.get(&a, key(2)).unwrap(), None));
    let scanned = read(&mut |t| assert_eq!(t.range(&a, key(0)..key(9)).count(), 1));
    let wrote = read(&mut |t| t.put(&a, key(3), "mine").unwrap());
    let elsewhere = read(&mut |t| assert_eq!(t.get(&a, "elsewhere").unwrap(), None));
    a.ingest(pairs(10, "loaded")).unwrap();
    for (transaction, expected) in [(got, key(1)), (missed, key(2)), (scanned, key(0)), (wrote, key(3))] {
        match transaction.commit() {
            Err(Error::Conflict { key, .. }) => assert_eq!(key, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(a.get("beside").unwrap(), None);
    elsewhere.commit().unwrap();
    let mut after = read(&mut |t| drop(t.get(&a, key(1)).unwrap()));
    after.put(&a, key(1), "after").unwrap();
    after.commit().unwrap();
    assert_eq!(a.get(key(1)).unwrap().as_deref(), Some(&b"after"[..]));
}

#[test]
fn deletes_of_ranges_before_a_load_do_not_hide_it_and_those_after_it_do() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    a.put(key(500), "before").unwrap();
    db.flush().unwrap();
    // In memory, with no key there.
    a.delete_range(key(0)..key(900)).unwrap();
    a.ingest(pairs(1000, "loaded")).unwrap();
    assert_eq!(all(&a).len(), 1000);
    a.delete_range(key(10)..key(20)).unwrap();
    assert_eq!(all(&a).len(), 990);
    db.compact().unwrap();
    assert_eq!(all(&a).len(), 990);
}

#[test]
fn what_is_loaded_gets_the_default_time_to_live() {
    let machine = Machine::new();
    let db = machine.open();
    let ttl = Ttl::Enabled { default: Some(Duration::from_secs(10)) };
    let a = db.keyspace("a", KeyspaceOptions::default().ttl(ttl)).unwrap();
    a.ingest(pairs(3, "loaded")).unwrap();
    assert_eq!(a.expires_at(key(1)).unwrap(), Some(Expiry::At(at(10))));
    machine.pass(Duration::from_secs(9));
    assert_eq!(all(&a).len(), 3);
    machine.pass(Duration::from_secs(1));
    assert_eq!(all(&a).len(), 0);
}

#[test]
fn what_is_not_sorted_is_refused_and_leaves_nothing() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    let before: Vec<String> = files(&env).into_keys().collect();
    for wrong in [key(700), key(500)] {
        let mut unsorted = pairs(701, "x");
        unsorted.push((wrong.clone(), "again".into()));
        let error = a.ingest(unsorted).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument { what } if what.contains(&wrong)), "{error}");
        assert_eq!(files(&env).into_keys().collect::<Vec<_>>(), before);
        assert!(all(&a).is_empty());
    }
    let mut long = pairs(300, "x");
    long.push((format!("z{}", "y".repeat(1 << 20)), String::new()));
    assert!(matches!(a.ingest(long), Err(Error::InvalidArgument { .. })));
    assert_eq!(files(&env).into_keys().collect::<Vec<_>>(), before);
    assert_eq!(a.ingest(Vec::<(String, String)>::new()).unwrap(), IngestReport::default());
    db.close().unwrap();
    assert!(matches!(a.ingest(pairs(1, "x")), Err(Error::ReadOnly { .. })));
}

/// A second load that is done first takes the sequence number of the first: the first is then
/// written again.
#[test]
fn writes_and_loads_within_a_load_are_older() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    let feeding = pairs(500, "outer").into_iter().inspect(|(at, _)| {
        if *at == key(100) {
            a.put(key(50), "between").unwrap();
            a.put(key(9000), "between").unwrap();
            a.ingest(pairs(200, "inner")).unwrap();
            db.flush().unwrap();
        }
    });
    assert_eq!(a.ingest(feeding).unwrap().entries, 500);
    for number in [0, 50, 150, 499] {
        assert_eq!(a.get(key(number)).unwrap().unwrap(), format!("outer {number}").into_bytes()[..]);
    }
    assert_eq!(a.get(key(9000)).unwrap().as_deref(), Some(&b"between"[..]));
    let tables = files(&env).into_keys().filter(|name| name.ends_with(".table")).count() as u64;
    assert_eq!(tables, db.stats().table_files, "tables of the first attempt are left");
    drop((a, db));
    let db = open(&env);
    assert_eq!(all(&keyspace(&db, "a")).len(), 501);
    db.verify().unwrap();
}

#[test]
fn merges_go_on_top_of_loaded_values() {
    let env = MemEnv::default();
    let db = open(&env);
    let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
    hits.merge("b", 5u64.to_le_bytes()).unwrap();
    hits.ingest([("a", 10u64.to_le_bytes()), ("b", 20u64.to_le_bytes())]).unwrap();
    hits.merge("a", 1u64.to_le_bytes()).unwrap();
    hits.merge("b", 1u64.to_le_bytes()).unwrap();
    for _ in 0..2 {
        assert_eq!(hits.get("a").unwrap().as_deref(), Some(&11u64.to_le_bytes()[..]));
        assert_eq!(hits.get("b").unwrap().as_deref(), Some(&21u64.to_le_bytes()[..]));
        db.compact().unwrap();
    }
}

#[test]
fn a_power_loss_anywhere_leaves_all_or_nothing() {
    for count in 0.. {
        let env = MemEnv::default();
        let db = open(&env);
        let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
        a.put(key(3), "before").unwrap();
        b.put("other", "before").unwrap();
        env.crash_after(env.mutations() + count);
        let done = a.ingest(pairs(300, "loaded")).is_ok();
        drop((a, b, db));
        for mode in [CrashMode::LoseAll, CrashMode::Random] {
            let after = env.crash(&mode, count);
            let db = open(&after);
            db.verify().unwrap();
            let found = all(&keyspace(&db, "a")).len();
            assert!(if done { found == 300 } else { found <= 1 || found == 300 }, "{found} after {count}, {mode:?}");
            if found == 300 {
                // What was written before is not lost when what came later is there.
                assert!(keyspace(&db, "b").get("other").unwrap().is_some(), "after {count}, {mode:?}");
            }
        }
        if done {
            assert!(count > 5);
            break;
        }
    }
}

/// A failed job removes tables that no manifest names; those of a load that is going on are not
/// meant.
#[test]
fn the_files_of_a_load_outlive_the_cleaning_up_of_another_job() {
    let memory = MemEnv::default();
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    let db = Db::open(DIRECTORY, simulated(&memory).env(Arc::new(faulty.clone()))).unwrap();
    let a = keyspace(&db, "a");
    let feeding = pairs(900, "loaded").into_iter().inspect(|(at, _)| {
        if *at == key(600) {
            a.put("other", "value").unwrap();
            faulty.add(Rule::new(Class::Create, 0, Action::Fail(std::io::ErrorKind::StorageFull)));
            assert!(db.flush().is_err());
        }
    });
    assert_eq!(a.ingest(feeding).unwrap().entries, 900);
    assert_eq!(all(&a).len(), 901);
    drop((a, db));
    assert_eq!(all(&keyspace(&open(&memory), "a")).len(), 901);
}

/// The merges that a load brings about are work of their own: one that fails is no reason to report
/// the load as failed.
#[test]
fn a_load_that_is_told_as_failed_has_loaded_nothing() {
    let mut failed_merges = 0;
    for nth in 0.. {
        let memory = MemEnv::default();
        let faulty = FaultEnv::new(Arc::new(memory.clone()));
        let db = Db::open(DIRECTORY, simulated(&memory).env(Arc::new(faulty.clone()))).unwrap();
        let a = keyspace(&db, "a");
        faulty.add(Rule::new(Class::Create, nth, Action::Fail(std::io::ErrorKind::Other)).on_names_with(".table"));
        for load in 0..12 {
            let before = all(&a);
            let fired = faulty.fired();
            let outcome = a.ingest(pairs(3, &format!("load {load}")));
            assert!(db.health().writable, "no call on the log or the manifest has failed");
            assert_eq!(outcome.is_err(), all(&a) == before, "create {nth}, load {load}: {outcome:?}");
            failed_merges += u32::from(outcome.is_ok() && faulty.fired() > fired);
        }
        if faulty.fired() == 0 {
            break;
        }
    }
    assert!(failed_merges > 0, "no merge came about");
}

#[test]
fn a_close_ends_a_load() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    let mut closing = Some(db);
    let feeding = pairs(900, "loaded").into_iter().inspect(|(at, _)| {
        if *at == key(600) {
            closing.take().unwrap().close().unwrap();
        }
    });
    assert!(matches!(a.ingest(feeding), Err(Error::ReadOnly { .. })));
    let db = open(&env);
    assert!(all(&keyspace(&db, "a")).is_empty());
    assert_eq!(env.files().iter().filter(|path| path.to_string_lossy().ends_with(".table")).count(), 0);
}

/// Opens it again: what a load that failed has left would be gone only now.
fn db_is_well(env: &MemEnv) {
    let tables = |env: &MemEnv| files(env).into_keys().filter(|name| name.ends_with(".table")).collect::<Vec<_>>();
    let before = tables(env);
    let db = open(env);
    assert_eq!(tables(env), before);
    assert_eq!(all(&keyspace(&db, "a")).len(), 1);
    assert_eq!(all(&keyspace(&db, "b")).len(), 500);
    db.verify().unwrap();
}

/// Writes that overtake a load make it read its own tables again. Bits that flip in them meanwhile,
/// anywhere, end it with the place, and nothing is loaded.
#[test]
fn a_load_refuses_tables_that_rot_before_it_reads_them() {
    const STEP: usize = 11;
    let mut flips = 0;
    for (mapped, shift) in [(false, 0), (true, 3)] {
        let mut at = shift;
        loop {
            let env = MemEnv::default();
            if mapped {
                env.map_files();
            }
            let db = open(&env);
            let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
            a.put(key(0), "before").unwrap();
            db.flush().unwrap();
            let tables = || files(&env).into_keys().filter(|name| name.ends_with(".table")).collect::<Vec<_>>();
            let before = tables();
            let mut rotten = None;
            let loaded = pairs(400, "loaded").into_iter().enumerate().map(|(index, pair)| {
                // The first table is finished, another one is not; and a longer load within the
                // load takes the numbers that this one had in view.
                if index == 399 {
                    let own = tables().into_iter().find(|name| !before.contains(name)).expect("a table of the load");
                    assert!(tables().len() > before.len() + 1, "it is finished");
                    b.ingest(pairs(500, "b")).unwrap();
                    let path = std::path::Path::new(DIRECTORY).join(own);
                    let bytes = env.file_bytes(&path).unwrap().len();
                    if env.flip_bit(&path, at as u64, (at % 8) as u8) {
                        rotten = Some((path, bytes));
                    }
                }
                pair
            });
            let result = a.ingest(loaded);
            let Some((rotten, bytes)) = rotten else {
                // Behind the end of the file: the same without damage.
                assert_eq!(result.unwrap().entries, 400);
                assert_eq!(all(&a).len(), 400);
                break;
            };
            match result {
                Err(Error::Corruption { path, offset, .. }) => {
                    assert!(path == rotten && offset <= bytes as u64, "byte {at}: {} at {offset}", path.display());
                }
                other => panic!("byte {at}: {other:?}"),
            }
            assert_eq!(all(&a).into_iter().collect::<Vec<_>>(), [(key(0).into_bytes(), b"before".to_vec())]);
            assert!(!tables().contains(&rotten.file_name().unwrap().to_str().unwrap().to_owned()));
            drop((a, b));
            db.close().unwrap();
            db_is_well(&env);
            flips += 1;
            at += STEP;
        }
    }
    assert!(flips > 500, "{flips} flips");
}

/// Loads three pairs into `names` of a database, which also has `other`; `write` does something
/// while the load syncs the log.
fn with_a_write_while_a_load_syncs_the_log(
    env: &MemEnv,
    write: impl Fn(&Keyspace, &Keyspace) + Send + Sync + 'static,
) -> (Db, Keyspace) {
    let both = Arc::new(OnceLock::<(Keyspace, Keyspace)>::new());
    let loads = Arc::new(AtomicBool::new(false));
    let (written, is_time, write) = (Arc::clone(&both), Arc::clone(&loads), Arc::new(write));
    let told = Arc::new(move |call: &'static str| {
        if call.ends_with("sync_range") && is_time.swap(false, Ordering::Relaxed) {
            let ((names, other), write) = (written.get().unwrap().clone(), Arc::clone(&write));
            // A thread of its own: the environment may not write.
            std::thread::spawn(move || write(&names, &other)).join().unwrap();
        }
    });
    let telling: Arc<dyn Env> = Arc::new(Telling { told, called: Arc::new(env.clone()) as Arc<dyn Env> });
    let db = Db::open(DIRECTORY, simulated(env).env(telling)).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::default()).unwrap();
    other.put("before", "1").unwrap();
    assert!(both.set((names.clone(), other)).is_ok());
    loads.store(true, Ordering::Relaxed);
    names.ingest(pairs(3, "loaded")).unwrap();
    assert!(!loads.load(Ordering::Relaxed), "the load synced no log");
    (db, names)
}

/// A write that comes while the load syncs the log is older than the load, and no less durable: a
/// load without it would be a hole.
#[test]
fn what_is_written_while_a_load_syncs_the_log_is_durable_with_it() {
    let env = MemEnv::new();
    let _open = with_a_write_while_a_load_syncs_the_log(&env, |_, other| other.put("meanwhile", "1").unwrap());
    let after = open(&env.crash(&CrashMode::LoseAll, 0));
    let count = |name: &str| after.keyspace(name, KeyspaceOptions::default()).unwrap().iter().count();
    assert_eq!((count("names"), count("other")), (3, 2));
}

/// The same for the keys that are loaded: what comes while the load syncs the log is hidden by it,
/// in memory and in tables.
#[test]
fn what_is_written_to_loaded_keys_while_a_load_syncs_the_log_is_older() {
    let env = MemEnv::new();
    let (db, names) = with_a_write_while_a_load_syncs_the_log(&env, |names, _| {
        names.put(key(0), "meanwhile").unwrap();
        names.delete(key(1)).unwrap();
        names.delete_range(key(2)..key(3)).unwrap();
    });
    let loaded = pairs(3, "loaded").into_iter().map(|(key, value)| (key.into_bytes(), value.into_bytes()));
    let loaded = loaded.collect::<Vec<_>>();
    let check = |names: &Keyspace| {
        assert_eq!(all(names).into_iter().collect::<Vec<_>>(), loaded);
        for (key, value) in &loaded {
            assert_eq!(names.get(key).unwrap().as_deref(), Some(value.as_slice()));
        }
    };
    check(&names);
    db.flush().unwrap();
    check(&names);
    db.compact().unwrap();
    check(&names);
}
