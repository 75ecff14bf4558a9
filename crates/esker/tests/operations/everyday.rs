//! What is short to say and made of other operations.

use crate::common::{Machine, PLACES, keyspace, settle};
use esker::{Error, KeyRange, Slice};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys, some of them deleted again.
fn numbers(machine: &Machine, place: crate::common::Place) -> (esker::Db, esker::Keyspace) {
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
    let (db, numbers) = numbers(&machine, crate::common::Place::Memtable);
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
    let (db, numbers) = numbers(&machine, crate::common::Place::Memtable);
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
    let (_db, numbers) = numbers(&machine, crate::common::Place::Memtable);
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
    let refused: Result<(), Refused> = db.try_transact(10, |transaction| {
        runs += 1;
        transaction.put(&numbers, "a", "1")?;
        Err(Refused::Empty)
    });
    assert_eq!((refused, runs), (Err(Refused::Empty), 1));
    assert!(!numbers.contains_key("a").unwrap());
    // After a conflict the body runs again.
    let mut runs = 0;
    let written: Result<u32, Refused> = db.try_transact(10, |transaction| {
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
    let always: Result<(), Refused> = db.try_transact(2, |transaction| {
        transaction.get(&numbers, "a")?;
        numbers.put("a", "theirs")?;
        Ok(transaction.put(&numbers, "a", "mine")?)
    });
    assert!(matches!(always, Err(Refused::Failed(_))));
    assert_eq!(numbers.get("a").unwrap().unwrap(), "theirs");
}
