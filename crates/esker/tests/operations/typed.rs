//! Typed keyspaces and counters, through every handle.

use crate::common::DIRECTORY;
use esker::env::mem::MemEnv;
use esker::typed::{EncodeKey, Postcard};
use esker::{Counters, Db, Error, KeyspaceOptions, ManualClock, Options, Result, Ttl, TypedKeyspace, merge};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

fn open() -> Db {
    Db::open(DIRECTORY, Options::default().env(Arc::new(MemEnv::new()))).unwrap()
}

type Logins = TypedKeyspace<(String, i32), String>;

fn logins(db: &Db) -> Logins {
    let logins: Logins = TypedKeyspace::open(db, "logins", Default::default()).unwrap();
    for (user, number) in [("a", 1), ("a", -7), ("a\0", 3), ("", 5), ("b", i32::MAX), ("a", 1000)] {
        logins.put((user, number), format!("{user} {number}")).unwrap();
    }
    logins
}

fn numbers(pairs: impl Iterator<Item = Result<((String, i32), String)>>) -> Vec<i32> {
    pairs
        .map(|pair| {
            let ((user, number), value) = pair.unwrap();
            assert_eq!(value, format!("{user} {number}"));
            number
        })
        .collect()
}

#[test]
fn scans_are_in_the_order_of_the_types_and_bounded_by_their_values() {
    let db = open();
    let logins = logins(&db);
    for _ in 0..2 {
        assert_eq!(numbers(logins.iter()), [5, -7, 1, 1000, 3, i32::MAX]);
        assert_eq!(numbers(logins.iter().rev()), [i32::MAX, 3, 1000, 1, -7, 5]);
        assert_eq!(numbers(logins.prefix(("a",))), [-7, 1, 1000]);
        assert_eq!(numbers(logins.prefix(("",))), [5]);
        assert_eq!(numbers(logins.range(("a", -6)..("a", 1000))), [1]);
        assert_eq!(numbers(logins.range(("a", -7)..=("a", 1000))), [-7, 1, 1000]);
        assert_eq!(numbers(logins.range((Bound::Excluded(("a", 1)), Bound::Unbounded))), [1000, 3, i32::MAX]);
        assert_eq!(numbers(logins.range(..=("a", -7))), [5, -7]);
        assert_eq!(numbers(logins.range(..)), [5, -7, 1, 1000, 3, i32::MAX]);
        assert_eq!(logins.count(("a", i32::MIN)..=("a", i32::MAX)).unwrap(), 3);
        assert_eq!(logins.first().unwrap().unwrap().0, (String::new(), 5));
        assert_eq!(logins.last().unwrap().unwrap().0, ("b".to_owned(), i32::MAX));
        let keys: Result<Vec<_>> = logins.prefix(("a",)).keys().rev().collect();
        assert_eq!(keys.unwrap().into_iter().map(|(_, number)| number).collect::<Vec<_>>(), [1000, 1, -7]);
        db.compact().unwrap();
    }
    logins.delete_prefix(("a",)).unwrap();
    assert_eq!(numbers(logins.iter()), [5, 3, i32::MAX]);
    logins.delete_range(("", 0)..("", 6)).unwrap();
    assert_eq!(numbers(logins.iter()), [3, i32::MAX]);
}

#[test]
fn a_string_key_is_that_of_the_keyspace_of_bytes() {
    let db = open();
    let born: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "born", Default::default()).unwrap();
    born.put("ada", 1815).unwrap();
    assert_eq!(born.keyspace().get("ada").unwrap().as_deref(), Some(&1815u32.to_le_bytes()[..]));
    assert_eq!(born.prefix("ad").count(), 1);
    assert!(born.contains_key("ada").unwrap() && !born.contains_key("ad").unwrap());
    assert_eq!(born.put_if_absent("ada", 1).unwrap(), Some(1815));
    assert_eq!(born.put_if_absent("bob", 1923).unwrap(), None);
    assert_eq!(born.take("bob").unwrap(), Some(1923));
    assert_eq!(born.get("bob").unwrap(), None);
}

#[test]
fn snapshots_batches_and_transactions_have_typed_forms() {
    let db = open();
    let logins = logins(&db);
    let snapshot = db.snapshot();
    let mut batch = db.batch();
    logins.in_batch(&mut batch).put(("c", 8), "c 8").unwrap();
    logins.in_batch(&mut batch).delete(("b", i32::MAX)).unwrap();
    logins.in_batch(&mut batch).delete_prefix(("a",)).unwrap();
    logins.in_batch(&mut batch).delete_range(("", i32::MIN)..=("", i32::MAX)).unwrap();
    batch.commit().unwrap();
    assert_eq!(numbers(logins.iter()), [3, 8]);
    let before = logins.at(&snapshot);
    assert_eq!(numbers(before.iter()), [5, -7, 1, 1000, 3, i32::MAX]);
    assert_eq!(numbers(before.prefix(("a",)).rev()), [1000, 1, -7]);
    assert_eq!(numbers(before.range(..("a", 0))), [5, -7]);
    assert_eq!(before.get(("b", i32::MAX)).unwrap().as_deref(), Some("b 2147483647"));
    assert!(!before.contains_key(("c", 8)).unwrap());

    let mut transaction = db.transaction();
    let mut inside = logins.in_transaction(&mut transaction);
    inside.put(("c", 9), "c 9").unwrap();
    inside.delete(("c", 8)).unwrap();
    assert_eq!(inside.get(("c", 9)).unwrap().as_deref(), Some("c 9"));
    assert!(!inside.contains_key(("c", 8)).unwrap());
    assert_eq!(numbers(inside.iter()), [3, 9]);
    assert_eq!(numbers(inside.prefix(("c",)).rev()), [9]);
    assert_eq!(numbers(inside.range(("c", 0)..)), [9]);
    inside.delete_range(..("b", 0)).unwrap();
    assert_eq!(numbers(logins.iter()), [3, 8]);
    transaction.commit().unwrap();
    assert_eq!(numbers(logins.iter()), [9]);
}

#[test]
fn what_is_no_encoding_is_an_error_that_names_the_keyspace_and_the_type_and_ends_no_scan() {
    let db = open();
    let born: TypedKeyspace<u16, u32> = TypedKeyspace::open(&db, "born", Default::default()).unwrap();
    born.put(1, 1815).unwrap();
    born.keyspace().put([0, 2], "1923").unwrap();
    born.keyspace().put([0, 3], "five!").unwrap();
    born.keyspace().put("ada", 7u32.to_le_bytes()).unwrap();
    born.put(u16::MAX, 7).unwrap();
    let check = |error: Error, part: &str, what: &str| {
        assert!(!error.is_retryable());
        let text = error.to_string();
        assert!(text.contains("\"born\"") && text.contains(part) && text.contains(what), "{text}");
        assert!(matches!(error, Error::Decode { expected: "u16" | "u32", .. }), "{error:?}");
    };
    check(born.get(3).unwrap_err(), "the value of key \\x00\\x03", "expected 4 bytes of a u32, found 5");
    let pairs: Vec<_> = born.iter().collect();
    assert_eq!(pairs.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, false, true]);
    assert_eq!(born.iter().rev().filter(Result::is_ok).count(), 3);
    let mut errors = pairs.into_iter().filter_map(Result::err);
    check(errors.next().unwrap(), "the value of key \\x00\\x03", "found 5");
    check(errors.next().unwrap(), "the key of key ada", "1 bytes more");
    assert_eq!(born.iter().keys().filter(Result::is_err).count(), 1);
    check(born.put_if_absent(3, 1).unwrap_err(), "value", "found 5");
    check(born.take(3).unwrap_err(), "value", "found 5");
    assert!(!born.contains_key(3).unwrap());
    check(born.at(&db.snapshot()).range(b'a' as u16 * 256..u16::MAX).next().unwrap().unwrap_err(), "key", "more");
}

#[test]
fn counters_add_without_reading_and_count_zero_where_nothing_was_counted() {
    let db = open();
    let hits: Counters<(String, u8)> = Counters::open(&db, "hits", Default::default()).unwrap();
    hits.add(("/", 1), 2).unwrap();
    hits.add(("/", 1), 3).unwrap();
    let snapshot = db.snapshot();
    let mut batch = db.batch();
    hits.in_batch(&mut batch).add(("/", 1), 10).unwrap();
    hits.in_batch(&mut batch).set(("/", 2), 7).unwrap();
    hits.in_batch(&mut batch).add(("/", 2), 1).unwrap();
    hits.in_batch(&mut batch).delete(("/", 3)).unwrap();
    batch.commit().unwrap();
    assert_eq!(hits.get(("/", 1)).unwrap(), 15);
    assert_eq!(hits.get_at(&snapshot, ("/", 1)).unwrap(), 5);
    assert_eq!(hits.get_at(&snapshot, ("/", 2)).unwrap(), 0);
    let mut transaction = db.transaction();
    hits.in_transaction(&mut transaction).add(("/", 1), 1).unwrap();
    assert_eq!(hits.in_transaction(&mut transaction).get(("/", 1)).unwrap(), 16);
    hits.in_transaction(&mut transaction).delete(("/", 2)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(hits.add_and_get(("/", 1), 4).unwrap(), 20);
    let all: Result<Vec<_>> = hits.prefix(("/",)).collect();
    assert_eq!(all.unwrap(), [(("/".to_owned(), 1), 20)]);
    assert_eq!(hits.range(("/", 2)..).count(), 0);
    hits.set(("/", 1), u64::MAX).unwrap();
    hits.add(("/", 1), 2).unwrap();
    assert_eq!(hits.get(("/", 1)).unwrap(), 1, "u64 wraps around");
    hits.delete(("/", 1)).unwrap();
    assert_eq!((hits.get(("/", 1)).unwrap(), hits.iter().count()), (0, 0));

    let stock: Counters<u32, i64> = Counters::open(&db, "stock", Default::default()).unwrap();
    stock.add(8, -12).unwrap();
    assert_eq!(stock.get(8).unwrap(), -12);
    stock.add(8, i64::MIN).unwrap();
    assert_eq!(stock.get(8).unwrap(), i64::MIN, "i64 stays at its limits");
}

#[test]
fn counters_are_refused_where_the_operator_adds_something_else() {
    let db = open();
    db.keyspace("stock", KeyspaceOptions::default().merge_operator(merge::Int64Add)).unwrap();
    let error = Counters::<String>::open(&db, "stock", Default::default()).unwrap_err();
    assert!(error.to_string().contains("int64add"), "{error}");
    let stock = db.existing_keyspace("stock").unwrap();
    let error = Counters::<String>::new(stock.clone()).unwrap_err();
    assert!(error.to_string().contains("\"stock\" has merge operator \"int64add\""), "{error}");
    assert!(Counters::<String, i64>::new(stock).is_ok());
    let plain = db.keyspace("plain", Default::default()).unwrap();
    let error = Counters::<String>::new(plain).unwrap_err();
    assert!(error.to_string().contains("no merge operator"), "{error}");
}

#[test]
fn counters_expire_in_a_keyspace_with_a_time_to_live() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options::default().env(Arc::new(MemEnv::new())).clock(clock.clone());
    let db = Db::open(DIRECTORY, options).unwrap();
    let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(Duration::from_secs(10)) });
    let hits: Counters<String> = Counters::open(&db, "hits", expiring).unwrap();
    hits.add("/", 1).unwrap();
    hits.add_with_ttl("/about", 1, Duration::from_secs(100)).unwrap();
    clock.advance(Duration::from_secs(11));
    assert_eq!((hits.get("/").unwrap(), hits.get("/about").unwrap()), (0, 1));
    hits.add("/", 1).unwrap();
    assert_eq!(hits.get("/").unwrap(), 1);
}

#[test]
fn merges_with_a_time_to_live_have_typed_forms() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options::default().env(Arc::new(MemEnv::new())).clock(clock.clone());
    let db = Db::open(DIRECTORY, options).unwrap();
    let expiring = || KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    let hits: Counters<u32> = Counters::open(&db, "hits", expiring()).unwrap();
    let best: TypedKeyspace<u32, u32> =
        TypedKeyspace::open(&db, "best", expiring().merge_operator(merge::Max)).unwrap();
    let (short, long) = (Duration::from_secs(10), Duration::from_secs(100));
    best.merge_with_ttl(1, 7, short).unwrap();
    let mut batch = db.batch();
    best.in_batch(&mut batch).merge_with_ttl(2, 7, short).unwrap();
    best.in_batch(&mut batch).merge_with_ttl(3, 7, long).unwrap();
    hits.in_batch(&mut batch).add_with_ttl(1, 5, short).unwrap();
    hits.in_batch(&mut batch).add_with_ttl(2, 5, long).unwrap();
    batch.commit().unwrap();
    let mut transaction = db.transaction();
    best.in_transaction(&mut transaction).merge_with_ttl(4, 7, short).unwrap();
    hits.in_transaction(&mut transaction).add_with_ttl(2, 1, short).unwrap();
    hits.in_transaction(&mut transaction).set(3, 9).unwrap();
    assert_eq!(hits.in_transaction(&mut transaction).get(2).unwrap(), 6);
    transaction.commit().unwrap();
    assert_eq!(best.count(..).unwrap(), 4);
    assert_eq!([1u32, 2, 3].map(|key| hits.get(key).unwrap()), [5, 6, 9]);
    clock.advance(Duration::from_secs(11));
    assert_eq!([1u32, 2, 3, 4].map(|key| best.get(key).unwrap()), [None, None, Some(7), None]);
    assert_eq!([1u32, 2, 3].map(|key| hits.get(key).unwrap()), [0, 0, 9]);
    best.delete_range_with(3.., &esker::WriteOptions::new().sync(true)).unwrap();
    assert_eq!(best.get(3).unwrap(), None);
}

#[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug, Clone)]
struct User {
    name: String,
    tags: Vec<String>,
    born: Option<u16>,
}

#[test]
fn values_of_serde_are_stored_and_another_type_is_an_error() {
    let db = open();
    let users: TypedKeyspace<u64, Postcard<User>> = TypedKeyspace::open(&db, "users", Default::default()).unwrap();
    let ada = User { name: "Ada".into(), tags: vec!["first".into()], born: Some(1815) };
    users.put(7, Postcard(ada.clone())).unwrap();
    assert_eq!(users.get(7).unwrap().unwrap().0, ada);
    assert_eq!(users.get(7).unwrap().unwrap().name, "Ada");
    let other: TypedKeyspace<u64, Postcard<(u8, bool)>> = TypedKeyspace::new(users.keyspace().clone());
    let error = other.get(7).unwrap_err();
    assert!(matches!(&error, Error::Decode { part: "value", .. }), "{error}");
}

/// A key of the program's own, and one too long.
#[test]
fn a_key_beyond_the_limit_is_refused_before_anything_is_written() {
    struct Long;
    impl EncodeKey<Vec<u8>> for Long {
        fn encode_element(&self, out: &mut Vec<u8>) {
            out.resize((1 << 20) + 1, 0);
        }
    }
    let db = open();
    let typed: TypedKeyspace<Vec<u8>, ()> = TypedKeyspace::open(&db, "k", Default::default()).unwrap();
    assert!(matches!(typed.put(Long, ()), Err(Error::InvalidArgument { .. })));
    assert_eq!(typed.iter().count(), 0);
}
