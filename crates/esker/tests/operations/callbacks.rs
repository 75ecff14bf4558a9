//! What a merge operator, a compaction filter, a clock, an environment or a listener may do with the database that calls it: every callback times every call. A call works, or is
//! refused at once; what called the callback goes on as if nothing had been.

use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, keyspace, wait_until};
use esker::env::mem::MemEnv;
use esker::{
    Clock, CompactionFilter, Db, Decision, Error, EventListener, FlushCompleted, Keyspace, KeyspaceOptions, MergeError,
    MergeOperator, Options, Result, Ttl, WriteOptions,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Longer than any machine takes: the limit only turns a wait for ever into a failure.
pub const FOR_EVER: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Callback {
    Check,
    Partial,
    Full,
    MayDelete,
    Filter,
    Clock,
    /// That call of the environment, or of a file of it.
    Env(&'static str),
    Listener,
}

/// A call that the database made of a callback is to make, once.
type Call = fn(&Db) -> Result<()>;

/// The callbacks of a database. One of them makes a call.
#[derive(Default)]
struct Hook {
    armed: Mutex<Option<(Callback, Call, Db)>>,
    /// What became of it, and in which thread.
    result: Mutex<Option<(Result<()>, String)>>,
}

pub fn name_of_this_thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

impl Hook {
    fn called(&self, callback: Callback) {
        let armed = self.armed.lock().unwrap().take_if(|(armed, ..)| *armed == callback);
        if let Some((_, call, db)) = armed {
            let result = call(&db);
            drop(db);
            *self.result.lock().unwrap() = Some((result, name_of_this_thread()));
        }
    }
}

/// All callbacks of one hook.
#[derive(Clone)]
struct Calls(Arc<Hook>);

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Calls")
    }
}

impl MergeOperator for Calls {
    fn name(&self) -> &str {
        "calls"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        self.0.called(Callback::Full);
        Ok(Some([&[existing.unwrap_or_default()], operands].concat().concat()))
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.0.called(Callback::Partial);
        (key != b"apart").then(|| [older, newer].concat())
    }

    fn may_delete(&self) -> bool {
        self.0.called(Callback::MayDelete);
        true
    }

    fn check_operand(&self, _: &[u8]) -> std::result::Result<(), MergeError> {
        self.0.called(Callback::Check);
        Ok(())
    }
}

impl CompactionFilter for Calls {
    fn name(&self) -> &str {
        "calls"
    }

    fn decide(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.called(Callback::Filter);
        Decision::Keep
    }
}

impl Clock for Calls {
    fn now_ms(&self) -> u64 {
        self.0.called(Callback::Clock);
        START_MS
    }
}

impl EventListener for Calls {
    fn flush_completed(&self, _: &FlushCompleted) {
        self.0.called(Callback::Listener);
    }
}

fn merging(calls: &Calls) -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(calls.clone()).compaction_filter(calls.clone())
}

fn open(calls: &Calls, threads: usize) -> Db {
    let hook = Arc::clone(&calls.0);
    let env = Telling { told: Arc::new(move |name| hook.called(Callback::Env(name))), called: Machine::new().env as _ };
    let options = Machine::new().options().clock(Arc::new(calls.clone())).event_listener(Arc::new(calls.clone()));
    let options = options.env(Arc::new(env));
    let db = Db::open(DIRECTORY, options.background_threads(threads).large_value_bytes(1 << 10)).unwrap();
    keyspace(&db, "plain").put("ada", "1815").unwrap();
    let t = merging(calls).ttl(Ttl::Enabled { default: None });
    let both = [("k", merging(calls)), ("t", t)].map(|(name, options)| db.keyspace(name, options).unwrap());
    for in_tables in [true, false] {
        for k in &both {
            k.put("base", "b").unwrap();
            k.merge("together", "1").unwrap();
            k.merge("apart", "1").unwrap();
            k.merge("apart", "2").unwrap();
        }
        if in_tables {
            db.flush().unwrap();
        }
    }
    db
}

/// How the database is made to call the callback, which is at work in the call itself or in the background.
type Way = (&'static str, Callback, fn(&Db, &Keyspace));

const WAYS: [Way; 23] = [
    ("merge", Callback::Check, |_, k| k.merge("base", "2").unwrap()),
    ("merge", Callback::Partial, |_, k| k.merge("together", "2").unwrap()),
    ("merge", Callback::Full, |_, k| k.merge("base", "2").unwrap()),
    ("get", Callback::Full, |_, k| assert!(k.get("apart").unwrap().is_some())),
    ("multi_get", Callback::Full, |_, k| assert!(k.multi_get(["apart"]).pop().unwrap().unwrap().is_some())),
    ("iter", Callback::Full, |_, k| assert_eq!(k.iter().map(Result::unwrap).count(), 3)),
    ("transaction", Callback::Full, |db, k| {
        let mut transaction = db.transaction();
        assert!(transaction.get(k, "apart").unwrap().is_some());
        transaction.merge(k, "apart", "3").unwrap();
        transaction.commit().unwrap();
    }),
    ("long chain", Callback::Full, |_, k| (0..200).for_each(|_| k.merge("apart", "3").unwrap())),
    ("flush", Callback::Full, |db, k| {
        k.put("more", "1").unwrap();
        let snapshot = db.snapshot();
        // Not combined with what the snapshot sees.
        k.merge("more", "2").unwrap();
        drop(snapshot);
        db.flush().unwrap();
    }),
    ("compact", Callback::Full, |db, _| db.compact().unwrap()),
    ("compact", Callback::Filter, |db, _| db.compact().unwrap()),
    ("background", Callback::Filter, |_, k| {
        // Several memtables, each of several tables.
        for number in 0..2000u64 {
            k.put((number % 200).to_be_bytes(), [number as u8; 400]).unwrap();
        }
    }),
    ("get", Callback::Clock, |db, _| assert!(keyspace(db, "t").get("base").unwrap().is_some())),
    ("put", Callback::Clock, |db, _| keyspace(db, "t").put("base", "b").unwrap()),
    ("merge", Callback::Clock, |db, _| keyspace(db, "t").merge("apart", "3").unwrap()),
    ("merge", Callback::MayDelete, |db, _| keyspace(db, "t").merge("apart", "3").unwrap()),
    ("snapshot", Callback::Clock, |db, _| drop(db.snapshot())),
    ("flush", Callback::Clock, |db, _| db.flush().unwrap()),
    ("compact", Callback::Clock, |db, _| db.compact().unwrap()),
    ("iter", Callback::Clock, |db, _| assert_eq!(keyspace(db, "t").iter().count(), 3)),
    ("expires_at", Callback::Clock, |db, _| assert!(keyspace(db, "t").expires_at("base").unwrap().is_some())),
    ("transaction", Callback::Clock, |db, _| {
        let mut transaction = db.transaction();
        transaction.put(&keyspace(db, "t"), "base", "b").unwrap();
        transaction.commit().unwrap();
    }),
    ("flush", Callback::Listener, |db, _| match db.flush() {
        // It may have been closed when only the first of the keyspaces was flushed, of which the listener hears at once.
        Ok(()) | Err(Error::ReadOnly { .. }) => {}
        Err(error) => panic!("{error}"),
    }),
];

fn large(k: &Keyspace) {
    k.put("large", [7; 5000]).unwrap();
}

/// Those of the environment.
const ENV_WAYS: [Way; 30] = [
    ("put", Callback::Env("log store"), |_, k| k.put("base", "b").unwrap()),
    ("synced put", Callback::Env("log sync"), |_, k| {
        k.put_with("base", "b", &WriteOptions::new().sync(true)).unwrap();
    }),
    ("puts", Callback::Env("open_log"), |_, k| (0..1000u32).for_each(|n| k.put(n.to_be_bytes(), [7; 200]).unwrap())),
    ("puts", Callback::Env("log len"), |_, k| (0..1000u32).for_each(|n| k.put(n.to_be_bytes(), [7; 200]).unwrap())),
    ("puts", Callback::Env("random"), |_, k| (0..1000u32).for_each(|n| k.put(n.to_be_bytes(), [7; 200]).unwrap())),
    ("put", Callback::Env("create_growing"), |_, k| large(k)),
    ("put", Callback::Env("growing write"), |_, k| large(k)),
    ("synced put", Callback::Env("growing sync"), |_, k| {
        k.put_with("large", [7; 5000], &WriteOptions::new().sync(true)).unwrap();
    }),
    ("get", Callback::Env("growing read_at"), |_, k| {
        large(k);
        assert_eq!(k.get("large").unwrap().unwrap().len(), 5000);
    }),
    ("get", Callback::Env("read_at"), |db, _| assert!(keyspace(db, "plain").get("ada").unwrap().is_some())),
    ("iter", Callback::Env("read_at"), |_, k| assert_eq!(k.iter().count(), 3)),
    ("verify", Callback::Env("read_at"), |db, _| assert!(db.verify(&mut |_, _| {}).unwrap().tables > 0)),
    ("flush", Callback::Env("create"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("append"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("sync"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("sync_dir"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("open"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("mapping"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("len"), |db, _| db.flush().unwrap()),
    ("flush", Callback::Env("log sync"), |db, _| db.flush().unwrap()),
    ("compact", Callback::Env("read_at"), |db, _| db.compact().unwrap()),
    ("compact", Callback::Env("remove"), |db, _| db.compact().unwrap()),
    ("keyspace", Callback::Env("append"), |db, _| drop(keyspace(db, "new"))),
    ("keyspace", Callback::Env("sync"), |db, _| drop(keyspace(db, "new"))),
    ("ingest", Callback::Env("create"), |_, k| assert_eq!(k.ingest([("x", "1"), ("y", "2")]).unwrap().entries, 2)),
    ("checkpoint", Callback::Env("create_dir_all"), |db, _| db.checkpoint("/made").unwrap()),
    ("checkpoint", Callback::Env("list"), |db, _| db.checkpoint("/made").unwrap()),
    ("checkpoint", Callback::Env("exists"), |db, _| db.checkpoint("/made").unwrap()),
    ("checkpoint", Callback::Env("hard_link"), |db, _| db.checkpoint("/made").unwrap()),
    ("checkpoint", Callback::Env("rename"), |db, _| db.checkpoint("/made").unwrap()),
];

fn plain(db: &Db) -> Result<Keyspace> {
    db.existing_keyspace("plain")
}

fn commit(db: &Db) -> Result<()> {
    let mut batch = db.batch();
    batch.put(&plain(db)?, "bob", "1923")?;
    batch.delete(&plain(db)?, "eve")?;
    batch.commit()
}

/// Calls that any callback may make.
const READS: [(&str, Call); 13] = [
    ("get", |db| plain(db)?.get("ada").map(|value| assert_eq!(value.as_deref(), Some(&b"1815"[..])))),
    ("get of what is merged", |db| db.existing_keyspace("k")?.get("apart").map(drop)),
    ("get of what expires", |db| db.existing_keyspace("t")?.get("base").map(drop)),
    ("get_into", |db| plain(db)?.get_into("ada", &mut Vec::new()).map(|found| assert!(found))),
    ("expires_at", |db| db.existing_keyspace("t")?.expires_at("base").map(drop)),
    ("keyspaces", |db| Ok(db.keyspaces()).map(|names| assert_eq!(names, ["k", "plain", "t"]))),
    ("stats", |db| {
        drop(db.stats());
        Ok(())
    }),
    ("properties", |db| {
        drop(db.properties());
        Ok(())
    }),
    ("health", |db| Ok(db.health()).map(|health| assert!(health.writable))),
    ("explain", |db| {
        drop(db.explain());
        Ok(())
    }),
    ("approximate_size", |db| plain(db)?.approximate_size::<&str>(..).map(drop)),
    ("verify", |db| db.verify(&mut |_, _| {}).map(drop)),
    ("all of another database", |_| {
        let db = Db::open(DIRECTORY, Machine::new().options())?;
        let other = keyspace(&db, "other");
        other.put("ada", "1815")?;
        db.compact()?;
        assert_eq!(other.iter().count(), 1);
        db.close()
    }),
];

/// Calls that only a listener may make.
const OTHERS: [(&str, Call); 33] = [
    ("put", |db| plain(db)?.put("bob", "1923")),
    ("put of what expires", |db| db.existing_keyspace("t")?.put("bob", "1923")),
    ("put of a large value", |db| plain(db)?.put("bob", [7; 5000])),
    ("put without log", |db| plain(db)?.put_with("ada", "1815", &WriteOptions::new().disable_wal(true))),
    ("synced put", |db| plain(db)?.put_with("ada", "1815", &WriteOptions::new().sync(true))),
    ("delete", |db| plain(db)?.delete("bob")),
    ("merge", |db| db.existing_keyspace("k")?.merge("more", "1")),
    ("merge of what expires", |db| db.existing_keyspace("t")?.merge("more", "1")),
    ("delete_range", |db| plain(db)?.delete_range("b".."c")),
    ("batch", commit),
    ("synced empty batch", |db| db.batch().commit_with(&WriteOptions::new().sync(true))),
    ("multi_get", |db| plain(db)?.multi_get(["ada"]).remove(0).map(drop)),
    ("iter", |db| plain(db)?.iter().next().unwrap().map(drop)),
    ("iter backwards", |db| plain(db)?.iter().next_back().unwrap().map(drop)),
    ("range", |db| plain(db)?.range("a"..).next().unwrap().map(drop)),
    ("prefix", |db| plain(db)?.prefix("a").next().unwrap().map(drop)),
    ("cursor", |db| plain(db)?.cursor().map(drop)),
    ("get of a snapshot", |db| db.snapshot().get(&plain(db)?, "ada").map(drop)),
    ("multi_get of a snapshot", |db| db.snapshot().multi_get(&plain(db)?, ["ada"]).map(drop)),
    ("iter of a snapshot", |db| db.snapshot().iter(&plain(db)?).next().unwrap().map(drop)),
    ("get of a transaction", |db| db.transaction().get(&plain(db)?, "ada").map(drop)),
    ("iter of a transaction", |db| db.transaction().iter(&plain(db)?).next().unwrap().map(drop)),
    ("transact", |db| {
        let plain = plain(db)?;
        db.transact(3, |transaction| transaction.put(&plain, "bob", "1923"))
    }),
    ("flush", |db| db.flush()),
    ("sync", |db| db.sync()),
    ("compact", |db| db.compact()),
    ("compact of a keyspace", |db| plain(db)?.compact()),
    ("compact_range", |db| plain(db)?.compact_range("a".."c")),
    ("wait_idle", |db| db.wait_idle()),
    ("ingest", |db| plain(db)?.ingest([("x", "1"), ("y", "2")]).map(drop)),
    ("checkpoint", |db| db.checkpoint("/copy")),
    ("keyspace", |db| db.keyspace("plain", KeyspaceOptions::default()).map(drop)),
    ("close", |db| db.clone().close()),
];

/// Makes the database call the callback, which makes the call; then sees that the database is as good as before.
fn run((way, callback, make): Way, threads: usize, (name, call): (&str, Call), is_refused: bool) {
    let hook = Arc::new(Hook::default());
    let db = open(&Calls(Arc::clone(&hook)), threads);
    let k = db.existing_keyspace("k").unwrap();
    *hook.armed.lock().unwrap() = Some((callback, call, db.clone()));
    make(&db, &k);
    if matches!(callback, Callback::Listener | Callback::Env(_)) || way == "background" {
        wait_until("it is called in another thread", || hook.result.lock().unwrap().is_some());
    }
    let (result, thread) = hook.result.lock().unwrap().take().expect("it was called");
    match (way, threads) {
        ("background", 1) => assert_eq!(thread, "esker-background"),
        ("background", 2) => assert_eq!(thread, "esker-compaction"),
        _ => {}
    }
    match result {
        Ok(()) if !is_refused => {}
        Err(Error::InCallback { database }) if is_refused => assert_eq!(database.to_str(), Some(DIRECTORY)),
        other => panic!("{other:?}"),
    }
    if name == "close" && !is_refused {
        assert!(k.put("after", "1").is_err());
        return;
    }
    let text = |key| String::from_utf8(k.get(key).unwrap().unwrap().to_vec()).unwrap();
    let settled = ["base", "together", "apart"].map(text);
    assert!(settled[2].starts_with("1212"), "{settled:?}");
    k.put("after", "1").unwrap();
    db.compact().unwrap();
    assert_eq!(["base", "together", "apart"].map(text), settled);
    assert_eq!(db.snapshot().iter(&k).map(Result::unwrap).count(), k.iter().count());
    assert!(db.health().problem.is_none());
    drop((k, db));
}

/// The table of `doc/semantics.md`.
fn table() -> String {
    let line = |name: &str, own, listener| format!("| {name} | {own} | {listener} |\n");
    let mut table = line("call", "operator, filter, clock, environment", "listener") + &line("---", "---", "---");
    table.extend(READS.map(|(name, _)| line(name, "works", "works")));
    table.extend(OTHERS.map(|(name, _)| line(name, "`InCallback`", "works")));
    table
}

/// The table is made of the lists by which every call is tried.
#[test]
fn the_documents_say_what_callbacks_may_do() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/semantics.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&table()), "doc/semantics.md lacks this table:\n{}", table());
}

/// Runs `body` in a thread of its own; what it panics with, or that it does not end.
pub fn outcome(body: impl FnOnce() + Send + 'static) -> std::result::Result<(), String> {
    let (done, is_done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if is_done.recv_timeout(FOR_EVER) == Err(mpsc::RecvTimeoutError::Timeout) {
        return Err("it hangs".into());
    }
    thread.join().map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(_) => "it panics".into(),
    })
}

/// Trap: an operator under the writer lock waits for it; the thread that flushes waits for a flush.
#[test]
fn every_call_from_every_callback_works_or_is_refused_at_once() {
    every_call(&WAYS);
}

/// Trap: the file that a flush writes waits for the flush; one that is synced waits for the sync.
#[test]
fn every_call_from_every_call_of_the_environment_works_or_is_refused_at_once() {
    every_call(&ENV_WAYS);
}

fn every_call(ways: &[Way]) {
    let mut failures = Vec::new();
    for &way in ways {
        for threads in 0..if way.0 == "background" { 3 } else { 2 } {
            let others = OTHERS.map(|call| (call, way.1 != Callback::Listener));
            for (call, is_refused) in READS.map(|call| (call, false)).into_iter().chain(others) {
                if let Err(why) = outcome(move || run(way, threads, call, is_refused)) {
                    failures.push(format!("{} from {:?} in {} with {threads} threads: {why}", call.0, way.1, way.0));
                    // Each may have taken long.
                    assert!(failures.len() < 3, "{failures:#?}");
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Trap: a snapshot or a transaction that holds nothing is used once the callback has returned.
#[test]
fn what_a_callback_has_begun_is_of_no_use_later() {
    static KEPT: Mutex<Option<(esker::Snapshot, esker::Transaction)>> = Mutex::new(None);
    let hook = Arc::new(Hook::default());
    let db = open(&Calls(Arc::clone(&hook)), 0);
    let begin: Call = |db| {
        let mut transaction = db.transaction();
        transaction.put(&plain(db)?, "bob", "1923")?;
        *KEPT.lock().unwrap() = Some((db.snapshot(), transaction));
        Ok(())
    };
    *hook.armed.lock().unwrap() = Some((Callback::Full, begin, db.clone()));
    db.existing_keyspace("k").unwrap().get("apart").unwrap();
    let (snapshot, transaction) = KEPT.lock().unwrap().take().unwrap();
    let plain = plain(&db).unwrap();
    assert!(matches!(snapshot.get(&plain, "ada"), Err(Error::InCallback { .. })));
    assert!(matches!(transaction.commit(), Err(Error::InCallback { .. })));
    assert_eq!((snapshot.sequence(), plain.get("bob").unwrap()), (0, None));
}

/// Asks for the key at hand, in the middle of answering for it.
struct AsksItself(Arc<Mutex<Option<Keyspace>>>);

impl MergeOperator for AsksItself {
    fn name(&self) -> &str {
        "asks itself"
    }

    fn full_merge(
        &self,
        key: &[u8],
        _: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        let k = self.0.lock().unwrap().clone();
        let answer = k.map_or(Ok(None), |k| k.get(key));
        answer.map_err(|error| MergeError(error.to_string()))?;
        Ok(Some(operands.concat()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Tells the time by what it reads, which may have expired.
#[derive(Debug)]
struct ReadsTheTime(Mutex<Option<Keyspace>>);

impl Clock for ReadsTheTime {
    fn now_ms(&self) -> u64 {
        let k = self.0.lock().unwrap().clone();
        k.map_or(START_MS, |k| k.get("time").unwrap().map_or(0, |value| value.len() as u64))
    }
}

/// Trap: a callback that needs itself is called until the stack is full.
#[test]
fn callbacks_that_call_themselves_come_to_an_end() {
    let asks = outcome(|| {
        let own = Arc::new(Mutex::new(None));
        let db = Machine::new().open();
        let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(AsksItself(Arc::clone(&own)))).unwrap();
        k.merge("key", "1").unwrap();
        k.merge("key", "2").unwrap();
        *own.lock().unwrap() = Some(k.clone());
        assert!(matches!(k.get("key"), Err(Error::MergeFailed { .. })));
        db.compact().unwrap();
        *own.lock().unwrap() = None;
        assert_eq!(k.get("key").unwrap().as_deref(), Some(&b"12"[..]));
    });
    assert_eq!(asks, Ok(()));
    let reads = outcome(|| {
        let clock = Arc::new(ReadsTheTime(Mutex::new(None)));
        let db = Db::open(DIRECTORY, Machine::new().options().clock(clock.clone())).unwrap();
        let k = db.keyspace("k", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).unwrap();
        k.put("time", "12345").unwrap();
        *clock.0.lock().unwrap() = Some(k.clone());
        assert!(k.get("time").unwrap().is_some());
        db.compact().unwrap();
        *clock.0.lock().unwrap() = None;
    });
    assert_eq!(reads, Ok(()));
}

/// Trap: an environment that looks something up to read something, which it reads from the same file.
#[test]
fn an_environment_that_reads_to_read_comes_to_an_end() {
    let reads = outcome(|| {
        let (machine, own) = (Machine::new(), Arc::new(Mutex::new(None::<Keyspace>)));
        let (errors, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&own));
        let (kept, env) = (Arc::clone(&errors), machine.env.clone() as _);
        let ask = move |name| {
            let k = asked.lock().unwrap().clone();
            if let Some(Err(error)) = k.filter(|_| name == "read_at").map(|k| k.get("key")) {
                kept.lock().unwrap().push(error);
            }
        };
        let env = Telling { told: Arc::new(ask), called: env };
        let options = machine.options().env(Arc::new(env)).block_cache_bytes(0);
        let db = Db::open(DIRECTORY, options).unwrap();
        let k = keyspace(&db, "k");
        k.put("key", "1").unwrap();
        db.flush().unwrap();
        *own.lock().unwrap() = Some(k.clone());
        assert_eq!(k.get("key").unwrap().as_deref(), Some(&b"1"[..]));
        *own.lock().unwrap() = None;
        assert!(matches!(errors.lock().unwrap()[..], [Error::InCallback { .. }]), "{errors:?}");
    });
    assert_eq!(reads, Ok(()));
}

/// Trap: a length is asked for with a lock held that figures need.
#[test]
fn lengths_may_be_answered_with_figures() {
    let asked = outcome(|| {
        let (machine, own) = (Machine::new(), Arc::new(Mutex::new(None::<Db>)));
        let (inside, asked) = (AtomicBool::new(false), Arc::clone(&own));
        let ask = move |name: &str| {
            if name.ends_with("len") && !inside.swap(true, SeqCst) {
                if let Some(db) = &*asked.lock().unwrap() {
                    drop((db.stats(), db.properties(), db.health()));
                }
                inside.store(false, SeqCst);
            }
        };
        let env = Telling { told: Arc::new(ask), called: machine.env.clone() as _ };
        let db = Db::open(DIRECTORY, machine.options().env(Arc::new(env))).unwrap();
        *own.lock().unwrap() = Some(db.clone());
        let k = keyspace(&db, "k");
        for number in 0..2000u32 {
            k.put(number.to_be_bytes(), [7; 200]).unwrap();
        }
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        drop(db.stats());
        *own.lock().unwrap() = None;
        db.close().unwrap();
    });
    assert_eq!(asked, Ok(()));
}

/// An operator or a filter that waits, once it is told to, for the last handle, and drops it.
struct Drops {
    waits: Arc<AtomicBool>,
    has_begun: Arc<AtomicBool>,
    handle: Mutex<mpsc::Receiver<Db>>,
    dropped: mpsc::Sender<String>,
}

impl Drops {
    fn called(&self) {
        if self.waits.swap(false, SeqCst) {
            self.has_begun.store(true, SeqCst);
            drop(self.handle.lock().unwrap().recv_timeout(FOR_EVER).expect("the handle"));
            self.dropped.send(name_of_this_thread()).unwrap();
        }
    }
}

impl MergeOperator for Drops {
    fn name(&self) -> &str {
        "drops"
    }

    fn full_merge(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        self.called();
        Ok(Some(operands.concat()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Trap: the background thread waits for itself to end, or for a thread of a merge that waits for it, for ever; and the directory stays locked.
#[test]
fn the_last_handle_may_go_in_the_background() {
    let dropped = outcome(move || {
        let env = Arc::new(MemEnv::new());
        let options = || {
            let options = Options::default().env(env.clone()).background_threads(1);
            options.write_buffer_bytes(64 << 10).target_file_bytes(4 << 10)
        };
        let db = Db::open(DIRECTORY, options()).unwrap();
        let (waits, has_begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let ((give, handle), (dropped, is_dropped)) = (mpsc::channel(), mpsc::channel());
        let callback =
            Drops { waits: waits.clone(), has_begun: has_begun.clone(), handle: Mutex::new(handle), dropped };
        let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(callback)).unwrap();
        k.merge("key", "1").unwrap();
        k.merge("key", "2").unwrap();
        waits.store(true, SeqCst);
        // Until the memtable is put aside, and a little more: its flush is at the operator then.
        for number in 0..120u64 {
            k.put(number.to_be_bytes(), [7; 900]).unwrap();
        }
        wait_until("the operator is called", || has_begun.load(SeqCst));
        drop(k);
        give.send(db).unwrap();
        assert_eq!(is_dropped.recv_timeout(FOR_EVER).as_deref(), Ok("esker-background"));
        let is_free = || !matches!(Db::open(DIRECTORY, options()), Err(Error::Locked { .. }));
        wait_until("the directory is free", is_free);
        let db = Db::open(DIRECTORY, options()).unwrap();
        let last = db.existing_keyspace("k").unwrap().get(119u64.to_be_bytes()).unwrap();
        assert_eq!(last.unwrap().len(), 900);
    });
    assert_eq!(dropped, Ok(()));
}
