//! Large values through failures of jobs, loads, checkpoints and repairs.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::internals::waiting_threads;
use esker::{CompactionFilter, Db, Decision, KeyspaceOptions, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn options(env: &MemEnv) -> Options {
    simulated(env).min_blob_size(1000)
}

fn blobs(env: &MemEnv) -> Vec<PathBuf> {
    env.files().into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "blob")).collect()
}

#[derive(Default)]
struct Progress {
    merge_begun: AtomicBool,
    load_written: AtomicBool,
}

/// Holds a merge up until the load is written.
struct HoldsUp(Arc<Progress>);

impl CompactionFilter for HoldsUp {
    fn name(&self) -> &str {
        "holds-up"
    }
    fn decide(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.merge_begun.store(true, SeqCst);
        wait_until("the load is written", || self.0.load_written.load(SeqCst));
        Decision::Keep
    }
}

#[test]
fn large_values_of_a_load_outlive_a_merge_that_ends_before_it_is_installed() {
    let env = MemEnv::default();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let progress = Arc::new(Progress::default());
    let filter = HoldsUp(Arc::clone(&progress));
    let slow = db.keyspace("slow", KeyspaceOptions::default().compaction_filter(filter)).unwrap();
    let loaded = keyspace(&db, "loaded");
    slow.put("key", "value").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| db.compact().unwrap());
        wait_until("the merge is at work", || progress.merge_begun.load(SeqCst));
        scope.spawn(|| loaded.ingest([("a", vec![7; 5000])]).unwrap());
        // Its files are there, and installed when the merge releases the job lock.
        wait_until("the load waits for the merge", || waiting_threads(&db) > 0);
        assert!(!blobs(&env).is_empty(), "the load waits before it is written");
        progress.load_written.store(true, SeqCst);
    });
    assert_eq!(loaded.get("a").unwrap().map(|value| value.len()), Some(5000));
    drop((slow, loaded));
    db.close().unwrap();
    Db::open(DIRECTORY, options(&env)).unwrap();
}

#[test]
fn a_checkpoint_of_large_values_can_be_retried() {
    for nth in 0..40 {
        let env = MemEnv::default();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        let db = Db::open(DIRECTORY, options(&env).env(Arc::new(faulty.clone()))).unwrap();
        let a = keyspace(&db, "a");
        a.put("large", vec![7; 5000]).unwrap();
        db.flush().unwrap();
        faulty.add(Rule::new(Class::AnyMutating, nth, Action::Fail(std::io::ErrorKind::StorageFull)));
        let first = db.checkpoint("copy");
        faulty.clear();
        if first.is_err() {
            db.checkpoint("copy").unwrap_or_else(|error| panic!("call {nth} failed: {error}"));
        }
    }
}

#[test]
fn repair_keeps_large_values_that_are_only_in_the_log() {
    let env = MemEnv::default();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = keyspace(&db, "a");
    a.put("small", "kept").unwrap();
    db.flush().unwrap();
    a.put("large", vec![7; 5000]).unwrap();
    let env = env.kill();
    env.remove(&Path::new(DIRECTORY).join("CURRENT")).unwrap();
    let report = Db::repair(DIRECTORY, options(&env)).unwrap();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = db.existing_keyspace("a").unwrap();
    assert_eq!(a.get("large").unwrap().map(|value| value.len()), Some(5000), "{report}");
}

#[test]
fn failed_jobs_leave_no_blob_files() {
    let env = MemEnv::default();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, options(&env).env(Arc::new(faulty.clone()))).unwrap();
    let append = KeyspaceOptions::default().merge_operator(esker::merge::StringAppend::new(","));
    let a = db.keyspace("a", append).unwrap();
    a.put("key", vec![b'x'; 600]).unwrap();
    a.merge("key", vec![b'y'; 600]).unwrap();
    let mut counts = vec![blobs(&env).len()];
    faulty.add(
        Rule::new(Class::Sync, 0, Action::Fail(std::io::ErrorKind::StorageFull)).on_names_with(".table").from_then_on(),
    );
    for _ in 0..6 {
        assert!(db.flush().is_err());
        counts.push(blobs(&env).len());
    }
    assert!(counts[6] <= counts[1], "blob files after each failed flush: {counts:?}");
}

#[test]
fn a_blob_file_that_repair_has_no_use_for_is_set_aside() {
    let env = MemEnv::default();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = keyspace(&db, "a");
    a.put("large", vec![7; 5000]).unwrap();
    a.put("small", "kept").unwrap();
    db.compact().unwrap();
    drop(a);
    db.close().unwrap();
    let path = blobs(&env)[0].clone();
    let mut bytes = env.file_bytes(&path).unwrap();
    bytes[28] ^= 1; // the header's checksum; every value is intact
    env.set_file_bytes(&path, bytes);
    let report = Db::repair(DIRECTORY, options(&env)).unwrap();
    drop(Db::open(DIRECTORY, options(&env)).unwrap());
    assert!(!blobs(&env).is_empty(), "the values are gone, with every copy of them: {report}");
}
