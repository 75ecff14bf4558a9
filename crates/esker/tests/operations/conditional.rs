//! Writes that look at the value they replace: each sees the newest value, and nothing comes
//! between that and the write.

use crate::common::{Machine, PLACES, at, settle, text};
use esker::merge::{StringAppend, UInt64Add};
use esker::{CompareAndSwap, Db, Error, Expiry, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Options, Ttl};
use esker::{Slice, WriteOptions, env::mem::MemEnv};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn plain(db: &Db) -> Keyspace {
    db.keyspace("plain", KeyspaceOptions::default()).expect("a keyspace")
}

fn counters(db: &Db) -> Keyspace {
    db.keyspace("counters", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace")
}

fn expiring(db: &Db, default: Option<u64>) -> Keyspace {
    let ttl = Ttl::Enabled { default: default.map(Duration::from_secs) };
    let options = KeyspaceOptions::default().ttl(ttl).merge_operator(StringAppend::new(","));
    db.keyspace("expiring", options).expect("a keyspace")
}

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(Duration::from_secs(count))
}

fn unlogged() -> WriteOptions {
    WriteOptions::new().disable_wal(true)
}

fn string(value: Option<Slice>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

fn unequal(current: &str) -> CompareAndSwap {
    CompareAndSwap::Unequal { current: Some(Slice::from(current.as_bytes().to_vec())) }
}

#[test]
fn each_sees_the_value_wherever_it_is() {
    for place in PLACES {
        // Small enough for tables, and large enough for a blob file.
        for length in [3, 100] {
            let machine = Machine::new();
            let db = Db::open(crate::common::DIRECTORY, machine.options().min_blob_size(50)).expect("a database");
            let keyspace = plain(&db);
            keyspace.put("a", "ballast").expect("put");
            keyspace.put("z", "ballast").expect("put");
            db.compact().expect("compact");
            let old = "o".repeat(length);
            for key in ["absent", "swap", "keep", "take"] {
                keyspace.put(key, &old).expect("put");
            }
            settle(&db, place);
            let new = "n".repeat(length);
            assert_eq!(string(keyspace.put_if_absent("absent", &new).expect("put")), Some(old.clone()));
            assert_eq!(keyspace.put_if_absent("new", &new).expect("put"), None);
            let swap = |key, expected: &str, new: Option<&str>| {
                keyspace.compare_and_swap(key, Some(expected.as_bytes()), new.map(str::as_bytes)).expect("swap")
            };
            assert_eq!(swap("swap", &old, Some(&new)), CompareAndSwap::Swapped);
            assert_eq!(swap("keep", &new, Some(&new)), unequal(&old));
            assert_eq!(string(keyspace.take("take").expect("take")), Some(old.clone()));
            assert_eq!(keyspace.take("take").expect("take"), None);
            let all = [("absent", &old), ("new", &new), ("swap", &new), ("keep", &old)];
            for (key, value) in all {
                assert_eq!(text(&keyspace, key).as_ref(), Some(value), "{place:?} {length} {key}");
            }
            assert_eq!(text(&keyspace, "take"), None);
            let killed = Machine { env: Arc::new(machine.env.kill()), clock: machine.clock.clone() };
            let keyspace = plain(&killed.open());
            for (key, value) in all {
                assert_eq!(text(&keyspace, key).as_ref(), Some(value), "{place:?} {length} {key}, after a kill");
            }
            assert_eq!(text(&keyspace, "take"), None);
        }
    }
}

#[test]
fn no_value_can_be_expected_and_be_the_new_one() {
    let machine = Machine::new();
    let keyspace = plain(&machine.open());
    assert!(keyspace.compare_and_swap("k", None, Some(b"1")).expect("swap").is_swapped());
    assert_eq!(keyspace.compare_and_swap("k", None, Some(b"2")).expect("swap"), unequal("1"));
    assert!(keyspace.compare_and_swap("k", Some(b"1"), None).expect("swap").is_swapped());
    let absent = CompareAndSwap::Unequal { current: None };
    assert_eq!(keyspace.compare_and_swap("k", Some(b"1"), None).expect("swap"), absent);
    assert!(keyspace.compare_and_swap("k", None, None).expect("swap").is_swapped());
    keyspace.put("k", "").expect("put");
    assert!(!keyspace.compare_and_swap("k", None, Some(b"2")).expect("swap").is_swapped(), "empty is a value");
    assert!(keyspace.compare_and_swap("k", Some(b""), Some(b"2")).expect("swap").is_swapped());
}

#[test]
fn what_a_range_delete_removed_is_absent() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let keyspace = plain(&db);
        keyspace.put("k", "old").expect("put");
        settle(&db, place);
        keyspace.delete_range("a".."z").expect("delete");
        assert_eq!(keyspace.take("k").expect("take"), None, "{place:?}");
        assert_eq!(keyspace.put_if_absent("k", "new").expect("put"), None);
        assert_eq!(text(&keyspace, "k").as_deref(), Some("new"));
    }
}

#[test]
fn merge_and_get_returns_what_reads_return_from_then_on() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let log = expiring(&db, None);
        for key in ["a", "z"] {
            log.put(key, "ballast").expect("put");
        }
        db.compact().expect("compact");
        log.put("put", "1").expect("put");
        log.merge("merged", "1").expect("merge");
        log.put("deleted", "1").expect("put");
        log.delete("deleted").expect("delete");
        settle(&db, place);
        for (key, expected) in [("put", "1,2"), ("merged", "1,2"), ("deleted", "2"), ("new", "2")] {
            let merged = string(log.merge_and_get(key, "2").expect("merge"));
            assert_eq!(merged.as_deref(), Some(expected), "{place:?}");
            assert_eq!(text(&log, key).as_deref(), Some(expected), "{place:?}");
        }
        db.compact().expect("compact");
        assert_eq!(text(&log, "put").as_deref(), Some("1,2"));
    }
}

#[test]
fn what_has_expired_is_absent_and_a_new_value_has_its_own_time() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let keyspace = expiring(&db, Some(100));
        for key in ["absent", "swap", "merge", "take"] {
            keyspace.put_with(key, "old", &for_seconds(10)).expect("put");
        }
        settle(&db, place);
        assert_eq!(string(keyspace.merge_and_get("merge", "more").expect("merge")).as_deref(), Some("old,more"));
        assert_eq!(keyspace.expires_at("merge").expect("get"), Some(Expiry::At(at(10))), "as merges do");
        machine.pass(Duration::from_secs(10));
        assert_eq!(keyspace.put_if_absent_with("absent", "new", &for_seconds(7)).expect("put"), None);
        assert_eq!(keyspace.expires_at("absent").expect("get"), Some(Expiry::At(at(17))));
        assert!(!keyspace.compare_and_swap("swap", Some(b"old"), Some(b"new")).expect("swap").is_swapped());
        assert!(keyspace.compare_and_swap("swap", None, Some(b"new")).expect("swap").is_swapped());
        assert_eq!(keyspace.expires_at("swap").expect("get"), Some(Expiry::At(at(110))), "the default");
        assert_eq!(string(keyspace.merge_and_get("merge", "new").expect("merge")).as_deref(), Some("new"));
        assert_eq!(keyspace.expires_at("merge").expect("get"), Some(Expiry::At(at(110))));
        assert_eq!(keyspace.take("take").expect("take"), None, "{place:?}");
    }
}

#[test]
fn a_snapshot_sees_none_of_it() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = counters(&db);
    let one = 1u64.to_le_bytes();
    keyspace.merge("k", one).expect("merge");
    let before = db.snapshot();
    keyspace.merge_and_get("k", one).expect("merge");
    let between = db.snapshot();
    keyspace.take("k").expect("take");
    keyspace.put_if_absent("k", one).expect("put");
    let read = |snapshot: &esker::Snapshot| snapshot.get(&keyspace, "k").expect("get").map(|value| number(&value));
    assert_eq!((read(&before), read(&between), read(&db.snapshot())), (Some(1), Some(2), Some(1)));
}

/// Deletes what becomes empty, and fails on demand.
struct Whims;

impl MergeOperator for Whims {
    fn name(&self) -> &str {
        "whims"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        match operands.last() {
            Some(&b"fail") => Err(MergeError("as it was told".into())),
            Some(&b"delete") => Ok(None),
            last => Ok(last.map(|last| last.to_vec())),
        }
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn an_operator_that_fails_writes_nothing_and_one_that_deletes_says_so() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = db.keyspace("whims", KeyspaceOptions::default().merge_operator(Whims)).expect("a keyspace");
    keyspace.put("k", "v").expect("put");
    let failed = keyspace.merge_and_get("k", "fail");
    assert!(matches!(failed, Err(Error::MergeFailed { .. })), "{failed:?}");
    assert_eq!(text(&keyspace, "k").as_deref(), Some("v"));
    assert_eq!(keyspace.merge_and_get("k", "delete").expect("merge"), None);
    assert_eq!(text(&keyspace, "k"), None);
    let refused = plain(&db).merge_and_get("k", "x");
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
}

#[test]
fn options_mean_what_they_mean_elsewhere() {
    let machine = Machine::new();
    let db = machine.open();
    let (keyspace, sync) = (plain(&db), WriteOptions::new().sync(true));
    keyspace.put_if_absent_with("put", "1", &sync).expect("put");
    assert!(keyspace.compare_and_swap_with("put", Some(b"1"), Some(b"2"), &sync).expect("swap").is_swapped());
    let cut = Machine {
        env: Arc::new(machine.env.crash(&esker::env::mem::CrashMode::LoseAll, 1)),
        clock: machine.clock.clone(),
    };
    let db = cut.open();
    let keyspace = plain(&db);
    assert_eq!(text(&keyspace, "put").as_deref(), Some("2"));
    let invalid = [
        keyspace.put_if_absent_with("k", "v", &sync.disable_wal(true)).map(drop),
        keyspace.put_if_absent_with("k", "v", &for_seconds(1)).map(drop),
        keyspace.take_with("put", &for_seconds(1)).map(drop),
        keyspace.put_if_absent(vec![0; (1 << 20) + 1], "v").map(drop),
    ];
    for refused in invalid {
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    db.close().expect("close");
    for refused in [keyspace.put_if_absent("put", "v").map(drop), keyspace.take("put").map(drop)] {
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
}

/// Whatever was written without a sync: an answer of a synced call is true after a power loss.
#[test]
fn what_a_synced_call_has_answered_is_durable() {
    type Call = fn(&Keyspace, &Keyspace, &WriteOptions);
    let calls: [(&str, Call, Option<&str>); 5] = [
        (
            "put_if_absent, declined",
            |k, _, sync| assert!(k.put_if_absent_with("a", "2", sync).unwrap().is_some()),
            Some("1"),
        ),
        (
            "compare_and_swap, declined",
            |k, _, sync| assert!(!k.compare_and_swap_with("a", Some(b"0"), Some(b"2"), sync).unwrap().is_swapped()),
            Some("1"),
        ),
        (
            "take, declined",
            |k, _, sync| {
                k.delete("a").unwrap();
                assert!(k.take_with("a", sync).unwrap().is_none());
            },
            None,
        ),
        ("take", |k, _, sync| assert!(k.take_with("a", sync).unwrap().is_some()), None),
        (
            "merge_and_get",
            |_, counters, sync| {
                let sum = counters.merge_and_get_with("n", 2u64.to_le_bytes(), sync).unwrap();
                assert_eq!(number(&sum.unwrap()), 3);
            },
            Some("1"),
        ),
    ];
    for (what, call, expected) in calls {
        let machine = Machine::new();
        let db = machine.open();
        let (k, n) = (plain(&db), counters(&db));
        k.put("a", "0").unwrap();
        db.sync().unwrap();
        k.put("a", "1").unwrap();
        n.merge("n", 1u64.to_le_bytes()).unwrap();
        call(&k, &n, &WriteOptions::new().sync(true));
        let env = Arc::new(machine.env.crash(&esker::env::mem::CrashMode::LoseAll, 1));
        let db = Machine { env, clock: machine.clock.clone() }.open();
        assert_eq!(text(&plain(&db), "a").as_deref(), expected, "{what}");
        let sum = if what == "merge_and_get" { 3 } else { 1 };
        assert_eq!(number(&counters(&db).get("n").unwrap().unwrap()), sum, "{what}");
    }
}

/// A sync is of the log, and the log has none of the additions before: what was answered is gone.
#[test]
fn a_synced_answer_goes_with_the_additions_that_no_log_has() {
    let machine = Machine::new();
    let db = machine.open();
    let (keyspace, one) = (counters(&db), 1u64.to_le_bytes());
    let sum = |keyspace: &Keyspace| keyspace.get("n").expect("get").map(|value| number(&value));
    let add =
        |options: &WriteOptions| keyspace.merge_and_get_with("n", one, options).expect("merge").map(|n| number(&n));
    for _ in 0..5 {
        keyspace.merge_with("n", one, &unlogged()).expect("merge");
    }
    let sync = WriteOptions::new().sync(true);
    assert_eq!(add(&sync), Some(6));
    let after_power_loss = |env: &MemEnv| {
        let env = Arc::new(env.crash(&esker::env::mem::CrashMode::LoseAll, 1));
        sum(&counters(&Machine { env, clock: machine.clock.clone() }.open()))
    };
    assert_eq!(after_power_loss(&machine.env), Some(1), "only the synced addition is in the log");
    // In a table they are durable, and what is combined with them is.
    db.flush().expect("flush");
    assert_eq!(add(&sync), Some(7));
    assert_eq!(after_power_loss(&machine.env), Some(7));
}

/// Every ticket is given out once, whichever way the others take: logged or not, merged in place or
/// swapped, while memtables are flushed.
#[test]
fn no_two_threads_get_the_same_answer() {
    const THREADS: u64 = 4;
    const EACH: u64 = 3_000;
    let machine = Machine::new();
    let db = Db::open(crate::common::DIRECTORY, machine.options().background_threads(1)).expect("a database");
    let keyspace = counters(&db);
    let given = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (keyspace, db) = (keyspace.clone(), db.clone());
                scope.spawn(move || {
                    let options = if thread % 2 == 0 { unlogged() } else { WriteOptions::new() };
                    let mut given = Vec::new();
                    for step in 0..EACH {
                        let one = 1u64.to_le_bytes();
                        if step % 3 == 0 {
                            // Nobody asks for this one.
                            keyspace.merge_with("tickets", one, &unlogged()).expect("merge");
                        } else if step % 3 == 1 {
                            let merged = keyspace.merge_and_get_with("tickets", one, &options).expect("merge");
                            given.push(number(&merged.expect("a value")));
                        } else {
                            given.push(swap_in_next(&keyspace, &options));
                        }
                        if step % 1000 == thread {
                            db.flush().expect("flush");
                        }
                    }
                    given
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut unique = given.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), given.len(), "one ticket was given out twice");
    let last = keyspace.get("tickets").expect("get").map(|value| number(&value));
    assert_eq!(last, Some(THREADS * EACH), "each step counts once");
}

fn swap_in_next(keyspace: &Keyspace, options: &WriteOptions) -> u64 {
    let mut current = keyspace.get("tickets").expect("get");
    loop {
        let next = current.as_deref().map_or(0, number) + 1;
        let swapped = keyspace.compare_and_swap_with("tickets", current.as_deref(), Some(&next.to_le_bytes()), options);
        match swapped.expect("swap") {
            CompareAndSwap::Swapped => return next,
            CompareAndSwap::Unequal { current: other } => current = other,
        }
    }
}

/// Values of eight bytes are overwritten in place by threads without the lock: a swap that succeeds
/// has replaced exactly what it expected.
#[test]
fn puts_in_place_and_swaps_do_not_overlook_each_other() {
    const EACH: u64 = 20_000;
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = plain(&db);
    keyspace.put("k", 0u64.to_le_bytes()).expect("put");
    let swaps = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let putting = scope.spawn(|| {
            for step in 1..=EACH {
                // The upper half is the putter's, the lower one counts swaps since its last put.
                keyspace.put_with("k", (step << 32).to_le_bytes(), &unlogged()).expect("put");
            }
        });
        while !putting.is_finished() {
            let current = keyspace.get("k").expect("get").expect("a value");
            let new = number(&current) + 1;
            let swapped = keyspace.compare_and_swap_with("k", Some(&current), Some(&new.to_le_bytes()), &unlogged());
            swaps.fetch_add(u64::from(swapped.expect("swap").is_swapped()), Ordering::Relaxed);
        }
    });
    let last = number(&keyspace.get("k").expect("get").expect("a value"));
    assert_eq!(last >> 32, EACH, "the last put was overwritten by a swap that expected an older one");
    assert!(last & 0xffff_ffff <= swaps.load(Ordering::Relaxed));
}

#[test]
fn one_of_several_threads_takes_a_key() {
    let options = Options::default().env(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options).expect("a database");
    let keyspace = plain(&db);
    for round in 0..200u32 {
        keyspace.put("job", round.to_le_bytes()).expect("put");
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| keyspace.take("job").expect("take"))).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).count()
        });
        assert_eq!(taken, 1);
        let put = std::thread::scope(|scope| {
            let put = |text: &'static str| keyspace.put_if_absent("job", text).expect("put").is_none();
            let threads = ["a", "b", "c"].map(|text| scope.spawn(move || put(text)));
            threads.into_iter().map(|thread| thread.join().expect("no panic")).filter(|put| *put).count()
        });
        assert_eq!(put, 1);
    }
}

/// A key that every batch deletes and puts always has a value: no answer is about the moment
/// between the two.
#[test]
fn no_answer_is_about_a_part_of_a_batch() {
    const BATCHES: usize = 500;
    let machine = Machine::new();
    let db = Db::open(crate::common::DIRECTORY, machine.options().background_threads(1)).expect("a database");
    let keyspace = expiring(&db, None);
    keyspace.put("k", "value").expect("put");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for _ in 0..BATCHES {
                let mut batch = db.batch();
                batch.delete(&keyspace, "k").expect("delete");
                for other in 0..1000u16 {
                    batch.put(&keyspace, other.to_be_bytes(), "").expect("put");
                }
                batch.put(&keyspace, "k", "value").expect("put");
                batch.commit().expect("commit");
            }
        });
        let mut turn = 0;
        while !writing.is_finished() {
            let declined = keyspace.compare_and_swap("k", Some(b"other"), None).expect("swap");
            assert_eq!(declined, unequal("value"));
            if turn % 50 == 0 {
                assert!(keyspace.touch("k", Duration::from_secs(50)).expect("touch"));
                assert!(keyspace.put_if_absent("k", "other").expect("put").is_some());
            }
            turn += 1;
        }
    });
}
