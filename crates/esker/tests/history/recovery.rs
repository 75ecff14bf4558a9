//! Opening: after a clean close, after a death, after an attempt that was itself cut short, and
//! where it must be refused.

use crate::common::{Scratch, count, keyspace, simulated, synced};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::{StringAppend, UInt64Add};
use esker::{Clock, Db, Error, KeyspaceOptions, ManualClock, Options, Ttl};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Seen: "the database was closed with its log ending at offset ..." although nothing was damaged.
/// Trigger: a clean close, then an open that failed behind the start of its log segment. Cost: a
/// database that would not open again, with all data in place.
#[test]
fn an_open_that_fails_after_a_clean_close_can_be_tried_again() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    keyspace(&db, "k").put_with("a", "1", &synced()).unwrap();
    db.close().unwrap();
    for names in ["MANIFEST", "CURRENT", "MANIFEST", "MANIFEST"] {
        let fault = FaultEnv::new(Arc::new(mem.clone()));
        fault.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(names));
        assert!(Db::open("/db", simulated(fault)).is_err());
    }
    let db = Db::open("/db", simulated(mem)).unwrap();
    assert!(keyspace(&db, "k").get("a").unwrap().is_some());
}

/// Seen: synced writes gone with the database's whole directory. Trigger: a first open that made
/// several levels of directories and failed to sync the outermost of them, a second that succeeded,
/// then a power loss. Cost: everything.
#[test]
fn an_open_that_could_not_sync_a_new_directory_can_be_tried_again() {
    for failing in 0..8 {
        let mem = MemEnv::default();
        let fault = FaultEnv::new(Arc::new(mem.clone()));
        fault.add(Rule::new(Class::SyncDir, failing, Action::Fail(ErrorKind::Other)));
        let first = Db::open("/new/and/deep/db", simulated(fault.clone()));
        assert_eq!(first.is_err(), fault.fired() > 0, "directory sync {failing}");
        drop(first);
        let db = Db::open("/new/and/deep/db", simulated(mem.clone())).unwrap();
        keyspace(&db, "k").put_with("a", "1", &synced()).unwrap();
        let db = Db::open("/new/and/deep/db", simulated(mem.crash(&CrashMode::LoseAll, 0))).unwrap();
        assert!(keyspace(&db, "k").get("a").unwrap().is_some(), "directory sync {failing}");
    }
}

/// As above, with the power going at every single call of the first, second and third attempt.
#[test]
fn a_reopening_after_a_clean_close_may_lose_power_several_times_in_a_row() {
    let closed = MemEnv::default();
    let db = Db::open("/db", simulated(closed.clone())).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    db.close().unwrap();
    for calls in 0.. {
        let mut all_passed = true;
        let mut image = closed.crash(&CrashMode::LoseAll, 0);
        for attempt in 0..3u64 {
            image.crash_after(calls);
            all_passed &= Db::open("/db", simulated(image.clone())).is_ok();
            image = image.crash(&CrashMode::Random, calls * 3 + attempt);
        }
        let db = Db::open("/db", simulated(image)).unwrap();
        assert!(keyspace(&db, "k").get("a").unwrap().is_some(), "{calls} calls each");
        if all_passed {
            break;
        }
    }
}

/// Seen: half a batch. Trigger: power loss between the flushes of two keyspaces that a batch had
/// written to, without a sync in between: one half was in a table, the other in a log that was not
/// on the device. Cost: atomicity.
#[test]
fn power_loss_between_two_flushes_does_not_tear_a_batch() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    let mut batch = db.batch();
    batch.put(&a, "x", "1").unwrap();
    batch.put(&b, "x", "1").unwrap();
    batch.commit().unwrap();
    let second_table = Rule::new(Class::Create, 1, Action::Fail(ErrorKind::Other)).on_names_with(".table");
    fault.add(second_table.from_then_on());
    assert!(db.flush().is_err());
    let db = Db::open("/db", simulated(mem.crash(&CrashMode::LoseAll, 0))).unwrap();
    let read = |name| keyspace(&db, name).get("x").unwrap().map(|value| value.to_vec());
    assert_eq!(read("a"), read("b"));
}

/// Seen: a database that would not open. Trigger: several segments that were not synced at a power
/// loss, then another power loss while the first recovery prepared its segment in the file of one
/// that its own chain still led through. Cost: everything.
#[test]
fn a_recovery_that_loses_power_leaves_what_the_next_one_needs() {
    let options = |env| simulated(env).wal_segment_bytes(4096);
    for seed in 0..120 {
        let mem = MemEnv::default();
        let db = Db::open("/db", options(mem.clone())).unwrap();
        let k = keyspace(&db, "k");
        k.put_with("a", "1", &synced()).unwrap();
        for i in 0..40 {
            k.put(format!("{i}"), vec![1u8; 600]).unwrap();
        }
        let found = mem.crash(&CrashMode::Random, seed);
        for calls in 3.. {
            let image = found.crash(&CrashMode::KeepAll, 0);
            image.crash_after(calls);
            if Db::open("/db", options(image.clone())).is_ok() {
                break;
            }
            let again = Db::open("/db", options(image.crash(&CrashMode::LoseAll, 0)));
            let db = again.unwrap_or_else(|error| panic!("seed {seed}, {calls} calls: {error}"));
            assert!(keyspace(&db, "k").get("a").unwrap().is_some(), "seed {seed}, {calls} calls");
        }
    }
}

/// Seen: "the header of log segment 2 is broken", although nothing was damaged. Trigger: a clean
/// close; an open that failed behind the start of its log segment; a second open, which gave that
/// segment up and prepared its file for another; and power loss in the middle of that, with the old
/// link still in the file. Cost: a database that would not open, with all data in place.
#[test]
fn a_segment_given_up_may_be_torn_while_it_is_prepared_again() {
    let options = |env| simulated(env).wal_segment_bytes(4096);
    let mem = MemEnv::default();
    let db = Db::open("/db", options(mem.clone())).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    db.close().unwrap();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    fault.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("MANIFEST"));
    let failed = simulated(MemEnv::default()).wal_segment_bytes(4096).env(Arc::new(fault));
    assert!(Db::open("/db", failed).is_err());
    for calls in 0..25 {
        let image = mem.crash(&CrashMode::KeepAll, 0);
        let db = Db::open("/db", options(image.clone())).unwrap();
        let k = keyspace(&db, "k");
        image.crash_after(image.mutations() + calls);
        for i in 0..12 {
            if k.put(format!("{i}"), vec![1u8; 600]).is_err() {
                break;
            }
        }
        for seed in 0..60 {
            let opened = Db::open("/db", options(image.crash(&CrashMode::Random, seed)));
            let db = opened.unwrap_or_else(|error| panic!("{calls} calls, seed {seed}: {error}"));
            assert!(keyspace(&db, "k").get("a").unwrap().is_some(), "{calls} calls, seed {seed}");
        }
    }
}

/// Seen: the whole database was gone. Trigger: a database made several directories deep, and power
/// loss: only the last directory's name was durable. Cost: every sync write.
#[test]
fn a_database_made_several_directories_deep_is_there_after_power_loss() {
    let mem = MemEnv::default();
    let db = Db::open("/one/two/three", simulated(mem.clone())).unwrap();
    keyspace(&db, "k").put_with("a", "1", &synced()).unwrap();
    db.checkpoint("/four/five").unwrap();
    let after = mem.crash(&CrashMode::LoseAll, 0);
    for directory in ["/one/two/three", "/four/five"] {
        let db = Db::open(directory, simulated(after.clone()).create_if_missing(false)).unwrap();
        assert!(keyspace(&db, "k").get("a").unwrap().is_some(), "{directory}");
    }
}

/// Seen: entries with time left were gone for good. Trigger: a machine whose clock stood years
/// ahead when it opened a database that had not been closed, and was then put right: what the log
/// held was written to tables without what seemed to have expired. Cost: synced writes.
#[test]
fn a_clock_far_ahead_at_an_open_costs_no_entry() {
    let env = MemEnv::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let open = || Db::open("/db", simulated(env.clone()).clock(clock.clone())).unwrap();
    let sessions = |db: &Db| {
        let options = KeyspaceOptions::default()
            .ttl(Ttl::Enabled { default: Some(Duration::from_secs(3600)) })
            .merge_operator(UInt64Add);
        db.keyspace("sessions", options).unwrap()
    };
    let db = open();
    sessions(&db).put_with("a", 5u64.to_le_bytes(), &synced()).unwrap();
    sessions(&db).merge_with("a", 2u64.to_le_bytes(), &synced()).unwrap();
    drop(db);
    let right = clock.now_ms();
    clock.set(right + 10 * 365 * 86_400_000);
    let db = open();
    assert!(sessions(&db).get("a").unwrap().is_none(), "it has expired, as far as the clock can tell");
    drop(db);
    clock.set(right);
    let value = sessions(&open()).get("a").unwrap();
    assert_eq!(value.as_deref(), Some(&7u64.to_le_bytes()[..]));
}

/// A second open is refused, names the holder, and becomes possible with a close, though other
/// handles of the database still live.
#[test]
fn a_second_open_is_refused_and_names_the_holder() {
    let scratch = Scratch::new("second-open");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    for _ in 0..2 {
        match Db::open(scratch.path(), Options::default()) {
            Err(Error::Locked { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
    }
    db.close().unwrap();
    let second = Db::open(scratch.path(), Options::default()).unwrap();
    assert!(matches!(k.put("b", "2"), Err(Error::ReadOnly { .. })));
    assert!(k.get("a").unwrap().is_some());
    assert!(keyspace(&second, "k").get("b").unwrap().is_none());
}

/// Seen: a lock file and a log among somebody's photographs. Trigger: a mistyped path. Cost: trust.
#[test]
fn a_directory_with_foreign_files_is_refused_and_left_alone() {
    let scratch = Scratch::new("foreign");
    std::fs::create_dir_all(scratch.path()).unwrap();
    std::fs::write(scratch.path().join("holiday.jpg"), b"beach").unwrap();
    let before = scratch.contents();
    assert!(matches!(Db::open(scratch.path(), Options::default()), Err(Error::InvalidArgument { .. })));
    assert!(matches!(Db::open_read_only(scratch.path(), Options::default()), Err(Error::NotFound { .. })));
    assert_eq!(scratch.contents(), before);
}

/// What a recovery writes is as small as what a flush writes: deletes go where nothing is below
/// them, and operands are combined. And it needs no log any more.
#[test]
fn a_recovery_writes_what_a_flush_would_and_leaves_no_older_segment() {
    let env = MemEnv::new();
    let open = || Db::open("/db", simulated(env.clone())).unwrap();
    let joining = || KeyspaceOptions::default().merge_operator(StringAppend::new(","));
    let db = open();
    let k = db.keyspace("k", joining()).unwrap();
    k.put("gone", "1").unwrap();
    k.delete("gone").unwrap();
    // Onto a value of that length, operands are kept apart in memory.
    k.put("long", "x".repeat(2000)).unwrap();
    (0..5).for_each(|_| k.merge("long", "y").unwrap());
    drop((k, db));
    let db = open();
    let stats = db.stats();
    let found = (stats.keyspaces[0].entries, stats.keyspaces[0].memtable_entries, stats.wal_segments);
    assert_eq!(found, (1, 0, 1), "{stats}");
    let k = db.keyspace("k", joining()).unwrap();
    assert_eq!(k.get("gone").unwrap(), None);
    assert_eq!(k.get("long").unwrap().as_deref(), Some(format!("{},y,y,y,y,y", "x".repeat(2000)).as_bytes()));
}

/// The log of one long memtable, replayed where memtables are short. Trap: deleted ranges take no
/// room in the arena of a memtable.
#[test]
fn a_log_is_replayed_into_memtables_of_the_length_that_is_set_now() {
    let mem = MemEnv::new();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db, "k");
    (0..4000u32).for_each(|number| k.put(number.to_be_bytes(), "1").unwrap());
    db.flush().unwrap();
    for number in (0..4000u32).step_by(2) {
        k.delete_range(number.to_be_bytes()..(number + 1).to_be_bytes()).unwrap();
    }
    drop(k);
    db.close().unwrap();
    let db = Db::open_read_only("/db", simulated(mem).write_buffer_bytes(16 << 10)).unwrap();
    let memory = db.stats().memory;
    assert!(memory.memtable_bytes < 64 << 10 && memory.immutable_memtable_bytes > 100 << 10, "{memory}");
    assert_eq!(count(&keyspace(&db, "k")), 2000);
}
