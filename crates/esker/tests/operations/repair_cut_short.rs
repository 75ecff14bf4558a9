//! A repair replaces damaged files. Wherever it is cut short, the bytes of every damaged file are
//! still somewhere: under its name, or in `lost`, also after the next open has cleaned up.

use crate::common::*;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Options, WriteOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Of [`damaged`]: the log's last segment.
const NEWEST_SEGMENT: &str = "newest .wal";
/// The beginning of that: without it the file does not say that it is one.
const ITS_BEGINNING: &str = "first bytes of the newest .wal";

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
    for &kind in what {
        // Of the log a segment that is needed, and the newest one.
        let (ending, entry) = match kind {
            ".wal" => (".wal", "late020"),
            NEWEST_SEGMENT | ITS_BEGINNING => (".wal", "late059"),
            other => (other, ""),
        };
        let has_entry = |bytes: &[u8]| bytes.windows(7).any(|window| window == entry.as_bytes());
        let fits =
            |(name, bytes): &(&String, &mut Vec<u8>)| name.contains(ending) && (entry.is_empty() || has_entry(bytes));
        let (name, bytes) = files.iter_mut().find(fits).unwrap();
        match kind {
            ITS_BEGINNING => bytes[..112].fill(0),
            "CURRENT" => bytes.truncate(3),
            // Its first record.
            "MANIFEST" => bytes[20] ^= 1,
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

/// A log whose only write is damaged. That it was synced, the manifest alone says.
fn damaged_write_of_a_synced_log() -> (Files, Vec<String>) {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    let names = keyspace(&db, "names");
    names.put_with("synced", [5; 800], &WriteOptions::new().sync(true)).unwrap();
    // Says how far the log is synced.
    keyspace(&db, "others");
    let mut files = files(&env);
    let (name, bytes) = files.iter_mut().find(|(name, _)| name.ends_with(".wal")).unwrap();
    let entry = bytes.windows(6).position(|window| window == b"synced").unwrap();
    bytes[entry] ^= 1;
    let harmed = vec![name.clone()];
    (files, harmed)
}

/// A log that is not closed, with a flipped bit in the link of its newest segment, which was
/// synced; with `and_table` in a table too.
fn damaged_link(and_table: bool) -> (Files, Vec<String>) {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    let names = keyspace(&db, "names");
    (0..60).for_each(|number| names.put(format!("key{number:03}"), "early").unwrap());
    db.flush().unwrap();
    (0..60).for_each(|number| names.put(format!("late{number:03}"), [5; 800]).unwrap());
    names.put_with("synced", [5; 800], &WriteOptions::new().sync(true)).unwrap();
    // Says how far the log is synced.
    keyspace(&db, "others");
    let mut files = files(&env);
    let mut harmed = Vec::new();
    for (ending, entry, place) in [(".wal", "synced", 64 + 30), (".table", "early", 20)] {
        let has_entry = |bytes: &[u8]| bytes.windows(entry.len()).any(|window| window == entry.as_bytes());
        let fits = |(name, bytes): &(&String, &mut Vec<u8>)| name.ends_with(ending) && has_entry(bytes);
        if ending == ".wal" || and_table {
            let (name, bytes) = files.iter_mut().find(fits).unwrap();
            bytes[place] ^= 1;
            harmed.push(name.clone());
        }
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

/// Whether a handle for reading, a follower and a verification take the database for undamaged. No
/// one of them changes a file.
fn read_as_whole(options: impl Fn() -> Options) -> [bool; 3] {
    [
        Db::open_read_only(DIRECTORY, options()).is_ok(),
        Db::open_follower(DIRECTORY, options()).is_ok(),
        Db::verify_directory(DIRECTORY, options(), &mut |_| {}).is_ok(),
    ]
}

/// Cuts a repair short after each of its steps, then opens the database if it lets itself be
/// opened, and repairs it if not.
fn cut_short_everywhere((files, harmed): (Files, Vec<String>), wrap: impl Fn(&MemEnv) -> Options) {
    let untouched = read_as_whole(|| wrap(&with_files(&files)));
    let (opens_untouched, mut opened) = (Db::open(DIRECTORY, wrap(&with_files(&files))).is_ok(), 0);
    for count in 0.. {
        let env = with_files(&files);
        env.crash_after(env.mutations() + count);
        let done = Db::repair(DIRECTORY, wrap(&env)).is_ok();
        for mode in [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random] {
            let what = format!("{harmed:?}, power lost after {count} steps, {mode:?}");
            let after = env.crash(&mode, count);
            let is_undone = after.file_bytes(&Path::new(DIRECTORY).join("CURRENT")).as_ref() == files.get("CURRENT");
            // Seen: a segment that the repair had begun hid the damage from those who only read.
            let read = read_as_whole(|| wrap(&after));
            assert!(!is_undone || read == untouched, "{what}: {read:?}, before the repair {untouched:?}");
            if let Ok(db) = Db::open(DIRECTORY, wrap(&after)) {
                opened += u32::from(!done);
                assert!(!is_undone || opens_untouched, "{what}: the damage is hidden");
                // What is not needed is reused or removed.
                let names = keyspace(&db, "names");
                (0..200).for_each(|number: u32| names.put(number.to_be_bytes(), [9; 300]).unwrap());
                drop(names);
                db.close().unwrap();
            } else {
                let report = Db::repair(DIRECTORY, wrap(&after)).unwrap_or_else(|error| panic!("{what}: {error}"));
                // Of a log that is whole, nothing.
                let of_log =
                    |path: &Path| path == Path::new(DIRECTORY) || path.extension().is_some_and(|it| it == "wal");
                let is_told = report.files.iter().any(|file| of_log(&file.path));
                let is_harmed = harmed.iter().any(|name| of_log(Path::new(name)));
                assert!(report.lost_entries() && is_told == is_harmed, "{what}: {report}");
                Db::open(DIRECTORY, wrap(&after)).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            check_kept(&after, &files, &harmed, &what);
        }
        if done {
            break;
        }
    }
    assert!(opened > 0, "{harmed:?}: the new manifest is in force only at the end");
}

/// Seen: where the newest segment of the log was damaged, the second repair told nothing and kept
/// nothing of it: it took the empty segment that the first one had begun for the end of the log.
/// The same where only the manifest says that there was a write, or where that is damaged too.
#[test]
fn with_links() {
    const CASES: [&[&str]; 7] = [
        &[".table"],
        &[".wal"],
        &[NEWEST_SEGMENT],
        &[ITS_BEGINNING],
        &["MANIFEST", NEWEST_SEGMENT],
        &[".blob", ".table"],
        &["CURRENT", ".table"],
    ];
    CASES.iter().for_each(|damage| cut_short_everywhere(damaged(damage), simulated));
    cut_short_everywhere(damaged_write_of_a_synced_log(), simulated);
    [false, true].into_iter().for_each(|and_table| cut_short_everywhere(damaged_link(and_table), simulated));
}

#[test]
fn without_links() {
    cut_short_everywhere(damaged(&[".table", ".wal"]), |env| {
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Link, 0, Action::Fail(std::io::ErrorKind::Unsupported)).from_then_on());
        simulated(env).env(Arc::new(faulty))
    });
}
