//! A follower beside a writer, in a thread of its own, that does what changes files and settings:
//! after each call, also one that gives up, it has one state of the database, and none that is
//! older.

use crate::common::{DIRECTORY, all, keyspace};
use esker::env::mem::MemEnv;
use esker::internals::Random;
use esker::merge::UInt64Add;
use esker::{Db, Error, Follower, KeyspaceOptions, Options, Snapshot, Ttl};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// What a writer of number `seed` does, in steps that each write the next number everywhere.
struct Writer {
    random: Random,
    options: Options,
    db: Option<Db>,
    number: u64,
}

impl Writer {
    fn step(&mut self) {
        if self.random.below(60) == 0 {
            drop(self.db.take());
        }
        let db = self.db.get_or_insert_with(|| Db::open(DIRECTORY, self.options.clone()).expect("open"));
        self.number += 1;
        let number = self.number.to_be_bytes();
        let (left, right, loaded) = (keyspace(db, "left"), keyspace(db, "right"), keyspace(db, "loaded"));
        let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace");
        let is_load = self.random.below(4) == 0;
        if is_load {
            loaded.ingest([("n", number)]).expect("ingest");
        }
        let mut batch = db.batch();
        for keyspace in [&left, &right] {
            batch.put(keyspace, "n", number).expect("put");
            batch.put(keyspace, [self.random.below(100) as u8], vec![1; 100]).expect("put");
        }
        batch.merge(&hits, "n", 1u64.to_le_bytes()).expect("merge");
        if !is_load {
            batch.put(&loaded, "n", number).expect("put");
        }
        batch.commit().expect("commit");
        let passing = ["old", "new"][self.random.below(2) as usize];
        match self.random.below(24) {
            0 => db.flush().expect("flush"),
            1 => left.compact().expect("compact"),
            2 => hits.compact().expect("compact"),
            3 => drop(db.drop_keyspace(passing)),
            4 => drop(keyspace(db, "old").rename("new")),
            5 => {
                let old = keyspace(db, passing);
                if old.set_merge_operator(UInt64Add).is_ok() {
                    old.merge("n", 1u64.to_le_bytes()).expect("merge");
                }
            }
            6 => {
                let old = keyspace(db, passing);
                old.set_ttl(Ttl::Enabled { default: None }).expect("set");
                old.put_with_ttl("t", number, Duration::from_secs(100_000)).expect("put");
            }
            7 => keyspace(db, passing).put("p", number).expect("put"),
            8 => left.delete_range([0]..[50]).expect("delete"),
            _ => {}
        }
    }
}

/// The number in each keyspace, if all of them have the same.
fn number(follower: &Follower, snapshot: &Snapshot) -> u64 {
    let value = |name: &str| {
        let keyspace = follower.db().existing_keyspace(name).expect("there");
        snapshot.get(&keyspace, "n").expect("get").map_or([0; 8], |value| (*value).try_into().expect("eight"))
    };
    let written = ["left", "right"].map(|name| u64::from_be_bytes(value(name)));
    let (loaded, hits) = (u64::from_be_bytes(value("loaded")), u64::from_le_bytes(value("hits")));
    assert_eq!(written, [hits; 2], "half a batch");
    assert!(loaded == hits || loaded == hits + 1, "load {loaded}, and what came behind {hits}");
    hits
}

#[test]
fn whatever_the_writer_does_each_call_shows_all_of_it_or_says_why_not() {
    for seed in 0..8 {
        let options = Options::default()
            .env(Arc::new(MemEnv::new()))
            .background_threads(seed % 3)
            .write_buffer_bytes(64 << 10)
            .wal_segment_bytes(64 << 10);
        let mut writer = Writer { random: Random::new(seed as u64), options: options.clone(), db: None, number: 0 };
        writer.step();
        let follower = Db::open_follower(DIRECTORY, options).expect("a database");
        let acknowledged = AtomicU64::new(0);
        std::thread::scope(|threads| {
            let writing = threads.spawn(|| {
                for _ in 0..300 {
                    writer.step();
                    acknowledged.store(writer.number, SeqCst);
                }
            });
            let mut last = 0;
            loop {
                let is_last = writing.is_finished();
                let least = acknowledged.load(SeqCst);
                let is_at_end = match follower.catch_up() {
                    Ok(progress) => progress.at_end,
                    Err(Error::Stalled { .. }) => false,
                    Err(error) => panic!("seed {seed}: {error}"),
                };
                let now = number(&follower, &follower.db().snapshot());
                assert!(now >= if is_at_end { least } else { last }, "seed {seed}: {now}, after {last} and {least}");
                last = now;
                if is_last && is_at_end {
                    break;
                }
            }
        });
        let db = writer.db.as_ref().expect("open");
        for name in db.keyspaces() {
            let of = |db: &Db| all(&db.existing_keyspace(&name).expect("there"));
            assert_eq!(of(follower.db()), of(db), "seed {seed}: {name}");
        }
    }
}
