//! The anomalies that serializable transactions must not show, one test each.

use super::*;
use esker::{ReverseBytewise, escape_key};

#[test]
fn no_update_is_lost() {
    let db = database();
    let k = with_keys(&db, &["a"]);
    let (mut first, mut second) = (db.transaction(), db.transaction());
    for (transaction, value) in [(&mut first, "1"), (&mut second, "2")] {
        assert_eq!(get(transaction, &k, "a").unwrap(), "old");
        transaction.put(&k, "a", value).unwrap();
    }
    second.commit().unwrap();
    assert_eq!(conflict(first.commit()).unwrap(), "a");
    assert_eq!(text(k.get("a").unwrap()).unwrap(), "2");
}

/// Blind writes to one key, merges too, conflict as well: the first committer wins.
#[test]
fn two_writers_of_one_key_conflict_without_reading() {
    let db = database();
    let c = counters(&db, "c");
    let (mut first, mut second) = (db.transaction(), db.transaction());
    first.merge(&c, "a", 1u64.to_le_bytes()).unwrap();
    second.merge(&c, "a", 1u64.to_le_bytes()).unwrap();
    first.commit().unwrap();
    assert_eq!(conflict(second.commit()).unwrap(), "a");
    let mut third = db.transaction();
    third.delete(&c, "b").unwrap();
    c.delete("b").unwrap();
    assert_eq!(conflict(third.commit()).unwrap(), "b");
}

#[test]
fn nothing_is_seen_before_its_commit() {
    let db = database();
    let k = with_keys(&db, &["a"]);
    let mut writer = db.transaction();
    writer.put(&k, "a", "new").unwrap();
    writer.put(&k, "b", "new").unwrap();
    let mut reader = db.transaction();
    assert_eq!(pairs(k.iter()), "a=old");
    assert_eq!(pairs(reader.iter(&k)), "a=old");
    writer.commit().unwrap();
    assert_eq!(pairs(reader.iter(&k)), "a=old");
    assert_eq!(pairs(k.iter()), "a=new b=new");
}

#[test]
fn reads_repeat() {
    let db = database();
    let k = with_keys(&db, &["a", "b"]);
    let mut transaction = db.transaction();
    assert_eq!(get(&mut transaction, &k, "a").unwrap(), "old");
    k.put("a", "new").unwrap();
    k.delete("b").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(get(&mut transaction, &k, "a").unwrap(), "old");
    assert_eq!(get(&mut transaction, &k, "b").unwrap(), "old");
    // It wrote nothing: what it saw was true when it began.
    transaction.commit().unwrap();
}

/// Each doctor may leave if another stays; both look, and both leave.
#[test]
fn no_write_skew() {
    let db = database();
    let k = with_keys(&db, &["ada", "bob"]);
    let (mut first, mut second) = (db.transaction(), db.transaction());
    for (transaction, leaves) in [(&mut first, "ada"), (&mut second, "bob")] {
        if ["ada", "bob"].iter().filter(|name| get(transaction, &k, name).is_some()).count() == 2 {
            transaction.delete(&k, leaves).unwrap();
        }
    }
    first.commit().unwrap();
    assert_eq!(conflict(second.commit()).unwrap(), "ada");
    assert_eq!(pairs(k.iter()), "bob=old");
}

#[test]
fn a_key_that_was_absent_when_read_conflicts_when_it_comes() {
    let db = database();
    let (k, other) = (plain(&db, "k"), plain(&db, "other"));
    let mut transaction = db.transaction();
    assert_eq!(get(&mut transaction, &k, "a"), None);
    transaction.put(&other, "x", "1").unwrap();
    k.put("a", "1").unwrap();
    // Even if it has gone again.
    k.delete("a").unwrap();
    let Err(Error::Conflict { keyspace, key }) = transaction.commit() else { panic!("no conflict") };
    assert_eq!((keyspace.as_str(), key.as_str()), ("k", "a"));
    assert_eq!(other.iter().count(), 0);
}

/// What a transaction scans, what somebody else then puts, and whether that is a conflict.
fn phantom(scan: impl Fn(&mut Transaction, &Keyspace), put: &str) -> bool {
    // In the memtable; in a table of its own; merged with what was there before.
    let outcomes = [0, 1, 2].map(|depth| {
        let db = database();
        let k = with_keys(&db, &["b", "d", "f", "h"]);
        let mut transaction = db.transaction();
        scan(&mut transaction, &k);
        transaction.put(&plain(&db, "other"), "x", "1").unwrap();
        k.put(put, "new").unwrap();
        match depth {
            0 => {}
            1 => db.flush().unwrap(),
            _ => db.compact().unwrap(),
        }
        let met = conflict(transaction.commit());
        assert!(met.iter().all(|key| *key == escape_key(put.as_bytes())));
        met.is_some()
    });
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{put}: {outcomes:?}");
    outcomes[0]
}

#[test]
fn a_range_that_was_read_has_no_phantoms() {
    let range = |transaction: &mut Transaction, k: &Keyspace| {
        assert_eq!(pairs(transaction.range(k, "c".."g")), "d=old f=old");
    };
    assert!(["c", "c2", "d", "e", "f", "fz"].iter().all(|put| phantom(range, put)));
    assert!(!["", "a", "b", "bz", "g", "h", "z"].iter().any(|put| phantom(range, put)));
    let empty = |transaction: &mut Transaction, k: &Keyspace| assert_eq!(pairs(transaction.range(k, "x".."y")), "");
    assert!(phantom(empty, "x"));
    assert!(!phantom(empty, "y"));
    let inverted = |transaction: &mut Transaction, k: &Keyspace| assert_eq!(pairs(transaction.range(k, "y".."x")), "");
    assert!(!phantom(inverted, "x") && !phantom(inverted, "xx") && !phantom(inverted, "y"));
    let all = |transaction: &mut Transaction, k: &Keyspace| assert_eq!(transaction.iter(k).rev().count(), 4);
    assert!(["", "a", "d", "z"].iter().all(|put| phantom(all, put)));
}

#[test]
fn a_prefix_that_was_read_has_no_phantoms() {
    let prefix = |transaction: &mut Transaction, k: &Keyspace| assert_eq!(pairs(transaction.prefix(k, "d")), "d=old");
    assert!(phantom(prefix, "d") && phantom(prefix, "d\u{0}") && phantom(prefix, "dzz"));
    assert!(!phantom(prefix, "c") && !phantom(prefix, "cz") && !phantom(prefix, "e"));
}

/// An iterator has read as far as it was asked, and no farther.
#[test]
fn a_scan_that_was_left_early_conflicts_as_far_as_it_came() {
    let two = |transaction: &mut Transaction, k: &Keyspace| {
        assert_eq!(pairs(transaction.range(k, "a"..).take(2)), "b=old d=old");
    };
    assert!(["a", "b", "c", "d"].iter().all(|put| phantom(two, put)));
    assert!(!["", "d2", "e", "f", "z"].iter().any(|put| phantom(two, put)));
    let two_back = |transaction: &mut Transaction, k: &Keyspace| {
        assert_eq!(pairs(transaction.range(k, ..="x").rev().take(2)), "h=old f=old");
    };
    assert!(["x", "h2", "h", "g", "f"].iter().all(|put| phantom(two_back, put)));
    assert!(!["x2", "e", "d", ""].iter().any(|put| phantom(two_back, put)));
    let from_both_ends = |transaction: &mut Transaction, k: &Keyspace| {
        let mut scan = transaction.iter(k);
        assert_eq!(pairs(scan.next_back().into_iter()), "h=old");
        assert_eq!(pairs(scan.next().into_iter()), "b=old");
    };
    assert!(["", "b", "h", "z"].iter().all(|put| phantom(from_both_ends, put)));
    assert!(!["c", "e", "g"].iter().any(|put| phantom(from_both_ends, put)));
    let never_asked = |transaction: &mut Transaction, k: &Keyspace| drop(transaction.iter(k));
    assert!(!phantom(never_asked, "d"));
    // Where the ends meet, all was read.
    let met = |transaction: &mut Transaction, k: &Keyspace| {
        let mut scan = transaction.range(k, "b".."g");
        assert_eq!(pairs(scan.by_ref().take(2)), "b=old d=old");
        assert_eq!(pairs(scan.by_ref().rev()), "f=old");
        assert_eq!(scan.count(), 0);
    };
    assert!(phantom(met, "e") && phantom(met, "f2") && !phantom(met, "g"));
}

#[test]
fn a_range_delete_is_a_write_to_every_key_in_it() {
    let db = database();
    let keyspace = with_keys(&db, &["a", "m", "z"]);
    for flush in [false, true] {
        let mut read = db.transaction();
        read.get(&keyspace, "m").unwrap();
        let mut absent = db.transaction();
        absent.get(&keyspace, "n").unwrap();
        let mut scanned = db.transaction();
        assert!(scanned.range(&keyspace, "k".."l").next().is_none());
        let mut written = db.transaction();
        let mut elsewhere = db.transaction();
        elsewhere.get(&keyspace, "z").unwrap();
        for transaction in [&mut read, &mut absent, &mut scanned, &mut written, &mut elsewhere] {
            transaction.put(&keyspace, "y", "new").unwrap();
        }
        written.put(&keyspace, "l", "new").unwrap();
        keyspace.delete_range("j".."p").unwrap();
        if flush {
            db.flush().unwrap();
        }
        for transaction in [read, absent, scanned, written] {
            assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
        }
        elsewhere.commit().unwrap();
        keyspace.put("m", "old").unwrap();
    }
}

#[test]
fn a_range_deleted_before_the_transaction_began_is_no_conflict() {
    let db = database();
    let keyspace = with_keys(&db, &["a", "m"]);
    for flush in [false, true] {
        keyspace.delete_range("j".."p").unwrap();
        let mut transaction = db.transaction();
        assert_eq!(get(&mut transaction, &keyspace, "m"), None);
        transaction.put(&keyspace, "y", "new").unwrap();
        keyspace.put("z", "other").unwrap();
        if flush {
            db.flush().unwrap();
        }
        assert_eq!(conflict(transaction.commit()), None, "flush: {flush}");
    }
}

#[test]
fn a_range_delete_is_a_write_to_every_key_in_it_in_any_order() {
    let db = database();
    let options = KeyspaceOptions::default().comparator(ReverseBytewise);
    let keyspace = db.keyspace("reverse", options).unwrap();
    for (key, expected) in [("z", false), ("p", true), ("n", true), ("m", true), ("j", false), ("a", false)] {
        for writes in [false, true] {
            let mut transaction = db.transaction();
            if writes {
                transaction.put(&keyspace, key, "mine").unwrap();
            } else {
                assert_eq!(get(&mut transaction, &keyspace, key), None);
            }
            transaction.put(&keyspace, "y", "mine").unwrap();
            keyspace.put("o", "old").unwrap();
            keyspace.delete_range("p".."j").unwrap();
            let met = conflict(transaction.commit());
            assert_eq!(met.as_deref(), expected.then_some(key), "{key}, written: {writes}");
        }
    }
}
