//! Reads of a follower that run while it catches up.

use crate::common::{DIRECTORY, Machine, keyspace};
use esker::{Db, FilterPolicy, Keyspace, KeyspaceOptions, MergeError, MergeOperator};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock};

/// Stops the next get where it searches a table, until it is told to go on.
struct Stops {
    next: AtomicBool,
    there: Barrier,
}

/// The policy itself.
struct Policy(Arc<Stops>);

impl FilterPolicy for Policy {
    fn name(&self) -> &str {
        "stops"
    }

    fn create_filter(&self, _: &[&[u8]]) -> Option<Vec<u8>> {
        Some(vec![0])
    }

    fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool {
        if self.0.next.swap(false, SeqCst) {
            self.0.there.wait();
            self.0.there.wait();
        }
        true
    }
}

#[test]
fn a_large_value_is_read_to_the_end_in_a_keyspace_that_was_dropped_meanwhile() {
    let machine = Machine::new();
    let stops = Arc::new(Stops { next: AtomicBool::new(false), there: Barrier::new(2) });
    let options = || machine.options().filter_policy(Arc::new(Policy(Arc::clone(&stops))));
    let db = Db::open(DIRECTORY, options()).unwrap();
    let value = vec![7; 100_000];
    for replaced_by in [None, Some("k")] {
        let k = keyspace(&db, "k");
        k.put("a", &value).unwrap();
        db.flush().unwrap();
        let follower = Db::open_follower(DIRECTORY, options()).unwrap();
        let followed = follower.db().existing_keyspace("k").unwrap();
        stops.next.store(true, SeqCst);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| followed.get("a"));
            stops.there.wait();
            db.drop_keyspace("k").unwrap();
            replaced_by.map(|name| keyspace(&db, name));
            let caught_up = follower.catch_up();
            stops.there.wait();
            caught_up.unwrap();
            let found = reader.join().unwrap().unwrap();
            assert!(found.as_deref() == Some(&value[..]), "replaced by {replaced_by:?}");
        });
    }
}

/// Appends, and reads a key whenever it does.
#[derive(Default)]
struct Looks {
    at: OnceLock<Keyspace>,
    found: Mutex<Vec<Option<Vec<u8>>>>,
}

struct Operator(Arc<Looks>);

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        "looks"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        Ok(Some([existing.unwrap_or_default(), &operands.concat()].concat()))
    }

    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        if let Some(keyspace) = self.0.at.get() {
            let found = keyspace.get("k").unwrap().map(|value| value.to_vec());
            self.0.found.lock().unwrap().push(found);
        }
        Some([older, newer].concat())
    }
}

/// As beside a writer: `a_range_replaced_in_one_batch_is_never_seen_empty`.
#[test]
fn a_range_replaced_in_one_batch_is_never_seen_empty() {
    let machine = Machine::new();
    let with = |looks: &Arc<Looks>| KeyspaceOptions::default().merge_operator(Operator(Arc::clone(looks)));
    let db = machine.open();
    let k = db.keyspace("k", with(&Arc::default())).unwrap();
    k.put("k", "old").unwrap();
    let follower = Db::open_follower(DIRECTORY, machine.options()).unwrap();
    let looks = Arc::<Looks>::default();
    let followed = follower.db().keyspace("k", with(&looks)).unwrap();
    looks.at.set(followed.clone()).expect("the first");
    let mut batch = db.batch();
    batch.delete_range(&k, "a"..).unwrap();
    // More than a memtable of a follower.
    for number in 0..40 {
        batch.put(&k, format!("filler{number}"), [1; 1000]).unwrap();
    }
    for operand in ["1", "2", "3"] {
        batch.merge(&k, "merged", operand).unwrap();
    }
    batch.put(&k, "k", "new").unwrap();
    batch.commit().unwrap();
    // The manifest of that tells a later number.
    keyspace(&db, "other").ingest([("a", "1")]).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(*looks.found.lock().unwrap(), vec![Some(b"old".to_vec()); 2]);
    assert_eq!(followed.get("k").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(followed.get("merged").unwrap().as_deref(), Some(&b"123"[..]));
    assert_eq!(followed.iter().count(), 42);
}
