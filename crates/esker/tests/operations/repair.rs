//! Every kind of file is damaged in every kind of way. After the repair the database opens and
//! verifies, and has nothing that was not written.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::UInt64Add;
use esker::{Db, Error, KeyspaceOptions, RepairReport};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Values by keyspace and key.
type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// Every value that was ever written, by keyspace and key; and what the keyspaces hold at the end.
#[derive(Default)]
struct Written {
    ever: BTreeMap<(String, Vec<u8>), BTreeSet<Vec<u8>>>,
    last: Contents,
}

impl Written {
    fn put(&mut self, keyspace: &esker::Keyspace, key: &str, value: &str) {
        keyspace.put(key, value).unwrap();
        let at = (keyspace.name().to_string(), key.as_bytes().to_vec());
        self.ever.entry(at.clone()).or_default().insert(value.as_bytes().to_vec());
        self.last.insert(at, value.as_bytes().to_vec());
    }

    fn delete(&mut self, keyspace: &esker::Keyspace, key: &str) {
        keyspace.delete(key).unwrap();
        self.last.remove(&(keyspace.name().to_string(), key.as_bytes().to_vec()));
    }
}

/// Two keyspaces with several runs, and writes that are only in the log.
fn specimen() -> (MemEnv, Written) {
    let env = MemEnv::default();
    let db = open(&env);
    let mut written = Written::default();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    for round in 0..3 {
        for number in 0..120 {
            written.put(&a, &format!("key{number:04}"), &format!("a {round} of {number}"));
            if number % 3 == round {
                written.put(&b, &format!("other{number:04}"), &format!("b {round} of {number}"));
            }
        }
        written.delete(&a, &format!("key{:04}", 7 + round));
        db.flush().unwrap();
    }
    for number in 0..40 {
        written.put(&a, &format!("key{:04}", number * 2), &format!("a in the log, of {number}"));
        written.put(&b, &format!("late{number:04}"), "only in the log");
    }
    drop((a, b, db));
    (env, written)
}

/// A fresh environment with these files in the directory.
fn with_files(files: &BTreeMap<String, Vec<u8>>) -> MemEnv {
    let env = MemEnv::default();
    for (name, bytes) in files {
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), bytes.clone());
    }
    env
}

/// Opens, verifies, and returns everything by keyspace and key.
fn contents(env: &MemEnv, what: &str) -> Contents {
    let db = Db::open(DIRECTORY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut found = BTreeMap::new();
    for name in db.keyspaces() {
        let pairs = all(&db.existing_keyspace(&name).unwrap());
        found.extend(pairs.into_iter().map(|(key, value)| ((name.clone(), key), value)));
    }
    // It can be written to as well.
    keyspace(&db, "a").put("after", "the repair").unwrap();
    db.flush().unwrap();
    found
}

/// Repairs, checks what must always hold, and returns what is left.
fn repaired(env: &MemEnv, written: &Written, what: &str) -> (RepairReport, Contents) {
    let report = Db::repair(DIRECTORY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let before = files(env);
    let again = Db::repair(DIRECTORY, simulated(env)).unwrap();
    assert!(again.healthy, "{what}: a second repair found {again}");
    let unlocked = |files: BTreeMap<String, Vec<u8>>| files.into_iter().filter(|(name, _)| name != "LOCK");
    assert!(unlocked(before).eq(unlocked(files(env))), "{what}: a second repair changed something");
    let found = contents(env, what);
    for (at, value) in &found {
        let known = written.ever.get(at).is_some_and(|values| values.contains(value));
        assert!(known, "{what}: {at:?} has a value that it never had, {value:?}\n{report}");
    }
    (report, found)
}

#[test]
fn a_healthy_database_is_left_as_it_is() {
    let (env, written) = specimen();
    let before = files(&env);
    let report = Db::repair(DIRECTORY, simulated(&env)).unwrap();
    assert!(report.healthy && report.files.is_empty(), "{report}");
    let after = files(&env);
    assert!(before.iter().all(|(name, bytes)| name == "LOCK" || after.get(name) == Some(bytes)));
    assert_eq!(contents(&env, "healthy"), written.last);
}

#[test]
fn what_is_no_database_or_in_use_is_refused() {
    let env = MemEnv::default();
    assert!(matches!(Db::repair(DIRECTORY, simulated(&env)), Err(Error::NotFound { .. })));
    let (env, _) = specimen();
    let db = open(&env);
    assert!(matches!(Db::repair(DIRECTORY, simulated(&env)), Err(Error::Locked { .. })));
    drop(db);
}

#[test]
fn without_current_nothing_is_lost() {
    let (env, written) = specimen();
    for damage in [None, Some(Vec::new()), Some(b"MANIFEST-000001 00000000\n".to_vec()), Some(vec![0xff; 30])] {
        let mut files = files(&env);
        files.remove("CURRENT");
        files.extend(damage.map(|bytes| ("CURRENT".to_owned(), bytes)));
        let env = with_files(&files);
        let (report, found) = repaired(&env, &written, "CURRENT");
        assert_eq!(found, written.last, "{report}");
        assert!(!report.healthy && report.files[0].path.ends_with("CURRENT"), "{report}");
    }
}

#[test]
fn without_any_manifest_tables_say_whose_they_are() {
    let (env, written) = specimen();
    let mut files = files(&env);
    files.retain(|name, _| !name.starts_with("MANIFEST"));
    let env = with_files(&files);
    let (report, found) = repaired(&env, &written, "no manifest");
    assert_eq!(found, written.last, "{report}");
    assert_eq!(report.keyspaces, ["a", "b"]);
    assert!(!report.warnings.is_empty());
}

#[test]
fn a_manifest_cut_or_changed_at_any_byte_is_survived() {
    let (env, written) = specimen();
    let whole = files(&env);
    let name = whole.keys().find(|name| name.starts_with("MANIFEST")).unwrap().clone();
    for at in 0..whole[&name].len() {
        let mut files = whole.clone();
        let what = if at % 2 == 0 {
            files.get_mut(&name).unwrap()[at] ^= 1 << (at % 8);
            format!("byte {at} of the manifest changed")
        } else {
            files.get_mut(&name).unwrap().truncate(at);
            format!("manifest cut at {at}")
        };
        let env = with_files(&files);
        let (report, found) = repaired(&env, &written, &what);
        assert_eq!(found, written.last, "{what}: {report}");
    }
}

#[test]
fn a_damaged_table_keeps_its_intact_blocks() {
    let (env, written) = specimen();
    let whole = files(&env);
    let tables: Vec<&String> = whole.keys().filter(|name| name.ends_with(".table")).collect();
    assert!(tables.len() > 4);
    for name in &tables {
        for at in (3..whole[*name].len()).step_by(97) {
            let mut files = whole.clone();
            files.get_mut(*name).unwrap()[at] ^= 0x10;
            let env = with_files(&files);
            let what = format!("byte {at} of {name} changed");
            let (report, found) = repaired(&env, &written, &what);
            // Blocks have about a dozen entries; what is behind a damaged index or footer is found
            // without it.
            let missing = written.last.keys().filter(|key| !found.contains_key(*key)).count();
            assert!(missing < 40, "{what}: {missing} keys are missing\n{report}");
            let file = report.files.iter().find(|file| file.path.ends_with(name.as_str())).unwrap();
            assert!(file.keyspace.is_some() && file.entries_kept > 0, "{report}");
            assert!(env.exists(&Path::new(DIRECTORY).join("lost").join(name.as_str())).unwrap());
        }
    }
}

#[test]
fn deletes_of_ranges_survive_in_damaged_tables_and_without_a_manifest() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    let key = |number: usize| format!("key{number:04}");
    (0..400).for_each(|number| a.put(key(number), "old").unwrap());
    db.flush().unwrap();
    // This table holds entries on both sides, of which a part will be damaged.
    (0..50).for_each(|number| a.put(key(number), "new").unwrap());
    a.delete_range(key(100)..key(300)).unwrap();
    a.put(key(150), "after the delete").unwrap();
    db.flush().unwrap();
    a.delete_range(key(300)..key(310)).unwrap();
    drop((a, db));
    let before = files(&env);
    let newest = before.keys().filter(|name| name.ends_with(".table")).max().unwrap().clone();
    let is_deleted = |number: usize| (100..310).contains(&number) && number != 150;

    let without_manifest: BTreeMap<_, _> = before
        .iter()
        .filter(|(name, _)| !name.starts_with("MANIFEST") && *name != "CURRENT")
        .map(|(name, bytes)| (name.clone(), bytes.clone()))
        .collect();
    let mut damaged = before.clone();
    damaged.get_mut(&newest).unwrap()[40] ^= 1;
    let mut both = without_manifest.clone();
    both.get_mut(&newest).unwrap()[40] ^= 1;
    for (what, files) in [("no manifest", without_manifest), ("damage", damaged), ("both", both)] {
        let env = with_files(&files);
        let report = Db::repair(DIRECTORY, simulated(&env)).unwrap();
        assert!(!report.healthy, "{what}");
        let db = open(&env);
        db.verify().unwrap();
        let found = all(&keyspace(&db, "a"));
        for number in 0..400 {
            let there = found.contains_key(key(number).as_bytes());
            assert_eq!(there, !is_deleted(number), "{what}: {number}\n{report}");
        }
        assert_eq!(found[key(150).as_bytes()], b"after the delete");
    }
}

#[test]
fn a_table_that_is_missing_or_cut_is_named() {
    let (env, written) = specimen();
    let whole = files(&env);
    for name in whole.keys().filter(|name| name.ends_with(".table")) {
        for length in [None, Some(0), Some(whole[name].len() / 2), Some(whole[name].len() - 1)] {
            let mut files = whole.clone();
            match length {
                None => drop(files.remove(name)),
                Some(length) => files.get_mut(name).unwrap().truncate(length),
            }
            let env = with_files(&files);
            let what = format!("{name} cut to {length:?}");
            let (report, found) = repaired(&env, &written, &what);
            let file = report.files.iter().find(|file| file.path.ends_with(name.as_str()));
            assert!(file.is_some_and(|file| file.entries_lost != Some(0) || file.entries_kept > 0), "{what}: {report}");
            // What is in the log, and in other tables, is untouched.
            let late: Vec<_> = written.last.keys().filter(|(_, key)| key.starts_with(b"late")).collect();
            assert!(late.iter().all(|key| found.contains_key(*key)), "{what}: {report}");
        }
    }
}

#[test]
fn the_log_is_replayed_up_to_its_damage() {
    let env = MemEnv::default();
    let db = open(&env);
    let a = keyspace(&db, "a");
    let mut written = Written::default();
    let sync = esker::WriteOptions::new().sync(true);
    for number in 0..300 {
        written.put(&a, &format!("key{number:04}"), "value");
        a.put_with("mark", format!("{number}"), &sync).unwrap();
        let marks = written.ever.entry(("a".into(), b"mark".to_vec())).or_default();
        marks.insert(number.to_string().into_bytes());
    }
    drop((a, db));
    let whole = files(&env);
    let mut noticed = 0;
    for name in whole.keys().filter(|name| name.ends_with(".wal")) {
        for at in (0..whole[name].len()).step_by(611) {
            let mut files = whole.clone();
            files.get_mut(name).unwrap()[at] ^= 0x04;
            let env = with_files(&files);
            let what = format!("byte {at} of {name} changed");
            let (report, found) = repaired(&env, &written, &what);
            noticed += u64::from(!report.healthy);
            let count = found.keys().filter(|(_, key)| key.starts_with(b"key")).count();
            let expected: BTreeSet<Vec<u8>> = (0..count).map(|number| format!("key{number:04}").into_bytes()).collect();
            let keys: BTreeSet<Vec<u8>> =
                found.keys().map(|(_, key)| key.clone()).filter(|key| key.starts_with(b"key")).collect();
            // Unless the beginning of the log is lost, what is left of it has no hole.
            assert!(keys == expected || at < 112, "{what}: {count} keys with a hole\n{report}");
        }
        let mut files = whole.clone();
        files.remove(name);
        repaired(&with_files(&files), &written, &format!("{name} removed"));
    }
    assert!(noticed > 10, "only {noticed}");
}

/// Without a manifest the log must not be replayed onto what is in tables already.
#[test]
fn merges_count_once_without_a_manifest() {
    let env = MemEnv::default();
    let db = open(&env);
    let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
    for round in 0..3 {
        for number in 0..50u64 {
            hits.merge(number.to_be_bytes(), 1u64.to_le_bytes()).unwrap();
        }
        if round < 2 {
            db.flush().unwrap();
        }
    }
    drop((hits, db));
    let mut files = files(&env);
    files.retain(|name, _| !name.starts_with("MANIFEST") && name != "CURRENT");
    let env = with_files(&files);
    let report = Db::repair(DIRECTORY, simulated(&env)).unwrap();
    let db = open(&env);
    let hits = db.existing_keyspace("hits").unwrap();
    assert_eq!(hits.merge_operator().as_deref(), Some("uint64add"), "{report}");
    for number in 0..50u64 {
        assert_eq!(hits.get(number.to_be_bytes()).unwrap().as_deref(), Some(&3u64.to_le_bytes()[..]), "{report}");
    }
}

#[test]
fn a_repair_cut_short_anywhere_can_be_run_again() {
    let (env, written) = specimen();
    let whole = files(&env);
    let table = whole.keys().find(|name| name.ends_with(".table")).unwrap().clone();
    for manifest in [true, false] {
        let mut damaged = whole.clone();
        damaged.get_mut(&table).unwrap()[100] ^= 1;
        if !manifest {
            damaged.retain(|name, _| !name.starts_with("MANIFEST"));
        }
        let expected = repaired(&with_files(&damaged), &written, "not cut short").1;
        for count in 0.. {
            let env = with_files(&damaged);
            env.crash_after(env.mutations() + count);
            let done = Db::repair(DIRECTORY, simulated(&env)).is_ok();
            for mode in [CrashMode::LoseAll, CrashMode::Random] {
                let after = env.crash(&mode, count);
                let what = format!("power lost after {count} steps, {mode:?}, manifest {manifest}");
                let (report, found) = repaired(&after, &written, &what);
                assert_eq!(found, expected, "{what}: {report}");
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_failing_device_ends_the_repair_without_harm() {
    let (env, written) = specimen();
    let mut damaged = files(&env);
    damaged.remove("CURRENT");
    for nth in 0.. {
        let env = with_files(&damaged);
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Any, nth, Action::Fail(std::io::ErrorKind::Other)));
        let options = simulated(&env).env(Arc::new(faulty.clone()));
        let result = Db::repair(DIRECTORY, options);
        if faulty.fired() == 0 {
            assert!(result.is_ok());
            break;
        }
        let (report, found) = repaired(&env, &written, &format!("call {nth} failed"));
        assert_eq!(found, written.last, "call {nth} failed: {report}");
    }
}

#[test]
fn a_missing_blob_file_costs_its_values_and_nothing_else() {
    let machine = crate::common::Machine::new();
    let options = || machine.options().min_blob_size(1000);
    let db = esker::Db::open(crate::common::DIRECTORY, options()).unwrap();
    let keyspace = db.keyspace("k", Default::default()).unwrap();
    keyspace.put("large", vec![7; 5000]).unwrap();
    keyspace.put("small", "kept").unwrap();
    db.compact().unwrap();
    drop(keyspace);
    db.close().unwrap();
    let files = machine.env.files();
    let blob = files.iter().find(|path| path.extension().is_some_and(|kind| kind == "blob")).unwrap();
    esker::env::Env::remove(&*machine.env, blob).unwrap();
    assert!(esker::Db::open(crate::common::DIRECTORY, options()).is_err());
    let report = esker::Db::repair(crate::common::DIRECTORY, options()).unwrap();
    assert!(!report.healthy && report.to_string().contains("large values"), "{report}");
    let db = esker::Db::open(crate::common::DIRECTORY, options()).unwrap();
    let keyspace = db.existing_keyspace("k").unwrap();
    assert_eq!(keyspace.get("small").unwrap().as_deref(), Some(&b"kept"[..]));
    assert_eq!(keyspace.get("large").unwrap(), None);
    db.verify().unwrap();
}

/// Seen: "0 entries kept, an unknown number lost", of a file that never holds any.
#[test]
fn a_missing_current_costs_no_entry_and_the_report_says_so() {
    let (env, written) = specimen();
    let kept: BTreeMap<_, _> = files(&env).into_iter().filter(|(name, _)| name != "CURRENT").collect();
    let env = with_files(&kept);
    let (report, found) = repaired(&env, &written, "without CURRENT");
    assert!(found == written.last, "{report}");
    assert!(!report.healthy && !report.lost_entries(), "{report}");
    let text = report.to_string();
    assert!(text.contains("CURRENT: the file is missing\n") && !text.contains("kept"), "{text}");
}

/// Seen: after a repair without manifest a `get` found nothing where a scan found a value. Trigger:
/// a key that was deleted, with nothing below, and then loaded by an ingest. Cost: a key that is
/// there for some reads.
#[test]
fn a_load_is_newer_than_the_deletes_that_only_the_log_has() {
    for flushes in [false, true] {
        let env = MemEnv::default();
        let db = open(&env);
        let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
        a.delete("k").unwrap();
        a.ingest([("k", "loaded"), ("l", "loaded")]).unwrap();
        b.put("x", "1").unwrap();
        if flushes {
            db.flush().unwrap();
        }
        a.put("m", "after").unwrap();
        let after = env.kill();
        drop((a, b, db));
        for path in after.files() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "CURRENT" || name.starts_with("MANIFEST") {
                after.remove(&path).unwrap();
            }
        }
        Db::repair(DIRECTORY, simulated(&after)).unwrap();
        let db = open(&after);
        db.verify().unwrap();
        let a = db.existing_keyspace("a").unwrap();
        for key in ["k", "l", "m"] {
            let scanned = a.prefix(key).next().map(|pair| pair.unwrap().1.to_vec());
            assert_eq!(a.get(key).unwrap().map(|value| value.to_vec()), scanned, "{key} {flushes}");
            assert!(scanned.is_some(), "{key} {flushes}");
        }
    }
}
