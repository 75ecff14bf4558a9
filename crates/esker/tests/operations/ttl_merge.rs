//! Merges where entries expire: what an operand meets is decided when it is written.

use crate::common::{DIRECTORY, Machine, PLACES, START_MS, at, settle, text};
use esker::env::fault::{Class, FaultEnv};
use esker::merge::{StringAppend, UInt64Add};
use esker::{Db, Expiry, Keyspace, KeyspaceOptions, MergeError, MergeOperator, ReadMode, Ttl, WriteOptions};
use std::sync::Arc;
use std::time::Duration;

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(Duration::from_secs(count))
}

fn keyspace(db: &Db, default: Option<u64>, operator: impl MergeOperator) -> Keyspace {
    let ttl = Ttl::Enabled { default: default.map(Duration::from_secs) };
    db.keyspace("log", KeyspaceOptions::default().ttl(ttl).merge_operator(operator)).expect("keyspace")
}

fn append(db: &Db, default: Option<u64>) -> Keyspace {
    keyspace(db, default, StringAppend::new(","))
}

fn with_ballast(machine: &Machine, default: Option<u64>) -> (Db, Keyspace) {
    let db = machine.open();
    let log = append(&db, default);
    for key in ["a", "z"] {
        log.put_until(key, "ballast", at(1_000_000)).expect("put");
    }
    db.compact().expect("compact");
    (db, log)
}

#[test]
fn on_a_live_key_the_operand_keeps_the_expiry() {
    for base in PLACES {
        for operand in PLACES {
            let machine = Machine::new();
            let (db, log) = with_ballast(&machine, Some(1000));
            log.put_with("k", "one", &for_seconds(10)).expect("put");
            settle(&db, base);
            machine.pass(Duration::from_secs(5));
            log.merge("k", "two").expect("merge");
            settle(&db, operand);
            assert_eq!(text(&log, "k").as_deref(), Some("one,two"), "{base:?} {operand:?}");
            assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(10))));
            machine.pass(Duration::from_secs(5));
            assert_eq!(text(&log, "k"), None);
            db.compact().expect("compact");
            assert_eq!(db.stats().keyspaces[0].entries, 2);
        }
    }
}

#[test]
fn on_an_expired_or_absent_key_it_starts_from_nothing() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, log) = with_ballast(&machine, Some(7));
        log.put_with("k", "old", &for_seconds(10)).expect("put");
        log.put_with("own", "old", &for_seconds(10)).expect("put");
        log.put("deleted", "old").expect("put");
        settle(&db, place);
        log.delete("deleted").expect("delete");
        machine.pass(Duration::from_secs(10));
        log.merge("k", "new").expect("merge");
        log.merge_with("own", "new", &for_seconds(3)).expect("merge");
        log.merge("deleted", "new").expect("merge");
        log.merge("absent", "new").expect("merge");
        for step in 0..3 {
            for (key, expiry) in [("k", 17), ("own", 13), ("deleted", 17), ("absent", 17)] {
                assert_eq!(text(&log, key).as_deref(), Some("new"), "{place:?} {step} {key}");
                assert_eq!(log.expires_at(key).expect("get"), Some(Expiry::At(at(expiry))), "{place:?} {step} {key}");
            }
            if step == 0 { db.flush().expect("flush") } else { db.compact().expect("compact") }
        }
        // The outcome was recorded: an earlier time does not bring the old value back.
        machine.clock.set(crate::common::START_MS + 1);
        assert_eq!(text(&log, "k").as_deref(), Some("new"));
    }
}

#[test]
fn an_operand_that_lives_longer_than_its_base_keeps_it_alive() {
    for base in PLACES {
        for operand in PLACES {
            let machine = Machine::new();
            let (db, log) = with_ballast(&machine, None);
            log.put_with("k", "one", &for_seconds(10)).expect("put");
            log.merge("k", "two").expect("merge");
            settle(&db, base);
            log.merge_with("k", "three", &for_seconds(100)).expect("merge");
            settle(&db, operand);
            machine.pass(Duration::from_secs(50));
            // Compaction of the base alone must not take it for expired.
            db.wait_idle().expect("idle");
            for _ in 0..2 {
                assert_eq!(text(&log, "k").as_deref(), Some("one,two,three"), "{base:?} {operand:?}");
                assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(100))));
                db.compact().expect("compact");
            }
            log.merge_with("k", "four", &for_seconds(1)).expect("merge");
            assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(51))), "an own time may also be shorter");
            machine.pass(Duration::from_secs(1));
            assert_eq!(text(&log, "k"), None);
        }
    }
}

#[test]
fn a_snapshot_sees_the_state_between_the_operands() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, log) = with_ballast(&machine, None);
        log.put_with("k", "one", &for_seconds(10)).expect("put");
        settle(&db, place);
        let first = db.snapshot();
        log.merge_with("k", "two", &for_seconds(100)).expect("merge");
        settle(&db, place);
        let second = db.snapshot();
        machine.pass(Duration::from_secs(20));
        log.merge("k", "three").expect("merge");
        for _ in 0..2 {
            assert_eq!(first.get(&log, "k").expect("get").as_deref(), Some(&b"one"[..]));
            assert_eq!(second.get(&log, "k").expect("get").as_deref(), Some(&b"one,two"[..]));
            assert_eq!(text(&log, "k").as_deref(), Some("one,two,three"));
            db.compact().expect("compact");
        }
    }
}

#[test]
fn a_merge_in_a_batch_meets_what_the_batch_did_before() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, log) = with_ballast(&machine, Some(50));
        for key in ["k", "shorter", "longer"] {
            log.put_with(key, "old", &for_seconds(10)).expect("put");
        }
        settle(&db, place);
        let mut batch = db.batch();
        batch.delete(&log, "k").expect("add");
        batch.merge(&log, "k", "one").expect("add");
        batch.merge(&log, "k", "two").expect("add");
        batch.merge_with_ttl(&log, "shorter", "one", Duration::from_secs(5)).expect("add");
        batch.merge(&log, "shorter", "two").expect("add");
        batch.merge_with_ttl(&log, "longer", "one", Duration::from_secs(20)).expect("add");
        batch.merge(&log, "longer", "two").expect("add");
        batch.put_until(&log, "past", "gone", at(0)).expect("add");
        batch.merge(&log, "past", "fresh").expect("add");
        batch.commit().expect("commit");
        for _ in 0..2 {
            for (key, value, expiry) in [
                ("k", "one,two", 50),
                ("shorter", "old,one,two", 5),
                ("longer", "old,one,two", 20),
                ("past", "fresh", 50),
            ] {
                assert_eq!(text(&log, key).as_deref(), Some(value), "{place:?}");
                assert_eq!(log.expires_at(key).expect("get"), Some(Expiry::At(at(expiry))), "{place:?} {key}");
            }
            db.compact().expect("compact");
        }
    }
}

/// Appends; an empty operand deletes the key.
struct Clearing;

impl MergeOperator for Clearing {
    fn name(&self) -> &str {
        "clearing"
    }
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        let mut value = existing.map(<[u8]>::to_vec);
        for operand in operands {
            value = if operand.is_empty() { None } else { Some([&value.unwrap_or_default(), *operand].concat()) };
        }
        Ok(value)
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_key_that_its_operator_deleted_is_absent_to_the_next_merge() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let log = keyspace(&db, Some(50), Clearing);
        log.put_with("k", "old", &for_seconds(10)).expect("put");
        settle(&db, place);
        log.merge("k", "").expect("merge");
        settle(&db, place);
        assert_eq!(text(&log, "k"), None);
        assert_eq!(log.expires_at("k").expect("get"), None);
        log.merge("k", "new").expect("merge");
        assert_eq!(text(&log, "k").as_deref(), Some("new"));
        assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(50))), "{place:?}: with the default");
        db.compact().expect("compact");
        assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(50))));
    }
}

#[test]
fn counters_expire_as_a_whole_and_count_anew() {
    let machine = Machine::new();
    let db = machine.open();
    let hits = keyspace(&db, Some(60), UInt64Add);
    let count = || hits.get("page").expect("get").map(|value| u64::from_le_bytes(value[..].try_into().expect("8")));
    for minute in 0..5 {
        for number in 1..=100 {
            hits.merge("page", 1u64.to_le_bytes()).expect("merge");
            assert_eq!(count(), Some(number));
            if number == 50 {
                db.flush().expect("flush");
            }
        }
        assert_eq!(hits.expires_at("page").expect("get"), Some(Expiry::At(at(60 * (minute + 1)))));
        machine.pass(Duration::from_secs(60));
        assert_eq!(count(), None, "merging does not prolong the life");
    }
    assert!(db.stats().last_sequence >= 500);
}

#[test]
fn an_operand_that_outlived_its_base_by_a_clock_that_stepped_back_is_no_value() {
    let machine = Machine::new();
    let (db, log) = with_ballast(&machine, None);
    log.put_with("k", "one", &for_seconds(10)).expect("put");
    db.compact().expect("compact");
    log.merge("k", "two").expect("merge");
    db.flush().expect("flush");
    machine.pass(Duration::from_secs(10));
    db.compact().expect("compact");
    machine.clock.set(crate::common::START_MS);
    for _ in 0..2 {
        assert_eq!(text(&log, "k"), None, "never a part of a value");
        db.compact().expect("compact");
    }
}

/// Ways to merge, each for a key of that name.
const WAYS: [&str; 4] = ["alone", "returning", "batch", "transaction"];

/// An operand in memory for each of these, whose values have expired and were given back.
fn with_operands_on_nothing(machine: &Machine) -> (Db, Keyspace) {
    let db = machine.open();
    let log = append(&db, Some(100));
    for way in WAYS {
        log.put_with(way, "one", &for_seconds(10)).expect("put");
    }
    db.compact().expect("compact");
    for way in WAYS {
        log.merge(way, "two").expect("merge");
    }
    // Otherwise all of the memtable would have expired, and would be flushed.
    log.put_until("later", "ballast", at(1_000_000)).expect("put");
    machine.pass(Duration::from_secs(10));
    db.wait_idle().expect("idle");
    assert_eq!(entries(&db), (0, 5));
    (db, log)
}

/// Entries in tables, and in memory.
fn entries(db: &Db) -> (u64, u64) {
    let log = &db.stats().keyspaces[0];
    (log.entries, log.memtable_entries)
}

fn merge_in_all_ways(db: &Db, log: &Keyspace) {
    for way in WAYS {
        assert_eq!(text(log, way), None, "{way}: an operand on nothing is no value");
    }
    log.merge("alone", "three").expect("merge");
    log.merge("alone", "four").expect("merge");
    for (operand, value) in [("three", "three"), ("four", "three,four")] {
        let returned = log.merge_and_get("returning", operand).expect("merge");
        assert_eq!(returned.as_deref(), Some(value.as_bytes()));
    }
    let mut batch = db.batch();
    batch.merge(log, "batch", "three").expect("add");
    batch.merge(log, "batch", "four").expect("add");
    batch.commit().expect("commit");
    let mut transaction = db.transaction();
    transaction.merge(log, "transaction", "three").expect("add");
    transaction.merge(log, "transaction", "four").expect("add");
    transaction.commit().expect("commit");
    for _ in 0..2 {
        for way in WAYS {
            assert_eq!(text(log, way).as_deref(), Some("three,four"), "{way}");
            assert_eq!(log.expires_at(way).expect("get"), Some(Expiry::At(at(100))), "{way}: with the default");
        }
        db.compact().expect("compact");
    }
}

#[test]
fn a_merge_onto_an_operand_whose_value_was_given_back_starts_from_nothing() {
    let machine = Machine::new();
    let (db, log) = with_operands_on_nothing(&machine);
    machine.clock.set(START_MS);
    merge_in_all_ways(&db, &log);
}

#[test]
fn a_merge_onto_an_operand_whose_value_an_earlier_process_gave_back_starts_from_nothing() {
    let machine = Machine::new();
    let (db, log) = with_operands_on_nothing(&machine);
    drop(log);
    db.close().expect("close");
    machine.clock.set(START_MS);
    let db = machine.open();
    let log = append(&db, Some(100));
    assert_eq!(entries(&db), (0, 5), "the operands are replayed into memory");
    merge_in_all_ways(&db, &log);
}

/// That it may have been given back is no reason to begin anew.
#[test]
fn a_value_that_was_not_given_back_is_merged_into_once_the_clock_has_stepped_back() {
    for reopened in [false, true] {
        let machine = Machine::new();
        let (mut db, mut log) = with_ballast(&machine, Some(100));
        log.put_with("k", "one", &for_seconds(10)).expect("put");
        db.compact().expect("compact");
        log.merge("k", "two").expect("merge");
        log.put_until("later", "ballast", at(1_000_000)).expect("put");
        machine.pass(Duration::from_secs(10));
        db.wait_idle().expect("idle");
        assert_eq!(entries(&db), (3, 2), "too little in the table has expired");
        machine.clock.set(START_MS);
        if reopened {
            drop(log);
            db.close().expect("close");
            db = machine.open();
            log = append(&db, Some(100));
        }
        log.merge("k", "three").expect("merge");
        for _ in 0..2 {
            assert_eq!(text(&log, "k").as_deref(), Some("one,two,three"), "reopened: {reopened}");
            assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(10))));
            db.compact().expect("compact");
        }
    }
}

#[test]
fn decisions_survive_the_loss_of_the_process() {
    let machine = Machine::new();
    let (db, log) = with_ballast(&machine, Some(7));
    log.put_with("k", "old", &for_seconds(10)).expect("put");
    machine.pass(Duration::from_secs(10));
    log.merge("k", "new").expect("merge");
    drop((log, db));
    // Replayed at a time at which the old value would still live.
    machine.clock.set(crate::common::START_MS + 1);
    let db = machine.open();
    let log = append(&db, Some(7));
    assert_eq!(text(&log, "k").as_deref(), Some("new"));
    assert_eq!(log.expires_at("k").expect("get"), Some(Expiry::At(at(17))));
}

/// Where entries expire, an operand without what it was written upon stands for nothing. Here that
/// was in no log, and is lost with the process.
#[test]
fn a_recovered_operand_without_what_it_was_written_upon_stands_for_nothing() {
    let machine = Machine::new();
    let db = machine.open();
    let log = append(&db, None);
    log.put_with("k", "one", &WriteOptions::new().disable_wal(true)).expect("put");
    log.merge("k", "two").expect("merge");
    assert_eq!(text(&log, "k").as_deref(), Some("one,two"));
    drop((log, db));
    let db = machine.open();
    assert_eq!(text(&append(&db, None), "k"), None);
}

/// Seen in batches: each merge read a table, at five times the price of a single one.
#[test]
fn what_the_memtable_holds_is_looked_up_nowhere_else() {
    let machine = Machine::new();
    let counted = FaultEnv::new(machine.env.clone());
    let options = machine.options().env(Arc::new(counted.clone())).read_mode(ReadMode::Pread).block_cache_bytes(0);
    let db = Db::open(DIRECTORY, options).expect("open");
    let hits = keyspace(&db, Some(1000), UInt64Add);
    let one = 1u64.to_le_bytes();
    for key in ["a", "b"] {
        hits.merge(key, one).expect("merge");
    }
    db.compact().expect("compact");
    let reads = |merge: &dyn Fn() -> esker::Result<()>| {
        let before = counted.calls(Class::Read);
        merge().expect("merge");
        counted.calls(Class::Read) - before
    };
    let in_batch = |keys: &[&str]| {
        let mut batch = db.batch();
        keys.iter().try_for_each(|key| batch.merge(&hits, key, one))?;
        batch.commit()
    };
    assert!(reads(&|| hits.merge("a", one)) > 0, "the table alone holds it");
    assert_eq!(reads(&|| hits.merge("a", one)), 0);
    assert_eq!(reads(&|| in_batch(&["a"])), 0);
    assert_eq!(reads(&|| in_batch(&["a", "a", "a"])), 0);
    assert!(reads(&|| in_batch(&["a", "b"])) > 0, "the table alone holds one of them");
    assert_eq!(reads(&|| in_batch(&["a", "b"])), 0);
    let count = |key: &str| hits.get(key).expect("get").map(|value| u64::from_le_bytes(value.try_into().expect("8")));
    assert_eq!((count("a"), count("b")), (Some(9), Some(3)));
}

/// What was decided before the open is not relied upon; what was decided since is.
#[test]
fn what_lies_below_a_replayed_operand_is_looked_up_once() {
    let machine = Machine::new();
    let counted = FaultEnv::new(machine.env.clone());
    let open = || {
        let options = machine.options().env(Arc::new(counted.clone()));
        Db::open(DIRECTORY, options.read_mode(ReadMode::Pread).block_cache_bytes(0)).expect("open")
    };
    let one = 1u64.to_le_bytes();
    let db = open();
    let hits = keyspace(&db, Some(1000), UInt64Add);
    hits.merge("a", one).expect("merge");
    db.compact().expect("compact");
    hits.merge("a", one).expect("merge");
    drop(hits);
    db.close().expect("close");
    let db = open();
    let hits = keyspace(&db, Some(1000), UInt64Add);
    assert_eq!(entries(&db), (1, 1));
    let reads = || {
        let before = counted.calls(Class::Read);
        hits.merge("a", one).expect("merge");
        counted.calls(Class::Read) - before
    };
    assert!(reads() > 0, "what the value has become since is not known");
    for _ in 0..3 {
        assert_eq!(reads(), 0);
    }
    assert_eq!(hits.get("a").expect("get").as_deref(), Some(&6u64.to_le_bytes()[..]));
}
