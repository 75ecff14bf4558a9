//! A keyspace that is dropped: gone at once, for good, and for those only that come after.

use crate::common::{DIRECTORY, Machine, PLACES, Place, keyspace, pairs, settle, text, wait_until};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::{StringAppend, UInt64Add};
use esker::{CompactionFilter, Db, Decision, Error, Keyspace, KeyspaceOptions, Options, Ttl, WriteOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

fn is_dropped<T: std::fmt::Debug>(result: esker::Result<T>) -> bool {
    match result {
        Err(Error::KeyspaceDropped { keyspace }) => keyspace == "old",
        other => panic!("{other:?}"),
    }
}

/// A database with something in "old" and in "kept".
fn filled(machine: &Machine, place: Place) -> (Db, Keyspace, Keyspace) {
    let db = machine.open();
    let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
    for keyspace in [&old, &kept] {
        keyspace.put("ballast", "1").expect("put");
    }
    db.compact().expect("compact");
    for keyspace in [&old, &kept] {
        keyspace.put("a", "1").expect("put");
    }
    settle(&db, place);
    (db, old, kept)
}

fn tables(machine: &Machine) -> usize {
    machine.env.files().iter().filter(|path| path.extension().is_some_and(|extension| extension == "table")).count()
}

#[test]
fn every_call_of_its_handles_says_so() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, old, kept) = filled(&machine, place);
        db.drop_keyspace("old").expect("drop");
        assert_eq!(db.keyspaces(), ["kept"]);
        assert!(matches!(db.existing_keyspace("old"), Err(Error::NotFound { .. })));
        assert!(matches!(db.drop_keyspace("old"), Err(Error::NotFound { .. })));
        let unlogged = WriteOptions::new().disable_wal(true);
        let mut buffer = b"before".to_vec();
        assert!(is_dropped(old.get("a")));
        assert!(is_dropped(old.get("absent")));
        assert!(is_dropped(old.get_into("a", &mut buffer)) && buffer.is_empty());
        assert!(is_dropped(old.expires_at("a")));
        assert!(is_dropped(old.contains_key("a")));
        assert!(is_dropped(old.first()) && is_dropped(old.last()) && is_dropped(old.count(..)));
        assert!(is_dropped(old.multi_get(["a"])[0].as_ref().map(drop).map_err(|_| old.get("a").unwrap_err())));
        assert!(is_dropped(old.iter().next().unwrap()));
        assert!(is_dropped(old.cursor().map(drop)));
        assert!(is_dropped(old.put("a", "2")));
        assert!(is_dropped(old.put_with("a", "12345678", &unlogged)));
        assert!(is_dropped(old.put_with("a", "2", &WriteOptions::new().sync(true))));
        assert!(is_dropped(old.delete("a")));
        assert!(is_dropped(old.delete_range("a"..)) && is_dropped(old.clear()));
        assert!(is_dropped(old.delete_range("b".."a")), "an empty range is no excuse");
        assert!(is_dropped(old.put_if_absent("b", "2").map(drop)));
        assert!(is_dropped(old.compare_and_swap("a", Some(b"1"), Some(b"2")).map(drop)));
        assert!(is_dropped(old.compare_and_swap("a", Some(b"x"), Some(b"2")).map(drop)));
        assert!(is_dropped(old.take("absent").map(drop)));
        assert!(is_dropped(old.pop_first().map(drop)));
        assert!(is_dropped(old.compact()) && is_dropped(old.compact_range("a"..)));
        assert!(is_dropped(old.approximate_size(..)));
        assert!(is_dropped(old.ingest([("a", "1")]).map(drop)));
        assert!(is_dropped(db.snapshot().get(&old, "a")));
        assert!(is_dropped(db.snapshot().iter(&old).next().unwrap()));
        assert!(is_dropped(db.transaction().get(&old, "a")));
        assert_eq!(pairs(&kept).len(), 2, "{place:?}");
        db.verify().expect("whole");
        assert_eq!(db.stats().keyspaces.len(), 1);
    }
}

#[test]
fn counters_without_log_end_with_it() {
    let machine = Machine::new();
    let db = machine.open();
    let counters = db.keyspace("old", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace");
    let unlogged = WriteOptions::new().disable_wal(true);
    for _ in 0..3 {
        counters.merge_with("a", 1u64.to_le_bytes(), &unlogged).expect("merge");
    }
    db.drop_keyspace("old").expect("drop");
    assert!(is_dropped(counters.merge_with("a", 1u64.to_le_bytes(), &unlogged)));
    assert!(is_dropped(counters.merge_and_get("a", 1u64.to_le_bytes()).map(drop)));
    let sessions = db.keyspace("old", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).expect("again");
    sessions.put_with_ttl("a", "1", Duration::from_secs(9)).expect("put");
    db.drop_keyspace("old").expect("drop");
    assert!(is_dropped(sessions.touch("a", Duration::from_secs(9)).map(drop)));
    assert!(is_dropped(sessions.put_with_ttl("a", "1", Duration::from_secs(9))));
}

#[test]
fn batches_and_transactions_with_a_part_in_it_write_nothing() {
    let machine = Machine::new();
    let (db, old, kept) = filled(&machine, Place::Memtable);
    let mut batch = db.batch();
    batch.put(&kept, "b", "2").and_then(|()| batch.put(&old, "b", "2")).expect("put");
    let (mut writes, mut reads) = (db.transaction(), db.transaction());
    writes.put(&kept, "c", "2").and_then(|()| writes.put(&old, "c", "2")).expect("put");
    assert!(reads.get(&old, "a").expect("get").is_some());
    reads.put(&kept, "d", "2").expect("put");
    db.drop_keyspace("old").expect("drop");
    assert!(is_dropped(batch.commit()));
    assert!(is_dropped(writes.commit()));
    assert!(is_dropped(reads.commit()), "what it read is not there any more");
    assert_eq!(pairs(&kept).len(), 2);
}

#[test]
fn the_name_is_free_for_other_options_and_keeps_what_comes_then() {
    for place in PLACES {
        for reopens in [false, true] {
            let machine = Machine::new();
            let (db, old, _) = filled(&machine, place);
            db.drop_keyspace("old").expect("drop");
            let options = || KeyspaceOptions::default().merge_operator(StringAppend::new(","));
            let mut new = db.keyspace("old", options()).expect("a new one of the name");
            assert_eq!(pairs(&new), []);
            new.merge("a", "x").and_then(|()| new.merge("a", "y")).expect("merge");
            assert!(is_dropped(old.get("a")));
            let mut db = db;
            if reopens {
                drop((db, old, new));
                db = machine.open();
                new = db.keyspace("old", options()).expect("open");
            }
            assert_eq!(text(&new, "a").as_deref(), Some("x,y"), "{place:?} {reopens}");
            db.compact().expect("compact");
            assert_eq!(pairs(&new), [("a".to_owned(), "x,y".to_owned())]);
            assert_eq!(db.keyspaces(), ["kept", "old"]);
        }
    }
}

#[test]
fn readers_that_began_before_read_on_and_then_its_files_go() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, old, kept) = filled(&machine, place);
        let large = "l".repeat(100_000);
        old.put("large", &large).expect("put");
        let snapshot = db.snapshot();
        let (mut iterator, mut cursor) = (old.iter(), old.cursor().expect("cursor"));
        let mut transaction = db.transaction();
        db.drop_keyspace("old").expect("drop");
        // What would remove its files, and its memtables' share of the log.
        for round in 0..3 {
            kept.put(format!("{round}"), &large).expect("put");
            db.flush().and_then(|()| db.compact()).and_then(|()| db.wait_idle()).expect("work");
        }
        for _ in 0..2 {
            assert_eq!(snapshot.get(&old, "a").expect("get").as_deref(), Some(&b"1"[..]));
            assert_eq!(snapshot.get(&old, "large").expect("get").as_deref(), Some(large.as_bytes()));
            assert_eq!(snapshot.iter(&old).count(), 3);
            assert!(snapshot.expires_at(&old, "a").expect("get").is_some());
        }
        assert_eq!(iterator.next().unwrap().expect("scan").0, "a");
        cursor.seek_to_last().expect("seek");
        assert_eq!((cursor.key(), cursor.value()), (&b"large"[..], large.as_bytes()));
        assert!(transaction.get(&old, "ballast").expect("get").is_some());
        drop((snapshot, cursor, transaction));
        assert_eq!(iterator.count(), 2, "the last reader");
        let before = tables(&machine);
        db.wait_idle().expect("idle");
        let live: usize =
            db.stats().keyspaces.iter().flat_map(|keyspace| &keyspace.runs).map(|run| run.tables as usize).sum();
        assert_eq!(tables(&machine), live, "{place:?}: {before} before");
        let blobs = machine.env.files().into_iter().filter(|path| path.extension().is_some_and(|it| it == "blob"));
        let bytes: usize = blobs.map(|path| machine.env.file_bytes(&path).unwrap().len()).sum();
        assert!(bytes < 4 * large.len(), "the large value of the dropped keyspace is still there: {bytes}");
        db.verify().expect("whole");
    }
}

#[test]
fn it_does_not_hold_the_log_back() {
    let machine = Machine::new();
    let (db, old, kept) = filled(&machine, Place::Memtable);
    old.put("seldom", "written").expect("put");
    let snapshot = db.snapshot();
    db.drop_keyspace("old").expect("drop");
    for round in 0..400 {
        kept.put(format!("{round:05}"), "x".repeat(1000)).expect("put");
    }
    db.flush().expect("flush");
    assert!(db.stats().wal_segments <= 2, "{}", db.stats().wal_segments);
    assert!(snapshot.get(&old, "seldom").expect("get").is_some());
    drop(snapshot);
    // What is left of the log has writes to it, which are skipped.
    let db = {
        drop((db, old, kept));
        machine.open()
    };
    assert_eq!(db.keyspaces(), ["kept"]);
}

#[test]
fn a_crash_at_any_call_finds_all_of_it_or_nothing() {
    let program = |env: &MemEnv| -> esker::Result<()> {
        let db = Db::open(DIRECTORY, crate::common::simulated(env))?;
        let (old, kept) = (db.keyspace("old", Default::default())?, db.keyspace("kept", Default::default())?);
        old.put("table", "1")?;
        db.flush()?;
        let mut batch = db.batch();
        batch.put(&old, "a", "1")?;
        batch.put(&kept, "a", "1")?;
        batch.commit()?;
        kept.put("b", "1")?;
        db.drop_keyspace("old")?;
        kept.put("c", "1")?;
        let new = db.keyspace("old", KeyspaceOptions::default().merge_operator(UInt64Add))?;
        new.merge("n", 1u64.to_le_bytes())?;
        db.flush()
    };
    let whole = MemEnv::new();
    program(&whole).expect("no crash");
    let (mut seen, mut images) = ([0; 3], 0);
    for calls in 0..whole.mutations() {
        for seed in 0..4 {
            let env = MemEnv::new();
            env.crash_after(calls);
            let _ = program(&env);
            let after = match seed {
                0 => env.kill(),
                1 => env.crash(&CrashMode::Random, calls),
                2 => env.crash(&CrashMode::LoseAll, calls),
                _ => env.crash(&CrashMode::Random, calls * 7 + 1),
            };
            let db = Db::open(DIRECTORY, crate::common::simulated(&after))
                .unwrap_or_else(|error| panic!("{calls}: {error}"));
            images += 1;
            let kept: Vec<String> = match db.existing_keyspace("kept") {
                Ok(kept) => pairs(&kept).into_iter().map(|(key, _)| key).collect(),
                Err(_) => Vec::new(),
            };
            match db.existing_keyspace("old") {
                Err(_) => {
                    // Not made yet, or dropped: then nothing written before the drop is missing.
                    seen[0] += 1;
                    assert!(kept.is_empty() || kept.starts_with(&["a".into(), "b".into()]), "{calls}/{seed}: {kept:?}");
                }
                Ok(old) if old.merge_operator().is_some() => {
                    seen[1] += 1;
                    assert!(kept.starts_with(&["a".into(), "b".into()]), "{calls}/{seed}: {kept:?}");
                    assert!(pairs(&old).iter().all(|(key, _)| key == "n"), "{calls}/{seed}");
                }
                Ok(old) => {
                    seen[2] += 1;
                    let old: Vec<String> = pairs(&old).into_iter().map(|(key, _)| key).collect();
                    assert_eq!(old.contains(&"a".to_owned()), kept.contains(&"a".to_owned()), "half a batch");
                    assert!(!kept.contains(&"b".to_owned()) || old == ["a", "table"], "{calls}/{seed}: {old:?}");
                    assert!(!kept.contains(&"c".to_owned()), "the drop was there before");
                }
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 3), "{seen:?} of {images}");
}

#[test]
fn on_a_full_disk_it_stays_and_goes_later() {
    for calls in 0..6 {
        let faults = Arc::new(FaultEnv::new(Arc::new(MemEnv::new())));
        let options = || Options::default().env(faults.clone()).background_threads(0).wal_segment_bytes(1 << 14);
        let db = Db::open(DIRECTORY, options()).expect("open");
        let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
        old.put("a", "1").expect("put");
        db.flush().expect("flush");
        old.put("b", "1").expect("put");
        let class = if calls % 2 == 0 { Class::Create } else { Class::Append };
        faults.add(
            Rule::new(class, calls / 2, Action::Fail(ErrorKind::StorageFull)).on_names_with(if calls / 2 == 0 {
                "MANIFEST"
            } else {
                "CURRENT"
            }),
        );
        let before = faults.fired();
        let result = db.drop_keyspace("old");
        if faults.fired() == before {
            continue;
        }
        assert!(result.is_err_and(|error| error.is_disk_full()), "{calls}");
        assert_eq!(pairs(&old).len(), 2, "it is still there");
        old.put("c", "1").and_then(|()| kept.put("c", "1")).expect("writes go on");
        db.flush().expect("flush");
        db.compact().expect("compact");
        assert_eq!(pairs(&old).len(), 3);
        faults.clear();
        db.drop_keyspace("old").expect("there is space again");
        assert!(is_dropped(old.get("a")));
        drop((db, old, kept));
        assert_eq!(Db::open(DIRECTORY, options()).expect("open").keyspaces(), ["kept"]);
    }
}

/// Holds up a compaction at its first entry until it is released, and counts the entries.
#[derive(Default)]
struct State {
    entered: AtomicU64,
    is_open: (Mutex<bool>, Condvar),
}

struct Gate(Arc<State>);

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn decide(&self, _key: &[u8], _value: &[u8]) -> Decision {
        self.0.entered.fetch_add(1, Relaxed);
        let mut is_open = self.0.is_open.0.lock().unwrap();
        while !*is_open {
            is_open = self.0.is_open.1.wait(is_open).unwrap();
        }
        Decision::Keep
    }
}

#[test]
fn it_waits_for_no_compaction_and_ends_that_of_the_keyspace() {
    const ENTRIES: u64 = 200_000;
    let db = Db::open(DIRECTORY, Options::default().env(Arc::new(MemEnv::new()))).expect("open");
    let gate = Arc::new(State::default());
    let options = KeyspaceOptions::default().compaction_filter(Gate(Arc::clone(&gate)));
    let old = db.keyspace("old", options).expect("a keyspace");
    for round in 0..2 {
        old.ingest((0..ENTRIES).map(|n| (format!("{n:08}"), format!("{round}")))).expect("ingest");
    }
    let compacting = old.clone();
    let thread = std::thread::spawn(move || compacting.compact());
    wait_until("the compaction has begun", || gate.entered.load(Relaxed) > 0);
    // It stands still, with the lock of the background work.
    keyspace(&db, "other").put("a", "1").expect("put");
    db.drop_keyspace("other").expect("drop");
    keyspace(&db, "other").put("a", "2").expect("put");
    db.drop_keyspace("old").expect("drop");
    assert_eq!(db.keyspaces(), ["other"]);
    *gate.is_open.0.lock().unwrap() = true;
    gate.is_open.1.notify_all();
    thread.join().expect("no panic").expect("a compaction that was given up is no failure");
    assert!(gate.entered.load(Relaxed) < ENTRIES / 2, "it went on: {}", gate.entered.load(Relaxed));
    assert!(is_dropped(old.get("a")));
    drop(old);
    db.wait_idle().and_then(|()| db.verify()).expect("whole");
    wait_until("its files are gone", || db.stats().table_bytes == 0 || db.wait_idle().is_err());
}

#[test]
fn a_repair_with_the_manifest_does_not_bring_it_back() {
    let machine = Machine::new();
    let (db, old, kept) = filled(&machine, Place::UpperRun);
    old.put("in the log", "1").and_then(|()| kept.put("in the log", "1")).expect("put");
    let snapshot = db.snapshot();
    db.drop_keyspace("old").expect("drop");
    let before = tables(&machine);
    // Its tables are still there.
    let after = machine.env.kill();
    drop((snapshot, db, old, kept));
    let table =
        after.files().into_iter().filter(|path| path.extension().is_some_and(|it| it == "table")).max().unwrap();
    assert!(after.flip_bit(&table, 40, 1) && before >= 3, "{before}");
    let options = || Options::default().env(Arc::new(after.clone())).background_threads(0);
    Db::repair(DIRECTORY, options()).expect("repair");
    let db = Db::open(DIRECTORY, options()).expect("open");
    assert_eq!(db.keyspaces(), ["kept"]);
    assert!(db.existing_keyspace("kept").unwrap().get("in the log").unwrap().is_some());
}

/// Only the manifest says that it was dropped.
#[test]
fn a_repair_without_a_manifest_brings_it_back() {
    for in_tables in [true, false] {
        let machine = Machine::new();
        let (db, old, kept) = filled(&machine, Place::UpperRun);
        let snapshot = db.snapshot();
        let log_only = keyspace(&db, "log only");
        for keyspace in [&old, &kept, &log_only] {
            keyspace.put("in the log", "1").expect("put");
        }
        let (old_id, log_only_id) = (old.id(), log_only.id());
        db.drop_keyspace("old").and_then(|()| db.drop_keyspace("log only")).expect("drop");
        if !in_tables {
            drop(snapshot);
            db.wait_idle().expect("its files go");
        }
        db.sync().expect("sync");
        let after = machine.env.kill();
        for path in after.files() {
            if path
                .file_name()
                .is_some_and(|name| name == "CURRENT" || name.as_encoded_bytes().starts_with(b"MANIFEST"))
            {
                esker::env::Env::remove(&after, &path).expect("remove");
            }
        }
        let options = || Options::default().env(Arc::new(after.clone())).background_threads(0);
        Db::repair(DIRECTORY, options()).expect("repair");
        let db = Db::open(DIRECTORY, options()).expect("open");
        let named = |name: &str| db.existing_keyspace(name).map(|keyspace| pairs(&keyspace).len());
        assert_eq!(named("kept").expect("there"), 3);
        assert_eq!(named(&format!("recovered-{log_only_id}")).expect("there"), 1, "no table says its name");
        match in_tables {
            true => assert_eq!(named("old").expect("there"), 3),
            false => {
                assert!(named("old").is_err(), "nothing says its name any more");
                assert_eq!(named(&format!("recovered-{old_id}")).expect("there"), 3, "the log still has all of it");
            }
        }
    }
}

#[test]
fn a_handle_opened_read_only_keeps_it_and_drops_nothing() {
    let machine = Machine::new();
    let (db, _, _) = filled(&machine, Place::UpperRun);
    let reader = Db::open_read_only(DIRECTORY, machine.options()).expect("open");
    let old = reader.existing_keyspace("old").expect("there");
    assert!(matches!(reader.drop_keyspace("old"), Err(Error::ReadOnly { .. })));
    assert_eq!(pairs(&old).len(), 2);
    db.drop_keyspace("old").expect("drop");
    assert_eq!(pairs(&old).len(), 2, "it sees the state before");
    assert_eq!(Db::open_read_only(DIRECTORY, machine.options()).expect("open").keyspaces(), ["kept"]);
}

#[test]
fn a_checkpoint_has_it_or_not() {
    let machine = Machine::new();
    let (db, _, _) = filled(&machine, Place::Memtable);
    db.checkpoint("/before").expect("checkpoint");
    db.drop_keyspace("old").expect("drop");
    db.checkpoint("/after").expect("checkpoint");
    let names = |directory: &str| Db::open(Path::new(directory), machine.options()).expect("open").keyspaces();
    assert_eq!((names("/before"), names("/after")), (vec!["kept".into(), "old".into()], vec!["kept".into()]));
}

#[test]
fn clear_empties_and_keeps_the_keyspace() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, old, kept) = filled(&machine, place);
        let snapshot = db.snapshot();
        old.clear().expect("clear");
        assert_eq!((pairs(&old).len(), snapshot.iter(&old).count(), pairs(&kept).len()), (0, 2, 2));
        old.put("new", "1").expect("put");
        drop(snapshot);
        db.compact().expect("compact");
        assert_eq!(pairs(&old), [("new".to_owned(), "1".to_owned())]);
    }
}

#[test]
fn counters_of_the_database_never_go_back() {
    let machine = Machine::new();
    let (db, old, kept) = filled(&machine, Place::LastRun);
    (0..5).for_each(|_| drop((old.get("a").expect("get"), kept.get("a").expect("get"))));
    let before = db.stats().tables_searched;
    db.drop_keyspace("old").expect("drop");
    assert!(before >= 10 && db.stats().tables_searched == before, "{before}");
}
