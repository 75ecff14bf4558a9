//! Merge operators of the user's own: panicking, missing, and mistaken for another.

use crate::common::Scratch;
use esker::{Db, Error, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Options};

/// Appends operands; panics at one that says so.
struct Joins;

fn join(parts: &[&[u8]]) -> Vec<u8> {
    assert!(parts.iter().all(|part| !part.starts_with(b"boom")), "the operator was told to panic");
    parts.concat()
}

impl MergeOperator for Joins {
    fn name(&self) -> &str {
        "joins"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(Some(join(&parts)))
    }

    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(join(&[older, newer]))
    }
}

fn joining(db: &Db) -> Keyspace {
    db.keyspace("k", KeyspaceOptions::default().merge_operator(Joins)).unwrap()
}

fn value(k: &Keyspace, key: &str) -> Option<String> {
    k.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Seen: the next write on any key failed, or waited for ever. Trigger: an operator that panicked
/// while the memtable combined two operands, under the writer lock. Cost: the handle, for one bad
/// operand.
#[test]
fn a_panicking_operator_harms_reads_of_its_key_only() {
    for threads in [0, 1] {
        let scratch = Scratch::new("panicking");
        let db = Db::open(scratch.path(), Options::default().background_threads(threads)).unwrap();
        let k = joining(&db);
        k.put("good", "1").unwrap();
        k.put("bad", "1").unwrap();
        // In the memtable: on a value, and on an operand.
        for operand in ["2", "boom", "3", "boom"] {
            k.merge("bad", operand).unwrap();
            k.merge("bad without a value", operand).unwrap();
        }
        k.merge("good", "2").unwrap();
        assert!(matches!(k.get("bad"), Err(Error::MergeFailed { .. })));
        assert_eq!(db.health().failed_merges, 1);
        // In a flush and in a compaction.
        db.flush().unwrap();
        k.merge("bad", "4").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert!(matches!(k.get("bad"), Err(Error::MergeFailed { .. })));
        assert!(matches!(k.get("bad without a value"), Err(Error::MergeFailed { .. })));
        assert_eq!(k.iter().filter(|item| item.is_err()).count(), 2);
        let health = db.health();
        assert!(health.writable && health.problem.is_none() && health.failed_merges >= 5, "{health:?}");
        k.merge("good", "3").unwrap();
        assert_eq!(value(&k, "good").as_deref(), Some("123"));
        k.put("bad", "again").unwrap();
        k.merge("bad", "!").unwrap();
        assert_eq!(value(&k, "bad").as_deref(), Some("again!"));
    }
}

/// Seen: a keyspace whose operator was supplied late never combined operands in memory again.
/// Trigger: opening it without the operator first. Cost: memory and reads that walk every operand
/// since.
#[test]
fn an_operator_supplied_late_makes_merges_readable_and_folds_them() {
    let scratch = Scratch::new("late");
    let options = || Options::default().background_threads(0);
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = joining(&db);
    k.put("merged", "a").unwrap();
    db.flush().unwrap();
    k.merge("merged", "b").unwrap();
    k.put("plain", "p").unwrap();
    drop((k, db));

    let db = Db::open(scratch.path(), options()).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    assert_eq!(k.merge_operator().as_deref(), Some("joins"));
    match k.get("merged") {
        Err(Error::MissingMergeOperator { keyspace, operator }) => assert_eq!((&*keyspace, &*operator), ("k", "joins")),
        other => panic!("{other:?}"),
    }
    assert_eq!(value(&k, "plain").as_deref(), Some("p"));
    k.put("plain", "q").unwrap();
    k.merge("merged", "c").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert!(matches!(k.get("merged"), Err(Error::MissingMergeOperator { .. })));

    let k = joining(&db);
    assert_eq!(value(&k, "merged").as_deref(), Some("abc"));
    for _ in 0..1000 {
        k.merge("fresh", "x").unwrap();
    }
    assert_eq!(value(&k, "fresh").map(|value| value.len()), Some(1000));
    db.flush().unwrap();
    let entries = db.stats().keyspaces[0].entries;
    assert!(entries <= 10, "{entries} entries for three keys");
    assert_eq!(value(&k, "merged").as_deref(), Some("abc"));
}

/// Opening with another operator, or with one where there is none, names both.
#[test]
fn another_operator_is_refused_and_both_are_named() {
    let scratch = Scratch::new("other-operator");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    drop(joining(&db));
    db.keyspace("none", KeyspaceOptions::default()).unwrap();
    let adding = || KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add);
    for (keyspace, stored) in [("k", "joins"), ("none", "none")] {
        let error = db.keyspace(keyspace, adding()).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(stored) && text.contains("uint64add"), "{text}");
    }
    joining(&db).merge("a", "1").unwrap();
}
