//! The database is used by a thread that is ending: what the engine keeps for the thread may be
//! gone already.

use crate::common::{DIRECTORY, Machine, keyspace};
use esker::merge::{StringAppend, UInt64Add};
use esker::{Compression, Counters, Db, KeyspaceOptions, TypedKeyspace, WriteOptions};
use std::cell::RefCell;

/// Uses the database when the thread ends.
struct AtTheEnd(Db, &'static str);

/// Keys and values that are encoded.
fn use_typed(db: &Db, who: &str) {
    let born: TypedKeyspace<(String, i32), String> = TypedKeyspace::open(db, "born", Default::default()).unwrap();
    born.put((who, 1), "1815").unwrap();
    assert_eq!(born.get((who, 1)).unwrap().as_deref(), Some("1815"));
    let mut batch = db.batch();
    born.in_batch(&mut batch).put((who, 2), "1816").unwrap();
    batch.commit().unwrap();
    db.transact(1, |transaction| born.in_transaction(transaction).put((who, 3), "1817")).unwrap();
    assert_eq!(born.prefix((who,)).map(Result::unwrap).count(), 3);
    let visits: Counters<String> = Counters::open(db, "visits", Default::default()).unwrap();
    visits.add("all", 1).unwrap();
    assert_eq!(visits.add_and_get(who, 2).unwrap(), 2);
}

/// Values that are compressed, in blocks of tables and in files of their own.
fn use_compressed(db: &Db, who: &str) {
    for (name, bytes) in [("in blocks", 900), ("large", 5000)] {
        let k = keyspace(db, name);
        let value = vec![7u8; bytes];
        k.put(who, &value).unwrap();
        let is_there = || k.get(who).unwrap().as_deref() == Some(&value[..]);
        assert!(is_there());
        db.flush().unwrap();
        assert!(is_there());
        db.compact().unwrap();
        assert!(is_there());
        assert_eq!(k.iter().rev().filter(|pair| pair.as_ref().unwrap().0 == who.as_bytes()).count(), 1);
    }
}

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
    use_typed(db, who);
    use_compressed(db, who);
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
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        if compression.is_available() {
            use_at_the_end(compression);
        }
    }
}

fn use_at_the_end(compression: Compression) {
    let options = Machine::new().options().compression(compression).upper_compression(compression);
    let db = Db::open(DIRECTORY, options.min_blob_size(1 << 10)).unwrap();
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
    let visits: Counters<String> = Counters::open(&db, "visits", Default::default()).unwrap();
    assert_eq!(visits.get("all").unwrap(), 3);
}
