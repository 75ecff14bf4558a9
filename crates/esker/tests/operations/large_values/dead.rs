//! Large values that end otherwise than by a delete of their key: by time, by a range, by a merge.

use super::{THRESHOLD, blob_files, value};
use crate::common::{DIRECTORY, Machine, PLACES, Place, settle};
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Ttl, WriteOptions};
use std::time::Duration;

fn open(machine: &Machine) -> Db {
    Db::open(DIRECTORY, machine.options().min_blob_size(THRESHOLD)).unwrap()
}

fn expiring(db: &Db) -> Keyspace {
    let ttl = Ttl::Enabled { default: None };
    db.keyspace("log", KeyspaceOptions::default().ttl(ttl).merge_operator(StringAppend::new(","))).unwrap()
}

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(Duration::from_secs(count))
}

fn appended(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(&b","[..])
}

#[test]
fn expired_values_give_their_file_back() {
    for place in PLACES {
        let machine = Machine::new();
        let db = open(&machine);
        let log = expiring(&db);
        log.put_with("k", value(1, 3000), &for_seconds(10)).unwrap();
        let mut batch = db.batch();
        batch.put_with_ttl(&log, "b", value(2, 3000), Duration::from_secs(10)).unwrap();
        batch.commit().unwrap();
        settle(&db, place);
        machine.pass(Duration::from_secs(9));
        assert_eq!(log.get("k").unwrap().as_deref(), Some(&value(1, 3000)[..]), "{place:?}");
        assert_eq!(log.get("b").unwrap().as_deref(), Some(&value(2, 3000)[..]), "{place:?}");
        assert!(log.expires_at("k").unwrap().is_some());
        assert_eq!((log.iter().count(), log.iter().rev().count()), (2, 2));
        machine.pass(Duration::from_secs(1));
        assert_eq!(log.get("k").unwrap(), None);
        assert_eq!((log.iter().count(), log.iter().rev().count()), (0, 0));
        db.compact().unwrap();
        assert_eq!(blob_files(&machine.env, DIRECTORY).len(), 0, "{place:?}");
    }
}

/// The background does it without being asked: the tables go unread, and with them what they refer
/// to.
#[test]
fn expired_values_give_their_file_back_unasked() {
    let machine = Machine::new();
    let db = open(&machine);
    let log = expiring(&db);
    for i in 0..10 {
        log.put_with(format!("{i}"), value(i, 3000), &for_seconds(10)).unwrap();
    }
    db.flush().unwrap();
    machine.pass(Duration::from_secs(10));
    assert_eq!(blob_files(&machine.env, DIRECTORY).len(), 2);
    db.wait_idle().unwrap();
    // The one that writes go on in stays until it is full.
    assert_eq!((log.iter().count(), blob_files(&machine.env, DIRECTORY).len()), (0, 1));
}

#[test]
fn a_deleted_range_gives_the_files_of_its_values_back() {
    for place in PLACES {
        let machine = Machine::new();
        let db = open(&machine);
        let k = super::keyspace(&db);
        for i in 0..20 {
            k.put(format!("{i:02}"), value(i, 3000)).unwrap();
        }
        settle(&db, place);
        k.delete_range("05".."15").unwrap();
        assert_eq!((k.iter().count(), k.iter().rev().count()), (10, 10), "{place:?}");
        let snapshot = db.snapshot();
        k.delete_range(..).unwrap();
        assert_eq!((k.get("00").unwrap(), k.iter().count()), (None, 0));
        db.compact().unwrap();
        assert_eq!(snapshot.get(&k, "19").unwrap().as_deref(), Some(&value(19, 3000)[..]), "{place:?}");
        assert_eq!(snapshot.get(&k, "10").unwrap(), None);
        drop(snapshot);
        db.compact().unwrap();
        assert_eq!(blob_files(&machine.env, DIRECTORY).len(), 0, "{place:?}");
    }
}

/// The merge that makes a key live longer copies the reference, not the value.
#[test]
fn a_merge_that_extends_a_life_keeps_the_value() {
    for place in PLACES {
        let machine = Machine::new();
        let db = open(&machine);
        let log = expiring(&db);
        log.put_with("k", value(1, 3000), &for_seconds(10)).unwrap();
        log.put_with("plain", value(2, 3000), &for_seconds(10)).unwrap();
        settle(&db, place);
        log.merge("plain", "tail").unwrap();
        log.merge_with("k", "two", &for_seconds(100)).unwrap();
        let one = value(1, 3000);
        let expected = appended(&[&one, b"two"]);
        let check = |log: &Keyspace| {
            assert_eq!(log.get("k").unwrap().as_deref(), Some(&expected[..]), "{place:?}");
            assert_eq!(log.iter().next().unwrap().unwrap().1.to_vec(), expected);
            let forward: Vec<_> = log.iter().map(|pair| pair.unwrap()).collect();
            let mut backward: Vec<_> = log.iter().rev().map(|pair| pair.unwrap()).collect();
            backward.reverse();
            assert!(forward == backward, "{place:?}");
        };
        check(&log);
        assert_eq!(log.get("plain").unwrap().as_deref(), Some(&appended(&[&value(2, 3000), b"tail"])[..]));
        machine.pass(Duration::from_secs(20));
        check(&log);
        assert_eq!(log.get("plain").unwrap(), None);
        drop((log, db));
        let db = open(&machine);
        let log = expiring(&db);
        check(&log);
        db.flush().unwrap();
        check(&log);
        db.compact().unwrap();
        check(&log);
        assert_eq!(db.verify().unwrap().large_values, 1);
        machine.pass(Duration::from_secs(100));
        db.compact().unwrap();
        assert_eq!(blob_files(&machine.env, DIRECTORY).len(), 0, "{place:?}");
    }
}

/// Appends, but an empty operand deletes.
struct Eraser;

impl MergeOperator for Eraser {
    fn name(&self) -> &str {
        "eraser"
    }

    fn full_merge(&self, _: &[u8], old: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        let mut value = old.map(<[u8]>::to_vec);
        for operand in operands {
            match operand.is_empty() {
                true => value = None,
                false => value.get_or_insert_default().extend_from_slice(operand),
            }
        }
        Ok(value)
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn may_delete(&self) -> bool {
        true
    }
}

#[test]
fn whether_operands_leave_a_value_is_asked_with_the_value_itself() {
    for place in PLACES {
        let machine = Machine::new();
        let db = open(&machine);
        let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(Eraser);
        let k = db.keyspace("k", options).unwrap();
        k.put_with("k", value(1, 3000), &for_seconds(10)).unwrap();
        settle(&db, place);
        k.merge("k", "x").unwrap();
        settle(&db, if place == Place::Memtable { place } else { Place::UpperRun });
        // Alive still: this one keeps the expiry.
        k.merge("k", "y").unwrap();
        assert_eq!(k.get("k").unwrap().as_deref(), Some(&[&value(1, 3000)[..], b"xy"].concat()[..]), "{place:?}");
        k.merge("k", "").unwrap();
        assert_eq!(k.get("k").unwrap(), None);
        k.merge_with("k", "new", &for_seconds(100)).unwrap();
        machine.pass(Duration::from_secs(50));
        assert_eq!(k.get("k").unwrap().as_deref(), Some(&b"new"[..]), "{place:?}");
        db.compact().unwrap();
        assert_eq!(k.get("k").unwrap().as_deref(), Some(&b"new"[..]), "{place:?}");
        assert_eq!(blob_files(&machine.env, DIRECTORY).len(), 0, "{place:?}");
    }
}

/// Each part of a divided merge writes blob files of its own.
#[test]
fn a_divided_merge_copies_values_too() {
    let scratch = super::Scratch::new("divided");
    let options = esker::Options::default().background_threads(3).min_blob_size(THRESHOLD);
    let db = Db::open(scratch.path(), options.target_file_bytes(4 << 10)).unwrap();
    let k = super::keyspace(&db);
    for generation in 0..3u64 {
        for i in 0..1000u64 {
            k.put(format!("{i:04}"), value(generation * 10_000 + i, 200)).unwrap();
        }
        // One key of ten is left alone, so that files are emptied and not only removed.
        for i in 0..100u64 {
            k.put(format!("left {generation} {i:02}"), value(i, 200)).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    assert_eq!(db.verify().unwrap().large_values, 1300);
    for i in 0..1000u64 {
        assert_eq!(k.get(format!("{i:04}")).unwrap().as_deref(), Some(&value(20_000 + i, 200)[..]));
    }
    let stats = db.stats();
    assert!(stats.blob_bytes < 2 * stats.live_blob_bytes + (64 << 10), "{stats}");
}

#[test]
fn what_first_in_first_out_drops_takes_its_values_along() {
    let machine = Machine::new();
    let db = open(&machine);
    let style = CompactionStyle::Fifo { max_bytes: 40_000 };
    let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(style)).unwrap();
    for i in 0..100 {
        k.put(format!("{i:03}"), value(i, 3000)).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    let left = k.iter().count();
    assert!((5..=13).contains(&left), "{left} values of 3000 bytes in 40000");
    assert_eq!(k.get("099").unwrap().as_deref(), Some(&value(99, 3000)[..]));
}
