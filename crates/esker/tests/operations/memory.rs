//! A memory budget holds over all parts, and each part is reported.

use esker::env::mem::MemEnv;
use esker::{Compression, Db, Keyspace, Options, ReadMode, Stats, WriteOptions};
use std::sync::Arc;

fn open(options: Options) -> Db {
    Db::open("data", options.env(Arc::new(MemEnv::new())).read_mode(ReadMode::Pread)).unwrap()
}

fn keyspace(db: &Db, number: usize) -> Keyspace {
    db.keyspace(&format!("keyspace {number}"), Default::default()).unwrap()
}

/// A value that nothing compresses.
fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}

/// Without log: no segments of it make a memtable immutable that is not full.
fn unlogged() -> WriteOptions {
    WriteOptions::new().disable_wal(true)
}

fn all_memtables(stats: &Stats) -> u64 {
    stats.memory.memtable_bytes + stats.memory.immutable_memtable_bytes
}

#[test]
fn many_keyspaces_together_stay_within_the_share_of_memtables() {
    for threads in [0, 1] {
        let budget = 8 << 20;
        let db = open(Options::default().memory_budget_bytes(budget).background_threads(threads));
        let keyspaces: Vec<Keyspace> = (0..40).map(|number| keyspace(&db, number)).collect();
        for round in 0..600u64 {
            for (number, keyspace) in keyspaces.iter().enumerate() {
                keyspace.put(round.to_be_bytes(), value(round + number as u64, 500)).unwrap();
            }
            let stats = db.stats();
            // One write, and an index that has just doubled, may come on top.
            assert!(all_memtables(&stats) <= budget as u64 / 2 + (256 << 10), "round {round}: {}", stats.memory);
            assert!(stats.memory.total_bytes() <= budget as u64, "round {round}: {}", stats.memory);
        }
        for (number, keyspace) in keyspaces.iter().enumerate() {
            assert_eq!(keyspace.get(7u64.to_be_bytes()).unwrap().unwrap().to_vec(), value(7 + number as u64, 500));
        }
        db.close().unwrap();
    }
}

#[test]
fn range_deletes_in_many_keyspaces_stay_within_the_share_of_memtables() {
    for threads in [0, 1] {
        let budget = 8 << 20;
        let db = open(Options::default().memory_budget_bytes(budget).background_threads(threads));
        let keyspaces: Vec<Keyspace> = (0..40).map(|number| keyspace(&db, number)).collect();
        for round in 0..300u64 {
            for (number, keyspace) in keyspaces.iter().enumerate() {
                let start = [&round.to_be_bytes()[..], &value(round + number as u64, 500)[..]].concat();
                let end = [&start[..], &[0][..]].concat();
                keyspace.delete_range_with(start..end, &unlogged()).unwrap();
            }
            let stats = db.stats();
            // One write, and the first page of each index, may come on top.
            assert!(all_memtables(&stats) <= budget as u64 / 2 + (256 << 10), "round {round}: {}", stats.memory);
            assert!(stats.memory.total_bytes() <= budget as u64, "round {round}: {}", stats.memory);
        }
        db.close().unwrap();
    }
}

/// A snapshot needs all tombstones before it: one that comes behind it and divides them takes many
/// times what it reserved.
#[test]
fn what_range_deletes_take_beyond_their_reservation_is_charged() {
    let budget = 8 << 20;
    let db = open(Options::default().memory_budget_bytes(budget).background_threads(0));
    let keyspaces: Vec<Keyspace> = (0..10).map(|number| keyspace(&db, number)).collect();
    for keyspace in &keyspaces {
        let mut batch = db.batch();
        (0..1000).for_each(|_| batch.delete_range(keyspace, ..).unwrap());
        batch.commit_with(&unlogged()).unwrap();
    }
    let snapshot = db.snapshot();
    for round in 0..100u64 {
        for keyspace in &keyspaces {
            keyspace.delete_range_with(round.to_be_bytes()..(round + 1).to_be_bytes(), &unlogged()).unwrap();
            // The active ones have half of the share, and nothing waits here. One write may come on
            // top.
            let stats = db.stats();
            assert!(all_memtables(&stats) <= budget as u64 / 4 + (1 << 20), "round {round}: {}", stats.memory);
        }
    }
    drop(snapshot);
    db.close().unwrap();
}

#[test]
fn a_batch_larger_than_the_share_is_written() {
    for threads in [0, 1] {
        let db = open(Options::default().memory_budget_bytes(1 << 20).background_threads(threads));
        let names = keyspace(&db, 0);
        for round in 0..4u64 {
            names.put(round.to_be_bytes(), vec![0; 1000]).unwrap();
            let mut batch = db.batch();
            (0..200u64).for_each(|i| batch.put(&names, (1000 * round + i).to_be_bytes(), value(i, 10_000)).unwrap());
            batch.commit().unwrap();
        }
        assert_eq!(names.iter().count(), 800);
        db.close().unwrap();
    }
}

#[test]
fn what_readers_hold_is_reported_and_taken_from_the_cache() {
    let options = Options::default().memory_budget_bytes(8 << 20).background_threads(0).compression(Compression::Lz4);
    let db = open(options);
    let names = keyspace(&db, 0);
    let write = |from: u64| (from..from + 1000).for_each(|i| names.put(i.to_be_bytes(), value(i, 1000)).unwrap());
    write(0);
    let iterator = names.iter();
    assert_eq!(db.stats().memory.pinned_bytes, 0);
    db.flush().unwrap();
    let before = db.stats().memory;
    assert!(before.pinned_bytes > 1_000_000, "the iterator holds the memtable: {before}");
    drop(iterator);
    assert_eq!(db.stats().memory.pinned_bytes, 0);
    write(1000);
    db.flush().unwrap();
    assert!(db.stats().memory.cache_capacity_bytes > before.cache_capacity_bytes);

    let held: Vec<_> = (0..2000u64).map(|i| names.get(i.to_be_bytes()).unwrap().unwrap()).collect();
    let memory = db.stats().memory;
    assert!(memory.cache_bytes > 0 && memory.cache_bytes <= memory.cache_capacity_bytes, "{memory}");
    db.compact().unwrap();
    let memory = db.stats().memory;
    assert!(memory.pinned_bytes > 1_000_000, "the values hold their blocks: {memory}");
    drop(held);
    assert_eq!(db.stats().memory.pinned_bytes, 0);
}

#[test]
fn filters_larger_than_the_budget_leave_the_cache_nothing() {
    let options = Options::default().memory_budget_bytes(1 << 20).background_threads(0).filter_bits_per_key(64);
    let db = open(options);
    let names = keyspace(&db, 0);
    for i in 0..200_000u64 {
        names.put(i.to_be_bytes(), i.to_le_bytes()).unwrap();
    }
    db.compact().unwrap();
    let memory = db.stats().memory;
    assert!(memory.filter_bytes > 1 << 20, "{memory}");
    assert_eq!(memory.cache_capacity_bytes, 0, "{memory}");
    assert_eq!(names.get(123_456u64.to_be_bytes()).unwrap().as_deref(), Some(&123_456u64.to_le_bytes()[..]));
    assert_eq!(db.stats().memory.cache_bytes, 0);
}

#[test]
fn without_a_budget_the_parts_are_as_they_are_set() {
    let db = open(Options::default().background_threads(0));
    let memory = db.stats().memory;
    assert_eq!((memory.budget_bytes, memory.cache_capacity_bytes), (0, 64 << 20));
}
