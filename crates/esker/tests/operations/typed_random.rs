//! Typed keyspaces in both orders against a map: every call of a typed keyspace, a batch, a
//! transaction and a snapshot, on keys that share prefixes, have zero bytes and optional numbers,
//! while time passes and the values move from the memtable to the last run.

use crate::common::{DIRECTORY, Machine, START_MS};
use esker::internals::Random;
use esker::merge::UInt64Add;
use esker::{Db, Expiry, KeyspaceOptions, Result, ReverseBytewise, Snapshot, Ttl, TypedKeyspace, WriteOptions};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, UNIX_EPOCH};

type Key = (String, Option<i64>);
type Typed = TypedKeyspace<Key, u64>;
/// The value, and when it expires.
type Held = (u64, Option<u64>);

/// What a run chooses, from its seed.
struct Choices(Random);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    fn user(&mut self) -> &'static str {
        ["", "a", "a\0", "a\0\u{1}", "a\u{ff}", "b"][self.below(6)]
    }

    fn key(&mut self) -> Key {
        let number = [None, Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX)][self.below(5)];
        (self.user().to_owned(), number)
    }

    fn bound(&mut self) -> Bound<Key> {
        match self.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    /// Options of a write, and the time to live in them.
    fn options(&mut self) -> (WriteOptions, Option<u64>) {
        match self.below(3) {
            0 => (WriteOptions::new(), None),
            1 => (WriteOptions::new().sync(true), None),
            _ => {
                let ms = 1 + self.below(5000) as u64;
                (WriteOptions::new().ttl(Duration::from_millis(ms)), Some(ms))
            }
        }
    }
}

/// What the keyspace should hold.
#[derive(Clone)]
struct Model {
    held: BTreeMap<Key, Held>,
    now: u64,
    is_reverse: bool,
}

impl Model {
    fn get(&self, key: &Key) -> Option<Held> {
        self.held.get(key).copied().filter(|(_, end)| end.is_none_or(|end| end > self.now))
    }

    fn value(&self, key: &Key) -> Option<u64> {
        self.get(key).map(|(value, _)| value)
    }

    fn put(&mut self, key: &Key, value: u64, life: Option<u64>) {
        self.held.insert(key.clone(), (value, life.map(|life| self.now + life)));
    }

    fn merge(&mut self, key: &Key, operand: u64, life: Option<u64>) {
        match self.get(key) {
            None => self.put(key, operand, life),
            Some((value, end)) => {
                let end = life.map(|life| self.now + life).or(end);
                self.held.insert(key.clone(), (value.wrapping_add(operand), end));
            }
        }
    }

    /// Whether there was a value to expire.
    fn expire(&mut self, key: &Key, end: Option<u64>) -> bool {
        let Some((value, _)) = self.get(key) else { return false };
        self.held.insert(key.clone(), (value, end));
        true
    }

    fn is_inside(&self, key: &Key, (start, end): &(Bound<Key>, Bound<Key>)) -> bool {
        let (low, high) = if self.is_reverse { (end, start) } else { (start, end) };
        let above = match low {
            Bound::Unbounded => true,
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
        };
        above
            && match high {
                Bound::Unbounded => true,
                Bound::Included(high) => key <= high,
                Bound::Excluded(high) => key < high,
            }
    }

    /// Pairs in the order of the keyspace.
    fn pairs(&self, wanted: impl Fn(&Key) -> bool) -> Vec<(Key, u64)> {
        let live = self.held.keys().filter(|key| wanted(key));
        let mut pairs: Vec<_> = live.filter_map(|key| Some((key.clone(), self.value(key)?))).collect();
        if self.is_reverse {
            pairs.reverse();
        }
        pairs
    }
}

fn open(machine: &Machine, is_reverse: bool) -> (Db, Typed) {
    let db = Db::open(DIRECTORY, machine.options()).unwrap();
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(UInt64Add);
    let options = if is_reverse { options.comparator(ReverseBytewise) } else { options };
    let typed = Typed::open(&db, "typed", options).unwrap();
    (db, typed)
}

fn collected(pairs: impl Iterator<Item = Result<(Key, u64)>>) -> Vec<(Key, u64)> {
    pairs.map(|pair| pair.unwrap()).collect()
}

fn reversed<T>(mut all: Vec<T>) -> Vec<T> {
    all.reverse();
    all
}

fn check(choices: &mut Choices, typed: &Typed, model: &Model) {
    let all = model.pairs(|_| true);
    assert_eq!(collected(typed.iter()), all);
    assert_eq!(collected(typed.iter().rev()), reversed(all.clone()));
    assert_eq!((typed.first().unwrap(), typed.last().unwrap()), (all.first().cloned(), all.last().cloned()));
    let range = (choices.bound(), choices.bound());
    let inside = model.pairs(|key| model.is_inside(key, &range));
    assert_eq!(collected(typed.range(range.clone())), inside, "{range:?}");
    assert_eq!(collected(typed.range(range.clone()).rev()), reversed(inside.clone()), "{range:?}");
    assert_eq!(typed.count(range.clone()).unwrap(), inside.len() as u64, "{range:?}");
    let keys: Vec<Key> = typed.range(range).keys().map(|key| key.unwrap()).collect();
    assert_eq!(keys, inside.into_iter().map(|(key, _)| key).collect::<Vec<_>>());
    let user = choices.user();
    assert_eq!(collected(typed.prefix((user,))), model.pairs(|key| key.0 == user), "{user:?}");
    let wanted: Vec<Key> = (0..4).map(|_| choices.key()).collect();
    for (key, found) in wanted.iter().zip(typed.multi_get(&wanted)) {
        assert_eq!(found.unwrap(), model.value(key), "{key:?}");
        assert_eq!(typed.get(key).unwrap(), model.value(key), "{key:?}");
        assert_eq!(typed.contains_key(key).unwrap(), model.get(key).is_some(), "{key:?}");
        let expiry = model.get(key).map(|(_, end)| match end {
            None => Expiry::Never,
            Some(end) => Expiry::At(UNIX_EPOCH + Duration::from_millis(end)),
        });
        assert_eq!(typed.expires_at(key).unwrap(), expiry, "{key:?}");
    }
}

fn check_snapshot(choices: &mut Choices, typed: &Typed, snapshot: &Snapshot, model: &Model) {
    let (then, all) = (typed.at(snapshot), model.pairs(|_| true));
    assert_eq!(collected(then.iter()), all);
    assert_eq!((then.first().unwrap(), then.last().unwrap()), (all.first().cloned(), all.last().cloned()));
    let range = (choices.bound(), choices.bound());
    let inside = model.pairs(|key| model.is_inside(key, &range));
    assert_eq!(then.count(range.clone()).unwrap(), inside.len() as u64);
    assert_eq!(collected(then.range(range).rev()), reversed(inside));
    let wanted: Vec<Key> = (0..4).map(|_| choices.key()).collect();
    for (key, found) in wanted.iter().zip(then.multi_get(&wanted).unwrap()) {
        assert_eq!(found.unwrap(), model.value(key), "{key:?}");
    }
}

fn write(choices: &mut Choices, typed: &Typed, model: &mut Model) {
    let (key, value) = (choices.key(), choices.below(3) as u64);
    let (options, life) = choices.options();
    match choices.below(14) {
        0 | 1 => {
            typed.put_with(&key, value, &options).unwrap();
            model.put(&key, value, life);
        }
        2 => {
            let found = model.value(&key);
            assert_eq!(typed.put_if_absent_with(&key, value, &options).unwrap(), found, "{key:?}");
            if found.is_none() {
                model.put(&key, value, life);
            }
        }
        3 | 4 => {
            let expected = if choices.below(4) == 0 { None } else { Some(choices.below(3) as u64) };
            let is_expected = model.value(&key) == expected;
            let swapped = typed.compare_and_swap_with(&key, expected, Some(value), &options).unwrap();
            assert_eq!(swapped, is_expected, "{key:?}");
            if swapped {
                model.put(&key, value, life);
            }
        }
        5 => {
            let is_expected = model.value(&key) == Some(value);
            assert_eq!(typed.compare_and_swap(&key, Some(value), None).unwrap(), is_expected, "{key:?}");
            if is_expected {
                model.held.remove(&key);
            }
        }
        6 => {
            assert_eq!(typed.take_with(&key, &WriteOptions::new().sync(true)).unwrap(), model.value(&key), "{key:?}");
            model.held.remove(&key);
        }
        7 => {
            typed.merge_with(&key, value, &options).unwrap();
            model.merge(&key, value, life);
        }
        8 => {
            model.merge(&key, value, life);
            let merged = typed.merge_and_get_with(&key, value, &options).unwrap();
            assert_eq!(merged, model.value(&key), "{key:?}");
        }
        9 => {
            let life = 1 + choices.below(5000) as u64;
            let touched = typed.touch(&key, Duration::from_millis(life)).unwrap();
            assert_eq!(touched, model.expire(&key, Some(model.now + life)), "{key:?}");
        }
        10 => assert_eq!(typed.persist(&key).unwrap(), model.expire(&key, None), "{key:?}"),
        11 => {
            let first = model.pairs(|_| true).into_iter().next();
            assert_eq!(typed.pop_first().unwrap(), first);
            first.into_iter().for_each(|(key, _)| _ = model.held.remove(&key));
        }
        12 => {
            let user = choices.user();
            typed.delete_prefix((user,)).unwrap();
            model.held.retain(|key, _| key.0 != user);
        }
        _ => {
            let range = (Bound::Included(choices.key()), Bound::Excluded(choices.key()));
            typed.delete_range(range.clone()).unwrap();
            let kept = model.clone();
            model.held.retain(|key, _| !kept.is_inside(key, &range));
        }
    }
}

/// Operations that take effect together, in their order.
fn write_batch(choices: &mut Choices, db: &Db, typed: &Typed, model: &mut Model) {
    let mut batch = db.batch();
    for _ in 0..1 + choices.below(5) {
        let (key, value) = (choices.key(), choices.below(3) as u64);
        let life = 1 + choices.below(5000) as u64;
        let mut part = typed.in_batch(&mut batch);
        match choices.below(8) {
            0 => part.put(&key, value).map(|()| model.put(&key, value, None)),
            1 => {
                part.put_with_ttl(&key, value, Duration::from_millis(life)).map(|()| model.put(&key, value, Some(life)))
            }
            2 => part.merge(&key, value).map(|()| model.merge(&key, value, None)),
            3 => part.delete(&key).map(|()| _ = model.held.remove(&key)),
            4 => part.touch(&key, Duration::from_millis(life)).map(|()| _ = model.expire(&key, Some(model.now + life))),
            5 => part.persist(&key).map(|()| _ = model.expire(&key, None)),
            6 => part.expire_at(&key, UNIX_EPOCH).map(|()| _ = model.expire(&key, Some(0))),
            _ => part.delete_prefix((&key.0,)).map(|()| model.held.retain(|other, _| other.0 != key.0)),
        }
        .unwrap();
    }
    batch.commit().unwrap();
}

fn transact(choices: &mut Choices, db: &Db, typed: &Typed, model: &mut Model) {
    let (mut transaction, mut seen) = (db.transaction(), model.clone());
    for _ in 0..1 + choices.below(5) {
        let (key, value) = (choices.key(), choices.below(3) as u64);
        let life = 1 + choices.below(5000) as u64;
        let mut part = typed.in_transaction(&mut transaction);
        match choices.below(9) {
            0 => part.put(&key, value).map(|()| seen.put(&key, value, None)),
            1 => {
                part.put_with_ttl(&key, value, Duration::from_millis(life)).map(|()| seen.put(&key, value, Some(life)))
            }
            2 => part.merge(&key, value).map(|()| seen.merge(&key, value, None)),
            3 => part.delete(&key).map(|()| _ = seen.held.remove(&key)),
            4 => part.touch(&key, Duration::from_millis(life)).map(|()| _ = seen.expire(&key, Some(seen.now + life))),
            5 => part.persist(&key).map(|()| _ = seen.expire(&key, None)),
            6 => part.delete_prefix((&key.0,)).map(|()| seen.held.retain(|other, _| other.0 != key.0)),
            7 => part.expire_at(&key, UNIX_EPOCH).map(|()| _ = seen.expire(&key, Some(0))),
            _ => part.pop_first().map(|popped| {
                assert_eq!(popped, seen.pairs(|_| true).into_iter().next());
                popped.into_iter().for_each(|(key, _)| _ = seen.held.remove(&key));
            }),
        }
        .unwrap();
        let all = seen.pairs(|_| true);
        assert_eq!(collected(part.iter()), all);
        assert_eq!(collected(part.iter().rev()), reversed(all.clone()));
        let range = (choices.bound(), choices.bound());
        let inside = seen.pairs(|key| seen.is_inside(key, &range));
        assert_eq!(part.count(range.clone()).unwrap(), inside.len() as u64, "{range:?}");
        assert_eq!(collected(part.range(range)), inside);
        assert_eq!(part.multi_get([&key]).pop().unwrap().unwrap(), seen.value(&key), "{key:?}");
        assert_eq!((part.first().unwrap(), part.last().unwrap()), (all.first().cloned(), all.last().cloned()));
    }
    if choices.below(4) > 0 {
        transaction.commit().unwrap();
        *model = seen;
    }
}

fn run(seed: u64, is_reverse: bool) {
    let mut choices = Choices(Random::new(seed));
    let machine = Machine::new();
    let (mut db, mut typed) = open(&machine, is_reverse);
    let mut model = Model { held: BTreeMap::new(), now: START_MS, is_reverse };
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for _ in 0..250 {
        match choices.below(20) {
            0..=9 => write(&mut choices, &typed, &mut model),
            10..=12 => write_batch(&mut choices, &db, &typed, &mut model),
            13 | 14 => transact(&mut choices, &db, &typed, &mut model),
            15 => {
                let ms = choices.below(2000) as u64;
                machine.pass(Duration::from_millis(ms));
                model.now += ms;
            }
            16 => db.flush().unwrap(),
            17 => db.compact().unwrap(),
            18 => {
                snapshots.truncate(3);
                snapshots.insert(0, (db.snapshot(), model.clone()));
            }
            _ if choices.below(3) == 0 => {
                snapshots.clear();
                drop((typed, db));
                (db, typed) = open(&machine, is_reverse);
            }
            _ => {}
        }
        check(&mut choices, &typed, &model);
        for (snapshot, then) in &snapshots {
            check_snapshot(&mut choices, &typed, snapshot, then);
        }
    }
    db.verify().unwrap();
}

#[test]
fn every_call_agrees_with_a_map_in_both_orders() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("ESKER_SEED").unwrap_or(0);
    for seed in first..first + number("ESKER_SEEDS").unwrap_or(12) {
        for is_reverse in [false, true] {
            println!("ESKER_SEED={seed}, reverse: {is_reverse}");
            run(seed, is_reverse);
        }
    }
}
