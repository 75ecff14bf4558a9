//! Writes of eight bytes that are in no log are made without the writer lock. They must be as exact
//! as all others.

use super::common::Machine;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, WriteOptions, merge};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: u64 = 40;

fn unlogged() -> WriteOptions {
    WriteOptions::new().disable_wal(true)
}

fn key(number: u64) -> Vec<u8> {
    format!("counter{number:04}").into_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

fn counters(db: &Db) -> Keyspace {
    db.keyspace("counters", KeyspaceOptions::default().merge_operator(merge::UInt64Add)).expect("a keyspace")
}

fn background(machine: &Machine) -> Options {
    machine.options().background_threads(1)
}

/// Counts a thread as one that adds, for as long as it lives.
struct Adding<'a>(&'a AtomicU64);

impl Drop for Adding<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn counters_are_exact_beside_snapshots_flushes_and_logged_merges() {
    const THREADS: u64 = 4;
    const EACH: u64 = 30_000;
    let machine = Machine::new();
    let db = Db::open(super::common::DIRECTORY, background(&machine)).expect("a database");
    let keyspace = counters(&db);
    let adding = AtomicU64::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (keyspace, adding) = (keyspace.clone(), Adding(&adding));
            scope.spawn(move || {
                let _adding = adding;
                for step in 0..EACH {
                    // One of the threads has its merges logged.
                    let options = WriteOptions::new().disable_wal(thread > 0);
                    keyspace
                        .merge_with(key((step * 7 + thread) % KEYS), 1u64.to_le_bytes(), &options)
                        .expect("a merge");
                }
            });
        }
        let flusher = (db.clone(), &adding);
        scope.spawn(move || {
            while flusher.1.load(Ordering::SeqCst) > 0 {
                flusher.0.flush().expect("a flush");
                std::thread::yield_now();
            }
        });
        let mut last = 0;
        while adding.load(Ordering::SeqCst) > 0 {
            let snapshot = db.snapshot();
            let read = |number: u64| snapshot.get(&keyspace, key(number)).expect("a read");
            let all = || (0..KEYS).map(|n| read(n).map_or(0, |value| self::number(&value))).collect::<Vec<_>>();
            let first = all();
            assert_eq!(first, all(), "a snapshot changed");
            let mut scanned = vec![0; KEYS as usize];
            for entry in snapshot.iter(&keyspace) {
                let (found, value) = entry.expect("an entry");
                let at = (0..KEYS).position(|n| key(n) == *found).expect("one of the keys");
                scanned[at] = number(&value);
            }
            assert_eq!(first, scanned, "a scan of the snapshot differs");
            let sum: u64 = first.iter().sum();
            assert!(sum >= last, "a later snapshot has less");
            last = sum;
        }
    });
    let sum: u64 = (0..KEYS).map(|n| number(&keyspace.get(key(n)).expect("a read").expect("a value"))).sum();
    assert_eq!(sum, THREADS * EACH);
}

#[test]
fn a_snapshot_has_every_write_that_was_acknowledged_before_it() {
    let machine = Machine::new();
    let db = Db::open(super::common::DIRECTORY, background(&machine)).expect("a database");
    let keyspace = counters(&db);
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                keyspace.merge_with("n", 1u64.to_le_bytes(), &unlogged()).expect("a merge");
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..2_000 {
            let before = acknowledged.load(Ordering::SeqCst);
            let snapshot = db.snapshot();
            let after = acknowledged.load(Ordering::SeqCst);
            let seen = snapshot.get(&keyspace, "n").expect("a read").map_or(0, |value| number(&value));
            // One may be made and not acknowledged yet.
            assert!((before..=after + 1).contains(&seen), "{seen} is not from {before} to {after}");
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer");
    });
}

#[test]
fn puts_in_place_are_hidden_from_older_snapshots() {
    let machine = Machine::new();
    let db = machine.open();
    for operator in [false, true] {
        let name = if operator { "with" } else { "without" };
        let options = KeyspaceOptions::default();
        let options = if operator { options.merge_operator(merge::UInt64Add) } else { options };
        let keyspace = db.keyspace(name, options).expect("a keyspace");
        let put = |n: u64| keyspace.put_with("k", n.to_le_bytes(), &unlogged()).expect("a put");
        let get = || number(&keyspace.get("k").expect("a read").expect("a value"));
        put(1);
        put(2);
        let old = db.snapshot();
        put(3);
        put(4);
        assert_eq!(number(&old.get(&keyspace, "k").expect("a read").expect("a value")), 2);
        assert_eq!(get(), 4);
        drop(old);
        put(5);
        keyspace.delete("k").expect("a delete");
        assert_eq!(keyspace.get("k").expect("a read"), None);
        put(6);
        keyspace.delete_range("a".."z").expect("a range delete");
        assert_eq!(keyspace.get("k").expect("a read"), None);
        put(7);
        put(8);
        assert_eq!(get(), 8);
    }
}

#[test]
fn a_transaction_notices_a_merge_without_log() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = counters(&db);
    let add = || keyspace.merge_with("k", 1u64.to_le_bytes(), &unlogged()).expect("a merge");
    add();
    add();
    let mut transaction = db.transaction();
    let value = transaction.get(&keyspace, "k").expect("a read").map_or(0, |value| number(&value));
    add();
    add();
    transaction.put(&keyspace, "k", (value + 10).to_le_bytes()).expect("a put");
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    assert_eq!(number(&keyspace.get("k").expect("a read").expect("a value")), 4);
}

#[test]
fn other_operators_see_every_put() {
    // Their merge reads the value that it combines: no other thread may change it meanwhile.
    const ROUNDS: u64 = 20_000;
    let machine = Machine::new();
    let db = Db::open(super::common::DIRECTORY, background(&machine)).expect("a database");
    let options = KeyspaceOptions::default().merge_operator(merge::Int64Add);
    let keyspace = db.keyspace("signed", options).expect("a keyspace");
    std::thread::scope(|scope| {
        let merger = keyspace.clone();
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                merger.merge_with("k", 1u64.to_le_bytes(), &unlogged()).expect("a merge");
            }
        });
        for n in 2..ROUNDS {
            let put = n * 1_000_000;
            keyspace.put_with("k", put.to_le_bytes(), &unlogged()).expect("a put");
            let found = number(&keyspace.get("k").expect("a read").expect("a value"));
            assert!((put..=put + ROUNDS).contains(&found), "{put} was lost, {found} found");
        }
    });
}

#[test]
fn a_database_opened_for_reading_refuses_them() {
    let machine = Machine::new();
    let db = machine.open();
    counters(&db).merge("k", 1u64.to_le_bytes()).expect("a merge");
    drop(db);
    let db = Db::open_read_only(super::common::DIRECTORY, machine.options()).expect("a database");
    let refused = counters(&db).merge_with("k", 1u64.to_le_bytes(), &unlogged());
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    assert_eq!(number(&counters(&db).get("k").expect("a read").expect("a value")), 1);
}

#[test]
fn a_flush_makes_them_durable() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = counters(&db);
    for _ in 0..5 {
        keyspace.merge_with("k", 2u64.to_le_bytes(), &unlogged()).expect("a merge");
    }
    db.flush().expect("a flush");
    for _ in 0..3 {
        keyspace.merge_with("k", 1u64.to_le_bytes(), &unlogged()).expect("a merge");
    }
    drop(keyspace);
    db.close().expect("a close");
    assert_eq!(number(&counters(&machine.open()).get("k").expect("a read").expect("a value")), 13);
}
