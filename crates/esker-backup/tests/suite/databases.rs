//! Backups of real databases, in directories and in memory.
#![allow(clippy::unwrap_used)]

use crate::support::Random;
use esker::env::Env;
use esker::env::os::OsEnv;
use esker::{CheckpointMode, Db, KeyspaceOptions, Options};
use esker_backup::{Cancel, Create, Error, Phase, Prune, Target, Transfers};
use object_store::memory::InMemory;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

#[path = "../../examples/nightly_backup.rs"]
mod nightly_backup;

#[test]
fn the_example_holds_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    nightly_backup::run(place.path()).unwrap();
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small memtables, so that there are many tables, and large values in files of their own.
fn options() -> Options {
    Options::default().write_buffer_bytes(64 << 10).wal_segment_bytes(64 << 10)
}

fn open(path: &Path) -> Db {
    Db::open(path, options()).unwrap()
}

/// All pairs of a database.
fn pairs(db: &Db) -> Model {
    let keyspace = db.keyspace("pairs", KeyspaceOptions::default()).unwrap();
    keyspace.iter().map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn write(db: &Db, model: &mut Model, random: &mut Random, writes: u64) {
    let keyspace = db.keyspace("pairs", KeyspaceOptions::default()).unwrap();
    for _ in 0..writes {
        let key = format!("key {:05}", random.below(2000)).into_bytes();
        if random.below(4) == 0 {
            keyspace.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let length = if random.below(100) == 0 { 9000 } else { random.below(120) };
            let value: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            keyspace.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

/// Restores a backup and compares all of it.
fn check_restored(place: &TempDir, target: &Target, backup: Option<u64>, expected: &Model) {
    let directory = place.path().join("restored");
    target.restore(backup, &directory).unwrap();
    let db = open(&directory);
    db.verify().unwrap();
    assert_eq!(&pairs(&db), expected, "backup {backup:?}");
    drop(db);
    fs::remove_dir_all(&directory).unwrap();
}

/// Random writes, backups, prunes and restores against the contents at each backup.
fn history(seed: u64, in_memory: bool) {
    println!("seed {seed}, in memory: {in_memory}; again with ESKER_BACKUP_SEED={seed}");
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let place = tempfile::tempdir().unwrap();
    let target = if in_memory {
        Target::new(Arc::new(InMemory::new()), "some/prefix").unwrap()
    } else {
        Target::new_directory(place.path().join("target")).unwrap()
    };
    let transfers = Transfers::default().part_bytes(1 << (10 + random.below(8))).parallel(1 + random.below(6) as usize);
    let target = target.with(transfers);
    let path = place.path().join("data");
    let mut db = open(&path);
    let (mut model, mut kept) = (Model::new(), BTreeMap::new());
    for _ in 0..30 {
        match random.below(10) {
            0..4 => {
                let writes = 1 + random.below(3000);
                write(&db, &mut model, &mut random, writes);
            }
            4..7 => {
                let mode = if random.below(3) == 0 { CheckpointMode::Copy } else { CheckpointMode::Link };
                let create = Create::default().checkpoint_mode(mode).verify_source(random.below(4) == 0);
                let created = target.create(&db, &create).unwrap();
                assert_eq!(created.backup.keyspaces.is_empty(), db.keyspaces().is_empty());
                kept.insert(created.backup.number, model.clone());
            }
            7 => {
                let last = random.below(4) as usize;
                let grace = Duration::from_secs(random.below(2) * 60);
                let report = target.prune(&Prune::default().keep_last(last).grace(grace)).unwrap();
                while kept.len() > last {
                    let (number, _) = kept.pop_first().unwrap();
                    assert!(report.backups.contains(&number), "{report:?}");
                }
                assert_eq!(report.kept, kept.keys().copied().collect::<Vec<u64>>());
            }
            8 => {
                let chosen = random.below(kept.len() as u64 + 1) as usize;
                if let Some((number, expected)) = kept.iter().nth(chosen) {
                    check_restored(&place, &target, Some(*number), expected);
                }
            }
            _ => {
                db.close().unwrap();
                db = open(&path);
            }
        }
        let listed = target.list().unwrap();
        assert_eq!(listed.damaged, []);
        let numbers: Vec<u64> = listed.backups.iter().map(|backup| backup.number).collect();
        assert_eq!(numbers, kept.keys().copied().collect::<Vec<u64>>());
    }
    assert_eq!(target.verify(None).unwrap().damage, []);
    for (number, expected) in &kept {
        check_restored(&place, &target, Some(*number), expected);
    }
    if let Some((_, newest)) = kept.last_key_value() {
        check_restored(&place, &target, None, newest);
    }
    assert_eq!(pairs(&db), model);
    assert!(!place.path().join("data.backup-source").exists(), "the checkpoints have gone");
}

#[test]
fn every_backup_restores_to_what_the_database_was() {
    if let Ok(seed) = std::env::var("ESKER_BACKUP_SEED") {
        let seed = seed.parse().unwrap();
        return [false, true].into_iter().for_each(|in_memory| history(seed, in_memory));
    }
    for seed in 1..7 {
        history(seed, seed % 2 == 0);
    }
}

#[test]
fn only_what_is_new_is_copied() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let (mut model, mut random) = (Model::new(), Random(7));
    write(&db, &mut model, &mut random, 20_000);
    db.compact().unwrap();
    let first = target.create(&db, &Create::default()).unwrap();
    assert_eq!(first.copied_files, first.backup.files);
    write(&db, &mut model, &mut random, 10);
    let second = target.create(&db, &Create::default()).unwrap();
    // A table with the new writes, the log, the manifest and what names it; not the others.
    assert!(second.copied_files <= 4 && second.backup.files > second.copied_files, "{second:?}");
    assert!(second.backup.sequence > first.backup.sequence);
    println!("{first:?}\n{second:?}");
}

#[test]
fn a_database_is_backed_up_while_it_is_written_by_several_threads_at_once() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    let keyspace = db.keyspace("pairs", KeyspaceOptions::default()).unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let numbers: Mutex<Vec<u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, target, numbers) = (&db, &target, &numbers);
            scope.spawn(move || {
                for _ in 0..3 {
                    let created = target.create(db, &Create::default()).unwrap();
                    numbers.lock().unwrap().push(created.backup.number);
                    if thread == 0 {
                        target.prune(&Prune::default().keep_last(4).grace(Duration::ZERO)).unwrap();
                    }
                }
            });
        }
        // Each pair is one batch: a backup has both or neither.
        for number in 0..4000_u64 {
            let mut batch = db.batch();
            batch.put(&keyspace, format!("a{number:06}"), vec![1; 100]).unwrap();
            batch.put(&keyspace, format!("b{number:06}"), vec![2; 100]).unwrap();
            batch.commit().unwrap();
        }
    });
    let listed = target.list().unwrap();
    assert!(listed.backups.len() >= 4 && listed.damaged.is_empty(), "{listed:?}");
    assert_eq!(numbers.into_inner().unwrap().len(), 6);
    for backup in listed.backups {
        let directory = place.path().join("restored");
        target.restore(Some(backup.number), &directory).unwrap();
        let restored = pairs(&open(&directory));
        let (a, b): (Vec<_>, Vec<_>) = restored.keys().partition(|key| key.starts_with(b"a"));
        let numbers = |keys: Vec<&Vec<u8>>| keys.into_iter().map(|key| key[1..].to_vec()).collect::<Vec<_>>();
        let (a, b) = (numbers(a), numbers(b));
        assert_eq!(a, b);
        let first = (0..a.len()).map(|number| format!("{number:06}").into_bytes());
        assert_eq!(a, first.collect::<Vec<_>>(), "it holds the first of the writes, without a hole");
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn what_a_killed_backup_left_beside_the_database_goes_with_the_next() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    let left = place.path().join("data.backup-source/esker-backup-source-5");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("000001.table"), "old").unwrap();
    fs::write(left.parent().unwrap().join("precious"), "mine").unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    assert!(!left.exists());
    assert!(left.parent().unwrap().join("precious").exists(), "what is not a backup's stays");
    // In a place of the caller's, which goes again if it is empty.
    target.create(&db, &Create::default().scratch(place.path().join("scratch"))).unwrap();
    assert!(!place.path().join("scratch").exists());
}

#[test]
fn progress_counts_every_byte_also_at_a_rate() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    write(&db, &mut Model::new(), &mut Random(3), 2000);
    db.compact().unwrap();
    let seen: Arc<Mutex<BTreeMap<String, (u64, u64)>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let transfers = Transfers::default().bytes_per_second(NonZeroU64::new(4_000_000)).progress(move |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        sink.lock().unwrap().insert(format!("{:?}", progress.phase), (progress.done, progress.total));
    });
    let target = Target::new_directory(place.path().join("target")).unwrap().with(transfers);
    let created = target.create(&db, &Create::default()).unwrap();
    target.verify(None).unwrap();
    target.restore(None, place.path().join("restored")).unwrap();
    let seen = seen.lock().unwrap().clone();
    let phases = [Phase::Hashing, Phase::Restoring, Phase::Uploading, Phase::Verifying];
    assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), phases.map(|phase| format!("{phase:?}")));
    assert!(seen.values().all(|(done, total)| done == total && *total > 0), "{seen:?}");
    assert_eq!(seen["Hashing"].1, created.backup.bytes);
}

#[test]
fn a_cancelled_backup_ends_and_leaves_the_others() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    let target = Target::new_directory(place.path().join("target")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    write(&db, &mut Model::new(), &mut Random(3), 2000);
    let cancel = Cancel::default();
    let flag = cancel.clone();
    // One byte a second would never end; the first progress of the copies cancels.
    let slow = Transfers::default().bytes_per_second(NonZeroU64::new(1)).cancel(&cancel).progress(move |progress| {
        if progress.phase == Phase::Uploading {
            flag.cancel();
        }
    });
    let outcome = target.with(slow).create(&db, &Create::default());
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert_eq!(target.list().unwrap().backups.len(), 1);
    assert_eq!(target.verify(None).unwrap().damage, []);
    assert!(!place.path().join("data.backup-source").exists());
    target.create(&db, &Create::default()).unwrap();
}

#[test]
fn what_cannot_be_done_is_an_error_that_says_why() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    assert!(matches!(Target::directory(path("nowhere")), Err(Error::NotFound { .. })));
    assert!(matches!(Target::url("no url", [("", "")]), Err(Error::InvalidArgument { .. })));
    assert!(matches!(Target::url("gopher://x/y", [("", "")]), Err(Error::Store { .. })));
    assert!(matches!(Target::new(Arc::new(InMemory::new()), "a//b"), Err(Error::InvalidArgument { .. })));
    let target = Target::new_directory(path("target")).unwrap();
    assert!(matches!(target.restore(None, path("x")), Err(Error::NotFound { .. })));
    assert!(matches!(target.restore(Some(3), path("x")), Err(Error::NotFound { .. })));
    assert!(matches!(target.verify(Some(0)), Err(Error::NotFound { .. })));
    assert!(matches!(target.prune(&Prune::default().backup(9)), Err(Error::NotFound { .. })));
    assert!(!path("x").exists());
    let db = open(&path("data"));
    target.create(&db, &Create::default()).unwrap();
    assert!(matches!(target.restore(None, path("data")), Err(Error::InvalidArgument { .. })));
    // A scratch directory in the database would be part of it.
    let outcome = target.create(&db, &Create::default().scratch(path("data/scratch")));
    assert!(matches!(outcome, Err(Error::Database(esker::Error::InvalidArgument { .. }))), "{outcome:?}");
    db.close().unwrap();
    let reader = Db::open_read_only(path("data"), options()).unwrap();
    let outcome = target.create(&reader, &Create::default());
    assert!(matches!(outcome, Err(Error::Database(esker::Error::ReadOnly { .. }))), "{outcome:?}");
}

#[test]
fn calls_can_be_made_in_a_thread_of_a_runtime() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let target = Target::new_directory(place.path().join("target")).unwrap();
        target.create(&db, &Create::default()).unwrap();
        assert_eq!(target.list().unwrap().backups.len(), 1);
        drop(target);
    });
}

#[test]
fn a_directory_that_another_restore_has_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let db = open(&place.path().join("data"));
    write(&db, &mut Model::new(), &mut Random(5), 50);
    let target = Target::new_directory(place.path().join("target")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    let restored = place.path().join("restored");
    let is_locked = |result| matches!(result, Err(Error::Database(esker::Error::Locked { .. })));
    fs::create_dir(&restored).unwrap();
    let lock = OsEnv::new().lock(&restored.join("LOCK")).unwrap();
    assert!(is_locked(target.restore(None, &restored).map(drop)));
    drop(lock);
    target.restore(None, &restored).unwrap();
    assert_eq!(pairs(&open(&restored)), pairs(&db));
    let foreign = place.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter"), "dear ada").unwrap();
    assert!(matches!(target.restore(None, &foreign), Err(Error::InvalidArgument { .. })));
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1, "nothing is put there");
}

/// Shorter keys first.
struct ByLength;

impl esker::Comparator for ByLength {
    fn name(&self) -> &str {
        "test.by-length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[test]
fn a_database_with_an_order_of_its_own_is_backed_up_with_its_comparator() {
    let place = tempfile::tempdir().unwrap();
    let options = || options().comparator(Arc::new(ByLength));
    let db = Db::open(place.path().join("data"), options()).unwrap();
    let words = db.keyspace("words", KeyspaceOptions::default().comparator(ByLength)).unwrap();
    words.put("bb", "").unwrap();
    words.put("c", "").unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let without = target.create(&db, &Create::default());
    assert!(without.unwrap_err().to_string().contains("test.by-length"));
    let create = Create::default().comparator(Arc::new(ByLength)).verify_source(true);
    let number = target.create(&db, &create).unwrap().backup.number;
    target.restore(Some(number), place.path().join("then")).unwrap();
    let then = Db::open(place.path().join("then"), options()).unwrap();
    assert_eq!(then.existing_keyspace("words").unwrap().first().unwrap().unwrap().0, "c");
}

/// Seen: a second database was taken into a target, so that "the newest" was that of either.
#[test]
fn another_database_is_refused_unless_the_caller_says_so() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let target = Target::new_directory(path("target")).unwrap();
    let is_refused = |outcome: Result<esker_backup::Created, Error>| match outcome {
        Err(Error::AnotherDatabase { what }) => what,
        other => panic!("{other:?}"),
    };
    let mut model = Model::new();
    let db = open(&path("data"));
    write(&db, &mut model, &mut Random(3), 500);
    // One run. Seen on a slow machine: of several, the first pause of what is restored makes one,
    // which the backup does not have.
    db.compact().unwrap();
    let first = target.create(&db, &Create::default()).unwrap();
    let here = fs::canonicalize(path("data")).unwrap();
    assert_eq!(first.backup.directory.as_deref(), here.to_str());

    // Another one, with more writes.
    let other = open(&path("other"));
    write(&other, &mut Model::new(), &mut Random(5), 900);
    let before = fs::read_dir(path("target/objects")).unwrap().count();
    let what = is_refused(target.create(&other, &Create::default()));
    assert!(what.contains(here.to_str().unwrap()) && what.contains("other"), "{what}");
    assert_eq!(fs::read_dir(path("target/objects")).unwrap().count(), before, "nothing was copied");
    assert_eq!(fs::read_dir(path("target/uploads")).unwrap().count(), 0, "the intent has gone");
    assert_eq!(target.list().unwrap().backups.len(), 1);
    // The caller insists, and then it is one of them.
    target.create(&other, &Create::default().any_database(true)).unwrap();
    other.compact().unwrap();
    target.create(&other, &Create::default()).unwrap();

    // The same database: everything rewritten; moved; restored.
    write(&db, &mut model, &mut Random(7), 300);
    db.compact().unwrap();
    target.create(&db, &Create::default()).unwrap();
    db.close().unwrap();
    fs::rename(path("data"), path("moved")).unwrap();
    let db = open(&path("moved"));
    target.create(&db, &Create::default()).unwrap();
    target.restore(Some(first.backup.number), path("restored")).unwrap();
    let restored = open(&path("restored"));
    write(&restored, &mut Model::new(), &mut Random(9), 20);
    target.create(&restored, &Create::default()).unwrap();
    // Restored and all rewritten, as a pause may do: nothing shows that it is the same.
    target.restore(Some(first.backup.number), path("rewritten")).unwrap();
    let rewritten = open(&path("rewritten"));
    write(&rewritten, &mut Model::new(), &mut Random(13), 20);
    rewritten.compact().unwrap();
    let what = is_refused(target.create(&rewritten, &Create::default()));
    assert!(what.contains("in common"), "{what}");
    target.create(&rewritten, &Create::default().any_database(true)).unwrap();

    // One that was made anew in the place of the old one.
    let anew = open(&path("data"));
    write(&anew, &mut Model::new(), &mut Random(11), 5);
    let what = is_refused(target.create(&anew, &Create::default()));
    assert!(what.contains("ends at write"), "{what}");
}

#[test]
fn directories_that_are_no_targets_are_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let db = open(&path("data"));
    write(&db, &mut Model::new(), &mut Random(3), 50);
    drop(open(&path("other")));
    fs::create_dir_all(path("data/inside")).unwrap();
    for name in ["data/inside", "data", "other"] {
        let before = fs::read_dir(path(name)).unwrap().count();
        let outcome = Target::directory(path(name)).unwrap().create(&db, &Create::default());
        assert!(matches!(outcome, Err(Error::InvalidArgument { .. })), "{name}: {outcome:?}");
        assert_eq!(fs::read_dir(path(name)).unwrap().count(), before, "{name}");
    }
    // What a file system has by itself, and what a first create that was killed has left.
    fs::create_dir_all(path("disk/lost+found")).unwrap();
    fs::write(path("disk/.hidden"), "").unwrap();
    fs::write(path("disk/esker-backup#1"), "").unwrap();
    let target = Target::directory(path("disk")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    // It is known for a target, whatever is put beside.
    fs::write(path("disk/readme"), "the backups of data").unwrap();
    target.create(&db, &Create::default()).unwrap();
}
