//! Events between the two checks, which only threads could show from outside.

use crate::base::batch::{Operation, encode};
use crate::base::key::{Kind, NEVER};
use crate::db::background::flush;
use crate::db::lifecycle::{keyspaces, open};
use crate::db::transaction::conflict::*;
use crate::db::write::batch_size::{reservation_bytes, start_record};
use crate::db::write::commit::{Content, commit};
use crate::env::mem::MemEnv;
use crate::options::{KeyspaceOptions, Options, WriteOptions};
use std::ops::Bound;
use std::path::Path;

struct World {
    inner: Arc<Inner>,
    keyspace: Arc<KeyspaceInner>,
}

impl World {
    fn new() -> World {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        World { inner, keyspace }
    }

    fn put(&self, key: &str, value: &[u8]) {
        let key = key.as_bytes();
        let operation = Operation { keyspace: self.keyspace.id, kind: Kind::Put, expiry_ms: NEVER, key, value };
        let mut record = Vec::new();
        start_record(&mut record);
        encode(&mut record, &operation);
        let needs = [(self.keyspace.id, reservation_bytes(&operation))];
        commit(&self.inner, &mut record, Content::One(operation), &needs, &WriteOptions::new()).unwrap();
    }

    /// A transaction that read "key" and the range from "m" to "p".
    fn reader(&self) -> Transaction {
        let mut transaction = Transaction::begin(&self.inner);
        transaction.get(&self.keyspace, b"key").unwrap();
        let bounds = [b"m", b"p"].map(|key| Bound::Included(key.to_vec()));
        let [lower, upper] = bounds;
        transaction.scan(&self.keyspace, lower, upper).unwrap().passage.complete();
        transaction
    }

    fn holds(&self, conflicts: &mut Conflicts<'_>) -> Result<bool> {
        let writer = self.inner.writer.lock();
        conflicts.holds(&writer).map(|verdict| verdict == Verdict::Holds)
    }
}

fn is_conflict<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Conflict { .. }))
}

#[test]
fn what_is_appended_after_the_first_look_is_found_under_the_lock() {
    for value in [&b"eight by"[..], b"a longer one"] {
        for (key, expected) in [("key", true), ("m", true), ("p", true), ("l", false), ("q", false)] {
            // "old": there before, so that what comes is put above it or into it.
            for before in ["", "old", "in tables"] {
                let world = World::new();
                if !before.is_empty() {
                    world.put(key, value);
                }
                if before == "in tables" {
                    flush::flush_now(&world.inner).unwrap();
                }
                let transaction = world.reader();
                world.put("elsewhere", value);
                let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
                conflicts.catch_up().unwrap();
                assert!(world.holds(&mut conflicts).unwrap());
                for _ in 0..3 {
                    world.put("elsewhere", value);
                }
                assert!(world.holds(&mut conflicts).unwrap());
                world.put(key, value);
                assert_eq!(is_conflict(world.holds(&mut conflicts)), expected, "{key}, {before}");
            }
        }
    }
}

#[test]
fn a_flush_or_much_that_is_new_asks_for_another_look() {
    for expected in [false, true] {
        let world = World::new();
        world.put("key", b"old");
        let transaction = world.reader();
        let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
        conflicts.catch_up().unwrap();
        world.put(if expected { "n" } else { "z" }, b"new");
        flush::flush_now(&world.inner).unwrap();
        assert!(!world.holds(&mut conflicts).unwrap());
        let looked = conflicts.catch_up();
        assert_eq!(is_conflict(looked), expected);
    }
    let world = World::new();
    let transaction = world.reader();
    let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
    conflicts.catch_up().unwrap();
    world.put("z", &[0; 2 * MOST_LOCKED_BYTES]);
    assert!(!world.holds(&mut conflicts).unwrap());
    conflicts.catch_up().unwrap();
    assert!(world.holds(&mut conflicts).unwrap());
}

#[test]
fn after_a_few_rounds_all_is_done_under_the_lock() {
    for (key, expected) in [("n", true), ("key", true), ("z", false)] {
        for flushed in [false, true] {
            let world = World::new();
            let transaction = world.reader();
            let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
            for _ in 0..MOST_ROUNDS {
                conflicts.catch_up().unwrap();
                world.put("z", &[0; 2 * MOST_LOCKED_BYTES]);
                flush::flush_now(&world.inner).unwrap();
            }
            world.put(key, b"new");
            if flushed {
                flush::flush_now(&world.inner).unwrap();
            }
            let last = world.holds(&mut conflicts);
            assert_eq!(is_conflict(last), expected, "{key}");
        }
    }
}

/// A memtable rotated between the checks is read from where the first check ended, and its
/// successor from the beginning.
#[test]
fn a_switch_of_memtables_between_the_looks_hides_nothing() {
    for (before, after, expected) in [("key", "z", true), ("z", "o", true), ("z", "z", false)] {
        let world = World::new();
        world.put("z", b"old");
        let transaction = world.reader();
        let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
        conflicts.catch_up().unwrap();
        world.put(before, b"new");
        crate::db::background::rotate::rotate(&world.inner, &mut world.inner.writer.lock(), world.keyspace.id, 0);
        world.put(after, b"new");
        assert_eq!(is_conflict(world.holds(&mut conflicts)), expected, "{before} {after}");
    }
}

/// What the first look has passed counts no more.
#[test]
fn little_behind_much_is_looked_through_under_the_lock() {
    let world = World::new();
    world.put("z", &[0; 2 * MOST_LOCKED_BYTES]);
    let transaction = world.reader();
    let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
    conflicts.catch_up().unwrap();
    world.put("z", b"new");
    assert!(world.holds(&mut conflicts).unwrap());
}

/// One that was full before the first look has only what the transaction sees.
#[test]
fn a_memtable_without_later_writes_is_not_looked_through() {
    let world = World::new();
    world.put("key", b"old");
    let transaction = world.reader();
    crate::db::background::rotate::rotate(&world.inner, &mut world.inner.writer.lock(), world.keyspace.id, 0);
    let mut conflicts = Conflicts::new(&world.inner, &transaction).unwrap();
    conflicts.catch_up().unwrap();
    world.put("z", b"new");
    assert!(world.holds(&mut conflicts).unwrap());
}
