//! Closing, whatever the other handles are doing.

use crate::common::{Scratch, keyspace, simulated, unlogged, wait_until};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error, Options};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Panics unless all threads end.
fn join_all<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    wait_until("every call returns", || threads.iter().all(|thread| thread.is_finished()));
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Seen: two writers in one directory. Trigger: a close whose flush failed: it released the lock,
/// but other handles still took writes. Cost: both writers' logs.
#[test]
fn after_a_close_that_failed_no_handle_writes() {
    for threads in [0, 1] {
        let mem = MemEnv::default();
        let fault = FaultEnv::new(Arc::new(mem.clone()));
        let db = Db::open("/db", simulated(fault.clone()).background_threads(threads)).unwrap();
        let k = keyspace(&db, "k");
        let other = db.clone();
        k.put_with("a", "1", &unlogged()).unwrap();
        let no_table = Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table");
        fault.add(no_table.from_then_on());
        assert!(db.close().unwrap_err().is_disk_full());
        let second = Db::open("/db", simulated(mem)).unwrap();
        let refused = [k.put("late", "1"), other.flush(), other.keyspace("new", Default::default()).map(drop)];
        for result in refused {
            assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
        }
        assert!(keyspace(&second, "k").get("late").unwrap().is_none());
    }
}

/// Seen: writes in the log that a power loss took behind a close, which had failed for others; and
/// where the machine lived on, an open that found no room for a table of them. Trigger: a write
/// without log, and a full disk.
#[test]
fn a_close_that_loses_unlogged_writes_closes_the_log() {
    let mem = MemEnv::default();
    let full = |mem: MemEnv| {
        let fault = FaultEnv::new(Arc::new(mem));
        let no_table = Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table");
        fault.add(no_table.from_then_on());
        fault
    };
    let db = Db::open("/db", simulated(full(mem.clone()))).unwrap();
    let k = keyspace(&db, "k");
    k.put("logged", "1").unwrap();
    k.put_with("unlogged", "1", &unlogged()).unwrap();
    drop(k);
    assert!(db.close().unwrap_err().is_disk_full());
    for left in [mem.kill(), mem.crash(&CrashMode::LoseAll, 0)] {
        let db = Db::open("/db", simulated(full(left))).unwrap();
        let k = keyspace(&db, "k");
        assert!(k.get("logged").unwrap().is_some() && k.get("unlogged").unwrap().is_none());
    }
}

/// Seen: `close` never returned. Trigger: another thread that went on writing without log: there
/// was always something more to flush. Cost: a process that does not end.
#[test]
fn a_writer_without_log_does_not_hold_up_a_close() {
    let scratch = Scratch::new("close-beside-writer");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    let written = Arc::new(AtomicU64::new(0));
    let acknowledged = Arc::clone(&written);
    // Goes on until it is refused.
    let writer = std::thread::spawn(move || {
        for number in 0u64.. {
            if k.put_with(number.to_be_bytes(), "v", &unlogged()).is_err() {
                break;
            }
            acknowledged.store(number + 1, Ordering::Relaxed);
        }
    });
    wait_until("the writer is at work", || written.load(Ordering::Relaxed) > 1000);
    let closing = std::thread::spawn(move || db.close());
    wait_until("the close does not wait for the writer", || closing.is_finished());
    closing.join().unwrap().unwrap();
    writer.join().unwrap();
    let acknowledged = written.load(Ordering::Relaxed);
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    assert!(k.get((acknowledged - 1).to_be_bytes()).unwrap().is_some());
    assert!(k.get(acknowledged.to_be_bytes()).unwrap().is_none());
}

/// Writers that wait for room, and callers of everything else that waits, get `ReadOnly` from a
/// close, and get it soon.
#[test]
fn a_close_ends_everything_that_waits() {
    let scratch = Scratch::new("close-beside-waiting");
    let db = Db::open(scratch.path(), Options::default().write_buffer_bytes(64 << 10)).unwrap();
    let k = keyspace(&db, "k");
    // How often each thread has begun a call.
    let calls: Vec<Arc<AtomicU64>> = (0..7).map(|_| Arc::default()).collect();
    let mut uncounted = calls.iter().cloned();
    let mut until_refused = |mut call: Box<dyn FnMut(u64) -> esker::Result<()> + Send>| {
        let begun = uncounted.next().unwrap();
        let mut counted = move |n| {
            begun.store(n, Ordering::Relaxed);
            call(n)
        };
        std::thread::spawn(move || (1..).find_map(|n| counted(n).err()))
    };
    let mut threads = Vec::new();
    for t in 0..3 {
        let k = k.clone();
        threads.push(until_refused(Box::new(move |n| k.put(format!("{t}-{n}"), vec![1u8; 500]))));
    }
    for call in [Db::flush, Db::compact, Db::wait_idle, Db::sync] {
        let db = db.clone();
        threads.push(until_refused(Box::new(move |_| call(&db))));
    }
    let begun = |thread: usize| calls[thread].load(Ordering::Relaxed);
    wait_until("all are at work", || (0..3).all(|writer| begun(writer) > 1000) && (3..7).all(|other| begun(other) > 0));
    db.close().unwrap();
    for error in join_all(threads) {
        assert!(matches!(error, Some(Error::ReadOnly { .. })), "{error:?}");
    }
    drop(k);
    Db::open(scratch.path(), Options::default()).unwrap();
}

/// Seen: every open after a clean close took 0.2 s and more. Trigger: a close with up to a write
/// buffer, or several, in the log only: each open replayed it, those for reading too. Cost: time.
#[test]
fn a_close_leaves_little_to_replay() {
    for (bytes, flushes) in [(100 << 10, false), (8 << 20, true)] {
        let mem = MemEnv::default();
        let options = || Options::default().env(Arc::new(mem.clone())).background_threads(0);
        let db = Db::open("/db", options()).unwrap();
        let k = keyspace(&db, "k");
        for number in 0..bytes / 1000u32 {
            k.put(number.to_be_bytes(), [1; 1000]).unwrap();
        }
        assert_eq!(db.stats().table_files, 0);
        drop(k);
        db.close().unwrap();
        let db = Db::open_read_only("/db", options()).unwrap();
        let stats = db.stats();
        assert_eq!((stats.table_files > 0, stats.keyspaces[0].memtable_entries == 0), (flushes, flushes), "{stats}");
        assert_eq!(keyspace(&db, "k").iter().count(), bytes as usize / 1000);
    }
}

/// Each life leaves a segment, and each open replays all of them: more than four become a table.
/// Fewer do not, or each life of a program that writes little would make one.
#[test]
fn many_short_lives_become_a_table_and_few_do_not() {
    let mem = MemEnv::default();
    let mut tables = Vec::new();
    for life in 0..7u8 {
        let db = Db::open("/db", simulated(mem.clone())).unwrap();
        tables.push(db.stats().table_files);
        keyspace(&db, "k").put([life], "1").unwrap();
        db.close().unwrap();
    }
    assert_eq!(tables, [0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(keyspace(&Db::open("/db", simulated(mem)).unwrap(), "k").iter().count(), 7);
}

/// What is in the log is not lost where the table finds no room: that is no failure of a close.
#[test]
fn a_close_on_a_full_disk_succeeds() {
    let mem = MemEnv::default();
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let options = |env| Options::default().env(env).background_threads(0);
    let db = Db::open("/db", options(Arc::new(fault.clone()))).unwrap();
    let k = keyspace(&db, "k");
    for number in 0..8000u32 {
        k.put(number.to_be_bytes(), [1; 1000]).unwrap();
    }
    let no_table = Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table");
    fault.add(no_table.from_then_on());
    drop(k);
    db.close().unwrap();
    assert!(fault.fired() > 0);
    let db = Db::open("/db", options(Arc::new(mem))).unwrap();
    assert_eq!(keyspace(&db, "k").iter().count(), 8000);
}
