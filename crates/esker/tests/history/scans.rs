//! Scans: behind a key whose merge fails, from both ends, and turning round.

use crate::common::Scratch;
use esker::{Cursor, Db, Error, Keyspace, KeyspaceOptions, Options, merge};
use std::collections::BTreeMap;

/// Keys `a` to `f`; the merges of `b` and `e` fail.
fn with_failing_keys(db: &Db) -> Keyspace {
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(merge::UInt64Add)).unwrap();
    for key in ["a", "c", "d", "f"] {
        k.put(key, 1u64.to_le_bytes()).unwrap();
    }
    for key in ["b", "e"] {
        k.put(key, "bad").unwrap();
        k.merge(key, 1u64.to_le_bytes()).unwrap();
    }
    k
}

/// A step of a scan: the key, or `!` for a merge that failed.
fn shown(item: esker::Result<(esker::Slice, esker::Slice)>) -> String {
    match item {
        Ok((key, _)) => String::from_utf8(key.to_vec()).unwrap(),
        Err(Error::MergeFailed { .. }) => "!".into(),
        Err(other) => panic!("{other}"),
    }
}

/// Seen: a backward scan ended at the first key whose merge failed. Trigger: one bad operand. Cost:
/// all keys below it, unseen.
#[test]
fn scans_in_both_directions_go_on_behind_a_failed_merge() {
    let scratch = Scratch::new("failed-merge");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = with_failing_keys(&db);
    for flushed in [false, true] {
        let forward: Vec<String> = k.iter().map(shown).collect();
        let backward: Vec<String> = k.iter().rev().map(shown).collect();
        assert_eq!(forward, ["a", "!", "c", "d", "!", "f"], "flushed: {flushed}");
        assert_eq!(backward, ["f", "!", "d", "c", "!", "a"], "flushed: {flushed}");
        db.flush().unwrap();
    }
    assert!(db.health().failed_merges >= 8);
}

/// Seen: a key came from both ends. Trigger: an iterator used from both ends, meeting at a key
/// whose merge failed. Cost: double counting.
#[test]
fn an_iterator_used_from_both_ends_hands_out_nothing_twice() {
    let scratch = Scratch::new("both-ends");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = with_failing_keys(&db);
    // Every order of taking from the front and from the back.
    for pattern in 0u32..256 {
        let mut iter = k.iter();
        let mut seen = Vec::new();
        for step in 0..8 {
            let item = if pattern >> step & 1 == 0 { iter.next() } else { iter.next_back() };
            seen.extend(item.map(shown));
        }
        assert!(iter.next().is_none() && iter.next_back().is_none(), "pattern {pattern:b}");
        seen.sort();
        assert_eq!(seen, ["!", "!", "a", "c", "d", "f"], "pattern {pattern:b}");
    }
}

/// A generator of the same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn key(n: u64) -> String {
    format!("k{n:02}")
}

fn at(cursor: &Cursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

/// Keys overwritten, deleted and merged, in memory and in tables, with old versions kept by
/// snapshots.
fn shuffled(db: &Db, k: &Keyspace, numbers: &mut Numbers) -> Vec<esker::Snapshot> {
    let mut snapshots = Vec::new();
    for n in 0..400 {
        let name = key(numbers.below(24));
        match numbers.below(5) {
            0 => k.delete(name).unwrap(),
            1 | 2 => k.put(name, n.to_string()).unwrap(),
            _ => k.merge(name, n.to_string()).unwrap(),
        }
        match numbers.below(40) {
            0 => db.flush().unwrap(),
            1 => snapshots.push(db.snapshot()),
            _ => {}
        }
    }
    snapshots
}

/// Turning round at a key that was overwritten, deleted or merged lands where a fresh seek lands.
#[test]
fn turning_round_lands_where_a_fresh_seek_lands() {
    let scratch = Scratch::new("turning");
    let options = Options::default().background_threads(0);
    let db = Db::open(scratch.path(), options).unwrap();
    let appending = || KeyspaceOptions::default().merge_operator(merge::StringAppend::new(","));
    let k = db.keyspace("k", appending()).unwrap();
    for seed in 0..20 {
        let mut numbers = Numbers(seed);
        let snapshots = shuffled(&db, &k, &mut numbers);
        let get = |n| k.get(key(n)).unwrap().map(|value| (key(n).into_bytes(), value.to_vec()));
        let expected: BTreeMap<Vec<u8>, Vec<u8>> = (0..24).filter_map(get).collect();
        let mut cursor = k.cursor().unwrap();
        for step in 0..400 {
            let from = at(&cursor).map(|(key, _)| key);
            let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let wanted = match (&from, numbers.below(2)) {
                (Some(from), 0) => {
                    cursor.next().unwrap();
                    let mut above = expected.range(from.clone()..);
                    above.nth(1).map(pair)
                }
                (Some(from), _) => {
                    cursor.prev().unwrap();
                    expected.range(..from.clone()).next_back().map(pair)
                }
                (None, _) => {
                    let start = key(numbers.below(24)).into_bytes();
                    cursor.seek(&start).unwrap();
                    expected.range(start..).next().map(pair)
                }
            };
            assert_eq!(at(&cursor), wanted, "seed {seed}, step {step}, from {from:?}");
            if let Some((key, _)) = &wanted {
                let mut fresh = k.cursor().unwrap();
                fresh.seek(key).unwrap();
                assert_eq!(at(&fresh), wanted, "seed {seed}, step {step}");
            }
        }
        drop(snapshots);
    }
}
