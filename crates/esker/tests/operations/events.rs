//! What a listener is told, and that it can neither block nor break the database.

use crate::common::*;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::internals::background_round;
use esker::{CompactionCompleted, Db, EventListener, FlushCompleted, IngestCompleted, TableCreated};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Writes down everything, and reads the database in each call.
#[derive(Default)]
struct Recorder {
    told: Mutex<Vec<String>>,
    keyspace: OnceLock<esker::Keyspace>,
}

impl Recorder {
    fn note(&self, what: String) {
        if let Some(keyspace) = self.keyspace.get() {
            keyspace.get("key").unwrap();
        }
        self.told.lock().unwrap().push(what);
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl EventListener for Recorder {
    fn flush_completed(&self, event: &FlushCompleted) {
        self.note(format!("flush {} {}", event.keyspace, event.tables));
    }
    fn compaction_completed(&self, event: &CompactionCompleted) {
        assert!(event.input_bytes > 0 && event.output_bytes > 0);
        self.note(format!("compaction {} {} {}", event.keyspace, event.input_tables, event.output_tables));
    }
    fn ingest_completed(&self, event: &IngestCompleted) {
        self.note(format!("ingest {} {}", event.keyspace, event.entries));
    }
    fn table_created(&self, event: &TableCreated) {
        self.note(format!("created {} {}", event.path.file_name().unwrap().to_str().unwrap(), event.entries));
    }
    fn table_removed(&self, path: &Path) {
        self.note(format!("removed {}", path.file_name().unwrap().to_str().unwrap()));
    }
    fn stall_began(&self, keyspace: &str, reason: &str) {
        self.note(format!("stall of {keyspace}: {reason}"));
    }
    fn stall_ended(&self, keyspace: &str, waited: Duration) {
        self.note(format!("stall of {keyspace} over: {}", waited > Duration::ZERO));
    }
    fn background_error(&self, error: &str) {
        self.note(format!("error: {error}"));
    }
    fn recovered(&self) {
        self.note("recovered".into());
    }
    fn became_read_only(&self, reason: &str) {
        self.note(format!("read-only: {reason}"));
    }
}

#[test]
fn work_is_told_in_order_before_close_returns() {
    let env = MemEnv::default();
    let recorder = Arc::new(Recorder::default());
    let db = Db::open(DIRECTORY, simulated(&env).event_listener(recorder.clone())).unwrap();
    let a = keyspace(&db, "a");
    assert!(recorder.keyspace.set(a.clone()).is_ok());
    for _ in 0..2 {
        a.put("key", "value").unwrap();
        db.flush().unwrap();
    }
    db.compact().unwrap();
    a.ingest([("key", "loaded"), ("other", "loaded")]).unwrap();
    db.close().unwrap();
    let told = recorder.told();
    let number = |told: &str| told.split(' ').nth(1).unwrap().to_owned();
    let tables: Vec<String> = told.iter().filter(|told| told.starts_with("created")).map(|told| number(told)).collect();
    let expected = [
        format!("created {} 1", tables[0]),
        "flush a 1".into(),
        format!("created {} 1", tables[1]),
        "flush a 1".into(),
        format!("created {} 1", tables[2]),
        "compaction a 2 1".into(),
        format!("created {} 2", tables[3]),
        "ingest a 2".into(),
    ];
    let merged = told.iter().position(|told| told.starts_with("compaction")).unwrap();
    let (removed, others): (Vec<_>, Vec<_>) = told.iter().cloned().partition(|told| told.starts_with("removed"));
    assert_eq!(others, expected);
    // When depends on who reads them: the listener does.
    assert!(removed.iter().all(|removed| tables[..2].contains(&number(removed))), "{told:?}");
    assert!(!told[..merged].iter().any(|told| told.starts_with("removed")), "{told:?}");
}

#[test]
fn failures_are_told_once_and_their_end_too() {
    let memory = MemEnv::default();
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    let recorder = Arc::new(Recorder::default());
    let options = simulated(&memory).env(Arc::new(faulty.clone())).event_listener(recorder.clone());
    let db = Db::open(DIRECTORY, options.background_threads(1).write_buffer_bytes(1 << 12)).unwrap();
    let a = keyspace(&db, "a");
    faulty.add(
        Rule::new(Class::Create, 0, Action::Fail(std::io::ErrorKind::StorageFull))
            .on_names_with(".table")
            .from_then_on(),
    );
    let mut number = 0u32;
    while a.put(number.to_be_bytes(), [7; 100]).is_ok() && number < 1000 {
        number += 1;
    }
    faulty.clear();
    // A writer hears of the last failure until then. Events may be told a little after what they
    // tell of.
    wait_until("the background thread tries again", || recorder.told().iter().any(|told| told == "recovered"));
    a.put(number.to_be_bytes(), [7; 100]).unwrap();
    db.wait_idle().unwrap();
    faulty.add(Rule::new(Class::Sync, 0, Action::Fail(std::io::ErrorKind::Other)).on_names_with(".wal").from_then_on());
    assert!(a.put_with("key", "value", &esker::WriteOptions::new().sync(true)).is_err());
    assert!(a.put("key", "value").is_err());
    // The background thread looks for work again, at once and in a pause: that it may do none is
    // not told as another failure.
    for pause in [0, 10] {
        background_round(&db, Duration::from_secs(pause));
    }
    let _ = db.close();
    let told = recorder.told();
    let count = |start: &str| told.iter().filter(|told| told.starts_with(start)).count();
    assert!(count("stall of a: too many memtables") >= 1, "{told:?}");
    assert_eq!(count("stall of a: "), count("stall of a over"), "{told:?}");
    assert!(count("error: ") >= 1 && count("error: ") == count("recovered"), "{told:?}");
    assert_eq!(count("read-only: "), 1, "{told:?}");
}

/// Panics at every event.
struct Panicking(Mutex<u64>);

impl EventListener for Panicking {
    fn flush_completed(&self, _event: &FlushCompleted) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        panic!("on purpose");
    }
}

#[test]
fn a_panic_in_a_listener_harms_nobody() {
    let env = MemEnv::default();
    let listener = Arc::new(Panicking(Mutex::new(0)));
    let db = Db::open(DIRECTORY, simulated(&env).event_listener(listener.clone())).unwrap();
    let a = keyspace(&db, "a");
    for _ in 0..3 {
        a.put("key", "value").unwrap();
        db.flush().unwrap();
    }
    assert!(db.health().writable);
    drop((a, db));
    assert_eq!(*listener.0.lock().unwrap(), 3);
}
