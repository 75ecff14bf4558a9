//! Settings of a keyspace that are changed while it is in use: a time to live, a merge operator.

use crate::common::{DIRECTORY, Machine, PLACES, Place, keyspace, pairs, settle, simulated, text};
use esker::env::Env as _;
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::{Max, StringAppend, UInt64Add};
use esker::{Db, Error, Expiry, KeyspaceOptions, ManualClock, Options, Ttl, WriteOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ENABLED: Ttl = Ttl::Enabled { default: None };

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(Duration::from_secs(count))
}

fn is_refused<T: std::fmt::Debug>(result: esker::Result<T>, why: &str) -> bool {
    matches!(&result, Err(Error::InvalidArgument { .. }) if format!("{result:?}").contains(why))
}

#[test]
fn what_is_written_after_the_change_can_expire_and_what_was_there_does_not() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let names = keyspace(&db, "names");
        names.put("old", "1").expect("put");
        names.put("both", "1").expect("put");
        settle(&db, place);
        assert!(names.put_with("k", "v", &for_seconds(5)).is_err());
        names.set_ttl(ENABLED).expect("set");
        assert_eq!(names.ttl(), ENABLED);
        names.put_with("k", "v", &for_seconds(5)).expect("put");
        names.put_with("both", "2", &for_seconds(5)).expect("put");
        settle(&db, place);
        assert_eq!(pairs(&names).len(), 3);
        machine.pass(Duration::from_secs(5));
        assert_eq!(pairs(&names), [("old".to_owned(), "1".to_owned())], "{place:?}");
        assert_eq!(names.expires_at("old").expect("get"), Some(Expiry::Never));
        names.touch("old", Duration::from_secs(5)).expect("touch");
        drop((names, db));
        let db = machine.open();
        let names = db.keyspace("names", KeyspaceOptions::default().ttl(ENABLED)).expect("as it is now");
        assert_eq!(text(&names, "old").as_deref(), Some("1"));
        machine.pass(Duration::from_secs(5));
        assert!(pairs(&names).is_empty());
        let before = KeyspaceOptions::default().ttl(Ttl::Disabled);
        assert!(is_refused(db.keyspace("names", before), "set_ttl"));
    }
}

#[test]
fn the_default_can_be_changed_and_expiry_not_be_given_up() {
    let machine = Machine::new();
    let db = machine.open();
    let default = |seconds| Ttl::Enabled { default: Some(Duration::from_secs(seconds)) };
    let sums = KeyspaceOptions::default().ttl(default(5)).merge_operator(UInt64Add);
    let sums = db.keyspace("sums", sums).expect("keyspace");
    sums.merge("a", 1u64.to_le_bytes()).expect("merge");
    sums.set_ttl(default(50)).expect("set");
    sums.set_ttl(default(50)).expect("the same again");
    sums.merge("b", 1u64.to_le_bytes()).expect("merge");
    machine.pass(Duration::from_secs(5));
    let left = |db: &Db| db.existing_keyspace("sums").expect("there").iter().count();
    assert_eq!(left(&db), 1, "what was there keeps its expiry");
    assert!(is_refused(sums.set_ttl(Ttl::Disabled), "without a default"));
    assert!(is_refused(sums.set_ttl(Ttl::Enabled { default: Some(Duration::ZERO) }), "zero"));
    sums.set_ttl(ENABLED).expect("set");
    sums.merge("c", 1u64.to_le_bytes()).expect("merge");
    machine.pass(Duration::from_secs(500));
    assert_eq!(left(&db), 1);
}

fn eight(number: u64) -> Option<Vec<u8>> {
    Some(number.to_le_bytes().to_vec())
}

fn bytes(keyspace: &esker::Keyspace, key: &str) -> Option<Vec<u8>> {
    keyspace.get(key).expect("get").map(|value| value.to_vec())
}

/// Sums in each of three places: of additions alone, and on a value.
fn sums(db: &Db) -> esker::Keyspace {
    let sums = db.keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("keyspace");
    sums.put("value", 7u64.to_le_bytes()).expect("put");
    for place in [Place::LastRun, Place::UpperRun, Place::Memtable] {
        sums.merge("value", 1u64.to_le_bytes()).expect("merge");
        sums.merge("none", 1u64.to_le_bytes()).expect("merge");
        settle(db, place);
    }
    sums
}

#[test]
fn operands_are_folded_before_entries_can_expire() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let sums = sums(&db);
        let mut batch = db.batch();
        batch.merge(&sums, "value", 100u64.to_le_bytes()).expect("add");
        batch.merge(&sums, "new", 100u64.to_le_bytes()).expect("add");
        assert!(sums.put_with("k", [0; 8], &for_seconds(5)).is_err());
        sums.set_ttl(ENABLED).expect("set");
        settle(&db, place);
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), (eight(10), eight(3)), "{place:?}");
        batch.commit().expect("commit");
        sums.merge_with("passes", 1u64.to_le_bytes(), &for_seconds(5)).expect("merge");
        settle(&db, place);
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "new")), (eight(110), eight(100)), "{place:?}");
        assert_eq!(sums.iter().count(), 4);
        machine.pass(Duration::from_secs(5));
        db.compact().expect("compact");
        assert_eq!(sums.iter().rev().count(), 3);
        drop((sums, db));
        let sums = keyspace(&machine.open(), "sums");
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), (eight(110), eight(3)), "{place:?}");
    }
}

#[test]
fn another_operator_finds_values() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let sums = sums(&db);
        sums.set_merge_operator(Max).expect("set");
        assert_eq!(sums.merge_operator().as_deref(), Some("max"));
        settle(&db, place);
        let expected = (eight(10), eight(3));
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), expected, "{place:?}");
        sums.merge("value", 5u64.to_le_bytes()).expect("merge");
        sums.merge("none", 5u64.to_le_bytes()).expect("merge");
        settle(&db, place);
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), (eight(10), eight(5)), "{place:?}");
        sums.set_merge_operator(StringAppend::new("")).expect("set");
        sums.set_merge_operator(UInt64Add).expect("back again");
        sums.merge_with("none", 5u64.to_le_bytes(), &WriteOptions::new().disable_wal(true)).expect("merge");
        settle(&db, place);
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), (eight(10), eight(10)), "{place:?}");
        db.flush().expect("flush");
        drop((sums, db));
        let db = machine.open();
        let sums = keyspace(&db, "sums");
        assert_eq!((bytes(&sums, "value"), bytes(&sums, "none")), (eight(10), eight(10)), "{place:?}");
        assert!(is_refused(db.keyspace("sums", KeyspaceOptions::default().merge_operator(Max)), "uint64add"));
    }
}

#[test]
fn what_cannot_be_folded_keeps_its_operator() {
    let machine = Machine::new();
    let db = machine.open();
    let texts = db.keyspace("texts", KeyspaceOptions::default().merge_operator(StringAppend::new(","))).expect("new");
    texts.put("a", "x").expect("put");
    let snapshot = db.snapshot();
    texts.merge("a", "y").expect("merge");
    assert!(is_refused(texts.set_merge_operator(Max), "snapshot"));
    assert!(is_refused(texts.set_ttl(ENABLED), "snapshot"));
    assert_eq!((texts.merge_operator().as_deref(), texts.ttl()), (Some("stringappend:2c"), Ttl::Disabled));
    assert_eq!(snapshot.get(&texts, "a").expect("get").as_deref(), Some(&b"x"[..]));
    drop(snapshot);
    texts.set_merge_operator(Max).expect("set");
    assert_eq!(text(&texts, "a").as_deref(), Some("x,y"));
    // An operator that was not supplied.
    let custom = KeyspaceOptions::default().merge_operator(Failing);
    let failing = db.keyspace("failing", custom).expect("new");
    failing.merge("a", "y").expect("merge");
    assert!(is_refused(failing.set_merge_operator(Max), "failed"));
    failing.put("a", "z").expect("put");
    failing.set_merge_operator(Max).expect("nothing is left of it");
    // Of first operands, too, which tables do not count.
    let failing = KeyspaceOptions::default().merge_operator(Failing).ttl(ENABLED);
    let failing = db.keyspace("failing first", failing).expect("new");
    failing.merge("a", "y").expect("merge");
    db.flush().expect("flush");
    assert!(is_refused(failing.set_merge_operator(Max), "failed"));
    let fifo = KeyspaceOptions::default()
        .merge_operator(UInt64Add)
        .compaction_style(esker::CompactionStyle::Fifo { max_bytes: 1 << 30 });
    let fifo = db.keyspace("fifo", fifo).expect("new");
    fifo.put("a", [0; 8]).expect("put");
    db.flush().expect("flush");
    fifo.merge("a", [0; 8]).expect("merge");
    assert!(is_refused(fifo.set_merge_operator(Max), "FIFO"));
}

/// Combines nothing.
#[derive(Debug)]
struct Failing;

impl esker::MergeOperator for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Option<Vec<u8>>, esker::MergeError> {
        Err(esker::MergeError("never".into()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn reads_that_began_before_combine_as_before() {
    for is_expiry in [false, true] {
        let machine = Machine::new();
        let db = machine.open();
        let texts = KeyspaceOptions::default().merge_operator(StringAppend::new(","));
        let texts = db.keyspace("texts", texts).expect("new");
        for key in ["a", "b", "c"] {
            texts.merge(key, "y").expect("merge");
            db.flush().expect("flush");
            texts.merge(key, "x").expect("merge");
        }
        let (mut forward, mut backward) = (texts.iter(), texts.iter().rev());
        let mut cursor = texts.cursor().expect("cursor");
        if is_expiry {
            texts.set_ttl(ENABLED).expect("set");
        } else {
            texts.set_merge_operator(Max).expect("set");
        }
        // The old iterators see what was in memory and in tables then.
        texts.merge("b", "z").expect("merge");
        for key in ["a", "b", "c"] {
            let (found, value) = forward.next().expect("a pair").expect("read");
            assert_eq!((&*found, &*value), (key.as_bytes(), &b"y,x"[..]), "{is_expiry}");
        }
        assert!(forward.next().is_none());
        for key in ["c", "b", "a"] {
            let (found, value) = backward.next().expect("a pair").expect("read");
            assert_eq!((&*found, &*value), (key.as_bytes(), &b"y,x"[..]), "{is_expiry}");
        }
        cursor.seek("b").expect("seek");
        assert_eq!(cursor.value(), b"y,x");
        let now = if is_expiry { "y,x,z" } else { "z" };
        assert_eq!(text(&texts, "b").as_deref(), Some(now));
    }
}

/// Merges of several threads, each with the operator that is in force.
#[test]
fn an_operator_is_replaced_beside_merges_and_reads() {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7u64);
    println!("ESKER_SEED={seed}");
    let env = MemEnv::new();
    let options = Options::default().env(Arc::new(env)).write_buffer_bytes(64 << 10);
    let db = Db::open("/db", options).expect("open");
    let numbers = db.keyspace("numbers", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("new");
    let mut random = esker::internals::Random::new(seed);
    let value = random.below(1 << 40) + 1000;
    let keys: Vec<String> = (0..50).map(|number| format!("k{number}")).collect();
    for key in &keys {
        numbers.put(key, (value - 3).to_le_bytes()).expect("put");
        db.flush().expect("flush");
        numbers.merge(key, 3u64.to_le_bytes()).expect("merge");
    }
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let right = value.to_le_bytes();
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (numbers, keys, is_done) = (&numbers, &keys, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Acquire) {
                    // Adding nothing, and the smallest of all: neither changes a value.
                    for key in keys {
                        assert_eq!(numbers.get(key).expect("get").as_deref(), Some(&right[..]));
                        if reader == 0 {
                            let _ = numbers.merge(key, [0; 8]);
                        }
                    }
                    for pair in numbers.iter() {
                        assert_eq!(&*pair.expect("scan").1, &right[..]);
                    }
                }
            });
        }
        let mut replaced = 0;
        for round in 0..40 {
            let outcome = match round % 2 {
                0 => numbers.set_merge_operator(Max),
                _ => numbers.set_merge_operator(UInt64Add),
            };
            // Iterators of the other threads, and their merges, may be in the way each time.
            match outcome {
                Ok(()) => replaced += 1,
                Err(error) => assert!(matches!(error, Error::InvalidArgument { .. }), "{error}"),
            }
        }
        is_done.store(true, Ordering::Release);
        println!("{replaced} of 40");
    });
    numbers.set_merge_operator(Max).expect("nobody is in the way");
    numbers.set_ttl(ENABLED).expect("set");
    for key in &keys {
        assert_eq!(numbers.get(key).expect("get").as_deref(), Some(&right[..]));
    }
}

#[test]
fn an_operator_combines_with_what_was_there() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let sums = keyspace(&db, "sums");
        sums.put("a", 7u64.to_le_bytes()).expect("put");
        settle(&db, place);
        assert!(sums.merge("a", 1u64.to_le_bytes()).is_err());
        let snapshot = db.snapshot();
        sums.set_merge_operator(UInt64Add).expect("set");
        sums.set_merge_operator(UInt64Add).expect("the same again");
        assert_eq!(sums.merge_operator().as_deref(), Some("uint64add"));
        sums.merge("a", 1u64.to_le_bytes()).expect("merge");
        sums.merge("b", 1u64.to_le_bytes()).expect("merge");
        settle(&db, place);
        let eight = |number: u64| Some(number.to_le_bytes().to_vec());
        let value = |key| sums.get(key).expect("get").map(|value| value.to_vec());
        assert_eq!((value("a"), value("b")), (eight(8), eight(1)), "{place:?}");
        assert_eq!(snapshot.get(&sums, "a").expect("get").map(|value| value.to_vec()), eight(7));
        drop(snapshot);
        drop(sums);
        drop(db);
        let sums = keyspace(&machine.open(), "sums");
        assert_eq!(sums.get("a").expect("get").map(|value| value.to_vec()), eight(8), "it attaches by name");
    }
}

#[test]
fn both_can_be_set_the_time_to_live_first() {
    let machine = Machine::new();
    let db = machine.open();
    let texts = keyspace(&db, "texts");
    texts.put("a", "x").expect("put");
    texts.set_ttl(ENABLED).expect("set");
    texts.put_with("b", "x", &for_seconds(5)).expect("put");
    texts.set_merge_operator(StringAppend::new(",")).expect("set");
    for key in ["a", "b", "c"] {
        texts.merge(key, "y").expect("merge");
    }
    db.compact().expect("compact");
    assert_eq!(text(&texts, "b").as_deref(), Some("x,y"));
    machine.pass(Duration::from_secs(5));
    assert_eq!((text(&texts, "a"), text(&texts, "b")), (Some("x,y".into()), None));
    assert_eq!(text(&texts, "c").as_deref(), Some("y"));
}

#[test]
fn who_may_not_write_may_not_change_settings_either() {
    let machine = Machine::new();
    let db = machine.open();
    let gone = keyspace(&db, "gone");
    db.drop_keyspace("gone").expect("drop");
    assert!(matches!(gone.set_ttl(ENABLED), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(gone.set_merge_operator(Max), Err(Error::KeyspaceDropped { .. })));
    keyspace(&db, "names");
    drop((gone, db));
    let db = Db::open_read_only(DIRECTORY, machine.options()).expect("open");
    let names = db.existing_keyspace("names").expect("there");
    assert!(matches!(names.set_ttl(ENABLED), Err(Error::ReadOnly { .. })));
    assert!(matches!(names.set_merge_operator(Max), Err(Error::ReadOnly { .. })));
    assert_eq!((names.ttl(), names.merge_operator()), (Ttl::Disabled, None));
}

#[test]
fn a_follower_takes_them_over() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    let sums = keyspace(&db, "sums");
    sums.put("a", 7u64.to_le_bytes()).expect("put");
    let follower = Db::open_follower(DIRECTORY, machine.options()).expect("follow");
    let followed = |name: &str| follower.db().existing_keyspace(name).expect("there");
    names.set_ttl(ENABLED).expect("set");
    names.put_with("k", "v", &for_seconds(5)).expect("put");
    sums.set_merge_operator(UInt64Add).expect("set");
    sums.merge("a", 1u64.to_le_bytes()).expect("merge");
    follower.catch_up().expect("catch up");
    assert_eq!(followed("names").ttl(), ENABLED);
    assert_eq!(text(&followed("names"), "k").as_deref(), Some("v"));
    assert_eq!(followed("sums").get("a").expect("get").as_deref(), Some(&8u64.to_le_bytes()[..]));
    machine.pass(Duration::from_secs(5));
    assert_eq!(text(&followed("names"), "k"), None);
}

#[test]
fn a_follower_folds_with_its_writer() {
    let machine = Machine::new();
    let db = machine.open();
    let sums = sums(&db);
    let follower = Db::open_follower(DIRECTORY, machine.options()).expect("follow");
    let seen = follower.db().existing_keyspace("sums").expect("there");
    sums.merge("value", 1u64.to_le_bytes()).expect("merge");
    follower.catch_up().expect("catch up");
    let (snapshot, mut iterator) = (follower.db().snapshot(), seen.iter());
    sums.set_merge_operator(Max).expect("set");
    sums.merge("value", 2u64.to_le_bytes()).expect("merge");
    sums.merge("none", 200u64.to_le_bytes()).expect("merge");
    follower.catch_up().expect("catch up");
    assert_eq!(seen.merge_operator().as_deref(), Some("max"));
    assert_eq!((bytes(&seen, "value"), bytes(&seen, "none")), (eight(11), eight(200)));
    let before = snapshot.get(&seen, "none").expect("get").map(|value| value.to_vec());
    assert_eq!(before, eight(3));
    assert_eq!(iterator.next().expect("a pair").expect("read").1, 3u64.to_le_bytes());
    sums.set_ttl(ENABLED).expect("set");
    sums.merge_with("passes", 2u64.to_le_bytes(), &for_seconds(5)).expect("merge");
    follower.catch_up().expect("catch up");
    assert_eq!((seen.ttl(), seen.iter().count()), (ENABLED, 3));
    machine.pass(Duration::from_secs(5));
    assert_eq!((bytes(&seen, "value"), seen.iter().count()), (eight(11), 2));
}

/// Work around changes of settings, up to the first error: how many puts were acknowledged.
fn work(env: &MemEnv, clock: &Arc<ManualClock>) -> (u64, esker::Result<()>) {
    let mut done = 0;
    let mut work = || {
        let db = Db::open(DIRECTORY, simulated(env).clock(clock.clone()))?;
        let names = db.keyspace("names", KeyspaceOptions::default())?;
        let mut put = |key: &str, options: WriteOptions| {
            names.put_with(key, 7u64.to_le_bytes(), &options.sync(true))?;
            done += 1;
            Ok::<(), Error>(())
        };
        put("a", WriteOptions::new())?;
        names.set_ttl(ENABLED)?;
        put("b", for_seconds(5))?;
        db.flush()?;
        put("c", for_seconds(500))?;
        names.set_merge_operator(UInt64Add)?;
        names.merge("a", 1u64.to_le_bytes())?;
        put("d", for_seconds(5))
    };
    let result = work();
    (done, result)
}

/// Replaces operators, up to the first error: how many steps were acknowledged.
fn replace(env: &MemEnv, keeps: bool) -> (u64, esker::Result<()>) {
    let mut done = 0;
    let mut work = || {
        let options = simulated(env);
        let options = if keeps { options.keep_changes(esker::ChangeRetention::Bytes(1 << 30)) } else { options };
        let db = Db::open(DIRECTORY, options)?;
        let numbers = db.keyspace("numbers", KeyspaceOptions::default().merge_operator(UInt64Add))?;
        let mut merge = |number: u64| {
            let mut batch = db.batch();
            batch.merge(&numbers, "k", number.to_le_bytes())?;
            // Combined in memory, and apart in the log.
            batch.put(&numbers, "put", 10u64.to_le_bytes())?;
            batch.merge(&numbers, "put", number.to_le_bytes())?;
            batch.commit_with(&WriteOptions::new().sync(true))?;
            done += 1;
            Ok::<(), Error>(())
        };
        merge(5)?;
        db.flush()?;
        merge(5)?;
        numbers.set_merge_operator(Max)?;
        merge(3)?;
        numbers.set_merge_operator(UInt64Add)?;
        merge(1)?;
        numbers.set_ttl(ENABLED)?;
        merge(1)
    };
    let result = work();
    (done, result)
}

#[test]
fn a_power_failure_at_any_call_leaves_the_old_operator_or_the_new() {
    let mut crashes = 0;
    for keeps in [false, true] {
        let whole = MemEnv::new();
        replace(&whole, keeps).1.expect("a healthy machine");
        for at in 0..=whole.mutations() {
            for (seed, mode) in (0..).zip(CrashMode::FIXED.into_iter().chain([CrashMode::Random, CrashMode::Random])) {
                let env = MemEnv::new();
                env.crash_after(at);
                let (done, _) = replace(&env, keeps);
                let image = env.crash(&mode, seed);
                crashes += 1;
                let db = Db::open(DIRECTORY, simulated(&image)).expect("open");
                let found = |db: &Db| {
                    let numbers = db.existing_keyspace("numbers").ok();
                    ["k", "put"].map(|key| numbers.as_ref().and_then(|numbers| bytes(numbers, key)))
                };
                let looked = found(&db);
                // After so many merges; the one more may be there.
                let after = |merges: u64| {
                    let (sum, put) = [(0, 0), (5, 15), (10, 15), (10, 10), (11, 11), (12, 11)][merges as usize];
                    [sum, put].map(|number| if merges == 0 { None } else { eight(number) })
                };
                let context = format!("at {at}, {mode:?}, kept {keeps}, {done} merges, {looked:?}");
                assert!(looked == after(done) || looked == after((done + 1).min(5)), "{context}");
                db.compact().expect("compact");
                assert_eq!(found(&db), looked, "{context}");
                db.verify().expect("verify");
            }
        }
    }
    println!("{crashes} crashes");
}

#[test]
fn a_power_failure_at_any_call_leaves_the_old_settings_or_the_new() {
    let whole = MemEnv::new();
    let clock = || Arc::new(ManualClock::new(1_700_000_000_000));
    work(&whole, &clock()).1.expect("a healthy machine");
    for at in 0..=whole.mutations() {
        for (seed, mode) in (0..).zip(CrashMode::FIXED.into_iter().chain([CrashMode::Random, CrashMode::Random])) {
            let (env, clock) = (MemEnv::new(), clock());
            env.crash_after(at);
            let (done, _) = work(&env, &clock);
            let image = env.crash(&mode, seed);
            clock.advance(Duration::from_secs(5));
            let db = Db::open(DIRECTORY, simulated(&image).clock(clock)).expect("open");
            let Ok(names) = db.existing_keyspace("names") else {
                assert_eq!(done, 0, "at {at}, {mode:?}");
                continue;
            };
            let has = |key| names.contains_key(key).expect("get");
            assert!(!has("b") && !has("d"), "at {at}, {mode:?}: expired entries are shown");
            assert!(done < 1 || has("a"), "at {at}, {mode:?}");
            assert!(done < 3 || has("c"), "at {at}, {mode:?}");
            assert!(!has("c") || names.ttl() == ENABLED, "at {at}, {mode:?}");
            assert!(done < 4 || names.merge_operator().is_some(), "at {at}, {mode:?}");
            db.compact().expect("compact");
            db.verify().expect("verify");
        }
    }
}

/// A write under the new setting replaces what it has read: nothing may change in place meanwhile.
#[test]
fn no_addition_in_place_is_lost_to_a_change_of_the_expiry() {
    const ADDED: u64 = 3000;
    for _ in 0..10 {
        let env = MemEnv::new();
        let db = Db::open("/db", Options::default().env(Arc::new(env))).expect("open");
        let sums = keyspace(&db, "sums");
        let unlogged = WriteOptions::new().disable_wal(true);
        sums.put_with("k", 0u64.to_le_bytes(), &unlogged).expect("put");
        let newest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=ADDED {
                    sums.put_with("k", number.to_le_bytes(), &unlogged).expect("put");
                    newest.store(number, Ordering::Release);
                }
            });
            while newest.load(Ordering::Acquire) < ADDED / 10 {
                std::hint::spin_loop();
            }
            sums.set_ttl(ENABLED).expect("set");
            while newest.load(Ordering::Acquire) < ADDED {
                let before = newest.load(Ordering::Acquire);
                assert!(sums.touch("k", Duration::from_secs(500)).expect("touch"));
                let found = sums.get("k").expect("get").expect("it is there");
                let found = u64::from_le_bytes(found[..].try_into().expect("eight bytes"));
                assert!(found >= before, "{found} after {before} was acknowledged");
            }
        });
        assert_eq!(sums.get("k").expect("get").as_deref(), Some(&ADDED.to_le_bytes()[..]));
    }
}

#[test]
fn a_repair_without_a_manifest_knows_the_later_setting() {
    for is_flushed in [false, true] {
        let machine = Machine::new();
        {
            let db = machine.open();
            let names = keyspace(&db, "names");
            names.put("old", "1").expect("put");
            db.flush().expect("flush");
            names.set_ttl(ENABLED).expect("set");
            names.put_with("k", "v", &for_seconds(5)).expect("put");
            let only_in_log = keyspace(&db, "log");
            only_in_log.set_ttl(ENABLED).expect("set");
            only_in_log.put_with("k", "v", &for_seconds(5)).expect("put");
            if is_flushed {
                db.flush().expect("flush");
            }
            std::mem::forget(db);
        }
        let image = machine.env.crash(&CrashMode::KeepAll, 1);
        for path in image.files() {
            if path.to_string_lossy().contains("MANIFEST") {
                image.remove(&path).expect("remove");
            }
        }
        let options = || machine.options().env(Arc::new(image.clone()));
        Db::repair(DIRECTORY, options()).expect("repair");
        let db = Db::open(DIRECTORY, options()).expect("open");
        let live = |db: &Db| {
            let count = |name: String| db.existing_keyspace(&name).expect("there").iter().count();
            db.keyspaces().into_iter().map(count).sum::<usize>()
        };
        assert_eq!(live(&db), 3, "flushed: {is_flushed}; {:?}", db.keyspaces());
        let snapshot = db.snapshot();
        assert!(snapshot.get(&db.existing_keyspace("names").expect("there"), "k").expect("get").is_some());
        machine.pass(Duration::from_secs(5));
        assert_eq!(live(&db), 1, "flushed: {is_flushed}");
        assert_eq!(db.existing_keyspace("names").expect("there").ttl(), ENABLED);
    }
}
