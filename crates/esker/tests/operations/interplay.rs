//! Where operations meet: expiry, merges, range deletes, compaction styles and transactions.

use esker::env::mem::MemEnv;
use esker::merge::StringAppend;
use esker::{Clock, CompactionStyle, Db, Error, KeyspaceOptions, Options, Ttl, WriteOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn simulated() -> Options {
    Options::default().env(Arc::new(MemEnv::new())).background_threads(0)
}

#[test]
fn phantom_beside_a_range_delete_without_end() {
    let db = Db::open("/db", simulated()).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    k.put("a", "1").unwrap();
    k.put("z", "1").unwrap();
    db.flush().unwrap();
    k.delete_range("m"..).unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.range(&k, "c".."d").count(), 0);
    transaction.put(&k, "b", "mine").unwrap();
    k.put("c5", "other").unwrap();
    db.flush().unwrap();
    let result = transaction.commit();
    assert!(matches!(result, Err(Error::Conflict { .. })), "{result:?}");
}

#[test]
fn fifo_drops_what_a_transaction_must_find() {
    let db = Db::open("/db", simulated()).unwrap();
    let style = CompactionStyle::Fifo { max_bytes: 3000 };
    let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(style)).unwrap();
    k.put("a", "old").unwrap();
    let mut transaction = db.transaction();
    assert!(transaction.get(&k, "a").unwrap().is_some());
    transaction.put(&k, "mine", "1").unwrap();
    k.put("a", "other").unwrap();
    db.flush().unwrap();
    for i in 0..10u32 {
        let value: Vec<u8> =
            (0..1000u32).map(|at| (at.wrapping_mul(2654435761).wrapping_add(i * 77) >> 13) as u8).collect();
        k.put(format!("x{i}"), value).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    assert!(k.get("a").unwrap().is_none(), "dropped");
    let result = transaction.commit();
    assert!(matches!(result, Err(Error::Conflict { .. })), "{result:?}");
}

fn half_expired(collect: bool) -> u64 {
    let clock = Arc::new(esker::ManualClock::new(1_000_000));
    let db = Db::open("/db", simulated().clock(clock.clone()).min_blob_size(1000)).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).unwrap();
    k.put("n", "never").unwrap();
    for i in 0..6 {
        k.put_with(format!("k{i}"), vec![i; 3000], &WriteOptions::new().ttl(Duration::from_secs(100))).unwrap();
    }
    for i in 2..6 {
        k.delete(format!("k{i}")).unwrap();
    }
    if collect {
        db.compact().unwrap()
    } else {
        db.flush().unwrap()
    }
    clock.set(2_000_000);
    db.wait_idle().unwrap();
    db.wait_idle().unwrap();
    db.stats().keyspaces[0].entries
}

#[test]
fn a_table_rewritten_for_its_blobs_still_expires() {
    assert_eq!(half_expired(false), 1, "without blob collection");
    assert_eq!(half_expired(true), 1, "after blob collection");
}

impl Clock for SlowClock {
    fn now_ms(&self) -> u64 {
        let now = self.now.load(SeqCst);
        // The thread is held up right after it looked at the clock.
        if self.armed.swap(false, SeqCst) {
            self.now.store(now + 20, SeqCst);
            if let Some(look) = self.at_pause.lock().unwrap().take() {
                look();
            }
        }
        now
    }
}

struct SlowClock {
    now: AtomicU64,
    armed: AtomicBool,
    at_pause: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for SlowClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("slow")
    }
}

#[test]
fn a_merge_held_up_does_not_bring_back_what_was_seen_to_expire() {
    let clock =
        Arc::new(SlowClock { now: AtomicU64::new(100), armed: AtomicBool::new(false), at_pause: Mutex::new(None) });
    let db = Db::open("/db", simulated().clock(clock.clone())).unwrap();
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(StringAppend::new(","));
    let k = db.keyspace("k", options).unwrap();
    k.put_with("a", "base", &WriteOptions::new().ttl(Duration::from_millis(10))).unwrap();
    let seen = Arc::new(Mutex::new(None));
    let (reader, noted) = (k.clone(), Arc::clone(&seen));
    *clock.at_pause.lock().unwrap() = Some(Box::new(move || *noted.lock().unwrap() = Some(reader.get("a").unwrap())));
    clock.armed.store(true, SeqCst);
    k.merge_with("a", "op", &WriteOptions::new().ttl(Duration::from_millis(1000))).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(None), "a reader saw it expired");
    let value = k.get("a").unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
    assert_eq!(value.as_deref(), Some("op"));
}

/// Joins, but only as a whole.
struct Whole;

impl esker::MergeOperator for Whole {
    fn name(&self) -> &str {
        "whole"
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, esker::MergeError> {
        let mut out = existing.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| out.extend_from_slice(operand));
        Ok(Some(out))
    }
}

#[test]
fn chains_stay_short_with_a_time_to_live() {
    for (ttl, life) in
        [(Ttl::Disabled, None), (Ttl::Enabled { default: None }, None), (Ttl::Enabled { default: None }, Some(1000))]
    {
        let db = Db::open("/db", simulated()).unwrap();
        let k = db.keyspace("k", KeyspaceOptions::default().ttl(ttl).merge_operator(Whole)).unwrap();
        for i in 0..5000u32 {
            let options = match (i, life) {
                (0, Some(seconds)) => WriteOptions::new().ttl(Duration::from_secs(seconds)),
                _ => WriteOptions::new(),
            };
            k.merge_with("a", "x", &options).unwrap();
        }
        k.get("a").unwrap();
        let longest = db.stats().longest_merge_chain;
        assert!(longest <= 130, "{ttl:?} {life:?}: longest chain {longest}");
    }
}
