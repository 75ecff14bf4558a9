//! A follower: it shows what the writer has acknowledged, whatever the writer does with its files,
//! and its snapshots never change.

use crate::common::{DIRECTORY, Machine, all, keyspace, pairs, text};
use crate::interrupting::{Interrupting, Work};
use esker::env::Env;
use esker::internals::Random;
use esker::merge::{StringAppend, UInt64Add};
use esker::{CheckpointMode, Db, Error, Follower, Keyspace, KeyspaceOptions, Options, Snapshot, Ttl, WriteOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
type Contents = BTreeMap<String, Pairs>;

/// A stream of numbers, determined by its seed.
fn follow(options: Options) -> Follower {
    Db::open_follower(DIRECTORY, options).expect("a database")
}

/// Catches up as far as a writer in another thread lets it: on a machine with more to do, that may
/// change its files at each look.
fn catch_up_beside_writer(follower: &Follower) {
    match follower.catch_up() {
        Ok(_) | Err(Error::Stalled { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
}

fn contents(db: &Db) -> Contents {
    db.keyspaces().into_iter().map(|name| (name.clone(), all(&db.existing_keyspace(&name).expect("there")))).collect()
}

#[test]
fn it_shows_what_was_acknowledged_before_the_call_and_no_more() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    names.put("a", "1").expect("put");
    let follower = follow(machine.options());
    let followed = follower.db().existing_keyspace("names").expect("there");
    assert_eq!(text(&followed, "a").as_deref(), Some("1"));
    names.put("a", "2").expect("put");
    let mut batch = db.batch();
    batch
        .put(&names, "b", "1")
        .and_then(|()| batch.put(&names, "c", "1"))
        .and_then(|()| batch.commit())
        .expect("batch");
    assert_eq!(pairs(&followed).len(), 1, "not before it catches up");
    let progress = follower.catch_up().expect("catch up");
    assert_eq!((progress.batches, progress.sequence), (2, db.snapshot().sequence()));
    assert_eq!(contents(follower.db()), contents(&db));
    assert_eq!(follower.catch_up().expect("catch up").batches, 0);
    assert!(matches!(followed.put("a", "3"), Err(Error::ReadOnly { .. })));
    assert!(matches!(Db::open_follower("/absent", machine.options()), Err(Error::NotFound { .. })));
    // What is in no log comes with its flush.
    names.put_with("d", "1", &WriteOptions::new().disable_wal(true)).expect("put");
    follower.catch_up().expect("catch up");
    assert_eq!(text(&followed, "d"), None);
    db.flush().expect("flush");
    follower.catch_up().expect("catch up");
    assert_eq!(text(&followed, "d").as_deref(), Some("1"));
}

#[test]
fn memtables_that_tables_have_taken_the_place_of_are_released_by_the_calls_to_come() {
    let machine = Machine::new();
    let options = || machine.options().write_buffer_bytes(1 << 20);
    let db = Db::open(DIRECTORY, options()).expect("open");
    let names = keyspace(&db, "names");
    let follower = follow(options());
    for n in 0..800u32 {
        names.put(n.to_be_bytes(), [7; 1000]).expect("put");
        if n % 10 == 0 {
            follower.catch_up().expect("catch up");
        }
    }
    let bytes = || {
        let memory = follower.db().stats().memory;
        (memory.memtable_bytes + memory.immutable_memtable_bytes, memory.pinned_bytes)
    };
    let (memtables, pinned) = bytes();
    assert!(memtables > 800_000 && pinned == 0, "{memtables} {pinned}");
    db.flush().expect("flush");
    follower.catch_up().expect("catch up");
    let (memtables, pinned) = bytes();
    assert!(memtables < 100_000 && pinned > 500_000, "{memtables} {pinned}");
    // At an eighth of a write buffer for each of them.
    for _ in 0..8 {
        follower.catch_up().expect("catch up");
    }
    let (memtables, pinned) = bytes();
    assert!(memtables + pinned < 100_000, "{memtables} {pinned}");
    // Those that are not released by the next change go with it.
    for n in 0..100u32 {
        names.put(n.to_be_bytes(), [8; 1000]).expect("put");
        names.put((n + 100).to_be_bytes(), [8; 1000]).expect("put");
        follower.catch_up().expect("catch up");
    }
    db.flush().expect("flush");
    follower.catch_up().expect("catch up");
    assert!(bytes().1 > 0);
    names.put("a", "1").expect("put");
    db.flush().expect("flush");
    follower.catch_up().expect("catch up");
    assert!(bytes().1 < 100_000, "{:?}", bytes());
}

#[test]
fn a_counter_counts_once_in_log_and_table() {
    let machine = Machine::new();
    let db = machine.open();
    let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace");
    let follower = follow(machine.options());
    let followed = follower.db().existing_keyspace("hits").expect("there");
    let value = |keyspace: &Keyspace| {
        keyspace.get("a").expect("get").map(|value| u64::from_le_bytes((*value).try_into().expect("eight")))
    };
    for round in 1..=50u64 {
        hits.merge("a", 1u64.to_le_bytes()).expect("merge");
        hits.put(format!("{round}"), "x".repeat(3000)).expect("put");
        if round % 3 == 0 {
            follower.catch_up().expect("catch up");
        }
        hits.merge("a", 1u64.to_le_bytes()).expect("merge");
        if round % 7 == 0 {
            db.flush().expect("flush");
        }
        follower.catch_up().expect("catch up");
        assert_eq!(value(&followed), Some(2 * round));
    }
    db.compact().expect("compact");
    follower.catch_up().expect("catch up");
    assert_eq!(value(&followed), Some(100));
}

/// What a writer does at random, beside a follower.
struct Run {
    machine: Machine,
    random: Random,
    db: Option<Db>,
    follower: Follower,
    snapshots: Vec<(Snapshot, Vec<(Keyspace, Pairs)>)>,
    copies: usize,
}

const NAMES: [&str; 4] = ["counts", "expires", "plain", "text"];

impl Run {
    fn options(machine: &Machine) -> Options {
        machine.options().write_buffer_bytes(32 << 10).wal_segment_bytes(4 << 10).min_blob_size(600)
    }

    fn new(seed: u64) -> Run {
        let machine = Machine::new();
        let db = Db::open(DIRECTORY, Run::options(&machine)).expect("open");
        let follower = follow(Run::options(&machine));
        Run { machine, random: Random::new(seed), db: Some(db), follower, snapshots: Vec::new(), copies: 0 }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    fn keyspace(&self, name: &str) -> Keyspace {
        let options = KeyspaceOptions::default();
        let options = match name {
            "counts" => options.merge_operator(UInt64Add),
            "expires" => options.ttl(Ttl::Enabled { default: None }).merge_operator(StringAppend::new(",")),
            "text" => options.merge_operator(StringAppend::new(",")),
            _ => options,
        };
        self.db().keyspace(name, options).expect("a keyspace")
    }

    fn write(&mut self) {
        let name = NAMES[self.random.below(4) as usize];
        let keyspace = self.keyspace(name);
        let key = format!("{:02}", self.random.below(40));
        let length = [8, 8, 40, 700][self.random.below(4) as usize];
        let value = vec![b'a' + self.random.below(20) as u8; length];
        match (self.random.below(9), name) {
            (0, _) => keyspace.delete(&key),
            (1, _) => keyspace.delete_range(key.clone()..format!("{key}~")),
            (2 | 3, "counts") => keyspace.merge(&key, self.random.below(9).to_le_bytes()),
            (2 | 3, "text" | "expires") => keyspace.merge(&key, "x"),
            (4, "expires") => keyspace.put_with_ttl(&key, value, Duration::from_secs(1 + self.random.below(50))),
            (5, _) => {
                let (other, mut batch) = (self.keyspace("plain"), self.db().batch());
                let both = batch.put(&keyspace, &key, "12345678").and_then(|()| batch.put(&other, &key, &value));
                both.and_then(|()| batch.commit())
            }
            (6, _) if self.random.below(3) == 0 => {
                keyspace.put_with(&key, "12345678", &WriteOptions::new().disable_wal(true))
            }
            _ => keyspace.put(&key, if name == "counts" { b"12345678".to_vec() } else { value }),
        }
        .expect("a write");
    }

    fn step(&mut self) {
        match self.random.below(60) {
            0 => self.db().flush().expect("flush"),
            1 => self.db().compact().expect("compact"),
            2 => self.db().wait_idle().expect("idle"),
            3 => {
                let name = NAMES[self.random.below(4) as usize];
                drop(self.keyspace(name));
                self.db().drop_keyspace(name).expect("drop");
            }
            4 => {
                let from = self.random.below(40);
                let pairs = (from..from + 5).map(|n| (format!("{n:02}"), "ingested"));
                self.keyspace("plain").ingest(pairs).expect("ingest");
            }
            5 => {
                let db = self.db.take().expect("open");
                match self.random.below(2) {
                    0 => db.close().expect("close"),
                    _ => drop(db),
                }
                self.db = Some(Db::open(DIRECTORY, Run::options(&self.machine)).expect("open"));
            }
            6 => self.machine.pass(Duration::from_secs(self.random.below(20))),
            _ => self.write(),
        }
    }

    /// A checkpoint of what the follower has.
    fn copy(&mut self) {
        self.copies += 1;
        let directory = format!("/copies/{}", self.copies);
        let mode = [CheckpointMode::Link, CheckpointMode::Copy][self.random.below(2) as usize];
        self.follower.db().checkpoint_with(&directory, mode).expect("checkpoint");
        let copy = Db::open(&directory, Run::options(&self.machine)).expect("the copy opens");
        copy.verify().expect("the copy verifies");
        assert_eq!(contents(&copy), contents(self.follower.db()), "{directory}");
        if self.random.below(2) == 0 {
            copy.compact().expect("compact");
            assert_eq!(contents(&copy), contents(self.follower.db()), "{directory}, compacted");
        }
    }

    /// What is in no log is flushed first, so that the follower has to have it.
    fn compare(&mut self) {
        if self.random.below(3) == 0 {
            self.db().flush().expect("flush");
            self.follower.catch_up().expect("catch up");
            assert_eq!(contents(self.follower.db()), contents(self.db()));
        } else {
            self.follower.catch_up().expect("catch up");
        }
        if self.random.below(8) == 0 {
            self.copy();
        }
        let db = self.follower.db();
        let seen = |keyspace: Keyspace| {
            let contents = all(&keyspace);
            (keyspace, contents)
        };
        if self.random.below(2) == 0 {
            let now = db.keyspaces().into_iter().map(|name| seen(db.existing_keyspace(&name).expect("there")));
            let now = now.collect();
            self.snapshots.push((db.snapshot(), now));
        }
        for (snapshot, keyspaces) in &self.snapshots {
            for (keyspace, contents) in keyspaces {
                let pair = |pair: esker::Result<_>| {
                    pair.map(|(key, value): (esker::Slice, esker::Slice)| (key.to_vec(), value.to_vec()))
                };
                let scanned: BTreeMap<_, _> = snapshot.iter(keyspace).map(|it| pair(it).expect("scan")).collect();
                assert_eq!(&scanned, contents, "a snapshot of {} has changed", keyspace.name());
                for (key, value) in contents {
                    assert_eq!(snapshot.get(keyspace, key).expect("get").as_deref(), Some(value.as_slice()));
                }
            }
        }
        if self.snapshots.len() > 3 {
            self.snapshots.remove(0);
        }
    }
}

#[test]
fn it_agrees_with_the_writer_whatever_that_does() {
    let seeds = std::env::var("ESKER_SEED").ok().map(|seed| seed.parse().expect("a number"));
    for seed in seeds.map_or(0..30, |seed: u64| seed..seed + 1) {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..80 {
            for _ in 0..run.random.below(25) {
                run.step();
            }
            run.compare();
        }
    }
}

#[test]
fn a_follower_with_threads_never_sees_half_a_batch_and_never_goes_back() {
    let options = || {
        let env = esker::env::mem::MemEnv::new();
        Options::default().env(Arc::new(env)).write_buffer_bytes(256 << 10).wal_segment_bytes(32 << 10)
    };
    let options = options();
    let db = Db::open(DIRECTORY, options.clone()).expect("open");
    let (left, right) = (keyspace(&db, "left"), keyspace(&db, "right"));
    let follower = follow(options);
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| {
            for round in 0..4000u64 {
                let mut batch = db.batch();
                for target in [&left, &right] {
                    batch.put(target, "round", round.to_be_bytes()).expect("put");
                    batch.put(target, format!("{:03}", round % 200), vec![1; 200]).expect("put");
                }
                batch.commit().expect("commit");
            }
        });
        let mut last = 0;
        while !writing.is_finished() || last < 3999 {
            catch_up_beside_writer(&follower);
            let snapshot = follower.db().snapshot();
            let round = |name: &str| {
                let keyspace = follower.db().existing_keyspace(name).expect("there");
                let value = snapshot.get(&keyspace, "round").expect("get");
                value.map_or(0, |value| u64::from_be_bytes((*value).try_into().expect("eight")))
            };
            let rounds = (round("left"), round("right"));
            assert_eq!(rounds.0, rounds.1, "half a batch");
            assert!(rounds.0 >= last, "{} after {last}", rounds.0);
            last = rounds.0;
        }
    });
    assert_eq!(contents(follower.db()), contents(&db));
}

#[test]
fn a_load_is_there_before_what_is_written_after_it() {
    const ROUNDS: u64 = 300;
    let options = Options::default().env(Arc::new(esker::env::mem::MemEnv::new()));
    let db = Db::open(DIRECTORY, options.clone()).expect("open");
    let (loaded, marks) = (keyspace(&db, "loaded"), keyspace(&db, "marks"));
    let follower = follow(options);
    let number = |snapshot: &Snapshot, name: &str| {
        let keyspace = follower.db().existing_keyspace(name).expect("there");
        let value = snapshot.get(&keyspace, "n").expect("get");
        value.map_or(0, |value| u64::from_be_bytes((*value).try_into().expect("eight")))
    };
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| {
            for round in 1..=ROUNDS {
                loaded.ingest([("n", round.to_be_bytes())]).expect("ingest");
                marks.put("n", round.to_be_bytes()).expect("put");
            }
        });
        let mut last = 0;
        while !writing.is_finished() || last < ROUNDS {
            catch_up_beside_writer(&follower);
            let snapshot = follower.db().snapshot();
            let (load, mark) = (number(&snapshot, "loaded"), number(&snapshot, "marks"));
            assert!(load == mark || load == mark + 1, "load {load}, and what came behind {mark}");
            last = mark;
        }
    });
}

#[test]
fn a_keyspace_that_the_writer_has_dropped_is_dropped_there() {
    let machine = Machine::new();
    let db = machine.open();
    keyspace(&db, "old").put("a", "1").expect("put");
    let follower = follow(machine.options());
    let old = follower.db().existing_keyspace("old").expect("there");
    let before = follower.db().snapshot();
    db.drop_keyspace("old").expect("drop");
    keyspace(&db, "old").put("b", "2").expect("put");
    assert_eq!(pairs(&old).len(), 1, "not before it catches up");
    follower.catch_up().expect("catch up");
    let is_dropped = |result: esker::Result<()>| matches!(result, Err(Error::KeyspaceDropped { .. }));
    assert!(is_dropped(old.get("a").map(drop)));
    assert!(is_dropped(old.iter().next().expect("an error").map(drop)));
    assert!(is_dropped(follower.db().snapshot().get(&old, "a").map(drop)));
    assert_eq!(before.get(&old, "a").expect("get").as_deref(), Some(&b"1"[..]));
    let new = follower.db().existing_keyspace("old").expect("there");
    assert_eq!(pairs(&new), [("b".to_owned(), "2".to_owned())]);
    assert_eq!(before.iter(&new).count(), 0, "it was created later");
}

/// Seen: `Corruption`, a table is missing. Trigger: the writer replaces its manifest just when it
/// is looked at, twice, removes a table that the new one names, and replaces its manifest just then
/// again.
#[test]
fn a_manifest_that_is_replaced_at_each_look_explains_a_table_that_is_gone() {
    let machine = Machine::new();
    let env = Interrupting::new(&machine.env, |_| false, Duration::from_secs(60));
    let writer = Arc::new(Mutex::new(Some(machine.open())));
    let with = |work: fn(&Db)| work(writer.lock().expect("the lock").as_ref().expect("open"));
    let write = |db: &Db| {
        let names = keyspace(db, "names");
        names.put("a", names.get("a").expect("get").map_or(1, |value| value[0] + 1).to_be_bytes()).expect("put");
        db.flush().expect("flush");
    };
    with(write);
    let follower = follow(machine.options().env(Arc::new(env.clone())));
    with(write);
    let open_again = || -> Work {
        let (writer, options) = (Arc::clone(&writer), machine.options());
        Box::new(move || {
            let mut writer = writer.lock().expect("the lock");
            drop(writer.take());
            *writer = Some(Db::open(DIRECTORY, options).expect("open"));
        })
    };
    let compact: Work = {
        let writer = Arc::clone(&writer);
        Box::new(move || {
            let writer = writer.lock().expect("the lock");
            keyspace(writer.as_ref().expect("open"), "names").compact().expect("compact");
        })
    };
    let is_manifest: fn(&Path) -> bool = |path| path.to_string_lossy().contains("MANIFEST-");
    let is_table: fn(&Path) -> bool = |path| path.extension().is_some_and(|it| it == "table");
    let works = [
        // At the first look; what is read next is the new one; and at the second look.
        (is_manifest, open_again()),
        (is_manifest, Box::new(|| {})),
        (is_manifest, open_again()),
        (is_table, compact),
        (is_manifest, open_again()),
    ];
    env.interrupt_looks_with(works);
    let progress = follower.catch_up().expect("catch up");
    assert!(env.has_interrupted() && progress.at_end, "{progress:?}");
    let followed = follower.db().existing_keyspace("names").expect("there");
    assert_eq!(followed.get("a").expect("get").as_deref(), Some(&[2][..]));
}

/// Seen: after a call that failed, a snapshot had a write that came behind a load, and not the
/// load. Trigger: a file that the new manifest names cannot be opened.
#[test]
fn a_call_that_fails_shows_nothing_of_what_it_has_read() {
    let machine = Machine::new();
    let db = machine.open();
    let (loaded, marks) = (keyspace(&db, "loaded"), keyspace(&db, "marks"));
    marks.put("n", "1").expect("put");
    let follower = follow(machine.options());
    let before = contents(follower.db());
    let old = machine.env.files();
    loaded.ingest([("n", "2")]).expect("ingest");
    let new = keyspace(&db, "new");
    marks.rename("written").expect("rename");
    for target in [&marks, &new] {
        target.put("n", "3").expect("put");
    }
    let is_new_table = |path: &PathBuf| !old.contains(path) && path.extension().is_some_and(|it| it == "table");
    let table = machine.env.files().into_iter().find(is_new_table).expect("a table");
    let bytes = machine.env.file_bytes(&table).expect("there");
    machine.env.remove(&table).expect("remove");
    for _ in 0..3 {
        assert!(matches!(follower.catch_up(), Err(Error::Corruption { .. })));
        let seen = follower.db().snapshot();
        assert_eq!(contents(follower.db()), before);
        let marks = follower.db().existing_keyspace("marks").expect("there");
        assert_eq!(seen.get(&marks, "n").expect("get").as_deref(), Some(&b"1"[..]));
    }
    machine.env.set_file_bytes(&table, bytes);
    let progress = follower.catch_up().expect("catch up");
    assert_eq!((progress.batches, progress.at_end), (2, true));
    assert_eq!(contents(follower.db()), contents(&db));
}

/// Seen: every call failed, and asked to try again. Trigger: a keyspace gets its first merge
/// operator, or a time to live, is written to by these, and is dropped, all between two calls.
/// Cost: the follower stayed where it was until the writer was some log segments ahead.
#[test]
fn a_keyspace_that_was_written_to_under_other_settings_and_dropped_does_not_stop_it() {
    let merge = |db: &Db| {
        let old = keyspace(db, "old");
        old.set_merge_operator(UInt64Add).expect("set");
        old.merge("a", 1u64.to_le_bytes()).expect("merge");
    };
    let expire = |db: &Db| {
        let old = keyspace(db, "old");
        old.set_ttl(Ttl::Enabled { default: None }).expect("set");
        old.put_with_ttl("a", "2", Duration::from_secs(100)).expect("put");
    };
    let both = |db: &Db| {
        expire(db);
        merge(db);
    };
    let changes: [&dyn Fn(&Db); 3] = [&merge, &expire, &both];
    for (number, change) in changes.into_iter().enumerate() {
        for is_made_again in [false, true] {
            let machine = Machine::new();
            let db = machine.open();
            keyspace(&db, "old").put("a", 1u64.to_le_bytes()).expect("put");
            let follower = follow(machine.options());
            change(&db);
            db.drop_keyspace("old").expect("drop");
            keyspace(&db, "other").put("b", "1").expect("put");
            if is_made_again {
                keyspace(&db, "old").put("c", "1").expect("put");
            }
            let progress = follower.catch_up().unwrap_or_else(|error| panic!("{number}: {error}"));
            assert!(progress.at_end, "{number}: {progress:?}");
            assert_eq!(contents(follower.db()), contents(&db), "{number}");
            keyspace(&db, "other").put("b", "2").expect("put");
            assert!(follower.catch_up().expect("catch up").at_end);
            assert_eq!(contents(follower.db()), contents(&db), "{number}");
        }
    }
}

#[test]
fn another_database_in_its_place_is_noticed() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    names.put("a", "1").expect("put");
    db.checkpoint("/copy").expect("checkpoint");
    for round in 0..50 {
        names.put(format!("{round}"), "x").expect("put");
    }
    let follower = follow(machine.options());
    drop((names, db));
    for path in machine.env.files() {
        let bytes = machine.env.file_bytes(&path).expect("there");
        if let Ok(name) = path.strip_prefix("/copy") {
            machine.env.set_file_bytes(&std::path::Path::new(DIRECTORY).join(name), bytes);
        }
    }
    let db = machine.open();
    keyspace(&db, "names").put("c", "1").expect("put");
    match follower.catch_up() {
        Err(Error::Corruption { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// A writer that rests removes log segments that hold nothing, without an edit of the manifest.
#[test]
fn a_log_segment_that_is_removed_before_it_can_be_opened_stops_no_reader() {
    let machine = Machine::new();
    let db = machine.open();
    keyspace(&db, "names").put("a", "1").expect("put");
    let env = Interrupting::new(&machine.env, |_| false, Duration::ZERO).listing("000099.wal");
    let options = machine.options().env(Arc::new(env));
    let follower = Db::open_follower(DIRECTORY, options.clone()).expect("open");
    assert_eq!(contents(follower.db()), contents(&db));
    let reader = Db::open_read_only(DIRECTORY, options.clone()).expect("open");
    assert_eq!(contents(&reader), contents(&db));
    Db::verify_directory(DIRECTORY, options, &mut |event| panic!("{event:?}")).expect("nothing is damaged");
}
