//! Reads of a follower that run while it catches up.

use crate::common::{DIRECTORY, Machine, keyspace};
use esker::{Db, FilterPolicy};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};

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
