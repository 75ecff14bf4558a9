//! Panics in the middle of work, of what is under the engine: in background threads, and in those
//! of the program that sync the log.

use crate::common::{count, keyspace, simulated, synced, wait_until};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Error, Keyspace, Options, WriteOptions};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn options(env: impl esker::env::Env + 'static, threads: usize) -> Options {
    let small = simulated(env).write_buffer_bytes(64 << 10).target_file_bytes(64 << 10);
    small.background_threads(threads)
}

/// All over the order of keys, so that tables overlap.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Writes until that is refused. How many were acknowledged.
fn write_until_refused(k: &Keyspace, what: &str, fault: &FaultEnv) -> (u32, Error) {
    let k = k.clone();
    let writer = std::thread::spawn(move || {
        let refused = |number| k.put(key(number), [5; 1000]).err().map(|error| (number, error));
        (0..20_000).find_map(refused)
    });
    // Nobody who waits for the thread that panicked waits for ever.
    wait_until("the writes return", || writer.is_finished());
    let found = writer.join().unwrap();
    found.unwrap_or_else(|| panic!("{what}: all writes succeeded; {} panics", fault.fired()))
}

/// The background thread, or one that merges for it, panics in a call of this kind on this kind of
/// file, after a number of such calls. Writing ends with an error that says why, also for those who
/// were waiting; reads, snapshots and scans go on; everything that was acknowledged is there after
/// the next open.
#[test]
fn a_panic_in_the_background_ends_writing_and_nothing_else() {
    let places = [
        (Class::Create, ".table", 0),
        (Class::Create, ".table", 9),
        (Class::Append, ".table", 0),
        (Class::Append, ".table", 30),
        (Class::Sync, ".table", 2),
        (Class::Append, "MANIFEST", 1),
        (Class::Sync, "MANIFEST", 2),
        (Class::Remove, ".table", 0),
    ];
    for (threads, (class, names, nth)) in [1, 3].into_iter().flat_map(|threads| places.map(|place| (threads, place))) {
        let what = format!("{threads} threads, {class:?} {nth} of {names}");
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let db = Db::open("/db", options(fault.clone(), threads)).unwrap();
        let k = keyspace(&db, "k");
        fault.add(Rule::new(class, nth, Action::Panic).on_names_with(names));
        let (acknowledged, error) = write_until_refused(&k, &what, &fault);
        assert!(matches!(error, Error::ReadOnly { .. }), "{what}: {error:?}");
        assert!(!db.health().writable && db.health().problem.is_some(), "{what}: {:?}", db.health());
        for refused in [k.put("late", "v"), db.flush(), db.compact(), db.wait_idle(), k.compact(), db.sync()] {
            assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{what}: {refused:?}");
        }
        let snapshot = db.snapshot();
        assert!((0..acknowledged).all(|number| snapshot.get(&k, key(number)).unwrap().is_some()), "{what}");
        let seen = count(&k) as u32;
        assert!(seen == acknowledged, "{what}: {seen} of {acknowledged}");
        drop(snapshot);
        let closing = std::thread::spawn(move || {
            drop(k);
            db.close()
        });
        wait_until("the close returns", || closing.is_finished());
        let _ = closing.join().unwrap();
        let db = Db::open("/db", options(env, threads)).unwrap();
        let k = keyspace(&db, "k");
        assert!((0..acknowledged).all(|number| k.get(key(number)).unwrap().is_some()), "{what}");
        k.put("late", "v").unwrap();
        db.compact().unwrap();
        db.verify().unwrap();
    }
}

/// Something that syncs the log.
type Call = fn(&Db, &Keyspace) -> esker::Result<()>;

/// Seen: a handle that said it was healthy, and took writes, until the next sync failed. Trigger:
/// an environment that panics in a sync of the log, in a thread of the program. Cost: what was
/// acknowledged meanwhile, which no sync could make durable any more.
#[test]
fn a_panic_in_a_sync_of_the_log_ends_writing_at_once() {
    // Those with another keyspace that has writes: a flush of one syncs the log for the others. A
    // flush of the only one syncs a link of the log.
    let calls: [(&str, bool, Call); 9] = [
        ("a write", true, |_, k| k.put_with("b", "2", &synced())),
        ("a conditional write that declines", true, |_, k| k.put_if_absent_with("a", "2", &synced()).map(drop)),
        ("a sync", true, |db, _| db.sync()),
        ("a flush", true, |db, _| db.flush()),
        ("a flush of the only keyspace", false, |db, _| db.flush()),
        ("a checkpoint", true, |db, _| db.checkpoint("/copy")),
        ("an ingest", true, |_, k| k.ingest([("z", "3")]).map(drop)),
        ("a drop of a keyspace", true, |db, _| db.drop_keyspace("other")),
        ("a close", true, |db, _| db.clone().close()),
    ];
    for (what, has_others, call) in calls {
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let db = Db::open("/db", simulated(fault.clone()).wal_segment_bytes(4096)).unwrap();
        let (k, other) = (keyspace(&db, "k"), keyspace(&db, "other"));
        // More than a segment of the log holds.
        ["a", "aa", "aaa"].iter().for_each(|key| k.put(key, [1; 2000]).unwrap());
        if has_others {
            other.put("a", "1").unwrap();
        }
        fault.add(Rule::new(Class::Sync, 0, Action::Panic).on_names_with(".wal"));
        let interrupted = catch_unwind(AssertUnwindSafe(|| call(&db, &k)));
        assert!(interrupted.is_err() && fault.fired() == 1, "{what}: {interrupted:?}");
        let refused = k.put("late", "v");
        let says_why = |why: &str| why.contains("a panic interrupted a sync");
        assert!(matches!(&refused, Err(Error::ReadOnly { why }) if says_why(why)), "{what}: {refused:?}");
        let health = db.health();
        assert!(!health.writable && health.problem.as_deref().is_some_and(says_why), "{what}: {health:?}");
        assert!(k.get("a").unwrap().is_some(), "{what}");
        drop((k, other, db));
        let db = Db::open("/db", simulated(env)).unwrap();
        let k = keyspace(&db, "k");
        assert!(k.get("aaa").unwrap().is_some() && k.get("late").unwrap().is_none(), "{what}");
    }
}

/// Seen: a handle that took writes. Trigger: an environment that panics in another call by which
/// something becomes durable, in a thread of the program. Cost: a database that did not open, where
/// tables were removed that the manifest names, or what was written behind the close of the log was
/// synced; or synced writes, where the log went on in a segment without its link.
#[test]
fn a_panic_where_something_becomes_durable_ends_writing_at_once() {
    let flush: Call = |db, _| db.flush();
    let unlogged_flush: Call = |db, k| {
        k.put_with("z", "3", &WriteOptions::new().disable_wal(true))?;
        db.flush()
    };
    let calls: [(&str, Class, &str, Call); 13] = [
        ("a flush", Class::AnyMutating, "MANIFEST-", flush),
        ("an ingest", Class::AnyMutating, "MANIFEST-", |_, k| k.ingest([("z", "3")]).map(drop)),
        ("a new manifest of an ingest", Class::Create, "MANIFEST-", |_, k| k.ingest([("z", "3")]).map(drop)),
        ("a new manifest of a flush", Class::Create, "MANIFEST-", unlogged_flush),
        ("the old manifest of an ingest", Class::Remove, "MANIFEST-", |_, k| k.ingest([("z", "3")]).map(drop)),
        ("the old manifest of a flush", Class::Remove, "MANIFEST-", unlogged_flush),
        ("the old manifest of a rename", Class::Remove, "MANIFEST-", |db, _| keyspace(db, "other").rename("another")),
        ("a new manifest of a drop", Class::Create, "MANIFEST-", |db, _| db.drop_keyspace("k")),
        ("a compaction", Class::AnyMutating, "MANIFEST-", |db, _| db.compact()),
        ("the log of an idle database", Class::LogStore, ".wal", |db, _| db.compact()),
        ("the mark of a close", Class::LogWrite, ".wal", |db, _| db.clone().close()),
        ("a close", Class::AnyMutating, "MANIFEST-", |db, _| db.clone().close()),
        ("large values of a flush", Class::Sync, ".blob", flush),
    ];
    for (what, class, file, call) in calls {
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let options = || simulated(fault.clone()).wal_segment_bytes(4 << 20).min_blob_size(3000);
        let db = Db::open("/db", options()).unwrap();
        let k = keyspace(&db, "k");
        // More than a segment of the log holds.
        k.put("a", [1; 2000]).unwrap();
        (0..700u32).for_each(|key| k.put(key.to_be_bytes(), [1; 2000]).unwrap());
        k.put("large", [1; 5000]).unwrap();
        keyspace(&db, "other");
        if class != Class::Sync {
            db.sync().unwrap();
        }
        fault.add(Rule::new(class, 0, Action::Panic).on_names_with(file));
        let interrupted = catch_unwind(AssertUnwindSafe(|| call(&db, &k)));
        assert!(interrupted.is_err() && fault.fired() == 1, "{what}: {interrupted:?}");
        let refused = k.put_with("late", "v", &synced());
        assert!(matches!(&refused, Err(Error::ReadOnly { why }) if why.contains("a panic")), "{what}: {refused:?}");
        assert_eq!(k.get("a").unwrap().map(|value| value.len()), Some(2000), "{what}");
        drop((k, db));
        let db = Db::open("/db", simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let k = keyspace(&db, "k");
        assert!(k.get("a").unwrap().is_some() && k.get("late").unwrap().is_none(), "{what}");
        db.verify().unwrap();
    }
}

/// Seen: a handle that took writes, with tables of no use in the directory, and more after each
/// attempt. Trigger: an environment that panics while tables are made, in a thread of the program.
/// Cost: space, until the next open.
#[test]
fn a_panic_where_tables_are_made_ends_writing_at_once() {
    let calls: [(&str, bool, Call); 4] = [
        ("a flush", true, |db, _| db.flush()),
        ("a compaction", false, |db, _| db.compact()),
        ("a compaction of a keyspace", false, |_, k| k.compact()),
        ("a compaction of a range", false, |_, k| k.compact_range(..)),
    ];
    for (call_name, flushes, call) in calls {
        for class in [Class::Create, Class::Append, Class::Sync, Class::Open] {
            let what = format!("{call_name}, {class:?}");
            let env = MemEnv::new();
            let fault = FaultEnv::new(Arc::new(env.clone()));
            let db = Db::open("/db", simulated(fault.clone())).unwrap();
            let k = keyspace(&db, "k");
            for _ in 0..2 {
                ["a", "b"].iter().for_each(|key| k.put(key, [1; 2000]).unwrap());
                db.flush().unwrap();
            }
            if flushes {
                k.put("c", "1").unwrap();
            }
            fault.add(Rule::new(class, 0, Action::Panic).on_names_with(".table"));
            let interrupted = catch_unwind(AssertUnwindSafe(|| call(&db, &k)));
            assert!(interrupted.is_err() && fault.fired() == 1, "{what}: {interrupted:?}");
            for refused in [k.put("late", "v"), db.flush(), k.compact()] {
                assert!(
                    matches!(&refused, Err(Error::ReadOnly { why }) if why.contains("a panic")),
                    "{what}: {refused:?}"
                );
            }
            assert!(!db.health().writable && k.get("a").unwrap().is_some(), "{what}");
            drop((k, db));
            let db = Db::open("/db", simulated(env.clone())).unwrap();
            let k = keyspace(&db, "k");
            assert!(k.get("a").unwrap().is_some() && k.get("late").unwrap().is_none(), "{what}");
            let tables = env.files().iter().filter(|path| path.extension().is_some_and(|end| end == "table")).count();
            assert_eq!(tables as u64, db.stats().table_files, "{what}");
        }
    }
}

/// Seen: a handle that took writes, and flushed once more what the manifest named already: merges
/// counted twice. Trigger: an environment that panics where what is held back is given up for a
/// manifest, in a thread of the program.
#[test]
fn a_panic_between_a_manifest_and_what_it_names_ends_writing_at_once() {
    let env = MemEnv::new();
    let fault = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open("/db", simulated(fault.clone()).wal_segment_bytes(1 << 20)).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("a", "1", &WriteOptions::new().disable_wal(true)).unwrap();
    fault.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("MANIFEST-"));
    fault.add(Rule::new(Class::Remove, 0, Action::Panic).on_names_with("RESERVE"));
    assert!(catch_unwind(AssertUnwindSafe(|| db.flush())).is_err() && fault.fired() == 2);
    let refused = k.put("late", "v");
    assert!(matches!(&refused, Err(Error::ReadOnly { why }) if why.contains("a panic")), "{refused:?}");
}
