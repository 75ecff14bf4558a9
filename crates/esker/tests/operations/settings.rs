//! Settings of a keyspace that are changed while it is in use: a time to live, a merge operator.

use crate::common::{DIRECTORY, Machine, PLACES, keyspace, pairs, settle, simulated, text};
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

#[test]
fn entries_of_a_keyspace_with_operands_cannot_be_made_to_expire() {
    let machine = Machine::new();
    let db = machine.open();
    let sums = db.keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("keyspace");
    assert!(is_refused(sums.set_ttl(ENABLED), "copy it"));
    assert_eq!(sums.ttl(), Ttl::Disabled);
    assert!(sums.put_with("k", [0; 8], &for_seconds(5)).is_err());
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
        assert!(is_refused(sums.set_merge_operator(Max), "copy it"));
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
