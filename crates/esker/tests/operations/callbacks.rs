//! What a merge operator, a compaction filter, a clock, an environment or a listener may do with
//! the database that calls it: every callback times every call. A call works, or is refused at
//! once; what called the callback goes on as if nothing had been.

mod apart;
mod calls;
mod complete;
mod follower;
mod hook;
mod ways;

pub use hook::{FOR_EVER, name_of_this_thread};

use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, keyspace, wait_until};
use calls::{Begun, Listed, Outcome, is_right};
use esker::env::mem::MemEnv;
use esker::{Clock, Db, Error, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Options, Result, Ttl};
use hook::{Call, Site};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use ways::{ENV_WAYS, WAYS, Way};

/// Makes the database call the callback, which makes the call; then sees that the database is as
/// good as before.
fn run(way: &Way, threads: usize, call: &Listed) {
    let site = Site::open(threads, way.has_faults);
    let Site { hook, db, k, .. } = &site;
    hook.arm_in(way.thread, way.callback, (call.begin)(db), site.own());
    (way.make)(&site);
    if way.name == "background" || !way.callback.starts_with("MergeOperator") {
        wait_until("it is called in another thread", || hook.has_returned());
    }
    let (result, thread) = hook.result.lock().unwrap().take().expect("it was called");
    match (way.name, threads) {
        ("background", 1) => assert_eq!(thread, "esker-background"),
        ("background", 2) => assert_eq!(thread, "esker-compaction"),
        _ => {}
    }
    let is_told_why = match result {
        Err(Error::Io { .. }) => way.has_faults,
        Err(Error::ReadOnly { .. }) => way.has_faults || way.closes,
        _ => false,
    };
    assert!(is_right(call, !way.refuses, way.callback == "Comparator::compare", &result) || is_told_why, "{result:?}");
    if way.has_faults {
        return;
    }
    if way.closes || call.name == "Db::close" && !way.refuses {
        assert!(k.put("after", "1").is_err());
        return;
    }
    let text = |key| String::from_utf8(k.get(key).unwrap().unwrap().to_vec()).unwrap();
    let settled = ["base", "together", "apart"].map(text);
    assert!(settled[2].starts_with("1212"), "{settled:?}");
    k.put("after", "1").unwrap();
    db.compact().unwrap();
    assert_eq!(["base", "together", "apart"].map(text), settled);
    assert_eq!(db.snapshot().iter(k).map(Result::unwrap).count(), k.iter().count());
    assert!(db.health().problem.is_none());
}

/// The table of `doc/semantics.md`.
fn table() -> String {
    let line = |name: &str, own, comparator, listener| format!("| {name} | {own} | {comparator} | {listener} |\n");
    let mut table = line("call", "operator, filter, clock, environment", "comparator", "listener");
    table += &line("---", "---", "---", "---");
    table.extend(calls::all().map(|call| match call.outcome {
        Outcome::Works => line(call.name, "works", "works", "works"),
        Outcome::Refused => line(call.name, "`InCallback`", "`InCallback`", "works"),
        Outcome::Locked => line(call.name, "`Locked`", "`Locked`", "`Locked`"),
        Outcome::Scans => line(call.name, "works", "`InCallback`", "works"),
    }));
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
        Err(panic) => format!("it panics: {:?}", panic.downcast_ref::<&str>()),
    })
}

/// Trap: an operator under the writer lock waits for it; the thread that flushes waits for a flush.
#[test]
fn every_call_from_every_callback_works_or_is_refused_at_once() {
    every_call(WAYS);
}

/// Trap: the file that a flush writes waits for the flush; one that is synced waits for the sync.
#[test]
fn every_call_from_every_call_of_the_environment_works_or_is_refused_at_once() {
    every_call(ENV_WAYS);
}

fn every_call(ways: &'static [Way]) {
    let mut failures = Vec::new();
    for way in ways {
        let least = usize::from(way.in_background);
        for threads in least..if way.name == "background" { 3 } else { 2 } {
            for call in calls::all().filter(|call| way.beside_readers || call.begun != Begun::Reader) {
                if let Err(why) = outcome(move || run(way, threads, &call)) {
                    let (called, name) = (way.callback, way.name);
                    failures.push(format!("{} from {called} in {name} with {threads} threads: {why}", call.name));
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
    let site = Site::open(0, false);
    let begin: Call = Box::new(|db| {
        let mut transaction = db.transaction();
        transaction.put(&db.existing_keyspace("plain")?, "bob", "1923")?;
        *KEPT.lock().unwrap() = Some((db.snapshot(), transaction));
        Ok(())
    });
    site.hook.arm("MergeOperator::full_merge", begin, site.own());
    site.k.get("apart").unwrap();
    let (snapshot, transaction) = KEPT.lock().unwrap().take().unwrap();
    let plain = site.db.existing_keyspace("plain").unwrap();
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

/// Trap: an environment that looks something up to read something, which it reads from the same
/// file.
#[test]
fn an_environment_that_reads_to_read_comes_to_an_end() {
    let reads = outcome(|| {
        let (machine, own) = (Machine::new(), Arc::new(Mutex::new(None::<Keyspace>)));
        let (errors, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&own));
        let (kept, env) = (Arc::clone(&errors), machine.env.clone() as _);
        let ask = move |name| {
            let k = asked.lock().unwrap().clone();
            if let Some(Err(error)) = k.filter(|_| name == "ReadFile::read_at").map(|k| k.get("key")) {
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

/// Pitfall: a length is read with a lock held that statistics need.
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

/// Trap: the background thread waits for itself to end, or for a thread of a merge that waits for
/// it, for ever; and the directory stays locked.
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
        // Until the memtable is rotated, and a little more: its flush is at the operator then.
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
