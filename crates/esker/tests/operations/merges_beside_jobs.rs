//! Merges, where entries expire, while a job takes the value away that they are merged into.

use crate::callbacks::FOR_EVER;
use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, at, text, wait_until};
use crate::interrupting::Interrupting;
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, Expiry, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Ttl, WriteOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

fn mortal() -> KeyspaceOptions {
    KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(StringAppend::new(","))
}

/// Each for a key of that name, which has a value.
const WAYS: [&str; 5] = ["alone", "returning", "batch", "transaction", "fresh"];

fn merge_in_all_ways(db: &Db, log: &Keyspace) {
    log.merge("alone", "two").expect("merge");
    log.merge("alone", "three").expect("merge");
    for (operand, value) in [("two", "one,two"), ("three", "one,two,three")] {
        let returned = log.merge_and_get("returning", operand).expect("merge");
        assert_eq!(returned.as_deref(), Some(value.as_bytes()), "it is what the key has from then on");
    }
    let mut batch = db.batch();
    batch.merge(log, "batch", "two").expect("add");
    batch.merge(log, "batch", "three").expect("add");
    batch.commit().expect("commit");
    let mut transaction = db.transaction();
    assert_eq!(transaction.get(log, "transaction").expect("get"), None, "it reads as of the job's time");
    transaction.merge(log, "transaction", "two").expect("add");
    transaction.merge(log, "transaction", "three").expect("add");
    transaction.commit().expect("commit");
    // What is written meanwhile, no job at work takes.
    log.put_with("fresh", "one", &for_ten_seconds()).expect("put");
    log.merge("fresh", "two").expect("merge");
    log.merge("fresh", "three").expect("merge");
    assert_eq!(log.put_if_absent("fresh", "other").expect("put").as_deref(), Some(&b"one,two,three"[..]));
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "table")
}

fn for_ten_seconds() -> WriteOptions {
    WriteOptions::new().ttl(Duration::from_secs(10))
}

/// Seen: the merges were acknowledged and lost. Trigger: a clock that stepped back while a flush or
/// compaction was giving back what had expired before. Here they keep what they met.
#[test]
fn a_value_that_a_job_gives_back_is_kept_by_a_merge_into_it_once_the_clock_has_stepped_back() {
    for is_compaction in [false, true] {
        let machine = Machine::new();
        let interrupting = Interrupting::new(&machine.env, is_table, FOR_EVER);
        let db = Db::open(DIRECTORY, machine.options().env(Arc::new(interrupting.clone()))).expect("open");
        let log = db.keyspace("log", mortal()).expect("keyspace");
        for way in WAYS.into_iter().chain(["untouched"]) {
            log.put_with(way, "one", &for_ten_seconds()).expect("put");
        }
        log.put("z", "ballast").expect("put");
        if is_compaction {
            db.compact().expect("compact");
        }
        machine.pass(Duration::from_secs(10));
        let (clock, its_db, its_log) = (Arc::clone(&machine.clock), db.clone(), log.clone());
        interrupting.interrupt_with(move || {
            clock.set(START_MS);
            merge_in_all_ways(&its_db, &its_log);
        });
        if is_compaction { db.compact() } else { db.flush() }.expect("the job");
        assert!(interrupting.has_interrupted());
        for _ in 0..2 {
            assert_eq!(text(&log, "untouched"), None, "it was given back");
            for way in WAYS {
                assert_eq!(text(&log, way).as_deref(), Some("one,two,three"), "{way}");
                assert_eq!(log.expires_at(way).expect("get"), Some(Expiry::At(at(10))), "{way}");
            }
            db.compact().expect("compact");
        }
    }
}

/// What a merge has copied is the memtable's, and what no job takes is not copied.
#[test]
fn only_what_a_job_at_work_may_give_back_is_copied() {
    let machine = Machine::new();
    let interrupting = Interrupting::new(&machine.env, is_table, FOR_EVER);
    let db = Db::open(DIRECTORY, machine.options().env(Arc::new(interrupting.clone()))).expect("open");
    let log = db.keyspace("log", mortal()).expect("keyspace");
    log.put_with("going", "one", &for_ten_seconds()).expect("put");
    log.put_until("staying", "one", at(11)).expect("put");
    // Operands are not combined with it in memory.
    log.put_with("long", "1".repeat(2 << 10), &for_ten_seconds()).expect("put");
    log.put("z", "ballast").expect("put");
    db.compact().expect("compact");
    machine.pass(Duration::from_secs(10));
    let writes = |db: &Db, write: &mut dyn FnMut()| {
        let before = db.stats().last_sequence;
        write();
        db.stats().last_sequence - before
    };
    let (clock, its_db, its_log) = (Arc::clone(&machine.clock), db.clone(), log.clone());
    interrupting.interrupt_with(move || {
        clock.set(START_MS);
        assert_eq!(writes(&its_db, &mut || its_log.merge("staying", "two").expect("merge")), 1);
        let mut batch = its_db.batch();
        batch.merge(&its_log, "going", "two").expect("add");
        batch.merge(&its_log, "going", "three").expect("add");
        assert_eq!(
            writes(&its_db, &mut || batch.commit_and_clear(&WriteOptions::new()).expect("commit")),
            3,
            "it is copied once"
        );
        its_log.delete_range("x".."y").expect("delete");
        let counts = ["2", "3", "4"].map(|one| writes(&its_db, &mut || its_log.merge("long", one).expect("merge")));
        assert_eq!(counts, [2, 1, 1], "what was copied is in memory, where no job takes it");
    });
    db.compact().expect("compact");
    assert!(interrupting.has_interrupted());
    assert_eq!(text(&log, "going").as_deref(), Some("one,two,three"));
    assert_eq!(text(&log, "staying").as_deref(), Some("one,two"));
    assert_eq!(text(&log, "long"), Some("1".repeat(2 << 10) + ",2,3,4"));
    // No job is at work any more: what is there stays there.
    log.put_until("later", "one", at(9)).expect("put");
    db.flush().expect("flush");
    assert_eq!(writes(&db, &mut || log.merge("later", "two").expect("merge")), 1);
    assert_eq!(text(&log, "later").as_deref(), Some("one,two"));
}

/// Appends, and does something in the second call.
struct Meanwhile {
    append: StringAppend,
    calls: AtomicUsize,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl MergeOperator for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }
    fn full_merge(&self, key: &[u8], old: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 1 {
            let work = self.work.lock().unwrap().take().expect("there is something to do");
            // Another thread: an operator must not use the database.
            std::thread::spawn(work).join().expect("done");
        }
        self.append.full_merge(key, old, operands)
    }
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.append.partial_merge(key, older, newer)
    }
    fn may_delete(&self) -> bool {
        false
    }
}

/// Seen: it answered with a value that the key never had from then on. Trigger: a job that gave
/// back what the answer was made of, as expired by a clock that had stepped back since.
#[test]
fn a_merge_answers_what_it_writes_though_a_job_ends_in_between() {
    let machine = Machine::new();
    let interrupting = Interrupting::new(&machine.env, is_table, FOR_EVER);
    let db = Db::open(DIRECTORY, machine.options().env(Arc::new(interrupting.clone()))).expect("open");
    let (go_on, may_go_on) = channel();
    let (began, has_begun) = channel();
    let log = Arc::new(OnceLock::<Keyspace>::new());
    let its_log = Arc::clone(&log);
    let work = move || {
        go_on.send(()).expect("the job waits");
        let log = its_log.get().expect("it is open");
        wait_until("the job has given the value back", || text(log, "k").is_none());
    };
    let append = StringAppend::new(",");
    let operator = Meanwhile { append, calls: AtomicUsize::new(0), work: Mutex::new(Some(Box::new(work))) };
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(operator);
    let log = log.get_or_init(|| db.keyspace("log", options).expect("keyspace"));
    log.put_with("k", "one", &for_ten_seconds()).expect("put");
    log.put("z", "ballast").expect("put");
    db.compact().expect("compact");
    machine.pass(Duration::from_secs(10));
    let clock = Arc::clone(&machine.clock);
    interrupting.interrupt_with(move || {
        clock.set(START_MS);
        began.send(()).expect("somebody waits");
        may_go_on.recv_timeout(FOR_EVER).expect("the merge is under way");
    });
    let compacted = db.clone();
    let job = std::thread::spawn(move || compacted.compact().expect("compact"));
    has_begun.recv_timeout(FOR_EVER).expect("the job begins");
    let answered = log.merge_and_get("k", "two").expect("merge");
    job.join().expect("compacted");
    assert_eq!((text(log, "k").as_deref(), answered.as_deref()), (Some("two"), Some(&b"two"[..])));
}

/// The merge during the drop goes with the value that it met; the next one starts from nothing.
#[test]
fn a_merge_after_fifo_dropped_a_value_does_not_rely_on_one_made_meanwhile() {
    let machine = Machine::new();
    let (is_armed, log) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::<Keyspace>::new()));
    let (armed, its_log) = (Arc::clone(&is_armed), Arc::clone(&log));
    let told = move |call: &'static str| {
        if call == "WriteFile::flush" && armed.swap(false, Ordering::SeqCst) {
            let log = its_log.get().expect("it is open").clone();
            // Another thread: an environment's own calls must not.
            std::thread::spawn(move || log.merge("k", "2").expect("merge")).join().expect("merged");
        }
    };
    let env = Telling { told: Arc::new(told), called: machine.env.clone() as Arc<dyn esker::env::Env> };
    let db = Db::open(DIRECTORY, machine.options().env(Arc::new(env))).expect("open");
    let options = mortal().compaction_style(CompactionStyle::Fifo { max_bytes: 1 });
    let log = log.get_or_init(|| db.keyspace("log", options).expect("keyspace"));
    for key in ["k", "newer"] {
        log.put(key, "1").expect("put");
        db.flush().expect("flush");
    }
    is_armed.store(true, Ordering::SeqCst);
    db.wait_idle().expect("idle");
    assert!(!is_armed.load(Ordering::SeqCst), "the merge came when the manifest was written");
    let stats = db.stats();
    assert_eq!((stats.tables_dropped, stats.keyspaces[0].memtable_entries), (1, 1));
    assert_eq!(text(log, "k"), None);
    log.merge("k", "3").expect("merge");
    assert_eq!(text(log, "k").as_deref(), Some("3"));
}
