//! A checkpoint with files of its own: nothing that happens to them happens to the database, and
//! damage does not get into them.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{CheckpointMode, Compression, Db, Error, Options, ReadMode};
use std::collections::BTreeMap;
use std::io::ErrorKind::CrossesDevices;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const COPY: &str = "copy";

/// Small and large values in several tables, of two keyspaces and two runs; some values are
/// garbage.
fn fill(db: &Db) {
    for round in 0..2u8 {
        for name in ["a", "b"] {
            let keyspace = keyspace(db, name);
            for number in 0..60u32 {
                keyspace.put(number.to_be_bytes(), vec![round + number as u8; 40]).unwrap();
            }
            for number in 0..4u8 {
                keyspace.put([b'l', number], vec![round * 16 + number; 300 + usize::from(number)]).unwrap();
            }
            keyspace.delete_range(10u32.to_be_bytes()..12u32.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
    }
}

fn options(env: &MemEnv) -> Options {
    simulated(env).min_blob_size(200)
}

fn contents(db: &Db) -> BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>> {
    db.keyspaces().into_iter().map(|name| (name.clone(), all(&keyspace(db, &name)))).collect()
}

fn tables_and_blobs(env: &MemEnv) -> Vec<PathBuf> {
    let is_data = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "table" || kind == "blob");
    env.files().into_iter().filter(|path| path.starts_with(DIRECTORY) && is_data(path)).collect()
}

fn open_copy(options: Options, what: &str) -> Db {
    let db = Db::open(COPY, options.create_if_missing(false)).unwrap_or_else(|error| panic!("{what}: {error}"));
    db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    db
}

fn remove_copy(env: &MemEnv) {
    env.files().iter().filter(|path| path.starts_with(COPY)).for_each(|path| env.remove(path).unwrap());
}

fn flipped(env: &MemEnv, path: &Path, offset: u64) {
    assert!(env.flip_bit(path, offset, (offset % 8) as u8));
}

/// Trap: damage that a reader has not met is copied, and the backup is as damaged as the original.
#[test]
fn a_flipped_bit_anywhere_ends_it_or_does_no_harm() {
    for compression in [Compression::None, Compression::Lz4] {
        let env = MemEnv::new();
        let db = Db::open(DIRECTORY, options(&env).compression(compression)).unwrap();
        fill(&db);
        let expected = contents(&db);
        let mut harmless = 0;
        for path in tables_and_blobs(&env) {
            let is_table = path.extension().unwrap() == "table";
            let bytes = env.file_bytes(&path).unwrap().len() as u64;
            for offset in 0..bytes {
                let what = format!("bit of byte {offset} of {} of {bytes} bytes", path.display());
                flipped(&env, &path, offset);
                match db.checkpoint_with(COPY, CheckpointMode::Copy) {
                    Err(Error::Corruption { path: named, offset: place, .. }) => {
                        assert_eq!(named, path, "{what}");
                        assert!(place <= offset, "{what}: {place}");
                        let problem = db.health().problem.unwrap_or_default();
                        assert!(problem.contains(path.to_str().unwrap()), "{what}: health says {problem:?}");
                        assert_eq!(env.list(Path::new(COPY)).unwrap(), [""; 0], "{what}");
                    }
                    // A blob file has bytes that no value needs: garbage, padding, and what a
                    // reference says too.
                    Ok(()) if !is_table => {
                        harmless += 1;
                        let copy = open_copy(options(&env), &what);
                        assert_eq!(contents(&copy), expected, "{what}");
                        drop(copy);
                        remove_copy(&env);
                    }
                    other => panic!("{what}: {other:?}"),
                }
                flipped(&env, &path, offset);
            }
            db.checkpoint_with(COPY, CheckpointMode::Copy).unwrap();
            assert_eq!(db.health().problem, None, "all files were read and found intact");
            assert_eq!(contents(&open_copy(options(&env), "without damage")), expected);
            remove_copy(&env);
        }
        assert!(harmless > 0);
    }
}

/// Trap: a file that lost its end is copied as far as it goes.
#[test]
fn a_file_that_lost_its_end_is_not_copied() {
    let env = MemEnv::new();
    fill(&Db::open(DIRECTORY, options(&env)).unwrap());
    for path in tables_and_blobs(&env) {
        let whole = env.file_bytes(&path).unwrap();
        let db = Db::open(DIRECTORY, options(&env)).unwrap();
        env.set_file_bytes(&path, whole[..whole.len() - 120].to_vec());
        let result = db.checkpoint_with(COPY, CheckpointMode::Copy);
        assert!(matches!(&result, Err(Error::Corruption { path: named, .. }) if *named == path), "{result:?}");
        env.set_file_bytes(&path, whole);
        db.close().unwrap();
    }
}

/// Trap: only checkpoints that were asked to copy check what they copy.
#[test]
fn another_file_system_gets_checked_copies() {
    let env = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, options(&env).env(Arc::new(faulty.clone()))).unwrap();
    fill(&db);
    faulty.add(Rule::new(Class::Link, 0, Action::Fail(CrossesDevices)).from_then_on());
    for path in tables_and_blobs(&env) {
        let offset = env.file_bytes(&path).unwrap().len() as u64 - 20;
        flipped(&env, &path, offset);
        let result = db.checkpoint(COPY);
        assert!(matches!(&result, Err(Error::Corruption { path: named, .. }) if *named == path), "{result:?}");
        flipped(&env, &path, offset);
    }
    db.checkpoint(COPY).unwrap();
    assert!(faulty.fired() > 0);
    let expected = contents(&db);
    for path in env.files().iter().filter(|path| path.starts_with(DIRECTORY)) {
        env.set_file_bytes(path, Vec::new());
    }
    assert_eq!(contents(&open_copy(options(&env), "after the original has lost everything")), expected);
}

/// Trap: the files are the database's own under a second name, which it reads through mappings: cut
/// short, they kill the process.
#[test]
fn a_copy_that_is_cut_short_leaves_the_database_whole() {
    for (read_mode, compression) in [(ReadMode::Mmap, Compression::None), (ReadMode::Pread, Compression::Lz4)] {
        let scratch = Scratch::new();
        let (path, target) = (scratch.path().join("db"), scratch.path().join("copy"));
        let options = || {
            let options = Options::default().background_threads(0).min_blob_size(200);
            options.read_mode(read_mode).compression(compression)
        };
        let db = Db::open(&path, options()).unwrap();
        fill(&db);
        let expected = contents(&db);
        db.checkpoint_with(&target, CheckpointMode::Copy).unwrap();
        let mut cut = 0;
        for entry in std::fs::read_dir(&target).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "table" || kind == "blob") {
                std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
                cut += 1;
            }
        }
        assert!(cut >= 3, "{cut}");
        assert_eq!(contents(&db), expected);
        db.verify().unwrap();
        db.compact().unwrap();
        assert_eq!(contents(&db), expected);
        assert!(Db::open(&target, options()).is_err());
    }
}

/// Trap: of many blob files, those after the first are not looked at.
#[test]
fn many_blob_files_are_all_checked() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = keyspace(&db, "a");
    // Each checkpoint ends a blob file.
    for number in 0..150u32 {
        a.put(number.to_be_bytes(), vec![number as u8; 300]).unwrap();
        db.checkpoint(format!("linked{number}")).unwrap();
    }
    let blobs: Vec<PathBuf> =
        tables_and_blobs(&env).into_iter().filter(|path| path.extension().unwrap() == "blob").collect();
    assert!(blobs.len() > 140, "{}", blobs.len());
    for path in [&blobs[0], &blobs[63], &blobs[64], &blobs[blobs.len() - 1]] {
        flipped(&env, path, 100);
        let result = db.checkpoint_with(COPY, CheckpointMode::Copy);
        assert!(matches!(&result, Err(Error::Corruption { path: named, .. }) if named == path), "{result:?}");
        flipped(&env, path, 100);
    }
    db.checkpoint_with(COPY, CheckpointMode::Copy).unwrap();
    assert_eq!(contents(&open_copy(options(&env), "many")), contents(&db));
}
