//! Random merges on few keys, so that chains get long, against a model that applies operands one by
//! one.

use crate::merge_support::{Moody, Scratch, inline};
use esker::internals::Random;
use esker::merge::{Int64Add, StringAppend};
use esker::{Db, Keyspace, KeyspaceOptions, MergeOperator, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Operand = fn(&mut Random) -> Vec<u8>;

struct Run {
    random: Random,
    operator: Arc<dyn MergeOperator>,
    operand: Operand,
    model: Model,
    snapshots: Vec<(Model, Snapshot)>,
    /// What a failure shows.
    context: String,
}

impl Run {
    fn open(&self, scratch: &Scratch) -> (Db, Keyspace) {
        let db = Db::open(scratch.path(), inline().write_buffer_bytes(1 << 18)).unwrap();
        let options = KeyspaceOptions::default().shared_merge_operator(Arc::clone(&self.operator));
        let k = db.keyspace("k", options).unwrap();
        (db, k)
    }

    fn key(&mut self) -> Vec<u8> {
        vec![b'a' + self.random.below(4) as u8]
    }

    fn merge(&mut self, db: &Db, k: &Keyspace) {
        let mut batch = db.batch();
        for _ in 0..1 + self.random.below(3) {
            let (key, operand) = (self.key(), (self.operand)(&mut self.random));
            batch.merge(k, &key, &operand).unwrap();
            let existing = self.model.remove(&key);
            let merged = self.operator.full_merge(&key, existing.as_deref(), &[&operand]).unwrap();
            merged.map(|value| self.model.insert(key, value));
        }
        batch.commit().unwrap();
    }

    fn step(&mut self, db: &Db, k: &Keyspace) {
        match self.random.below(1500) {
            0..4 => {
                let (key, value) = (self.key(), (self.operand)(&mut self.random));
                k.put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            4..6 => {
                let key = self.key();
                k.delete(&key).unwrap();
                self.model.remove(&key);
            }
            6..10 => db.flush().unwrap(),
            10..12 => db.compact().unwrap(),
            12..80 => self.snapshots.push((self.model.clone(), db.snapshot())),
            80..100 if !self.snapshots.is_empty() => {
                let at = self.random.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(at);
            }
            100..102 => self.snapshots.clear(),
            102..110 => self.check(k),
            _ => self.merge(db, k),
        }
    }

    fn check(&self, k: &Keyspace) {
        let pairs = |items: esker::Iter| -> Model {
            items.map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
        };
        assert!(pairs(k.iter()) == self.model, "{}", self.context);
        for key in [b"a", b"b", b"c", b"d"] {
            let value = k.get(key).unwrap();
            assert!(value.as_deref() == self.model.get(&key[..]).map(Vec::as_slice), "{}", self.context);
        }
        for (model, snapshot) in self.snapshots.iter().rev().take(3).chain(self.snapshots.first()) {
            assert!(pairs(snapshot.iter(k)) == *model, "{}", self.context);
            let backward: Model = snapshot
                .iter(k)
                .rev()
                .map(|pair| pair.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            assert!(backward == *model, "{}", self.context);
            for (key, value) in model {
                assert!(snapshot.get(k, key).unwrap().as_deref() == Some(value), "{}", self.context);
            }
        }
    }
}

fn run(name: &str, operator: impl MergeOperator, operand: Operand) {
    let operator: Arc<dyn MergeOperator> = Arc::new(operator);
    for seed in 1..=6u64 {
        let context = format!("{name}, seed {seed}");
        let scratch = Scratch::new(&format!("random-{name}-{seed}"));
        let random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let operator = Arc::clone(&operator);
        let mut run = Run { random, operator, operand, model: Model::new(), snapshots: Vec::new(), context };
        for _ in 0..4 {
            let (db, k) = run.open(&scratch);
            run.check(&k);
            for _ in 0..3000 {
                run.step(&db, &k);
            }
            run.check(&k);
            run.snapshots.clear();
            // As after a death of the process, every other time.
            if run.random.below(2) == 0 {
                db.close().unwrap();
            }
        }
    }
}

fn string(random: &mut Random) -> Vec<u8> {
    let length = if random.below(40) == 0 { 600 } else { random.below(9) };
    (0..length).map(|_| b'a' + random.below(26) as u8).collect()
}

#[test]
fn appends() {
    run("appends", StringAppend::new(","), string);
}

#[test]
fn signed_sums_at_the_limits() {
    run("signed", Int64Add, |random| {
        let number = [1, -1, 1000, -1000, i64::MAX, i64::MIN, i64::MAX / 2, 0][random.below(8) as usize];
        number.to_le_bytes().to_vec()
    });
}

#[test]
fn an_operator_that_deletes() {
    for partial in [false, true] {
        run(&format!("deletes-{partial}"), Moody { partial }, |random| match random.below(300) {
            0 => b"delete".to_vec(),
            _ => string(random),
        });
    }
}
