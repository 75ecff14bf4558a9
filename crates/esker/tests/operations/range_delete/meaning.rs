//! What is deleted and what is not, wherever it lies.

use super::{counters, fill, keys, number, open, tiny};
use esker::Db;
use esker::env::mem::MemEnv;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn what_is_older_goes_wherever_it_lies_and_what_is_newer_stays() {
    for (entries_in, tombstone_in) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
        let env = MemEnv::default();
        let (db, k) = open(&env);
        fill(&k, 1);
        let step = |depth: u32| match depth {
            0 => {}
            1 => db.flush().unwrap(),
            _ => db.compact().unwrap(),
        };
        step(entries_in);
        let before = db.snapshot();
        k.delete_range("b".."d").unwrap();
        let between = db.snapshot();
        k.put("c", number(2)).unwrap();
        step(tombstone_in);
        assert_eq!(keys(&k), ["a", "c", "d", "e"], "{entries_in} {tombstone_in}");
        assert_eq!(before.iter(&k).count(), 5);
        assert_eq!(before.iter(&k).rev().count(), 5);
        assert!(before.get(&k, "b").unwrap().is_some() && between.get(&k, "b").unwrap().is_none());
        assert_eq!(between.iter(&k).count(), 3);
        assert_eq!(between.iter(&k).rev().count(), 3);
        drop(between);
        db.compact().unwrap();
        assert_eq!(keys(&k), ["a", "c", "d", "e"]);
        assert_eq!(before.iter(&k).count(), 5);
        assert_eq!(before.get(&k, "c").unwrap().as_deref(), Some(&number(1)[..]));
        drop(before);
        db.compact().unwrap();
        assert_eq!(keys(&k), ["a", "c", "d", "e"]);
        assert_eq!(db.stats().table_files, 4, "one table each, and none for what is deleted");
        db.verify().unwrap();
    }
}

#[test]
fn bounds_of_every_kind_and_ranges_without_keys() {
    let deleted = |delete: &dyn Fn(&esker::Keyspace)| {
        let (_db, k) = open(&MemEnv::default());
        k.put("", "empty key").unwrap();
        fill(&k, 1);
        delete(&k);
        keys(&k).concat() + if k.get("").unwrap().is_some() { "+" } else { "" }
    };
    assert_eq!(deleted(&|k| k.delete_range("b".."d").unwrap()), "ade+");
    assert_eq!(deleted(&|k| k.delete_range("b"..="d").unwrap()), "ae+");
    assert_eq!(deleted(&|k| k.delete_range("b"..).unwrap()), "a+");
    assert_eq!(deleted(&|k| k.delete_range(.."b").unwrap()), "bcde");
    assert_eq!(deleted(&|k| k.delete_range(..="").unwrap()), "abcde");
    assert_eq!(deleted(&|k| k.delete_range((Bound::Excluded("b"), Bound::Unbounded)).unwrap()), "ab+");
    assert_eq!(deleted(&|k| k.delete_range(..).unwrap()), "");
    let (db, k) = open(&MemEnv::default());
    fill(&k, 1);
    let before = db.stats();
    for (from, to) in [("b", "b"), ("d", "b"), ("", "")] {
        k.delete_range(from..to).unwrap();
        k.delete_range_with(from..to, &esker::WriteOptions::new().sync(true)).unwrap();
    }
    let after = db.stats();
    assert_eq!((before.last_sequence, before.wal_bytes), (after.last_sequence, after.wal_bytes));
    assert_eq!(keys(&k).len(), 5);
    assert!(k.delete_range(vec![0u8; (1 << 20) + 2]..).is_err());
    let longest = vec![0xffu8; 1 << 20];
    k.put(&longest, "longest").unwrap();
    k.delete_range(longest.clone()..=longest.clone()).unwrap();
    db.flush().unwrap();
    assert!(k.get(&longest).unwrap().is_none());
}

/// The range delete takes its place among the operations of its batch.
#[test]
fn in_one_batch_with_puts_before_and_after() {
    let env = MemEnv::default();
    let (db, k) = open(&env);
    fill(&k, 1);
    let mut batch = db.batch();
    batch.put(&k, "bb", "hidden").unwrap();
    batch.merge(&k, "c", number(5)).unwrap();
    batch.delete_range(&k, "b".."d").unwrap();
    batch.put(&k, "b", number(7)).unwrap();
    batch.merge(&k, "c", number(9)).unwrap();
    batch.delete_range(&k, "e".."a").unwrap();
    assert_eq!(batch.len(), 5, "a range without keys is not counted");
    batch.commit().unwrap();
    let check = |k: &esker::Keyspace| {
        assert_eq!(keys(k), ["a", "b", "c", "d", "e"]);
        assert_eq!(k.get("b").unwrap().as_deref(), Some(&number(7)[..]));
        assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(9)[..]));
    };
    check(&k);
    drop((k, db));
    let (db, k) = open(&env);
    check(&k);
    db.flush().unwrap();
    check(&k);
    db.compact().unwrap();
    check(&k);
}

/// A merge above a range delete starts from nothing, and is not folded into what lies below it.
#[test]
fn merges_do_not_reach_across() {
    for depth in 0..3 {
        for held in [false, true] {
            let (db, k) = open(&MemEnv::default());
            k.put("c", number(1)).unwrap();
            k.merge("c", number(10)).unwrap();
            k.merge("d", number(10)).unwrap();
            let _held = held.then(|| db.snapshot());
            if depth > 0 {
                db.flush().unwrap();
            }
            k.delete_range("c"..).unwrap();
            if depth > 1 {
                db.flush().unwrap();
            }
            let _held_too = held.then(|| db.snapshot());
            for _ in 0..2 {
                k.merge("c", number(100)).unwrap();
                k.merge("d", number(200)).unwrap();
            }
            let check = || {
                assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(200)[..]), "{depth} {held}");
                let scanned: Vec<_> = k.iter().rev().map(|pair| pair.unwrap().1.to_vec()).collect();
                assert_eq!(scanned, [number(400), number(200)]);
                let scanned: Vec<_> = k.iter().map(|pair| pair.unwrap().1.to_vec()).collect();
                assert_eq!(scanned, [number(200), number(400)]);
            };
            check();
            db.flush().unwrap();
            check();
            db.compact().unwrap();
            check();
        }
    }
}

/// Eight-byte values are changed in place, but not across a range delete.
#[test]
fn a_put_over_a_deleted_one_is_new() {
    let (db, k) = open(&MemEnv::default());
    k.put("c", number(1)).unwrap();
    k.delete_range("a".."z").unwrap();
    assert!(k.get("c").unwrap().is_none());
    k.put("c", number(2)).unwrap();
    assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(2)[..]));
    let snapshot = db.snapshot();
    k.delete_range("a".."z").unwrap();
    k.put("c", number(3)).unwrap();
    k.put("c", number(4)).unwrap();
    assert_eq!(snapshot.get(&k, "c").unwrap().as_deref(), Some(&number(2)[..]));
    assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(4)[..]));
    db.flush().unwrap();
    assert_eq!(snapshot.get(&k, "c").unwrap().as_deref(), Some(&number(2)[..]));
    assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(4)[..]));
}

/// A cursor that turns around at a hole made by a range delete lands where a fresh seek would.
#[test]
fn cursors_turn_around_at_holes() {
    let (db, k) = open(&MemEnv::default());
    for i in 0..100 {
        k.put(format!("{i:02}"), "v").unwrap();
        if i % 30 == 0 {
            db.flush().unwrap();
        }
    }
    db.compact().unwrap();
    k.delete_range("10".."20").unwrap();
    db.flush().unwrap();
    k.delete_range("15".."40").unwrap();
    k.put("17", "new").unwrap();
    k.delete_range("90"..).unwrap();
    let mut cursor = k.cursor().unwrap();
    cursor.seek("12").unwrap();
    let mut seen = Vec::new();
    for step in ["", "prev", "next", "next", "prev", "prev", "next", "next"] {
        match step {
            "prev" => cursor.prev().unwrap(),
            "next" => cursor.next().unwrap(),
            _ => {}
        }
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
    }
    assert_eq!(seen, ["17", "09", "17", "40", "17", "09", "17", "40"]);
    cursor.seek("95").unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_last().unwrap();
    assert_eq!(cursor.key(), b"89");
    cursor.next().unwrap();
    assert!(!cursor.valid());
    cursor.seek_for_prev("95").unwrap();
    assert_eq!(cursor.key(), b"89");
    assert_eq!(k.range("12".."39").count(), 1);
    assert_eq!(k.range("12".."39").rev().count(), 1);
}

/// Many tombstones on the same keys in one memtable take memory in proportion to their number, not
/// to its square.
#[test]
fn a_moving_front_of_deletes_stays_small() {
    let db = Db::open("/db", tiny(&MemEnv::default()).write_buffer_bytes(64 << 20)).unwrap();
    let k = counters(&db);
    for i in 0..3000u32 {
        k.put(format!("{i:08}"), number(1)).unwrap();
        k.delete_range(..format!("{i:08}")).unwrap();
    }
    assert!(db.stats().memtable_bytes < 4 << 20, "{} bytes", db.stats().memtable_bytes);
    assert_eq!(keys(&k), ["00002999"]);
    db.flush().unwrap();
    assert_eq!(keys(&k), ["00002999"]);
}

/// A batch that replaces a range never shows it empty to a read of one key.
#[test]
fn a_range_replaced_in_one_batch_is_never_seen_empty() {
    let options = tiny(&MemEnv::default()).background_threads(1).target_file_bytes(1 << 20);
    let db = Db::open("/db", options.wal_segment_bytes(16 << 20)).unwrap();
    let k = counters(&db);
    let replace = |round: u64| {
        let mut batch = db.batch();
        batch.delete_range(&k, "a"..).unwrap();
        // Between the range delete and the puts, readers have time to look.
        for i in 0..1000 {
            batch.put(&k, format!("filler{i}"), "").unwrap();
        }
        for key in ["e", "a", "c"] {
            batch.merge(&k, key, number(round)).unwrap();
        }
        batch.commit().unwrap();
    };
    replace(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut newest = 0;
            while !done.load(Ordering::Relaxed) {
                for key in ["a", "c", "e"] {
                    let value = k.get(key).unwrap().expect(key).to_vec();
                    let round = u64::from_le_bytes(value.try_into().unwrap());
                    assert!(round + 1 >= newest && round <= 300, "{round} after {newest}: values were added up");
                    newest = newest.max(round);
                }
            }
        });
        for round in 1..=300 {
            if !reader.is_finished() {
                replace(round);
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}
