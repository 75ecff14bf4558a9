//! Compaction filters.

use crate::compaction_support::{Scratch, tiny, verify};
use esker::merge::StringAppend;
use esker::{CompactionFilter, Db, Decision, Keyspace, KeyspaceOptions, Snapshot, Ttl};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Removes values that begin with `x`, shortens those that begin with `s`, and panics at `p`.
/// Counts what it is asked.
struct Letters(Arc<AtomicU64>);

impl CompactionFilter for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn decide(&self, _key: &[u8], value: &[u8]) -> Decision {
        self.0.fetch_add(1, Relaxed);
        match value.first() {
            Some(b'x') => Decision::Remove,
            Some(b's') => Decision::Replace(b"short".to_vec()),
            Some(b'p') => panic!("a filter's defect"),
            _ => Decision::Keep,
        }
    }
}

fn open(db: &Db) -> (Keyspace, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let options = KeyspaceOptions::default().compaction_filter(Letters(Arc::clone(&asked)));
    (db.keyspace("k", options).unwrap(), asked)
}

fn get(k: &Keyspace, key: &str) -> Option<String> {
    k.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn seen(snapshot: &Snapshot, k: &Keyspace, key: &str) -> Option<String> {
    snapshot.get(k, key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn what_is_decided_happens_and_flushes_ask_nothing() {
    let scratch = Scratch::new("filter");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let (k, asked) = open(&db);
    for (key, value) in [("a", "keep"), ("b", "x"), ("c", "such a long value"), ("d", "panic")] {
        k.put(key, value).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(asked.load(Relaxed), 0);
    db.compact().unwrap();
    assert_eq!(asked.load(Relaxed), 4);
    let all = ["a", "b", "c", "d"].map(|key| get(&k, key));
    assert_eq!(all, [Some("keep".into()), None, Some("short".into()), Some("panic".into())]);
    assert_eq!(db.stats().keyspaces[0].entries, 3);
}

/// The older version lies in a run that the merge does not read.
#[test]
fn what_is_removed_uncovers_nothing_older() {
    let scratch = Scratch::new("filter-older");
    // No value is large: they are to fill the memory.
    let db = Db::open(scratch.path(), tiny().write_buffer_bytes(1 << 20).min_blob_size(0)).unwrap();
    let (k, _) = open(&db);
    for at in 0..3000 {
        k.put(format!("{at:05}"), format!("old {at}")).unwrap();
    }
    db.flush().unwrap();
    let mut rounds = 0;
    while db.stats().compactions == 0 {
        k.put("00007", "x").unwrap();
        k.put(format!("{:05}", 100 + rounds), "new").unwrap();
        db.flush().unwrap();
        rounds += 1;
        // Freezing is what begins work when there is no thread.
        k.put(format!("large {rounds}"), vec![b'l'; 1 << 20]).unwrap();
        assert!(rounds < 30);
    }
    assert!(db.stats().keyspaces[0].runs.len() > 1 || rounds < 12, "{}", db.stats());
    assert_eq!(get(&k, "00007").filter(|value| value != "x"), None);
    db.compact().unwrap();
    assert_eq!(get(&k, "00007"), None);
    verify(&db);
}

#[test]
fn what_a_snapshot_sees_does_not_change() {
    let scratch = Scratch::new("filter-snapshot");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let (k, _) = open(&db);
    k.put("a", "x old").unwrap();
    k.put("b", "x only").unwrap();
    let snapshot = db.snapshot();
    k.put("a", "x new").unwrap();
    k.put("c", "x after").unwrap();
    db.compact().unwrap();
    assert_eq!(["a", "b", "c"].map(|key| get(&k, key)), [None, Some("x only".into()), None]);
    let then = ["a", "b", "c"].map(|key| seen(&snapshot, &k, key));
    assert_eq!(then, [Some("x old".into()), Some("x only".into()), None]);
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(k.iter().count(), 0);
    assert_eq!(db.stats().table_files, 0);
}

/// A snapshot made for the filter, in the middle of the merge.
#[test]
fn a_snapshot_made_during_the_merge_counts_too() {
    struct Sneaky(std::sync::Mutex<Option<(Db, std::sync::mpsc::Sender<Snapshot>)>>);
    impl CompactionFilter for Sneaky {
        fn name(&self) -> &str {
            "sneaky"
        }
        fn decide(&self, _key: &[u8], _value: &[u8]) -> Decision {
            if let Some((db, out)) = self.0.lock().unwrap().take() {
                // Not by this thread, which has the job: it would be refused.
                out.send(std::thread::spawn(move || db.snapshot()).join().unwrap()).unwrap();
            }
            Decision::Remove
        }
    }
    for threads in [0, 1] {
        let scratch = Scratch::new(&format!("filter-sneaky-{threads}"));
        let db = Db::open(scratch.path(), tiny().background_threads(threads)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let filter = Sneaky(std::sync::Mutex::new(Some((db.clone(), sender))));
        let k = db.keyspace("k", KeyspaceOptions::default().compaction_filter(filter)).unwrap();
        k.put("a", "1").unwrap();
        k.put("b", "2").unwrap();
        db.compact().unwrap();
        let snapshot = receiver.recv().unwrap();
        assert_eq!((seen(&snapshot, &k, "a"), seen(&snapshot, &k, "b")), (Some("1".into()), Some("2".into())));
        drop(snapshot);
        db.compact().unwrap();
        assert_eq!(k.iter().count(), 0);
    }
}

/// Operands that were written on top of a value, which is removed from below them.
#[test]
fn operands_on_what_is_removed_stay_unless_entries_can_expire() {
    type Merge = Box<dyn FnOnce() + Send>;
    struct Merges(std::sync::Mutex<Option<Merge>>);
    impl CompactionFilter for Merges {
        fn name(&self) -> &str {
            "merges"
        }
        fn decide(&self, _key: &[u8], value: &[u8]) -> Decision {
            if let Some(merge) = self.0.lock().unwrap().take() {
                // Not by this thread, which has the job: it would be refused.
                std::thread::spawn(merge).join().unwrap();
            }
            if value == b"1" { Decision::Remove } else { Decision::Keep }
        }
    }
    let mortal = Ttl::Enabled { default: None };
    for (ttl, expected, is_flushed) in [
        (Ttl::Disabled, Some("2"), true),
        (Ttl::Disabled, Some("2"), false),
        (mortal, None, true),
        // The operand is still in memory, on nothing.
        (mortal, None, false),
    ] {
        let scratch = Scratch::new(&format!("filter-operands-{}-{is_flushed}", ttl != Ttl::Disabled));
        let db = Db::open(scratch.path(), tiny().background_threads(0)).unwrap();
        let options = KeyspaceOptions::default().ttl(ttl).merge_operator(StringAppend::new(","));
        let k = db.keyspace("k", options.clone()).unwrap();
        k.put("a", "1").unwrap();
        let merging = k.clone();
        let merge: Merge = Box::new(move || merging.merge("a", "2").unwrap());
        db.keyspace("k", options.compaction_filter(Merges(std::sync::Mutex::new(Some(merge))))).unwrap();
        db.compact().unwrap();
        assert_eq!(get(&k, "a").as_deref(), expected, "{ttl:?}");
        if is_flushed {
            db.compact().unwrap();
            assert_eq!(get(&k, "a").as_deref(), expected, "{ttl:?}");
        }
        k.merge("a", "3").unwrap();
        k.merge("a", "4").unwrap();
        let expected: Vec<&str> = expected.into_iter().chain(["3", "4"]).collect();
        for _ in 0..2 {
            assert_eq!(get(&k, "a"), Some(expected.join(",")), "{ttl:?}, flushed: {is_flushed}");
            db.compact().unwrap();
        }
    }
}
