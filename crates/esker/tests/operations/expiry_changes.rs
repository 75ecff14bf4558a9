//! Expiries changed without the value: of puts, merges and large values, wherever they lie.

use crate::common::{Machine, PLACES, at, settle, text};
use esker::merge::StringAppend;
use esker::{Db, Error, Expiry, Keyspace, KeyspaceOptions, Ttl, WriteOptions};
use std::sync::Arc;
use std::time::Duration;

const LARGE: usize = 1000;

fn open(machine: &Machine) -> (Db, Keyspace) {
    let db = Db::open(crate::common::DIRECTORY, machine.options().min_blob_size(500)).expect("a database");
    let keyspace = sessions(&db);
    for key in ["a", "z"] {
        keyspace.put(key, "ballast").expect("put");
    }
    db.compact().expect("compact");
    (db, keyspace)
}

fn sessions(db: &Db) -> Keyspace {
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    db.keyspace("sessions", options.merge_operator(StringAppend::new(","))).expect("a keyspace")
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(seconds(count))
}

fn expiry(keyspace: &Keyspace, key: &str) -> Option<Expiry> {
    keyspace.expires_at(key).expect("get")
}

/// Keys of every kind, all of which expire after ten seconds.
fn write_all(keyspace: &Keyspace) -> Vec<(&'static str, String)> {
    keyspace.put_with("put", "1", &for_seconds(10)).expect("put");
    keyspace.put_with("merged", "1", &for_seconds(10)).expect("put");
    keyspace.merge("merged", "2").expect("merge");
    keyspace.merge_with("first", "1", &for_seconds(10)).expect("merge");
    keyspace.merge("first", "2").expect("merge");
    let large = "l".repeat(LARGE);
    keyspace.put_with("large", &large, &for_seconds(10)).expect("put");
    keyspace.put_with("large and merged", &large, &for_seconds(10)).expect("put");
    keyspace.merge("large and merged", "2").expect("merge");
    let more = format!("{large},2");
    [("put", "1"), ("merged", "1,2"), ("first", "1,2"), ("large", &large), ("large and merged", &more)]
        .map(|(key, value)| (key, value.to_owned()))
        .into()
}

#[test]
fn longer_shorter_and_for_good() {
    for place in PLACES {
        for then in PLACES {
            let machine = Machine::new();
            let (db, keyspace) = open(&machine);
            let all = write_all(&keyspace);
            settle(&db, place);
            let large_bytes = db.stats().blob_written_bytes;
            for (key, _) in &all {
                assert!(keyspace.touch(key, seconds(50)).expect("touch"), "{key} {place:?}");
                assert_eq!(expiry(&keyspace, key), Some(Expiry::At(at(50))), "{key} {place:?}");
            }
            assert_eq!(db.stats().blob_written_bytes, large_bytes, "a large value was written again");
            settle(&db, then);
            machine.pass(seconds(20));
            for (key, value) in &all {
                assert_eq!(text(&keyspace, key).as_ref(), Some(value), "{key} {place:?} {then:?}");
                assert!(keyspace.expire_at(key, at(25)).expect("expire"));
                assert_eq!(expiry(&keyspace, key), Some(Expiry::At(at(25))));
                assert!(keyspace.persist(key).expect("persist"));
                assert_eq!(expiry(&keyspace, key), Some(Expiry::Never));
            }
            settle(&db, then);
            machine.pass(seconds(1000));
            let killed = Machine { env: Arc::new(machine.env.kill()), clock: machine.clock.clone() };
            let recovered = sessions(&killed.open());
            for (key, value) in &all {
                assert_eq!(text(&keyspace, key).as_ref(), Some(value), "{key} {place:?} {then:?}");
                assert_eq!(text(&recovered, key).as_ref(), Some(value), "{key} {place:?} {then:?}, after a kill");
                assert!(keyspace.expire_at(key, at(0)).expect("expire"), "a time that has passed");
                assert_eq!(text(&keyspace, key), None);
            }
            db.compact().expect("compact");
            assert_eq!(db.stats().keyspaces[0].entries, 2, "the ballast");
        }
    }
}

#[test]
fn a_key_without_value_gets_none() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine);
        keyspace.put_with("expired", "1", &for_seconds(10)).expect("put");
        keyspace.put("deleted", "1").expect("put");
        keyspace.put("in a range", "1").expect("put");
        settle(&db, place);
        keyspace.delete("deleted").expect("delete");
        keyspace.delete_range("in"..="in a range").expect("delete");
        machine.pass(seconds(10));
        let written = db.snapshot().sequence();
        for key in ["expired", "deleted", "in a range", "never there"] {
            assert!(!keyspace.touch(key, seconds(50)).expect("touch"), "{key} {place:?}");
            assert!(!keyspace.persist(key).expect("persist"));
            let mut batch = db.batch();
            batch.touch(&keyspace, key, seconds(50)).expect("touch");
            batch.commit_with(&WriteOptions::new().sync(true)).expect("commit");
            assert_eq!(text(&keyspace, key), None);
        }
        assert_eq!(db.snapshot().sequence(), written, "nothing was written");
    }
}

#[test]
fn snapshots_keep_the_expiry_that_they_saw() {
    let machine = Machine::new();
    let (db, keyspace) = open(&machine);
    keyspace.put_with("k", "1", &for_seconds(10)).expect("put");
    let before = db.snapshot();
    keyspace.touch("k", seconds(50)).expect("touch");
    assert_eq!(before.expires_at(&keyspace, "k").expect("get"), Some(Expiry::At(at(10))));
    assert_eq!(expiry(&keyspace, "k"), Some(Expiry::At(at(50))));
}

/// Each operation of a batch meets what those before it made of the key.
#[test]
fn in_a_batch_the_order_counts() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine);
        keyspace.put_with("there", "1", &for_seconds(10)).expect("put");
        settle(&db, place);
        let mut batch = db.batch();
        batch.touch(&keyspace, "new", seconds(50)).expect("touch");
        batch.put(&keyspace, "new", "1").expect("put");
        batch.put(&keyspace, "put and touched", "1").expect("put");
        batch.touch(&keyspace, "put and touched", seconds(50)).expect("touch");
        batch.merge(&keyspace, "there", "2").expect("merge");
        batch.touch(&keyspace, "there", seconds(50)).expect("touch");
        batch.merge(&keyspace, "there", "3").expect("merge");
        batch.put(&keyspace, "deleted", "1").expect("put");
        batch.delete_range(&keyspace, "deleted"..="deleted").expect("delete");
        batch.touch(&keyspace, "deleted", seconds(50)).expect("touch");
        batch.commit().expect("commit");
        assert_eq!(expiry(&keyspace, "new"), Some(Expiry::Never), "{place:?}");
        assert_eq!(expiry(&keyspace, "put and touched"), Some(Expiry::At(at(50))));
        assert_eq!(expiry(&keyspace, "there"), Some(Expiry::At(at(50))));
        assert_eq!(text(&keyspace, "there").as_deref(), Some("1,2,3"), "{place:?}");
        assert_eq!(text(&keyspace, "deleted"), None);
        machine.pass(seconds(49));
        assert_eq!(text(&keyspace, "there").as_deref(), Some("1,2,3"));
        machine.pass(seconds(1));
        assert_eq!(text(&keyspace, "there"), None);
    }
}

/// What the memtable says is enough for a merge, and is completed where a later one needs more.
#[test]
fn merges_of_a_batch_meet_one_another() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, keyspace) = open(&machine);
        keyspace.put_with("k", "1", &for_seconds(10)).expect("put");
        settle(&db, place);
        let mut batch = db.batch();
        for operand in ["2", "3"] {
            batch.merge(&keyspace, "k", operand).expect("merge");
        }
        batch.merge_with_ttl(&keyspace, "k", "4", seconds(5)).expect("merge");
        batch.merge_with_ttl(&keyspace, "k", "5", seconds(20)).expect("merge");
        batch.merge(&keyspace, "k", "6").expect("merge");
        batch.commit().expect("commit");
        assert_eq!(text(&keyspace, "k").as_deref(), Some("1,2,3,4,5,6"), "{place:?}");
        assert_eq!(expiry(&keyspace, "k"), Some(Expiry::At(at(20))));
        machine.pass(seconds(19));
        db.compact().expect("compact");
        assert_eq!(text(&keyspace, "k").as_deref(), Some("1,2,3,4,5,6"), "{place:?}");
        machine.pass(seconds(1));
        assert_eq!(text(&keyspace, "k"), None);
    }
}

#[test]
fn a_transaction_sees_it_and_conflicts_over_it() {
    let machine = Machine::new();
    let (db, keyspace) = open(&machine);
    keyspace.put_with("k", "1", &for_seconds(10)).expect("put");
    let mut transaction = db.transaction();
    transaction.touch(&keyspace, "k", seconds(50)).expect("touch");
    transaction.touch(&keyspace, "not there", seconds(50)).expect("touch");
    let value = transaction.get(&keyspace, "k").expect("get");
    assert_eq!(value.as_deref(), Some(&b"1"[..]));
    assert_eq!(transaction.get(&keyspace, "not there").expect("get"), None);
    let keys: Vec<_> = transaction.iter(&keyspace).map(|pair| pair.expect("scan").0.to_vec()).collect();
    assert_eq!(keys, [&b"a"[..], b"k", b"z"]);
    transaction.commit().expect("commit");
    assert_eq!(expiry(&keyspace, "k"), Some(Expiry::At(at(50))));

    let mut transaction = db.transaction();
    transaction.expire_at(&keyspace, "k", at(0)).expect("expire");
    assert_eq!(transaction.get(&keyspace, "k").expect("get"), None);
    transaction.merge(&keyspace, "k", "2").expect("merge");
    assert_eq!(transaction.get(&keyspace, "k").expect("get").as_deref(), Some(&b"2"[..]));
    keyspace.put("k", "3").expect("put");
    let conflict = transaction.commit();
    assert!(matches!(conflict, Err(Error::Conflict { .. })), "{conflict:?}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let machine = Machine::new();
    let (db, keyspace) = open(&machine);
    let plain = db.keyspace("plain", KeyspaceOptions::default()).expect("a keyspace");
    plain.put("k", "1").expect("put");
    let mut batch = db.batch();
    let mut transaction = db.transaction();
    let refused = [
        plain.touch("k", seconds(1)).map(drop),
        plain.persist("k").map(drop),
        keyspace.touch("a", Duration::ZERO).map(drop),
        keyspace.touch(vec![0; (1 << 20) + 1], seconds(1)).map(drop),
        batch.touch(&plain, "k", seconds(1)),
        batch.persist(&plain, "k"),
        transaction.expire_at(&plain, "k", at(1)),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert!(batch.is_empty());
    db.close().expect("close");
    for refused in [keyspace.touch("a", seconds(1)), keyspace.touch("not there", seconds(1))] {
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
}

/// A reader without a snapshot may come between two entries: so the value is written as one.
#[test]
fn a_value_with_operands_is_written_as_one_entry() {
    let machine = Machine::new();
    let (db, keyspace) = open(&machine);
    keyspace.put_with("k", "1", &for_seconds(10)).expect("put");
    keyspace.put_with("large", "l".repeat(LARGE), &for_seconds(10)).expect("put");
    db.flush().expect("flush");
    let entries = |write: &dyn Fn()| {
        let before = db.snapshot().sequence();
        write();
        db.snapshot().sequence() - before
    };
    for (key, copies) in [("k", 1), ("large", 2)] {
        keyspace.merge(key, "2").expect("merge");
        let touch = || assert!(keyspace.touch(key, seconds(20)).expect("touch"));
        assert_eq!(entries(&touch), copies, "{key}: only what is not in memory is copied as it is");
    }
    db.flush().expect("flush");
    // A merge that lives longer brings what it is merged into along.
    let merge = || keyspace.merge_with("k", "3", &for_seconds(30)).expect("merge");
    keyspace.merge("k", "x").expect("merge");
    assert_eq!(entries(&merge), 2);
    assert_eq!(text(&keyspace, "k").as_deref(), Some("1,2,x,3"));
}

/// The forms of a batch and of a transaction: with a value in a blob file and with a small one,
/// each also with operands.
#[test]
fn batches_and_transactions_change_it_and_write_no_large_value_again() {
    for place in PLACES {
        for in_transaction in [false, true] {
            let machine = Machine::new();
            let (db, keyspace) = open(&machine);
            let large = "l".repeat(LARGE);
            let (merged, large_merged) = ("small,operand", format!("{large},operand"));
            let values = ["small", &large, merged, &large_merged];
            let keys = ["touched", "until", "persisted"].into_iter();
            let all: Vec<_> = keys.flat_map(|key| values.map(|value| (key, value))).collect();
            let name = |key: &str, value: &str| format!("{key} {}", value.len());
            for (key, value) in &all {
                let (first, operand) =
                    value.split_once(',').map_or((*value, None), |(first, rest)| (first, Some(rest)));
                keyspace.put_with(name(key, value), first, &for_seconds(10)).expect("put");
                operand.into_iter().for_each(|operand| keyspace.merge(name(key, value), operand).expect("merge"));
            }
            settle(&db, place);
            let before = (db.stats().blob_written_bytes, db.stats().blob_files);
            let (mut batch, mut transaction) = (db.batch(), db.transaction());
            for (key, value) in &all {
                let key = name(key, value);
                match (&key[..1], in_transaction) {
                    ("t", false) => batch.touch(&keyspace, key, seconds(50)),
                    ("u", false) => batch.expire_at(&keyspace, key, at(25)),
                    (_, false) => batch.persist(&keyspace, key),
                    ("t", true) => transaction.touch(&keyspace, key, seconds(50)),
                    ("u", true) => transaction.expire_at(&keyspace, key, at(25)),
                    (_, true) => transaction.persist(&keyspace, key),
                }
                .expect("a change");
            }
            batch.commit().and_then(|()| transaction.commit()).expect("commit");
            assert_eq!((db.stats().blob_written_bytes, db.stats().blob_files), before, "{place:?}, {in_transaction}");
            let killed = Machine { env: Arc::new(machine.env.kill()), clock: machine.clock.clone() };
            let recovered = sessions(&killed.open());
            for keyspace in [&keyspace, &recovered] {
                for (key, value) in &all {
                    let expected = match *key {
                        "touched" => Expiry::At(at(50)),
                        "until" => Expiry::At(at(25)),
                        _ => Expiry::Never,
                    };
                    assert_eq!(
                        expiry(keyspace, &name(key, value)),
                        Some(expected),
                        "{key} {place:?}, {in_transaction}"
                    );
                    assert_eq!(text(keyspace, &name(key, value)).as_deref(), Some(*value));
                }
            }
        }
    }
}
