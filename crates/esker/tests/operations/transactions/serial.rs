//! Random transactions, several open at a time: those that commit have the effect they would have
//! one after the other, in the order of their commits, and one is refused if and only if somebody
//! has written where it read or writes.

use super::*;
use esker::internals::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is drawn here.
trait Draws {
    fn key(&mut self) -> String;
    fn bound(&mut self) -> Bound<String>;
}

impl Draws for Random {
    /// One of few keys, so that transactions meet; some are prefixes of others.
    fn key(&mut self) -> String {
        let keys = ["", "a", "a\0", "aa", "ab", "b", "c", "ca", "cab", "d", "e", "f"];
        keys[self.index(keys.len())].to_owned()
    }

    fn bound(&mut self) -> Bound<String> {
        match self.index(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}

/// A keyspace's number and a key in it.
type Place = (usize, String);
type Model = BTreeMap<Place, String>;

/// What a transaction did, and what it saw.
#[derive(Debug, Clone)]
enum Step {
    Get(Place, Option<String>),
    /// A scan between bounds; for each item requested, whether from the front, and what came.
    Scan(usize, (Bound<String>, Bound<String>), Vec<(bool, Option<(String, String)>)>),
    Put(Place, String),
    Delete(Place),
    Merge(Place, String),
}

fn between(bounds: &(Bound<String>, Bound<String>), key: &String) -> bool {
    use std::ops::RangeBounds;
    bounds.contains(key)
}

impl Step {
    /// Does what it did to the model, and checks what it saw.
    fn replay(&self, model: &mut Model) {
        match self {
            Step::Get(place, seen) => assert_eq!(model.get(place), seen.as_ref(), "{self:?}"),
            Step::Scan(keyspace, bounds, items) => {
                let inside = model.iter().filter(|((k, key), _)| k == keyspace && between(bounds, key));
                let mut left = inside.map(|((_, key), value)| (key.clone(), value.clone()));
                for (forward, seen) in items {
                    let next = if *forward { left.next() } else { left.next_back() };
                    assert_eq!(&next, seen, "{self:?}");
                }
            }
            Step::Put(place, value) => drop(model.insert(place.clone(), value.clone())),
            Step::Delete(place) => drop(model.remove(place)),
            Step::Merge(place, operand) => {
                let value = model.entry(place.clone()).or_default();
                // As `stringappend` does: nothing before the first.
                *value = if value.is_empty() { operand.clone() } else { format!("{value},{operand}") };
            }
        }
    }

    fn written(&self) -> Option<&Place> {
        match self {
            Step::Put(place, _) | Step::Delete(place) | Step::Merge(place, _) => Some(place),
            _ => None,
        }
    }

    /// Whether a write of somebody else to `place` would have mattered to this step. `own`: what
    /// the transaction had written before it, where gets read nothing else.
    fn concerns(&self, place: &Place, own: &BTreeSet<Place>) -> bool {
        match self {
            Step::Get(read, _) => read == place && !own.contains(read),
            Step::Scan(keyspace, bounds, items) => {
                if *keyspace != place.0 || !between(bounds, &place.1) {
                    return false;
                }
                let ended = items.iter().any(|(_, item)| item.is_none());
                let reached = |from_front: bool| {
                    let from_there = items.iter().filter(move |(forward, _)| *forward == from_front);
                    from_there.filter_map(|(_, item)| item.as_ref().map(|(key, _)| key)).next_back()
                };
                ended
                    || reached(true).is_some_and(|key| place.1 <= *key)
                    || reached(false).is_some_and(|key| place.1 >= *key)
            }
            _ => self.written() == Some(place),
        }
    }
}

/// An open transaction with its history.
struct Open {
    transaction: Transaction,
    steps: Vec<Step>,
    /// The model, and the number of writes of others, when it began.
    began: Model,
    writes_before: usize,
}

impl Open {
    fn conflicts(&self, writes: &[Place]) -> bool {
        let mut own = BTreeSet::new();
        self.steps.iter().any(|step| {
            let concerned = writes[self.writes_before..].iter().any(|place| step.concerns(place, &own));
            own.extend(step.written().cloned());
            concerned
        })
    }
}

struct World {
    random: Random,
    db: Db,
    keyspaces: [Keyspace; 2],
    model: Model,
    /// Every key committed, in order.
    writes: Vec<Place>,
    committed: usize,
    refused: usize,
    last_value: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let buffer = [1, 600, 4096, 1 << 20][random.index(4)];
        let db = Db::open("/db", simulated().write_buffer_bytes(buffer)).unwrap();
        let keyspaces = ["k", "l"].map(|name| joining(&db, name));
        let model = Model::new();
        World { random, db, keyspaces, model, writes: Vec::new(), committed: 0, refused: 0, last_value: 0 }
    }

    fn begin(&self) -> Open {
        let (began, writes_before) = (self.model.clone(), self.writes.len());
        Open { transaction: self.db.transaction(), steps: Vec::new(), began, writes_before }
    }

    fn place(&mut self) -> Place {
        (self.random.index(2), self.random.key())
    }

    fn value(&mut self) -> String {
        self.last_value += 1;
        format!("{}", self.last_value)
    }

    /// One more step of a transaction.
    fn step(&mut self, open: &mut Open) {
        let t = &mut open.transaction;
        let place = self.place();
        let k = &self.keyspaces[place.0];
        let step = match self.random.index(7) {
            0 | 1 => {
                let seen = get(t, k, &place.1);
                Step::Get(place, seen)
            }
            2 | 3 => {
                let bounds = (self.random.bound(), self.random.bound());
                let mut scan = t.range(k, bounds.clone());
                let random = &mut self.random;
                let way = random.index(3);
                let items = (0..random.index(12)).map(|_| {
                    let forward = if way == 2 { random.index(2) == 0 } else { way == 0 };
                    let item = if forward { scan.next() } else { scan.next_back() };
                    let item = item.map(|pair| pair.unwrap()).map(|(key, value)| (text(Some(key)), text(Some(value))));
                    (forward, item.map(|(key, value)| (key.unwrap(), value.unwrap())))
                });
                Step::Scan(place.0, bounds, items.collect())
            }
            4 => {
                let value = self.value();
                t.put(&self.keyspaces[place.0], &place.1, &value).unwrap();
                Step::Put(place, value)
            }
            5 => {
                t.delete(k, &place.1).unwrap();
                Step::Delete(place)
            }
            _ => {
                let value = self.value();
                t.merge(&self.keyspaces[place.0], &place.1, &value).unwrap();
                Step::Merge(place, value)
            }
        };
        open.steps.push(step);
    }

    fn finish(&mut self, open: Open) {
        if self.random.index(8) == 0 {
            return open.transaction.rollback();
        }
        let expected = open.conflicts(&self.writes) && open.steps.iter().any(|step| step.written().is_some());
        let Open { transaction, steps, mut began, .. } = open;
        let only_reads = transaction.is_empty();
        let refused = conflict(transaction.commit());
        assert_eq!(refused.is_some(), expected, "{refused:?} {steps:?}");
        if only_reads {
            steps.iter().for_each(|step| step.replay(&mut began));
        } else if expected {
            self.refused += 1;
        } else {
            self.committed += 1;
            steps.iter().for_each(|step| step.replay(&mut self.model));
            self.writes.extend(steps.iter().filter_map(Step::written).cloned());
        }
    }

    /// A write outside of any transaction.
    fn write(&mut self) {
        let place = self.place();
        let value = self.value();
        let k = &self.keyspaces[place.0];
        let step = match self.random.index(3) {
            0 => k.put(&place.1, &value).map(|()| Step::Put(place.clone(), value)),
            1 => k.delete(&place.1).map(|()| Step::Delete(place.clone())),
            _ => k.merge(&place.1, &value).map(|()| Step::Merge(place.clone(), value)),
        };
        step.unwrap().replay(&mut self.model);
        self.writes.push(place);
    }

    fn check(&self) {
        for (number, keyspace) in self.keyspaces.iter().enumerate() {
            let stored: Vec<(String, String)> = keyspace
                .iter()
                .map(|pair| pair.unwrap())
                .map(|(key, value)| (text(Some(key)).unwrap(), text(Some(value)).unwrap()))
                .collect();
            let inside = self.model.iter().filter(|((k, _), _)| *k == number);
            let expected: Vec<_> = inside.map(|((_, key), value)| (key.clone(), value.clone())).collect();
            assert_eq!(stored, expected);
        }
    }
}

fn run(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    let mut open: Vec<Open> = Vec::new();
    for _ in 0..400 {
        match world.random.index(40) {
            0..=3 if open.len() < 4 => open.push(world.begin()),
            4..=6 if !open.is_empty() => {
                let at = world.random.index(open.len());
                world.finish(open.swap_remove(at));
            }
            7 => world.write(),
            8 => world.db.flush().unwrap(),
            9 if world.random.index(4) == 0 => world.db.compact().unwrap(),
            _ if !open.is_empty() => {
                let at = world.random.index(open.len());
                world.step(&mut open[at]);
            }
            _ => {}
        }
    }
    while let Some(last) = open.pop() {
        world.finish(last);
    }
    world.check();
    (world.committed, world.refused)
}

#[test]
fn committed_transactions_have_the_effect_of_their_order() {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let first = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seconds * 1000);
    let (mut committed, mut refused) = (0, 0);
    for seed in first..first + 300 {
        println!("seed {seed} (ESKER_SEED={seed} runs it first)");
        let counts = run(seed);
        committed += counts.0;
        refused += counts.1;
    }
    // Both outcomes must be common, else the test shows nothing.
    assert!(committed > 1000 && refused > 1000, "{committed} committed, {refused} refused");
}
