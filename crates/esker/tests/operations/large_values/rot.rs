//! Large values that rot before a job copies them: the job ends with the place, the damage shows,
//! and it stays the only one.

use super::{blob_files, keyspace, repetitive, simulated, value};
use esker::env::mem::MemEnv;
use esker::{Db, Error, KeyspaceOptions, Options, merge::StringAppend};
use std::path::{Path, PathBuf};

/// Ten fit into a file.
const VALUE_BYTES: usize = 1600;
/// In a file: a header, then records of 8 and so many bytes.
const fn place(index: usize) -> usize {
    32 + index * (8 + VALUE_BYTES) + 8
}

fn flip(mem: &MemEnv, path: &Path, at: usize) {
    let mut bytes = mem.file_bytes(path).unwrap();
    bytes[at] ^= 16;
    mem.set_file_bytes(path, bytes);
}

fn assert_names<T: std::fmt::Debug>(result: esker::Result<T>, file: &Path, place: usize) {
    match result {
        Err(Error::Corruption { path, offset, .. }) => assert_eq!((path.as_path(), offset), (file, place as u64)),
        other => panic!("{other:?}"),
    }
}

fn assert_problem(db: &Db, file: &Path, place: usize) {
    let problem = db.health().problem.unwrap_or_default();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(problem.contains(name) && problem.contains(&format!("offset {place}")), "health says {problem:?}");
}

type Make = fn(u64, usize) -> Vec<u8>;

/// Two blob files of ten values each. With `garbage`, of each only three values are still referred
/// to.
fn filled(options: Options, make: Make, garbage: bool) -> (Db, u64) {
    let db = Db::open("/db", options).unwrap();
    let k = keyspace(&db);
    (0..20).for_each(|i| k.put(format!("{i:02}"), make(i, VALUE_BYTES)).unwrap());
    db.flush().unwrap();
    if garbage {
        (0..20).filter(|i| i % 10 > 2).for_each(|i| k.delete(format!("{i:02}")).unwrap());
        db.flush().unwrap();
    }
    (db, if garbage { 3 } else { 10 })
}

fn check(db: &Db, make: Make, each: u64, damaged: Option<(u64, &PathBuf)>) {
    let k = keyspace(db);
    for i in (0..20).filter(|i| i % 10 < each) {
        let found = k.get(format!("{i:02}"));
        match damaged.filter(|(at, _)| *at == i) {
            Some((at, path)) => assert_names(found, path, place((at % 10) as usize)),
            None => assert_eq!(found.unwrap().as_deref(), Some(&make(i, VALUE_BYTES)[..])),
        }
    }
}

/// Seen: a job that met a damaged large value went on without a word, and `health()` was well.
/// Trigger: a flipped bit in a blob file that is emptied, or whose values are compressed. Cost: the
/// damage was found late, by a read of the value.
#[test]
fn a_damaged_value_ends_the_job_that_copies_it_and_shows() {
    for (make, garbage) in [(value as Make, true), (repetitive as Make, false), (repetitive as Make, true)] {
        let mem = MemEnv::default();
        let (db, each) = filled(simulated(mem.clone()), make, garbage);
        let files = blob_files(&mem, "/db");
        let [first, second] = &files[..] else { panic!("{files:?}") };
        flip(&mem, first, place(1) + 77);
        // As often as somebody asks, with the same answer; the rest of the work is done.
        for _ in 0..3 {
            assert_names(db.compact(), first, place(1));
            assert_problem(&db, first, place(1));
            assert_names(db.verify(), first, place(1));
            check(&db, make, each, Some((1, first)));
            let left = blob_files(&mem, "/db");
            assert!(left.contains(first) && !left.contains(second) && left.len() == 2, "{left:?}");
        }
        let before = blob_files(&mem, "/db");
        // In the background it is left alone.
        db.wait_idle().unwrap();
        assert_eq!(blob_files(&mem, "/db"), before);
        // The bytes come right again: nothing was lost.
        flip(&mem, first, place(1) + 77);
        db.compact().unwrap();
        assert_eq!(db.health().problem, None);
        check(&db, make, each, None);
        assert!(!blob_files(&mem, "/db").contains(first));
    }
}

#[test]
fn a_scan_goes_on_behind_a_large_value_that_is_damaged() {
    let mem = MemEnv::default();
    let (db, _) = filled(simulated(mem.clone()), value, false);
    flip(&mem, &blob_files(&mem, "/db")[0], place(1) + 77);
    let k = keyspace(&db);
    let found: Vec<_> = k.iter().collect();
    assert_eq!(found.iter().map(Result::is_err).collect::<Vec<_>>(), (0..20).map(|i| i == 1).collect::<Vec<_>>());
    let found: Vec<_> = k.iter().rev().collect();
    assert_eq!(found.iter().map(Result::is_err).collect::<Vec<_>>(), (0..20).map(|i| i == 18).collect::<Vec<_>>());
}

/// Nobody asked: the job ends once, and the next ones leave the file alone and empty the others.
#[test]
fn in_the_background_a_damaged_file_is_met_once() {
    const BYTES: usize = 100_000;
    let mem = MemEnv::default();
    let options = simulated(mem.clone()).target_file_bytes(1 << 20);
    let db = Db::open("/db", options).unwrap();
    let k = keyspace(&db);
    (0..400).for_each(|i| k.put(format!("{i:03}"), value(i, BYTES)).unwrap());
    db.flush().unwrap();
    let files = blob_files(&mem, "/db");
    assert!(files.len() > 3, "{files:?}");
    flip(&mem, &files[0], 32 + 8 + 99);
    let lives = |i: u64| i.is_multiple_of(10);
    (0..400).filter(|&i| !lives(i)).for_each(|i| k.delete(format!("{i:03}")).unwrap());
    db.flush().unwrap();
    assert_names(db.wait_idle(), &files[0], 40);
    assert_problem(&db, &files[0], 40);
    for _ in 0..3 {
        db.wait_idle().unwrap();
        assert_problem(&db, &files[0], 40);
    }
    let left = blob_files(&mem, "/db");
    assert!(left.len() == 2 && left.contains(&files[0]), "{left:?}");
    assert_names(k.get("000"), &files[0], 40);
    (1..400).filter(|&i| lives(i)).for_each(|i| {
        assert_eq!(k.get(format!("{i:03}")).unwrap().as_deref(), Some(&value(i, BYTES)[..]));
    });
    // The damage goes with the file.
    k.delete("000").unwrap();
    db.compact().unwrap();
    assert_eq!(db.health().problem, None);
    assert!(!blob_files(&mem, "/db").contains(&files[0]));
}

/// A merge needs a large value for its operands and cannot read it: both stay, and the damage
/// shows. Seen: the call that had met it returned success.
#[test]
fn damage_below_operands_shows() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = db.keyspace("m", KeyspaceOptions::default().merge_operator(StringAppend::new(","))).unwrap();
    k.put("key", value(1, 1000)).unwrap();
    db.flush().unwrap();
    k.merge("key", "tail").unwrap();
    let file = blob_files(&mem, "/db").pop().unwrap();
    flip(&mem, &file, 50);
    assert_names(db.compact(), &file, 40);
    assert_problem(&db, &file, 40);
    assert_names(k.get("key"), &file, 40);
    flip(&mem, &file, 50);
    db.compact().unwrap();
    assert_eq!(k.get("key").unwrap().as_deref(), Some(&[&value(1, 1000)[..], b",tail"].concat()[..]));
    assert_eq!(db.health().problem, None, "the file is gone");
}

/// The same for a file whose bytes come right again: a check of all of it clears the damage, and
/// jobs take it up again.
#[test]
fn a_check_that_finds_no_damage_forgets_it() {
    let mem = MemEnv::default();
    let (db, each) = filled(simulated(mem.clone()), value, true);
    let file = blob_files(&mem, "/db").remove(0);
    flip(&mem, &file, place(1) + 77);
    assert_names(db.compact(), &file, place(1));
    assert_names(db.verify(), &file, place(1));
    assert_problem(&db, &file, place(1));
    flip(&mem, &file, place(1) + 77);
    db.verify().unwrap();
    assert_eq!(db.health().problem, None);
    db.compact().unwrap();
    assert!(!blob_files(&mem, "/db").contains(&file));
    check(&db, value, each, None);
}
