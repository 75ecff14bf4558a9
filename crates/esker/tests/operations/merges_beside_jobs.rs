//! Merges, where entries expire, while a job takes the value away that they would be merged into.

use crate::callbacks::FOR_EVER;
use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, at, text};
use crate::interrupting::Interrupting;
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions, Ttl, WriteOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn mortal() -> KeyspaceOptions {
    KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(StringAppend::new(","))
}

/// Each for a key of that name.
fn merge_in_all_ways(db: &Db, log: &Keyspace) {
    log.merge("alone", "two").expect("merge");
    let returned = log.merge_and_get("returning", "two").expect("merge");
    assert_eq!(returned.as_deref(), Some(&b"two"[..]), "it is what the key has from then on");
    let mut batch = db.batch();
    batch.merge(log, "batch", "two").expect("add");
    batch.commit().expect("commit");
    let mut transaction = db.transaction();
    transaction.merge(log, "transaction", "two").expect("add");
    transaction.commit().expect("commit");
}

/// Seen: the merges were acknowledged and lost. Trigger: a clock that stepped back while a
/// compaction was giving back what had expired before.
#[test]
fn a_value_that_a_job_gives_back_is_not_merged_into_by_a_clock_that_stepped_back_meanwhile() {
    let machine = Machine::new();
    let is_table = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "table");
    let interrupting = Interrupting::new(&machine.env, is_table, FOR_EVER);
    let db = Db::open(DIRECTORY, machine.options().env(Arc::new(interrupting.clone()))).expect("open");
    let log = db.keyspace("log", mortal()).expect("keyspace");
    log.put("a", "ballast").expect("put");
    for way in ["alone", "returning", "batch", "transaction"] {
        log.put_with(way, "one", &WriteOptions::new().ttl(Duration::from_secs(10))).expect("put");
    }
    db.compact().expect("compact");
    machine.pass(Duration::from_secs(10));
    let (clock, its_db, its_log) = (Arc::clone(&machine.clock), db.clone(), log.clone());
    interrupting.interrupt_with(move || {
        clock.set(START_MS);
        merge_in_all_ways(&its_db, &its_log);
    });
    db.compact().expect("compact");
    assert!(interrupting.has_interrupted());
    for _ in 0..2 {
        for way in ["alone", "returning", "batch", "transaction"] {
            assert_eq!(text(&log, way).as_deref(), Some("two"), "{way}");
        }
        db.compact().expect("compact");
    }
}

/// A transaction read that there is no value.
#[test]
fn what_has_expired_for_a_transaction_is_not_merged_into_by_a_clock_that_stepped_back_since() {
    let machine = Machine::new();
    let db = machine.open();
    let log = db.keyspace("log", mortal()).expect("keyspace");
    log.put_with("k", "one", &WriteOptions::new().ttl(Duration::from_secs(10))).expect("put");
    machine.pass(Duration::from_secs(10));
    let mut transaction = db.transaction();
    assert_eq!(transaction.get(&log, "k").expect("get"), None);
    transaction.merge(&log, "k", "two").expect("merge");
    assert_eq!(transaction.get(&log, "k").expect("get").as_deref(), Some(&b"two"[..]));
    machine.clock.set(START_MS);
    transaction.commit().expect("commit");
    assert_eq!(text(&log, "k").as_deref(), Some("two"));
    assert_eq!(log.expires_at("k").expect("get"), Some(esker::Expiry::Never));
    assert!(log.put_until("later", "1", at(20)).is_ok(), "the clock is back for other writes");
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
