//! Handles that only read, and checkpoints, beside a writer.

use crate::common::{Scratch, keyspace, simulated};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::merge::{Max, UInt64Add};
use esker::{Batch, Db, Error, KeyspaceOptions, Options, Ttl, WriteOptions};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Seen: a read-only handle flushed. Trigger: `wait_idle`, `flush` or `compact` on it, without a
/// background thread. Cost: a second writer in the directory of the first.
#[test]
fn a_read_only_handle_writes_nothing() {
    let scratch = Scratch::new("read-only");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.flush().unwrap();
    k.put("b", "2").unwrap();
    drop((k, db));
    let before = scratch.contents();
    for threads in [0, 1] {
        let options = Options::default().background_threads(threads).write_buffer_bytes(1);
        let db = Db::open_read_only(scratch.path(), options).unwrap();
        let k = db.existing_keyspace("k").unwrap();
        let refused =
            [db.wait_idle(), db.flush(), db.compact(), k.compact(), db.sync(), k.put("c", "3"), k.delete("a")];
        for result in refused.into_iter().chain([db.keyspace("new", Default::default()).map(drop)]) {
            assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
        }
        assert!(!db.health().writable);
        assert_eq!(k.iter().count(), 2);
        drop(k);
        db.close().unwrap();
        assert!(scratch.contents() == before, "files changed: {:?}", scratch.names_ending(""));
    }
}

/// Seen: a commit of an empty batch and a delete of an empty range succeeded on a handle that may
/// not write. Trigger: a read-only handle, or one that had been closed. Cost: a caller that
/// believes it can write.
#[test]
fn every_write_call_on_a_read_only_handle_is_refused() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let numbers = KeyspaceOptions::default()
        .ttl(Ttl::Enabled { default: Some(Duration::from_secs(3600)) })
        .merge_operator(UInt64Add);
    let k = db.keyspace("k", numbers.clone()).unwrap();
    k.put("a", 1u64.to_le_bytes()).unwrap();
    let second = db.existing_keyspace("k").unwrap();
    db.keyspace("empty", Default::default()).unwrap();
    db.close().unwrap();
    drop(second);
    let db = Db::open_read_only("/db", simulated(mem)).unwrap();
    let k = db.keyspace("k", numbers).unwrap();
    let empty = db.existing_keyspace("empty").unwrap();
    let batch = |fill: &dyn Fn(&mut Batch) -> esker::Result<()>, options: &WriteOptions| {
        let mut batch = db.batch();
        fill(&mut batch)?;
        batch.commit_and_clear(options)
    };
    let one = 1u64.to_le_bytes();
    let (usual, soon) = (WriteOptions::new(), SystemTime::now() + Duration::from_secs(60));
    type Call<'a> = (&'a str, &'a dyn Fn(&WriteOptions) -> esker::Result<()>);
    let calls: &[Call] = &[
        ("put", &|options| k.put_with("b", one, options)),
        ("put of nothing", &|options| k.put_with("", "", options)),
        ("put with a time to live", &|options| k.put_with("b", one, &options.ttl(Duration::from_secs(9)))),
        ("put until", &|_| k.put_until("b", one, soon)),
        ("delete", &|options| k.delete_with("a", options)),
        ("delete of what is not there", &|options| k.delete_with("z", options)),
        ("merge", &|options| k.merge_with("a", one, options)),
        ("delete of a range", &|options| k.delete_range_with("a".."b", options)),
        ("delete of everything", &|options| k.delete_range_with(.., options)),
        ("delete of an empty range", &|options| k.delete_range_with("a".."a", options)),
        ("delete of an inverted range", &|options| k.delete_range_with("b".."a", options)),
        ("take the first", &|_| k.pop_first().map(drop)),
        ("take the first of nothing", &|_| empty.pop_first().map(drop)),
        ("delete of a prefix", &|_| k.delete_prefix("a")),
        ("put if absent", &|options| k.put_if_absent_with("b", one, options).map(drop)),
        ("put if absent of what is there", &|options| k.put_if_absent_with("a", one, options).map(drop)),
        ("compare and swap", &|options| {
            k.compare_and_swap_with("a", Some(&one[..]), Some(&one[..]), options).map(drop)
        }),
        ("compare and swap of another value", &|options| {
            k.compare_and_swap_with("a", Some(b"x"), Some(b"y"), options).map(drop)
        }),
        ("merge and get", &|options| k.merge_and_get_with("a", one, options).map(drop)),
        ("take", &|options| k.take_with("a", options).map(drop)),
        ("take of what is not there", &|options| k.take_with("z", options).map(drop)),
        ("touch", &|_| k.touch("a", Duration::from_secs(9)).map(drop)),
        ("touch of what is not there", &|_| k.touch("z", Duration::from_secs(9)).map(drop)),
        ("expire at", &|_| k.expire_at("a", soon).map(drop)),
        ("persist", &|_| k.persist("a").map(drop)),
        ("persist of what is not there", &|_| k.persist("z").map(drop)),
        ("rename", &|_| k.rename("other")),
        ("rename to the same", &|_| k.rename("k")),
        ("other time to live", &|_| k.set_ttl(Ttl::Enabled { default: None })),
        ("other merge operator", &|_| k.set_merge_operator(Max)),
        ("drop of a keyspace", &|_| db.drop_keyspace("k")),
        ("drop of what is not there", &|_| db.drop_keyspace("z")),
        ("put_with_ttl", &|_| k.put_with_ttl("b", one, Duration::from_secs(9))),
        ("batch", &|options| batch(&|batch| batch.put(&k, "b", one), options)),
        ("batch of merges", &|options| batch(&|batch| batch.merge(&k, "b", one), options)),
        ("batch with an empty range", &|options| batch(&|batch| batch.delete_range(&k, "a".."a"), options)),
        ("empty batch", &|options| batch(&|_| Ok(()), options)),
        ("load", &|_| k.ingest([("b", one)]).map(drop)),
        ("empty load", &|_| k.ingest::<&str, &str>([]).map(drop)),
        ("transaction", &|options| {
            let mut transaction = db.transaction();
            transaction.put(&k, "b", one)?;
            transaction.commit_with(options)
        }),
        ("new keyspace", &|_| db.keyspace("new", Default::default()).map(drop)),
        ("sync", &|_| db.sync()),
        ("flush", &|_| db.flush()),
        ("compact", &|_| db.compact()),
        ("compact a keyspace", &|_| k.compact()),
        ("compact a range", &|_| k.compact_range("a".."b")),
        ("compact an empty range", &|_| k.compact_range("a".."a")),
        ("checkpoint", &|_| db.checkpoint("/copy")),
    ];
    for options in [usual, usual.sync(true), usual.disable_wal(true)] {
        for (name, call) in calls {
            let result = call(&options);
            assert!(matches!(result, Err(Error::ReadOnly { .. })), "{name}, {options:?}: {result:?}");
        }
    }
    // One that has only read has nothing to write.
    let mut transaction = db.transaction();
    assert!(transaction.get(&k, "a").unwrap().is_some());
    transaction.commit().unwrap();
}

/// Seen: a scan of a read-only handle yielded a part of the keys, while `get` found them all.
/// Trigger: nothing in the log above the last flush: the handle then read as of the beginning of
/// time, where only the oldest run is. Cost: wrong answers, without an error.
#[test]
fn a_read_only_scan_sees_what_is_only_in_tables() {
    for closed in [None, Some(false), Some(true)] {
        let mem = MemEnv::default();
        let db = Db::open("/db", simulated(mem.clone())).unwrap();
        for key in ["a", "b"] {
            keyspace(&db, "k").put(key, "1").unwrap();
            db.flush().unwrap();
        }
        let writer = match closed {
            None => Some(db),
            Some(false) => None,
            Some(true) => {
                db.close().unwrap();
                None
            }
        };
        let reader = Db::open_read_only("/db", simulated(mem)).unwrap();
        let k = reader.existing_keyspace("k").unwrap();
        assert_eq!(k.iter().count(), 2, "closed: {closed:?}");
        let snapshot = reader.snapshot();
        assert_eq!((snapshot.sequence(), snapshot.iter(&k).count()), (2, 2));
        drop(writer);
    }
}

/// Seen: "MANIFEST-... is missing". Trigger: a read-only open between whose looks at `CURRENT` and
/// at the manifest a writer put another in its place. Cost: a false alarm.
#[test]
fn a_manifest_that_goes_before_it_is_read_is_looked_for_again() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    let fault = FaultEnv::new(Arc::new(mem));
    fault.add(Rule::new(Class::Open, 0, Action::Fail(ErrorKind::NotFound)).on_names_with("MANIFEST"));
    let reader = Db::open_read_only("/db", simulated(fault.clone())).unwrap();
    assert_eq!(fault.fired(), 1);
    assert!(reader.existing_keyspace("k").unwrap().get("a").unwrap().is_some());
}

/// Keys that the writer of the next test goes round and round.
const ROUND: u64 = 500;

/// Seen: "the table is missing", or an older state than the one acknowledged. Trigger: a read-only
/// open while the writer flushed, merged and recycled log segments. Cost: false alarms, and readers
/// of the past.
#[test]
fn a_reader_beside_a_writer_sees_every_write_and_no_damage() {
    let scratch = Scratch::new("beside");
    let options = || Options::default().write_buffer_bytes(2 << 20).wal_segment_bytes(1 << 20);
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = keyspace(&db, "k");
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut opened = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0u64.. {
                let mut value = n.to_be_bytes().to_vec();
                value.resize(200, 7);
                k.put((n % ROUND).to_be_bytes(), value).unwrap();
                acknowledged.store(n, Ordering::Release);
                if n.is_multiple_of(20_000) {
                    db.flush().unwrap();
                }
                if n.is_multiple_of(64) {
                    std::thread::sleep(Duration::from_micros(300));
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        // Stops the writer also when an assertion fails here.
        let reading = std::panic::catch_unwind(|| {
            let (usual, longest) = (Duration::from_secs(2), Duration::from_secs(300));
            let (begun, mut opened) = (Instant::now(), 0);
            while begun.elapsed() < if opened > 0 { usual } else { longest } {
                let least = acknowledged.load(Ordering::Acquire);
                match Db::open_read_only(scratch.path(), options()) {
                    Ok(reader) => {
                        check_round(&reader, least);
                        opened += 1;
                    }
                    // It may give up on a writer that is too fast, and say so.
                    Err(error) => assert!(error.is_retryable(), "{error}"),
                }
            }
            opened
        });
        stop.store(true, Ordering::Relaxed);
        opened = reading.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(opened > 0);
}

/// What is there is the state after one write, which is not before number `least`.
fn check_round(reader: &Db, least: u64) {
    let Ok(k) = reader.existing_keyspace("k") else { return };
    let number = |key: u64| {
        let value = k.get(key.to_be_bytes()).unwrap()?;
        Some(u64::from_be_bytes(value[..8].try_into().unwrap()))
    };
    let numbers: Vec<u64> = (0..ROUND).map_while(number).collect();
    let Some(newest) = numbers.iter().copied().max() else {
        assert_eq!(least, 0, "nothing seen, {least} was acknowledged");
        return;
    };
    assert!(newest >= least, "{newest} is the newest seen, {least} was acknowledged");
    for (key, &number) in (0..).zip(&numbers) {
        assert_eq!(number, newest - (newest - key) % ROUND, "key {key}, newest {newest}");
    }
    assert_eq!(numbers.len() as u64, ROUND.min(newest + 1));
}

/// Seen: a checkpoint with a batch in one keyspace and not in the other. Trigger: writing while the
/// checkpoint flushed one keyspace after the other. Cost: a backup that never was a state of the
/// database.
#[test]
fn a_checkpoint_made_while_writing_holds_whole_batches() {
    let (scratch, copies) = (Scratch::new("checkpointed"), Scratch::new("checkpoints"));
    let db = Db::open(scratch.path(), Options::default().write_buffer_bytes(1 << 20)).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1u64.. {
                let mut batch = db.batch();
                batch.put(&a, "n", n.to_be_bytes()).unwrap();
                batch.put(&b, "n", n.to_be_bytes()).unwrap();
                batch.put(&b, n.to_be_bytes(), [1; 100]).unwrap();
                batch.commit().unwrap();
                acknowledged.store(n, Ordering::Release);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let copying = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for copy in 0..10 {
                let least = acknowledged.load(Ordering::Acquire);
                let directory = copies.path().join(copy.to_string());
                db.checkpoint(&directory).unwrap();
                let copied = Db::open(&directory, Options::default().background_threads(0)).unwrap();
                let read = |name| keyspace(&copied, name).get("n").unwrap().map(|value| value.to_vec());
                assert_eq!(read("a"), read("b"), "copy {copy}");
                let found = read("a").map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()));
                assert!(found >= least, "copy {copy} holds {found}, {least} was acknowledged before it");
                copied.verify().unwrap();
            }
        }));
        stop.store(true, Ordering::Relaxed);
        copying.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
