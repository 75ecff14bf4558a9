//! Scans of keys alone yield the keys that scans of pairs yield, and load no large value.

use crate::common::{Machine, PLACES, settle};
use esker::merge::StringAppend;
use esker::{Db, Iter, Keyspace, KeyspaceOptions, Slice, Ttl, WriteOptions};
use std::time::Duration;

fn open(machine: &Machine) -> (Db, Keyspace) {
    let db = Db::open(crate::common::DIRECTORY, machine.options().min_blob_size(100)).expect("a database");
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    let keyspace = db.keyspace("k", options.merge_operator(StringAppend::new(","))).expect("a keyspace");
    (db, keyspace)
}

fn keys(pairs: Iter) -> Vec<Slice> {
    pairs.map(|pair| pair.expect("a scan").0).collect()
}

#[test]
fn they_are_those_of_pairs_in_both_directions() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine);
        let large = "l".repeat(200);
        for number in 0..200 {
            let key = format!("{number:03}");
            match number % 7 {
                0 => keyspace.put(&key, &large).expect("put"),
                1 => keyspace.merge(&key, "1").expect("merge"),
                2 => keyspace.put_with(&key, "1", &WriteOptions::new().ttl(Duration::from_secs(1))).expect("put"),
                3 => keyspace.delete(&key).expect("delete"),
                4 => {
                    keyspace.put(&key, &large).expect("put");
                    keyspace.merge(&key, "1").expect("merge");
                }
                _ => keyspace.put(&key, "1").expect("put"),
            }
        }
        settle(&db, place);
        keyspace.delete_range("050".."060").expect("delete");
        keyspace.delete("000").expect("delete");
        keyspace.put("001", &large).expect("put");
        machine.pass(Duration::from_secs(1));
        let expected = keys(keyspace.iter());
        assert!(expected.len() > 100 && expected[0] == "001");
        let all = |keys: esker::Keys| keys.map(|key| key.expect("a scan")).collect::<Vec<_>>();
        assert_eq!(all(keyspace.iter().keys()), expected, "{place:?}");
        let mut backward: Vec<Slice> = keyspace.iter().keys().rev().map(|key| key.expect("a scan")).collect();
        backward.reverse();
        assert_eq!(backward, expected, "{place:?}");
        assert_eq!(all(keyspace.range("040".."070").keys()), keys(keyspace.range("040".."070")));
        assert_eq!(all(db.snapshot().prefix(&keyspace, "1").keys()), keys(keyspace.prefix("1")));
        assert_eq!(keyspace.count(..).expect("count"), expected.len() as u64);
        // Begun as pairs, from both ends.
        let mut pairs = keyspace.iter();
        let (first, last) = (pairs.next().expect("one").expect("a scan").0, pairs.next_back().expect("one"));
        let rest = all(pairs.keys());
        let whole = [vec![first], rest, vec![last.expect("a scan").0]].concat();
        assert_eq!(whole, expected);
        let mut cursor = keyspace.cursor().expect("a cursor").keys_only();
        cursor.seek_to_last().expect("seek");
        for key in expected.iter().rev() {
            assert_eq!(cursor.key(), &**key);
            cursor.prev().expect("prev");
        }
        assert!(!cursor.valid());
        let mut cursor = keyspace.cursor().expect("a cursor").keys_only().within("040".."070");
        let mut seen = Vec::new();
        cursor.seek_to_first().expect("seek");
        while cursor.valid() {
            seen.push(cursor.key().to_vec());
            cursor.next().expect("next");
        }
        assert_eq!(keys(keyspace.range("040".."070")), seen, "{place:?}");
    }
}

#[test]
fn a_damaged_large_value_does_not_matter() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine);
        keyspace.put("a", "1").expect("put");
        keyspace.put("b", "l".repeat(200)).expect("put");
        settle(&db, place);
        let blobs = machine.env.files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "blob"));
        let mut damaged = 0;
        for path in blobs {
            let mut bytes = machine.env.file_bytes(&path).expect("it is there");
            bytes.iter_mut().for_each(|byte| *byte ^= 1);
            machine.env.set_file_bytes(&path, bytes);
            damaged += 1;
        }
        assert!(damaged > 0);
        assert!(keyspace.iter().any(|pair| pair.is_err()), "{place:?}");
        assert_eq!(keyspace.count(..).expect("count"), 2);
        for key in keyspace.iter().keys().chain(keyspace.iter().keys().rev()) {
            key.expect("no value is loaded");
        }
        let mut cursor = keyspace.cursor().expect("a cursor").keys_only();
        cursor.seek_to_first().expect("no value is loaded");
        cursor.next().expect("no value is loaded");
        assert_eq!(cursor.key(), b"b");
    }
}
