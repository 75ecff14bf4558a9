//! A repair replaces damaged files. Wherever it is cut short, the bytes of every damaged file are
//! still somewhere: under its name, or in `lost`, also after the next open has cleaned up.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use esker::{ChangeRetention, Db, Options, VerifyEvent, WriteOptions};
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
    damaged_of(what, simulated)
}

fn damaged_of(what: &[&str], wrap: impl Fn(&MemEnv) -> Options) -> (Files, Vec<String>) {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, wrap(&env).min_blob_size(1000)).unwrap();
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

/// Whether a handle for reading and a follower take the database for undamaged, and what a
/// verification tells. No one of them changes a file.
fn read(options: impl Fn() -> Options) -> ([bool; 2], Vec<String>) {
    let opened = [Db::open_read_only(DIRECTORY, options()).is_ok(), Db::open_follower(DIRECTORY, options()).is_ok()];
    let mut told = Vec::new();
    let verified = Db::verify_directory(DIRECTORY, options(), &mut |event| {
        if let VerifyEvent::Damage(error) = event {
            told.push(error.to_string());
        }
    });
    assert_eq!(verified.is_ok(), told.is_empty());
    (opened, told)
}

/// Cuts a repair short after each of its steps, then opens the database if it lets itself be
/// opened, and repairs it if not.
fn cut_short_everywhere((files, harmed): (Files, Vec<String>), wrap: impl Fn(&MemEnv) -> Options) {
    let untouched = read(|| wrap(&with_files(&files)));
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
            let now = read(|| wrap(&after));
            assert!(!is_undone || now == untouched, "{what}: {now:?}, before the repair {untouched:?}");
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

/// How a sync of the directory fails in what follows.
const GIVEN_UP: [SyncFailure; 2] = [SyncFailure::DropPending, SyncFailure::KeepSome(1)];

/// What repairs of a database leave that are cut short by the death of their process, before the
/// repair is done: one image for each set of names.
fn cut_short(files: &Files, wrap: fn(&MemEnv) -> Options) -> Vec<MemEnv> {
    let whole = with_files(files);
    let before = whole.mutations();
    Db::repair(DIRECTORY, wrap(&whole)).unwrap();
    let calls = whole.mutations() - before;
    let left = (0..calls).map(|count| {
        let env = with_files(files);
        env.crash_after(env.mutations() + count);
        let _ = Db::repair(DIRECTORY, wrap(&env));
        env.crash(&CrashMode::KeepAll, count)
    });
    let path = |name: &str| Path::new(DIRECTORY).join(name);
    let is_undone = |env: &MemEnv| {
        env.file_bytes(&path("CURRENT")).as_ref() == files.get("CURRENT") && env.files().contains(&path("REPAIR"))
    };
    let mut images: Vec<MemEnv> = left.filter(is_undone).collect();
    // The last ones: their files have contents.
    images.reverse();
    images.dedup_by_key(|env| env.list(Path::new(DIRECTORY)).unwrap());
    assert!(images.len() > 5, "{} images", images.len());
    images
}

/// A repair cut short; an open or another repair that undoes it, with a failed sync of the
/// directory that gives up its names; the death of that process; another open, which may write; and
/// a power loss, which brings back what was given up.
fn undone_with_a_failed_sync(
    (files, images): &(Files, Vec<MemEnv>),
    wrap: fn(&MemEnv) -> Options,
    failure: &SyncFailure,
    by: fn(Options) -> bool,
) {
    let opens_untouched = Db::open(DIRECTORY, wrap(&with_files(files))).is_ok();
    for (count, nth) in (0..images.len()).flat_map(|count| (0..4).map(move |nth| (count, nth))) {
        let env = images[count].kill();
        env.fail_sync_dir(nth, *failure);
        let is_repaired = by(wrap(&env));
        let env = env.kill();
        let what = format!("image {count} from the end, sync {nth} of the directory fails, {failure:?}");
        let is_open = is_repaired || opens_untouched;
        let opened = Db::open(DIRECTORY, wrap(&env));
        assert_eq!(opened.is_ok(), is_open, "{what}");
        if let Ok(db) = &opened {
            keyspace(db, "names").put_with("new", "1", &WriteOptions::new().sync(true)).unwrap();
        }
        for mode in [CrashMode::LoseAll, CrashMode::KeepAll] {
            let after = env.crash(&mode, nth);
            match Db::open(DIRECTORY, wrap(&after)) {
                Ok(db) => {
                    assert!(is_open, "{what}, {mode:?}: the damage is hidden");
                    let value = keyspace(&db, "names").get("new").unwrap();
                    assert!(value.is_some(), "{what}, {mode:?}: a synced write is lost");
                }
                Err(error) => assert!(!is_open, "{what}, {mode:?}: {error}"),
            }
        }
    }
}

fn keeping(env: &MemEnv) -> Options {
    simulated(env).wal_segment_bytes(1 << 10).keep_changes(ChangeRetention::Bytes(1 << 40))
}

/// A repair that fails at its end leaves a segment of the log that goes on from the one before it,
/// as each does, and is no part of the log.
#[test]
fn readers_of_changes_and_followers_leave_out_its_segment() {
    let (files, _) = damaged_of(&[".table"], keeping);
    let env = with_files(&files);
    let follower = || Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    let changes = |db: &Db| db.changes(0).unwrap().collect::<esker::Result<Vec<_>>>().unwrap();
    let (earlier, reader) = (follower(), Db::open_read_only(DIRECTORY, keeping(&env)).unwrap());
    let right = changes(&reader);
    assert!(right.len() > 100);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    faulty.add(Rule::new(Class::Rename, 0, Action::Fail(std::io::ErrorKind::Other)).from_then_on());
    let segments = || env.files().into_iter().filter(|path| path.extension().is_some_and(|it| it == "wal")).count();
    let before = segments();
    assert!(Db::repair(DIRECTORY, keeping(&env).env(Arc::new(faulty))).is_err());
    assert_eq!(segments(), before + 1);
    let later = follower();
    for (who, follower) in [("an earlier", &earlier), ("a later", &later)] {
        for round in 0..3 {
            let progress = follower.catch_up().unwrap();
            assert!(progress.at_end, "{who} follower, round {round}: {progress:?}");
        }
        assert_eq!(changes(follower.db()), right, "{who} follower");
    }
    assert_eq!(changes(&reader), right);
    assert_eq!(changes(&Db::open_read_only(DIRECTORY, keeping(&env)).unwrap()), right);
    // The next process takes the number of that segment, and is followed.
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    keyspace(&db, "names").put("new", "1").unwrap();
    for (who, follower) in [("an earlier", &earlier), ("a later", &later)] {
        follower.catch_up().unwrap();
        let value = follower.db().existing_keyspace("names").unwrap().get("new").unwrap();
        assert!(value.is_some(), "{who} follower");
    }
}

/// Seen: the mark came back after the next process had written, and the open behind that took its
/// log for a part of the repair; the repair's segment came back without the mark, hid damage, and
/// took the place of the next process's.
#[test]
fn what_was_undone_does_not_come_back() {
    let by_an_open = |options: Options| {
        drop(Db::open(DIRECTORY, options));
        false
    };
    let by_a_repair = |options: Options| Db::repair(DIRECTORY, options).is_ok();
    // With `keeping` the numbers of the segments are higher than those of all other files.
    let all_options: [fn(&MemEnv) -> Options; 2] = [simulated, keeping];
    for (damage, wrap) in [".table", NEWEST_SEGMENT].iter().flat_map(|it| all_options.map(|wrap| (it, wrap))) {
        let (files, _) = damaged_of(&[damage], wrap);
        let left = (files.clone(), cut_short(&files, wrap));
        for failure in &GIVEN_UP {
            undone_with_a_failed_sync(&left, wrap, failure, by_an_open);
            undone_with_a_failed_sync(&left, wrap, failure, by_a_repair);
        }
    }
}

/// The mark of a repair that is done says nothing as long as `CURRENT` is there; without it,
/// another repair would undo the first one, with all that was written since.
#[test]
fn the_mark_of_a_repair_that_is_done_does_not_come_back() {
    let (files, _) = damaged(&[".table"]);
    for failure in GIVEN_UP {
        for nth in 0.. {
            let env = with_files(&files);
            env.fail_sync_dir(nth, failure);
            let is_done = Db::repair(DIRECTORY, simulated(&env)).is_ok();
            let env = env.kill();
            let what = format!("sync {nth} of the directory fails, {failure:?}");
            let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
            let names = keyspace(&db, "names");
            names.put("new", "1").unwrap();
            drop(names);
            db.flush().unwrap();
            db.close().unwrap();
            let after = env.crash(&CrashMode::LoseAll, nth);
            after.remove(&Path::new(DIRECTORY).join("CURRENT")).unwrap();
            Db::repair(DIRECTORY, simulated(&after)).unwrap();
            let value = keyspace(&open(&after), "names").get("new").unwrap();
            assert!(value.is_some(), "{what}: a synced write is lost");
            if is_done {
                assert!(nth > 4, "{nth} syncs");
                break;
            }
        }
    }
}

/// What a repair has made of a write that was never synced, and then lost, is all that there is
/// besides an empty log. Once that repair is undone nothing is left to repair, and an open begins
/// anew: seen to say `CURRENT` is missing but there is a table, whose name had come back.
#[test]
fn an_empty_table_that_comes_back_is_no_damage() {
    let written = MemEnv::new();
    let db = open(&written);
    keyspace(&db, "names").put("key", "value").unwrap();
    let written = written.kill();
    drop(db);
    written.remove(&Path::new(DIRECTORY).join("CURRENT")).unwrap();
    written.sync_dir(Path::new(DIRECTORY)).unwrap();
    let mut came_back = 0;
    for calls in 0.. {
        let env = written.kill();
        env.crash_after(env.mutations() + calls);
        let is_done = Db::repair(DIRECTORY, simulated(&env)).is_ok();
        let undone = env.crash(&CrashMode::LoseAll, 0);
        let is_undone = Db::repair(DIRECTORY, simulated(&undone)).is_ok_and(|report| report.healthy);
        let after = undone.crash(&CrashMode::LoseAll, 0);
        let empty = |(name, bytes): (String, Vec<u8>)| name.ends_with(".table") && bytes.is_empty();
        came_back += u32::from(is_undone && files(&after).into_iter().any(empty));
        if is_undone {
            open(&after);
        }
        if is_done {
            break;
        }
    }
    assert!(came_back > 2, "{came_back} times");
}

/// The last table of a flush tells how much of the log is in tables, and is right about that beside
/// the other ones only. A repair that has written the log to tables is cut short; the undo of it
/// leaves some of their names; the next one goes no further than that; and power is lost.
#[test]
fn some_tables_of_what_was_undone_do_not_come_back() {
    let cases: [&[&str]; 2] = [&["MANIFEST"], &["CURRENT", "MANIFEST"]];
    for damage in cases {
        tables_of_an_undone_repair(damage);
    }
}

fn tables_of_an_undone_repair(damage: &[&str]) {
    let images = cut_short(&damaged(damage).0, simulated);
    for (count, seed) in (0..images.len()).flat_map(|count| (0..4).map(move |seed| (count, seed))) {
        let undone = images[count].kill();
        undone.fail_sync_dir(0, SyncFailure::KeepSome(seed));
        assert!(Db::repair(DIRECTORY, simulated(&undone)).is_err());
        for steps in 0..8 {
            let env = undone.kill();
            env.crash_after(env.mutations() + steps);
            assert!(Db::repair(DIRECTORY, simulated(&env)).is_err());
            let after = env.crash(&CrashMode::LoseAll, steps);
            Db::repair(DIRECTORY, simulated(&after)).unwrap();
            let names = keyspace(&open(&after), "names");
            for number in 0..60 {
                let found = names.get(format!("late{number:03}")).unwrap().is_some();
                assert!(
                    found,
                    "{damage:?}, image {count} from the end, seed {seed}, {steps} steps: write {number} is lost"
                );
            }
        }
    }
}

/// A repair has made its manifest current and says so to a follower, but not durably. Power is
/// lost, and the repair undone.
#[test]
fn a_checkpoint_of_a_follower_outlives_the_undo_of_a_repair() {
    let (files, _) = damaged(&[".table"]);
    let path = |name: &str| Path::new(DIRECTORY).join(name);
    let current = |env: &MemEnv| env.file_bytes(&path("CURRENT"));
    let switched = (0..).find_map(|nth| {
        let env = with_files(&files);
        env.fail_sync_dir(nth, SyncFailure::DropPending);
        assert!(Db::repair(DIRECTORY, simulated(&env)).is_err());
        (current(&env).as_ref() != files.get("CURRENT")).then_some(env)
    });
    let env = switched.unwrap();
    Db::open_follower(DIRECTORY, simulated(&env)).unwrap().db().checkpoint("/copy").unwrap();
    let after = env.crash(&CrashMode::LoseAll, 0);
    assert_eq!(current(&after).as_ref(), files.get("CURRENT"));
    drop(Db::open(DIRECTORY, simulated(&after)).unwrap());
    let copy = Db::open("/copy", simulated(&after)).unwrap();
    copy.verify().unwrap();
    let count = keyspace(&copy, "names").iter().count();
    assert!(count >= 60, "{count} keys");
}
