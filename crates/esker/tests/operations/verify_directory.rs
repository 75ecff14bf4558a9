//! A directory that does not open is checked all the same, and all of its damage is listed.

use crate::calling_env::Telling;
use crate::common::*;
use esker::env::Env;
use esker::env::mem::MemEnv;
use esker::internals::Random;
use esker::{Compression, Db, Error, Options, VerifyEvent, WriteOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files with their bytes, by name.
type Files = BTreeMap<String, Vec<u8>>;

fn options(env: &MemEnv) -> Options {
    simulated(env).compression(Compression::None).wal_segment_bytes(4 << 10)
}

/// Two keyspaces, each with two tables and large values, and writes of several log segments, large
/// ones too, that are in no table. All of it is on the device.
fn specimen() -> Files {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    for name in ["a", "b"] {
        let keyspace = keyspace(&db, name);
        for number in 0..200u32 {
            keyspace.put(number.to_be_bytes(), [number as u8; 20]).unwrap();
        }
        keyspace.put("large", vec![7; 40 << 10]).unwrap();
        db.flush().unwrap();
    }
    let late = keyspace(&db, "a");
    for number in 0..200u32 {
        late.put_with(number.to_be_bytes(), [9; 40], &WriteOptions::new().sync(true)).unwrap();
    }
    late.put_with("late", vec![8; 40 << 10], &WriteOptions::new().sync(true)).unwrap();
    late.put_with("end", "", &WriteOptions::new().sync(true)).unwrap();
    drop((late, db));
    files(&env)
}

fn with_files(files: &Files) -> MemEnv {
    let env = MemEnv::new();
    for (name, bytes) in files {
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), bytes.clone());
    }
    env
}

fn ending(files: &Files, end: &str) -> Vec<String> {
    files.keys().filter(|name| name.ends_with(end)).cloned().collect()
}

/// Segments that the log still needs, with where its records end.
fn used_segments(files: &Files) -> Vec<(String, usize)> {
    let used = |name: &String| files[name].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    ending(files, ".wal").into_iter().map(|name| (name.clone(), used(&name))).filter(|(_, used)| *used > 1000).collect()
}

/// The damage: file, offset, and the text.
type Told = Vec<(String, u64, String)>;

/// Checks, and compares what is told with the result. The directory stays as it was.
fn verified(damaged: &Files, what: &str) -> (Told, Result<esker::VerifyReport, Error>) {
    let env = with_files(damaged);
    let (mut told, mut last) = (Told::new(), 0);
    let result = Db::verify_directory(DIRECTORY, options(&env), &mut |event| match event {
        VerifyEvent::Progress { done, total } => {
            assert!(done >= last && done <= total, "{what}: {done} of {total} after {last}");
            last = done;
        }
        VerifyEvent::Damage(error) => {
            let (path, offset) = match error {
                Error::Corruption { path, offset, .. } => (path, *offset),
                Error::Io { path, .. } | Error::Unsupported { path, .. } => (path, 0),
                other => panic!("{what}: {other}"),
            };
            let name = path.strip_prefix(DIRECTORY).unwrap().to_str().unwrap().to_owned();
            told.push((name, offset, error.to_string()));
        }
        other => panic!("{what}: {other:?}"),
    });
    assert_eq!(result.is_err(), !told.is_empty(), "{what}: {result:?}, {told:?}");
    if let Err(error) = &result {
        assert_eq!(error.to_string(), told[0].2, "{what}: {told:?}");
    }
    assert!(files(&env) == *damaged, "{what}: a file was changed");
    (told, result)
}

fn flip(files: &mut Files, name: &str, offset: usize) {
    files.get_mut(name).unwrap()[offset] ^= 1;
}

fn offsets(told: &Told, name: &str) -> Vec<u64> {
    told.iter().filter(|(found, ..)| found == name).map(|(_, offset, _)| *offset).collect()
}

#[test]
fn what_opens_is_checked_as_by_a_handle() {
    let files = specimen();
    let (told, report) = verified(&files, "intact");
    let env = with_files(&files);
    assert_eq!(report.unwrap(), Db::open_read_only(DIRECTORY, options(&env)).unwrap().verify().unwrap());
    assert_eq!(told, Told::new());
    let missing = Db::verify_directory("/nothing", options(&env), &mut |_| {});
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

/// Seen: with a damaged log and a damaged table, only the log was named.
#[test]
fn the_log_and_tables_are_listed_together() {
    let mut files = specimen();
    let (tables, segments) = (ending(&files, ".table"), used_segments(&files));
    assert!(tables.len() >= 4 && segments.len() >= 3, "{tables:?} {segments:?}");
    for (name, used) in &segments[..2] {
        flip(&mut files, name, used / 3);
        flip(&mut files, name, used * 2 / 3);
    }
    flip(&mut files, &tables[1], 20);
    flip(&mut files, &tables[1], 1500);
    let env = with_files(&files);
    assert!(Db::open_read_only(DIRECTORY, options(&env)).is_err());
    let (told, _) = verified(&files, "log and table");
    assert_eq!(offsets(&told, &tables[1]).len(), 2, "{told:?}");
    for (name, used) in &segments[..2] {
        let found = offsets(&told, name);
        let near = |at: usize, found: u64| (found..found + 200).contains(&(at as u64));
        assert!(found.len() == 2 && near(used / 3, found[0]) && near(used * 2 / 3, found[1]), "{name}: {told:?}");
    }
    assert_eq!(told.len(), 6, "{told:?}");
}

/// Seen: a flipped bit in the footer of a table ended the check.
#[test]
fn blocks_of_a_table_without_footer_index_or_properties_are_checked() {
    let specimen = specimen();
    let table = &ending(&specimen, ".table")[0];
    let length = specimen[table].len();
    let handle = |at: usize| u64::from_le_bytes(specimen[table][at..at + 8].try_into().unwrap()) as usize;
    // The footer begins with the places of index, filter and properties.
    let (index, filter, properties) = (handle(length - 64), handle(length - 48), handle(length - 32));
    let blocks = |files: &mut Files| {
        flip(files, table, 20);
        flip(files, table, 1500);
    };
    for (what, at, also) in [
        ("magic", length - 2, 2),
        ("checksum", length - 10, 2),
        ("place of the filter", length - 48, 2),
        ("properties", properties + 3, 2),
        ("filter", filter + 3, 2),
        // Without it, the first damaged block is found.
        ("index", index + 3, 1),
        // It may be anywhere.
        ("place of the index", length - 64, 0),
    ] {
        let mut files = specimen.clone();
        flip(&mut files, table, at);
        let (told, _) = verified(&files, what);
        assert!(!told.is_empty() && told.iter().all(|(name, ..)| name == table), "{what}: {told:?}");
        let alone = told.len();
        blocks(&mut files);
        let (told, _) = verified(&files, what);
        assert_eq!(told.len(), alone + also, "{what}: {told:?}");
    }
}

#[test]
fn a_damaged_manifest_hides_no_damaged_table() {
    let mut files = specimen();
    let (tables, segments) = (ending(&files, ".table"), used_segments(&files));
    let manifest = files.keys().find(|name| name.starts_with("MANIFEST")).unwrap().clone();
    let middle = files[&manifest].len() / 2;
    flip(&mut files, &tables[0], 20);
    flip(&mut files, &tables[3], 20);
    flip(&mut files, &segments[1].0, 500);
    let (told, _) = verified(&files, "intact manifest");
    assert_eq!(told.len(), 3, "{told:?}");
    let others: BTreeSet<_> = told.into_iter().collect();
    for at in [2, 30, middle] {
        let mut files = files.clone();
        flip(&mut files, &manifest, at);
        let (told, _) = verified(&files, "damaged manifest");
        assert!(!offsets(&told, &manifest).is_empty(), "{at}: {told:?}");
        let told: BTreeSet<_> = told.into_iter().collect();
        assert!(told.is_superset(&others), "{at}: {told:?}");
    }
    let records = esker::internals::manifest_records(&files[&manifest]);
    let (edit, _) = records[1..].iter().find(|(_, vouches)| !vouches).unwrap();
    flip(&mut files, &manifest, 2);
    flip(&mut files, &manifest, edit.start + 10);
    let (told, _) = verified(&files, "manifest damaged twice");
    assert_eq!(offsets(&told, &manifest), [0, edit.start as u64], "{told:?}");
    files.remove(&manifest);
    files.remove("CURRENT");
    let (told, _) = verified(&files, "no manifest");
    assert_eq!(told[0].0, "CURRENT", "{told:?}");
    let told: BTreeSet<_> = told.into_iter().collect();
    assert!(told.is_superset(&others), "{told:?}");
}

#[test]
fn large_values_are_checked_each() {
    let mut files = specimen();
    let (blobs, segments) = (ending(&files, ".blob"), used_segments(&files));
    assert!(blobs.len() >= 2, "{blobs:?}");
    // Something that keeps it from opening, too.
    flip(&mut files, &segments[0].0, 500);
    let before = verified(&files, "log").0.len();
    for blob in &blobs {
        flip(&mut files, blob, 100);
    }
    let (told, _) = verified(&files, "values");
    assert!(blobs.iter().all(|blob| offsets(&told, blob).len() == 1), "{told:?}");
    assert_eq!(told.len(), before + blobs.len(), "{told:?}");
    // A damaged header hides no damaged value, and a missing file is told of once.
    flip(&mut files, &blobs[0], 3);
    let (told, _) = verified(&files, "values and header");
    assert_eq!((offsets(&told, &blobs[0]).len(), told.len()), (2, before + blobs.len() + 1), "{told:?}");
    files.remove(&blobs[0]);
    let (told, _) = verified(&files, "no blob file");
    assert_eq!((offsets(&told, &blobs[0]).len(), told.len()), (1, before + blobs.len()), "{told:?}");
}

#[test]
fn what_may_be_missing_at_the_end_of_the_log_is_no_damage() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let keyspace = keyspace(&db, "a");
    keyspace.put("flushed", [1; 40]).unwrap();
    db.flush().unwrap();
    for number in 0..20u32 {
        keyspace.put(number.to_be_bytes(), [9; 40]).unwrap();
    }
    drop((keyspace, db));
    let mut files = files(&env);
    let (name, used) = used_segments(&files).pop().unwrap();
    flip(&mut files, &name, used - 60);
    assert_eq!(verified(&files, "torn").0, Told::new());
    let table = ending(&files, ".table").pop().unwrap();
    let end = files[&table].len() - 2;
    flip(&mut files, &table, end);
    let (told, _) = verified(&files, "torn, and a damaged table");
    assert!(told.len() == 1 && told[0].0 == table, "{told:?}");
}

#[test]
fn a_writer_beside_the_check_does_not_matter() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(&env)).unwrap();
    let keyspace = keyspace(&db, "a");
    keyspace.put("k", [1; 40]).unwrap();
    db.flush().unwrap();
    let table = ending(&files(&env), ".table").pop().unwrap();
    let path = Path::new(DIRECTORY).join(&table);
    let end = env.file_bytes(&path).unwrap().len() as u64 - 2;
    assert!(env.flip_bit(&path, end, 0));
    let mut told = Vec::new();
    let result = Db::verify_directory(DIRECTORY, options(&env), &mut |event| {
        if let VerifyEvent::Damage(error) = event {
            told.push(error.to_string());
        }
    });
    assert!(result.is_err() && told.len() == 1 && told[0].contains(&table), "{told:?}");
    keyspace.put("k", [2; 40]).unwrap();
}

/// Damages a file in one of the ways that files are damaged.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len().max(1) as u64) as usize;
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => {
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
        }
        2 => {
            for byte in bytes.iter_mut().skip(at).take(100) {
                *byte = random.below(256) as u8;
            }
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Any part of the files is damaged in any way: what is told are those files, and no table among
/// them is left out.
#[test]
fn what_is_told_is_what_was_damaged() {
    let specimen = specimen();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("ESKER_SEED").unwrap_or(0);
    let mut listed = 0;
    for seed in first..first + number("ESKER_SEEDS").unwrap_or(100) {
        let mut random = Random::new(seed);
        let mut files = specimen.clone();
        let mut damaged = BTreeSet::new();
        for name in specimen.keys().filter(|name| *name != "LOCK") {
            for _ in 0..[0, 0, 0, 1, 3][random.below(5) as usize] {
                damage(&mut random, files.get_mut(name).unwrap());
            }
            if files[name] != specimen[name] {
                damaged.insert(name.clone());
            }
        }
        let what = format!("ESKER_SEED={seed}, {damaged:?}");
        let (told, _) = verified(&files, &what);
        listed += told.len();
        let has_manifest = damaged.iter().any(|name| name.starts_with("MANIFEST") || name == "CURRENT");
        for (name, _, text) in &told {
            // What is missing is that of the directory, or that of a manifest.
            let is_gone =
                has_manifest && (name.starts_with("MANIFEST") || name == "CURRENT" || !files.contains_key(name));
            assert!(damaged.contains(name) || is_gone || name.is_empty(), "{what}: {name}: {text}");
        }
        for table in damaged.iter().filter(|name| name.ends_with(".table") && !has_manifest) {
            assert!(!offsets(&told, table).is_empty(), "{what}: {table}: {told:?}");
        }
    }
    assert!(listed > 0);
}

/// A writer removes segments that hold nothing, without an edit of the manifest. Trap: each listing
/// of the directory in turn has one that is gone before a file is opened.
#[test]
fn a_segment_that_is_removed_before_it_can_be_opened_is_no_damage() {
    let mut files = specimen();
    let table = ending(&files, ".table").remove(0);
    let magic = files[&table].len() - 2;
    flip(&mut files, &table, magic);
    for nth in 0.. {
        let (env, listings) = (with_files(&files), Arc::new(AtomicU64::new(0)));
        let (machine, counted) = (env.clone(), Arc::clone(&listings));
        let told = move |call: &str| {
            let gone = Path::new(DIRECTORY).join("000099.wal");
            if call == "Env::list" && counted.fetch_add(1, Ordering::Relaxed) == nth {
                machine.set_file_bytes(&gone, vec![0; 200]);
            }
            if call == "Env::open" {
                let _ = machine.remove(&gone);
            }
        };
        let called: Arc<dyn Env> = Arc::new(env.clone());
        let options = options(&env).env(Arc::new(Telling { told: Arc::new(told), called }));
        let mut damage = Vec::new();
        let verified = Db::verify_directory(DIRECTORY, options, &mut |event| {
            if let VerifyEvent::Damage(error) = event {
                damage.push(error.to_string());
            }
        });
        assert!(verified.is_err() && damage.iter().all(|text| text.contains(&table)), "listing {nth}: {damage:?}");
        if listings.load(Ordering::Relaxed) <= nth {
            assert!(nth > 1, "{nth} listings");
            break;
        }
    }
}
