//! Random walks through all operations of a keyspace with an order of its own, beside a model.

use super::ByLength;
use crate::common::{DIRECTORY, Machine};
use esker::internals::Random;
use esker::{
    CompactionStyle, Comparator, Db, Follower, Iter, KeyRange, Keyspace, KeyspaceOptions, Options, ReverseBytewise,
    Slice, merge::UInt64Add,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

type Compare = fn(&[u8], &[u8]) -> Ordering;

/// A key in the order of the walk.
#[derive(Clone)]
struct Key(Vec<u8>, Compare);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        (self.1)(&self.0, &other.0)
    }
}

type Model = BTreeMap<Key, Vec<u8>>;
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys that begin each other, also the empty one, zero bytes, and marks.
fn random_key(random: &mut Random) -> Vec<u8> {
    const ALPHABET: [u8; 6] = [0, 1, 2, b'a', b'b', 0xff];
    (0..random.below(5)).map(|_| random.pick(&ALPHABET)).collect()
}

fn random_bound(random: &mut Random) -> Bound<Vec<u8>> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(random_key(random)),
        _ => Bound::Excluded(random_key(random)),
    }
}

fn borrowed(bounds: &Bounds) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice))
}

fn is_inside(compare: Compare, bounds: &Bounds, key: &[u8]) -> bool {
    let above = match &bounds.0 {
        Bound::Unbounded => true,
        Bound::Included(first) => compare(key, first).is_ge(),
        Bound::Excluded(before) => compare(key, before).is_gt(),
    };
    above
        && match &bounds.1 {
            Bound::Unbounded => true,
            Bound::Included(last) => compare(key, last).is_le(),
            Bound::Excluded(end) => compare(key, end).is_lt(),
        }
}

fn expected(model: &Model, compare: Compare, bounds: &Bounds) -> Pairs {
    let inside = model.iter().filter(|(key, _)| is_inside(compare, bounds, &key.0));
    inside.map(|(key, value)| (key.0.clone(), value.clone())).collect()
}

fn collected(pairs: impl Iterator<Item = esker::Result<(Slice, Slice)>>) -> Pairs {
    pairs.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

struct Walk {
    machine: Machine,
    comparator: Arc<dyn Comparator>,
    compare: Compare,
    style: CompactionStyle,
    db: Db,
    keyspace: Keyspace,
    /// In the bytewise order, so that log and batches are shared.
    other: Keyspace,
    model: Model,
    random: Random,
    context: String,
}

fn options(machine: &Machine, comparator: &Arc<dyn Comparator>) -> Options {
    machine.options().comparator(Arc::clone(comparator)).write_buffer_bytes(16 << 10).target_file_bytes(1 << 10)
}

impl Walk {
    fn new(comparator: Arc<dyn Comparator>, compare: Compare, style: CompactionStyle, seed: u64) -> Walk {
        let machine = Machine::new();
        let db = Db::open(DIRECTORY, options(&machine, &comparator)).unwrap();
        let settings = KeyspaceOptions::default()
            .shared_comparator(Arc::clone(&comparator))
            .compaction_style(style)
            .merge_operator(UInt64Add);
        let keyspace = db.keyspace("ordered", settings).unwrap();
        let other = db.keyspace("plain", KeyspaceOptions::default()).unwrap();
        let context = format!("{} {style:?}, seed {seed}", comparator.name());
        let random = Random::new(seed);
        Walk { machine, comparator, compare, style, db, keyspace, other, model: Model::new(), random, context }
    }

    fn key(&self, key: &[u8]) -> Key {
        Key(key.to_vec(), self.compare)
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => vec![7; 300],
            _ => self.random.below(1 << 40).to_le_bytes().to_vec(),
        }
    }

    fn number(&mut self) -> u64 {
        self.random.below(1000)
    }

    fn merged(&self, key: &[u8], number: u64) -> Option<Vec<u8>> {
        let old = match self.model.get(&self.key(key)) {
            None => 0,
            Some(old) => u64::from_le_bytes(old.as_slice().try_into().ok()?),
        };
        Some(old.wrapping_add(number).to_le_bytes().to_vec())
    }

    fn delete_range(&mut self, bounds: &Bounds) {
        let compare = self.compare;
        self.model.retain(|key, _| !is_inside(compare, bounds, &key.0));
    }

    fn write(&mut self) {
        let key = random_key(&mut self.random);
        match self.random.below(12) {
            0..6 => {
                let value = self.value();
                self.keyspace.put(&key, &value).unwrap();
                self.model.insert(self.key(&key), value);
            }
            6 | 7 => {
                self.keyspace.delete(&key).unwrap();
                self.model.remove(&self.key(&key));
            }
            8 => {
                let number = self.number();
                if let Some(merged) = self.merged(&key, number) {
                    self.keyspace.merge(&key, number.to_le_bytes()).unwrap();
                    self.model.insert(self.key(&key), merged);
                }
            }
            9 => {
                let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
                // Few at a time, or nothing would be left.
                if expected(&self.model, self.compare, &bounds).len() < 12 || self.random.below(20) == 0 {
                    self.keyspace.delete_range(borrowed(&bounds)).unwrap();
                    self.delete_range(&bounds);
                }
            }
            10 => self.batch(),
            _ => self.conditional(&key),
        }
    }

    fn conditional(&mut self, key: &[u8]) {
        let value = self.value();
        let now = self.model.get(&self.key(key)).cloned();
        match self.random.below(4) {
            0 => {
                let there = self.keyspace.put_if_absent(key, &value).unwrap();
                assert_eq!(there.as_deref(), now.as_deref(), "{}", self.context);
                self.model.entry(self.key(key)).or_insert(value);
            }
            1 => {
                assert_eq!(self.keyspace.take(key).unwrap().as_deref(), now.as_deref(), "{}", self.context);
                self.model.remove(&self.key(key));
            }
            2 => {
                assert!(self.keyspace.compare_and_swap(key, now.as_deref(), Some(&value)).unwrap().is_swapped());
                self.model.insert(self.key(key), value);
            }
            _ => {
                let popped = self.keyspace.pop_first().unwrap();
                let first = self.model.pop_first().map(|(key, value)| (key.0, value));
                assert_eq!(popped.map(|(key, value)| (key.to_vec(), value.to_vec())), first, "{}", self.context);
            }
        }
    }

    fn batch(&mut self) {
        let mut batch = self.db.batch();
        for _ in 0..1 + self.random.below(5) {
            let (key, value) = (random_key(&mut self.random), self.value());
            batch.put(&self.other, &key, "").unwrap();
            match self.random.below(4) {
                0 => {
                    batch.delete(&self.keyspace, &key).unwrap();
                    self.model.remove(&self.key(&key));
                }
                1 => {
                    let bounds = (Bound::Included(key.clone()), Bound::Included(key));
                    batch.delete_range(&self.keyspace, borrowed(&bounds)).unwrap();
                    self.delete_range(&bounds);
                }
                _ => {
                    batch.put(&self.keyspace, &key, &value).unwrap();
                    self.model.insert(self.key(&key), value);
                }
            }
        }
        batch.commit().unwrap();
    }

    /// Writes and scans in a transaction, which may meet another writer.
    fn transaction(&mut self) {
        let before = self.model.clone();
        let mut transaction = self.db.transaction();
        let mut conflicts = false;
        for _ in 0..self.random.below(6) {
            let (key, value) = (random_key(&mut self.random), self.value());
            match self.random.below(5) {
                0 => {
                    transaction.delete(&self.keyspace, &key).unwrap();
                    self.model.remove(&self.key(&key));
                }
                1 => {
                    let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
                    if expected(&self.model, self.compare, &bounds).len() < 12 {
                        transaction.delete_range(&self.keyspace, borrowed(&bounds)).unwrap();
                        self.delete_range(&bounds);
                    }
                }
                2 => {
                    let found = transaction.get(&self.keyspace, &key).unwrap();
                    let wanted = self.model.get(&self.key(&key));
                    assert_eq!(found.as_deref(), wanted.map(Vec::as_slice), "{}", self.context);
                }
                _ => {
                    transaction.put(&self.keyspace, &key, &value).unwrap();
                    self.model.insert(self.key(&key), value);
                }
            }
        }
        let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
        let mut wanted = expected(&self.model, self.compare, &bounds);
        if self.random.below(2) == 0 {
            wanted.reverse();
            let found = collected(transaction.range(&self.keyspace, borrowed(&bounds)).rev());
            assert_eq!(found, wanted, "{} in {bounds:?}", self.context);
        } else {
            let found = collected(transaction.range(&self.keyspace, borrowed(&bounds)));
            assert_eq!(found, wanted, "{} in {bounds:?}", self.context);
        }
        let mut met = None;
        if self.random.below(3) == 0 {
            // Another writer, in the range that was read or not.
            let key = random_key(&mut self.random);
            self.keyspace.put(&key, "beside").unwrap();
            conflicts = !transaction.is_empty() && is_inside(self.compare, &bounds, &key);
            met = Some(key);
        }
        let committed = transaction.commit();
        match (&met, committed) {
            (None, committed) => committed.unwrap(),
            (Some(_), Ok(())) => assert!(!conflicts, "{}: a phantom in {bounds:?}", self.context),
            (Some(_), Err(error)) => {
                assert!(matches!(error, esker::Error::Conflict { .. }), "{error}");
                self.model = before;
            }
        }
        if let Some(key) = met {
            // The transaction did not write that key, or there would have been a conflict.
            self.model.insert(self.key(&key), b"beside".to_vec());
        }
    }

    fn check_scan(&mut self, scan: impl Fn(&Bounds) -> Iter, model: &Model) {
        let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
        let wanted = expected(model, self.compare, &bounds);
        assert_eq!(collected(scan(&bounds)), wanted, "{} in {bounds:?}", self.context);
        let mut back = collected(scan(&bounds).rev());
        back.reverse();
        assert_eq!(back, wanted, "{} in {bounds:?}", self.context);
        // From both ends.
        let (mut front, mut back, mut iter) = (Vec::new(), Vec::new(), scan(&bounds));
        loop {
            let forward = self.random.below(2) == 0;
            let Some(pair) = (if forward { iter.next() } else { iter.next_back() }) else { break };
            let pair = pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
            if forward { front.push(pair) } else { back.push(pair) }
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, wanted, "{} in {bounds:?}", self.context);
    }

    fn check_cursor(&mut self) {
        let all = expected(&self.model, self.compare, &(Bound::Unbounded, Bound::Unbounded));
        let mut cursor = self.keyspace.cursor().unwrap();
        let mut at: Option<usize> = None;
        for _ in 0..12 {
            let key = random_key(&mut self.random);
            match self.random.below(6) {
                0 => {
                    cursor.seek(&key).unwrap();
                    at = all.iter().position(|(other, _)| (self.compare)(other, &key).is_ge());
                }
                1 => {
                    cursor.seek_for_prev(&key).unwrap();
                    at = all.iter().rposition(|(other, _)| (self.compare)(other, &key).is_le());
                }
                2 | 3 => {
                    cursor.next().unwrap();
                    at = at.map(|at| at + 1).filter(|&at| at < all.len());
                }
                _ => {
                    cursor.prev().unwrap();
                    at = at.and_then(|at| at.checked_sub(1));
                }
            }
            assert_eq!(cursor.valid(), at.is_some(), "{}", self.context);
            if let Some((key, value)) = at.and_then(|at| all.get(at)) {
                assert_eq!((cursor.key(), cursor.value()), (key.as_slice(), value.as_slice()), "{}", self.context);
            }
        }
    }

    fn check(&mut self) {
        let keyspace = self.keyspace.clone();
        let model = std::mem::take(&mut self.model);
        self.check_scan(|bounds| keyspace.range(borrowed(bounds)), &model);
        self.model = model;
        self.check_cursor();
        for _ in 0..8 {
            let key = random_key(&mut self.random);
            let wanted = self.model.get(&self.key(&key)).map(Vec::as_slice);
            assert_eq!(self.keyspace.get(&key).unwrap().as_deref(), wanted, "{}: {key:?}", self.context);
            assert_eq!(self.keyspace.contains_key(&key).unwrap(), wanted.is_some(), "{}: {key:?}", self.context);
        }
        let pair = |(key, value): (&Key, &Vec<u8>)| (key.0.clone(), value.clone());
        let owned = |(key, value): (Slice, Slice)| (key.to_vec(), value.to_vec());
        assert_eq!(self.keyspace.first().unwrap().map(owned), self.model.first_key_value().map(pair));
        assert_eq!(self.keyspace.last().unwrap().map(owned), self.model.last_key_value().map(pair));
        let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
        let wanted = expected(&self.model, self.compare, &bounds);
        assert_eq!(self.keyspace.count(borrowed(&bounds)).unwrap(), wanted.len() as u64, "{}", self.context);
        let keys: Vec<_> = self.keyspace.range(borrowed(&bounds)).keys().map(|key| key.unwrap().to_vec()).collect();
        assert!(keys.iter().eq(wanted.iter().map(|(key, _)| key)), "{}", self.context);
        let whole = self.keyspace.approximate_size(..).unwrap();
        assert!(self.keyspace.approximate_size(borrowed(&bounds)).unwrap() <= whole, "{}", self.context);
    }

    fn maintain(&mut self) {
        match self.random.below(8) {
            0 | 1 => self.db.flush().unwrap(),
            2 => self.keyspace.compact().unwrap(),
            3 => {
                let bounds = (random_bound(&mut self.random), random_bound(&mut self.random));
                self.keyspace.compact_range(borrowed(&bounds)).unwrap();
            }
            4 => self.ingest(),
            5 => {
                self.db.verify().unwrap();
                self.db.wait_idle().unwrap();
            }
            6 => self.check_others(),
            _ => self.reopen(),
        }
    }

    fn ingest(&mut self) {
        let mut pairs: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        for _ in 0..self.random.below(20) {
            let (key, value) = (random_key(&mut self.random), self.value());
            pairs.insert(self.key(&key), value);
        }
        let wrong = pairs.iter().rev().map(|(key, value)| (&key.0, value));
        assert_eq!(self.keyspace.ingest(wrong).is_err(), pairs.len() > 1, "{}", self.context);
        self.model.extend(if pairs.len() == 1 { pairs.clone() } else { BTreeMap::new() });
        self.keyspace.ingest(pairs.iter().map(|(key, value)| (&key.0, value))).unwrap();
        self.model.extend(pairs);
    }

    /// A checkpoint, a reader beside the writer, and a follower see the same.
    fn check_others(&mut self) {
        let all = expected(&self.model, self.compare, &(Bound::Unbounded, Bound::Unbounded));
        let beside = Db::open_read_only(DIRECTORY, options(&self.machine, &self.comparator)).unwrap();
        assert_eq!(collected(beside.existing_keyspace("ordered").unwrap().iter()), all, "{}", self.context);
        let target = format!("/copy-{}", self.random.below(1 << 30));
        self.db.checkpoint(&target).unwrap();
        let copy = Db::open(&target, options(&self.machine, &self.comparator)).unwrap();
        assert_eq!(collected(copy.existing_keyspace("ordered").unwrap().iter()), all, "{}", self.context);
    }

    fn reopen(&mut self) {
        if self.random.below(2) == 0 {
            self.db.clone().close().unwrap();
        }
        let Walk { machine, comparator, .. } = self;
        let options = options(machine, comparator);
        // The last handles end, and with them the lock.
        let nothing = Db::open("/nothing", machine.options()).unwrap();
        let unused = nothing.keyspace("unused", KeyspaceOptions::default()).unwrap();
        self.keyspace = unused.clone();
        self.other = unused;
        self.db = nothing;
        self.db = Db::open(DIRECTORY, options).unwrap();
        self.keyspace = self.db.existing_keyspace("ordered").unwrap();
        self.other = self.db.existing_keyspace("plain").unwrap();
        assert_eq!(self.keyspace.comparator(), self.comparator.name());
        assert_eq!(self.keyspace.compaction_style(), self.style);
    }

    fn run(&mut self, steps: u32) {
        let mut follower: Option<Follower> = None;
        for step in 0..steps {
            self.context = format!("{}, step {step}", self.context.split(", step").next().unwrap());
            match self.random.below(60) {
                0..45 => self.write(),
                45..49 => self.transaction(),
                49..56 => self.check(),
                56 => {
                    let (snapshot, model) = (self.db.snapshot(), self.model.clone());
                    for _ in 0..5 {
                        self.write();
                    }
                    self.maintain_without_reopen();
                    let keyspace = self.keyspace.clone();
                    self.check_scan(|bounds| snapshot.range(&keyspace, borrowed(bounds)), &model);
                }
                57 => {
                    let follower = follower.get_or_insert_with(|| {
                        Db::open_follower(DIRECTORY, options(&self.machine, &self.comparator)).unwrap()
                    });
                    follower.catch_up().unwrap();
                    let all = expected(&self.model, self.compare, &(Bound::Unbounded, Bound::Unbounded));
                    let followed = follower.db().existing_keyspace("ordered").unwrap();
                    assert_eq!(collected(followed.iter()), all, "{}", self.context);
                }
                _ => self.maintain(),
            }
        }
        self.check();
        self.db.verify().unwrap();
        assert_eq!(self.db.stats().keyspaces[0].comparator_faults, 0, "{}", self.context);
    }

    fn maintain_without_reopen(&mut self) {
        if self.random.below(2) == 0 { self.db.flush().unwrap() } else { self.keyspace.compact().unwrap() }
    }
}

fn walks(comparator: fn() -> Arc<dyn Comparator>, compare: Compare) {
    let styles = [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered];
    for seed in 0..6 {
        Walk::new(comparator(), compare, styles[seed as usize % 3], seed).run(1500);
    }
}

#[test]
fn a_keyspace_in_reverse_order_is_the_model() {
    walks(|| Arc::new(ReverseBytewise), |a, b| b.cmp(a));
}

#[test]
fn a_keyspace_with_a_comparator_of_the_programs_own_is_the_model() {
    walks(|| Arc::new(ByLength), |a, b| ByLength.compare(a, b));
}

#[test]
fn prefixes_are_those_of_the_reverse_order_and_refused_where_they_may_be_scattered() {
    let machine = Machine::new();
    let db = machine.open();
    let reverse = db.keyspace("reverse", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
    let by_length = db.keyspace("by length", KeyspaceOptions::default().comparator(ByLength)).unwrap();
    for key in ["", "a", "ab", "abc", "b", "\u{7f}"] {
        reverse.put(key, "").unwrap();
        by_length.put(key, "").unwrap();
    }
    reverse.put([0xff], "").unwrap();
    reverse.put([0xff, 0xff, 1], "").unwrap();
    let keys = |iter: Iter| iter.keys().map(|key| key.unwrap().to_vec()).collect::<Vec<_>>();
    assert_eq!(keys(reverse.prefix("a")), [&b"abc"[..], b"ab", b"a"]);
    assert_eq!(keys(reverse.prefix([0xff])), [&b"\xff\xff\x01"[..], b"\xff"]);
    assert_eq!(keys(reverse.prefix("")).len(), 8);
    assert_eq!(keys(db.snapshot().prefix(&reverse, "ab")), [&b"abc"[..], b"ab"]);
    reverse.delete_prefix("ab").unwrap();
    assert_eq!(keys(reverse.iter()).len(), 6);
    let is_refused = |result: esker::Result<()>| match result {
        Err(esker::Error::InvalidArgument { what }) => what.contains("test.by-length") && what.contains("by length"),
        _ => false,
    };
    assert!(is_refused(by_length.prefix("a").next().unwrap().map(drop)));
    assert!(is_refused(db.snapshot().prefix(&by_length, "a").next().unwrap().map(drop)));
    assert!(is_refused(db.transaction().prefix(&by_length, "a").next().unwrap().map(drop)));
    assert!(is_refused(by_length.delete_prefix("a")));
    assert!(is_refused(db.batch().delete_prefix(&by_length, "a")));
    assert!(is_refused(db.transaction().delete_prefix(&by_length, "a")));
    assert_eq!(by_length.count(..).unwrap(), 6);
}

#[test]
fn the_longest_key_is_a_byte_shorter() {
    let machine = Machine::new();
    let db = machine.open();
    let reverse = db.keyspace("reverse", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
    let longest = vec![7; (1 << 20) - 1];
    reverse.put(&longest, "").unwrap();
    reverse.delete_range((Bound::Excluded(&longest), Bound::Unbounded)).unwrap();
    db.compact().unwrap();
    assert_eq!(reverse.first().unwrap().unwrap().0.len(), longest.len());
    let error = reverse.put(vec![7; 1 << 20], "").unwrap_err();
    assert!(error.to_string().contains("the key has 1048576 bytes, at most 1048575"), "{error}");
}

#[test]
fn every_form_of_a_range_is_one_of_the_order() {
    let machine = Machine::new();
    let db = machine.open();
    let reverse = db.keyspace("reverse", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
    for key in ["a", "b", "c", "d"] {
        reverse.put(key, "").unwrap();
    }
    let count = |range: &dyn KeyRange| reverse.count(range).unwrap();
    assert_eq!(count(&("c".."a")), 2);
    assert_eq!(count(&("a".."c")), 0);
    assert_eq!(count(&("c"..="a")), 3);
    assert_eq!(count(&("b"..)), 2);
    assert_eq!(count(&(.."b")), 2);
    assert_eq!(count(&(..="b")), 3);
    assert_eq!(count(&(..)), 4);
    reverse.clear().unwrap();
    assert_eq!(count(&(..)), 0);
}
