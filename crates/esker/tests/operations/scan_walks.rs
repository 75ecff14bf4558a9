//! Walks of cursors over everything that makes a scan take another way: versions that snapshots
//! keep, several runs, blocks and memtables that end in the middle of a key, deletes of keys and
//! ranges, expiry, merges, and turns. Each is compared with a model step by step.

use crate::common::Machine;
use esker::internals::Random;
use esker::{Cursor, Db, Iter, Keyspace, KeyspaceOptions, Snapshot, Ttl, merge};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, UNIX_EPOCH};

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// What is drawn here.
trait Draws {
    fn key(&mut self, keys: u64) -> Vec<u8>;
}

impl Draws for Random {
    /// Many share their first 16 bytes, and some all but the last; a few begin others.
    fn key(&mut self, keys: u64) -> Vec<u8> {
        let number = self.below(keys);
        match number % 4 {
            0 => format!("{number:05}"),
            1 => format!("long keys that begin alike/{number:05}"),
            2 => format!("sixteen bytes___{}", "x".repeat(number as usize % 7)),
            _ => format!("{:05}/{}", number / 100 * 100, number % 100),
        }
        .into_bytes()
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Plain,
    Expiring,
    Merging,
}

struct World {
    machine: Machine,
    db: Db,
    keyspace: Keyspace,
    kind: Kind,
    keys: u64,
    random: Random,
    /// Values, and when they expire.
    model: BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    snapshots: Vec<(Snapshot, Pairs)>,
    written: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let machine = Machine::new();
        // So small a cache that scans soon keep nothing in it.
        let options = machine.options().block_cache_bytes([4 << 10, 1 << 20][seed as usize % 2]);
        let db = Db::open("/db", options.write_buffer_bytes(16 << 10)).unwrap();
        let kind = [Kind::Plain, Kind::Expiring, Kind::Merging][seed as usize % 3];
        let options = match kind {
            Kind::Plain => KeyspaceOptions::default(),
            Kind::Expiring => KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }),
            Kind::Merging => KeyspaceOptions::default().merge_operator(merge::StringAppend::new(",")),
        };
        let keyspace = db.keyspace("k", options).unwrap();
        let keys = [20, 300, 2000][(seed / 3) as usize % 3];
        let (model, snapshots) = (BTreeMap::new(), Vec::new());
        World { machine, db, keyspace, kind, keys, random: Random::new(seed), model, snapshots, written: 0 }
    }

    fn now_ms(&self) -> u64 {
        esker::Clock::now_ms(&*self.machine.clock)
    }

    fn visible(&self) -> Pairs {
        let now_ms = self.now_ms();
        let alive = self.model.iter().filter(|(_, (_, expiry_ms))| now_ms < *expiry_ms);
        alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
    }

    fn write(&mut self) {
        self.written += 1;
        let key = self.random.key(self.keys);
        let length = [3, 8, 40][self.random.below(3) as usize];
        let value = format!("{:0length$}", self.written).into_bytes();
        match self.random.below(20) {
            0 | 1 => {
                self.keyspace.delete(&key).unwrap();
                self.model.remove(&key);
            }
            2 if self.random.below(20) == 0 => {
                let end = self.random.key(self.keys).max(key.clone());
                self.keyspace.delete_range(key.clone()..end.clone()).unwrap();
                self.model.retain(|other, _| *other < key || *other >= end);
            }
            3..8 if self.kind == Kind::Expiring => {
                let expiry_ms = self.now_ms() + 1 + self.random.below(5000);
                let time = UNIX_EPOCH + Duration::from_millis(expiry_ms);
                self.keyspace.put_until(&key, &value, time).unwrap();
                self.model.insert(key, (value, expiry_ms));
            }
            3..8 if self.kind == Kind::Merging => {
                self.keyspace.merge(&key, &value).unwrap();
                let (whole, _) = self.model.entry(key).or_insert((Vec::new(), u64::MAX));
                if !whole.is_empty() {
                    whole.push(b',');
                }
                whole.extend(value);
            }
            _ => {
                self.keyspace.put(&key, &value).unwrap();
                self.model.insert(key, (value, u64::MAX));
            }
        }
    }

    fn disturb(&mut self) {
        match self.random.below(12) {
            0 => self.db.flush().unwrap(),
            1 if self.random.below(4) == 0 => self.db.compact().unwrap(),
            2 => self.machine.pass(Duration::from_millis(self.random.below(2000))),
            3 => {
                let visible = self.visible();
                self.snapshots.push((self.db.snapshot(), visible));
            }
            4 if !self.snapshots.is_empty() => {
                let chosen = self.random.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(chosen);
            }
            _ => {}
        }
    }
}

fn pair(cursor: &Cursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn owned(pair: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
    pair.map(|(key, value)| (key.clone(), value.clone()))
}

/// Both ways, and in between with seeks and turns.
fn walk(cursor: &mut Cursor, pairs: &Pairs, random: &mut Random, keys: u64, seed: u64) {
    cursor.seek_to_first().unwrap();
    for expected in pairs {
        assert_eq!(pair(cursor), owned(Some(expected)), "forward, seed {seed}");
        cursor.next().unwrap();
    }
    assert!(!cursor.valid(), "behind the last, seed {seed}");
    cursor.seek_to_last().unwrap();
    for expected in pairs.iter().rev() {
        assert_eq!(pair(cursor), owned(Some(expected)), "backward, seed {seed}");
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid(), "before the first, seed {seed}");
    for _ in 0..10 {
        let key = random.key(keys);
        let mut expected = if random.below(2) == 0 {
            cursor.seek(&key).unwrap();
            owned(pairs.range(key..).next())
        } else {
            cursor.seek_for_prev(&key).unwrap();
            owned(pairs.range(..=key).next_back())
        };
        assert_eq!(pair(cursor), expected, "a seek, seed {seed}");
        let mut forward = random.below(2) == 0;
        while let Some((key, _)) = expected.filter(|_| random.below(60) > 0) {
            forward ^= random.below(12) == 0;
            expected = if forward {
                cursor.next().unwrap();
                owned(pairs.range((Bound::Excluded(key), Bound::Unbounded)).next())
            } else {
                cursor.prev().unwrap();
                owned(pairs.range(..key).next_back())
            };
            assert_eq!(pair(cursor), expected, "a step, forward: {forward}, seed {seed}");
        }
    }
}

fn ranges(
    iter: impl Fn(Bound<Vec<u8>>, Bound<Vec<u8>>) -> Iter,
    pairs: &Pairs,
    random: &mut Random,
    keys: u64,
    seed: u64,
) {
    for _ in 0..6 {
        let (a, b) = (random.key(keys), random.key(keys));
        let (low, high) = (a.clone().min(b.clone()), a.max(b));
        let low =
            [Bound::Unbounded, Bound::Included(low.clone()), Bound::Excluded(low)][random.below(3) as usize].clone();
        let high =
            [Bound::Unbounded, Bound::Excluded(high.clone()), Bound::Included(high)][random.below(3) as usize].clone();
        if matches!((&low, &high), (Bound::Excluded(a), Bound::Excluded(b)) if a == b) {
            continue;
        }
        let expected: Vec<_> =
            pairs.range((low.clone(), high.clone())).map(|pair| owned(Some(pair)).unwrap()).collect();
        let unpack =
            |pair: esker::Result<(esker::Slice, esker::Slice)>| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap();
        let forward: Vec<_> = iter(low.clone(), high.clone()).map(unpack).collect();
        assert_eq!(forward, expected, "from {low:?} to {high:?}, seed {seed}");
        let mut backward: Vec<_> = iter(low.clone(), high.clone()).rev().map(unpack).collect();
        backward.reverse();
        assert_eq!(backward, expected, "back from {high:?} to {low:?}, seed {seed}");
    }
}

#[test]
fn random_walks_see_what_the_model_holds() {
    for seed in 0..36 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..12 {
            for _ in 0..[1, 30, 400][world.random.below(3) as usize] {
                world.write();
            }
            world.disturb();
            let pairs = world.visible();
            let mut cursor = world.keyspace.cursor().unwrap();
            // What is written after the cursor was made it does not see, and neither its memtable's
            // folding nor a flush takes what it does see.
            for _ in 0..world.random.below(100) {
                world.write();
            }
            if world.random.below(4) == 0 {
                world.db.flush().unwrap();
            }
            walk(&mut cursor, &pairs, &mut world.random, world.keys, seed);
            let pairs = world.visible();
            ranges(|low, high| world.keyspace.range((low, high)), &pairs, &mut world.random, world.keys, seed);
            for (snapshot, pairs) in &world.snapshots {
                let mut cursor = snapshot.cursor(&world.keyspace).unwrap();
                walk(&mut cursor, pairs, &mut world.random, world.keys, seed);
                ranges(
                    |low, high| snapshot.range(&world.keyspace, (low, high)),
                    pairs,
                    &mut world.random,
                    world.keys,
                    seed,
                );
            }
        }
    }
}

/// A cursor that is used for seeks and writes in turn: each seek sees the write before it, and the
/// memtable's order stays right.
#[test]
fn a_seek_after_every_write_sees_it() {
    let mut world = World::new(6);
    for _ in 0..3000 {
        world.write();
        let key = world.random.key(world.keys);
        let mut cursor = world.keyspace.cursor().unwrap();
        cursor.seek(&key).unwrap();
        let expected = world.model.range(key..).next().map(|(key, (value, _))| (key.clone(), value.clone()));
        assert_eq!(pair(&cursor), expected);
    }
}

/// A scan that has passed much stops to fill the cache, and its blocks in memory of its own are
/// right whichever way it goes.
#[test]
fn a_long_scan_leaves_room_in_the_cache_for_others() {
    let machine = Machine::new();
    let db = Db::open("/db", machine.options().block_cache_bytes(64 << 10)).unwrap();
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    let value = [b'v'; 50];
    for number in 0..4000 {
        keyspace.put(format!("{number:08}"), value).unwrap();
    }
    db.compact().unwrap();
    let before = db.stats().cache_misses;
    for _ in 0..2 {
        keyspace.get("00000017").unwrap();
    }
    assert_eq!(db.stats().cache_misses, before + 1, "the second get finds the block in the cache");
    assert_eq!(keyspace.iter().count(), 4000);
    assert_eq!(keyspace.iter().rev().count(), 4000);
    let before = db.stats().cache_misses;
    keyspace.get("00000017").unwrap();
    assert_eq!(db.stats().cache_misses, before, "the scans did not put it out");
}
