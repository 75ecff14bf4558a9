//! A cursor that is kept to a range finds what a scan of the range finds, from wherever it is
//! moved, and meets no failure outside.

use crate::common::{Machine, PLACES, settle};
use esker::merge::StringAppend;
use esker::{Cursor, Db, Keyspace, KeyspaceOptions, MergeError, MergeOperator, ReverseBytewise};
use std::ops::Bound;

/// Refuses every operand but those of `StringAppend`.
struct Poisonable(StringAppend);

impl MergeOperator for Poisonable {
    fn name(&self) -> &str {
        "poisonable"
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        if operands.contains(&&b"poison"[..]) {
            return Err(MergeError("poisoned".to_owned()));
        }
        self.0.full_merge(key, existing, operands)
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn open(machine: &Machine, options: KeyspaceOptions) -> (Db, Keyspace) {
    let db = Db::open(crate::common::DIRECTORY, machine.options()).expect("a database");
    let options = options.merge_operator(Poisonable(StringAppend::new(",")));
    let keyspace = db.keyspace("k", options).expect("a keyspace");
    (db, keyspace)
}

fn key_at(cursor: &Cursor) -> Option<Vec<u8>> {
    cursor.valid().then(|| cursor.key().to_vec())
}

/// Every range of some keys, and some between them.
fn bounds() -> Vec<Bound<Vec<u8>>> {
    let keys = ["02", "03", "03x", "05", "07", "08"];
    let keys = keys.iter().map(|key| key.as_bytes().to_vec());
    keys.flat_map(|key| [Bound::Included(key.clone()), Bound::Excluded(key)]).chain([Bound::Unbounded]).collect()
}

#[test]
fn it_finds_what_a_scan_of_the_range_finds() {
    for options in [KeyspaceOptions::default(), KeyspaceOptions::default().comparator(ReverseBytewise)] {
        for place in PLACES {
            let machine = Machine::new();
            let (db, keyspace) = open(&machine, options.clone());
            for number in 0..11 {
                let key = format!("{number:02}");
                match number % 3 {
                    0 => keyspace.merge(&key, "1").expect("merge"),
                    1 => keyspace.put(&key, "1").expect("put"),
                    _ => {
                        keyspace.put(&key, "1").expect("put");
                        keyspace.merge(&key, "2").expect("merge");
                    }
                }
            }
            keyspace.delete("06").expect("delete");
            settle(&db, place);
            for lower in bounds() {
                for upper in bounds() {
                    let range = (lower.clone(), upper);
                    let inside: Vec<Vec<u8>> =
                        keyspace.range(&range).map(|pair| pair.expect("a scan").0.to_vec()).collect();
                    let mut cursor = keyspace.cursor().expect("a cursor").within(&range);
                    assert!(!cursor.valid());
                    cursor.seek_to_first().expect("seek");
                    for key in &inside {
                        assert_eq!(key_at(&cursor).as_ref(), Some(key), "{place:?}, {range:?}");
                        cursor.next().expect("next");
                    }
                    assert_eq!(key_at(&cursor), None, "{place:?}, {range:?}");
                    cursor.seek_to_last().expect("seek");
                    for key in inside.iter().rev() {
                        assert_eq!(key_at(&cursor).as_ref(), Some(key), "{place:?}, {range:?}");
                        cursor.prev().expect("prev");
                    }
                    assert_eq!(key_at(&cursor), None, "{place:?}, {range:?}");
                    for target in ["00", "02", "03y", "06", "08", "99"] {
                        let is_before = |key: &[u8]| keyspace.compare_keys(key, target.as_bytes()).is_lt();
                        let is_behind = |key: &[u8]| keyspace.compare_keys(key, target.as_bytes()).is_gt();
                        cursor.seek(target).expect("seek");
                        let expected = inside.iter().find(|key| !is_before(key)).cloned();
                        assert_eq!(key_at(&cursor), expected, "{place:?}, {range:?}, {target}");
                        cursor.seek_for_prev(target).expect("seek");
                        let expected = inside.iter().rfind(|key| !is_behind(key)).cloned();
                        assert_eq!(key_at(&cursor), expected, "{place:?}, {range:?}, {target}");
                    }
                }
            }
        }
    }
}

#[test]
fn it_meets_no_failure_outside() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine, KeyspaceOptions::default());
        for key in ["a", "b", "c", "d", "e"] {
            keyspace.merge(key, if matches!(key, "b" | "d") { "poison" } else { "1" }).expect("merge");
        }
        settle(&db, place);
        for range in [("b1", "d"), ("c", "c1")].map(|(start, end)| start..end) {
            let mut cursor = keyspace.cursor().expect("a cursor").within(range);
            cursor.seek_to_first().expect("seek");
            assert_eq!(cursor.key(), b"c");
            cursor.next().expect("next");
            assert!(!cursor.valid());
            for backward in [Cursor::seek_to_last, |cursor: &mut Cursor| cursor.seek_for_prev("z")] {
                backward(&mut cursor).expect("seek");
                assert_eq!(cursor.key(), b"c");
                cursor.prev().expect("prev");
                assert!(!cursor.valid());
            }
            cursor.seek("d").expect("seek");
            assert!(!cursor.valid());
            cursor.seek("a").expect("seek");
            assert_eq!(cursor.key(), b"c");
        }
        let mut cursor = keyspace.cursor().expect("a cursor");
        cursor.seek("c").expect("seek");
        assert!(cursor.next().is_err(), "the failure is there");
    }
}
