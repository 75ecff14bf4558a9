//! A comparator that uses the database that calls it.

use super::By;
use crate::common::{DIRECTORY, Machine};
use esker::{Cursor, Db, Error, Keyspace, KeyspaceOptions, Snapshot};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What the comparator uses.
struct Used {
    db: Db,
    keyspace: Keyspace,
    snapshot: Snapshot,
}

static IN_CALLBACK: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);

fn is_refused<T>(result: esker::Result<T>) {
    match result {
        Err(Error::InCallback { .. }) => IN_CALLBACK.fetch_add(1, Relaxed),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a comparator got through"),
    };
}

/// Calls of every kind. Some are read first by the comparisons that they make themselves, until
/// those are ended.
fn use_all(Used { db, keyspace, snapshot }: &Used) {
    is_refused(keyspace.put("k", ""));
    is_refused(keyspace.delete_range("a".."b"));
    is_refused(db.flush());
    is_refused(db.keyspace("new", KeyspaceOptions::default()));
    is_refused(keyspace.iter().next().unwrap());
    is_refused(keyspace.first());
    is_refused(snapshot.get(keyspace, "k").and_then(|_| keyspace.count(..)));
    // Sorting a memtable holds a lock that these would take.
    is_refused(snapshot.iter(keyspace).next().unwrap());
    is_refused(snapshot.range(keyspace, "a"..).next_back().unwrap());
    is_refused(snapshot.cursor(keyspace).map(|_: Cursor| ()));
    is_refused(snapshot.first(keyspace));
    is_refused(snapshot.count(keyspace, ..));
    keyspace.get("k").unwrap();
    snapshot.get(keyspace, "k").unwrap();
    keyspace.approximate_size(..).unwrap();
    assert!(!db.stats().keyspaces.is_empty());
    assert!(!db.keyspaces().is_empty());
    READ.fetch_add(1, Relaxed);
}

#[test]
fn a_comparator_that_uses_its_database_is_refused_and_freezes_nothing() {
    for threads in [0, 1] {
        let used: Arc<OnceLock<Used>> = Arc::default();
        let calls = AtomicU64::new(0);
        let comparator = {
            let used = Arc::clone(&used);
            By("test.uses", move |a: &[u8], b: &[u8]| {
                // Not at each: it would take long.
                if calls.fetch_add(1, Relaxed).is_multiple_of(97)
                    && let Some(used) = used.get()
                {
                    use_all(used);
                }
                a.cmp(b)
            })
        };
        let comparator = Arc::new(comparator);
        let machine = Machine::new();
        let options = machine.options().background_threads(threads).comparator(comparator.clone());
        let db = Db::open(DIRECTORY, options).unwrap();
        let keyspace = db.keyspace("uses", KeyspaceOptions::default().shared_comparator(comparator)).unwrap();
        keyspace.put("k", "v").unwrap();
        let _ = used.set(Used { db: db.clone(), keyspace: keyspace.clone(), snapshot: db.snapshot() });
        for number in 0..2000u32 {
            keyspace.put((number * 7919 % 2000).to_string(), vec![7; 50]).unwrap();
            if number.is_multiple_of(100) {
                assert!(keyspace.iter().count() > number as usize / 2);
                assert!(keyspace.iter().next_back().is_some());
                keyspace.delete_range("1990".."1991").unwrap();
            }
        }
        db.compact().unwrap();
        db.wait_idle().unwrap();
        let mut transaction = db.transaction();
        transaction.put(&keyspace, "x", "").unwrap();
        assert!(transaction.iter(&keyspace).count() > 1900);
        transaction.commit().unwrap();
        keyspace.put("k", "after").unwrap();
        assert_eq!(keyspace.get("k").unwrap().unwrap(), "after");
        assert!(IN_CALLBACK.load(Relaxed) > 10 && READ.load(Relaxed) > 1, "{READ:?}");
        db.close().unwrap();
    }
}
