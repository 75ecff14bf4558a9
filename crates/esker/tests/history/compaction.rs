//! Flushes and merges beside each other, and what they leave.

use crate::common::{Scratch, keyspace, wait_until};
use esker::internals::waiting_threads;
use esker::{CompactionFilter, Compression, Db, Decision, KeyspaceOptions, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Where a merge is held up a second time: far enough behind the first to have met several yield
/// points in between.
const SECOND_STOP: u64 = 5000;

/// How far a merge is, and the flush beside it.
#[derive(Default)]
struct Progress {
    /// Values that the merge has passed to the filter.
    merged: AtomicU64,
    flush_waits: AtomicBool,
    flush_is_over: AtomicBool,
}

/// Holds a merge up until a flush waits, and again until it is over.
struct HoldsUp(Arc<Progress>);

impl CompactionFilter for HoldsUp {
    fn name(&self) -> &str {
        "holds-up"
    }

    fn decide(&self, _: &[u8], _: &[u8]) -> Decision {
        let Progress { merged, flush_waits, flush_is_over } = &*self.0;
        match merged.fetch_add(1, SeqCst) {
            0 => wait_until("a flush waits", || flush_waits.load(SeqCst)),
            SECOND_STOP => wait_until("the flush is over", || flush_is_over.load(SeqCst)),
            _ => {}
        }
        Decision::Keep
    }
}

/// Seen: reads returned what had been overwritten. Trigger: a flush in the middle of a merge put
/// its table into the run that the merge was about to replace, below newer data. Cost: wrong
/// values, and runs that overlap.
#[test]
fn a_flush_in_the_middle_of_a_merge_stays_above_it() {
    let scratch = Scratch::new("flush-in-merge");
    // No other merges come in between.
    let options = || Options::default().compression(Compression::None).background_threads(0);
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = keyspace(&db, "k");
    let key = |i: u32| format!("{i:08}");
    for i in 0..30_000 {
        k.put(key(i), "old").unwrap();
    }
    db.compact().unwrap();
    for round in 0..5 {
        for i in 0..100 {
            k.put(key(i), format!("low{round}")).unwrap();
        }
        db.flush().unwrap();
        let progress = Arc::new(Progress::default());
        let filter = HoldsUp(Arc::clone(&progress));
        drop(db.keyspace("k", KeyspaceOptions::default().compaction_filter(filter)).unwrap());
        let new = format!("new{round}");
        std::thread::scope(|scope| {
            let merge = scope.spawn(|| k.compact());
            wait_until("the merge is at work", || progress.merged.load(SeqCst) > 0);
            for i in 29_000..29_100 {
                k.put(key(i), &new).unwrap();
            }
            let flush = scope.spawn(|| db.flush());
            wait_until("the flush waits for the merge", || waiting_threads(&db) > 0);
            progress.flush_waits.store(true, SeqCst);
            flush.join().unwrap().unwrap();
            assert!(!merge.is_finished(), "round {round}: the merge ended before the flush beside it");
            progress.flush_is_over.store(true, SeqCst);
            merge.join().unwrap().unwrap();
        });
        assert!(progress.merged.load(SeqCst) > SECOND_STOP, "round {round}: the merge was not held up");
        let stale = (29_000..29_100).filter(|&i| k.get(key(i)).unwrap().as_deref() != Some(new.as_bytes())).count();
        assert_eq!(stale, 0, "round {round}");
    }
    drop((k, db));
    let db = Db::open(scratch.path(), options()).unwrap();
    assert_eq!(keyspace(&db, "k").get(key(29_050)).unwrap().as_deref(), Some(&b"new4"[..]));
}

/// Seen: twice the space. Trigger: `compact` on a database that then rested: the tables merged
/// stayed until the next job, which never came. Cost: disk space.
#[test]
fn compacting_gives_the_space_of_its_inputs_back() {
    let scratch = Scratch::new("space");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    for round in 0..2 {
        for i in 0..5000 {
            k.put(format!("{i}"), format!("{round}")).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    let left = || scratch.names_ending(".table").len() as u64;
    wait_until("the inputs are removed", || left() == db.stats().table_files);
}
