//! Bits that change on the device while the database is open: no job may write what it has not
//! checked.

use crate::common::Scratch;
use esker::{CheckpointMode, Compression, Db, Error, Keyspace, KeyspaceOptions, Options, ReadMode};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const KEYS: u32 = 400;

fn key(number: u32) -> String {
    format!("key{number:05}")
}

/// Bytes that nothing compresses, different for each key and each round.
fn value(number: u32, round: u32) -> Vec<u8> {
    let mut state = u64::from(number) << 32 | u64::from(round) << 8 | 1;
    let next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(100).collect()
}

fn options(compression: Compression, read_mode: ReadMode) -> Options {
    Options::default().background_threads(0).compression(compression).read_mode(read_mode).block_bytes(1 << 10)
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == extension)).collect();
    paths.sort();
    paths
}

/// Two tables with the same keys.
fn fill(db: &Db) -> Keyspace {
    let keyspace = db.keyspace("a", KeyspaceOptions::default()).unwrap();
    for round in 0..2 {
        for number in 0..KEYS {
            keyspace.put(key(number), value(number, round)).unwrap();
        }
        db.flush().unwrap();
    }
    keyspace
}

/// Where in which of the files these bytes are.
fn find(paths: &[PathBuf], bytes: &[u8]) -> (PathBuf, u64) {
    let place = |path: &PathBuf| fs::read(path).unwrap().windows(bytes.len()).position(|window| window == bytes);
    let found = paths.iter().find_map(|path| place(path).map(|at| (path.clone(), at as u64)));
    found.expect("the value is in a file as it is")
}

/// Flips a bit of the file, or flips it back.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// That the error names the file, and a place at or before `at` in it that is no further away than
/// a block.
fn assert_names<T: std::fmt::Debug>(result: esker::Result<T>, expected: &Path, at: u64) {
    match result {
        Err(Error::Corruption { path, offset, .. }) => {
            assert_eq!(path, expected);
            assert!(offset <= at && at - offset < 4096, "{offset} is not where {at} is");
        }
        other => panic!("{other:?}"),
    }
}

fn assert_problem(db: &Db, path: &Path) {
    let problem = db.health().problem.unwrap_or_default();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(problem.contains(name) && problem.contains("offset"), "health says {problem:?}");
}

#[test]
fn a_merge_refuses_what_rotted_after_a_reader_had_checked_it() {
    for compression in [Compression::None, Compression::Lz4] {
        let scratch = Scratch::new();
        let db = Db::open(scratch.path(), options(compression, ReadMode::Mmap)).unwrap();
        let keyspace = fill(&db);
        let read = |number| keyspace.get(key(number)).map(|found| found.map(|value| value.to_vec()));
        for number in 0..KEYS {
            assert_eq!(read(number).unwrap(), Some(value(number, 1)));
        }
        let tables = files(scratch.path(), "table");
        let (path, at) = find(&tables, &value(200, 1));
        flip(&path, at);
        assert_names(db.verify(), &path, at);
        assert_names(db.compact(), &path, at);
        assert_names(db.compact(), &path, at);
        assert_problem(&db, &path);
        assert_eq!(files(scratch.path(), "table"), tables, "the inputs are kept, and nothing else is");
        assert_names(db.verify(), &path, at);
        assert_eq!(read(0).unwrap(), Some(value(0, 1)));
        assert_eq!(read(KEYS - 1).unwrap(), Some(value(KEYS - 1, 1)));
        flip(&path, at);
        db.compact().unwrap();
        assert_eq!(db.health().problem, None);
        db.verify().unwrap();
        assert_eq!(read(200).unwrap(), Some(value(200, 1)));
        assert_eq!(files(scratch.path(), "table").len(), 1);
    }
}

/// A block that is compressed and comes from the file by a system call each time.
#[test]
fn a_block_that_is_read_again_is_checked_again() {
    let scratch = Scratch::new();
    let options = options(Compression::Lz4, ReadMode::Pread).block_cache_bytes(0);
    let db = Db::open(scratch.path(), options).unwrap();
    let keyspace = db.keyspace("a", KeyspaceOptions::default()).unwrap();
    for number in 0..KEYS {
        keyspace.put(key(number), [value(number, 0), vec![0; 400]].concat()).unwrap();
    }
    db.flush().unwrap();
    let read = |number| keyspace.get(key(number)).map(|found| found.map(|value| value.to_vec()));
    assert!(read(200).unwrap().is_some());
    let (path, at) = find(&files(scratch.path(), "table"), &value(200, 0)[8..]);
    flip(&path, at);
    assert_names(read(200), &path, at);
}

/// Seen: `health()` told of damage in a file that was gone, until the database was opened again.
#[test]
fn damage_that_is_gone_is_no_problem_any_more() {
    for large in [false, true] {
        let scratch = Scratch::new();
        let min_blob_size = if large { 50 } else { 1 << 15 };
        let options = options(Compression::None, ReadMode::Mmap).min_blob_size(min_blob_size);
        let directory = scratch.path().join("db");
        let db = Db::open(&directory, options).unwrap();
        let keyspace = fill(&db);
        let (path, at) = find(&files(&directory, if large { "blob" } else { "table" }), &value(200, 1));
        flip(&path, at);
        let copied = db.checkpoint_with(scratch.path().join("copy"), CheckpointMode::Copy);
        assert!(matches!(copied, Err(Error::Corruption { .. })), "{copied:?}");
        assert_problem(&db, &path);
        keyspace.delete_range(..).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert!(!path.exists());
        assert_eq!(db.health().problem, None);
    }
}

/// Seen: `health()` told of damage that was no more. Trigger: the bits of a damaged file came right
/// again, or the file was removed without being read. Cost: an alarm without a reason, and a table
/// that background merges left alone for nothing.
#[test]
fn damage_is_forgotten_with_the_file_or_when_a_check_finds_none() {
    for is_removed in [false, true] {
        let scratch = Scratch::new();
        let db = Db::open(scratch.path(), options(Compression::None, ReadMode::Mmap)).unwrap();
        let keyspace = fill(&db);
        let (path, at) = find(&files(scratch.path(), "table"), &value(200, 1));
        flip(&path, at);
        assert_names(db.compact(), &path, at);
        assert_problem(&db, &path);
        if is_removed {
            // Tables that a deleted range covers go unread.
            keyspace.delete_range(key(0)..key(KEYS)).unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            assert!(!path.exists());
        } else {
            assert_names(db.verify(), &path, at);
            assert_problem(&db, &path);
            flip(&path, at);
            db.verify().unwrap();
        }
        assert_eq!(db.health().problem, None, "removed: {is_removed}");
    }
}

/// With [`ReadMode::MmapChecked`] no read misses what rots beneath the mapping after the first
/// check, in place or compressed, from either end.
#[test]
fn with_every_read_checked_rot_beneath_the_mapping_is_an_error() {
    for compression in [Compression::None, Compression::Lz4] {
        let scratch = Scratch::new();
        let options = options(compression, ReadMode::MmapChecked).block_cache_bytes(0);
        let db = Db::open(scratch.path(), options).unwrap();
        let keyspace = db.keyspace("a", KeyspaceOptions::default()).unwrap();
        let long = |number| [value(number, 0), vec![0; 400]].concat();
        (0..KEYS).for_each(|number| keyspace.put(key(number), long(number)).unwrap());
        db.flush().unwrap();
        let read = |number| keyspace.get(key(number)).map(|found| found.map(|value| value.to_vec()));
        // How many pairs come, and how it ends.
        let scan = |reversed: bool| {
            let mut all = keyspace.iter();
            let mut next = || if reversed { all.next_back() } else { all.next() };
            let mut count = 0;
            loop {
                match next() {
                    None => return Ok(count),
                    Some(Err(error)) => return Err((count, error)),
                    Some(Ok((found, found_value))) => {
                        let number = if reversed { KEYS - 1 - count } else { count };
                        assert_eq!((found.to_vec(), found_value.to_vec()), (key(number).into_bytes(), long(number)));
                        count += 1;
                    }
                }
            }
        };
        let check = || {
            for _ in 0..2 {
                (0..KEYS).for_each(|number| assert_eq!(read(number).unwrap(), Some(long(number))));
                assert_eq!((scan(false).unwrap(), scan(true).unwrap()), (KEYS, KEYS));
            }
        };
        check();
        let (path, at) = find(&files(scratch.path(), "table"), &value(200, 0)[8..]);
        flip(&path, at);
        assert_names(read(200), &path, at);
        for (reversed, before) in [(false, 200), (true, KEYS - 201)] {
            let (count, error) = scan(reversed).unwrap_err();
            assert!(count <= before && before - count < 20, "{count} pairs before the damaged block");
            assert_names(Err::<(), _>(error), &path, at);
        }
        let mut cursor = keyspace.cursor().unwrap();
        assert_names(cursor.seek(key(200)), &path, at);
        assert_eq!(read(0).unwrap(), Some(long(0)));
        assert_eq!(read(KEYS - 1).unwrap(), Some(long(KEYS - 1)));
        flip(&path, at);
        check();
    }
}
