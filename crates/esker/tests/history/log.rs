//! The write-ahead log: what an acknowledged write can rely on.

use crate::common::{Scratch, keyspace, simulated, synced, unlogged};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use esker::{Compression, Db, Error, KeyspaceOptions, Options};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Seen: after a reopening, sync writes were gone. Trigger: a record longer than the segment that
/// lay prepared; that segment kept its place in the order although it was never written to, so that
/// replay took it for the end of the log. Cost: acknowledged sync writes.
#[test]
fn a_record_longer_than_the_prepared_segment_breaks_no_chain() {
    let scratch = Scratch::new("long-record");
    let options = || Options::default().wal_segment_bytes(256 << 10);
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.wait_idle().unwrap();
    k.put("long", vec![7u8; 300 << 10]).unwrap();
    db.wait_idle().unwrap();
    for i in 0..40 {
        k.put_with(format!("s{i}"), vec![1u8; 20 << 10], &synced()).unwrap();
    }
    drop((k, db));
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = keyspace(&db, "k");
    assert_eq!(k.get("long").unwrap().map(|value| value.len()), Some(300 << 10));
    assert!((0..40).all(|i| k.get(format!("s{i}")).unwrap().is_some()));
}

/// Where the child process of the next test finds its directory.
const CHILD: &str = "ESKER_HISTORY_CHILD";
const LAST_WRITES: u32 = 2000;

/// Seen: a database that would not open, or opened without its last writes. Trigger: a writer
/// faster than the preparation of segments, then the death of the process: the writer and the
/// background thread made segments under the same number. Cost: the end of the log.
#[test]
fn a_fast_writer_that_dies_loses_nothing() {
    let options =
        || Options::default().wal_segment_bytes(1 << 20).write_buffer_bytes(4 << 20).compression(Compression::None);
    let value = vec![3u8; 1000];
    if let Ok(directory) = std::env::var(CHILD) {
        let db = Db::open(directory, options()).unwrap();
        let k = keyspace(&db, "k");
        for i in 0..60_000u32 {
            k.put(format!("{:08}", i.wrapping_mul(2_654_435_761) % 100_000_000), &value).unwrap();
        }
        for i in 0..LAST_WRITES {
            let key = format!("z{i:05}");
            if i % 500 == 0 { k.put_with(key, &value, &synced()).unwrap() } else { k.put(key, &value).unwrap() }
        }
        assert_eq!(db.health().problem, None);
        // As a kill does: nothing is dropped.
        std::process::exit(0);
    }
    for round in 0..3 {
        let scratch = Scratch::new("fast-writer");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["log::a_fast_writer_that_dies_loses_nothing", "--exact"])
            .env(CHILD, scratch.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        let db = Db::open(scratch.path(), options()).unwrap();
        let k = keyspace(&db, "k");
        let found = (0..LAST_WRITES).filter(|i| k.get(format!("z{i:05}")).unwrap().is_some()).count();
        assert_eq!(found, LAST_WRITES as usize, "round {round}");
    }
}

/// Seen: a sync write was gone, or two files said to be one segment. Trigger: a kill between the
/// creation of a segment file and its header left an empty file, whose number was given out again.
/// Cost: acknowledged sync writes.
#[test]
fn an_empty_segment_file_left_by_a_kill_gives_its_name_to_nobody() {
    let scratch = Scratch::new("empty-segment");
    let options = || Options::default().background_threads(0).write_buffer_bytes(64 << 10).wal_segment_bytes(1 << 20);
    let db = Db::open(scratch.path(), options()).unwrap();
    keyspace(&db, "k").put_with("a", "1", &synced()).unwrap();
    drop(db);
    std::fs::write(scratch.path().join("000002.wal"), b"").unwrap();
    let db = Db::open(scratch.path(), options()).unwrap();
    db.flush().unwrap();
    keyspace(&db, "k").put_with("b", "2", &synced()).unwrap();
    drop(db);
    let db = Db::open(scratch.path(), options()).unwrap();
    assert!(keyspace(&db, "k").get("a").unwrap().is_some());
    assert!(keyspace(&db, "k").get("b").unwrap().is_some());
}

/// Seen: writes went on behind a record of which only a part was in the log. Trigger: a log write
/// that failed half way. Cost: every later write, which no replay would have reached.
#[test]
fn a_failed_append_ends_writing_until_the_next_open() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db, "k");
    k.put("before", "1").unwrap();
    fault.add(Rule::new(Class::LogStore, 0, Action::Partial { kind: ErrorKind::Other, bytes: 9 }));
    assert!(matches!(k.put("a", "1"), Err(Error::Io { .. })));
    assert!(matches!(k.put("b", "1"), Err(Error::ReadOnly { .. })));
    assert!(!db.health().writable);
    drop((k, db));
    let db = Db::open("/db", simulated(mem)).unwrap();
    assert!(keyspace(&db, "k").get("before").unwrap().is_some());
    assert!(keyspace(&db, "k").get("b").unwrap().is_none());
}

/// Seen: hundreds of empty segment files. Trigger: a segment whose header could not be written:
/// each write tried with another file, and left it. Cost: the rest of the disk, until the next
/// open.
#[test]
fn a_segment_that_cannot_be_prepared_leaves_no_file() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db, "k");
    fault.add(Rule::new(Class::LogWrite, 0, Action::Fail(ErrorKind::StorageFull)).from_then_on());
    let refused = (0..200).filter(|i| k.put(format!("{i}"), vec![0; 1000]).is_err()).count();
    assert!(refused > 100, "{refused}");
    let segments = mem.files().iter().filter(|path| path.extension().is_some_and(|end| end == "wal")).count();
    assert_eq!(segments, 1);
    fault.clear();
    k.put("after", vec![0; 1000]).unwrap();
}

/// Seen: an acknowledged sync write was lost together with one that had failed. Trigger: a failed
/// sync, then a reopening in the same life of the machine: the system still showed the pages that
/// it had given up, and the next sync did not miss them. Cost: acknowledged sync writes, or a
/// database that would not open.
#[test]
fn sync_writes_after_a_failed_sync_and_a_reopening_survive_power_loss() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("a", "1", &synced()).unwrap();
    mem.fail_sync(0, SyncFailure::DropPending);
    assert!(k.put_with("b", "2", &synced()).is_err());
    drop((k, db));
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db, "k");
    let seen = k.get("b").unwrap().is_some();
    k.put_with("c", "3", &synced()).unwrap();
    let db = Db::open("/db", simulated(mem.crash(&CrashMode::LoseAll, 0))).unwrap();
    let k = keyspace(&db, "k");
    assert!(k.get("a").unwrap().is_some() && k.get("c").unwrap().is_some());
    assert_eq!(k.get("b").unwrap().is_some(), seen, "what a reader saw before a later sync cannot go away after it");
}

/// Seen: writes without log were gone after a close that reported success. Trigger: `close` with
/// such writes in memory. Cost: all of them.
#[test]
fn writes_without_log_survive_a_close_and_are_lost_only_unflushed() {
    for threads in [0, 1] {
        let mem = MemEnv::default();
        let options = |env: MemEnv| simulated(env).background_threads(threads);
        let db = Db::open("/db", options(mem.clone())).unwrap();
        let k = keyspace(&db, "k");
        k.put_with("flushed", "1", &unlogged()).unwrap();
        db.flush().unwrap();
        k.put_with("closed", "2", &unlogged()).unwrap();
        drop(k);
        db.close().unwrap();

        let mem = mem.crash(&CrashMode::LoseAll, 0);
        let db = Db::open("/db", options(mem.clone())).unwrap();
        let k = keyspace(&db, "k");
        k.put("logged", "3").unwrap();
        k.put_with("dropped", "4", &unlogged()).unwrap();
        drop((k, db));

        let db = Db::open("/db", options(mem)).unwrap();
        let k = keyspace(&db, "k");
        for (key, there) in [("flushed", true), ("closed", true), ("logged", true), ("dropped", false)] {
            assert_eq!(k.get(key).unwrap().is_some(), there, "{key}");
        }
    }
}

/// A batch on two keyspaces is in both or in neither, wherever the process dies and whatever was
/// flushed in between; what was acknowledged is there.
#[test]
fn a_batch_on_two_keyspaces_is_whole_wherever_the_process_dies() {
    let options = |env: MemEnv| simulated(env).wal_segment_bytes(4096).write_buffer_bytes(4096);
    for calls in 0.. {
        let mem = MemEnv::default();
        let db = Db::open("/db", options(mem.clone())).unwrap();
        let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
        let begin = mem.mutations();
        mem.crash_after(begin + calls);
        let mut acknowledged = 0u64;
        for n in 1..=12u64 {
            let mut batch = db.batch();
            batch.put(&a, "n", n.to_be_bytes()).unwrap();
            batch.put(&b, "n", n.to_be_bytes()).unwrap();
            batch.put(&b, format!("filling {n}"), vec![1; 700]).unwrap();
            if batch.commit().is_err() {
                break;
            }
            acknowledged = n;
        }
        let survived = Db::open("/db", options(mem.kill())).unwrap();
        let read = |name| keyspace(&survived, name).get("n").unwrap().map(|value| value.to_vec());
        assert_eq!(read("a"), read("b"), "after {calls} calls");
        let found = read("a").map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()));
        assert!(found >= acknowledged, "after {calls} calls: {found} of {acknowledged}");
        if !mem.is_dead() {
            assert!(calls > 30, "the test must reach flushes");
            break;
        }
    }
}

/// Seen: a database that had been closed did not open after a power loss. Trigger: a sync of the
/// directory fails that should make the name of a log segment durable, the process dies, and the
/// next one takes the file for another segment. Cost: the file was synced and had no name, and the
/// log ended before it.
#[test]
fn the_name_of_a_log_file_that_was_found_is_not_relied_upon() {
    let options = |env: &MemEnv| simulated(env.clone()).wal_segment_bytes(4096).background_threads(0);
    let fill = |db: &Db| -> esker::Result<()> {
        let k = db.keyspace("k", KeyspaceOptions::default())?;
        (0..8).try_for_each(|n| k.put_with(format!("{n}"), vec![n; 1500], &synced()))
    };
    let segments = |env: &MemEnv| {
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wal");
        env.files().into_iter().filter(is_segment).collect::<BTreeSet<_>>()
    };
    let (mut failed, mut found) = (0, 0);
    for syncs in 0..12 {
        for calls in 0..24 {
            let first = MemEnv::default();
            let db = Db::open("/db", options(&first)).unwrap();
            first.fail_sync_dir(syncs, SyncFailure::DropPending);
            first.crash_after(first.mutations() + calls);
            failed += usize::from(fill(&db).is_err());
            let second = first.kill();
            let left = segments(&second);
            let db = Db::open("/db", options(&second)).unwrap();
            fill(&db).unwrap();
            drop(db);
            found += left.difference(&segments(&second)).count();
            let third = second.crash(&CrashMode::LoseAll, 0);
            let db = Db::open("/db", options(&third)).unwrap_or_else(|error| panic!("{syncs}, {calls}: {error}"));
            let k = keyspace(&db, "k");
            (0..8).for_each(|n| {
                assert_eq!(k.get(format!("{n}")).unwrap().unwrap()[..], vec![n; 1500], "{syncs}, {calls}")
            });
        }
    }
    assert!(failed > 50 && found > 50, "{failed} failed, {found} files that were found are gone");
}

/// Seen: a database that nothing had been written to did not open. Trigger: a creation is cut
/// short, another one fails to sync the directory that has its `CURRENT`, the next process finds
/// that all the same, dies before its own is durable, and the power fails. Cost: a repair.
///
/// An open writes such a `CURRENT` again, and syncs it; its name is synced once more with that of
/// the segment that follows.
#[test]
fn a_creation_that_could_not_sync_current_may_be_cut_short_again() {
    let options = |env: &MemEnv| simulated(env.clone()).wal_segment_bytes(4096).background_threads(0);
    let has_current = |env: &MemEnv| env.files().contains(&PathBuf::from("/db/CURRENT"));
    let cut_short = |calls: u64| {
        let env = MemEnv::default();
        env.crash_after(calls);
        drop(Db::open("/db", options(&env)));
        env.kill()
    };
    // With a segment of the log.
    let left = (0..).map(cut_short).take_while(|env| !has_current(env)).last().unwrap();
    let failed = |syncs: u64| {
        let first = left.kill();
        first.fail_sync_dir(syncs, SyncFailure::DropPending);
        Db::open("/db", options(&first)).is_err().then_some(first)
    };
    let failed: Vec<MemEnv> = (0..).map_while(failed).collect();
    let found = failed.iter().filter(|env| has_current(env)).count();
    assert!(failed.len() > 2 && found == 1, "{} creations failed, {found} with a `CURRENT`", failed.len());
    for ignored in [None, Some(Class::Sync)] {
        let mut lost = 0;
        for (first, calls) in failed.iter().flat_map(|first| (0..40).map(move |calls| (first, calls))) {
            let second = first.kill();
            second.crash_after(second.mutations() + calls);
            let faults = FaultEnv::new(Arc::new(second.clone()));
            ignored.into_iter().for_each(|class| faults.add(Rule::new(class, 0, Action::Ignore)));
            drop(Db::open("/db", options(&second).env(Arc::new(faults))));
            for mode in CrashMode::FIXED {
                let third = second.crash(&mode, 0);
                let opened = Db::open("/db", options(&third));
                let written = opened.map(|db| keyspace(&db, "k").put_with("a", "1", &synced()).unwrap());
                if let (Err(error), None) = (&written, ignored) {
                    panic!("{calls} calls, {mode:?}: {error}");
                }
                lost += usize::from(written.is_err());
            }
        }
        assert_eq!(lost > 0, ignored.is_some(), "{ignored:?}: {lost}");
    }
}

/// A database whose first large value is in the log, not synced. (The name of its blob file was not
/// durable then when these tests were written; it is now.)
fn with_a_new_blob_file() -> (MemEnv, Db) {
    let mem = MemEnv::default();
    let options = simulated(mem.clone()).wal_segment_bytes(4096).min_blob_size(100);
    let db = Db::open("/db", options).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("first", "1", &synced()).unwrap();
    k.put("large", [7; 1000]).unwrap();
    (mem, db)
}

/// What is there after a power loss, which must be whole.
fn after_power_loss(mem: &MemEnv) -> Db {
    let db = Db::open("/db", simulated(mem.crash(&CrashMode::LoseAll, 0))).unwrap();
    db.verify().unwrap();
    assert!(keyspace(&db, "k").get("first").unwrap().is_some());
    db
}

/// Seen: an acknowledged sync write was lost, and a large value before it. Trigger: a sync of the
/// directory that failed for a new log segment; it had given up the name of a blob file as well,
/// and the next one, which succeeded, was taken for a sync of that. Cost: acknowledged sync writes.
#[test]
fn sync_writes_after_a_failed_sync_of_the_directory_survive_power_loss() {
    let (mem, db) = with_a_new_blob_file();
    let k = keyspace(&db, "k");
    mem.fail_sync_dir(0, SyncFailure::DropPending);
    let failed = (0..1000).find_map(|number: u32| k.put(number.to_be_bytes(), [1; 90]).err());
    assert!(failed.is_some(), "the log has not gone on in another segment");
    let acknowledged = k.put_with("last", "2", &synced()).is_ok();
    let seen = after_power_loss(&mem);
    assert_eq!(keyspace(&seen, "k").get("last").unwrap().is_some(), acknowledged);
    // Another handle begins anew.
    drop((k, db));
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("last", "3", &synced()).unwrap();
    let seen = after_power_loss(&mem);
    assert_eq!(keyspace(&seen, "k").get("last").unwrap().as_deref(), Some(&b"3"[..]));
    assert_eq!(keyspace(&seen, "k").get("large").unwrap().map(|value| value.len()), Some(1000));
}

/// Seen: a database that did not open. Trigger: as above, in a flush; the next flush succeeded, and
/// its table referred to a blob file without a name. Cost: everything, until a repair.
#[test]
fn a_flush_after_a_failed_sync_of_the_directory_refers_to_no_file_without_a_name() {
    let (mem, db) = with_a_new_blob_file();
    mem.fail_sync_dir(0, SyncFailure::DropPending);
    assert!(db.flush().is_err());
    let flushed = db.flush();
    let seen = after_power_loss(&mem);
    assert_eq!(keyspace(&seen, "k").get("large").unwrap().is_some(), flushed.is_ok());
    if let Err(error) = flushed {
        assert!(error.to_string().contains("cannot sync the directory"), "{error}");
    }
    // Nothing is tried again and again that cannot succeed.
    assert!(!db.health().writable, "{:?}", db.health());
    assert!(matches!(keyspace(&db, "k").put("a", "1"), Err(Error::ReadOnly { .. })));
}

/// Seen: no flush succeeded any more. Trigger: one moment without descriptors, or on a full disk,
/// or without permission, in which the directory was to be synced. Cost: the handle.
#[test]
fn a_sync_of_the_directory_that_gave_nothing_up_is_tried_again() {
    for kind in [ErrorKind::PermissionDenied, ErrorKind::NotFound, ErrorKind::StorageFull] {
        let faults = FaultEnv::new(Arc::new(MemEnv::new()));
        let options = Options::default().env(Arc::new(faults.clone())).background_threads(0);
        let db = Db::open("/db", options).unwrap();
        let k = keyspace(&db, "k");
        k.put("a", "1").unwrap();
        faults.add(Rule::new(Class::SyncDir, 0, Action::Fail(kind)));
        // What is held back for full disks may make room at once.
        assert!(db.flush().is_err() || kind == ErrorKind::StorageFull, "{kind:?}");
        db.flush().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert!(db.health().writable && k.put("a", "2").is_ok(), "{kind:?}");
    }
}
