//! What is in the log when the operator of a keyspace is replaced, or when entries come to expire:
//! a replay must not combine it by other rules than those that it was written under.

use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, keyspace};
use esker::env::mem::CrashMode;
use esker::merge::{Max, StringAppend, UInt64Add};
use esker::{Db, Error, KeyspaceOptions, MergeError, MergeOperator, Ttl};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const ENABLED: Ttl = Ttl::Enabled { default: None };

fn number(keyspace: &esker::Keyspace, key: &str) -> Option<u64> {
    let value = keyspace.get(key).expect("get")?;
    Some(u64::from_le_bytes(value[..].try_into().expect("eight bytes")))
}

/// The databases that come of this one: a handle of every kind.
fn heirs(machine: &Machine, db: Db, check: impl Fn(&str, &Db)) {
    check("itself", &db);
    // Before a checkpoint, which flushes.
    let image = machine.env.crash(&CrashMode::KeepAll, 1);
    check("crash", &Db::open(DIRECTORY, machine.options().env(Arc::new(image))).expect("open"));
    db.checkpoint("/copy").expect("checkpoint");
    check("checkpoint", &Db::open("/copy", machine.options()).expect("open"));
    let follower = Db::open_follower(DIRECTORY, machine.options()).expect("follow");
    check("follower", follower.db());
    drop((follower, db));
    check("read only", &Db::open_read_only(DIRECTORY, machine.options()).expect("open"));
    check("reopened", &machine.open());
}

#[test]
fn what_was_combined_in_memory_is_not_combined_again_from_the_log() {
    for adds in [true, false] {
        let machine = Machine::new();
        let db = machine.open();
        let first: Arc<dyn MergeOperator> = if adds { Arc::new(UInt64Add) } else { Arc::new(Max) };
        let second: Arc<dyn MergeOperator> = if adds { Arc::new(Max) } else { Arc::new(UInt64Add) };
        let numbers = KeyspaceOptions::default().shared_merge_operator(first);
        let numbers = db.keyspace("numbers", numbers).expect("new");
        let follower = Db::open_follower(DIRECTORY, machine.options()).expect("follow");
        numbers.put("put", 5u64.to_le_bytes()).expect("put");
        numbers.delete("deleted").expect("delete");
        for operand in [3u64, 4] {
            for key in ["put", "deleted"] {
                numbers.merge(key, operand.to_le_bytes()).expect("merge");
            }
        }
        numbers.put("overwritten", 5u64.to_le_bytes()).expect("put");
        numbers.merge("overwritten", 3u64.to_le_bytes()).expect("merge");
        numbers.put("overwritten", 1u64.to_le_bytes()).expect("put");
        numbers.set_shared_merge_operator(second).expect("set");
        numbers.merge("new", 3u64.to_le_bytes()).expect("merge");
        numbers.merge("new", 1u64.to_le_bytes()).expect("merge");
        let expected = if adds { [12, 7, 1, 3] } else { [5, 4, 1, 4] }.map(Some);
        let check = |what: &str, db: &Db| {
            let numbers = db.existing_keyspace("numbers").expect("there");
            let found = ["put", "deleted", "overwritten", "new"].map(|key| number(&numbers, key));
            assert_eq!(found, expected, "{what}, first additions: {adds}");
        };
        follower.catch_up().expect("catch up");
        check("follower from before", follower.db());
        drop((numbers, follower));
        heirs(&machine, db, check);
    }
}

/// The last operand; two operands alone are not combined.
#[derive(Debug)]
struct Last;

impl MergeOperator for Last {
    fn name(&self) -> &str {
        "last"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        Ok(operands.last().map(|operand| operand.to_vec()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_long_chain_that_became_a_value_outlives_the_replay_where_entries_came_to_expire() {
    for merges in [1, 64, 100u64] {
        let machine = Machine::new();
        let db = machine.open();
        let last = db.keyspace("last", KeyspaceOptions::default().merge_operator(Last)).expect("new");
        for operand in 1..=merges {
            last.merge("k", operand.to_le_bytes()).expect("merge");
        }
        last.set_ttl(ENABLED).expect("set");
        drop(last);
        heirs(&machine, db, |what, db| {
            let last = db.existing_keyspace("last").expect("there");
            assert_eq!(number(&last, "k"), Some(merges), "{what}, {merges} merges");
        });
    }
}

#[test]
fn an_operand_that_the_new_operator_refuses_is_not_written() {
    let machine = Machine::new();
    let db = machine.open();
    let texts = db.keyspace("texts", KeyspaceOptions::default().merge_operator(StringAppend::new(","))).expect("new");
    let other = keyspace(&db, "other");
    texts.put("k", 5u64.to_le_bytes()).expect("put");
    for expires in [false, true] {
        texts.set_merge_operator(StringAppend::new(",")).expect("back");
        if expires {
            texts.set_ttl(ENABLED).expect("set");
        }
        let mut batch = db.batch();
        batch.put(&other, "k", "v").expect("add");
        batch.merge(&texts, "k", "abc").expect("add");
        let mut fits = db.batch();
        fits.merge(&texts, "k", 3u64.to_le_bytes()).expect("add");
        let mut transaction = db.transaction();
        transaction.merge(&texts, "k", "abc").expect("merge");
        let before = number(&texts, "k").expect("there");
        texts.set_merge_operator(UInt64Add).expect("set");
        let refused = |result: Result<(), Error>| {
            assert!(matches!(&result, Err(Error::InvalidArgument { .. })), "{expires}: {result:?}");
            assert!(format!("{result:?}").contains("texts"), "{result:?}");
        };
        refused(batch.commit());
        refused(transaction.commit());
        assert_eq!((number(&texts, "k"), other.get("k").expect("get")), (Some(before), None));
        fits.commit().expect("commit");
        assert_eq!(number(&texts, "k"), Some(before + 3));
    }
    drop((texts, other));
    heirs(&machine, db, |what, db| {
        assert_eq!(number(&db.existing_keyspace("texts").expect("there"), "k"), Some(11), "{what}");
    });
}

#[test]
fn what_a_change_of_settings_rotates_is_flushed() {
    for is_expiry in [false, true] {
        let machine = Machine::new();
        let db = Db::open(DIRECTORY, machine.options().background_threads(0)).expect("open");
        let numbers = db.keyspace("numbers", KeyspaceOptions::default().merge_operator(Max)).expect("new");
        numbers.put("k", 5u64.to_le_bytes()).expect("put");
        if is_expiry {
            numbers.set_ttl(ENABLED).expect("set");
        } else {
            numbers.set_merge_operator(UInt64Add).expect("set");
        }
        assert_eq!(db.stats().keyspaces[0].runs.len(), 1, "it waits for another write: {is_expiry}");
    }
}

/// Its chains are long, and are flushed as soon as it is there: not under the locks of the change.
#[test]
fn an_operator_that_is_supplied_by_the_change_combines_what_waits_for_it() {
    let machine = Machine::new();
    let open = || Db::open(DIRECTORY, machine.options().background_threads(0)).expect("open");
    let db = open();
    let last = db.keyspace("last", KeyspaceOptions::default().merge_operator(Last)).expect("new");
    last.put("k", vec![7; 2000]).expect("put");
    for operand in 1..=60u64 {
        last.merge("k", operand.to_le_bytes()).expect("merge");
    }
    drop((last, db));
    let db = open();
    let last = keyspace(&db, "last");
    for operand in 1..=60u64 {
        last.merge("k", operand.to_le_bytes()).expect("merge");
    }
    last.set_merge_operator(Last).expect("supplied");
    assert_eq!(number(&last, "k"), Some(60));
    assert_eq!(db.stats().keyspaces[0].runs.len(), 1);
}

/// Trap: the writer replaces the operator after the follower has read the manifest, and before that
/// has read the log.
#[test]
fn a_follower_combines_no_merge_by_the_operator_that_was_replaced() {
    assert_ten_in_a_follower(1, |numbers| {
        numbers.set_merge_operator(Max).expect("set");
        numbers.merge("k", 3u64.to_le_bytes()).expect("merge");
    });
}

/// Trap: the manifest that the follower reads names the operator that it knows, and the log has
/// merges of the one that was in force between.
#[test]
fn a_follower_combines_no_merge_of_an_operator_that_came_and_went() {
    let there_and_back = |numbers: &esker::Keyspace| {
        numbers.set_merge_operator(Max).expect("set");
        numbers.merge("k", 3u64.to_le_bytes()).expect("merge");
        numbers.set_merge_operator(UInt64Add).expect("set back");
        numbers.merge("k", [0; 8]).expect("merge");
    };
    // At 0 before the follower looks.
    assert_ten_in_a_follower(0, there_and_back);
}

/// Makes the change, which leaves 10 behind, before a follower catches up, or beside each of its
/// calls, from that number on: no read of the follower, during the call or later, yields another
/// number.
fn assert_ten_in_a_follower(first: u64, make: fn(&esker::Keyspace)) {
    let mut at = first;
    loop {
        let machine = Machine::new();
        let db = machine.open();
        let numbers = db.keyspace("numbers", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("new");
        numbers.put("k", 10u64.to_le_bytes()).expect("put");
        let (calls, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None::<esker::Keyspace>)));
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let told = {
            let (calls, seen, wrong, numbers) = (calls.clone(), seen.clone(), wrong.clone(), numbers.clone());
            let inside = AtomicBool::new(false);
            move |call: &'static str| {
                let Some(seen) = seen.lock().expect("no panic").clone() else { return };
                // The reads below call too.
                if inside.swap(true, Ordering::SeqCst) {
                    return;
                }
                let call_number = calls.fetch_add(1, Ordering::SeqCst) + 1;
                // In another thread: in this one the calls would be refused.
                let found = std::thread::scope(|scope| {
                    let change = || {
                        if call_number == at {
                            make(&numbers);
                        }
                        number(&seen, "k")
                    };
                    scope.spawn(change).join().expect("no panic")
                });
                if found != Some(10) {
                    wrong.lock().expect("no panic").push((call, found));
                }
                inside.store(false, Ordering::SeqCst);
            }
        };
        let env = Telling { told: Arc::new(told), called: machine.env.clone() as _ };
        let follower = Db::open_follower(DIRECTORY, machine.options().env(Arc::new(env))).expect("follow");
        numbers.merge("k", [0; 8]).expect("merge");
        if at == 0 {
            make(&numbers);
        }
        *seen.lock().expect("no panic") = follower.db().existing_keyspace("numbers").ok();
        follower.catch_up().expect("catch up");
        *seen.lock().expect("no panic") = None;
        follower.catch_up().expect("catch up");
        assert_eq!(number(&follower.db().existing_keyspace("numbers").expect("there"), "k"), Some(10));
        assert!(wrong.lock().expect("no panic").is_empty(), "at call {at}: {wrong:?}");
        if calls.load(Ordering::SeqCst) < at {
            break;
        }
        at += 1;
    }
    println!("{at} calls");
    assert!(at > 5);
}

/// Trap: a merge that comes while the operator is replaced, in another thread, is still an operand
/// when its memtable is in a table: its base is in another one. Another keyspace is written all the
/// time, so that each flush has something to do, and the merge can come beside any of them.
#[test]
fn a_merge_beside_a_change_of_operator_keeps_its_meaning() {
    /// How often a write is waited for: where the change holds the lock, it cannot come.
    const LOOKS: usize = 500;
    let (mut at, mut before, mut after) = (1, 0, 0);
    loop {
        let machine = Machine::new();
        let (calls, merges) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let handles = Arc::new(Mutex::new(None::<[esker::Keyspace; 2]>));
        let writes = Arc::new(Mutex::new(Vec::new()));
        let told = {
            let (merges, handles, writes) = (merges.clone(), handles.clone(), writes.clone());
            let changing = std::thread::current().id();
            move |_: &'static str| {
                // Those of the writes below are none of the change.
                if std::thread::current().id() != changing {
                    return;
                }
                let Some([numbers, other]) = handles.lock().expect("no panic").clone() else { return };
                let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
                let write = std::thread::spawn(move || {
                    if call != at {
                        other.put("k", "v").expect("put");
                        return None;
                    }
                    numbers.merge("k", 3u64.to_le_bytes()).expect("merge");
                    number(&numbers, "k")
                });
                merges.fetch_add(u64::from(call == at), Ordering::SeqCst);
                (0..LOOKS).take_while(|_| !write.is_finished()).for_each(|_| std::thread::yield_now());
                writes.lock().expect("no panic").push(write);
            }
        };
        let env = Telling { told: Arc::new(told), called: machine.env.clone() as _ };
        let db = Db::open(DIRECTORY, machine.options().env(Arc::new(env))).expect("open");
        let numbers = db.keyspace("numbers", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("new");
        let other = keyspace(&db, "other");
        numbers.put("k", 10u64.to_le_bytes()).expect("put");
        db.flush().expect("flush");
        numbers.merge("k", 1u64.to_le_bytes()).expect("merge");
        *handles.lock().expect("no panic") = Some([numbers.clone(), other.clone()]);
        numbers.set_merge_operator(Max).expect("set");
        *handles.lock().expect("no panic") = None;
        let writes = std::mem::take(&mut *writes.lock().expect("no panic"));
        let merged = writes.into_iter().map(|write| write.join().expect("no panic")).fold(None, Option::or);
        if merges.load(Ordering::SeqCst) == 0 {
            break;
        }
        // What it was right behind the merge, by the operator that was in force.
        let found = number(&numbers, "k");
        assert_eq!(found, merged, "at call {at}");
        match found {
            Some(14) => before += 1,
            Some(11) => after += 1,
            wrong => panic!("{wrong:?} at call {at}"),
        }
        drop((numbers, other));
        heirs(&machine, db, |what, db| {
            assert_eq!(number(&db.existing_keyspace("numbers").expect("there"), "k"), found, "{what}, at call {at}");
        });
        at += 1;
    }
    println!("{at} calls: before the change {before} times, behind it {after} times");
    assert!(before > 5);
}
