//! Operands that are not combined at once are combined soon: no read walks thousands of them.
//!
//! What is counted is `Stats::longest_merge_chain`, not time.

use crate::merge_support::{Moody, Scratch, inline};
use esker::merge::{Int64Add, StringAppend};
use esker::{Db, Keyspace, KeyspaceOptions, Snapshot};

const MERGES: usize = 100_000;
/// What one memtable keeps apart, in two of them.
const SHORT: u64 = 128;

fn append() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(StringAppend::new(""))
}

fn declining() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(Moody { partial: false })
}

fn letter(n: usize) -> [u8; 1] {
    [b'a' + (n % 26) as u8]
}

/// The value after that many merges on top of `base`.
fn expected(base: &str, merges: usize) -> Vec<u8> {
    base.bytes().chain((0..merges).flat_map(letter)).collect()
}

/// Where the key's value was before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Base {
    None,
    Memory,
    Table,
}

/// Merges into a key, keeping a snapshot every so often, and checks all that can be read, again and
/// again.
fn run(name: &str, options: fn() -> KeyspaceOptions, base: Base, snapshot_every: Option<usize>, closes: bool) {
    let scratch = Scratch::new(&format!("chains-{name}-{base:?}-{closes}"));
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = db.keyspace("k", options()).unwrap();
    let start = if base == Base::None { "" } else { "start " };
    if base != Base::None {
        k.put("key", start).unwrap();
    }
    if base == Base::Table {
        db.flush().unwrap();
    }
    let mut snapshots: Vec<(usize, Snapshot)> = Vec::new();
    for n in 0..MERGES {
        if snapshot_every.is_some_and(|every| n % every == 0) {
            snapshots.push((n, db.snapshot()));
        }
        k.merge("key", letter(n)).unwrap();
    }
    let check = |k: &Keyspace, db: &Db, step: &str| {
        assert!(k.get("key").unwrap().as_deref() == Some(&expected(start, MERGES)[..]), "{name} {base:?} {step}");
        assert!(k.iter().next().unwrap().unwrap().1.to_vec() == expected(start, MERGES), "{name} {base:?} {step}");
        assert!(k.iter().next_back().unwrap().unwrap().1.to_vec() == expected(start, MERGES), "{name} {base:?} {step}");
        let longest = db.stats().keyspaces[0].longest_merge_chain;
        assert!(longest <= SHORT, "{name} {base:?} {step}: {longest}");
        assert_eq!(longest, db.stats().longest_merge_chain);
    };
    let check_snapshots = |step: &str| {
        for (merges, snapshot) in snapshots.iter().step_by(1 + snapshots.len() / 20) {
            let value = snapshot.get(&k, "key").unwrap();
            let expected = expected(start, *merges);
            assert!(value.as_deref().unwrap_or_default() == &expected[..], "{name} {base:?} {step} at {merges}");
        }
    };
    check(&k, &db, "in memory");
    check_snapshots("in memory");
    // What is flushed here is gone for the reopen, so that one of the two runs finds all of it in
    // the log.
    if !closes {
        db.flush().unwrap();
        check(&k, &db, "flushed");
        check_snapshots("flushed");
        db.compact().unwrap();
        check(&k, &db, "compacted");
        check_snapshots("compacted");
    }
    drop(snapshots);
    if closes {
        db.clone().close().unwrap();
    }
    drop((k, db));
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = db.keyspace("k", options()).unwrap();
    check(&k, &db, "reopened");
    db.compact().unwrap();
    check(&k, &db, "reopened and compacted");
    assert_eq!(db.stats().keyspaces[0].entries, 1);
}

fn everywhere(name: &str, options: fn() -> KeyspaceOptions, snapshot_every: Option<usize>) {
    for base in [Base::None, Base::Memory, Base::Table] {
        for closes in [false, true] {
            run(name, options, base, snapshot_every, closes);
        }
    }
}

#[test]
fn appends_without_a_snapshot() {
    everywhere("append", append, None);
}

#[test]
fn appends_under_one_snapshot() {
    everywhere("append-under-one", append, Some(MERGES));
}

#[test]
fn appends_under_a_snapshot_every_hundred() {
    everywhere("append-under-many", append, Some(100));
}

#[test]
fn merges_by_an_operator_that_declines_partial_merges() {
    for base in [Base::Memory, Base::Table] {
        run("declining", declining, base, None, false);
    }
    run("declining", declining, Base::None, None, false);
}

#[test]
fn merges_by_an_operator_that_declines_under_snapshots() {
    run("declining-under-one", declining, Base::Memory, Some(MERGES), false);
    run("declining-under-many", declining, Base::None, Some(100), false);
}

/// Trap: increments and decrements that alternate decline every partial merge.
#[test]
fn signed_counters_that_go_up_and_down() {
    for base in [Base::None, Base::Table] {
        let scratch = Scratch::new(&format!("chains-signed-{base:?}"));
        let options = || KeyspaceOptions::default().merge_operator(Int64Add);
        let db = Db::open(scratch.path(), inline()).unwrap();
        let k = db.keyspace("k", options()).unwrap();
        if base == Base::Table {
            k.put("key", 0i64.to_le_bytes()).unwrap();
            db.flush().unwrap();
        }
        for n in 0..MERGES as i64 {
            k.merge("key", if n % 2 == 0 { n } else { -n }.to_le_bytes()).unwrap();
        }
        let sum = -(MERGES as i64) / 2;
        let value = |k: &Keyspace| i64::from_le_bytes(k.get("key").unwrap().unwrap().as_ref().try_into().unwrap());
        assert_eq!(value(&k), sum);
        db.flush().unwrap();
        assert_eq!(value(&k), sum);
        assert!(db.stats().longest_merge_chain <= SHORT, "{}", db.stats().longest_merge_chain);
    }
}

/// Trap: while the log is replayed a custom operator is not known, so that all operands are kept
/// apart. Supplying it makes amends, at the latest with the next compaction.
#[test]
fn operands_replayed_without_their_operator_are_combined_once_it_is_there() {
    const FEWER: usize = 20_000;
    for partial in [false, true] {
        for (base, closes) in [(Base::None, true), (Base::None, false), (Base::Table, true), (Base::Table, false)] {
            let context = format!("partial {partial} {base:?} closed {closes}");
            let scratch = Scratch::new(&format!("chains-replayed-{partial}-{base:?}-{closes}"));
            let options = || KeyspaceOptions::default().merge_operator(Moody { partial });
            let db = Db::open(scratch.path(), inline()).unwrap();
            let k = db.keyspace("k", options()).unwrap();
            if base == Base::Table {
                k.put("key", "").unwrap();
                k.put("zz", "").unwrap();
                db.flush().unwrap();
            }
            (0..FEWER).for_each(|n| k.merge("key", letter(n)).unwrap());
            if closes {
                db.clone().close().unwrap();
            }
            drop((k, db));
            let db = Db::open(scratch.path(), inline()).unwrap();
            let k = db.keyspace("k", options()).unwrap();
            assert!(k.get("key").unwrap().as_deref() == Some(&expected("", FEWER)[..]), "{context}");
            // In memory, operands are combined as the operator comes, if it can without what is
            // below.
            let longest = db.stats().longest_merge_chain;
            assert_eq!(longest <= SHORT, closes && (partial || base == Base::None), "{context}: {longest}");
            db.compact().unwrap();
            assert_eq!(db.stats().keyspaces[0].entries, if base == Base::Table { 2 } else { 1 }, "{context}");
            drop((k, db));
            let db = Db::open(scratch.path(), inline()).unwrap();
            let k = db.keyspace("k", options()).unwrap();
            assert!(k.get("key").unwrap().as_deref() == Some(&expected("", FEWER)[..]), "{context}");
            assert_eq!(db.stats().longest_merge_chain, 0, "{context}");
        }
    }
}

/// Trap: a chain that cannot be combined is tried again with every write.
#[test]
fn an_operator_that_fails_is_not_asked_at_every_write() {
    let scratch = Scratch::new("chains-failing");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = db.keyspace("k", declining()).unwrap();
    k.merge("key", "error").unwrap();
    (0..10_000).for_each(|n| k.merge("key", letter(n)).unwrap());
    assert!(db.health().failed_merges <= 14, "{:?}", db.health());
    assert!(k.get("key").is_err());
    assert_eq!(db.stats().longest_merge_chain, 10_001);
    k.put("key", "").unwrap();
    k.merge("key", "a").unwrap();
    assert_eq!(k.get("key").unwrap().as_deref(), Some(&b"a"[..]));
}

/// Trap: the value is looked up without a lock, and another thread writes in between: its merge
/// must not be lost, nor be counted twice.
#[test]
fn threads_that_merge_into_one_key_lose_nothing() {
    let scratch = Scratch::new("chains-threads");
    let db = Db::open(scratch.path(), esker::Options::default().write_buffer_bytes(1 << 20)).unwrap();
    let k = db.keyspace("k", append()).unwrap();
    const EACH: usize = 15_000;
    std::thread::scope(|scope| {
        for thread in 0..3u8 {
            let k = &k;
            scope.spawn(move || (0..EACH).for_each(|_| k.merge("key", [b'a' + thread]).unwrap()));
        }
        scope.spawn(|| {
            let mut last = 0;
            while last < 3 * EACH {
                let snapshot = db.snapshot();
                let length = snapshot.get(&k, "key").unwrap().map_or(0, |value| value.len());
                assert!(length >= last, "{length} after {last}");
                let scanned = snapshot.iter(&k).next().map_or(0, |item| item.unwrap().1.len());
                assert_eq!(scanned, length);
                last = length;
            }
        });
    });
    for thread in 0..3u8 {
        let value = k.get("key").unwrap().unwrap();
        assert_eq!(value.iter().filter(|&&byte| byte == b'a' + thread).count(), EACH);
    }
}

/// Trap: a batch goes on after the operand that made the chain long.
#[test]
fn one_batch_of_many_merges_of_one_key() {
    let scratch = Scratch::new("chains-batch");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = db.keyspace("k", declining()).unwrap();
    let mut batch = db.batch();
    (0..10_000).for_each(|n| batch.merge(&k, "key", letter(n)).unwrap());
    batch.commit().unwrap();
    let chain_of_the_batch = db.stats().longest_merge_chain;
    assert_eq!(chain_of_the_batch, 10_000, "the write itself combines them, once");
    assert_eq!(db.stats().keyspaces[0].memtable_entries, 1);
    assert!(k.get("key").unwrap().as_deref() == Some(&expected("", 10_000)[..]));
}
