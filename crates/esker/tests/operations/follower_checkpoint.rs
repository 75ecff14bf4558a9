//! A checkpoint from the handle of a follower: a copy of a database that another process writes.

use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, all, files, keyspace, simulated};
use crate::order::ByLength;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::{StringAppend, UInt64Add};
use esker::{
    CheckpointMode, CompactionStyle, Db, Error, Follower, Keyspace, KeyspaceOptions, MergeError, MergeOperator,
    Options, Ttl, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const COPY: &str = "/copy";
const MODES: [CheckpointMode; 2] = [CheckpointMode::Link, CheckpointMode::Copy];

type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn contents(db: &Db) -> Contents {
    db.keyspaces().into_iter().map(|name| (name.clone(), all(&db.existing_keyspace(&name).expect("there")))).collect()
}

fn follow(options: Options) -> Follower {
    Db::open_follower(DIRECTORY, options).expect("a database")
}

/// What the copy holds, which is whole.
fn copied(directory: &str, options: Options) -> Contents {
    let db = Db::open(directory, options.create_if_missing(false)).expect("the copy opens");
    db.verify().expect("the copy verifies");
    let contents = contents(&db);
    db.close().expect("close");
    contents
}

/// An operator that only the writer has.
struct Longest;

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        "test.longest"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let all = existing.into_iter().chain(operands.iter().copied());
        Ok(all.max_by_key(|value| value.len()).map(<[u8]>::to_vec))
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Two rounds of everything: what the first one writes is compacted, and overwritten in part.
fn write_everything(machine: &Machine, db: &Db) {
    let options = KeyspaceOptions::default;
    let ttl = Ttl::Enabled { default: Some(Duration::from_secs(100)) };
    let counts = db.keyspace("counts", options().merge_operator(UInt64Add)).expect("a keyspace");
    let expires =
        db.keyspace("expires", options().ttl(ttl).merge_operator(StringAppend::new(","))).expect("a keyspace");
    let ordered = db.keyspace("ordered", options().comparator(ByLength)).expect("a keyspace");
    let custom = db.keyspace("custom", options().merge_operator(Longest)).expect("a keyspace");
    let tiered = db.keyspace("tiered", options().compaction_style(CompactionStyle::Tiered)).expect("a keyspace");
    keyspace(db, "dropped").put("a", "1").expect("put");
    for round in 0..2u8 {
        for number in 0..60u32 {
            let key = format!("{number:02}");
            counts.merge(&key, 3u64.to_le_bytes()).expect("merge");
            expires.merge(&key, [b'a' + round]).expect("merge");
            expires.put_with_ttl(format!("soon {key}"), "x", Duration::from_secs(5)).expect("put");
            ordered.put("x".repeat(number as usize + 1), [round]).expect("put");
            custom.merge(&key, vec![b'c'; number as usize + usize::from(round)]).expect("merge");
            tiered.put(&key, vec![b'a' + round; if number % 7 == 0 { 5000 } else { 20 }]).expect("put");
        }
        tiered.delete_range(format!("{round}0")..format!("{round}5")).expect("delete range");
        ordered.delete_range("xxx".."xxxxxx").expect("delete range");
        tiered.delete(format!("{round}7")).expect("delete");
        if round == 0 {
            db.compact().expect("compact");
            machine.pass(Duration::from_secs(10));
        }
    }
    db.drop_keyspace("dropped").expect("drop");
    expires.rename("expiring").expect("rename");
    tiered.ingest([("loaded", "1")]).expect("ingest");
    tiered.put("after", vec![b'z'; 9000]).expect("put");
}

fn options(machine: &Machine) -> Options {
    machine.options().min_blob_size(1000).comparator(Arc::new(ByLength))
}

fn settings(db: &Db) -> Vec<String> {
    let keyspaces = db.keyspaces().into_iter().map(|name| db.existing_keyspace(&name).expect("there"));
    let text = |it: Keyspace| {
        let (ttl, style) = (it.ttl(), it.compaction_style());
        format!("{} {} {:?} {} {ttl:?} {style:?}", it.name(), it.id(), it.merge_operator(), it.comparator())
    };
    keyspaces.map(text).collect()
}

#[test]
fn it_holds_everything_that_was_acknowledged_before_the_call() {
    for mode in MODES {
        let machine = Machine::new();
        let db = Db::open(DIRECTORY, options(&machine)).expect("open");
        let follower = follow(options(&machine));
        write_everything(&machine, &db);
        let before = files(&machine.env);
        follower.db().checkpoint_with(COPY, mode).expect("checkpoint");
        assert_eq!(files(&machine.env), before, "{mode:?}: the directory of the database was written to");
        let copy = Db::open(COPY, options(&machine)).expect("the copy opens");
        copy.verify().expect("the copy verifies");
        assert_eq!(settings(&copy), settings(&db), "{mode:?}");
        let of_custom = || KeyspaceOptions::default().merge_operator(Longest);
        copy.keyspace("custom", of_custom()).expect("the operator");
        follower.db().keyspace("custom", of_custom()).expect("the operator");
        assert_eq!(contents(&copy), contents(&db), "{mode:?}");
        assert_eq!(contents(follower.db()), contents(&db), "{mode:?}: it did not catch up");
        // Both live on, apart: also what expires.
        machine.pass(Duration::from_secs(95));
        assert_eq!(contents(&copy), contents(&db), "{mode:?}");
        keyspace(&copy, "plain").put("a", "1").expect("put");
        copy.compact().expect("compact");
        db.compact().expect("compact");
        db.verify().expect("verify");
        assert!(!db.keyspaces().contains(&"plain".to_owned()));
    }
}

#[test]
fn it_needs_no_writer_and_a_read_only_handle_makes_none() {
    let machine = Machine::new();
    let db = Db::open(DIRECTORY, options(&machine)).expect("open");
    write_everything(&machine, &db);
    db.keyspace("plain", Default::default()).expect("a keyspace");
    let expected = settings(&db);
    // As after a crash: what was not flushed is in the log.
    drop(db);
    let before = files(&machine.env);
    let follower = follow(options(&machine));
    follower.db().checkpoint(COPY).expect("checkpoint");
    assert_eq!(files(&machine.env), before);
    assert_eq!(settings(&Db::open(COPY, options(&machine)).expect("the copy opens")), expected);
    let reader = Db::open_read_only(DIRECTORY, options(&machine)).expect("open");
    assert!(matches!(reader.checkpoint("/other"), Err(Error::ReadOnly { .. })));
    assert!(matches!(follower.db().checkpoint(COPY), Err(Error::InvalidArgument { .. })), "it is there already");
    let inside = follower.db().checkpoint(format!("{DIRECTORY}/copy"));
    assert!(matches!(inside, Err(Error::InvalidArgument { .. })), "{inside:?}");
}

/// The writer, and what it held after each thing that it did.
struct Writing {
    db: Mutex<Option<Db>>,
    options: Options,
    states: Mutex<Vec<Contents>>,
}

impl Writing {
    fn note(&self, db: &Db) {
        self.states.lock().unwrap().push(contents(db));
    }

    /// Everything that takes files away, and in the end the process.
    fn work(&self) {
        let mut guard = self.db.lock().unwrap();
        let db = guard.as_ref().expect("open");
        let (a, b) = (db.existing_keyspace("a").expect("there"), db.existing_keyspace("b").expect("there"));
        let both = |value: u8| {
            let mut batch = db.batch();
            batch.put(&a, "both", vec![value; 3000]).expect("put");
            batch.put(&b, "both", [value]).expect("put");
            batch.delete_range(&b, "1".."2").expect("delete range");
            batch.commit().expect("commit");
            self.note(db);
        };
        both(1);
        db.flush().expect("flush");
        a.put("large", vec![9; 4000]).expect("put");
        self.note(db);
        db.compact().expect("compact");
        db.wait_idle().expect("idle");
        db.drop_keyspace("gone").expect("drop");
        self.note(db);
        // A new one is there before anything is in it.
        let new = keyspace(db, "gone");
        self.note(db);
        new.put("new", "1").expect("put");
        self.note(db);
        db.compact().expect("compact");
        both(2);
        drop((a, b, new));
        *guard = None;
        let db = Db::open(DIRECTORY, self.options.clone()).expect("open again");
        keyspace(&db, "a").put("again", "1").expect("put");
        self.note(&db);
        db.flush().expect("flush");
        *guard = Some(db);
    }
}

/// The writer works before the `nth` call that the follower makes of its environment. Returns
/// whether there was one.
fn work_before(nth: u64, mode: CheckpointMode) -> bool {
    let env = MemEnv::default();
    let options = simulated(&env).min_blob_size(1000);
    let db = Db::open(DIRECTORY, options.clone()).expect("open");
    for name in ["a", "b", "gone"] {
        let keyspace = keyspace(&db, name);
        for number in 0..40u32 {
            keyspace.put(number.to_string(), vec![number as u8; 30 + 40 * number as usize]).expect("put");
        }
        db.flush().expect("flush");
        keyspace.put("large", vec![1; 2000]).expect("put");
    }
    let writing = Writing { db: Mutex::default(), options: options.clone(), states: Mutex::default() };
    writing.note(&db);
    *writing.db.lock().unwrap() = Some(db);
    let writing = Arc::new(writing);
    let (calls, worker) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::clone(&writing));
    let counted = Arc::clone(&calls);
    let told = move |_: &str| {
        let left = counted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| (left < u64::MAX).then(|| left.wrapping_sub(1)));
        if left == Ok(0) {
            worker.work();
        }
    };
    let called: Arc<dyn Env> = Arc::new(env.clone());
    let follower = follow(options.clone().env(Arc::new(Telling { told: Arc::new(told), called })));
    calls.store(nth, Ordering::Relaxed);
    follower.db().checkpoint_with(COPY, mode).unwrap_or_else(|error| panic!("{mode:?}, call {nth}: {error}"));
    let has_worked = calls.swap(u64::MAX, Ordering::Relaxed) == u64::MAX;
    let (found, states) = (copied(COPY, options), writing.states.lock().unwrap());
    let at = states.iter().position(|state| *state == found);
    assert!(at.is_some(), "{mode:?}, call {nth}: the copy is of no moment");
    has_worked
}

#[test]
fn whatever_the_writer_does_meanwhile_it_is_of_one_moment() {
    for mode in MODES {
        let calls = (0..).take_while(|nth| work_before(*nth, mode)).count();
        assert!(calls > 60, "{mode:?}: {calls}");
    }
}

#[test]
fn where_the_writer_never_holds_still_the_call_says_so_and_leaves_nothing() {
    let env = MemEnv::default();
    let options = simulated(&env);
    let db = Db::open(DIRECTORY, options.clone()).expect("open");
    keyspace(&db, "a").put("a", "1").expect("put");
    let (is_at_work, writer) = (Arc::new(AtomicU64::new(0)), db.clone());
    let asked = Arc::clone(&is_at_work);
    // Behind every look at the log there are other tables.
    let told = move |call: &str| {
        if call == "Env::list" && asked.load(Ordering::Relaxed) == 1 {
            asked.store(2, Ordering::Relaxed);
            keyspace(&writer, "a").put("a", "2").expect("put");
            writer.flush().expect("flush");
            asked.store(1, Ordering::Relaxed);
        }
    };
    let called: Arc<dyn Env> = Arc::new(env.clone());
    let follower = follow(options.clone().env(Arc::new(Telling { told: Arc::new(told), called })));
    is_at_work.store(1, Ordering::Relaxed);
    let result = follower.db().checkpoint(COPY);
    is_at_work.store(0, Ordering::Relaxed);
    assert!(matches!(&result, Err(Error::Stalled { reason }) if reason.contains("try again")), "{result:?}");
    assert!(env.list(Path::new(COPY)).expect("list").is_empty());
    follower.db().checkpoint(COPY).expect("the next call");
    assert_eq!(copied(COPY, options), contents(&db));
}

/// A database with tables, and with writes behind them, that its crash leaves as they are.
fn filled(env: &MemEnv) -> Db {
    let db = Db::open(DIRECTORY, simulated(env)).expect("open");
    let a = keyspace(&db, "a");
    let put = |key: String, value: Vec<u8>| a.put_with(key, value, &WriteOptions::new().sync(true)).expect("put");
    (0..100u32).for_each(|number| put(format!("{number:03}"), vec![1; 40]));
    put("large".into(), vec![2; 40 << 10]);
    db.flush().expect("flush");
    (100..200u32).for_each(|number| put(format!("{number:03}"), vec![1; 40]));
    put("large too".into(), vec![2; 40 << 10]);
    db
}

fn check_copy(env: &MemEnv, what: &str) {
    let db = Db::open(COPY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = all(&keyspace(&db, "a"));
    assert_eq!(found.len(), 202, "{what}");
    assert_eq!((&found[&b"large"[..]], &found[&b"large too"[..]]), (&vec![2; 40 << 10], &vec![2; 40 << 10]), "{what}");
    drop(db);
    assert!(!env.exists(&Path::new(COPY).join("CHECKPOINT")).expect("a look"), "{what}");
}

fn lose_power_after(count: u64, mode: CheckpointMode) -> bool {
    let env = MemEnv::default();
    let db = filled(&env);
    let follower = follow(simulated(&env));
    env.crash_after(env.mutations() + count);
    let done = follower.db().checkpoint_with(COPY, mode).is_ok();
    drop((db, follower));
    for crash in [CrashMode::LoseAll, CrashMode::Random] {
        let after = env.crash(&crash, count);
        let what = format!("{mode:?} after {count}, {crash:?}");
        let is_whole = after.exists(&Path::new(COPY).join("CURRENT")).expect("a look");
        assert!(is_whole || !done, "{what}");
        if !is_whole {
            if after.list(Path::new(COPY)).is_ok_and(|names| !names.is_empty()) {
                assert!(matches!(Db::open(COPY, simulated(&after)), Err(Error::InvalidArgument { .. })), "{what}");
                assert!(Db::repair(COPY, simulated(&after)).is_err(), "{what}");
            }
            let again = follow(simulated(&after)).db().checkpoint_with(COPY, mode);
            again.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        check_copy(&after, &what);
        Db::open(DIRECTORY, simulated(&after)).expect("open").verify().expect("the database verifies");
    }
    done
}

#[test]
fn after_a_power_loss_the_copy_is_whole_or_refused_and_a_retry_works() {
    for mode in MODES {
        let calls = (0..).take_while(|count| !lose_power_after(*count, mode)).count();
        assert!(calls > 12, "{mode:?}: {calls}");
    }
}

/// `nth` of the class fails.
fn fail_and_retry(mode: CheckpointMode, class: Class, nth: u64) -> bool {
    let env = MemEnv::default();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = filled(&env);
    let before = files(&env);
    let follower = follow(simulated(&env).env(Arc::new(faulty.clone())));
    faulty.add(Rule::new(class, nth, Action::Fail(std::io::ErrorKind::StorageFull)));
    let result = follower.db().checkpoint_with(COPY, mode);
    let what = format!("{mode:?}, {class:?} {nth} failed: {result:?}");
    let fired = faulty.fired() > 0;
    faulty.clear();
    if result.is_err() {
        assert!(Db::open(COPY, simulated(&env).create_if_missing(false)).is_err(), "{what}");
        let again = follower.db().checkpoint_with(COPY, mode);
        again.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    check_copy(&env, &what);
    assert_eq!(files(&env), before, "{what}");
    drop(db);
    fired
}

#[test]
fn after_a_failure_at_any_call_a_retry_works() {
    for mode in MODES {
        for class in [Class::AnyMutating, Class::Look, Class::Open, Class::Read] {
            let calls = (0..).take_while(|nth| fail_and_retry(mode, class, *nth)).count();
            assert!(calls > 2, "{mode:?}, {class:?}: {calls}");
        }
    }
}

#[test]
fn damage_ends_it_and_is_named() {
    for (mode, name) in [(CheckpointMode::Copy, ".table"), (CheckpointMode::Link, ".blob")] {
        let env = MemEnv::default();
        let db = filled(&env);
        let follower = follow(simulated(&env));
        let damaged = files(&env).into_keys().find(|file| file.ends_with(name)).expect("a file");
        let path = Path::new(DIRECTORY).join(damaged);
        let mut bytes = env.file_bytes(&path).expect("there");
        bytes[100] ^= 1;
        env.set_file_bytes(&path, bytes);
        match follower.db().checkpoint_with(COPY, mode) {
            Err(Error::Corruption { path: named, .. }) => assert_eq!(named, path, "{mode:?}"),
            other => panic!("{mode:?}, {name}: {other:?}"),
        }
        assert!(env.list(Path::new(COPY)).expect("list").is_empty());
        drop(db);
    }
}

#[test]
fn with_threads_no_copy_has_half_a_batch() {
    const COPIES: usize = 30;
    let env = MemEnv::new();
    let options = Options::default().env(Arc::new(env)).write_buffer_bytes(256 << 10).wal_segment_bytes(32 << 10);
    let options = options.min_blob_size(1000);
    let db = Db::open(DIRECTORY, options.clone()).expect("open");
    let (left, right) = (keyspace(&db, "left"), keyspace(&db, "right"));
    let follower = follow(options.clone());
    let ended = std::sync::atomic::AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in (0..).take_while(|_| !ended.load(Ordering::Relaxed)) {
                let mut batch = db.batch();
                for target in [&left, &right] {
                    batch.put(target, "round", u64::to_be_bytes(round)).expect("put");
                    batch
                        .put(target, format!("{:03}", round % 200), vec![1; 200 + round as usize % 1000])
                        .expect("put");
                }
                batch.commit().expect("commit");
                acknowledged.store(round, Ordering::Release);
                if round % 500 == 0 {
                    keyspace(&db, "other").put("a", vec![1; 2000]).expect("put");
                    db.drop_keyspace("other").expect("drop");
                }
            }
        });
        for number in 0..COPIES {
            let (copy, mode) = (format!("{COPY}{number}"), MODES[number % 2]);
            let before = acknowledged.load(Ordering::Acquire);
            match follower.db().checkpoint_with(&copy, mode) {
                Ok(()) => {}
                Err(Error::Stalled { .. }) => continue,
                Err(error) => panic!("{error}"),
            }
            let found = copied(&copy, options.clone());
            let round = |name: &str| {
                let value = found.get(name).and_then(|pairs| pairs.get(&b"round"[..]));
                value.map_or(0, |value| u64::from_be_bytes(value.as_slice().try_into().expect("eight")))
            };
            assert_eq!(found["left"], found["right"], "half a batch");
            assert!(round("left") >= before, "{} was acknowledged before, {before}", round("left"));
        }
        ended.store(true, Ordering::Relaxed);
    });
    follower.catch_up().expect("catch up");
    assert_eq!(contents(follower.db()), contents(&db));
}

#[test]
fn an_unchanged_database_is_copied_with_next_to_no_log() {
    let machine = Machine::new();
    let db = Db::open(DIRECTORY, Options::default().env(machine.env.clone())).expect("open");
    keyspace(&db, "a").put("a", "1").expect("put");
    db.checkpoint("/from-writer").expect("checkpoint");
    follow(Options::default().env(machine.env.clone())).db().checkpoint("/from-follower").expect("checkpoint");
    for directory in ["/from-writer", "/from-follower"] {
        let files = machine.env.files().into_iter().filter(|path| path.starts_with(directory));
        let others = files.filter(|path| path.extension().is_none_or(|extension| extension != "table"));
        let bytes: usize = others.map(|path| machine.env.file_bytes(&path).expect("there").len()).sum();
        assert!(bytes < 700, "{directory}: {bytes} bytes beside the tables");
        // It goes on with segments of the usual size.
        let copy = Db::open(directory, Options::default().env(machine.env.clone())).expect("open");
        for number in 0..2000u32 {
            keyspace(&copy, "a").put(number.to_be_bytes(), vec![1; 1000]).expect("put");
        }
        copy.close().expect("close");
    }
}

#[test]
fn it_says_how_far_behind_it_is() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    let follower = follow(machine.options());
    let behind = || follower.lag().expect("a look").map(|lag| (lag.batches, lag.log_bytes > 0, lag.sequence));
    let last = || db.snapshot().sequence();
    assert_eq!(behind(), Some((0, false, last())));
    for number in 0..10 {
        names.put(format!("{number}"), "x").expect("put");
    }
    names.put_with("unlogged", "x", &WriteOptions::new().disable_wal(true)).expect("put");
    assert_eq!(behind(), Some((10, true, last() - 1)), "what is in no log cannot be seen");
    let lag = follower.lag().expect("a look").expect("the log is there");
    assert_eq!(follower.lag().expect("a look"), Some(lag), "it has moved");
    let progress = follower.catch_up().expect("catch up");
    assert_eq!((progress.batches, progress.log_bytes, progress.at_end), (10, lag.log_bytes, true));
    assert_eq!(behind(), Some((0, false, last() - 1)));
    assert_eq!(follower.catch_up().expect("catch up").log_bytes, 0);
    // Over the end of a segment, until the log is released.
    let far = follow(machine.options());
    for _ in 0..3 {
        names.put("long", vec![1; 30 << 10]).expect("put");
    }
    assert_eq!(far.lag().expect("a look").expect("the log is there").batches, 3);
    for _ in 0..40 {
        names.put("long", vec![1; 30 << 10]).expect("put");
        db.flush().expect("flush");
    }
    db.wait_idle().expect("idle");
    assert_eq!(far.lag().expect("a look"), None);
    far.catch_up().expect("catch up");
    assert_eq!(far.lag().expect("a look").map(|lag| lag.batches), Some(0));
}

#[test]
fn where_the_log_goes_on_behind_damage_it_is_not_at_the_end() {
    let machine = Machine::new();
    let db = Db::open(DIRECTORY, options(&machine)).expect("open");
    let names = keyspace(&db, "names");
    let follower = follow(options(&machine));
    names.put("large", vec![7; 5000]).expect("put");
    let blob = files(&machine.env).into_iter().find(|(file, _)| file.ends_with(".blob"));
    let (file, bytes) = blob.expect("a large value");
    machine.env.set_file_bytes(&Path::new(DIRECTORY).join(&file), bytes[..100].to_vec());
    names.put("b", "2").expect("put");
    let progress = follower.catch_up().expect("catch up");
    assert_eq!((progress.batches, progress.at_end), (0, false));
    assert_eq!(follower.lag().expect("a look").map(|lag| lag.batches), Some(2));
    machine.env.set_file_bytes(&Path::new(DIRECTORY).join(&file), bytes);
    let progress = follower.catch_up().expect("catch up");
    assert_eq!((progress.batches, progress.at_end), (2, true));
}
