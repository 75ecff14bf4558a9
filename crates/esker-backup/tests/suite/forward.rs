//! Restores that go on behind their backup, against what the database was.
#![allow(clippy::unwrap_used)]

use crate::support::Random;
use esker::merge::{Max, StringAppend, UInt64Add};
use esker::{ChangeRetention, Db, Expiry, Keyspace, KeyspaceOptions, ManualClock, Options, Ttl, WriteOptions};
use esker_backup::{Create, Error, Forward, Restored, Target};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const START_MS: u64 = 1_700_000_000_000;

/// Everything: of each keyspace its order, operator and time to live, and its pairs with their
/// expiry.
type Contents = BTreeMap<String, (String, BTreeMap<Vec<u8>, (Vec<u8>, Expiry)>)>;

fn options(clock: &Arc<ManualClock>) -> Options {
    Options::default()
        .write_buffer_bytes(64 << 10)
        .wal_segment_bytes(64 << 10)
        .min_blob_size(600)
        .clock(Arc::clone(clock) as Arc<dyn esker::Clock>)
        .keep_changes(ChangeRetention::Bytes(1 << 40))
}

fn contents(db: &Db) -> Contents {
    let mut all = Contents::new();
    for name in db.keyspaces() {
        let keyspace = db.existing_keyspace(&name).unwrap();
        let mut pairs = BTreeMap::new();
        for pair in keyspace.iter() {
            let (key, value) = pair.unwrap();
            let expiry = keyspace.expires_at(&key).unwrap().unwrap();
            pairs.insert(key.to_vec(), (value.to_vec(), expiry));
        }
        let about = format!("{} {:?} {:?}", keyspace.comparator(), keyspace.merge_operator(), keyspace.ttl());
        all.insert(name, (about, pairs));
    }
    all
}

/// Without keyspaces that have nothing: those come with their first write.
fn filled(contents: &Contents) -> Contents {
    contents.iter().filter(|(_, (_, pairs))| !pairs.is_empty()).map(|(name, all)| (name.clone(), all.clone())).collect()
}

fn at(clock: &ManualClock, seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(esker::Clock::now_ms(clock) + seconds * 1000)
}

fn create(db: &Db, random: &mut Random, number: u64) {
    let ttl = match random.below(3) {
        0 => Ttl::Disabled,
        1 => Ttl::Enabled { default: None },
        _ => Ttl::Enabled { default: Some(Duration::from_secs(1 + random.below(50))) },
    };
    let options = KeyspaceOptions::default().ttl(ttl);
    let options = match random.below(4) {
        0 => options,
        1 => options.merge_operator(UInt64Add),
        2 => options.merge_operator(StringAppend::new(",")),
        _ => options.merge_operator(Max).comparator(esker::ReverseBytewise),
    };
    db.keyspace(&format!("k{number}"), options).unwrap();
}

/// A change of a keyspace as a whole.
fn alter(db: &Db, keyspace: &Keyspace, random: &mut Random, number: u64) {
    match random.below(4) {
        0 => keyspace.rename(&format!("r{number}")).unwrap(),
        1 if keyspace.merge_operator().as_deref() == Some("max") => keyspace.set_merge_operator(UInt64Add).unwrap(),
        1 => keyspace.set_merge_operator(Max).unwrap(),
        2 => keyspace.set_ttl(Ttl::Enabled { default: Some(Duration::from_secs(1 + random.below(50))) }).unwrap(),
        _ => db.drop_keyspace(&keyspace.name()).unwrap(),
    }
}

/// A batch of writes to some keyspaces.
fn write(db: &Db, keyspaces: &[Keyspace], clock: &ManualClock, random: &mut Random) {
    let mut batch = db.batch();
    for _ in 0..1 + random.below(6) {
        let keyspace = &keyspaces[random.below(keyspaces.len() as u64) as usize];
        let key = format!("key {:02}", random.below(30));
        let expires = keyspace.ttl() != Ttl::Disabled;
        let eight = random.below(1000).to_le_bytes();
        match random.below(12) {
            0 => batch.delete(keyspace, key).unwrap(),
            1 => batch.delete_prefix(keyspace, &key[..5]).unwrap(),
            2 => batch.delete_range(keyspace, key.as_str().."key 15").unwrap(),
            3 if expires => batch.put_with_ttl(keyspace, key, eight, Duration::from_secs(1 + random.below(9))).unwrap(),
            4 if expires => batch.touch(keyspace, key, Duration::from_secs(1 + random.below(90))).unwrap(),
            5 if expires => batch.persist(keyspace, key).unwrap(),
            6 if expires => batch.put_until(keyspace, key, eight, at(clock, random.below(20))).unwrap(),
            7..10 if keyspace.merge_operator().is_some() => batch.merge(keyspace, key, eight).unwrap(),
            // Other lengths go to where they are no sums.
            10 if keyspace.merge_operator().as_deref() != Some("uint64add") => {
                batch.put(keyspace, key, vec![b'x'; random.below(2000) as usize]).unwrap();
            }
            _ => batch.put(keyspace, key, eight).unwrap(),
        }
    }
    batch.commit_with(&WriteOptions::new().sync(random.below(10) == 0)).unwrap();
}

fn restored(place: &Path, target: &Target, backup: u64, forward: &Forward, time_ms: u64) -> (Restored, Contents) {
    let directory = place.join("restored");
    let restored = target.restore_forward(Some(backup), &directory, forward).unwrap();
    let clock = Arc::new(ManualClock::new(time_ms));
    let db = Db::open(&directory, options(&clock)).unwrap();
    db.verify().unwrap();
    let found = contents(&db);
    drop(db);
    fs::remove_dir_all(&directory).unwrap();
    (restored, found)
}

/// What a database was at one moment.
struct Moment {
    sequence: u64,
    time_ms: u64,
    contents: Contents,
}

/// How many restores were compared.
fn history(seed: u64) -> u64 {
    println!("seed {seed}; again with ESKER_SEED={seed}");
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let clock = Arc::new(ManualClock::new(START_MS));
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let mut db = Db::open(&path, options(&clock)).unwrap();
    let (mut moments, mut backups): (Vec<Moment>, Vec<(u64, u64)>) = Default::default();
    for round in 0..120 {
        let names = db.keyspaces();
        let keyspaces: Vec<Keyspace> = names.iter().map(|name| db.existing_keyspace(name).unwrap()).collect();
        let chosen = keyspaces.get(random.below(keyspaces.len().max(1) as u64) as usize);
        match (random.below(20), chosen) {
            (0, _) | (_, None) => create(&db, &mut random, round),
            (1 | 2, Some(chosen)) => alter(&db, chosen, &mut random, round),
            (3, _) => clock.advance(Duration::from_secs(random.below(10))),
            (4, _) => db.flush().unwrap(),
            (5, _) if backups.len() < 4 => {
                let created = target.create(&db, &Create::default()).unwrap();
                backups.push((created.backup.number, created.backup.sequence));
            }
            (6, _) => {
                drop((keyspaces, db));
                db = Db::open(&path, options(&clock)).unwrap();
            }
            _ => write(&db, &keyspaces, &clock, &mut random),
        }
        if random.below(4) == 0 {
            let sequence = db.snapshot().sequence();
            moments.push(Moment { sequence, time_ms: esker::Clock::now_ms(&*clock), contents: contents(&db) });
        }
    }
    let mut compared = 0;
    for &(backup, begin) in &backups {
        let later = moments.iter().filter(|moment| moment.sequence >= begin);
        for moment in later.step_by(3) {
            let forward = Forward::new(&path).to_sequence(moment.sequence);
            let (restored, found) = restored(place.path(), &target, backup, &forward, moment.time_ms);
            assert!(restored.sequence <= moment.sequence && restored.backup.number == backup);
            let (found, expected) = (filled(&found), filled(&moment.contents));
            assert_eq!(found, expected, "backup {backup} at {begin}, up to {}", moment.sequence);
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_restore_goes_on_to_what_the_database_was_at_any_write() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("ESKER_SEED");
    let count = number("ESKER_SEEDS").unwrap_or(if first.is_some() { 1 } else { 2 });
    let first = first.unwrap_or(1);
    let compared: u64 = (first..first + count).map(history).sum();
    println!("{compared} restores compared");
    assert!(compared > 0);
}

#[test]
fn it_reads_beside_a_writer_and_behind_a_crash() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let clock = Arc::new(ManualClock::new(START_MS));
    let db = Db::open(&path, options(&clock)).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    names.put("ada", "1815").unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let first = target.create(&db, &Create::default()).unwrap().backup;
    names.put("bob", "1923").unwrap();
    let second = target.create(&db, &Create::default()).unwrap().backup;
    names.put("eve", "1990").unwrap();
    let last = db.snapshot().sequence();
    let directory = place.path().join("restored");
    // The newest backup that is not behind it.
    for (end, begins, reached) in [
        (None, &second, last),
        (Some(last), &second, last),
        (Some(second.sequence), &second, second.sequence),
        (Some(first.sequence), &first, first.sequence),
    ] {
        let forward = end.into_iter().fold(Forward::new(&path), Forward::to_sequence);
        fs::create_dir(&directory).unwrap();
        let restored = target.restore_forward(None, &directory, &forward).unwrap();
        assert_eq!((restored.backup.number, restored.sequence), (begins.number, reached));
        let db = Db::open(&directory, Options::default()).unwrap();
        let count = db.existing_keyspace("names").unwrap().iter().count() as u64;
        assert_eq!(count, reached - first.sequence + 1);
        drop(db);
        fs::remove_dir_all(&directory).unwrap();
    }
    std::mem::forget(db);
    let restored = target.restore_forward(None, &directory, &Forward::new(&path)).unwrap();
    assert_eq!(restored.sequence, last);
}

/// A database with changes, a target with a backup of it, and a write behind that.
fn backed_up(place: &Path) -> (Db, Target) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let db = Db::open(place.join("data"), options(&clock)).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    names.put("ada", "1815").unwrap();
    let target = Target::new_directory(place.join("target")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    names.put("bob", "1923").unwrap();
    (db, target)
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_left_of_one_that_was_cut_short_goes_with_the_next() {
    let place = tempfile::tempdir().unwrap();
    let (db, target) = backed_up(place.path());
    let forward = Forward::new(place.path().join("data"));
    let (directory, left) = (place.path().join("restored"), place.path().join("restored.restore-forward"));
    // While files are written: its own mark is there, and half of the files.
    let cut_short = target.with(esker_backup::Transfers::default().progress(|_| panic!("the end of the process")));
    let cut_short = || {
        let restore = || cut_short.restore_forward(None, &directory, &forward).map(drop);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(restore)).is_err());
    };
    cut_short();
    let mark = place.path().join("restored.restore-forward.unfinished");
    assert!(mark.exists() && left.exists());
    let restored = target.restore_forward(None, &directory, &forward).unwrap();
    assert_eq!(restored.sequence, db.snapshot().sequence());
    assert_eq!(names_in(place.path()), ["data", "restored", "target"]);
    // While changes are applied; while what it was is removed; while the mark is written.
    for (is_whole, written) in [(true, None), (false, None), (false, Some("be"))] {
        fs::remove_dir_all(&directory).unwrap();
        cut_short();
        fs::remove_dir_all(&left).unwrap();
        match written {
            None => drop(target.restore(None, &left).unwrap()),
            Some(written) => fs::write(&mark, written).unwrap(),
        }
        if !is_whole && left.exists() {
            fs::remove_file(left.join("CURRENT")).unwrap();
        }
        target.restore_forward(None, &directory, &forward).unwrap();
        assert_eq!(names_in(place.path()), ["data", "restored", "target"]);
    }
}

#[test]
fn a_directory_that_no_restore_has_left_is_not_touched() {
    let place = tempfile::tempdir().unwrap();
    let (_db, target) = backed_up(place.path());
    let forward = Forward::new(place.path().join("data"));
    let (directory, other) = (place.path().join("restored"), place.path().join("restored.restore-forward"));
    target.restore(None, &other).unwrap();
    let before = names_in(&other);
    let error = target.restore_forward(None, &directory, &forward).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("no restore says")), "{error}");
    assert_eq!(names_in(&other), before);
    fs::remove_dir_all(&other).unwrap();
    let mark = place.path().join("restored.restore-forward.unfinished");
    fs::write(&mark, "dear ada").unwrap();
    let error = target.restore_forward(None, &directory, &forward).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("rename it")), "{error}");
    assert_eq!(fs::read(&mark).unwrap(), b"dear ada");
    fs::remove_file(&mark).unwrap();
    // An empty one is in nobody's way.
    fs::create_dir(&other).unwrap();
    target.restore_forward(None, &directory, &forward).unwrap();
    assert_eq!(names_in(place.path()), ["data", "restored", "target"]);
}

#[test]
fn another_database_is_told_by_the_settings_of_its_keyspaces() {
    let place = tempfile::tempdir().unwrap();
    let (_db, target) = backed_up(place.path());
    let directory = place.path().join("restored");
    let expires = Ttl::Enabled { default: None };
    for (number, other) in [
        KeyspaceOptions::default().merge_operator(Max),
        KeyspaceOptions::default().comparator(esker::ReverseBytewise),
        KeyspaceOptions::default().ttl(expires),
    ]
    .into_iter()
    .enumerate()
    {
        let path = place.path().join(format!("other {number}"));
        let clock = Arc::new(ManualClock::new(START_MS));
        let db = Db::open(&path, options(&clock)).unwrap();
        let names = db.keyspace("names", other).unwrap();
        for key in ["1", "2", "3"] {
            names.put(key, "").unwrap();
        }
        let error = target.restore_forward(None, &directory, &Forward::new(&path)).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArgument { what } if what.contains("same database")),
            "{number}: {error}"
        );
        assert!(!directory.exists() && !place.path().join("restored.restore-forward.unfinished").exists());
    }
}

#[test]
fn what_cannot_be_done_says_why_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let clock = Arc::new(ManualClock::new(START_MS));
    let db = Db::open(&path, options(&clock)).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    names.put("ada", "1815").unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    let early = db.snapshot().sequence() - 1;
    let backup = target.create(&db, &Create::default()).unwrap().backup;
    names.ingest([("bob", "1923")]).unwrap();
    let loaded = db.snapshot().sequence();
    names.put("eve", "1990").unwrap();
    let directory = place.path().join("restored");
    let restore = |forward: &Forward| target.restore_forward(None, &directory, forward).unwrap_err();
    let forward = || Forward::new(&path);
    let error = restore(&forward());
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("loads pairs")), "{error}");
    let error = restore(&forward().to_sequence(loaded + 2));
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("ends at write")), "{error}");
    let error = restore(&forward().to_sequence(early));
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = restore(&Forward::new(place.path().join("nowhere")));
    assert!(matches!(error, Error::Database(esker::Error::NotFound { .. })), "{error}");
    // Another database, and one without changes.
    let other = place.path().join("other");
    let without = Db::open(&other, Options::default()).unwrap();
    for name in ["a", "b"] {
        without.keyspace(name, KeyspaceOptions::default()).unwrap().put("1", "").unwrap();
    }
    without.existing_keyspace("a").unwrap().put("2", "").unwrap();
    let error = restore(&Forward::new(&other));
    assert!(error.to_string().contains("keeps no changes"), "{error}");
    drop(without);
    let stranger = place.path().join("stranger");
    let with = Db::open(&stranger, options(&clock)).unwrap();
    let stranger_names = with.keyspace("other names", KeyspaceOptions::default()).unwrap();
    for key in ["1", "2", "3"] {
        stranger_names.put(key, "").unwrap();
    }
    let error = restore(&Forward::new(&stranger));
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("same database")), "{error}");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("letter"), "dear ada").unwrap();
    assert!(matches!(restore(&forward()), Error::InvalidArgument { .. }));
    fs::remove_dir_all(&directory).unwrap();
    assert!(!place.path().join("restored.restore-forward").exists() && !directory.exists());
    // Up to the load it goes.
    let restored = target.restore_forward(Some(backup.number), &directory, &forward().to_sequence(loaded - 1)).unwrap();
    assert_eq!(restored.sequence, backup.sequence);
}

/// The longer one.
struct Longest;

impl esker::MergeOperator for Longest {
    fn name(&self) -> &str {
        "test.longest"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, esker::MergeError> {
        Ok(existing.into_iter().chain(operands.iter().copied()).max_by_key(|value| value.len()).map(<[u8]>::to_vec))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn an_operator_of_the_programs_own_is_to_be_supplied() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let clock = Arc::new(ManualClock::new(START_MS));
    let db = Db::open(&path, options(&clock)).unwrap();
    let target = Target::new_directory(place.path().join("target")).unwrap();
    target.create(&db, &Create::default()).unwrap();
    let words = db.keyspace("words", KeyspaceOptions::default().merge_operator(Longest)).unwrap();
    for word in ["ada", "lovelace", "byron"] {
        words.merge("k", word).unwrap();
    }
    let directory = place.path().join("restored");
    let forward = Forward::new(&path);
    let error = target.restore_forward(None, &directory, &forward).unwrap_err();
    assert!(matches!(error, Error::Database(esker::Error::MissingMergeOperator { .. })), "{error}");
    target.restore_forward(None, &directory, &forward.merge_operator(Arc::new(Longest))).unwrap();
    let restored = Db::open(&directory, Options::default()).unwrap();
    let words = restored.keyspace("words", KeyspaceOptions::default().merge_operator(Longest)).unwrap();
    assert_eq!(words.get("k").unwrap().as_deref(), Some(&b"lovelace"[..]));
}
