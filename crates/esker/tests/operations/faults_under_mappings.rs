//! Files of a real directory that lose their bytes while they are mapped, as when the medium fails:
//! the system answers an access to such a page with a signal that ends a process, and the engine
//! must answer the call with an error. Nothing that was read before may change, and nothing wrong
//! be read after.
#![cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]

use crate::calling_env::Telling;
use crate::common::Scratch;
use esker::env::Env;
use esker::env::os::OsEnv;
use esker::{Compression, Db, Error, Keyspace, KeyspaceOptions, Options, ReadMode, Result, Slice, WalMode};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEYS: usize = 4000;

fn key(number: usize) -> String {
    format!("key {number:06}")
}

/// LZ4 makes less of it, and not too little.
fn value(number: usize) -> String {
    let mixed = |round: u64| (number as u64 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    format!("{number:06} {:064b}{:064b}{:064b}", mixed(1), mixed(2), mixed(3))
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// No system has larger pages than this, usually.
const PAGE_BYTES: u64 = 16 << 10;

/// Cuts all files with this ending to a part of their length; the paths. At a page: the rest of a
/// page that is cut within reads as zeroes without a fault, which is a change of the file as any
/// other.
fn cut(directory: &Path, ending: &str, part: u64) -> Vec<PathBuf> {
    let files = files(directory, ending);
    assert!(!files.is_empty());
    for path in &files {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let len = file.metadata().unwrap().len() * part / 100;
        file.set_len(len - len % PAGE_BYTES).unwrap();
    }
    files
}

struct Tables {
    scratch: Scratch,
    db: Db,
    names: Keyspace,
}

impl Tables {
    /// A database with one mapped table, every block of which was read and found good.
    fn new(compression: Compression) -> Tables {
        Tables::through(Arc::new(OsEnv::new()), compression)
    }

    fn through(env: Arc<dyn Env>, compression: Compression) -> Tables {
        let scratch = Scratch::new();
        let options =
            Options::default().env(env).background_threads(0).read_mode(ReadMode::Mmap).compression(compression);
        // Room in the cache for a few blocks.
        let db = Db::open(scratch.path(), options.block_bytes(2 << 10).block_cache_bytes(64 << 10)).unwrap();
        let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
        (0..KEYS).for_each(|i| names.put(key(i), value(i)).unwrap());
        db.flush().unwrap();
        assert_eq!(files(scratch.path(), ".table").len(), 1);
        let tables = Tables { scratch, db, names };
        (0..KEYS).for_each(|i| assert!(tables.get(i).unwrap()));
        tables
    }

    /// Whether the key has a value, which is the right one.
    fn get(&self, number: usize) -> Result<bool> {
        let found = self.names.get(key(number))?;
        assert!(found.iter().all(|found| found == value(number).as_bytes()), "{found:?} at {number}");
        Ok(found.is_some())
    }

    fn cut(&self, part: u64) -> PathBuf {
        cut(self.scratch.path(), ".table", part).remove(0)
    }

    /// From now on every value is the right one or an error.
    fn never_wrong(&self) -> usize {
        let answers: Vec<_> = (0..KEYS).map(|i| self.get(i)).collect();
        assert!(!answers.iter().any(|answer| matches!(answer, Ok(false))));
        answers.iter().filter(|answer| answer.is_ok()).count()
    }
}

fn is_fault<T: std::fmt::Debug>(answer: Result<T>, table: &Path) {
    match answer {
        Err(Error::Io { operation: "read", path, .. }) if path == table => {}
        other => panic!("{other:?}"),
    }
}

fn check(item: Result<(Slice, Slice)>, number: usize) -> Result<()> {
    let (found_key, found_value) = item?;
    assert_eq!((&*found_key, &*found_value), (key(number).as_bytes(), value(number).as_bytes()));
    Ok(())
}

const BOTH: [Compression; 2] = [Compression::None, Compression::Lz4];

/// Seen: the process was gone. Trigger: a get from a mapped table whose file was cut short, or
/// whose medium failed. Cost: the process, with all else that it did.
#[test]
fn a_get_from_a_table_that_is_cut_off_is_an_error() {
    for compression in BOTH {
        for far in [0, KEYS / 2, KEYS - 1] {
            let tables = Tables::new(compression);
            // A block that the cache has not got.
            (0..KEYS).filter(|i| i.abs_diff(far) > 500).for_each(|i| assert!(tables.get(i).unwrap()));
            let table = tables.cut(0);
            is_fault(tables.names.get(key(far)), &table);
            assert!(tables.never_wrong() < KEYS);
        }
        let tables = Tables::new(compression);
        let table = tables.cut(0);
        let mut buffer = b"before".to_vec();
        is_fault(tables.names.get_into(key(7), &mut buffer), &table);
        assert!(tables.never_wrong() < KEYS);
    }
}

/// Seen: values of zeroes. Trigger: an environment of the program's own that passes the mappings of
/// another one on; what the engine puts around it did not ask for faults. Cost: wrong answers,
/// without an error.
#[test]
fn a_fault_is_told_through_an_environment_of_the_programs_own() {
    for compression in BOTH {
        let env: Arc<dyn Env> = Arc::new(OsEnv::new());
        let tables = Tables::through(Arc::new(Telling { told: Arc::new(|_| {}), called: env }), compression);
        let table = tables.cut(0);
        let first = (0..KEYS).map(|i| tables.get(i)).find(Result::is_err);
        is_fault(first.unwrap(), &table);
        assert!(tables.never_wrong() < KEYS);
    }
}

#[test]
fn what_was_handed_out_before_the_fault_stays() {
    for compression in BOTH {
        let tables = Tables::new(compression);
        let kept: Vec<Slice> = (0..KEYS).map(|i| tables.names.get(key(i)).unwrap().unwrap()).collect();
        tables.cut(0);
        assert!(kept.iter().enumerate().all(|(i, kept)| kept == value(i).as_bytes()));
    }
}

/// After the first error each block is read from the file, so that every readable byte is returned.
#[test]
fn the_part_of_a_table_that_is_there_stays_readable() {
    for (compression, part) in BOTH.into_iter().flat_map(|kind| [13, 37, 50, 62, 89].map(|part| (kind, part))) {
        let tables = Tables::new(compression);
        let table = tables.cut(part);
        // The first block that is met is one of which a part is there.
        let first = (0..KEYS).map(|i| tables.get(i)).find(Result::is_err);
        is_fault(first.unwrap(), &table);
        let right = tables.never_wrong();
        assert!(right > (KEYS * part as usize / 100).saturating_sub(KEYS / 5) && right < KEYS, "{right} of {part} %");
        // And the next time.
        assert_eq!(tables.never_wrong(), right);
        assert!(matches!(tables.get(KEYS - 1), Err(Error::Corruption { path, .. }) if path == table));
    }
}

#[test]
fn a_scan_over_a_table_that_is_cut_off_ends_with_an_error() {
    for compression in BOTH {
        for (before, forward) in [(0, true), (0, false), (1, true), (1, false), (10, true), (10, false), (500, true)] {
            let tables = Tables::new(compression);
            let mut scan = tables.names.iter();
            let mut step = |step: usize| match forward {
                true => scan.next().map(|item| check(item, step)),
                false => scan.next_back().map(|item| check(item, KEYS - 1 - step)),
            };
            (0..before).for_each(|i| step(i).unwrap().unwrap());
            let table = tables.cut(0);
            let rest: Vec<Result<()>> = (before..=KEYS).map_while(step).collect();
            let mut failed = rest.into_iter().filter(Result::is_err);
            is_fault(failed.next().unwrap(), &table);
            assert!(failed.next().is_none());
            assert!(tables.never_wrong() < KEYS);
        }
    }
}

#[test]
fn a_scan_in_a_transaction_over_a_table_that_is_cut_off_fails() {
    for before in [0, 10] {
        let tables = Tables::new(Compression::None);
        let mut transaction = tables.db.transaction();
        transaction.put(&tables.names, key(KEYS), value(KEYS)).unwrap();
        let mut scan = transaction.iter(&tables.names);
        (0..before).for_each(|i| check(scan.next().unwrap(), i).unwrap());
        let table = tables.cut(0);
        let rest: Vec<Result<()>> = (before..=KEYS).map_while(|i| scan.next().map(|item| check(item, i))).collect();
        let mut failed = rest.into_iter().filter(Result::is_err);
        is_fault(failed.next().unwrap(), &table);
        assert!(failed.next().is_none());
    }
}

/// What a cursor lends may turn to nothing while it is looked at; then no move passes over it in
/// silence.
#[test]
fn a_cursor_whose_value_is_gone_fails_at_its_next_move() {
    type Move = fn(&mut esker::Cursor) -> Result<()>;
    let moves: [Move; 6] = [
        |cursor| cursor.next(),
        |cursor| cursor.prev(),
        |cursor| cursor.seek(key(1000)),
        |cursor| cursor.seek_for_prev(key(1000)),
        |cursor| cursor.seek_to_first(),
        |cursor| cursor.seek_to_last(),
    ];
    for step in moves {
        for start in [0, 1000, KEYS - 1] {
            let tables = Tables::new(Compression::None);
            let mut cursor = tables.names.cursor().unwrap();
            cursor.seek(key(start)).unwrap();
            assert_eq!((cursor.key(), cursor.value()), (key(start).as_bytes(), value(start).as_bytes()));
            let table = tables.cut(0);
            assert!(cursor.value() != value(start).as_bytes());
            assert_eq!(cursor.key(), key(start).as_bytes());
            is_fault(step(&mut cursor), &table);
            assert!(!cursor.valid());
            // The file has nothing any more.
            assert!(cursor.seek(key(2000)).is_err());
        }
    }
}

/// Seen: the process was gone. Trigger: a write into a mapped log segment whose file was cut short;
/// or whose file had to be given a block, on a full disk. Cost: the process.
#[test]
fn a_store_into_a_log_that_is_cut_off_is_an_error_and_the_last_write() {
    let scratch = Scratch::new();
    let options = || Options::default().background_threads(0).wal_mode(WalMode::Mapped);
    let db = Db::open(scratch.path(), options()).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    (0..100).for_each(|i| names.put(key(i), value(i)).unwrap());
    db.flush().unwrap();
    names.put(key(100), value(100)).unwrap();
    let logs = cut(scratch.path(), ".wal", 0);
    match names.put(key(101), value(101)) {
        Err(Error::Io { path, .. }) => assert!(logs.contains(&path), "{path:?}"),
        other => panic!("{other:?}"),
    }
    assert!(!db.health().writable && db.health().problem.is_some());
    for refused in [names.put(key(102), value(102)), db.sync(), db.flush()] {
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
    for i in 0..101 {
        assert_eq!(names.get(key(i)).unwrap().as_deref(), Some(value(i).as_bytes()));
    }
}

/// Also not by going to another table, which has no fault.
#[test]
fn a_cursor_whose_value_is_gone_fails_at_its_move_to_another_table() {
    type Move = fn(&mut esker::Cursor) -> Result<()>;
    let moves: [Move; 3] = [
        |cursor| cursor.seek(key(KEYS - 1)),
        |cursor| cursor.seek_for_prev(key(KEYS - 1)),
        |cursor| cursor.seek_to_last(),
    ];
    for step in moves {
        let scratch = Scratch::new();
        let options = Options::default().background_threads(0).read_mode(ReadMode::Mmap);
        let options = options.compression(Compression::None).target_file_bytes(64 << 10);
        let db = Db::open(scratch.path(), options).unwrap();
        let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
        (0..KEYS).for_each(|i| names.put(key(i), value(i)).unwrap());
        db.flush().unwrap();
        names.put(key(0), value(0)).unwrap();
        db.compact().unwrap();
        let tables = files(scratch.path(), ".table");
        assert!(tables.len() > 2);
        let mut cursor = names.cursor().unwrap();
        cursor.seek(key(0)).unwrap();
        assert_eq!(cursor.value(), value(0).as_bytes());
        let first = value(0).into_bytes();
        let holds_first = |table: &PathBuf| fs::read(table).unwrap().windows(first.len()).any(|bytes| bytes == first);
        let table = tables.into_iter().find(holds_first).unwrap();
        OpenOptions::new().write(true).open(&table).unwrap().set_len(0).unwrap();
        assert!(cursor.value() != value(0).as_bytes());
        is_fault(step(&mut cursor), &table);
        assert!(!cursor.valid());
        // The last table is whole.
        cursor.seek_to_last().unwrap();
        assert_eq!((cursor.key(), cursor.value()), (key(KEYS - 1).as_bytes(), value(KEYS - 1).as_bytes()));
    }
}
