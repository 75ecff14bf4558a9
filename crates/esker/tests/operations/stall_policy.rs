//! Writes that are not to wait, on a disk that hangs.

use crate::common::*;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{Batch, Db, Error, Keyspace, KeyspaceOptions, Options, StallCause, StallPolicy, Ttl, WriteOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn failing() -> WriteOptions {
    WriteOptions::new().stall(StallPolicy::Fail)
}

/// Longer than any test takes.
const HANGS: Action = Action::Delay(Duration::from_secs(3600));

/// A disk that hangs where a file of this kind is made, until it is released.
struct Disk {
    env: MemEnv,
    fault: FaultEnv,
}

impl Disk {
    fn new() -> Disk {
        let env = MemEnv::new();
        Disk { fault: FaultEnv::new(Arc::new(env.clone())), env }
    }

    fn options(&self) -> Options {
        Options::default()
            .env(Arc::new(self.fault.clone()))
            .background_threads(1)
            .write_buffer_bytes(64 << 10)
            .wal_segment_bytes(1 << 20)
            .min_blob_size(16 << 10)
    }

    fn open(&self) -> Db {
        Db::open(DIRECTORY, self.options()).unwrap()
    }

    fn hang(&self, kind: &str) {
        self.fault.add(Rule::new(Class::Create, 0, HANGS).on_names_with(kind).from_then_on());
    }

    /// Lets the disk go on at the end, also of a test that fails: a database is not closed while a
    /// call of its thread hangs.
    fn released_at_the_end(&self) -> Released<'_> {
        Released(&self.fault)
    }

    /// What is there after the death of the process.
    fn after_death(&self) -> Db {
        let image = self.env.kill();
        self.fault.clear();
        Db::open(DIRECTORY, self.options().env(Arc::new(image))).unwrap()
    }
}

struct Released<'a>(&'a FaultEnv);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Whether it was written; why not, if it was refused.
fn outcome(result: esker::Result<()>) -> Option<StallCause> {
    match result {
        Ok(()) => None,
        Err(error @ Error::WriteStalled { cause, .. }) => {
            assert!(error.is_retryable());
            let text = error.to_string();
            assert!(text.contains(&cause.to_string()) && text.contains(cause.hint()), "{text}");
            Some(cause)
        }
        Err(error) => panic!("{error}"),
    }
}

/// Writes keys from this one on until one is refused, and returns that one.
fn fill(keyspace: &Keyspace, from: u64) -> u64 {
    (from..)
        .find(|&number| outcome(keyspace.put_with(key(number), [7; 1000], &failing())) == Some(StallCause::Flush))
        .expect("the disk hangs")
}

fn keys(keyspace: &Keyspace) -> BTreeSet<u64> {
    let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
    keyspace.iter().map(|pair| number(&pair.unwrap().0)).collect()
}

/// All calls that take options, in a database in which nothing is flushed: nothing of them shows,
/// now or after the process died, and all of them can be made again.
#[test]
fn every_write_is_refused_leaves_nothing_and_can_be_made_again() {
    let disk = Disk::new();
    let db = disk.open();
    let _released = disk.released_at_the_end();
    let plain = db.keyspace("plain", KeyspaceOptions::default()).unwrap();
    let adding = db.keyspace("adding", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
    let enabled = Ttl::Enabled { default: None };
    let living = db.keyspace("living", KeyspaceOptions::default().ttl(enabled).merge_operator(UInt64Add)).unwrap();
    let one = 1u64.to_le_bytes();
    let hour = Duration::from_secs(3600);
    type Call<'a> = (&'a str, Box<dyn Fn(&WriteOptions) -> esker::Result<()> + 'a>);
    let calls: Vec<Call<'_>> = vec![
        ("put", Box::new(|o| plain.put_with("a", "1", o))),
        ("large put", Box::new(|o| plain.put_with("b", vec![3; 20_000], o))),
        ("synced put", Box::new(|o| plain.put_with("c", "1", &o.sync(true)))),
        ("unlogged put", Box::new(|o| plain.put_with("d", "1", &o.disable_wal(true)))),
        ("delete", Box::new(|o| plain.delete_with("stays", o))),
        ("delete_range", Box::new(|o| plain.delete_range_with("s".."t", o))),
        ("merge", Box::new(|o| adding.merge_with("a", one, o))),
        ("put with life", Box::new(|o| living.put_with("a", one, &o.ttl(hour)))),
        ("merge with life", Box::new(|o| living.merge_with("b", one, o))),
        ("put_if_absent", Box::new(|o| plain.put_if_absent_with("e", "1", o).map(drop))),
        ("large put_if_absent", Box::new(|o| plain.put_if_absent_with("f", vec![4; 20_000], o).map(drop))),
        ("compare_and_swap", Box::new(|o| plain.compare_and_swap_with("g", None, Some(b"1"), o).map(drop))),
        ("merge_and_get", Box::new(|o| adding.merge_and_get_with("b", one, o).map(drop))),
        ("take", Box::new(|o| plain.take_with("stays", o).map(drop))),
        (
            "batch",
            Box::new(|o| {
                let mut batch = db.batch();
                batch.put(&plain, "h", "1")?;
                batch.merge(&living, "c", one)?;
                batch.commit_with(o)
            }),
        ),
        (
            "transaction",
            Box::new(|o| {
                let mut transaction = db.transaction();
                transaction.get(&plain, "a")?;
                transaction.put(&plain, "i", "1")?;
                transaction.commit_with(o)
            }),
        ),
    ];
    plain.put("stays", "1").unwrap();
    disk.hang(".table");
    // The active memtables of all are full.
    let mut filled = [&plain, &adding, &living].map(|keyspace| fill(keyspace, 0));
    let state = |db: &Db| {
        let named = db.keyspaces().into_iter().map(|name| db.existing_keyspace(&name).unwrap());
        named.map(|keyspace| crate::common::all(&keyspace)).collect::<Vec<_>>()
    };
    let before = state(&db);
    let refused = db.stats().refused_writes;
    let blobs = db.stats().blob_written_bytes;
    for policy in [StallPolicy::Fail, StallPolicy::For(Duration::from_millis(5))] {
        for (name, call) in &calls {
            assert_eq!(outcome(call(&WriteOptions::new().stall(policy))), Some(StallCause::Flush), "{name}");
        }
    }
    assert_eq!(state(&db), before);
    assert_eq!(db.stats().refused_writes, refused + 2 * calls.len() as u64);
    assert_eq!(db.property("esker.stall.refused_writes"), Some((refused + 2 * calls.len() as u64).to_string()));
    assert_eq!(db.stats().blob_written_bytes, blobs, "a refused write leaves a large value as garbage");
    assert_eq!(state(&disk.after_death()), before);
    // The disk goes on.
    for (name, call) in &calls {
        wait_until(name, || outcome(call(&failing())).is_none());
    }
    let after = state(&db);
    assert_ne!(after, before);
    for (keyspace, from) in [&plain, &adding, &living].into_iter().zip(&mut filled) {
        wait_until("writes go on", || outcome(keyspace.put_with(key(*from), [7; 1000], &failing())).is_none());
    }
}

/// A slow disk: it makes each table only some time after that was begun. A write that may wait for
/// longer than that waits, and is made; so are those behind it.
#[test]
fn a_write_that_may_wait_for_longer_than_a_slow_disk_takes_is_made() {
    const BEHIND: u64 = 300;
    let disk = Disk::new();
    let db = disk.open();
    let k = keyspace(&db, "k");
    disk.hang(".table");
    let released = disk.released_at_the_end();
    let first = fill(&k, 0);
    let end = first + BEHIND;
    let expected: BTreeSet<u64> = keys(&k).into_iter().chain(first..end).collect();
    let (stalls, refused) = (db.stats().stalls, db.stats().refused_writes);
    let hour = WriteOptions::new().stall(StallPolicy::For(Duration::from_secs(3600)));
    std::thread::scope(|scope| {
        let _released = disk.released_at_the_end();
        let writes = scope.spawn(|| {
            (first..end).for_each(|number| assert_eq!(outcome(k.put_with(key(number), [7; 1000], &hour)), None));
        });
        wait_until("the first one waits", || db.stats().stalls > stalls);
        assert!(!writes.is_finished() && k.get(key(first)).unwrap().is_none());
        let mut begun = 0;
        while !writes.is_finished() {
            wait_until("a table is begun", || disk.fault.fired() > begun || writes.is_finished());
            // One that is begun right behind this is made at once.
            begun = disk.fault.fired();
            disk.fault.clear();
            disk.hang(".table");
        }
        writes.join().unwrap();
    });
    drop(released);
    assert_eq!(db.stats().refused_writes, refused);
    assert!(keys(&k) == expected);
    drop((k, db));
    let db = disk.after_death();
    assert!(keys(&keyspace(&db, "k")) == expected, "after the death of the process");
}

/// A batch that was refused has its operations still, the large ones as well.
#[test]
fn a_refused_batch_is_committed_again_as_it_is() {
    let disk = Disk::new();
    let db = disk.open();
    let _released = disk.released_at_the_end();
    let k = keyspace(&db, "k");
    let mut batch = db.batch();
    let large = vec![9; 50_000];
    batch.put(&k, "large", &large).unwrap();
    batch.put(&k, "small", "1").unwrap();
    batch.delete(&k, key(0)).unwrap();
    disk.hang(".table");
    fill(&k, 0);
    for _ in 0..3 {
        assert_eq!(outcome(batch.commit_and_clear(&failing())), Some(StallCause::Flush));
        assert_eq!((batch.len(), k.get("large").unwrap(), k.get("small").unwrap()), (3, None, None));
    }
    disk.fault.clear();
    // What is flushed and compacted meanwhile does not take the value away.
    db.flush().unwrap();
    db.compact().unwrap();
    db.wait_idle().unwrap();
    let again = |batch: &mut Batch| outcome(batch.commit_and_clear(&failing())).is_none();
    assert!(again(&mut batch) && batch.is_empty());
    assert_eq!(k.get("large").unwrap().as_deref(), Some(&large[..]));
    assert_eq!((k.get("small").unwrap().as_deref(), k.get(key(0)).unwrap()), (Some(&b"1"[..]), None));
    drop((k, batch, db));
    let db = disk.after_death();
    assert_eq!(keyspace(&db, "k").get("large").unwrap().as_deref(), Some(&large[..]));
}

/// Threads write in all ways beside each other while the disk hangs now and then. What was
/// acknowledged is there, and nothing of what was refused, also after the process died.
#[test]
fn exactly_what_was_acknowledged_is_there() {
    let disk = Disk::new();
    let db = disk.open();
    let _released = disk.released_at_the_end();
    let k = keyspace(&db, "k");
    let (next, done, refused) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let policies = [StallPolicy::Fail, StallPolicy::For(Duration::from_millis(1)), StallPolicy::Wait];
    let acknowledged: BTreeSet<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = policies
            .into_iter()
            .map(|policy| {
                let (k, db, next, done, refused) = (&k, &db, &next, &done, &refused);
                scope.spawn(move || {
                    let mut written = BTreeSet::new();
                    let options = WriteOptions::new().stall(policy);
                    while !done.load(Ordering::Relaxed) {
                        let number = next.fetch_add(2, Ordering::Relaxed);
                        let result = match number % 4 {
                            0 => k.put_with(key(number), [5; 500], &options),
                            _ => {
                                let mut batch = db.batch();
                                batch.put(k, key(number), [5; 500]).unwrap();
                                batch.put(k, key(number + 1), [5; 500]).unwrap();
                                batch.commit_with(&options)
                            }
                        };
                        match outcome(result) {
                            None if number % 4 == 0 => written.extend([number]),
                            None => written.extend([number, number + 1]),
                            Some(_) => _ = refused.fetch_add(1, Ordering::Relaxed),
                        }
                    }
                    written
                })
            })
            .collect();
        for kind in [".table", ".wal", ".table", ".wal"] {
            let before = refused.load(Ordering::Relaxed);
            disk.hang(kind);
            wait_until(kind, || refused.load(Ordering::Relaxed) > before + 10);
            disk.fault.clear();
        }
        done.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(acknowledged.len() > 100);
    assert!(keys(&k) == acknowledged);
    drop((k, db));
    let db = disk.after_death();
    assert!(keys(&keyspace(&db, "k")) == acknowledged, "after the death of the process");
}

/// A write that waits for a segment of the log holds the writer lock meanwhile. One that is not to
/// wait does not wait for that one.
#[test]
fn a_write_beside_one_that_waits_for_the_log_does_not_wait() {
    let disk = Disk::new();
    let db = Db::open(DIRECTORY, disk.options().write_buffer_bytes(64 << 20).wal_segment_bytes(64 << 10)).unwrap();
    let k = keyspace(&db, "k");
    disk.hang(".wal");
    std::thread::scope(|scope| {
        let _released = disk.released_at_the_end();
        let waits = scope.spawn(|| (0..1000).for_each(|number| k.put(key(number), [7; 1000]).unwrap()));
        wait_until("it waits", || db.stats().stalls > 0);
        for options in [failing(), WriteOptions::new().stall(StallPolicy::For(Duration::from_millis(30)))] {
            assert_eq!(outcome(k.put_with("a", "1", &options)), Some(StallCause::LogSegment));
        }
        assert!(!waits.is_finished());
        disk.fault.clear();
        waits.join().unwrap();
    });
    wait_until("writes go on", || outcome(k.put_with("a", "1", &failing())).is_none());
    assert_eq!(k.iter().count(), 1001);
}

/// What is stalled in one keyspace concerns no write to another one that has room, and each batch
/// that has a part in it.
#[test]
fn a_keyspace_with_room_takes_writes_while_another_one_is_stalled() {
    let disk = Disk::new();
    let db = disk.open();
    let _released = disk.released_at_the_end();
    let (full, free) = (keyspace(&db, "full"), keyspace(&db, "free"));
    disk.hang(".table");
    fill(&full, 0);
    let short = WriteOptions::new().stall(StallPolicy::For(Duration::from_millis(5)));
    let policies = [failing(), short, WriteOptions::new()];
    let write_beside = |name: &str| {
        for options in &policies {
            assert_eq!(outcome(free.put_with(name, "1", options)), None);
            let mut transaction = db.transaction();
            assert!(transaction.get(&full, key(0)).unwrap().is_some());
            transaction.put(&free, name, "2").unwrap();
            assert_eq!(outcome(transaction.commit_with(options)), None);
        }
    };
    write_beside("a");
    // In either order of the parts.
    for options in &policies[..2] {
        for is_first in [true, false] {
            let mut batch = db.batch();
            let order = if is_first { [&full, &free] } else { [&free, &full] };
            order.into_iter().for_each(|part| batch.put(part, "b", "1").unwrap());
            let refused = batch.commit_with(options).unwrap_err();
            let names_it = matches!(&refused, Error::WriteStalled { keyspace: Some(name), .. } if name == "full");
            assert!(names_it, "{refused:?}");
        }
    }
    assert_eq!((full.get("b").unwrap(), free.get("b").unwrap()), (None, None));
    // Beside a writer that waits for as long as it takes.
    std::thread::scope(|scope| {
        let _released = disk.released_at_the_end();
        let stalls = db.stats().stalls;
        let waits = scope.spawn(|| full.put("c", [7; 1000]));
        wait_until("it waits", || db.stats().stalls > stalls);
        write_beside("c");
        assert!(!waits.is_finished());
        disk.fault.clear();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(free.get("c").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(full.get("c").unwrap().is_some());
}
