//! Estimates count what is in memory too: 0 must not mean "not flushed yet".

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::internals::Random;
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, KeyspaceOptions, Ttl, WriteOptions};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn sizes_follow_the_data_from_memory_to_disk() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    assert_eq!(a.approximate_size(..).unwrap(), 0);
    for number in 0..2000u32 {
        a.put(number.to_be_bytes(), [number as u8; 50]).unwrap();
    }
    let key = |number: u32| number.to_be_bytes();
    for place in ["memory", "tables"] {
        let whole = a.approximate_size(..).unwrap();
        assert!((100_000..400_000).contains(&whole) || place == "tables" && whole > 10_000, "{whole} in {place}");
        let half = a.approximate_size(key(500)..key(1500)).unwrap();
        assert!(half > whole / 3 && half < whole * 2 / 3, "{half} of {whole} in {place}");
        let (from, to) = (a.approximate_size(..key(700)).unwrap(), a.approximate_size(key(700)..).unwrap());
        assert!(from + to >= whole * 9 / 10 && from + to <= whole * 11 / 10 + 2048, "{from} + {to} of {whole}");
        let one = a.approximate_size(key(7)..=key(7)).unwrap();
        assert!(one > 0 && one < 2048, "{one} in {place}");
        assert_eq!(a.approximate_size(key(9)..key(9)).unwrap(), 0);
        assert_eq!(a.approximate_size(key(9)..key(3)).unwrap(), 0);
        assert_eq!(a.approximate_size(key(5000)..).unwrap(), 0);
        db.flush().unwrap();
    }
    let table_bytes = db.stats().table_bytes;
    assert_eq!(a.approximate_size(..).unwrap(), table_bytes);
}

/// A sample stands for the whole of a large memtable.
#[test]
fn a_sample_of_memory_is_close() {
    let env = MemEnv::default();
    let db = esker::Db::open(DIRECTORY, simulated(&env).write_buffer_bytes(16 << 20)).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..50_000u32 {
        a.put(number.to_be_bytes(), [0; 30]).unwrap();
    }
    let whole = a.approximate_size(..).unwrap();
    let tenth = a.approximate_size(10_000u32.to_be_bytes()..15_000u32.to_be_bytes()).unwrap();
    assert!(tenth > whole / 14 && tenth < whole / 7, "{tenth} of {whole}");
}

/// The sample that many questions share is taken anew when the memtable has changed: at each write
/// to a small one, and when a large one has grown.
#[test]
fn estimates_follow_writes_between_them() {
    let env = MemEnv::default();
    let db = esker::Db::open(DIRECTORY, simulated(&env).write_buffer_bytes(64 << 20)).unwrap();
    let a = keyspace(&db, "a");
    let key = |number: u32| number.to_be_bytes();
    for number in 0..500 {
        a.put(key(number), [0; 30]).unwrap();
        for _ in 0..5 {
            assert_eq!(a.approximate_count(..).unwrap(), u64::from(number) + 1);
            assert_eq!(a.approximate_count(key(100)..key(200)).unwrap(), u64::from(number + 1).clamp(100, 200) - 100);
        }
    }
    let mut written = 500;
    while written < 100_000 {
        let grown = written + written / 5;
        (written..grown).for_each(|number| a.put(key(number), [0; 30]).unwrap());
        written = grown;
        for _ in 0..5 {
            let last_fifth = a.approximate_count(key(written / 5 * 4)..).unwrap();
            let expected = u64::from(written / 5);
            assert!(last_fifth.abs_diff(expected) < expected / 4, "{last_fifth} of {written}");
        }
    }
    // Less than the documented thousandth is not there yet, and soon is.
    let before = written;
    while a.approximate_count(key(before)..).unwrap() == 0 {
        a.put(key(written), [0; 30]).unwrap();
        written += 1;
    }
    assert!(written - before <= before / 250, "{written} of {before}");
}

#[test]
fn counts_are_close_and_exact_after_a_compaction() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    assert_eq!(a.approximate_count(..).unwrap(), 0);
    let key = |number: u32| number.to_be_bytes();
    for number in 0..2000u32 {
        a.put(key(number), [number as u8; 50]).unwrap();
    }
    for place in ["memory", "tables", "the last run"] {
        assert_eq!(a.approximate_count(..).unwrap(), 2000, "in {place}");
        let half = a.approximate_count(key(500)..key(1500)).unwrap();
        assert!((950..1050).contains(&half), "{half} in {place}");
        assert_eq!(a.approximate_count(key(9)..key(3)).unwrap(), 0);
        assert_eq!(a.approximate_count(key(5000)..).unwrap(), 0);
        if place == "memory" { db.flush().unwrap() } else { a.compact().unwrap() }
    }
    for number in 0..1000u32 {
        a.delete(key(number)).unwrap();
    }
    assert_eq!((a.count(..).unwrap(), a.approximate_count(..).unwrap()), (1000, 3000), "deletions count");
    a.compact().unwrap();
    assert_eq!((a.count(..).unwrap(), a.approximate_count(..).unwrap()), (1000, 1000));
}

/// Whatever the entries are, and in how many tables: what counts besides what is there, and how far
/// a range counts too many.
#[test]
fn a_count_is_wrong_by_no_more_than_it_says() {
    const VALUE: [u8; 20] = [7; 20];
    // A block of 256 bytes has no room for more, also of deletes, which have no value.
    const MOST_IN_A_BLOCK: u64 = 256 / 5;
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let machine = Machine::new();
        // Tables stay as they are flushed.
        let db = Db::open(DIRECTORY, machine.options().compression(esker::Compression::None)).unwrap();
        let options =
            KeyspaceOptions::default().merge_operator(StringAppend::new(",")).ttl(Ttl::Enabled { default: None });
        let a = db.keyspace("a", options.compaction_style(CompactionStyle::Fifo { max_bytes: u64::MAX })).unwrap();
        // Of each table the keys, and those that it has as deleted: where nothing is below, it may
        // leave these out.
        let mut flushed: Vec<(BTreeSet<u32>, BTreeSet<u32>)> = Vec::new();
        for _ in 0..1 + random.below(5) {
            let (mut written, mut deleted) = (BTreeSet::new(), BTreeSet::new());
            for _ in 0..1 + random.below(300) {
                let number = random.below(1000) as u32;
                let key = number.to_be_bytes();
                deleted.remove(&number);
                match random.below(4) {
                    0 => a.put_with(key, VALUE, &WriteOptions::new().ttl(Duration::from_secs(1))).unwrap(),
                    1 => a.merge(key, VALUE).unwrap(),
                    2 => {
                        a.delete(key).unwrap();
                        deleted.insert(number);
                    }
                    _ => a.put(key, VALUE).unwrap(),
                }
                written.insert(number);
            }
            db.flush().unwrap();
            flushed.push((written, deleted));
        }
        machine.pass(Duration::from_secs(2));
        let (from, to) = (random.below(500) as u32, 500 + random.below(500) as u32);
        a.delete_range(from.to_be_bytes()..to.to_be_bytes()).unwrap();
        for _ in 0..20 {
            let (from, to) = (random.below(1000) as u32, random.below(1000) as u32);
            let (from, to) = (from.min(to), from.max(to));
            let within = |keys: &BTreeSet<u32>| keys.range(from..to).count() as u64;
            let exact: u64 = flushed.iter().map(|(written, _)| within(written)).sum();
            let left_out: u64 = flushed.iter().map(|(_, deleted)| within(deleted)).sum();
            let counted = a.approximate_count(from.to_be_bytes()..to.to_be_bytes()).unwrap();
            let too_many = flushed.len() as u64 * 2 * MOST_IN_A_BLOCK;
            let allowed = exact - left_out..=exact + too_many;
            assert!(allowed.contains(&counted), "seed {seed}, {from}..{to}: {counted}, allowed {allowed:?}");
        }
    }
}
