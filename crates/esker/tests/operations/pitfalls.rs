//! What a program could take for granted, and is not so, where no other file is about it. The table
//! in `doc/testing.md` has all of it.

use crate::common::{DIRECTORY, Machine, Scratch, at, keyspace, pairs, text};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error, Expiry, Keyspace, KeyspaceOptions, Options, Ttl, WriteOptions};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

fn expiring(db: &Db) -> Keyspace {
    db.keyspace("expiring", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).unwrap()
}

/// What is left after the power went, as little as may be.
fn after_power_loss(machine: &Machine) -> Db {
    let env = Arc::new(machine.env.crash(&CrashMode::LoseAll, 1));
    Machine { env, clock: machine.clock.clone() }.open()
}

#[test]
fn a_missing_database_is_not_made_where_none_is_to_be_created() {
    let env = MemEnv::new();
    let missing = Db::open(DIRECTORY, crate::common::simulated(&env).create_if_missing(false)).map(drop);
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    assert!(crate::common::files(&env).keys().all(|name| name == "LOCK"), "{:?}", env.files());
}

#[test]
fn an_empty_batch_writes_nothing_and_its_sync_is_of_what_came_before() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    names.put("a", "1").unwrap();
    let before = db.snapshot().sequence();
    db.batch().commit().unwrap();
    assert_eq!(db.snapshot().sequence(), before);
    assert_eq!(text(&keyspace(&after_power_loss(&machine), "names"), "a"), None);
    db.batch().commit_with(&WriteOptions::new().sync(true)).unwrap();
    assert_eq!(text(&keyspace(&after_power_loss(&machine), "names"), "a").as_deref(), Some("1"));
    let batch = db.batch();
    db.close().unwrap();
    assert!(matches!(batch.commit(), Err(Error::ReadOnly { .. })));
}

/// What waits in a batch has not begun to live.
#[test]
fn times_of_a_batch_and_of_a_transaction_count_from_the_commit() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = expiring(&db);
    let (mut batch, mut transaction) = (db.batch(), db.transaction());
    batch.put_with_ttl(&keyspace, "batch", "1", Duration::from_secs(10)).unwrap();
    transaction.put_with_ttl(&keyspace, "transaction", "1", Duration::from_secs(10)).unwrap();
    machine.pass(Duration::from_secs(7));
    batch.commit().unwrap();
    transaction.commit().unwrap();
    for key in ["batch", "transaction"] {
        assert_eq!(keyspace.expires_at(key).unwrap(), Some(Expiry::At(at(17))), "{key}");
    }
}

#[test]
fn a_pop_that_was_not_synced_may_be_undone_and_one_in_a_synced_transaction_is_not() {
    let machine = Machine::new();
    let db = machine.open();
    let jobs = keyspace(&db, "jobs");
    jobs.put("a", "1").unwrap();
    jobs.put("b", "2").unwrap();
    db.sync().unwrap();
    assert_eq!(jobs.pop_first().unwrap().unwrap().0, "a");
    assert_eq!(pairs(&keyspace(&after_power_loss(&machine), "jobs")).len(), 2, "it comes a second time");
    let mut transaction = db.transaction();
    assert_eq!(transaction.pop_first(&jobs).unwrap().unwrap().0, "b");
    transaction.commit_with(&WriteOptions::new().sync(true)).unwrap();
    assert_eq!(pairs(&keyspace(&after_power_loss(&machine), "jobs")), [], "and with it all before");
}

/// Whether there is anything to take or not.
#[test]
fn where_writes_are_refused_a_pop_is_refused_too() {
    let machine = Machine::new();
    let db = machine.open();
    let (full, empty) = (keyspace(&db, "full"), keyspace(&db, "empty"));
    full.put("a", "1").unwrap();
    let reader = Db::open_read_only(DIRECTORY, machine.options()).unwrap();
    let of_reader = ["full", "empty"].map(|name| reader.existing_keyspace(name).unwrap());
    db.close().unwrap();
    for keyspace in [&full, &empty].into_iter().chain(&of_reader) {
        let refused = keyspace.pop_first();
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
    assert_eq!(text(&full, "a").as_deref(), Some("1"), "reads go on");
}

/// A write that is declined is none: not in the log, and not in the order of writes.
#[test]
fn what_is_declined_takes_no_place_in_the_order_of_writes() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    names.put("a", "1").unwrap();
    let before = db.snapshot().sequence();
    assert!(names.put_if_absent("a", "2").unwrap().is_some());
    assert!(!names.compare_and_swap("a", Some(b"x"), None).unwrap().is_swapped());
    assert!(names.take("absent").unwrap().is_none());
    names.delete_range("b".."a").unwrap();
    assert_eq!(db.snapshot().sequence(), before);
    names.delete("absent").unwrap();
    assert_eq!(db.snapshot().sequence(), before + 1, "a delete is one, whether there is a key or not");
}

#[test]
fn a_keyspace_that_was_created_later_is_empty_in_a_snapshot() {
    let machine = Machine::new();
    let db = machine.open();
    let (snapshot, mut transaction) = (db.snapshot(), db.transaction());
    let late = keyspace(&db, "late");
    late.put("a", "1").unwrap();
    db.compact().unwrap();
    assert_eq!((snapshot.get(&late, "a").unwrap(), snapshot.iter(&late).count()), (None, 0));
    assert_eq!(transaction.get(&late, "a").unwrap(), None);
    transaction.put(&late, "b", "1").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })), "it read what was written since");
}

#[test]
fn a_key_that_merely_expires_is_no_conflict() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = expiring(&db);
    keyspace.put_with_ttl("a", "1", Duration::from_secs(10)).unwrap();
    let mut transaction = db.transaction();
    assert!(transaction.get(&keyspace, "a").unwrap().is_some());
    assert_eq!(transaction.iter(&keyspace).count(), 1);
    transaction.put(&keyspace, "b", "1").unwrap();
    machine.pass(Duration::from_secs(10));
    db.compact().unwrap();
    assert_eq!(text(&keyspace, "a"), None);
    assert!(transaction.get(&keyspace, "a").unwrap().is_some(), "it sees the time of its beginning");
    transaction.commit().unwrap();
    assert_eq!(text(&keyspace, "b").as_deref(), Some("1"));
}

/// Values in a memtable, in a block and in a mapped file.
#[test]
fn a_value_outlives_its_database() {
    let scratch = Scratch::new();
    let db = Db::open(scratch.path(), Options::default().min_blob_size(1000)).unwrap();
    let names = keyspace(&db, "names");
    for (key, length) in [("block", 100), ("large", 5000)] {
        names.put(key, key.repeat(length)).unwrap();
    }
    db.compact().unwrap();
    names.put("memtable", "memtable").unwrap();
    let values = ["block", "large", "memtable"].map(|key| (key, names.get(key).unwrap().unwrap()));
    db.close().unwrap();
    drop(names);
    drop(scratch);
    for (key, value) in values {
        assert_eq!(value.to_vec(), key.repeat(value.len() / key.len()).into_bytes(), "{key}");
    }
}

#[test]
fn what_may_succeed_later_says_so_and_nothing_else() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    let mut transaction = db.transaction();
    transaction.put(&names, "a", "1").unwrap();
    names.put("a", "2").unwrap();
    let conflict = transaction.commit().unwrap_err();
    let locked = Db::open(DIRECTORY, machine.options()).map(drop).unwrap_err();
    let full = Error::io("append to", "7.table", ErrorKind::StorageFull.into());
    for error in [conflict, locked, full] {
        assert!(error.is_retryable(), "{error}");
    }
    let invalid = names.put(vec![0; (1 << 20) + 1], "").unwrap_err();
    let missing = db.existing_keyspace("other").map(drop).unwrap_err();
    db.drop_keyspace("names").unwrap();
    let dropped = names.get("a").unwrap_err();
    let batch = db.batch();
    db.close().unwrap();
    let closed = batch.commit().unwrap_err();
    for error in [invalid, missing, dropped, closed] {
        assert!(!error.is_retryable(), "{error}");
    }
}
