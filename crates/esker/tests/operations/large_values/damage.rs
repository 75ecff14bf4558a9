//! Damaged and unreadable blob files, and devices that fail.

use super::{blob_files, keyspace, simulated, synced, value};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Error, KeyspaceOptions, merge::StringAppend};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn flip(mem: &MemEnv, path: &Path, at: usize) {
    let mut bytes = mem.file_bytes(path).unwrap();
    bytes[at] ^= 1;
    mem.set_file_bytes(path, bytes);
}

fn is_at(error: &Error, file: &Path, place: u64) -> bool {
    matches!(error, Error::Corruption { path, offset, .. } if path == file && *offset == place)
}

#[test]
fn damage_harms_one_value_and_names_its_place() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    for (key, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        k.put(key, value(seed, 1000)).unwrap();
    }
    db.compact().unwrap();
    let file = blob_files(&mem, "/db").pop().unwrap();
    // Header, then records of 8 and 1000 bytes: the second value begins at 32 + 1008 + 8.
    let place = 1048;
    flip(&mem, &file, place + 999);
    assert!(is_at(&k.get("b").unwrap_err(), &file, place as u64));
    assert!(is_at(&db.verify().unwrap_err(), &file, place as u64));
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&value(1, 1000)[..]));
    assert_eq!(k.get("c").unwrap().as_deref(), Some(&value(3, 1000)[..]));
    let mut cursor = k.cursor().unwrap();
    cursor.seek_to_first().unwrap();
    assert!(is_at(&cursor.next().unwrap_err(), &file, place as u64));
    assert!(!cursor.valid());
    cursor.next().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"c"[..], &value(3, 1000)[..]));
    assert!(is_at(&cursor.prev().unwrap_err(), &file, place as u64));
    cursor.prev().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &value(1, 1000)[..]));
    drop(cursor);
    // It does not stand in the way of compactions either, as long as they do not copy the value.
    k.put("a", value(4, 1000)).unwrap();
    k.put("c", value(5, 1000)).unwrap();
    db.compact().unwrap();
    db.compact().unwrap();
    assert!(is_at(&k.get("b").unwrap_err(), &file, place as u64));
    k.put("b", value(6, 1000)).unwrap();
    db.compact().unwrap();
    assert_eq!(db.health().problem, None);
    assert_eq!(db.verify().unwrap().large_values, 3);
}

#[test]
fn operands_on_a_damaged_value_are_kept() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = db.keyspace("m", KeyspaceOptions::default().merge_operator(StringAppend::new(","))).unwrap();
    k.put("key", value(1, 1000)).unwrap();
    db.flush().unwrap();
    k.merge("key", "tail").unwrap();
    let file = blob_files(&mem, "/db").pop().unwrap();
    flip(&mem, &file, 50);
    assert!(is_at(&db.compact().unwrap_err(), &file, 40));
    assert!(is_at(&k.get("key").unwrap_err(), &file, 40));
    flip(&mem, &file, 50);
    assert_eq!(k.get("key").unwrap().as_deref(), Some(&[&value(1, 1000)[..], b",tail"].concat()[..]));
    db.compact().unwrap();
    assert_eq!(k.get("key").unwrap().as_deref(), Some(&[&value(1, 1000)[..], b",tail"].concat()[..]));
}

#[test]
fn missing_foreign_and_headless_files_are_refused_at_open() {
    for harm in 0..3 {
        let mem = MemEnv::default();
        let db = Db::open("/db", simulated(mem.clone())).unwrap();
        let k = keyspace(&db);
        k.put("a", value(1, 1000)).unwrap();
        db.flush().unwrap();
        drop(k);
        db.close().unwrap();
        let file = blob_files(&mem, "/db").pop().unwrap();
        match harm {
            0 => esker::env::Env::remove(&mem, &file).unwrap(),
            1 => flip(&mem, &file, 20),
            _ => mem.set_file_bytes(&file, b"esk".to_vec()),
        }
        match Db::open("/db", simulated(mem)) {
            Err(Error::Corruption { path, .. }) => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
    }
}

/// What was synced, or closed, and is damaged in a blob file is damage, not the end of the log.
#[test]
fn damage_behind_a_synced_record_is_no_torn_tail() {
    for closed in [false, true] {
        let mem = MemEnv::default();
        let db = Db::open("/db", simulated(mem.clone())).unwrap();
        let k = keyspace(&db);
        k.put_with("a", value(1, 1000), &synced()).unwrap();
        k.put_with("b", "vouches for what is before it", &synced()).unwrap();
        k.put("c", "c").unwrap();
        drop(k);
        if closed {
            db.close().unwrap()
        } else {
            drop(db)
        }
        let file = blob_files(&mem, "/db").pop().unwrap();
        flip(&mem, &file, 100);
        let error = Db::open("/db", simulated(mem)).unwrap_err();
        assert!(is_at(&error, &file, 40), "{error}");
    }
}

#[test]
fn a_failed_blob_write_fails_one_write() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db);
    let actions = [
        (Class::Create, Action::Fail(ErrorKind::StorageFull)),
        (Class::Append, Action::Fail(ErrorKind::StorageFull)),
        (Class::Append, Action::Partial { kind: ErrorKind::StorageFull, bytes: 5 }),
        (Class::Append, Action::FailAfter(ErrorKind::Other)),
    ];
    for (class, action) in actions {
        for nth in 0..3 {
            fault.clear();
            fault.add(Rule::new(class, nth, action).on_names_with(".blob"));
            let before = fault.fired();
            let result = k.put("a", value(nth, 1000));
            assert_eq!(result.is_err(), fault.fired() > before, "{class:?} {action:?} {nth}: {result:?}");
            assert!(matches!(result, Ok(()) | Err(Error::Io { .. })));
            fault.clear();
            k.put_with("b", value(nth, 1000), &synced()).unwrap();
            assert_eq!(k.get("b").unwrap().as_deref(), Some(&value(nth, 1000)[..]));
        }
    }
    drop((k, db));
    let db = Db::open("/db", simulated(mem)).unwrap();
    assert!(keyspace(&db).get("b").unwrap().is_some());
}

/// A failed sync of a blob file is one of the log: nothing acknowledged rests on it, and it is not
/// tried again.
#[test]
fn a_failed_sync_of_a_blob_file_ends_writing() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db);
    k.put("a", value(1, 1000)).unwrap();
    fault.add(Rule::new(Class::Sync, 0, Action::Fail(ErrorKind::Other)).on_names_with(".blob"));
    assert!(matches!(k.put_with("b", "small", &synced()), Err(Error::Io { .. })));
    assert_eq!(fault.fired(), 1);
    fault.clear();
    assert!(matches!(k.put("c", "1"), Err(Error::ReadOnly { .. })));
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&value(1, 1000)[..]));
}

/// The name of a new file is durable before the log refers to it. A sync of the directory that may
/// have given other names up ends writing; one that gave up nothing, that write alone.
#[test]
fn a_large_value_in_a_file_without_a_durable_name_is_not_written() {
    for (kind, ends_writing) in [(ErrorKind::Other, true), (ErrorKind::StorageFull, false)] {
        let mem = MemEnv::default();
        let fault = FaultEnv::new(Arc::new(mem.clone()));
        let db = Db::open("/db", simulated(fault.clone())).unwrap();
        let k = keyspace(&db);
        fault.add(Rule::new(Class::SyncDir, 0, Action::Fail(kind)));
        assert!(matches!(k.put("a", value(1, 1000)), Err(Error::Io { .. })));
        assert_eq!(fault.fired(), 1);
        fault.clear();
        assert!(!mem.files().iter().any(|path| path.extension().is_some_and(|it| it == "blob")), "{kind}");
        let next = k.put("a", value(2, 1000));
        assert_eq!(matches!(next, Err(Error::ReadOnly { .. })), ends_writing, "{kind}: {next:?}");
        let found = Db::open("/db", simulated(mem.kill())).unwrap();
        assert_eq!(keyspace(&found).get("a").unwrap().is_some(), !ends_writing, "{kind}");
    }
}

/// Found in a review. Trigger: a write fails when the log has its record, while the files that
/// nothing refers to are collected: no memtable refers to its values. Cost: a database that does
/// not open, since the log refers to a file that is gone.
#[test]
fn a_write_that_failed_keeps_its_large_values() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db);
    for number in 0..2 {
        k.put("a", value(number, 1000)).unwrap();
        db.flush().unwrap();
    }
    let reader = k.iter();
    db.compact().unwrap();
    // The tables that were merged go now, which takes long.
    drop(reader);
    fault.add(Rule::new(Class::Remove, 0, Action::Delay(Duration::MAX)).on_names_with(".table"));
    std::thread::scope(|threads| {
        let collects = threads.spawn(|| db.compact());
        while fault.fired() == 0 {
            std::thread::yield_now();
        }
        let mut batch = db.batch();
        // Each in a file of its own: the first one takes no more.
        batch.put(&k, "b", value(1, 20_000)).unwrap();
        batch.put(&k, "c", value(2, 20_000)).unwrap();
        fault.add(Rule::new(Class::LogStore, 0, Action::FailAfter(ErrorKind::Other)));
        fault.add(Rule::new(Class::LogWrite, 0, Action::FailAfter(ErrorKind::Other)));
        let committed = batch.commit();
        fault.clear();
        let _ = collects.join().unwrap();
        assert!(matches!(committed, Err(Error::Io { .. })), "{committed:?}");
    });
    let found = Db::open("/db", simulated(mem.kill())).unwrap();
    for (key, seed) in [("b", 1), ("c", 2)] {
        assert_eq!(keyspace(&found).get(key).unwrap(), Some(value(seed, 20_000).into()), "{key}");
    }
}
