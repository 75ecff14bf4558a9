//! Large values are made smaller when there is time, once, and nobody sees it but the disk.

use super::{Scratch, blob_files, keyspace, repetitive, simulated, value};
use crate::common::wait_until;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{CompactionStyle, Compression, Db, KeyspaceOptions, Options, Ttl, WriteOptions, merge::StringAppend};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A value of a seed and a length.
type Make = fn(u64, usize) -> Vec<u8>;

const VALUE_BYTES: usize = 3000;

fn sizes(mem: &MemEnv) -> Vec<(PathBuf, usize)> {
    blob_files(mem, "/db").into_iter().map(|path| (path.clone(), mem.file_bytes(&path).unwrap().len())).collect()
}

fn bytes_on_disk(mem: &MemEnv) -> usize {
    sizes(mem).iter().map(|(_, bytes)| bytes).sum()
}

/// A database with 20 of these values, flushed.
fn filled(mem: &MemEnv, options: Options, make: Make) -> Db {
    let db = Db::open("/db", options).unwrap();
    let k = keyspace(&db);
    (0..20u64).for_each(|i| k.put(format!("{i:02}"), make(i, VALUE_BYTES)).unwrap());
    db.flush().unwrap();
    assert!(bytes_on_disk(mem) > 20 * VALUE_BYTES, "as they were written");
    db
}

fn check(db: &Db, make: Make) {
    let k = keyspace(db);
    for i in 0..20u64 {
        assert_eq!(k.get(format!("{i:02}")).unwrap().as_deref(), Some(&make(i, VALUE_BYTES)[..]));
    }
    for (i, pair) in k.iter().enumerate() {
        assert_eq!(pair.unwrap().1.to_vec(), make(i as u64, VALUE_BYTES));
    }
    assert_eq!(db.verify().unwrap().large_values, 20);
}

#[test]
fn a_compaction_compresses_them_once() {
    let mem = MemEnv::default();
    let db = filled(&mem, simulated(mem.clone()), repetitive);
    let k = keyspace(&db);
    let (snapshot, mut iterator) = (db.snapshot(), k.iter());
    iterator.next().unwrap().unwrap();
    db.compact().unwrap();
    for i in 1..20u64 {
        assert_eq!(iterator.next().unwrap().unwrap().1.to_vec(), repetitive(i, VALUE_BYTES));
        assert_eq!(snapshot.get(&k, format!("{i:02}")).unwrap().as_deref(), Some(&repetitive(i, VALUE_BYTES)[..]));
    }
    drop((iterator, snapshot));
    db.compact().unwrap();
    let files = sizes(&mem);
    assert!(bytes_on_disk(&mem) < 20 * VALUE_BYTES / 2, "{files:?}");
    let stats = db.stats();
    assert!(stats.live_blob_bytes as usize <= bytes_on_disk(&mem), "{stats}");
    check(&db, repetitive);
    db.compact().unwrap();
    assert_eq!(sizes(&mem), files, "nothing is written again");
    drop((k, db));
    let safe = mem.crash(&CrashMode::LoseAll, 0);
    let db = Db::open("/db", simulated(safe.clone())).unwrap();
    check(&db, repetitive);
    db.compact().unwrap();
    assert_eq!(sizes(&safe), files, "nor by another life of the database");
    // They are copied and overwritten like others.
    let k = keyspace(&db);
    (0..15u64).for_each(|i| k.put(format!("{i:02}"), value(i, VALUE_BYTES)).unwrap());
    db.compact().unwrap();
    db.checkpoint("/copy").unwrap();
    let copy = Db::open("/copy", simulated(safe.clone())).unwrap();
    for db in [&db, &copy] {
        for i in 0..20u64 {
            let expected = if i < 15 { value(i, VALUE_BYTES) } else { repetitive(i, VALUE_BYTES) };
            assert_eq!(keyspace(db).get(format!("{i:02}")).unwrap().as_deref(), Some(&expected[..]));
        }
    }
}

#[test]
fn what_would_not_shrink_or_is_not_to_stays_where_it_is() {
    let cases: [(Compression, Make); 2] = [(Compression::Lz4, value), (Compression::None, repetitive)];
    for (compression, make) in cases {
        let mem = MemEnv::default();
        let db = filled(&mem, simulated(mem.clone()).compression(compression), make);
        let files = sizes(&mem);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(sizes(&mem), files, "{compression:?}");
        check(&db, make);
    }
}

/// A rewritten table would not have the age by which it leaves.
#[test]
fn what_leaves_by_age_stays_as_it_is() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let fifo = KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: 1 << 20 });
    let k = db.keyspace("k", fifo).unwrap();
    (0..20u64).for_each(|i| k.put(format!("{i:02}"), repetitive(i, VALUE_BYTES)).unwrap());
    db.flush().unwrap();
    let files = sizes(&mem);
    db.compact().unwrap();
    assert_eq!(sizes(&mem), files);
    assert_eq!(k.get("07").unwrap().as_deref(), Some(&repetitive(7, VALUE_BYTES)[..]));
}

/// Without being asked to compact; not if it is little, and not what only memory refers to.
#[test]
fn a_database_at_rest_compresses_what_is_worth_it() {
    let scratch = Scratch::new("rest");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db);
    let put = |from: u64, to: u64| {
        (from..to).for_each(|i| k.put(format!("{i:03}"), repetitive(i, 100_000)).unwrap());
    };
    put(0, 100);
    db.wait_idle().unwrap();
    assert!(db.stats().blob_bytes > 10_000_000, "{}", db.stats());
    put(100, 300);
    // Nobody waits: the background comes to it a second after the last write.
    wait_until("large values are compressed", || db.stats().blob_bytes <= 15_000_000);
    (0..300u64).for_each(|i| {
        assert!(k.get(format!("{i:03}")).unwrap().as_deref() == Some(&repetitive(i, 100_000)[..]), "value {i}");
    });
}

/// To make values smaller takes room first. Where there is none they stay, and the database is
/// well.
#[test]
fn a_full_disk_leaves_them_as_they_are() {
    let mem = MemEnv::default();
    let db = filled(&mem, simulated(mem.clone()), repetitive);
    let files = sizes(&mem);
    let used: usize = mem.files().iter().map(|path| mem.file_bytes(path).unwrap().len()).sum();
    mem.set_capacity(Some(used as u64 + 2000));
    db.compact().unwrap();
    assert_eq!(sizes(&mem), files);
    assert_eq!(db.health().problem, None);
    mem.set_capacity(None);
    keyspace(&db).put("later", "x").unwrap();
    keyspace(&db).delete("later").unwrap();
    check(&db, repetitive);
    drop(db);
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    db.compact().unwrap();
    assert!(bytes_on_disk(&mem) < 20 * VALUE_BYTES / 2, "there is room now: {:?}", sizes(&mem));
    check(&db, repetitive);
}

#[test]
fn damage_in_a_compressed_value_is_told_and_never_a_panic() {
    let mem = MemEnv::default();
    let db = filled(&mem, simulated(mem.clone()), repetitive);
    db.compact().unwrap();
    let file = blob_files(&mem, "/db").pop().unwrap();
    let intact = mem.file_bytes(&file).unwrap();
    let k = keyspace(&db);
    for at in (40..intact.len()).step_by(97) {
        let mut bytes = intact.clone();
        bytes[at] ^= 0x55;
        mem.set_file_bytes(&file, bytes);
        let wrong = (0..20u64).filter(|i| match k.get(format!("{i:02}")) {
            Ok(found) => {
                assert_eq!(found.as_deref(), Some(&repetitive(*i, VALUE_BYTES)[..]));
                false
            }
            Err(error) => {
                assert!(matches!(&error, esker::Error::Corruption { path, .. } if *path == file), "{error}");
                true
            }
        });
        assert!(wrong.count() <= 1, "byte {at}");
    }
}

/// One value cannot be read: it stays where it is, and with it its file; the others are compressed,
/// once.
#[test]
fn a_damaged_value_stays_and_the_others_shrink() {
    let mem = MemEnv::default();
    let db = filled(&mem, simulated(mem.clone()), repetitive);
    let file = blob_files(&mem, "/db").pop().unwrap();
    let mut bytes = mem.file_bytes(&file).unwrap();
    // Header, then records of 8 and 3000 bytes, five to a file: the last value of the last file.
    bytes[32 + 3008 * 4 + 100] ^= 1;
    mem.set_file_bytes(&file, bytes);
    for _ in 0..2 {
        let error = db.compact().unwrap_err();
        assert!(matches!(&error, esker::Error::Corruption { path, .. } if *path == file), "{error}");
    }
    let files = sizes(&mem);
    assert!(files.len() == 2 && files.iter().any(|(path, _)| *path == file), "{files:?}");
    assert!(files.iter().all(|(path, bytes)| *path == file || *bytes < 20 * VALUE_BYTES / 2), "{files:?}");
    let k = keyspace(&db);
    for i in 0..20u64 {
        match k.get(format!("{i:02}")) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&repetitive(i, VALUE_BYTES)[..])),
            Err(error) => assert!(i == 19 && matches!(error, esker::Error::Corruption { .. }), "{i}: {error}"),
        }
    }
    let problem = db.health().problem.unwrap_or_default();
    assert!(problem.contains(file.file_name().unwrap().to_str().unwrap()), "{problem}");
}

/// A device that gives a value no more is no reason to stop anything else.
#[test]
fn a_file_that_cannot_be_read_stays_and_nothing_fails() {
    let mem = MemEnv::default();
    drop(filled(&mem, simulated(mem.clone()), repetitive));
    let fault = FaultEnv::new(Arc::new(mem.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let files = sizes(&mem);
    fault.add(Rule::new(Class::Read, 0, Action::Fail(ErrorKind::Other)).on_names_with(".blob").from_then_on());
    db.compact().unwrap();
    db.wait_idle().unwrap();
    assert!(fault.fired() > 0, "somebody looked");
    assert_eq!((sizes(&mem), db.health().problem), (files, None));
    let k = keyspace(&db);
    k.put("small", "x").unwrap();
    db.flush().unwrap();
    fault.clear();
    assert_eq!(k.get("small").unwrap().as_deref(), Some(&b"x"[..]));
    k.delete("small").unwrap();
    check(&db, repetitive);
}

/// Many tables that refer to the same files: each is rewritten, and their values come together in
/// as few files as before.
#[test]
fn many_tables_do_not_make_many_files() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone()).min_blob_size(200)).unwrap();
    let k = keyspace(&db);
    for i in 0..300u64 {
        k.put(format!("{i:03}"), repetitive(i, 400)).unwrap();
        // Something of its own for each table.
        (0..20).for_each(|j| k.put(format!("{i:03}-{j:02}"), value(i * 100 + j, 50)).unwrap());
    }
    db.flush().unwrap();
    let before = sizes(&mem).len();
    db.compact().unwrap();
    let stats = db.stats();
    assert!(stats.table_files > 20, "{stats}");
    assert!(sizes(&mem).len() <= before, "{:?}", sizes(&mem));
    assert!(bytes_on_disk(&mem) < 300 * 300, "{:?}", sizes(&mem));
    for i in 0..300u64 {
        assert_eq!(k.get(format!("{i:03}")).unwrap().as_deref(), Some(&repetitive(i, 400)[..]));
    }
}

/// Bursts of writes with pauses between them: each is compressed, or waits for more, and the number
/// of files stays small.
#[test]
fn bursts_do_not_make_many_files() {
    let scratch = Scratch::new("bursts");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db);
    for burst in 0..12u64 {
        for i in 0..170u64 {
            k.put(format!("{burst:02}-{i:03}"), repetitive(burst * 1000 + i, 100_000)).unwrap();
        }
        db.wait_idle().unwrap();
    }
    let stats = db.stats();
    assert!(stats.blob_files <= 3, "{stats}");
    assert!(stats.blob_bytes < 12 * 17_000_000 / 2, "{stats}");
}

/// What a merge writes anew of a compressed value is its reference: in the log, in memory, and
/// after a power failure.
#[test]
fn references_to_compressed_values_pass_through_the_log() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let options =
        || KeyspaceOptions::default().merge_operator(StringAppend::new(",")).ttl(Ttl::Enabled { default: None });
    let k = db.keyspace("t", options()).unwrap();
    let hour = Duration::from_secs(3600);
    for i in 0..20u64 {
        k.put_with(format!("{i:02}"), repetitive(i, VALUE_BYTES), &WriteOptions::new().ttl(hour)).unwrap();
    }
    db.compact().unwrap();
    assert!(bytes_on_disk(&mem) < 20 * VALUE_BYTES / 2, "{:?}", sizes(&mem));
    for i in 0..10u64 {
        k.merge_with(format!("{i:02}"), "tail", &WriteOptions::new().ttl(hour * 2).sync(true)).unwrap();
    }
    let expected = |i: u64| {
        let mut value = repetitive(i, VALUE_BYTES);
        if i < 10 {
            value.extend_from_slice(b",tail");
        }
        value
    };
    for image in [mem.kill(), mem.crash(&CrashMode::LoseAll, 0)] {
        let db = Db::open("/db", simulated(image)).unwrap();
        let k = db.keyspace("t", options()).unwrap();
        for i in 0..20u64 {
            assert!(k.get(format!("{i:02}")).unwrap().as_deref() == Some(&expected(i)[..]), "value {i}");
        }
        db.compact().unwrap();
        for i in 0..20u64 {
            assert!(k.get(format!("{i:02}")).unwrap().as_deref() == Some(&expected(i)[..]), "value {i}");
        }
    }
}
