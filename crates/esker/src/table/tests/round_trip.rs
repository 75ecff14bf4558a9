//! What was written is read back, by every way of reading.

use super::support::*;
use crate::base::key::{self, Kind, MAX_KEY_BYTES, MAX_SEQUENCE, MAX_VALUE_BYTES, NEVER, Sequence, compare};
use crate::error::Error;
use crate::iter::Cursor;
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableBuilder, TableCursor, TableOptions};
use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

fn get(table: &Table, key: &[u8], sequence: Sequence, most: usize) -> (Vec<Owned>, bool) {
    let (mut found, mut kept) = (Vec::new(), Vec::new());
    let mut visit = |version: crate::table::FoundEntry| {
        kept.push(version.value.to_slice());
        found.push(Owned {
            key: key.to_vec(),
            sequence: version.sequence,
            kind: version.kind,
            expiry_ms: version.expiry_ms,
            value: version.value.to_vec(),
        });
        found.len() < most
    };
    let result = table.get(key, key::hash(key), sequence, &mut visit).expect("a good table");
    // Also after the search.
    assert!(kept.iter().zip(&found).all(|(kept, found)| **kept == *found.value));
    (found, result)
}

fn check_gets(table: &Table, entries: &[Owned], random: &mut Random) {
    for _ in 0..200 {
        let mut key = entries[random.below(entries.len() as u64) as usize].key.clone();
        if random.below(4) == 0 {
            key.push(b'a');
        }
        let sequence = if random.below(2) == 0 { MAX_SEQUENCE } else { random.below(8000) };
        let most = 1 + random.below(6) as usize;
        let all: Vec<Owned> = entries.iter().filter(|e| e.key == key && e.sequence <= sequence).cloned().collect();
        let (found, complete) = get(table, &key, sequence, most);
        assert_eq!(found, all[..most.min(all.len())]);
        assert_eq!(complete, all.len() < most);
    }
}

pub(crate) fn collect(cursor: &mut impl Cursor) -> Vec<Owned> {
    let mut found = Vec::new();
    cursor.seek_to_first().expect("a good table");
    while cursor.valid() {
        found.push(cursor.entry().into());
        cursor.next().expect("a good table");
    }
    found
}

/// Random steps and seeks, of the cursor and of a position in the model side by side.
pub(crate) fn walk(cursor: &mut impl Cursor, entries: &[Owned], steps: u32, random: &mut Random) {
    let mut model: Option<usize> = None;
    for _ in 0..steps {
        match random.below(20) {
            0 => {
                cursor.seek_to_first().expect("a good table");
                model = (!entries.is_empty()).then_some(0);
            }
            1 => {
                cursor.seek_to_last().expect("a good table");
                model = entries.len().checked_sub(1);
            }
            2..=4 if !entries.is_empty() => {
                let target = &entries[random.below(entries.len() as u64) as usize];
                let mut key = target.key.clone();
                match random.below(4) {
                    0 => key.push(0),
                    1 => drop(key.pop()),
                    _ => {}
                }
                let sequence = match random.below(4) {
                    0 => target.sequence,
                    1 => target.sequence.saturating_sub(1),
                    2 => 0,
                    _ => MAX_SEQUENCE,
                };
                cursor.seek(&key, sequence).expect("a good table");
                let at = entries.partition_point(|e| compare(&e.key, e.sequence, &key, sequence) == Ordering::Less);
                model = (at < entries.len()).then_some(at);
            }
            5..=11 => {
                cursor.prev().expect("a good table");
                model = model.and_then(|at| at.checked_sub(1));
            }
            _ => {
                cursor.next().expect("a good table");
                model = model.map(|at| at + 1).filter(|&at| at < entries.len());
            }
        }
        assert_eq!(cursor.valid(), model.is_some());
        if let Some(at) = model {
            assert_eq!(Owned::from(cursor.entry()), entries[at]);
        }
    }
}

fn collect_backward(cursor: &mut TableCursor) -> Vec<Owned> {
    let mut found = Vec::new();
    cursor.seek_to_last().expect("a good table");
    while cursor.valid() {
        found.push(cursor.entry().into());
        cursor.prev().expect("a good table");
    }
    found.reverse();
    found
}

fn check(entries: &[Owned], options: TableOptions, random: &mut Random) {
    let (bytes, summary) = build(entries, options);
    for access in ACCESSES {
        let table = open(bytes.clone(), access).expect("a good table");
        assert_eq!(table.summary(), &summary);
        for fill_cache in [false, true] {
            assert!(collect(&mut table.cursor(fill_cache)) == entries);
            assert!(collect_backward(&mut table.cursor(fill_cache)) == entries);
            walk(&mut table.cursor(fill_cache), entries, 300, random);
        }
        if !entries.is_empty() {
            check_gets(&table, entries, random);
        }
        let mut seen = 0;
        table.verify(&mut |bytes| seen += bytes).expect("a good table");
        assert_eq!(seen, bytes.len() as u64);
    }
}

#[test]
fn every_shape_in_every_block_size() {
    let mut random = Random::new(1);
    for &compression in COMPRESSIONS {
        for block_bytes in [64, 300, 8192] {
            for versions in [1, 6] {
                for shape in shapes(150, versions) {
                    let entries = random_entries(shape, &mut random);
                    check(&entries, options(block_bytes, compression), &mut random);
                }
            }
        }
    }
}

#[test]
fn edges() {
    let mut random = Random::new(2);
    let long = vec![b'k'; MAX_KEY_BYTES];
    let cases: Vec<Vec<Owned>> = vec![
        vec![],
        vec![Owned::put("", 0, "")],
        vec![Owned::put("", MAX_SEQUENCE, "x"), Owned::put("", 0, "")],
        vec![Owned::put("", 3, ""), Owned::put("\0", 3, ""), Owned::put("\0\0", 3, "")],
        vec![Owned::put("a", 3, ""), Owned::put(long.clone(), 9, "v"), Owned::put("z", 3, "")],
        vec![Owned::put(&long[1..], 3, "1"), Owned::put(long, 9, vec![7; 100_000])],
        (0..3000).rev().map(|sequence| Owned::put("one key", sequence, sequence.to_string())).collect(),
        (0..70_000u32).map(|i| Owned::put(i.to_be_bytes(), 1, "")).collect(),
    ];
    for entries in cases {
        for &compression in COMPRESSIONS {
            check(&entries, options(8192, compression), &mut random);
            check(&entries, TableOptions { filter_bits_per_key: 0, ..options(usize::MAX, compression) }, &mut random);
        }
    }
}

#[test]
fn a_large_value_between_small_ones() {
    let mut random = Random::new(3);
    let mut entries: Vec<Owned> = (0..100).map(|i| Owned::put(format!("k{i:03}"), 1, random.text(50))).collect();
    entries[50].value = random.text(10 << 20);
    for &compression in COMPRESSIONS {
        let (bytes, _) = build(&entries, options(8192, compression));
        for access in ACCESSES {
            let table = open(bytes.clone(), access).expect("a good table");
            assert!(collect(&mut table.cursor(true)) == entries);
            let (found, _) = get(&table, b"k050", 5, 1);
            assert!(found[0] == entries[50]);
        }
    }
}

#[test]
fn the_summary_adds_up() {
    let mut entries =
        vec![Owned::put("a", 9, "12345"), Owned::put("b", 4, ""), Owned::put("b", 3, "1"), Owned::put("c", 7, "12")];
    (entries[1].kind, entries[2].kind) = (Kind::Delete, Kind::Merge);
    (entries[2].expiry_ms, entries[3].expiry_ms) = (500, 400);
    let (_, summary) = build(&entries, TableOptions::default());
    assert_eq!((summary.entries, summary.deletes, summary.merges), (4, 1, 1));
    assert_eq!((summary.smallest_sequence, summary.largest_sequence), (3, 9));
    assert_eq!((summary.expiring_entries, summary.smallest_expiry_ms, summary.largest_expiry_ms), (2, 400, 500));
    assert_eq!((summary.smallest_key.as_slice(), summary.largest_key.as_slice()), (&b"a"[..], &b"c"[..]));
    assert_eq!((summary.raw_key_bytes, summary.raw_value_bytes), (4, 8));
    let (_, empty) = build(&[], TableOptions::default());
    assert_eq!((empty.entries, empty.expiring_entries, empty.smallest_expiry_ms), (0, 0, NEVER));
}

#[test]
fn what_a_table_cannot_hold_is_refused_and_changes_nothing() {
    let file = MemoryWrite::default();
    let mut builder = TableBuilder::new(Box::new(file), PathBuf::from("t"), 1, TableOptions::default());
    let huge = vec![0; MAX_VALUE_BYTES + 1];
    builder.add(Owned::put("b", 5, "").entry()).expect("the first");
    for bad in [
        Owned::put("a", 9, ""),
        Owned::put("b", 5, ""),
        Owned::put("b", 6, ""),
        Owned::put("c", MAX_SEQUENCE + 1, ""),
        Owned::put(vec![b'z'; MAX_KEY_BYTES + 1], 1, ""),
        Owned::put("c", 1, huge),
    ] {
        assert!(matches!(builder.add(bad.entry()), Err(Error::InvalidArgument { .. })));
    }
    builder.add(Owned::put("b", 4, "").entry()).expect("an older version");
    assert_eq!(builder.finish().expect("memory does not fail").entries, 2);
}

#[test]
fn the_cache_is_used_and_its_budget_kept() {
    let mut random = Random::new(4);
    let entries: Vec<Owned> = (0..5000).map(|i| Owned::put(format!("{i:08}"), 1, random.text(100))).collect();
    let (bytes, _) = build(&entries, options(4096, Compression::Lz4));
    const BUDGET: usize = 64 << 10;
    let cache = Arc::new(BlockCache::new(BUDGET));
    let file = MemoryRead::new(bytes, false);
    let table =
        Table::open(file, PathBuf::from("t"), FILE_NUMBER, Arc::clone(&cache), ReadMode::Mmap).expect("a good table");
    collect(&mut table.cursor(false));
    assert_eq!(cache.usage_bytes(), 0, "a bulk read leaves nothing in the cache");
    for _ in 0..3000 {
        let at = random.below(entries.len() as u64) as usize;
        assert_eq!(get(&table, &entries[at].key, 9, 1).0, entries[at..=at]);
        assert!(cache.usage_bytes() <= BUDGET);
    }
    let (hits, misses) = (cache.hits(), cache.misses());
    // A full cache does not take in every block, but one that is requested again and again.
    for _ in 0..64 {
        assert_eq!(get(&table, &entries[7].key, 9, 1).0, entries[7..8]);
    }
    assert!(cache.hits() > hits && hits > 0 && misses > 0);
    let held = {
        let mut held = Vec::new();
        table
            .get(b"00000007", key::hash(b"00000007"), 9, &mut |v| {
                held.push(v.value.to_slice());
                true
            })
            .expect("good");
        held
    };
    drop(table);
    assert_eq!(cache.usage_bytes(), 0, "a closed table frees its blocks");
    assert_eq!(held[0], entries[7].value.as_slice(), "values outlive their table");
}

#[test]
fn a_block_that_is_compressed_is_never_taken_for_one_to_be_read_in_place() {
    let entries: Vec<Owned> = (0..500).map(|i| Owned::put(format!("{i:08}"), 1, format!("{i:0100}"))).collect();
    let (bytes, _) = build(&entries, options(1024, Compression::Lz4));
    for cache_bytes in [0, 1 << 20] {
        let table = open(bytes.clone(), Access { read_mode: ReadMode::Mmap, cache_bytes }).expect("a good table");
        // A reader looks at both sets, one after the other. What another thread finds out in
        // between must not make a compressed block look readable.
        entries.iter().for_each(|entry| drop(get(&table, &entry.key, 9, 1)));
        collect(&mut table.cursor(true));
        for number in 0..table.index.len() {
            assert!(table.verified.packed.contains(number) && table.verified.unpacked.contains(number));
            assert!(!table.verified.good.contains(number), "block {number}");
        }
    }
}

#[test]
fn readers_meet_at_blocks_that_nobody_has_read() {
    let entries: Vec<Owned> = (0..200).map(|i| Owned::put(format!("{i:08}"), 1, format!("{i:0100}"))).collect();
    let (bytes, _) = build(&entries, options(1024, Compression::Lz4));
    for round in 0..100 {
        let table = open(bytes.clone(), ACCESSES[round % ACCESSES.len()]).expect("a good table");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for entry in &entries {
                        assert_eq!(get(&table, &entry.key, 9, 1).0[..], std::slice::from_ref(entry)[..]);
                    }
                });
            }
        });
    }
}

#[test]
fn a_get_may_read_the_same_table_again() {
    let entries: Vec<Owned> = (0..200).map(|i| Owned::put(format!("{i:08}"), 1, format!("{i:0100}"))).collect();
    let (bytes, _) = build(&entries, options(1024, Compression::Lz4));
    for access in ACCESSES {
        let table = open(bytes.clone(), access).expect("a good table");
        for (entry, other) in entries.iter().zip(entries.iter().rev()) {
            let mut visit = |version: crate::table::FoundEntry| {
                assert_eq!(get(&table, &other.key, 9, 1).0[0], *other);
                assert_eq!(*version.value, *entry.value, "the inner get has used other memory");
                true
            };
            table.get(&entry.key, key::hash(&entry.key), 9, &mut visit).expect("a good table");
        }
    }
}
