//! Calls made of other calls.

use crate::common::{Machine, PLACES, Place, keyspace, settle};
use esker::merge::StringAppend;
use esker::{Db, Error, KeyRange, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Slice, Ttl, WriteOptions};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keys, some of them deleted again.
fn numbers(machine: &Machine, place: Place) -> (Db, Keyspace) {
    let db = machine.open();
    let numbers = keyspace(&db, "numbers");
    for number in 0..100 {
        numbers.put(format!("{number:02}"), number.to_string()).unwrap();
    }
    settle(&db, place);
    for number in [0, 1, 50, 99] {
        numbers.delete(format!("{number:02}")).unwrap();
    }
    (db, numbers)
}

#[test]
fn first_and_last_pass_deleted_keys() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, numbers) = numbers(&machine, place);
        let snapshot = db.snapshot();
        let mut transaction = db.transaction();
        transaction.delete(&numbers, "02").unwrap();
        numbers.put("/", "").unwrap();
        let key = |pair: Option<(Slice, Slice)>| String::from_utf8(pair.unwrap().0.to_vec()).unwrap();
        assert_eq!((key(numbers.first().unwrap()), key(numbers.last().unwrap())), ("/".into(), "98".into()));
        assert_eq!(key(snapshot.first(&numbers).unwrap()), "02");
        assert_eq!(key(snapshot.last(&numbers).unwrap()), "98");
        assert_eq!(key(transaction.first(&numbers).unwrap()), "03");
        assert_eq!(key(transaction.last(&numbers).unwrap()), "98");
        assert!(numbers.contains_key("98").unwrap() && !numbers.contains_key("99").unwrap());
        assert!(snapshot.contains_key(&numbers, "02").unwrap() && !snapshot.contains_key(&numbers, "/").unwrap());
        assert!(!transaction.contains_key(&numbers, "02").unwrap());
        // It read what is before 03: somebody else wrote there.
        assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    }
}

#[test]
fn a_count_is_that_of_an_iterator_for_every_form_of_range() {
    let machine = Machine::new();
    let (db, numbers) = numbers(&machine, Place::Memtable);
    let check = |range: &dyn KeyRange| {
        let (lower, upper) = range.bounds();
        let bounds = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        assert_eq!(numbers.count(range).unwrap(), numbers.range(bounds).count() as u64);
    };
    check(&(..));
    check(&("03".."50"));
    check(&("50"..));
    check(&(.."50"));
    check(&("03"..="51"));
    check(&(..="51"));
    check(&("x".."a"));
    for (lower, upper) in [("00", "99"), ("02", "98"), ("50", "50"), ("51", "51"), ("", "zz")] {
        check(&(Bound::Excluded(lower), Bound::Included(upper)));
        check(&(Bound::Included(lower), Bound::Excluded(upper)));
        check(&(Bound::Excluded(lower), Bound::<&str>::Unbounded));
    }
    assert_eq!(numbers.count(..).unwrap(), 96);
    drop(db);
}

#[test]
fn a_prefix_is_deleted_and_nothing_else() {
    let machine = Machine::new();
    let (db, numbers) = numbers(&machine, Place::Memtable);
    numbers.put([0xff, 0xff], "").unwrap();
    numbers.delete_prefix("9").unwrap();
    assert_eq!((numbers.prefix("9").count(), numbers.count(..).unwrap()), (0, 97 - 9));
    let mut batch = db.batch();
    batch.delete_prefix(&numbers, [0xff]).unwrap();
    batch.put(&numbers, "90", "").unwrap();
    batch.commit().unwrap();
    let mut transaction = db.transaction();
    transaction.delete_prefix(&numbers, "8").unwrap();
    assert_eq!(transaction.prefix(&numbers, "8").count(), 0);
    transaction.commit().unwrap();
    assert_eq!(numbers.count("8"..).unwrap(), 1);
    numbers.delete_prefix("").unwrap();
    assert_eq!(numbers.count(..).unwrap(), 0);
}

#[test]
fn every_first_key_is_popped_by_one_thread() {
    let machine = Machine::new();
    let (_db, numbers) = numbers(&machine, Place::Memtable);
    let popped = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = Vec::new();
                while let Some((key, value)) = numbers.pop_first().unwrap() {
                    assert!(*key > *last, "{key:?} after {last:?}");
                    last = key.into();
                    popped.fetch_add(std::str::from_utf8(&value).unwrap().parse::<u64>().unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(popped.into_inner(), (0..100).sum::<u64>() - 1 - 50 - 99);
    assert!(numbers.first().unwrap().is_none());
}

/// Has another thread write to the key whenever one thread reads it.
struct Disturbing {
    reader: std::thread::ThreadId,
    reads: AtomicU64,
    /// Begins a write, and waits for its end.
    write: Mutex<(Sender<()>, Receiver<()>)>,
}

impl MergeOperator for Disturbing {
    fn name(&self) -> &str {
        "disturbing"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        if std::thread::current().id() != self.reader {
            // So the operands stay, and each read combines them.
            return Err(MergeError("for reads only".into()));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let write = self.write.lock().unwrap();
        write.0.send(()).unwrap();
        write.1.recv().unwrap();
        Ok(operands.last().map(|last| last.to_vec()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_pop_that_meets_a_write_each_time_gives_up_after_a_thousand() {
    let machine = Machine::new();
    let db = machine.open();
    let ((begin, begun), (end, ended)) = (channel(), channel());
    let write = Mutex::new((begin, ended));
    let disturbing = Arc::new(Disturbing { reader: std::thread::current().id(), reads: AtomicU64::new(0), write });
    let shared: Arc<dyn MergeOperator> = disturbing.clone();
    let options = KeyspaceOptions::default().shared_merge_operator(shared);
    let jobs = db.keyspace("jobs", options).unwrap();
    jobs.merge("a", "0").unwrap();
    let writing = jobs.clone();
    let writer = std::thread::spawn(move || {
        while begun.recv().is_ok() {
            writing.merge("a", "1").unwrap();
            end.send(()).unwrap();
        }
    });
    let refused = jobs.pop_first();
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert_eq!(disturbing.reads.load(Ordering::Relaxed), 1000);
    assert!(jobs.contains_key("a").unwrap(), "nothing was deleted");
    drop((jobs, db));
    *disturbing.write.lock().unwrap() = (channel().0, channel().1);
    writer.join().unwrap();
}

#[derive(Debug, PartialEq)]
enum Refused {
    Empty,
    Failed(String),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Failed(error.to_string())
    }
}

/// An error of the body's own ends the transaction, and nothing of it is committed.
#[test]
fn a_transaction_whose_body_fails_in_its_own_way_is_not_committed() {
    let machine = Machine::new();
    let db = machine.open();
    let numbers = keyspace(&db, "numbers");
    let mut runs = 0;
    let refused: Result<(), Refused> = db.transact(10, |transaction| {
        runs += 1;
        transaction.put(&numbers, "a", "1")?;
        Err(Refused::Empty)
    });
    assert_eq!((refused, runs), (Err(Refused::Empty), 1));
    assert!(!numbers.contains_key("a").unwrap());
    // After a conflict the body runs again.
    let mut runs = 0;
    let written: Result<u32, Refused> = db.transact(10, |transaction| {
        runs += 1;
        transaction.get(&numbers, "a")?;
        if runs < 3 {
            numbers.put("a", runs.to_string())?;
        }
        transaction.put(&numbers, "a", "mine")?;
        Ok(runs)
    });
    assert_eq!(written, Ok(3));
    assert_eq!(numbers.get("a").unwrap().unwrap(), "mine");
    let always: Result<(), Refused> = db.transact(2, |transaction| {
        transaction.get(&numbers, "a")?;
        numbers.put("a", "theirs")?;
        Ok(transaction.put(&numbers, "a", "mine")?)
    });
    assert!(matches!(always, Err(Refused::Failed(_))));
    assert_eq!(numbers.get("a").unwrap().unwrap(), "theirs");
}

#[test]
fn a_range_of_everything_needs_no_type_of_keys() {
    let machine = Machine::new();
    let db = machine.open();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    let mut transaction = db.transaction();
    transaction.put(&k, "b", "2").unwrap();
    assert_eq!(k.range(..).count(), 1);
    assert_eq!(db.snapshot().range(&k, ..).count(), 1);
    assert_eq!(transaction.range(&k, ..).count(), 2);
}

#[test]
fn the_error_of_an_operator_goes_where_errors_go() {
    fn refused() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err(MergeError("3 bytes, not 8".to_owned()))?;
        Ok(())
    }
    assert_eq!(refused().unwrap_err().to_string(), "3 bytes, not 8");
}

fn expiring(db: &Db) -> Keyspace {
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(StringAppend::new(","));
    db.keyspace("expiring", options).unwrap()
}

/// The keys at both ends, as text.
fn ends(keyspace: &Keyspace) -> Option<(String, String)> {
    let key = |pair: (Slice, Slice)| String::from_utf8(pair.0.into()).unwrap();
    Some((key(keyspace.first().unwrap()?), key(keyspace.last().unwrap()?)))
}

fn both(first: &str, last: &str) -> Option<(String, String)> {
    Some((first.to_owned(), last.to_owned()))
}

#[test]
fn expired_and_deleted_keys_have_no_value_and_merged_ones_have() {
    for place in PLACES {
        let machine = Machine::new();
        let db = Db::open(crate::common::DIRECTORY, machine.options().min_blob_size(50)).unwrap();
        let k = expiring(&db);
        let minute = Duration::from_secs(60);
        for key in ["a", "b", "y", "z"] {
            k.put_with_ttl(key, key.repeat(100), minute).unwrap();
        }
        for key in ["c", "d", "w", "x"] {
            k.put(key, "").unwrap();
        }
        k.merge_with("m", "1", &WriteOptions::new().ttl(2 * minute)).unwrap();
        k.merge("m", "2").unwrap();
        settle(&db, place);
        assert_eq!(ends(&k), both("a", "z"));
        assert!(k.contains_key("a").unwrap() && k.contains_key("c").unwrap() && k.contains_key("m").unwrap());
        let (snapshot, mut transaction) = (db.snapshot(), db.transaction());
        machine.clock.advance(minute);
        assert_eq!(ends(&k), both("c", "x"));
        assert!(!k.contains_key("a").unwrap());
        assert_eq!((k.count(..).unwrap(), k.count("b"..="d").unwrap()), (5, 2));
        k.delete_range("c".."d").unwrap();
        k.delete_prefix("x").unwrap();
        assert_eq!(ends(&k), both("d", "w"));
        assert!(!k.contains_key("c").unwrap() && !k.contains_key("x").unwrap());
        machine.clock.advance(minute);
        assert!(!k.contains_key("m").unwrap());
        assert_eq!(k.pop_first().unwrap().unwrap().0, "d");
        assert_eq!((ends(&k), k.count(..).unwrap()), (both("w", "w"), 1));
        // What a snapshot and a transaction see stays as it was, beside the writes of the latter.
        assert_eq!((snapshot.count(&k, ..).unwrap(), snapshot.first(&k).unwrap().unwrap().1.len()), (9, 100));
        assert!(snapshot.contains_key(&k, "a").unwrap());
        transaction.delete_prefix(&k, "a").unwrap();
        assert_eq!(transaction.pop_first(&k).unwrap().unwrap().0, "b");
        transaction.put(&k, "B", "").unwrap();
        transaction.put_with_ttl(&k, "~", "", minute).unwrap();
        assert_eq!(transaction.first(&k).unwrap().unwrap().0, "B");
        assert_eq!(transaction.last(&k).unwrap().unwrap().0, "~");
        assert_eq!((transaction.count(&k, ..).unwrap(), transaction.count(&k, "C".."~").unwrap()), (9, 7));
        // It counted where others have written since.
        assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    }
}

/// Fails for operands that say so.
#[derive(Debug)]
struct Fragile;

impl MergeOperator for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        match operands {
            [.., b"fail"] => Err(MergeError("on purpose".into())),
            [.., b"delete"] => Ok(None),
            operands => Ok(Some(operands.concat())),
        }
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn operands_decide_whether_there_is_a_value() {
    let machine = Machine::new();
    let db = machine.open();
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(Fragile)).unwrap();
    k.put("a", "1").unwrap();
    k.merge("a", "delete").unwrap();
    k.put("b", "1").unwrap();
    k.merge("b", "fail").unwrap();
    k.put("c", "1").unwrap();
    let failed = |error: Option<Error>| matches!(error, Some(Error::MergeFailed { .. }));
    assert!(!k.contains_key("a").unwrap());
    assert!(failed(k.contains_key("b").err()) && failed(k.count(..).err()));
    // A key that cannot be read is not passed over.
    assert!(failed(k.first().err()) && failed(k.pop_first().err()));
    assert_eq!((k.last().unwrap().unwrap().0, k.count("c"..).unwrap()), (Slice::from(b"c".to_vec()), 1));
    k.put("b", "2").unwrap();
    assert_eq!(k.pop_first().unwrap().unwrap().1, "2");
}

#[test]
fn another_database_and_a_prefix_longer_than_a_key_are_refused() {
    let (machine, other) = (Machine::new(), Machine::new());
    let (db, others) = (machine.open(), other.open());
    let (k, foreign) = (keyspace(&db, "k"), keyspace(&others, "k"));
    k.put("a", "").unwrap();
    let refused = |error: Option<Error>| assert!(matches!(error, Some(Error::InvalidArgument { .. })), "{error:?}");
    let snapshot = db.snapshot();
    refused(snapshot.contains_key(&foreign, "a").err());
    refused(snapshot.first(&foreign).err());
    refused(snapshot.last(&foreign).err());
    refused(snapshot.count(&foreign, ..).err());
    let mut transaction = db.transaction();
    refused(transaction.contains_key(&foreign, "a").err());
    refused(transaction.first(&foreign).err());
    refused(transaction.last(&foreign).err());
    refused(transaction.count(&foreign, ..).err());
    refused(transaction.pop_first(&foreign).err());
    refused(transaction.delete_prefix(&foreign, "a").err());
    refused(db.batch().delete_prefix(&foreign, "a").err());
    refused(k.put_with_ttl("b", "", Duration::from_secs(1)).err());
    refused(expiring(&db).put_with_ttl("b", "", Duration::ZERO).err());
    for byte in [0, 0xff] {
        refused(k.delete_prefix(vec![byte; (1 << 20) + 2]).err());
        k.delete_prefix(vec![byte; 1 << 20]).unwrap();
        assert!(!k.contains_key(vec![byte; 1 << 20]).unwrap());
    }
    assert_eq!(k.count(..).unwrap(), 1);
}

/// A range of a program's own, with other bounds at each call.
struct Shrinking(Cell<u8>);

impl KeyRange for Shrinking {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        self.0.set(self.0.get() + 1);
        if self.0.get() == 1 {
            (Bound::Unbounded, Bound::Excluded(b"b"))
        } else {
            (Bound::Unbounded, Bound::Excluded(b"a"))
        }
    }
}

#[test]
fn a_range_is_asked_once() {
    let machine = Machine::new();
    let db = machine.open();
    let k = keyspace(&db, "k");
    k.put("a", "").unwrap();
    let mut transaction = db.transaction();
    transaction.delete_range(&k, Shrinking(Cell::new(0))).unwrap();
    assert!(!transaction.contains_key(&k, "a").unwrap());
    transaction.commit().unwrap();
    assert_eq!(k.count(Shrinking(Cell::new(0))).unwrap(), 0);
}

/// The consumers of a queue take each job once, in order, while producers add behind it.
#[test]
fn a_queue_loses_and_repeats_nothing_beside_its_producers() {
    const JOBS: u32 = 300;
    let machine = Machine::new();
    let db = machine.open();
    let (jobs, done) = (keyspace(&db, "jobs"), keyspace(&db, "done"));
    let added = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for job in 0..JOBS {
                jobs.put(job.to_be_bytes(), "").unwrap();
            }
            added.store(1, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let all_added = added.load(Ordering::SeqCst) == 1;
                    let moved = db.transact(usize::MAX, |transaction| -> esker::Result<bool> {
                        let Some((job, _)) = transaction.pop_first(&jobs)? else { return Ok(false) };
                        assert!(!transaction.contains_key(&done, &job)?);
                        transaction.put(&done, job, "")?;
                        Ok(true)
                    });
                    if !moved.unwrap() && all_added {
                        break;
                    }
                }
            });
        }
    });
    assert_eq!((jobs.count(..).unwrap(), done.count(..).unwrap()), (0, u64::from(JOBS)));
}
