//! Random operations against a map.

use super::{counters, number, tiny};
use esker::env::mem::{CrashMode, MemEnv};
use esker::internals::Random;
use esker::{Db, Keyspace, Snapshot};
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, u64>;

/// What is drawn here.
trait Draws {
    fn key(&mut self) -> Vec<u8>;
    fn bound(&mut self) -> Bound<Vec<u8>>;
}

impl Draws for Random {
    fn key(&mut self) -> Vec<u8> {
        let length = self.below(4);
        (0..length).map(|_| b"abcd"[self.below(4) as usize]).collect()
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.below(5) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(self.key()),
            _ => Bound::Included(self.key()),
        }
    }
}

fn above(bound: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from.as_slice(),
        Bound::Excluded(from) => key > from.as_slice(),
    }
}

fn below(bound: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to.as_slice(),
        Bound::Excluded(to) => key < to.as_slice(),
    }
}

fn pairs(iter: impl Iterator<Item = esker::Result<(esker::Slice, esker::Slice)>>) -> Vec<(Vec<u8>, u64)> {
    iter.map(|pair| {
        let (key, value) = pair.unwrap();
        (key.to_vec(), u64::from_le_bytes(value.to_vec().try_into().unwrap()))
    })
    .collect()
}

fn expected(model: &Model) -> Vec<(Vec<u8>, u64)> {
    model.iter().map(|(key, value)| (key.clone(), *value)).collect()
}

fn check(random: &mut Random, k: &Keyspace, model: &Model, snapshots: &[(Snapshot, Model)], seed: u64) {
    let all = expected(model);
    let reversed: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(pairs(k.iter()), all, "seed {seed}");
    assert_eq!(pairs(k.iter().rev()), reversed, "seed {seed}");
    for (snapshot, model) in snapshots {
        let all = expected(model);
        let reversed: Vec<_> = all.iter().rev().cloned().collect();
        assert_eq!(pairs(snapshot.iter(k)), all, "seed {seed}, snapshot at {}", snapshot.sequence());
        assert_eq!(pairs(snapshot.iter(k).rev()), reversed, "seed {seed}, snapshot");
        let key = random.key();
        let value = snapshot.get(k, &key).unwrap().map(|value| value.to_vec());
        assert_eq!(value, model.get(&key).map(|value| number(*value).to_vec()), "seed {seed}, snapshot, {key:?}");
    }
    for _ in 0..5 {
        let key = random.key();
        let value = k.get(&key).unwrap().map(|value| value.to_vec());
        assert_eq!(value, model.get(&key).map(|value| number(*value).to_vec()), "seed {seed}, {key:?}");
    }
    let range = (random.bound(), random.bound());
    let within: Vec<_> = all.iter().filter(|(key, _)| above(&range.0, key) && below(&range.1, key)).cloned().collect();
    assert_eq!(pairs(k.range(range.clone())), within, "seed {seed}, {range:?}");
    let reversed: Vec<_> = within.iter().rev().cloned().collect();
    assert_eq!(pairs(k.range(range).rev()), reversed, "seed {seed}");
    walk(random, k, &all, seed);
}

/// A cursor that turns around at random.
fn walk(random: &mut Random, k: &Keyspace, all: &[(Vec<u8>, u64)], seed: u64) {
    let mut cursor = k.cursor().unwrap();
    let key = random.key();
    let mut at = all.partition_point(|(other, _)| *other < key);
    cursor.seek(&key).unwrap();
    for _ in 0..12 {
        assert_eq!(cursor.valid(), at < all.len(), "seed {seed}");
        let Some(here) = all.get(at) else { break };
        assert_eq!(cursor.key(), here.0, "seed {seed}");
        if random.below(2) == 0 {
            cursor.next().unwrap();
            at += 1;
        } else {
            cursor.prev().unwrap();
            at = at.checked_sub(1).unwrap_or(usize::MAX);
        }
    }
}

fn apply(random: &mut Random, model: &mut Model, batch: &mut esker::Batch, k: &Keyspace) {
    let value = random.below(1000);
    match random.below(10) {
        0..=4 => {
            let key = random.key();
            batch.put(k, &key, number(value)).unwrap();
            model.insert(key, value);
        }
        5..=6 => {
            let key = random.key();
            batch.merge(k, &key, number(value)).unwrap();
            *model.entry(key).or_default() += value;
        }
        7 => {
            let key = random.key();
            batch.delete(k, &key).unwrap();
            model.remove(&key);
        }
        _ => {
            let range = (random.bound(), random.bound());
            model.retain(|key, _| !(above(&range.0, key) && below(&range.1, key)));
            batch.delete_range(k, range).unwrap();
        }
    }
}

fn run(seed: u64, steps: u64, whole_tables: bool) {
    let mut random = Random::new(seed);
    let mut env = MemEnv::default();
    let options = |env: &MemEnv| if whole_tables { tiny(env).target_file_bytes(1 << 20) } else { tiny(env) };
    let mut db = Db::open("/db", options(&env)).unwrap();
    let mut k = counters(&db);
    let mut model = Model::new();
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for _ in 0..steps {
        match random.below(40) {
            0..=2 => db.flush().unwrap(),
            3 => db.compact().unwrap(),
            4 => db.wait_idle().unwrap(),
            5..=7 => snapshots.push((db.snapshot(), model.clone())),
            8..=10 if !snapshots.is_empty() => {
                let at = random.below(snapshots.len() as u64) as usize;
                snapshots.swap_remove(at);
            }
            11 => {
                snapshots.clear();
                drop((k, db));
                if random.below(2) == 0 {
                    env = env.crash(&CrashMode::KeepAll, seed);
                }
                db = Db::open("/db", options(&env)).unwrap();
                k = counters(&db);
            }
            12 => drop(db.verify().unwrap()),
            _ => {
                let mut batch = db.batch();
                for _ in 0..=random.below(3) {
                    apply(&mut random, &mut model, &mut batch, &k);
                }
                batch.commit().unwrap();
            }
        }
        check(&mut random, &k, &model, &snapshots, seed);
    }
    snapshots.clear();
    db.compact().unwrap();
    check(&mut random, &k, &model, &snapshots, seed);
    let entries: u64 = db.stats().keyspaces.iter().map(|keyspace| keyspace.entries).sum();
    assert_eq!(entries, model.len() as u64, "seed {seed}: nothing deleted is left");
}

#[test]
fn random_operations_agree_with_a_map() {
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("ESKER_SEED={seed}");
    for round in 0..if given.is_some() { 1 } else { 24 } {
        let seed = seed.wrapping_add(round);
        run(seed, 150, false);
        run(seed, 150, true);
    }
}
