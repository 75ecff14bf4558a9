//! A repair replaces damaged files. Wherever it is cut short, the bytes of every damaged file are
//! still somewhere: under its name, or in `lost`, also after the next open has cleaned up.

use crate::common::*;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Files = BTreeMap<String, Vec<u8>>;

/// A database with two tables, a large value and a log; and the names of its files that were
/// damaged.
fn damaged(what: &[&str]) -> (Files, Vec<String>) {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env).min_blob_size(1000)).unwrap();
    let names = keyspace(&db, "names");
    for round in 0..2 {
        for number in 0..60 {
            names.put(format!("key{number:03}"), format!("{round} of {number}")).unwrap();
        }
        names.put("large", vec![round; 3000]).unwrap();
        db.flush().unwrap();
    }
    for number in 0..60 {
        names.put(format!("late{number:03}"), [5; 800]).unwrap();
    }
    drop(names);
    // After a close nothing of the log may be missing.
    db.close().unwrap();
    let mut files = files(&env);
    let mut harmed = Vec::new();
    for ending in what {
        // Of the log a segment that is needed.
        let is_needed = |bytes: &[u8]| *ending != ".wal" || bytes.windows(7).any(|window| window == b"late020");
        let fits = |(name, bytes): &(&String, &mut Vec<u8>)| name.ends_with(ending) && is_needed(bytes);
        let (name, bytes) = files.iter_mut().find(fits).unwrap();
        match *ending {
            "CURRENT" => bytes.truncate(3),
            // A flipped bit in the middle of what is not zero.
            _ => {
                let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
                bytes[end / 2] ^= 1;
            }
        }
        harmed.push(name.clone());
    }
    (files, harmed)
}

fn with_files(files: &Files) -> MemEnv {
    let env = MemEnv::new();
    for (name, bytes) in files {
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), bytes.clone());
    }
    env
}

fn check_kept(env: &MemEnv, files: &Files, harmed: &[String], what: &str) {
    let all: Vec<Vec<u8>> = env.files().iter().filter_map(|path| env.file_bytes(path)).collect();
    for name in harmed {
        assert!(all.contains(&files[name]), "{what}: {name} is gone; there are {:?}", env.files());
    }
}

/// Cuts a repair short after each of its steps, then opens the database if it lets itself be
/// opened, and repairs it if not.
fn cut_short_everywhere(damage: &[&str], wrap: impl Fn(&MemEnv) -> Options) {
    let (files, harmed) = damaged(damage);
    let mut opened = 0;
    for count in 0.. {
        let env = with_files(&files);
        env.crash_after(env.mutations() + count);
        let done = Db::repair(DIRECTORY, wrap(&env)).is_ok();
        for mode in [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random] {
            let what = format!("{damage:?}, power lost after {count} steps, {mode:?}");
            let after = env.crash(&mode, count);
            if let Ok(db) = Db::open(DIRECTORY, wrap(&after)) {
                opened += u32::from(!done);
                // What is not needed is reused or removed.
                let names = keyspace(&db, "names");
                (0..200).for_each(|number: u32| names.put(number.to_be_bytes(), [9; 300]).unwrap());
                drop(names);
                db.close().unwrap();
            } else {
                Db::repair(DIRECTORY, wrap(&after)).unwrap_or_else(|error| panic!("{what}: {error}"));
                Db::open(DIRECTORY, wrap(&after)).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            check_kept(&after, &files, &harmed, &what);
        }
        if done {
            break;
        }
    }
    assert!(opened > 0, "{damage:?}: the new manifest is in force only at the end");
}

#[test]
fn with_links() {
    for damage in [&[".table"][..], &[".wal"], &[".blob", ".table"], &["CURRENT", ".table"]] {
        cut_short_everywhere(damage, simulated);
    }
}

#[test]
fn without_links() {
    cut_short_everywhere(&[".table", ".wal"], |env| {
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Link, 0, Action::Fail(std::io::ErrorKind::Unsupported)).from_then_on());
        simulated(env).env(Arc::new(faulty))
    });
}
