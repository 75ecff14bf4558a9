//! Estimates count what is in memory too: 0 must not mean "not flushed yet".

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::internals::Random;
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions, Ttl, WriteOptions};
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
/// a range counts too many. Entries of a table are of one length here.
#[test]
fn a_count_is_wrong_by_no_more_than_it_says() {
    const VALUE: [u8; 20] = [7; 20];
    // A block of 256 bytes has no room for more.
    const MOST_IN_A_BLOCK: u64 = 256 / 20 + 1;
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let machine = Machine::new();
        let db = Db::open(DIRECTORY, machine.options().compression(esker::Compression::None)).unwrap();
        let a = stays_as_flushed(&db);
        let mut flushed: Vec<BTreeSet<u32>> = Vec::new();
        for _ in 0..1 + random.below(5) {
            let mut written = BTreeSet::new();
            let kind = random.below(3);
            for _ in 0..1 + random.below(300) {
                let number = random.below(1000) as u32;
                if !written.insert(number) {
                    continue;
                }
                let key = number.to_be_bytes();
                match kind {
                    0 => a.put_with(key, VALUE, &WriteOptions::new().ttl(Duration::from_secs(1))).unwrap(),
                    1 => a.merge(key, VALUE).unwrap(),
                    _ => a.put(key, VALUE).unwrap(),
                }
            }
            db.flush().unwrap();
            flushed.push(written);
        }
        machine.pass(Duration::from_secs(2));
        let (from, to) = (random.below(500) as u32, 500 + random.below(500) as u32);
        a.delete_range(from.to_be_bytes()..to.to_be_bytes()).unwrap();
        for _ in 0..20 {
            let (from, to) = (random.below(1000) as u32, random.below(1000) as u32);
            let (from, to) = (from.min(to), from.max(to));
            let exact: usize = flushed.iter().map(|written| written.range(from..to).count()).sum();
            let counted = a.approximate_count(from.to_be_bytes()..to.to_be_bytes()).unwrap();
            let too_many = flushed.len() as u64 * 2 * MOST_IN_A_BLOCK;
            let allowed = exact as u64..=exact as u64 + too_many;
            assert!(allowed.contains(&counted), "seed {seed}, {from}..{to}: {counted}, allowed {allowed:?}");
        }
    }
}

/// A table knows how many entries it has, and where its bytes are.
#[test]
fn a_count_takes_the_entries_of_a_table_for_equally_long() {
    let machine = Machine::new();
    let options = machine.options().compression(esker::Compression::None).target_file_bytes(1 << 20);
    let db = Db::open(DIRECTORY, options).unwrap();
    let a = stays_as_flushed(&db);
    for number in 0..1000u32 {
        a.put(number.to_be_bytes(), vec![7; if number < 500 { 10 } else { 100 }]).unwrap();
    }
    db.flush().unwrap();
    let count =
        |range: std::ops::Range<u32>| a.approximate_count(range.start.to_be_bytes()..range.end.to_be_bytes()).unwrap();
    let (short, long) = (count(0..500), count(500..1000));
    assert!((50..400).contains(&short), "{short} of 500 that are shorter than the others");
    assert!((600..950).contains(&long), "{long} of 500 that are longer");
    assert_eq!(a.approximate_count(..).unwrap(), 1000);
}

/// A keyspace whose tables no compaction merges.
fn stays_as_flushed(db: &Db) -> Keyspace {
    let options = KeyspaceOptions::default().merge_operator(StringAppend::new(",")).ttl(Ttl::Enabled { default: None });
    db.keyspace("a", options.compaction_style(CompactionStyle::Fifo { max_bytes: u64::MAX })).unwrap()
}
