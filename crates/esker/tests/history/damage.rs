//! Damage to stored files: an error, or a state that the contract allows. Never half of a batch,
//! and never less than what was durable without a word.

use crate::common::{keyspace, simulated, synced, unlogged};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use esker::merge::{Max, Min};
use esker::{CompactionStyle, Db, Error, KeyspaceOptions, Options, RepairReport};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIRECTORY: &str = "/db";

fn options(env: &MemEnv) -> Options {
    simulated(env.clone()).write_buffer_bytes(64 << 10)
}

/// The files of the database whose names contain `part`.
fn files(env: &MemEnv, part: &str) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part));
    env.files().into_iter().filter(|path| path.parent() == Some(Path::new(DIRECTORY)) && named(path)).collect()
}

/// Calls `look` with a copy of the disk for every byte of the file with one bit of it flipped,
/// another one each time.
fn with_every_byte_flipped(env: &MemEnv, path: &Path, mut look: impl FnMut(MemEnv, usize)) {
    let bytes = env.file_bytes(path).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    for at in 0..end {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let damaged = env.kill();
        damaged.set_file_bytes(path, flipped);
        look(damaged, at);
    }
}

/// Which of the keys `a` in keyspace `a` and `b` in keyspace `b` are there; none if the database
/// says that it is damaged.
fn what_is_there(env: &MemEnv) -> Option<[bool; 2]> {
    let db = match Db::open(DIRECTORY, options(env)) {
        Ok(db) => db,
        Err(Error::Corruption { .. } | Error::Unsupported { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    Some(["a", "b"].map(|name| keyspace(&db, name).get(name).unwrap().is_some()))
}

/// Seen: after a bit of the log had flipped, one half of a batch was there and the other was not.
/// Trigger: the other half is in a table, whose flush had synced the log for that; nothing durable
/// said how far, so that the damage passed for a torn end of the log. Cost: half of a batch,
/// without an error.
#[test]
fn a_flip_in_a_log_that_a_flush_synced_exposes_no_half_of_a_batch() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    let mut batch = db.batch();
    batch.put(&a, "a", "1").unwrap();
    batch.put(&b, "b", "1").unwrap();
    batch.commit().unwrap();
    // Keyspace `a` is flushed, `b` is not.
    let mut written = 0;
    while files(&env, ".table").is_empty() {
        a.put_with(format!("fill{written}"), vec![7u8; 4000], &unlogged()).unwrap();
        written += 1;
        assert!(written < 1000, "no flush came");
    }
    check_that_a_flip_exposes_no_half(&env);
}

/// The same where an edit alone says so: unlogged writes have a manifest of their own, and behind
/// a logged one that comes later the log itself says how far it was synced.
#[test]
fn a_flip_in_a_log_that_an_edit_calls_synced_exposes_no_half_of_a_batch() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let a = db.keyspace("a", KeyspaceOptions::default().merge_operator(Max)).unwrap();
    let b = keyspace(&db, "b");
    let mut batch = db.batch();
    batch.put(&a, "a", "1").unwrap();
    batch.put(&b, "b", "1").unwrap();
    batch.commit().unwrap();
    // What was written under the one operator is flushed, and nothing else.
    a.set_merge_operator(Min).unwrap();
    assert_eq!(files(&env, ".table").len(), 1);
    check_that_a_flip_exposes_no_half(&env);
}

/// Of the batch that the log of this database begins with.
fn check_that_a_flip_exposes_no_half(env: &MemEnv) {
    let mut noticed = 0;
    for path in files(env, ".wal") {
        with_every_byte_flipped(env, &path, |damaged, at| match what_is_there(&damaged) {
            None => noticed += 1,
            Some([true, true]) => {}
            Some(there) => panic!("byte {at} of {}: {there:?}", path.display()),
        });
    }
    assert!(noticed > 50, "{noticed} flips were noticed");
}

/// Seen: a commit older than a load was gone, the load was there. Trigger: a flipped bit in the
/// log, as above. Cost: a hole.
#[test]
fn a_flip_in_a_log_that_a_load_synced_leaves_no_hole() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    b.put("b", "1").unwrap();
    a.ingest([("a", "1")]).unwrap();
    for path in files(&env, ".wal") {
        with_every_byte_flipped(&env, &path, |damaged, at| {
            let there = what_is_there(&damaged);
            assert!(matches!(there, None | Some([true, true])), "byte {at} of {}: {there:?}", path.display());
        });
    }
}

/// What stands in a table and nowhere else, brought there by a load or by a flush of writes without
/// log.
fn only_in_a_table(env: &MemEnv, by_load: bool, closes: bool) {
    let db = Db::open(DIRECTORY, options(env)).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    b.put_with("b", "1", &synced()).unwrap();
    if by_load {
        a.ingest([("a", "1")]).unwrap();
    } else {
        a.put_with("a", "1", &unlogged()).unwrap();
        db.flush().unwrap();
    }
    if closes {
        db.close().unwrap();
    }
}

/// Seen: a load was gone without an error, and the next open removed its table. Trigger: damage to
/// the last edit of the manifest, a file cut short, or an older copy of it put back, also after a
/// clean close. Cost: all that was loaded.
#[test]
fn damage_to_the_manifest_loses_nothing_that_is_only_in_a_table() {
    for (by_load, closes) in [(true, false), (true, true), (false, false), (false, true)] {
        let env = MemEnv::new();
        only_in_a_table(&env, by_load, closes);
        let [path] = &files(&env, "MANIFEST")[..] else { panic!("one manifest") };
        let bytes = env.file_bytes(path).unwrap();
        let mut noticed = 0;
        let mut look = |damaged: MemEnv, at: usize| {
            match what_is_there(&damaged) {
                Some(there) => assert_eq!(there, [true, true], "at {at}: by load {by_load}, closed {closes}"),
                None => {
                    // Nothing was taken away that the undamaged file needs.
                    damaged.set_file_bytes(path, bytes.clone());
                    assert_eq!(what_is_there(&damaged.kill()), Some([true, true]));
                    noticed += 1;
                }
            }
        };
        with_every_byte_flipped(&env, path, &mut look);
        for length in 0..bytes.len() {
            let damaged = env.kill();
            damaged.set_file_bytes(path, bytes[..length].to_vec());
            look(damaged, length);
        }
        assert!(noticed > 50, "{noticed} were noticed");
    }
}

/// The older copy is of the manifest or of `CURRENT`. Both put back together are an older state of
/// the database, which nothing tells from the present one.
#[test]
fn an_older_copy_of_the_manifest_loses_nothing_that_is_only_in_a_table() {
    for closes in [false, true] {
        let env = MemEnv::new();
        let db = Db::open(DIRECTORY, options(&env)).unwrap();
        for name in ["a", "b"] {
            keyspace(&db, name);
        }
        let older: Vec<(PathBuf, Vec<u8>)> = ["MANIFEST", "CURRENT"]
            .iter()
            .flat_map(|part| files(&env, part))
            .map(|path| (path.clone(), env.file_bytes(&path).unwrap()))
            .collect();
        assert_eq!(older.len(), 2);
        drop(db);
        only_in_a_table(&env, true, closes);
        for (path, bytes) in &older {
            let damaged = env.kill();
            damaged.set_file_bytes(path, bytes.clone());
            let there = what_is_there(&damaged);
            assert!(matches!(there, None | Some([true, true])), "closed {closes}: {there:?}");
        }
    }
}

/// The database with its manifest cut off at every length.
fn at_each_length_of_its_manifest(env: &MemEnv, options: &Options, mut look: impl FnMut(usize, Options)) {
    let [path] = &files(env, "MANIFEST")[..] else { panic!("one manifest") };
    let bytes = env.file_bytes(path).unwrap();
    for length in 0..=bytes.len() {
        let damaged = env.kill();
        damaged.set_file_bytes(path, bytes[..length].to_vec());
        look(length, options.clone().env(Arc::new(damaged)));
    }
}

/// Seen: a synced write was missing without an error. Trigger: damage to the manifest takes its
/// edits, and the log, which has all that they announced, refers to a large value that was
/// overwritten, and whose file was removed since. Cost: all writes behind that place. A repair
/// finds them: the table, which the manifest does not name, says what of the log it has. Also where
/// no later record says that those before it were synced.
#[test]
fn a_large_value_that_was_removed_is_no_end_of_the_log_for_a_manifest_without_edits() {
    for known_to_the_log_alone in [None, Some("3")] {
        let env = MemEnv::new();
        let options = options(&env).min_blob_size(100);
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let a = keyspace(&db, "a");
        a.put("a", vec![1; 1000]).unwrap();
        a.put_with("a", "2", &synced()).unwrap();
        db.compact().unwrap();
        if let Some(value) = known_to_the_log_alone {
            a.put_with("b", value, &synced()).unwrap();
        }
        assert_eq!(files(&env, ".blob"), Vec::<PathBuf>::new());
        let mut noticed = 0;
        at_each_length_of_its_manifest(&env, &options, |length, options| {
            let db = match Db::open(DIRECTORY, options.clone()) {
                Ok(db) => db,
                Err(Error::Corruption { .. }) => {
                    noticed += 1;
                    Db::repair(DIRECTORY, options.clone()).unwrap();
                    Db::open(DIRECTORY, options).unwrap()
                }
                Err(error) => panic!("{error}"),
            };
            let found = ["a", "b"].map(|key| keyspace(&db, "a").get(key).unwrap());
            assert_eq!(found, [Some("2".into()), known_to_the_log_alone.map(Into::into)], "{length}");
        });
        assert!(noticed > 50, "{noticed} were noticed");
    }
}

/// The flush of the keyspace that had it leaves no table. That of another one does, and is not left
/// out for that; what comes behind the place is lost, and the report says so.
#[test]
fn a_large_value_that_is_in_no_table_costs_no_table_of_another_keyspace() {
    let env = MemEnv::new();
    let options = options(&env).min_blob_size(100);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    a.put("x", vec![1; 1000]).unwrap();
    a.delete("x").unwrap();
    b.put_with("in a table", "1", &synced()).unwrap();
    db.compact().unwrap();
    b.put_with("in the log", "2", &synced()).unwrap();
    let mut repaired = 0;
    at_each_length_of_its_manifest(&env, &options, |length, options| {
        let mut is_told = false;
        let db = Db::open(DIRECTORY, options.clone()).unwrap_or_else(|_| {
            let report = Db::repair(DIRECTORY, options.clone()).unwrap();
            is_told = report.files.iter().any(|file| file.entries_lost.is_none());
            repaired += 1;
            Db::open(DIRECTORY, options).unwrap()
        });
        let found = ["in a table", "in the log"].map(|key| keyspace(&db, "b").get(key).unwrap().is_some());
        assert!(found[0] && (found[1] || is_told), "{length}: {found:?}");
    });
    assert!(repaired > 50, "{repaired} repairs");
}

/// Repairs the database at every length of its manifest, and shows the report and the repaired
/// database where the manifest looked whole, and the log told that edits are missing. How often.
fn repaired_without_edits(env: &MemEnv, options: &Options, mut look: impl FnMut(&RepairReport, Db)) -> usize {
    let mut repaired = 0;
    at_each_length_of_its_manifest(env, options, |_, options| {
        let report = Db::repair(DIRECTORY, options.clone()).unwrap();
        if report.files.iter().any(|file| file.problem.starts_with("edits are missing at its end")) {
            repaired += 1;
            look(&report, Db::open(DIRECTORY, options).unwrap());
        }
    });
    repaired
}

/// Seen: a part of a load was there. Trigger: edits are missing, as above, and the process died
/// while it loaded. Cost: what a synced write had said of the same keys.
#[test]
fn a_load_that_was_under_way_is_not_among_the_tables_that_a_repair_takes() {
    let env = MemEnv::new();
    let options = options(&env).min_blob_size(100).target_file_bytes(1 << 10);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let a = keyspace(&db, "a");
    a.put("a", vec![1; 1000]).unwrap();
    a.put_with("a", "2", &synced()).unwrap();
    a.put_with("load0000", "3", &synced()).unwrap();
    db.compact().unwrap();
    let mut died = None;
    let pairs = (0..200).map(|number| {
        if number == 199 {
            died = Some(env.kill());
        }
        (format!("load{number:04}"), [7; 50])
    });
    a.ingest(pairs).unwrap();
    let died = died.unwrap();
    assert!(files(&died, ".table").len() > 3, "{:?}", died.files());
    let repaired = repaired_without_edits(&died, &options, |_, db| {
        let a = keyspace(&db, "a");
        assert_eq!(
            ["a", "load0000", "load0001"].map(|key| a.get(key).unwrap()),
            [Some("2".into()), Some("3".into()), None]
        );
    });
    assert!(repaired > 0);
}

/// Trap: its number is below one that was reached, by a load that began later and was done.
#[test]
fn a_load_that_was_overtaken_is_not_among_the_tables_that_a_repair_takes() {
    let env = MemEnv::new();
    let options = options(&env).min_blob_size(100).target_file_bytes(1 << 10);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    let mut died = None;
    let pairs = (0..200).map(|number| {
        if number == 199 {
            b.ingest((0..400).map(|number| (format!("other{number:05}"), [7; 50]))).unwrap();
            a.put("a", vec![1; 1000]).unwrap();
            a.put_with("a", "2", &synced()).unwrap();
            a.put_with("load0000", "3", &synced()).unwrap();
            a.compact().unwrap();
            died = Some(env.kill());
        }
        (format!("load{number:04}"), [7; 50])
    });
    a.ingest(pairs).unwrap();
    let repaired = repaired_without_edits(&died.unwrap(), &options, |_, db| {
        let a = keyspace(&db, "a");
        assert_eq!(
            ["a", "load0000", "load0001"].map(|key| a.get(key).unwrap()),
            [Some("2".into()), Some("3".into()), None]
        );
    });
    assert!(repaired > 0);
}

/// Trap: tables of a compaction have the number of a load that was done. Its inputs are there again
/// after a power loss.
#[test]
fn what_was_merged_with_a_load_is_among_the_tables_that_a_repair_takes() {
    let env = MemEnv::new();
    let options = options(&env).min_blob_size(100);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let a = keyspace(&db, "a");
    a.put("a", vec![1; 1000]).unwrap();
    a.put_with("a", "2", &synced()).unwrap();
    let snapshot = db.snapshot();
    a.ingest([("b", "3"), ("c", "4")]).unwrap();
    let loaded: Vec<_> =
        files(&env, ".table").into_iter().map(|path| (path.clone(), env.file_bytes(&path).unwrap())).collect();
    db.compact().unwrap();
    let died = env.kill();
    loaded.into_iter().for_each(|(path, bytes)| died.set_file_bytes(&path, bytes));
    drop(snapshot);
    let repaired = repaired_without_edits(&died, &options, |report, db| {
        let a = keyspace(&db, "a");
        let found = ["a", "b", "c"].map(|key| a.get(key).unwrap());
        assert_eq!(found, ["2", "3", "4"].map(|value| Some(value.into())), "{report:?}");
    });
    assert!(repaired > 0);
}

/// Seen: keys were missing, and the report named the manifest alone. Trigger: edits are missing, as
/// above, and one of the tables that they announced is damaged where it says what it is. The last
/// one of its flush was taken, and with it the log for needless. Cost: the keys of that table.
#[test]
fn a_damaged_table_of_a_flush_that_the_manifest_lacks_is_told() {
    let env = MemEnv::new();
    let options = options(&env).min_blob_size(100).target_file_bytes(1 << 10);
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let a = keyspace(&db, "a");
    a.put("a", vec![1; 1000]).unwrap();
    a.put_with("a", "2", &synced()).unwrap();
    let keys: Vec<String> = (0..60).map(|number| format!("key{number:02}")).collect();
    keys.iter().for_each(|key| a.put_with(key, [3; 50], &synced()).unwrap());
    db.compact().unwrap();
    let tables = files(&env, ".table");
    assert!(tables.len() > 3, "{tables:?}");
    for table in &tables {
        for behind in [1, 20, 40, 80, 120] {
            let damaged = env.kill();
            let mut bytes = env.file_bytes(table).unwrap();
            let at = bytes.len() - behind;
            bytes[at] ^= 1;
            damaged.set_file_bytes(table, bytes);
            repaired_without_edits(&damaged, &options, |report, db| {
                let a = keyspace(&db, "a");
                let all_there = keys.iter().all(|key| a.get(key).unwrap().is_some_and(|value| value == [3; 50]));
                let is_told = report.files.iter().any(|file| file.path == *table || file.entries_lost.is_none());
                assert!(all_there || is_told, "{} damaged, {behind} bytes from its end: {report:?}", table.display());
            });
        }
    }
}

/// A power loss has taken the log and the record that vouches for the last edit, and then that edit
/// rots: nothing tells it from one that was never made. The database opens without what it
/// announced, and keeps the table.
#[test]
fn a_table_that_a_lost_edit_may_have_announced_is_kept() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    keyspace(&db, "a").put("a", "1").unwrap();
    db.flush().unwrap();
    let after = env.crash(&CrashMode::LoseAll, 0);
    assert_eq!(what_is_there(&after.kill()), Some([true, false]), "the flush was durable");
    let [path] = &files(&after, "MANIFEST")[..] else { panic!("one manifest") };
    let mut bytes = after.file_bytes(path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    after.set_file_bytes(path, bytes);
    let [table] = &files(&after, ".table")[..] else { panic!("one table") };
    let table_bytes = after.file_bytes(table).unwrap();
    assert_eq!(what_is_there(&after), Some([false, false]));
    let kept = Path::new(DIRECTORY).join("lost").join(table.file_name().unwrap());
    assert_eq!(after.file_bytes(&kept), Some(table_bytes), "{:?}", after.files());
}

/// Seen: the table was gone from `lost` as well. Trigger: an open that keeps it fails at a sync of
/// a directory, which gives up the new name; another one in the same life of the machine finds the
/// file, and the power fails later. Cost: the only copy.
#[test]
fn a_table_is_kept_by_the_open_after_one_that_could_not_sync_its_name() {
    let mut repeated = 0;
    for failing in 0.. {
        let env = MemEnv::new();
        let db = Db::open(DIRECTORY, options(&env)).unwrap();
        keyspace(&db, "a").put("a", "1").unwrap();
        db.flush().unwrap();
        let after = env.crash(&CrashMode::LoseAll, 0);
        let [manifest] = &files(&after, "MANIFEST")[..] else { panic!("one manifest") };
        let mut bytes = after.file_bytes(manifest).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        after.set_file_bytes(manifest, bytes);
        let [table] = &files(&after, ".table")[..] else { panic!("one table") };
        let kept = Path::new(DIRECTORY).join("lost").join(table.file_name().unwrap());
        after.fail_sync_dir(failing, SyncFailure::DropPending);
        if Db::open(DIRECTORY, options(&after)).is_ok() {
            break;
        }
        repeated += 1;
        let again = after.kill();
        assert_eq!(what_is_there(&again), Some([false, false]));
        let left = again.crash(&CrashMode::LoseAll, 0);
        assert!(left.file_bytes(&kept).is_some(), "sync {failing}: {:?}", left.files());
    }
    assert!(repeated > 3, "{repeated} opens failed");
}

/// Seen: a table was gone. Trigger: the last edit of the manifest is damaged, and so is the footer
/// of the table that it announced. Cost: the open took the table for one that was still being
/// written, and removed it with its large values; a repair could have had most of it.
#[test]
fn a_damaged_table_that_a_lost_edit_may_have_announced_is_kept() {
    for from_the_end in [1, 9, 60, 100] {
        let env = MemEnv::new();
        let db = Db::open(DIRECTORY, options(&env).min_blob_size(100)).unwrap();
        keyspace(&db, "a").put("a", "1".repeat(1000)).unwrap();
        db.flush().unwrap();
        let after = env.crash(&CrashMode::LoseAll, 0);
        let [manifest] = &files(&after, "MANIFEST")[..] else { panic!("one manifest") };
        let flip = |path: &Path, from_the_end: usize| {
            let mut bytes = after.file_bytes(path).unwrap();
            let at = bytes.len() - from_the_end;
            bytes[at] ^= 1;
            after.set_file_bytes(path, bytes);
        };
        flip(manifest, 1);
        let [table] = &files(&after, ".table")[..] else { panic!("one table") };
        flip(table, from_the_end);
        let [blob] = &files(&after, ".blob")[..] else { panic!("one blob file") };
        let bytes = [table, blob].map(|path| after.file_bytes(path).unwrap());
        assert_eq!(what_is_there(&after), Some([false, false]));
        let lost = |path: &Path| Path::new(DIRECTORY).join("lost").join(path.file_name().unwrap());
        let kept = [table, blob].map(|path| after.file_bytes(&lost(path)).unwrap_or_default());
        assert_eq!(kept, bytes, "a flip {from_the_end} bytes before the end: {:?}", after.files());
    }
}

/// As above, with the manifest cut short instead. Seen: the table was gone. Trigger: the manifest
/// ends where the edit began, like one that nothing was added to. Cost: nothing had the writes any
/// more.
#[test]
fn a_manifest_cut_short_after_a_power_loss_keeps_tables_at_every_length() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    keyspace(&db, "a").put("a", "1").unwrap();
    db.flush().unwrap();
    let after = env.crash(&CrashMode::LoseAll, 0);
    let [path] = &files(&after, "MANIFEST")[..] else { panic!("one manifest") };
    let [table] = &files(&after, ".table")[..] else { panic!("one table") };
    let kept = Path::new(DIRECTORY).join("lost").join(table.file_name().unwrap());
    let bytes = after.file_bytes(path).unwrap();
    let (mut missing, mut gone) = (0, 0);
    for length in 0..bytes.len() {
        let damaged = after.kill();
        damaged.set_file_bytes(path, bytes[..length].to_vec());
        if what_is_there(&damaged) == Some([false, false]) {
            missing += 1;
            gone += usize::from(damaged.file_bytes(&kept).is_none());
        }
    }
    assert!(missing > 10 && gone == 0, "{missing} without the write, {gone} without the table");
}

/// What is kept for a manifest that was cut short must not pile up where none was: the death of a
/// process at any call of flushes, with several tables and large values, or of a load, leaves
/// nothing.
#[test]
fn a_death_in_a_flush_or_a_load_leaves_nothing_in_lost() {
    let write = |env: &MemEnv| -> esker::Result<()> {
        let options = options(env).min_blob_size(100).target_file_bytes(1 << 10);
        let db = Db::open(DIRECTORY, options.background_threads(0))?;
        let names = db.keyspace("a", KeyspaceOptions::default())?;
        let pair =
            |number: usize| (format!("{number:03}"), "1".repeat(if number.is_multiple_of(9) { 200 } else { 50 }));
        for _ in 0..2 {
            (0..100).map(pair).try_for_each(|(key, value)| names.put(key, value))?;
            db.flush()?;
        }
        names.ingest((0..100).map(pair))?;
        Ok(())
    };
    let whole = MemEnv::new();
    write(&whole).unwrap();
    let mut unnamed = 0;
    for call in 0..whole.mutations() {
        let env = MemEnv::new();
        env.crash_after(call);
        let _ = write(&env);
        let dead = env.kill();
        let tables = files(&dead, ".table");
        let Ok(db) = Db::open(DIRECTORY, options(&dead)) else { continue };
        drop(db);
        unnamed += usize::from(tables.iter().any(|path| dead.file_bytes(path).is_none()));
        assert!(!dead.files().iter().any(|path| path.starts_with(Path::new(DIRECTORY).join("lost"))), "call {call}");
    }
    assert!(unnamed > 10, "{unnamed} deaths left a table that no edit names");
}

/// A leftover that cannot be opened keeps no database from opening whose manifest is whole. It is
/// kept itself if that can be.
#[test]
fn a_leftover_that_cannot_be_read_keeps_nothing_from_opening() {
    let lost = Path::new(DIRECTORY).join("lost");
    for is_in_the_way in [false, true] {
        let env = MemEnv::new();
        drop(Db::open(DIRECTORY, options(&env)).unwrap());
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Open, 0, Action::Fail(ErrorKind::PermissionDenied)).on_names_with("000099.table"));
        env.set_file_bytes(&Path::new(DIRECTORY).join("000099.table"), vec![1; 1000]);
        if is_in_the_way {
            env.set_file_bytes(&lost, b"a file of others".to_vec());
        }
        drop(Db::open(DIRECTORY, options(&env).env(Arc::new(faulty.clone()))).unwrap());
        assert_eq!(faulty.fired(), 1);
        assert_eq!(files(&env, ".table"), [] as [PathBuf; 0]);
        assert_eq!(env.file_bytes(&lost.join("000099.table")).is_some(), !is_in_the_way);
    }
}

/// Seen: entries were gone. Trigger: a keyspace's style is changed from FIFO to another, and the
/// last edit of the manifest is lost. Cost: FIFO was in force again without an error, and dropped
/// the oldest tables before the program could say otherwise.
#[test]
fn a_style_that_was_changed_is_not_forgotten() {
    let env = MemEnv::new();
    let fifo = CompactionStyle::Fifo { max_bytes: 1 };
    let with = |style| KeyspaceOptions::default().compaction_style(style);
    let db = Db::open(DIRECTORY, options(&env).background_threads(0)).unwrap();
    let names = db.keyspace("a", with(fifo)).unwrap();
    drop(names);
    let names = db.keyspace("a", with(CompactionStyle::Leveled)).unwrap();
    names.put("a", "1").unwrap();
    db.sync().unwrap();
    let [manifest] = &files(&env, "MANIFEST")[..] else { panic!("one manifest") };
    let whole = env.file_bytes(manifest).unwrap();
    for cut in 1..64.min(whole.len()) {
        let damaged = env.kill();
        damaged.set_file_bytes(manifest, whole[..whole.len() - cut].to_vec());
        let Ok(db) = Db::open(DIRECTORY, options(&damaged).background_threads(0)) else { continue };
        // A second table, for which FIFO would drop the first.
        let names = db.keyspace("a", KeyspaceOptions::default()).unwrap();
        names.put("b", "2").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(names.get("a").unwrap().as_deref(), Some(&b"1"[..]), "{cut} bytes cut off");
    }
}
