//! The change feed: what applies it has what the database has.

use crate::common::{DIRECTORY, Machine, keyspace, simulated, wait_until};
use esker::env::mem::{CrashMode, MemEnv};
use esker::internals::Random;
use esker::merge::{StringAppend, UInt64Add};
use esker::{
    Change, ChangeBatch, ChangeOperation, ChangeRetention, Changes, Db, Error, Expiry, Keyspace, KeyspaceOptions,
    MergeOperator, Options, Slice, Ttl, WriteOptions,
};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Pairs = BTreeMap<Vec<u8>, (Vec<u8>, Expiry)>;

pub fn keeping(env: &MemEnv) -> Options {
    simulated(env).min_blob_size(100).wal_segment_bytes(4 << 10).keep_changes(ChangeRetention::Bytes(1 << 40))
}

fn options_of(name: &str) -> KeyspaceOptions {
    match name {
        "reversed" => KeyspaceOptions::default().comparator(esker::ReverseBytewise),
        "sums" => KeyspaceOptions::default().merge_operator(UInt64Add),
        "texts" => KeyspaceOptions::default().merge_operator(StringAppend::new(",")),
        "sessions" => KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(Duration::from_secs(50)) }),
        _ => KeyspaceOptions::default(),
    }
}

/// Whether a range of the keyspace holds the key.
fn is_within(name: &str, (start, end): (Bound<&[u8]>, Bound<&[u8]>), key: &[u8]) -> bool {
    if name == "reversed" { (end, start).contains(key) } else { (start, end).contains(key) }
}

fn operator_of(name: &str) -> Box<dyn MergeOperator> {
    match name {
        "sums" => Box::new(UInt64Add),
        _ => Box::new(StringAppend::new(",")),
    }
}

/// What applies the changes and nothing else.
#[derive(Default)]
struct Mirror {
    next: u64,
    keyspaces: BTreeMap<u64, (Arc<str>, Pairs)>,
}

impl Mirror {
    fn apply(&mut self, db: &Db, batch: &ChangeBatch) {
        assert!(!batch.changes.is_empty());
        for change in &batch.changes {
            assert!(change.sequence >= self.next, "{} comes a second time", change.sequence);
            self.next = change.sequence + 1;
            self.apply_one(db, change);
        }
        assert_eq!(self.next, batch.next_sequence());
    }

    fn apply_one(&mut self, db: &Db, change: &Change) {
        let place = self.keyspaces.entry(change.keyspace_id);
        let (name, pairs) = place.or_insert_with(|| (Arc::clone(&change.keyspace), Pairs::new()));
        assert_eq!(*name, change.keyspace);
        match &change.operation {
            ChangeOperation::Put { key, value, expiry } => {
                pairs.insert(key.to_vec(), (value.to_vec(), *expiry));
            }
            ChangeOperation::Delete { key } => {
                pairs.remove(&key[..]);
            }
            ChangeOperation::Merge { key, operand, expiry, is_first } => {
                let existing = pairs.remove(&key[..]).filter(|_| !is_first);
                let existing = existing.as_ref().map(|(value, _)| value.as_slice());
                let merged = operator_of(name).full_merge(key, existing, &[operand]).unwrap();
                merged.map(|value| pairs.insert(key.to_vec(), (value, *expiry)));
            }
            ChangeOperation::DeleteRange { start, end } => {
                let range = (start.as_ref().map(|key| &key[..]), end.as_ref().map(|key| &key[..]));
                pairs.retain(|key, _| !is_within(name, range, key));
            }
            ChangeOperation::Load => *pairs = read(&db.existing_keyspace(name).unwrap()),
            ChangeOperation::DropKeyspace => {
                self.keyspaces.remove(&change.keyspace_id);
            }
            other => panic!("{other:?}"),
        }
    }

    fn follow(&mut self, db: &Db, changes: &mut Changes) {
        for batch in changes {
            self.apply(db, &batch.unwrap());
        }
    }

    fn assert_same(&self, db: &Db, context: &str) {
        let mine = self.keyspaces.values().filter(|(_, pairs)| !pairs.is_empty());
        let mine: BTreeMap<&str, Pairs> = mine.map(|(name, pairs)| (&**name, pairs.clone())).collect();
        let names = db.keyspaces();
        let theirs = names.iter().map(|name| (name.as_str(), read(&db.existing_keyspace(name).unwrap())));
        let theirs: BTreeMap<&str, Pairs> = theirs.filter(|(_, pairs)| !pairs.is_empty()).collect();
        assert_eq!(mine, theirs, "{context}");
    }
}

fn read(keyspace: &Keyspace) -> Pairs {
    let pair = |pair: esker::Result<(Slice, Slice)>| {
        let (key, value) = pair.unwrap();
        let expiry = keyspace.expires_at(&key).unwrap().expect("it has a value");
        (key.to_vec(), (value.to_vec(), expiry))
    };
    keyspace.iter().map(pair).collect()
}

/// Those of one run; with `ESKER_SEED`, and `ESKER_SEEDS` for how many, others.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("ESKER_SEED");
    let count = number("ESKER_SEEDS").unwrap_or(if first.is_some() { 1 } else { usual });
    first.unwrap_or(0)..first.unwrap_or(0) + count
}

const NAMES: [&str; 5] = ["plain", "sums", "texts", "sessions", "reversed"];

fn key(random: &mut Random) -> Vec<u8> {
    vec![b'a' + random.below(20) as u8; 1 + random.below(3) as usize]
}

fn value(random: &mut Random, name: &str) -> Vec<u8> {
    let length = match name {
        "sums" => return random.below(1000).to_le_bytes().to_vec(),
        _ if random.below(8) == 0 => 100 + random.below(400),
        _ => random.below(30),
    };
    (0..length).map(|_| b'a' + random.below(26) as u8).collect()
}

fn handles(db: &Db) -> Vec<Keyspace> {
    NAMES.iter().map(|name| db.keyspace(name, options_of(name)).unwrap()).collect()
}

fn write(random: &mut Random, db: &Db, keyspaces: &[Keyspace]) {
    let mut batch = db.batch();
    for _ in 0..1 + random.below(4) {
        let k = &keyspaces[random.below(5) as usize];
        let (key, value) = (key(random), value(random, &k.name()));
        match random.below(12) {
            0..5 => batch.put(k, &key, &value).unwrap(),
            5..8 if k.merge_operator().is_some() => batch.merge(k, &key, &value).unwrap(),
            8 if &*k.name() == "sessions" => {
                batch.touch(k, &key, Duration::from_secs(1 + random.below(100))).unwrap();
            }
            9 => batch.delete_range(k, &key[..]..).unwrap(),
            10 if &*k.name() != "reversed" => batch.delete_prefix(k, &key[..1]).unwrap(),
            _ => batch.delete(k, &key).unwrap(),
        }
    }
    batch.commit_with(&WriteOptions::new().sync(random.below(5) == 0)).unwrap();
}

fn load(random: &mut Random, k: &Keyspace) {
    let keys: std::collections::BTreeSet<_> = (0..1 + random.below(5)).map(|_| key(random)).collect();
    let mut pairs: Vec<_> = keys.into_iter().map(|key| (key, value(random, &k.name()))).collect();
    if &*k.name() == "reversed" {
        pairs.reverse();
    }
    k.ingest(pairs).unwrap();
}

#[test]
fn what_applies_them_has_what_the_database_has() {
    for seed in seeds(60) {
        let mut random = Random::new(seed);
        let env = MemEnv::new();
        let clock = Arc::new(esker::ManualClock::new(1_700_000_000_000));
        let options = || keeping(&env).clock(clock.clone());
        let mut db = Db::open(DIRECTORY, options()).unwrap();
        let mut keyspaces = handles(&db);
        let (mut mirror, mut late) = (Mirror::default(), Mirror::default());
        let mut changes = db.changes(0).unwrap();
        let mut had_load = false;
        for step in 0..400 {
            let context = format!("seed {seed}, step {step}");
            match random.below(100) {
                0..3 => db.flush().unwrap(),
                3 => db.compact().unwrap(),
                4..6 => {
                    mirror.follow(&db, &mut changes);
                    let at = random.below(5) as usize;
                    load(&mut random, &keyspaces[at]);
                    mirror.follow(&db, &mut changes);
                    had_load = true;
                }
                6..8 => {
                    let name = NAMES[random.below(5) as usize];
                    db.drop_keyspace(name).unwrap();
                    keyspaces = handles(&db);
                }
                8 => {
                    drop((changes, keyspaces));
                    if random.below(2) == 0 {
                        db.clone().close().unwrap();
                    }
                    drop(db);
                    db = Db::open(DIRECTORY, options()).unwrap();
                    keyspaces = handles(&db);
                    changes = db.changes(mirror.next).unwrap();
                    assert_eq!(changes.position(), mirror.next.max(1));
                }
                _ => write(&mut random, &db, &keyspaces),
            }
            if random.below(4) == 0 {
                mirror.follow(&db, &mut changes);
                mirror.assert_same(&db, &context);
            }
        }
        mirror.follow(&db, &mut changes);
        mirror.assert_same(&db, &format!("seed {seed}, at the end"));
        if !had_load {
            late.follow(&db, &mut db.changes(0).unwrap());
            late.assert_same(&db, &format!("seed {seed}, all at once"));
        }
        // Another process reads the same.
        let all: Vec<_> = db.changes(0).unwrap().map(Result::unwrap).collect();
        let follower = Db::open_follower(DIRECTORY, options()).unwrap();
        follower.catch_up().unwrap();
        let followed: Vec<_> = follower.db().changes(0).unwrap().map(Result::unwrap).collect();
        assert_eq!(followed, all, "seed {seed}");
    }
}

#[test]
fn a_power_failure_takes_back_nothing_that_was_durable() {
    for seed in seeds(80) {
        let mut random = Random::new(seed);
        let mut env = MemEnv::new();
        let mut mirror = Mirror::default();
        for life in 0..4 {
            let clock = Arc::new(esker::ManualClock::new(1_700_000_000_000));
            let db = Db::open(DIRECTORY, keeping(&env).clock(clock)).unwrap();
            let keyspaces = handles(&db);
            let mut changes = db.changes(mirror.next).unwrap().only_durable();
            for _ in 0..random.below(150) {
                match random.below(50) {
                    0 => db.flush().unwrap(),
                    1 => {
                        db.drop_keyspace("texts").unwrap();
                        db.keyspace("texts", options_of("texts")).unwrap();
                        break;
                    }
                    _ => write(&mut random, &db, &keyspaces),
                }
                if random.below(6) == 0 {
                    mirror.follow(&db, &mut changes);
                }
            }
            mirror.follow(&db, &mut changes);
            if life == 3 {
                db.sync().unwrap();
                mirror.follow(&db, &mut changes);
                mirror.assert_same(&db, &format!("seed {seed}"));
                break;
            }
            drop((changes, keyspaces, db));
            let mode = if random.below(2) == 0 { CrashMode::LoseAll } else { CrashMode::Random };
            env = env.crash(&mode, random.next());
        }
    }
}

/// Batches until changes of the first ones are given up.
fn overtake(db: &Db, k: &Keyspace) {
    for round in 0..200u64 {
        k.put(round.to_be_bytes(), [7; 50]).unwrap();
        if round % 10 == 0 {
            db.flush().unwrap();
        }
    }
}

#[test]
fn a_reader_that_is_overtaken_is_told_where_they_begin() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env).keep_changes(ChangeRetention::Bytes(2 << 10))).unwrap();
    let k = keyspace(&db, "k");
    let mut behind = db.changes(0).unwrap();
    overtake(&db, &k);
    let oldest = match behind.next() {
        Some(Err(Error::Gone { oldest })) => oldest,
        other => panic!("{other:?}"),
    };
    assert!(oldest > 1 && oldest < 200, "{oldest}");
    assert!(matches!(db.changes(oldest - 1), Err(Error::Gone { oldest: again }) if again == oldest));
    let numbers =
        |db: &Db| -> Vec<u64> { db.changes(oldest).unwrap().map(|batch| batch.unwrap().changes[0].sequence).collect() };
    assert_eq!(numbers(&db), (oldest..=200).collect::<Vec<_>>());
    assert!(db.stats().kept_wal_bytes >= 2 << 10);
    let most = 5 * (4 << 10);
    assert!(db.stats().kept_wal_bytes <= most, "{}", db.stats().kept_wal_bytes);
    drop((k, behind));
    db.close().unwrap();
    let db = Db::open(DIRECTORY, keeping(&env).keep_changes(ChangeRetention::Bytes(2 << 10))).unwrap();
    assert_eq!(numbers(&db), (oldest..=200).collect::<Vec<_>>());
    // Without the option they are given up, and what comes later is not listed either.
    drop(db);
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    assert!(matches!(db.changes(0), Err(Error::InvalidArgument { .. })));
    keyspace(&db, "k").put("a", "1").unwrap();
    drop(db);
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    assert!(matches!(db.changes(200), Err(Error::Gone { oldest: 202 })));
    assert_eq!(db.changes(0).unwrap().count(), 0);
    keyspace(&db, "k").put("a", "1").unwrap();
    assert_eq!(db.changes(202).unwrap().count(), 1);
    assert!(matches!(db.changes(204), Err(Error::InvalidArgument { .. })), "the database ends before");
}

/// However much is kept: the list of what the log has not is of 4,096.
#[test]
fn a_program_that_changes_settings_all_the_time_overtakes_its_readers() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = db.keyspace("k", options_of("sessions")).unwrap();
    let set = |seconds: u64| k.set_ttl(Ttl::Enabled { default: Some(Duration::from_secs(1 + seconds)) }).unwrap();
    (0..4096).for_each(set);
    assert_eq!(db.changes(1).unwrap().count(), 4096, "all are there");
    k.put("a", "1").unwrap();
    let mut behind = db.changes(1).unwrap();
    set(5000);
    let oldest = match behind.next() {
        Some(Err(Error::Gone { oldest })) => oldest,
        other => panic!("{other:?}"),
    };
    assert_eq!(oldest, 2049, "the older half went");
    assert_eq!(db.changes(oldest).unwrap().count(), 2050);
}

#[test]
fn changes_are_kept_for_a_time() {
    let machine = Machine::new();
    let hour = Duration::from_secs(3600);
    let options = || machine.options().wal_segment_bytes(1 << 10).keep_changes(ChangeRetention::Time(hour));
    let db = Db::open(DIRECTORY, options()).unwrap();
    let k = keyspace(&db, "k");
    overtake(&db, &k);
    assert_eq!(db.changes(0).unwrap().count(), 200);
    machine.pass(hour / 2);
    overtake(&db, &k);
    assert_eq!(db.changes(1).unwrap().count(), 400);
    machine.pass(hour / 2);
    db.wait_idle().unwrap();
    let oldest = match db.changes(1) {
        Err(Error::Gone { oldest }) => oldest,
        other => panic!("{other:?}"),
    };
    assert!((2..=201).contains(&oldest), "{oldest}");
    assert_eq!(db.changes(0).unwrap().count() as u64, 401 - oldest);
    machine.pass(hour);
    db.wait_idle().unwrap();
    assert!(matches!(db.changes(1), Err(Error::Gone { .. })));
    assert!(db.stats().kept_wal_bytes == 0, "{}", db.stats().kept_wal_bytes);
}

#[test]
fn large_values_are_there_after_their_files_went_out_of_use() {
    let env = MemEnv::new();
    let blob_files = || env.files().iter().filter(|path| path.extension().is_some_and(|it| it == "blob")).count();
    let options = || keeping(&env).keep_changes(ChangeRetention::Bytes(1 << 10));
    let db = Db::open(DIRECTORY, options()).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", vec![7; 10_000]).unwrap();
    db.flush().unwrap();
    k.put("a", "small").unwrap();
    db.compact().unwrap();
    let is_large = |batch: &ChangeBatch| match &batch.changes[0].operation {
        ChangeOperation::Put { value, .. } => value.len() == 10_000,
        other => panic!("{other:?}"),
    };
    assert_eq!(db.stats().blob_files, 0, "no table refers to it");
    assert!(is_large(&db.changes(1).unwrap().next().unwrap().unwrap()));
    drop((k, db));
    let db = Db::open(DIRECTORY, options()).unwrap();
    assert!(is_large(&db.changes(1).unwrap().next().unwrap().unwrap()));
    assert_eq!(blob_files(), 1);
    let k = keyspace(&db, "k");
    overtake(&db, &k);
    assert_eq!(blob_files(), 0, "it went with the last record that could refer to it");
    assert!(matches!(db.changes(1), Err(Error::Gone { .. })));
}

/// Seen: their files stayed as long as changes are kept. Trigger: a load that is refused behind a
/// large value. Cost: space.
#[test]
fn large_values_of_a_refused_load_do_not_wait_for_readers_of_changes() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    for _ in 0..3 {
        assert!(k.ingest([("b", vec![7; 10_000]), ("a", vec![7; 10_000])]).is_err());
        db.wait_idle().unwrap();
        assert!(env.files().iter().all(|path| path.extension().is_none_or(|it| it != "blob")));
    }
}

/// The file is one of a job, and the record of a change of expiry refers to it.
#[test]
fn a_large_value_that_a_job_has_made_is_there_for_the_records_that_refer_to_it() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(Duration::from_secs(50)) });
    let k = db.keyspace("k", options.merge_operator(StringAppend::new(","))).unwrap();
    k.merge("a", vec![7; 10_000]).unwrap();
    k.merge("a", vec![8; 10_000]).unwrap();
    db.flush().unwrap();
    assert_eq!(db.stats().blob_files, 1);
    assert!(k.touch("a", Duration::from_secs(5000)).unwrap());
    k.delete("a").unwrap();
    db.compact().unwrap();
    assert_eq!(db.stats().blob_files, 0);
    let lengths: Vec<usize> = db
        .changes(0)
        .unwrap()
        .flat_map(|batch| batch.unwrap().changes)
        .filter_map(|change| match change.operation {
            ChangeOperation::Put { value, .. } => Some(value.len()),
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [20_001]);
}

#[test]
fn a_checkpoint_and_a_repaired_database_begin_anew() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.checkpoint("/copy").unwrap();
    let copy = Db::open("/copy", keeping(&env)).unwrap();
    assert!(matches!(copy.changes(1), Err(Error::Gone { oldest: 2 })));
    keyspace(&copy, "k").put("b", "2").unwrap();
    assert_eq!(copy.changes(2).unwrap().count(), 1);
    drop((k, db));
    let manifest = env.files().into_iter().find(|path| path.to_str().unwrap().starts_with("/db/MANIFEST")).unwrap();
    esker::env::Env::remove(&env, &manifest).unwrap();
    Db::repair(DIRECTORY, keeping(&env)).unwrap();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    assert!(matches!(db.changes(1), Err(Error::Gone { .. })));
    assert_eq!(db.changes(0).unwrap().count(), 0);
}

#[test]
fn writes_without_log_are_in_none() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let mut changes = db.changes(0).unwrap();
    k.put_with("a", "1", &WriteOptions::new().disable_wal(true)).unwrap();
    assert!(changes.next().is_none());
    k.put("b", "1").unwrap();
    assert_eq!(changes.next().unwrap().unwrap().changes[0].sequence, 2);
}

#[test]
fn a_reader_goes_on_before_writes_without_log_that_a_crash_may_lose() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let positions = [false, true].map(|only_durable| {
        let mut changes = db.changes(0).unwrap();
        if only_durable {
            changes = changes.only_durable();
        }
        k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
        changes.find(|batch| batch.as_ref().unwrap().next_sequence() == db.snapshot().sequence() + 1).unwrap().unwrap();
        k.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
        assert!(changes.next().is_none());
        let lost = changes.position();
        // In a table it has its number for good.
        db.flush().unwrap();
        assert!(changes.next().is_none());
        assert_eq!(changes.position(), lost + 1);
        k.put_with("c", "1", &WriteOptions::new().disable_wal(true)).unwrap();
        assert!(changes.next().is_none());
        assert_eq!(changes.position(), lost + 1);
        changes.position()
    });
    let position = positions[1];
    let image = env.crash(&CrashMode::KeepAll, 0);
    let db = Db::open(DIRECTORY, keeping(&image)).unwrap();
    keyspace(&db, "k").put("d", "1").unwrap();
    // It has the number that "c" had.
    let batch = db.changes(position).unwrap().next().expect("the write").unwrap();
    assert!(matches!(&batch.changes[0].operation, ChangeOperation::Put { key, .. } if key == "d"), "{batch:?}");
}

#[test]
fn what_is_read_ahead_moves_no_reader_past_writes_without_log() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
    k.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
    k.put("c", "1").unwrap();
    let mut changes = db.changes(0).unwrap();
    changes.next().unwrap().unwrap();
    let position = changes.position();
    let image = env.crash(&CrashMode::LoseAll, 0);
    let db = Db::open(DIRECTORY, keeping(&image)).unwrap();
    keyspace(&db, "k").put("d", "1").unwrap();
    let batch = db.changes(position).unwrap().next().expect("the write").unwrap();
    assert!(matches!(&batch.changes[0].operation, ChangeOperation::Put { key, .. } if key == "d"), "{batch:?}");
}

/// Such a call wants a new manifest.
type Call = fn(&Db, &Keyspace) -> esker::Result<()>;

#[test]
fn the_number_of_a_call_that_failed_is_that_of_the_next_write() {
    let calls: [(&str, Call); 4] = [
        ("rename", |_, k| k.rename("other")),
        ("time to live", |_, k| k.set_ttl(Ttl::Enabled { default: None })),
        ("operator", |_, k| k.set_merge_operator(UInt64Add)),
        ("drop", |db, k| db.drop_keyspace(&k.name())),
    ];
    for (name, call) in calls {
        let env = MemEnv::new();
        let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
        let k = keyspace(&db, "k");
        k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
        let readers = || [db.changes(0).unwrap(), db.changes(0).unwrap().only_durable()];
        let mut readers = readers();
        readers.iter_mut().for_each(|changes| assert_eq!(changes.by_ref().count(), 1, "{name}"));
        env.set_capacity(Some(0));
        assert!(call(&db, &k).is_err_and(|error| error.is_disk_full()), "{name}");
        env.set_capacity(None);
        assert_eq!(db.snapshot().sequence(), 1, "{name}");
        for changes in &mut readers {
            assert!(changes.next().is_none(), "{name}");
            assert_eq!(Changes::position(changes), 2, "{name}");
        }
        // In this process and in the next one.
        let image = env.crash(&CrashMode::KeepAll, 0);
        let next = Db::open(DIRECTORY, keeping(&image)).unwrap();
        for (db, k) in [(&db, &k), (&next, &keyspace(&next, "k"))] {
            k.put("b", "1").unwrap();
            let batch = db.changes(2).unwrap().next().expect("the write").unwrap();
            assert!(matches!(&batch.changes[0].operation, ChangeOperation::Put { key, .. } if key == "b"), "{name}");
        }
        call(&db, &k).unwrap();
        assert_eq!(db.snapshot().sequence(), 3, "{name}");
        assert_eq!(readers[0].by_ref().count(), 2, "{name}");
    }
}

#[test]
fn writers_and_readers_in_many_threads_see_each_batch_once() {
    const WRITERS: u64 = 4;
    const BATCHES: u64 = 2000;
    let env = MemEnv::new();
    let options = simulated(&env).background_threads(1).wal_segment_bytes(1 << 14).write_buffer_bytes(1 << 16);
    let db = Db::open(DIRECTORY, options.keep_changes(ChangeRetention::Bytes(1 << 40))).unwrap();
    let k = keyspace(&db, "k");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, k) = (&db, &k);
            scope.spawn(move || {
                for number in 0..BATCHES {
                    let mut batch = db.batch();
                    batch.put(k, [writer as u8], number.to_le_bytes()).unwrap();
                    batch.put(k, [writer as u8, 0], number.to_le_bytes()).unwrap();
                    batch.commit().unwrap();
                }
            });
        }
        for _ in 0..2 {
            let db = &db;
            scope.spawn(move || {
                let mut changes = db.changes(0).unwrap();
                let mut next = [0u64; WRITERS as usize];
                loop {
                    for batch in changes.by_ref() {
                        let batch = batch.unwrap();
                        assert_eq!(batch.changes.len(), 2);
                        let ChangeOperation::Put { key, value, .. } = &batch.changes[0].operation else {
                            panic!("{batch:?}")
                        };
                        assert_eq!(value[..], next[key[0] as usize].to_le_bytes());
                        next[key[0] as usize] += 1;
                    }
                    if next.iter().all(|next| *next == BATCHES) {
                        break;
                    }
                    assert!(changes.wait(Duration::from_secs(300)).unwrap(), "told of no more after {next:?}");
                }
            });
        }
    });
}

#[test]
fn a_segment_that_is_missing_is_no_silent_gap() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    overtake(&db, &k);
    let mut segments: Vec<_> =
        env.files().into_iter().filter(|path| path.extension().is_some_and(|it| it == "wal")).collect();
    segments.sort();
    assert!(segments.len() > 3);
    esker::env::Env::remove(&env, &segments[1]).unwrap();
    let mut changes = db.changes(1).unwrap();
    let numbers: Vec<u64> = changes.by_ref().map_while(Result::ok).map(|batch| batch.changes[0].sequence).collect();
    assert!(numbers.is_empty(), "what begins in front of a hole begins with an error: {numbers:?}");
    assert!(matches!(db.changes(1).unwrap().next(), Some(Err(Error::Corruption { .. }))));
    drop((changes, k, db));
    // The next open knows what it has not.
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    assert!(matches!(db.changes(1), Err(Error::Gone { oldest: 201 })));
}

/// Seen: changes were passed over without an error. Trigger: a record is damaged in the segment
/// that is being written to. Cost: a reader went on behind the last write, and never had those from
/// the damage on.
#[test]
fn damage_in_the_segment_that_is_written_to_is_no_silent_gap() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let value = |key: &str| key.repeat(40);
    ["a", "b", "c"].iter().for_each(|key| k.put(key, value(key)).unwrap());
    let early = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    k.put("d", value("d")).unwrap();
    let follower = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    let read_only = Db::open_read_only(DIRECTORY, keeping(&env)).unwrap();
    let places = env.files().into_iter().filter_map(|path| {
        let bytes = env.file_bytes(&path)?;
        let at = bytes.windows(40).position(|window| window == value("d").as_bytes())?;
        Some((path, at as u64))
    });
    let [(segment, at)] = &places.collect::<Vec<_>>()[..] else { panic!("one file has the record") };
    assert!(env.flip_bit(segment, *at, 0));
    // It learns of the write by the manifest, and cannot read the record any more.
    db.flush().unwrap();
    early.catch_up().unwrap();
    assert!(keyspace(early.db(), "k").get("d").unwrap().is_some());
    let handles: [(&str, &Db); 4] =
        [("writer", &db), ("early", early.db()), ("follower", follower.db()), ("reader", &read_only)];
    for (whose, db) in handles {
        let mut changes = db.changes(1).unwrap();
        for _ in 0..3 {
            assert!(matches!(changes.next(), Some(Ok(_))), "{whose}: what is in front of the damage");
        }
        for _ in 0..2 {
            let next = changes.next();
            let Some(Err(Error::Corruption { path, .. })) = next else { panic!("{whose}: {next:?}") };
            assert_eq!(path, *segment, "{whose}");
        }
        // Right again, it goes on where it stood.
        assert!(env.flip_bit(segment, *at, 0));
        assert_eq!(changes.map(Result::unwrap).count(), 1, "{whose}");
        assert!(env.flip_bit(segment, *at, 0));
    }
}

#[test]
fn a_watch_is_told_of_every_kind_of_write_to_its_keys_and_of_no_other() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    let (k, other) = (keyspace(&db, "k"), keyspace(&db, "other"));
    let sums = db.keyspace("sums", options_of("sums")).unwrap();
    let (watch, of_sums, all) = (k.watch("b").unwrap(), sums.watch("b").unwrap(), k.watch("").unwrap());
    let is_told = |watch: &esker::Watch| watch.wait(Duration::ZERO).unwrap();
    let unlogged = WriteOptions::new().disable_wal(true);
    let untold: [&dyn Fn() -> esker::Result<()>; 4] =
        [&|| k.put("a", "1"), &|| k.delete("c"), &|| other.put("b", "1"), &|| k.delete_range("c".."d")];
    for (number, write) in untold.iter().enumerate() {
        write().unwrap();
        assert!(!is_told(&watch), "{number}");
    }
    assert!(is_told(&all) && !is_told(&all));
    let in_batch = || {
        let mut batch = db.batch();
        batch.put(&other, "a", "1")?;
        batch.put(&k, "bb", "1")?;
        batch.commit()
    };
    let in_transaction = || {
        let mut transaction = db.transaction();
        transaction.put(&k, "b", "2")?;
        transaction.commit()
    };
    let told: [&dyn Fn() -> esker::Result<()>; 9] = [
        &|| k.put("b", "1"),
        &|| k.put_with("b", "12345678", &unlogged),
        &|| k.put_with("b", "87654321", &unlogged),
        &|| k.delete("ba"),
        &|| k.delete_range(..),
        &|| k.put_if_absent("b", "1").map(drop),
        &in_batch,
        &in_transaction,
        &|| k.ingest([("x", "1")]).map(drop),
    ];
    for (number, write) in told.iter().enumerate() {
        write().unwrap();
        assert!(is_told(&watch), "{number}");
        assert!(!is_told(&watch), "{number}");
    }
    // In place, without the writer lock, where nobody watches.
    for _ in 0..3 {
        sums.merge_with("b", 1u64.to_le_bytes(), &unlogged).unwrap();
        assert!(is_told(&of_sums));
    }
    db.drop_keyspace("k").unwrap();
    assert!(is_told(&watch));
    db.close().unwrap();
    assert!(matches!(of_sums.wait(Duration::from_secs(300)), Err(Error::ReadOnly { .. })));
}

/// Nothing but a write, or the close, ends these waits, but for the first of each reader: they
/// would last an hour.
#[test]
fn a_wait_that_is_under_way_ends_with_a_write_and_with_a_close() {
    const HOUR: Duration = Duration::from_secs(3600);
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let watch = k.watch("b").unwrap();
    let follow = |mut changes: Changes| {
        move || {
            changes.by_ref().try_for_each(|batch| batch.map(drop))?;
            changes.wait(HOUR)
        }
    };
    let ended: Arc<[AtomicU64; 3]> = Arc::default();
    let waiter = |number: usize, mut wait: Box<dyn FnMut() -> esker::Result<bool> + Send>| {
        let ended = Arc::clone(&ended);
        std::thread::spawn(move || {
            loop {
                match wait() {
                    Ok(true) => ended[number].fetch_add(1, Ordering::SeqCst),
                    Ok(false) => panic!("an hour has passed"),
                    Err(error) => return error,
                };
            }
        })
    };
    let waiters = [
        waiter(0, Box::new(move || watch.wait(HOUR))),
        waiter(1, Box::new(follow(db.changes(1).unwrap()))),
        waiter(2, Box::new(follow(db.changes(1).unwrap().only_durable()))),
    ];
    for number in 0..200u64 {
        let before: Vec<u64> = ended.iter().map(|ended| ended.load(Ordering::SeqCst)).collect();
        k.put_with("b", number.to_le_bytes(), &WriteOptions::new().sync(true)).unwrap();
        wait_until("a write ends each wait", || {
            ended.iter().zip(&before).all(|(ended, before)| ended.load(Ordering::SeqCst) > *before)
        });
    }
    db.close().unwrap();
    wait_until("a close ends each wait", || waiters.iter().all(|waiter| waiter.is_finished()));
    for waiter in waiters {
        assert!(matches!(waiter.join().unwrap(), Error::ReadOnly { .. }));
    }
}

#[test]
fn a_watch_of_a_follower_is_told_when_it_catches_up() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    let k = keyspace(&db, "k");
    let follower = Db::open_follower(DIRECTORY, simulated(&env)).unwrap();
    let watch = follower.db().existing_keyspace("k").unwrap().watch("b").unwrap();
    k.put("b", "1").unwrap();
    assert!(!watch.wait(Duration::ZERO).unwrap());
    follower.catch_up().unwrap();
    assert!(watch.wait(Duration::ZERO).unwrap());
    k.put("a", "1").unwrap();
    follower.catch_up().unwrap();
    assert!(!watch.wait(Duration::ZERO).unwrap());
}

/// Of a database without loads, drops and writes without log, every number is there from the oldest
/// on.
fn assert_no_gap(db: &Db, context: &str) {
    let oldest = match db.changes(1) {
        Ok(_) => 1,
        Err(Error::Gone { oldest }) => oldest,
        Err(error) => panic!("{context}: {error}"),
    };
    let last = db.snapshot().sequence();
    let numbers: Vec<u64> = db
        .changes(0)
        .unwrap()
        .flat_map(|batch| batch.unwrap_or_else(|error| panic!("{context}: {error}")).changes)
        .map(|change| change.sequence)
        .collect();
    assert_eq!(numbers, (oldest..=last).collect::<Vec<_>>(), "{context}, kept from {oldest} to {last}");
}

#[test]
fn whatever_ends_a_process_and_whatever_is_given_up_there_is_no_gap() {
    for seed in seeds(150) {
        let mut random = Random::new(seed);
        let mut env = MemEnv::new();
        let clock = Arc::new(esker::ManualClock::new(1_700_000_000_000));
        let retention = match random.below(3) {
            0 => ChangeRetention::Time(Duration::from_secs(10)),
            1 => ChangeRetention::Bytes(1 << 40),
            _ => ChangeRetention::Bytes(random.below(8 << 10)),
        };
        let mut last_oldest = 0;
        for life in 0..12 {
            let context = format!("seed {seed}, life {life}, {retention:?}");
            let options = keeping(&env).clock(clock.clone()).keep_changes(retention);
            let db = Db::open(DIRECTORY, options).unwrap();
            let names: &[&str] = if seed % 2 == 0 { &["k"] } else { &["k", "other"] };
            let keyspaces: Vec<_> = names.iter().map(|name| keyspace(&db, name)).collect();
            assert_no_gap(&db, &context);
            let writes = if random.below(3) == 0 { 0 } else { random.below(60) };
            for _ in 0..writes {
                let k = &keyspaces[random.below(keyspaces.len() as u64) as usize];
                let length = if random.below(12) == 0 { 90 + random.below(60) } else { random.below(50) };
                let sync = WriteOptions::new().sync(random.below(20) == 0);
                k.put_with(key(&mut random), vec![7; length as usize], &sync).unwrap();
                match random.below(25) {
                    0 => db.flush().unwrap(),
                    1 => db.wait_idle().unwrap(),
                    2 => clock.advance(Duration::from_secs(random.below(12))),
                    _ => {}
                }
            }
            assert_no_gap(&db, &context);
            let oldest = db.changes(0).unwrap().position();
            assert!(oldest >= last_oldest, "{context}: {oldest} came back");
            last_oldest = oldest;
            let kept = db.stats().kept_wal_bytes;
            if let ChangeRetention::Bytes(bytes) = retention {
                // Whole segments, of up to four KiB.
                assert!(kept <= bytes.saturating_add(4 << 10), "{context}: {kept} bytes");
            }
            drop(keyspaces);
            match random.below(4) {
                0 => db.close().unwrap(),
                1 => drop(db),
                2 => {
                    drop(db);
                    env = env.crash(&CrashMode::LoseAll, 0);
                }
                _ => {
                    drop(db);
                    env = env.crash(&CrashMode::Random, random.next());
                }
            }
        }
    }
}

/// Trap: the log has no record, and an open replaces its empty segment before a manifest says so.
#[test]
fn changes_that_only_the_manifest_has_outlive_an_open_that_is_cut_short() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    keyspace(&db, "loaded").ingest([("a", "1")]).unwrap();
    keyspace(&db, "dropped");
    db.drop_keyspace("dropped").unwrap();
    drop(db);
    let before = env.crash(&CrashMode::LoseAll, 0);
    for calls in 0.. {
        let mut is_over = false;
        for mode in CrashMode::FIXED {
            let env = before.kill();
            env.crash_after(env.mutations() + calls);
            let _ = Db::open(DIRECTORY, keeping(&env)).map(drop);
            is_over = !env.is_dead();
            let db = Db::open(DIRECTORY, keeping(&env.crash(&mode, 0))).unwrap();
            let changes = db.changes(1).unwrap_or_else(|error| panic!("{mode:?} after {calls} calls: {error}"));
            assert_eq!(changes.map(Result::unwrap).count(), 2, "{mode:?} after {calls} calls");
        }
        if is_over {
            assert!(calls > 10);
            break;
        }
    }
}

#[test]
fn a_repair_begins_anew_also_where_the_manifest_is_whole() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.flush().unwrap();
    k.put("b", "1").unwrap();
    drop((k, db));
    let table = env.files().into_iter().find(|path| path.extension().is_some_and(|it| it == "table")).unwrap();
    esker::env::Env::remove(&env, &table).unwrap();
    Db::repair(DIRECTORY, keeping(&env)).unwrap();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    assert!(matches!(db.changes(1), Err(Error::Gone { .. })));
    assert_eq!(db.changes(0).unwrap().count(), 0);
}

#[test]
fn a_visit_of_another_program_ends_no_changes_and_begins_none() {
    let env = MemEnv::new();
    let visit = |number: u8| {
        let db =
            Db::open(DIRECTORY, simulated(&env).wal_segment_bytes(4 << 10).keep_changes(ChangeRetention::AsBefore));
        let db = db.unwrap();
        let k = keyspace(&db, "k");
        for _ in 0..200 {
            k.put([number], [number; 100]).unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
    };
    visit(1);
    let begin = {
        let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
        assert!(matches!(db.changes(1), Err(Error::Gone { .. })), "none are kept by the visit");
        let k = keyspace(&db, "k");
        k.put("a", "1").unwrap();
        db.snapshot().sequence()
    };
    visit(2);
    visit(3);
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let found: Vec<u64> = db.changes(begin).unwrap().map(|batch| batch.unwrap().changes[0].sequence).collect();
    assert_eq!(found, (begin..=db.snapshot().sequence()).collect::<Vec<u64>>());
    assert_eq!(found.len(), 401);
}
