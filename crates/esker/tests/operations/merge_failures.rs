//! An operator that fails or panics harms reads of its key, and nothing else.

use crate::merge_support::{Scratch, inline, is_merge_failure, moody, text};
use esker::{Db, Error, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Snapshot};

const BAD: [&str; 2] = ["bad 1", "bad 2"];

/// `bad 1` has a value below its operands, `bad 2` has none; `good` lies between them.
fn fill(k: &Keyspace, operand: &str) {
    k.put("bad 1", "v").unwrap();
    k.put("bad 1a good", "g").unwrap();
    for key in BAD {
        k.merge(key, "1").unwrap();
        k.merge(key, operand).unwrap();
        k.merge(key, "2").unwrap();
    }
    k.merge("bad 1a good", "h").unwrap();
}

/// Every way of reading: the bad keys fail, each once and by name, the others are as they should
/// be.
fn check(k: &Keyspace, snapshot: Option<&Snapshot>) {
    let get = |key: &str| match snapshot {
        Some(snapshot) => snapshot.get(k, key),
        None => k.get(key),
    };
    for key in BAD {
        match get(key) {
            Err(Error::MergeFailed { keyspace, key: named, operator, .. }) => {
                assert_eq!((&*keyspace, &*named, &*operator), ("k", key, "moody"));
            }
            other => panic!("{key}: {other:?}"),
        }
    }
    assert_eq!(text(get("bad 1a good").unwrap()).as_deref(), Some("gh"));
    let iter = || match snapshot {
        Some(snapshot) => snapshot.iter(k),
        None => k.iter(),
    };
    let shapes = |items: Vec<esker::Result<_>>| items.iter().map(is_merge_failure).collect::<Vec<_>>();
    assert_eq!(shapes(iter().collect()), [true, false, true]);
    assert_eq!(shapes(iter().rev().collect()), [true, false, true]);
    let mut both_ends = iter();
    assert!(is_merge_failure(&both_ends.next().unwrap()) && is_merge_failure(&both_ends.next_back().unwrap()));
    assert_eq!(both_ends.next().unwrap().unwrap().1.to_vec(), b"gh");
    assert!(both_ends.next_back().is_none() && both_ends.next().is_none());
}

/// Trap: an operator's failure is handled where reads are, and forgotten where operands are
/// combined: in memory, flushes and compactions.
#[test]
fn only_reads_of_the_key_fail_wherever_its_operands_lie() {
    for operand in ["panic", "error"] {
        for partial in [false, true] {
            let scratch = Scratch::new(&format!("failures-{operand}-{partial}"));
            let db = Db::open(scratch.path(), inline()).unwrap();
            let k = moody(&db, partial);
            fill(&k, operand);
            check(&k, None);
            let failed = db.health().failed_merges;
            assert_eq!(failed, 2 + 2 + 2 + 2, "two gets, three scans that meet two each");
            // Under a snapshot, in every place.
            let snapshot = db.snapshot();
            k.merge("bad 1", "3").unwrap();
            k.merge("bad 2", "3").unwrap();
            check(&k, Some(&snapshot));
            db.flush().unwrap();
            check(&k, Some(&snapshot));
            check(&k, None);
            // In an upper run, above a last one.
            k.merge("bad 1", "4").unwrap();
            k.put("other", "o").unwrap();
            k.delete("other").unwrap();
            db.flush().unwrap();
            check(&k, None);
            db.compact().unwrap();
            check(&k, Some(&snapshot));
            drop(snapshot);
            db.compact().unwrap();
            check(&k, None);
            // After a reopen, with the operands in the log and in tables.
            k.merge("bad 2", "5").unwrap();
            drop((k, db));
            let db = Db::open(scratch.path(), inline()).unwrap();
            let k = moody(&db, partial);
            check(&k, None);
            let health = db.health();
            assert!(health.writable && health.problem.is_none(), "{health:?}");
            assert!(health.failed_merges >= 8, "{health:?}");
            db.verify().unwrap();
            heal(&db, &k);
        }
    }
}

fn heal(db: &Db, k: &Keyspace) {
    k.put("bad 1", "new").unwrap();
    k.delete("bad 2").unwrap();
    k.merge("bad 2", "n").unwrap();
    for _ in 0..2 {
        assert_eq!(text(k.get("bad 1").unwrap()).as_deref(), Some("new"));
        assert_eq!(text(k.get("bad 2").unwrap()).as_deref(), Some("n"));
        assert!(k.iter().all(|item| item.is_ok()));
        db.compact().unwrap();
    }
}

/// Trap: the good operands around a bad one get lost when it is kept. They are all there for an
/// operator that has learnt.
#[test]
fn operands_are_kept_as_they_were_for_an_operator_that_can() {
    struct Learnt;
    impl MergeOperator for Learnt {
        fn name(&self) -> &str {
            "moody"
        }
        fn full_merge(
            &self,
            _: &[u8],
            existing: Option<&[u8]>,
            parts: &[&[u8]],
        ) -> Result<Option<Vec<u8>>, MergeError> {
            Ok(Some([&[existing.unwrap_or_default()], parts].concat().join(&b"+"[..])))
        }
        fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
            None
        }
    }
    for compact in [false, true] {
        let scratch = Scratch::new(&format!("learnt-{compact}"));
        let db = Db::open(scratch.path(), inline()).unwrap();
        let k = moody(&db, false);
        k.put("a", "v").unwrap();
        db.flush().unwrap();
        for operand in ["1", "panic", "2", "error", "3"] {
            k.merge("a", operand).unwrap();
        }
        if compact {
            db.compact().unwrap();
        }
        assert!(is_merge_failure(&k.get("a")));
        drop((k, db));
        let db = Db::open(scratch.path(), inline()).unwrap();
        let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(Learnt)).unwrap();
        assert_eq!(text(k.get("a").unwrap()).as_deref(), Some("v+1+panic+2+error+3"));
    }
}

/// Trap: `check_operand` is the user's code too. Nothing is written, alone or in a batch, and the
/// batch goes on without the operand.
#[test]
fn an_operand_whose_check_panics_is_refused() {
    let scratch = Scratch::new("check-operand");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = moody(&db, true);
    let mut batch = db.batch();
    batch.merge(&k, "a", "1").unwrap();
    for operand in ["panic at check", "refused"] {
        for result in [k.merge("a", operand), batch.merge(&k, "a", operand)] {
            assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
        }
    }
    assert_eq!(db.stats().last_sequence, 0);
    assert_eq!(batch.len(), 1);
    batch.commit().unwrap();
    assert_eq!(text(k.get("a").unwrap()).as_deref(), Some("1"));
}

/// Grows without end.
struct Swells;

impl MergeOperator for Swells {
    fn name(&self) -> &str {
        "swells"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        Ok(Some(vec![0; (1 << 30) + 1]))
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        Some(vec![0; (1 << 30) + 1])
    }
}

/// Trap: limits are checked where values come in, and operators make values of their own. A result
/// longer than a value may be is a failure.
#[test]
fn a_result_that_is_too_long_is_a_failure() {
    let scratch = Scratch::new("too-long");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(Swells)).unwrap();
    k.put("a", "v").unwrap();
    for _ in 0..3 {
        k.merge("a", "1").unwrap();
        k.merge("b", "1").unwrap();
        match k.get("a") {
            Err(Error::MergeFailed { reason, .. }) => assert!(reason.contains("1073741825"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert!(k.iter().all(|item| is_merge_failure(&item)));
        db.compact().unwrap();
    }
    assert_eq!(db.stats().keyspaces[0].entries, 7);
    k.put("a", "w").unwrap();
    assert_eq!(text(k.get("a").unwrap()).as_deref(), Some("w"));
}

/// Trap: a delete by an operator at the edge of a snapshot comes back, or takes what is below with
/// it.
#[test]
fn deletes_by_an_operator_are_deletes() {
    let scratch = Scratch::new("delete");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = moody(&db, false);
    k.put("a", "v").unwrap();
    db.flush().unwrap();
    let before = db.snapshot();
    k.merge("a", "1").unwrap();
    k.merge("a", "delete").unwrap();
    let deleted = db.snapshot();
    k.merge("a", "2").unwrap();
    for step in 0..3 {
        assert_eq!(text(before.get(&k, "a").unwrap()).as_deref(), Some("v"), "{step}");
        assert_eq!(text(deleted.get(&k, "a").unwrap()), None, "{step}");
        assert_eq!(deleted.iter(&k).count() + deleted.iter(&k).rev().count(), 0, "{step}");
        assert_eq!(text(k.get("a").unwrap()).as_deref(), Some("2"), "{step}");
        if step == 0 { db.flush().unwrap() } else { db.compact().unwrap() }
    }
}
