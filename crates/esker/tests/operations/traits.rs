//! What programs expect of types beside their functions: to be keys of maps, to end for good.

use crate::common::DIRECTORY;
use esker::env::mem::MemEnv;
use esker::{
    ChangeRetention, CheckpointMode, CompactionStyle, CompareAndSwap, Compression, Db, Decision, Error, Expiry,
    MetricKind, MetricUnit, Options, Origin, Profile, ReadMode, ReverseBytewise, Slice, StallCause, StallPolicy, Ttl,
    TypedKeyspace, WalMode, WriteOptions,
};
use std::fmt::Debug;
use std::hash::Hash;
use std::iter::FusedIterator;
use std::sync::Arc;

fn open() -> Db {
    Db::open(DIRECTORY, Options::default().env(Arc::new(MemEnv::new()))).unwrap()
}

fn may_be_a_key<T: Clone + Eq + Hash + Debug>() {}
fn may_be_taken<T: Default>() {}

#[test]
fn what_has_an_equal_may_be_a_key() {
    may_be_a_key::<Slice>();
    may_be_a_key::<ChangeRetention>();
    may_be_a_key::<CheckpointMode>();
    may_be_a_key::<CompactionStyle>();
    may_be_a_key::<CompareAndSwap>();
    may_be_a_key::<Compression>();
    may_be_a_key::<Decision>();
    may_be_a_key::<Expiry>();
    may_be_a_key::<MetricKind>();
    may_be_a_key::<MetricUnit>();
    may_be_a_key::<Origin>();
    may_be_a_key::<Profile>();
    may_be_a_key::<ReadMode>();
    may_be_a_key::<ReverseBytewise>();
    may_be_a_key::<StallCause>();
    may_be_a_key::<StallPolicy>();
    may_be_a_key::<Ttl>();
    may_be_a_key::<WalMode>();
    may_be_a_key::<WriteOptions>();
    may_be_taken::<Slice>();
}

/// Takes everything, and then asks both ends again.
fn ends_for_good<T>(mut pairs: impl DoubleEndedIterator<Item = T> + FusedIterator) -> usize {
    let taken = pairs.by_ref().count();
    for _ in 0..3 {
        assert!(pairs.next_back().is_none() && pairs.next().is_none());
    }
    taken
}

#[test]
fn what_has_ended_has_ended_at_both_ends() {
    let db = open();
    let born: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "born", Default::default()).unwrap();
    for (name, year) in [("ada", 1815), ("bob", 1923), ("eve", 1990)] {
        born.put(name, year).unwrap();
    }
    let (names, snapshot) = (born.keyspace(), db.snapshot());
    for _ in 0..2 {
        assert_eq!(ends_for_good(names.iter()), 3);
        assert_eq!(ends_for_good(names.iter().rev()), 3);
        assert_eq!(ends_for_good(names.range("b".."c").keys()), 1);
        assert_eq!(ends_for_good(names.range("x"..)), 0);
        assert_eq!(ends_for_good(snapshot.prefix(names, "e")), 1);
        assert_eq!(ends_for_good(born.iter()), 3);
        assert_eq!(ends_for_good(born.range("b"..).keys()), 2);
        let mut transaction = db.transaction();
        transaction.put(names, "zoe", 1u32.to_le_bytes()).unwrap();
        assert_eq!(ends_for_good(transaction.iter(names)), 4);
        assert_eq!(ends_for_good(transaction.range(names, "c"..)), 2);
        assert_eq!(ends_for_good(born.in_transaction(&mut transaction).iter()), 4);
        db.compact().unwrap();
    }
}

#[test]
fn a_keyspace_is_gone_through_in_a_loop() {
    let db = open();
    let born: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "born", Default::default()).unwrap();
    born.put("ada", 1815).unwrap();
    for pair in &born {
        assert_eq!(pair.unwrap(), ("ada".to_owned(), 1815));
    }
    for pair in born.keyspace() {
        assert_eq!(pair.unwrap().0, "ada");
    }
}

#[test]
fn a_refused_scan_is_one_error_and_then_ended() {
    let (db, other) = (open(), open());
    let names = db.keyspace("names", Default::default()).unwrap();
    names.put("ada", "1815").unwrap();
    assert_eq!(ends_for_good(other.snapshot().iter(&names)), 1);
    assert_eq!(ends_for_good(other.snapshot().iter(&names).keys().rev()), 1);
    assert_eq!(ends_for_good(other.transaction().iter(&names)), 1);
}

/// An error can be boxed, shown and matched: text alone could not.
#[test]
fn an_unknown_profile_is_an_error_like_others() {
    let error: Box<dyn std::error::Error + Send + Sync> = "fast".parse::<Profile>().unwrap_err().into();
    assert!(error.to_string().contains("\"fast\"") && error.to_string().contains("read-heavy"), "{error}");
    assert!(matches!(error.downcast_ref::<Error>(), Some(Error::InvalidArgument { .. })));
    assert!(
        Profile::ALL.iter().all(|profile| profile.name().parse::<Profile>().is_ok_and(|parsed| parsed == *profile))
    );
}
