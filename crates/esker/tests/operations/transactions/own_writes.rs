//! A transaction sees its own writes on top of its snapshot.

use super::*;
use esker::{MergeError, MergeOperator};

#[test]
fn gets_and_scans_see_own_writes() {
    let db = database();
    let k = joining(&db, "k");
    for key in ["b", "d", "f"] {
        k.put(key, "old").unwrap();
    }
    db.flush().unwrap();
    let mut t = db.transaction();
    t.put(&k, "a", "1").unwrap();
    t.put(&k, "b", "1").unwrap();
    t.delete(&k, "d").unwrap();
    t.merge(&k, "f", "1").unwrap();
    t.merge(&k, "f", "2").unwrap();
    t.merge(&k, "g", "1").unwrap();
    t.put(&k, "h", "1").unwrap();
    t.delete(&k, "h").unwrap();
    t.merge(&k, "h", "2").unwrap();
    t.put(&k, "i", "1").unwrap();
    t.merge(&k, "i", "2").unwrap();
    t.delete(&k, "i").unwrap();
    // Others write meanwhile: not seen.
    k.put("c", "others'").unwrap();
    k.put("f", "others'").unwrap();
    let all = "a=1 b=1 f=old,1,2 g=1 h=2";
    assert_eq!(pairs(t.iter(&k)), all);
    let backward: Vec<&str> = all.split(' ').rev().collect();
    assert_eq!(pairs(t.iter(&k).rev()), backward.join(" "));
    assert_eq!(pairs(t.range(&k, "b".."h")), "b=1 f=old,1,2 g=1");
    assert_eq!(pairs(t.prefix(&k, "g")), "g=1");
    assert_eq!(get(&mut t, &k, "d"), None);
    assert_eq!(get(&mut t, &k, "i"), None);
    assert_eq!(get(&mut t, &k, "f").unwrap(), "old,1,2");
    // What a get has merged is not merged again.
    t.merge(&k, "f", "3").unwrap();
    assert_eq!(get(&mut t, &k, "f").unwrap(), "old,1,2,3");
    assert_eq!(pairs(t.range(&k, "e"..).rev()), "h=2 g=1 f=old,1,2,3");
    assert_eq!(t.len(), 13);
    assert_eq!(conflict(t.commit()).unwrap(), "f");
}

#[test]
fn what_it_saw_is_what_is_there_after_the_commit() {
    let db = database();
    let k = joining(&db, "k");
    for key in ["a", "b", "c", "d"] {
        k.merge(key, "old").unwrap();
    }
    let mut t = db.transaction();
    for key in ["a", "c", "e"] {
        t.merge(&k, key, "1").unwrap();
        t.merge(&k, key, "2").unwrap();
    }
    t.delete(&k, "b").unwrap();
    t.put(&k, "d", "").unwrap();
    let seen = pairs(t.iter(&k));
    t.commit().unwrap();
    assert_eq!(pairs(k.iter()), seen);
    db.compact().unwrap();
    assert_eq!(pairs(k.iter()), seen);
    assert_eq!(seen, "a=old,1,2 c=old,1,2 d= e=1,2");
}

/// From both ends in turn, so that each end has looked ahead at a key that the other one takes.
#[test]
fn the_ends_of_a_scan_meet_once() {
    let db = database();
    let k = with_keys(&db, &["b", "d", "f"]);
    let mut t = db.transaction();
    for key in ["a", "c", "d", "e"] {
        t.put(&k, key, "own").unwrap();
    }
    t.delete(&k, "f").unwrap();
    let all = ["a", "b", "c", "d", "e"];
    for pattern in 0_u32..1 << 6 {
        let mut scan = t.iter(&k);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for step in 0..6 {
            let forward = pattern >> step & 1 == 0;
            let item = if forward { scan.next() } else { scan.next_back() };
            let Some(pair) = item else { continue };
            let key = String::from_utf8(pair.unwrap().0.to_vec()).unwrap();
            if forward { front.push(key) } else { back.insert(0, key) }
        }
        front.append(&mut back);
        assert_eq!(front, all, "pattern {pattern:b}");
        assert!(scan.next().is_none() && scan.next_back().is_none());
    }
}

/// Fails at whatever contains "bad".
struct Picky;

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        let all: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        let all = all.concat();
        if all.windows(3).any(|window| window == b"bad") { Err(MergeError("bad".into())) } else { Ok(Some(all)) }
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn an_operator_that_fails_harms_one_key() {
    let db = database();
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(Picky)).unwrap();
    k.merge("b", "bad").unwrap();
    k.put("c", "good").unwrap();
    k.merge("d", "bad").unwrap();
    let mut t = db.transaction();
    t.put(&k, "a", "1").unwrap();
    t.merge(&k, "c", "bad").unwrap();
    // Hides the snapshot's failure, because it does not need the value.
    t.put(&k, "d", "1").unwrap();
    t.merge(&k, "e", "1").unwrap();
    let shown = |scan: &mut dyn Iterator<Item = Result<(Slice, Slice)>>| -> Vec<String> {
        let item = |item: Result<(Slice, Slice)>| match item {
            Ok((key, _)) => key.escape_ascii().to_string(),
            Err(Error::MergeFailed { key, .. }) => format!("{key} failed"),
            Err(error) => panic!("{error}"),
        };
        scan.map(item).collect()
    };
    assert_eq!(shown(&mut t.iter(&k)), ["a", "b failed", "c failed", "d", "e"]);
    assert_eq!(shown(&mut t.iter(&k).rev()), ["e", "d", "c failed", "b failed", "a"]);
    for key in ["b", "c"] {
        assert!(matches!(t.get(&k, key), Err(Error::MergeFailed { .. })));
    }
    // As without a transaction, a merge that cannot be combined is written all the same.
    t.commit().unwrap();
    assert!(matches!(k.get("c"), Err(Error::MergeFailed { .. })));
    assert_eq!(text(k.get("d").unwrap()).unwrap(), "1");
}

#[test]
fn an_own_range_delete_hides_what_was_there_and_not_what_comes_after() {
    let db = database();
    let keyspace = with_keys(&db, &["a", "b", "c", "d"]);
    let mut transaction = db.transaction();
    transaction.put(&keyspace, "bb", "own").unwrap();
    transaction.delete_range(&keyspace, "b".."d").unwrap();
    transaction.put(&keyspace, "c", "new").unwrap();
    for key in ["b", "bb"] {
        assert_eq!(transaction.get(&keyspace, key).unwrap(), None);
    }
    assert_eq!(transaction.get(&keyspace, "c").unwrap().as_deref(), Some(&b"new"[..]));
    let keys = |pairs: Vec<esker::Result<(esker::Slice, esker::Slice)>>| -> Vec<Vec<u8>> {
        pairs.into_iter().map(|pair| pair.unwrap().0.to_vec()).collect()
    };
    assert_eq!(keys(transaction.iter(&keyspace).collect()), [b"a", b"c", b"d"]);
    assert_eq!(keys(transaction.iter(&keyspace).rev().collect()), [b"d", b"c", b"a"]);
    transaction.commit().unwrap();
    assert_eq!(keys(keyspace.iter().collect()), [b"a", b"c", b"d"]);

    let mut late = db.transaction();
    late.delete_range(&keyspace, "b"..).unwrap();
    keyspace.put("cc", "somebody else's").unwrap();
    assert!(matches!(late.commit(), Err(esker::Error::Conflict { .. })));
}
