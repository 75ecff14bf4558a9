//! What a commit does and when it is refused.

use super::*;
use esker::WriteOptions;

#[test]
fn a_conflict_is_found_wherever_the_write_has_gone() {
    type Move = fn(&Db, &Keyspace);
    let moves: [(&str, Move); 5] = [
        ("in the memtable", |_, _| {}),
        ("in a table", |db, _| db.flush().unwrap()),
        ("merged to the bottom", |db, _| db.compact().unwrap()),
        ("behind many others", |db, k| {
            for number in 0..2000 {
                k.put(format!("z{number}"), [0; 100]).unwrap();
            }
            db.wait_idle().unwrap();
        }),
        ("overwritten and merged", |db, k| {
            db.flush().unwrap();
            k.put("b", "newest").unwrap();
            db.compact().unwrap();
        }),
    ];
    for (place, go) in moves {
        for write in ["put", "delete", "merge"] {
            for read in ["get", "range", "put"] {
                let db = Db::open("/db", simulated().write_buffer_bytes(1 << 15)).unwrap();
                let k = joining(&db, "k");
                k.put("b", "old").unwrap();
                db.compact().unwrap();
                let mut t = db.transaction();
                match read {
                    "get" => drop(t.get(&k, "b").unwrap()),
                    "range" => drop(t.range(&k, "a".."c").count()),
                    _ => t.put(&k, "b", "mine").unwrap(),
                }
                t.put(&k, "other", "mine").unwrap();
                match write {
                    "put" => k.put("b", "new").unwrap(),
                    "delete" => k.delete("b").unwrap(),
                    _ => k.merge("b", "new").unwrap(),
                }
                go(&db, &k);
                let after = text(k.get("b").unwrap());
                assert_eq!(conflict(t.commit()).as_deref(), Some("b"), "{write} after {read}, {place}");
                assert_eq!(text(k.get("b").unwrap()), after);
                assert_eq!(k.get("other").unwrap(), None);
            }
        }
    }
}

/// What was written before it began is no conflict, wherever it goes meanwhile.
#[test]
fn old_writes_that_move_are_no_conflict() {
    let db = database();
    let k = joining(&db, "k");
    let mut transactions = Vec::new();
    for step in 0..6 {
        for key in ["a", "b", "c"] {
            k.merge(key, "old").unwrap();
        }
        if step % 2 == 0 {
            db.flush().unwrap();
        }
        // The ones before hold back what can be folded.
        transactions.push(db.transaction());
    }
    let mut last = db.transaction();
    assert_eq!(last.iter(&k).count(), 3);
    last.merge(&k, "a", "new").unwrap();
    plain(&db, "other").put("a", "new").unwrap();
    drop(transactions);
    db.compact().unwrap();
    last.commit().unwrap();
    assert_eq!(text(k.get("a").unwrap()).unwrap(), "old,old,old,old,old,old,new");
}

#[test]
fn a_retry_after_a_conflict_succeeds() {
    let db = database();
    let c = counters(&db, "c");
    let add = |t: &mut Transaction| {
        let now = t.get(&c, "n")?.map_or(0, |value| u64::from_le_bytes((&*value).try_into().unwrap()));
        t.put(&c, "n", (now + 1).to_le_bytes())?;
        Ok(now)
    };
    let mut runs = 0;
    let seen = db.transact(3, |t| -> esker::Result<u64> {
        let now = add(t)?;
        runs += 1;
        if runs < 3 {
            c.merge("n", 10u64.to_le_bytes())?;
        }
        Ok(now)
    });
    assert_eq!((seen.unwrap(), runs), (20, 3));
    // Bounded.
    let mut runs = 0;
    let refused = db.transact(2, |t| {
        runs += 1;
        add(t)?;
        c.merge("n", 10u64.to_le_bytes())
    });
    assert!(matches!(refused, Err(Error::Conflict { .. })));
    assert_eq!(runs, 2);
    // Other errors are not tried again, and leave nothing.
    let before = pairs(c.iter());
    let mut runs = 0;
    let refused = db.transact(5, |t| {
        runs += 1;
        add(t)?;
        Err::<(), _>(Error::InvalidArgument { what: "on purpose".into() })
    });
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
    assert_eq!((runs, pairs(c.iter())), (1, before));
    assert_eq!(db.transact(0, |t| esker::Result::Ok(t.is_empty())).ok(), Some(true));
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let db = database();
    let k = with_keys(&db, &["a"]);
    let before = db.snapshot().sequence();
    for explicit in [true, false] {
        let mut t = db.transaction();
        t.put(&k, "a", "mine").unwrap();
        t.delete(&k, "b").unwrap();
        assert_eq!(t.iter(&k).count(), 1);
        if explicit {
            t.rollback();
        }
    }
    assert_eq!(pairs(k.iter()), "a=old");
    assert_eq!(db.snapshot().sequence(), before);
    // Nothing holds back old versions: they are folded again.
    k.put("a", "1").unwrap();
    k.put("a", "2").unwrap();
    db.compact().unwrap();
    let stats = db.stats();
    assert_eq!(stats.keyspaces.iter().flat_map(|keyspace| &keyspace.runs).map(|run| run.entries).sum::<u64>(), 1);
}

#[test]
fn several_keyspaces_commit_together() {
    let db = database();
    let (a, b) = (plain(&db, "a"), counters(&db, "b"));
    let mut t = db.transaction();
    t.put(&a, "x", "1").unwrap();
    t.merge(&b, "x", 1u64.to_le_bytes()).unwrap();
    assert_eq!(get(&mut t, &plain(&db, "later"), "x"), None);
    let snapshot = db.snapshot();
    t.commit_with(&WriteOptions::new().sync(true)).unwrap();
    assert_eq!((snapshot.iter(&a).count(), snapshot.iter(&b).count()), (0, 0));
    assert_eq!(db.snapshot().sequence(), snapshot.sequence() + 2);
    // The same key of another keyspace is no conflict; one of the two that were read is.
    let mut t = db.transaction();
    t.get(&a, "x").unwrap();
    t.put(&b, "y", 7u64.to_le_bytes()).unwrap();
    b.put("x", 9u64.to_le_bytes()).unwrap();
    t.commit().unwrap();
    let mut t = db.transaction();
    t.get(&a, "x").unwrap();
    t.put(&b, "y", 8u64.to_le_bytes()).unwrap();
    a.put("x", "2").unwrap();
    assert_eq!(conflict(t.commit()).unwrap(), "x");
    assert_eq!(b.get("y").unwrap().unwrap(), &7u64.to_le_bytes());
}

#[test]
fn a_transaction_may_be_larger_than_a_memtable() {
    let db = Db::open("/db", simulated().write_buffer_bytes(4096)).unwrap();
    let k = joining(&db, "k");
    k.put("00007", "old").unwrap();
    let mut t = db.transaction();
    for number in 0..3000 {
        t.merge(&k, format!("{number:05}"), "x".repeat(20)).unwrap();
    }
    assert_eq!(t.range(&k, ..="00010").count(), 11);
    t.commit().unwrap();
    assert_eq!(k.iter().count(), 3000);
    assert_eq!(text(k.get("00007").unwrap()).unwrap(), format!("old,{}", "x".repeat(20)));
    // Making room for it moves everything to tables between its first look and its commit: what
    // conflicts is found there.
    let mut t = db.transaction();
    for number in 0..3000 {
        t.put(&k, format!("{number:05}"), "mine").unwrap();
    }
    k.merge("02999", "y").unwrap();
    assert_eq!(conflict(t.commit()).unwrap(), "02999");
    assert!(!text(k.get("00000").unwrap()).unwrap().contains("mine"));
}

#[test]
fn a_handle_that_cannot_be_written_reads_and_refuses_the_commit() {
    let env = Arc::new(MemEnv::default());
    let options = || simulated().env(env.clone());
    let db = Db::open("/db", options()).unwrap();
    let k = with_keys(&db, &["a"]);
    let mut across = db.transaction();
    across.put(&k, "a", "mine").unwrap();
    let clone = db.clone();
    db.close().unwrap();
    for mut t in [across, clone.transaction()] {
        t.put(&k, "b", "mine").unwrap();
        assert_eq!(get(&mut t, &k, "b").unwrap(), "mine");
        assert!(matches!(t.commit(), Err(Error::ReadOnly { .. })));
    }
    let mut empty = clone.transaction();
    assert_eq!(get(&mut empty, &k, "a").unwrap(), "old");
    empty.commit().unwrap();
    drop((k, clone));

    let db = Db::open_read_only("/db", options()).unwrap();
    let k = db.existing_keyspace("k").unwrap();
    let mut t = db.transaction();
    assert_eq!(pairs(t.iter(&k)), "a=old");
    t.delete(&k, "a").unwrap();
    assert_eq!(pairs(t.iter(&k)), "");
    assert!(matches!(t.commit(), Err(Error::ReadOnly { .. })));
    assert_eq!(pairs(k.iter()), "a=old");
}

#[test]
fn keyspaces_of_another_database_and_bad_arguments_are_refused() {
    let (db, other) = (database(), database());
    let (k, foreign) = (plain(&db, "k"), plain(&other, "k"));
    let mut t = db.transaction();
    let refused = |result: Result<()>| assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
    refused(t.get(&foreign, "a").map(drop));
    refused(t.put(&foreign, "a", ""));
    refused(t.iter(&foreign).next().unwrap().map(drop));
    assert_eq!(t.iter(&foreign).filter(Result::is_ok).count(), 0);
    refused(t.merge(&k, "a", "no operator"));
    refused(t.put(&k, vec![0; (1 << 20) + 1], ""));
    assert!(t.is_empty());
    assert_eq!(t.iter(&k).count(), 0);
    t.commit().unwrap();
    let mut t = db.transaction();
    t.put(&k, "a", "").unwrap();
    refused(t.commit_with(&WriteOptions::new().sync(true).disable_wal(true)));
    assert_eq!(k.iter().count(), 0);
}
