//! The database is used by a thread that is ending: what the engine keeps for the thread may be
//! gone already.

use crate::common::{Machine, keyspace};
use esker::merge::{StringAppend, UInt64Add};
use esker::{Db, KeyspaceOptions, WriteOptions};
use std::cell::RefCell;

/// Uses the database when the thread ends.
struct AtTheEnd(Db, &'static str);

fn use_all(db: &Db, who: &str) {
    let plain = keyspace(db, "plain");
    plain.put(who, "1815").unwrap();
    assert_eq!(plain.get(who).unwrap().as_deref(), Some(&b"1815"[..]));
    assert!(plain.get_into(who, &mut Vec::new()).unwrap());
    let list = db.keyspace("list", KeyspaceOptions::default().merge_operator(StringAppend::new(","))).unwrap();
    list.merge("all", who).unwrap();
    let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
    for unlogged in [false, true, true] {
        hits.merge_with("all", 1u64.to_le_bytes(), &WriteOptions::new().disable_wal(unlogged)).unwrap();
    }
    let snapshot = db.snapshot();
    plain.delete(who).unwrap();
    assert!(snapshot.get(&plain, who).unwrap().is_some() && plain.get(who).unwrap().is_none());
    let mut batch = db.batch();
    batch.put(&plain, who, "1816").unwrap();
    batch.commit().unwrap();
    assert!(plain.iter().any(|pair| pair.unwrap().0 == who.as_bytes()));
    db.transact(1, |transaction| transaction.put(&plain, who, "1817")).unwrap();
    db.flush().unwrap();
    assert_eq!(plain.multi_get([who]).pop().unwrap().unwrap().as_deref(), Some(&b"1817"[..]));
}

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        use_all(&self.0, self.1);
    }
}

thread_local! {
    static BEFORE: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    static AFTER: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Trap: a write in the destructor of a thread-local value ends the process. Such values go in one
/// order or the other, so one is made before the engine makes its own, and one after.
#[test]
fn destructors_of_thread_local_values_may_use_the_database() {
    let db = Machine::new().open();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            BEFORE.set(Some(AtTheEnd(db.clone(), "before")));
            use_all(&db, "alive");
            AFTER.set(Some(AtTheEnd(db.clone(), "after")));
        });
        // The end of the scope waits for the closure only, and not for the destructors.
        thread.join().unwrap();
    });
    let plain = keyspace(&db, "plain");
    for who in ["alive", "before", "after"] {
        assert_eq!(plain.get(who).unwrap().as_deref(), Some(&b"1817"[..]), "{who}");
    }
    let list = db.existing_keyspace("list").unwrap();
    assert_eq!(list.get("all").unwrap().unwrap().len(), "alive,before,after".len());
    assert_eq!(db.existing_keyspace("hits").unwrap().get("all").unwrap().as_deref(), Some(&9u64.to_le_bytes()[..]));
}
