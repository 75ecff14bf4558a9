//! Comparators that break the laws of an order: their keyspace may answer anything, and everything
//! else must be as if they were not there, also after a kill and after a power loss, in a follower
//! and in the changes.
//!
//! `ESKER_SEED` makes it different.

use super::By;
use crate::common::{DIRECTORY, Machine, all};
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::StringAppend;
use esker::{
    Batch, ChangeOperation, ChangeRetention, Clock, CompactionStyle, Comparator, Db, Error, Follower, Keyspace,
    KeyspaceOptions, Options, Ttl,
};
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// The bytes from which on a value is a large one.
const LARGE: usize = 48;
/// More than the tests write.
const ALL_CHANGES: ChangeRetention = ChangeRetention::Bytes(1 << 30);

thread_local! {
    // Of the thread, so that tests beside this one do not change what it draws.
    static STATE: Cell<u64> = const { Cell::new(7) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn seed() -> u64 {
    std::env::var("ESKER_SEED").map_or(7, |text| text.parse().expect("a number"))
}

/// Begins the numbers of this thread anew.
fn begin(seed: u64) {
    STATE.set(seed);
    CALLS.set(0);
}

/// A number that looks random, another one at each call.
fn random() -> u64 {
    let state = STATE.get();
    STATE.set(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn any_order() -> Ordering {
    [Ordering::Less, Ordering::Equal, Ordering::Greater][(random() % 3) as usize]
}

fn hash(key: &[u8]) -> u64 {
    key.iter().fold(1469, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Each breaks another law.
fn comparators() -> Vec<(&'static str, Arc<dyn Comparator>)> {
    vec![
        ("random", Arc::new(By("lawless", |_: &[u8], _: &[u8]| any_order()))),
        ("less", Arc::new(By("lawless", |_: &[u8], _: &[u8]| Ordering::Less))),
        ("greater", Arc::new(By("lawless", |_: &[u8], _: &[u8]| Ordering::Greater))),
        ("equal", Arc::new(By("lawless", |_: &[u8], _: &[u8]| Ordering::Equal))),
        ("equal lengths", Arc::new(By("lawless", |a: &[u8], b: &[u8]| a.len().cmp(&b.len())))),
        (
            "circle",
            Arc::new(By("lawless", |a: &[u8], b: &[u8]| match (hash(a) % 3, hash(b) % 3) {
                (x, y) if x == y => a.cmp(b),
                (x, y) if (x + 1) % 3 == y => Ordering::Less,
                _ => Ordering::Greater,
            })),
        ),
        (
            "changing",
            Arc::new(By("lawless", |a: &[u8], b: &[u8]| {
                // Turns round every few hundred calls; an odd number, or it would never be between
                // the two that debug builds compare.
                CALLS.set(CALLS.get() + 1);
                if (CALLS.get() / 299).is_multiple_of(2) { a.cmp(b) } else { b.cmp(a) }
            })),
        ),
        (
            "mostly right",
            Arc::new(By("lawless", |a: &[u8], b: &[u8]| if random().is_multiple_of(50) { b.cmp(a) } else { a.cmp(b) })),
        ),
        (
            "panicking",
            Arc::new(By("lawless", |a: &[u8], b: &[u8]| {
                // Without a message: there would be thousands.
                if random().is_multiple_of(20) { std::panic::resume_unwind(Box::new("injected")) } else { a.cmp(b) }
            })),
        ),
    ]
}

/// What a call on the keyspace may return: anything but an error that says something about the
/// database.
fn tolerated<T>(result: esker::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Conflict { .. } | Error::Corruption { .. } | Error::InvalidArgument { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The pairs of the lawful keyspace, each with the time from which on it has expired.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// What of it can be seen then.
fn visible(model: &Model, now_ms: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let alive = model.iter().filter(|(_, (_, expiry_ms))| now_ms < *expiry_ms);
    alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
}

fn key(random: u64) -> Vec<u8> {
    format!("{:x}", random % 400).into_bytes()
}

/// One in three is a large one.
fn value() -> Vec<u8> {
    let number = random();
    let more = (number >> 8) as usize;
    let length = if number.is_multiple_of(3) { LARGE + more % 100 } else { 1 + more % 20 };
    vec![b'a' + (number % 26) as u8; length]
}

fn settings() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(StringAppend::new(",")).ttl(Ttl::Enabled { default: None })
}

/// A call that writes to the keyspace with the comparator, or none.
fn write_any(lawless: &Keyspace, key: &[u8], other: &[u8]) {
    let ttl = Duration::from_secs(1 + random() % 100);
    match random() % 18 {
        0 | 1 => lawless.delete(other).unwrap(),
        2 => lawless.delete_range((Bound::Included(key), Bound::Excluded(other))).unwrap(),
        3 => lawless.delete_range((Bound::Excluded(key), Bound::Included(other))).unwrap(),
        4 | 5 => lawless.put_with_ttl(other, value(), ttl).unwrap(),
        // These look at what is there.
        6 | 7 => _ = tolerated(lawless.merge(other, value())),
        8 => _ = tolerated(lawless.merge_with_ttl(other, value(), ttl)),
        9 => _ = tolerated(lawless.take(other)),
        10 => _ = tolerated(lawless.touch(other, ttl)),
        11 => _ = tolerated(lawless.persist(other)),
        12 => _ = tolerated(lawless.compare_and_swap(other, None, Some(&value()[..]))),
        13 => _ = tolerated(lawless.merge_and_get(other, value())),
        _ => {}
    }
}

/// The keys of the lawful keyspace in the changes from that number on, and where to go on.
fn told(db: &Db, from: u64) -> (Vec<Vec<u8>>, u64) {
    let (mut keys, mut next) = (Vec::new(), from);
    for batch in db.changes(from).unwrap() {
        let batch = batch.unwrap();
        assert!(batch.next_sequence() > next, "{next} comes a second time");
        next = batch.next_sequence();
        let lawful = batch.changes.iter().filter(|change| &*change.keyspace == "lawful");
        keys.extend(lawful.map(|change| match &change.operation {
            ChangeOperation::Put { key, .. } | ChangeOperation::Merge { key, .. } => key.to_vec(),
            ChangeOperation::Delete { key } => key.to_vec(),
            other => panic!("{other:?}"),
        }));
    }
    (keys, next)
}

struct Run {
    machine: Machine,
    options: Options,
    db: Db,
    lawless: Keyspace,
    lawful: Keyspace,
    model: Model,
    /// The key of each write to the lawful keyspace.
    log: Vec<Vec<u8>>,
    /// Entries written to the other one, at most.
    written: usize,
    follower: Follower,
    keeps_changes: bool,
    /// Where to go on in the changes, and how much of `log` was read there.
    position: u64,
    read: usize,
    context: String,
}

impl Run {
    fn new(name: &str, comparator: Arc<dyn Comparator>, style: CompactionStyle, keeps_changes: bool) -> Run {
        let seed = seed();
        let context = format!("{name}, {style:?}, seed {seed}");
        begin(seed ^ hash(context.as_bytes()));
        let machine = Machine::new();
        let options = machine.options().comparator(comparator.clone()).min_blob_size(LARGE);
        let options = options.write_buffer_bytes(8 << 10).target_file_bytes(512);
        let options = if keeps_changes { options.keep_changes(ALL_CHANGES) } else { options };
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let settings = settings().compaction_style(style);
        let lawless = db.keyspace("lawless", settings.clone().shared_comparator(comparator)).unwrap();
        let lawful = db.keyspace("lawful", settings).unwrap();
        let follower = Db::open_follower(DIRECTORY, options.clone()).unwrap();
        Run {
            machine,
            options,
            db,
            lawless,
            lawful,
            model: Model::new(),
            log: Vec::new(),
            written: 0,
            follower,
            keeps_changes,
            position: 0,
            read: 0,
            context,
        }
    }

    fn now_ms(&self) -> u64 {
        self.machine.clock.now_ms()
    }

    fn assert_whole(&self, lawful: &Keyspace, what: &str) {
        assert_eq!(all(lawful), visible(&self.model, self.now_ms()), "{}: {what}", self.context);
    }

    fn write(&mut self) {
        let (key, other) = (key(random()), key(random()));
        // A change of an expiry writes all operands of its key again.
        self.written += 12;
        let mut batch = self.db.batch();
        self.write_lawful(&mut batch, &key);
        batch.put(&self.lawless, &key, value()).unwrap();
        batch.put(&self.lawless, &other, value()).unwrap();
        batch.commit().unwrap();
        write_any(&self.lawless, &key, &other);
    }

    /// One operation on the lawful keyspace, and what it leaves.
    fn write_lawful(&mut self, batch: &mut Batch, key: &[u8]) {
        let (value, now_ms) = (value(), self.now_ms());
        let left = match random() % 8 {
            0 | 1 => {
                let ttl_ms = 1000 * (1 + random() % 100);
                batch.put_with_ttl(&self.lawful, key, &value, Duration::from_millis(ttl_ms)).unwrap();
                Some((value, now_ms + ttl_ms))
            }
            2 | 3 => {
                batch.merge(&self.lawful, key, &value).unwrap();
                Some(match self.model.get(key).filter(|(_, expiry_ms)| now_ms < *expiry_ms) {
                    Some((there, expiry_ms)) => ([&there[..], &value[..]].join(&b","[..]), *expiry_ms),
                    None => (value, u64::MAX),
                })
            }
            4 => {
                batch.delete(&self.lawful, key).unwrap();
                None
            }
            _ => {
                batch.put(&self.lawful, key, &value).unwrap();
                Some((value, u64::MAX))
            }
        };
        match left {
            Some(left) => _ = self.model.insert(key.to_vec(), left),
            None => _ = self.model.remove(key),
        }
        self.log.push(key.to_vec());
    }

    /// All scans come to an end, and none hands out more than was ever written.
    fn scan(&self, lawless: &Keyspace) {
        let most = 2 * self.written + 10;
        let bounds = (key(random()), key(random()));
        let ends = |count: usize| assert!(count <= most, "{}: {count} of {} writes", self.context, self.written);
        ends(lawless.iter().take(most + 1).count());
        ends(lawless.iter().rev().take(most + 1).count());
        ends(lawless.range(&bounds.0..&bounds.1).take(most + 1).count());
        ends(lawless.range(&bounds.0..=&bounds.1).rev().take(most + 1).count());
        let mut iter = lawless.iter();
        let mut count = 0;
        while count <= most && (if count.is_multiple_of(3) { iter.next_back() } else { iter.next() }).is_some() {
            count += 1;
        }
        ends(count);
        let mut cursor = lawless.cursor().unwrap();
        for step in 0..50 {
            tolerated(match step % 7 {
                0 => cursor.seek(key(random())),
                1..=3 => cursor.next(),
                4 => cursor.seek_for_prev(key(random())),
                _ => cursor.prev(),
            });
        }
        tolerated(lawless.count(..));
        tolerated(lawless.first());
        tolerated(lawless.last());
        tolerated(lawless.approximate_size(&bounds.0..&bounds.1));
        for _ in 0..20 {
            tolerated(lawless.get(key(random())));
            tolerated(lawless.expires_at(key(random())));
        }
    }

    fn transaction(&mut self) {
        let mut transaction = self.db.transaction();
        for _ in 0..6 {
            transaction.put(&self.lawless, key(random()), "").unwrap();
        }
        tolerated(transaction.merge(&self.lawless, key(random()), value()));
        tolerated(transaction.touch(&self.lawless, key(random()), Duration::from_secs(30)));
        transaction.delete_range(&self.lawless, key(random())..key(random())).unwrap();
        let most = 2 * self.written + 20;
        assert!(transaction.iter(&self.lawless).take(most + 1).count() <= most, "{}", self.context);
        assert!(transaction.range(&self.lawless, key(random())..).rev().take(most + 1).count() <= most);
        tolerated(transaction.get(&self.lawless, key(random())));
        if random().is_multiple_of(2) {
            self.lawless.put(key(random()), "beside").unwrap();
        }
        self.written += 16;
        tolerated(transaction.commit());
    }

    fn maintain(&mut self) {
        match random() % 8 {
            0 | 1 => self.db.flush().unwrap(),
            2 => self.db.compact().unwrap(),
            3 => self.lawless.compact_range(key(random())..key(random())).unwrap(),
            4 => self.db.wait_idle().unwrap(),
            5 => drop(tolerated(self.db.verify())),
            6 => {
                let pairs = (0..9).map(|_| (key(random()), "ingested"));
                tolerated(self.lawless.ingest(pairs));
                self.written += 9;
            }
            _ => {
                let target = format!("/copy-{}", random());
                // The follower writes tables of what the writer has not flushed.
                let by = if random().is_multiple_of(2) { &self.db } else { self.follower.db() };
                by.checkpoint(&target).unwrap();
                let copy = Db::open(&target, self.options.clone()).unwrap();
                self.assert_whole(&copy.existing_keyspace("lawful").unwrap(), "a copy");
            }
        }
    }

    fn reopen(&mut self) {
        let nothing = Db::open("/nothing", self.machine.options()).unwrap();
        let unused = nothing.keyspace("unused", KeyspaceOptions::default()).unwrap();
        (self.lawless, self.lawful, self.db) = (unused.clone(), unused, nothing);
        self.db = Db::open(DIRECTORY, self.options.clone()).unwrap_or_else(|error| panic!("{}: {error}", self.context));
        self.lawless = self.db.existing_keyspace("lawless").unwrap();
        self.lawful = self.db.existing_keyspace("lawful").unwrap();
        self.assert_whole(&self.lawful, "opened again");
        Db::open_read_only(DIRECTORY, self.options.clone()).unwrap();
    }

    /// The follower has everything that is acknowledged, and the changes tell of each write to the
    /// lawful keyspace once, in order.
    fn read_along(&mut self) {
        self.follower.catch_up().unwrap_or_else(|error| panic!("{}: the follower: {error}", self.context));
        self.follower.lag().unwrap_or_else(|error| panic!("{}: the lag: {error}", self.context));
        let followed = self.follower.db().clone();
        self.assert_whole(&followed.existing_keyspace("lawful").unwrap(), "the follower");
        self.scan(&followed.existing_keyspace("lawless").unwrap());
        if !self.keeps_changes {
            return;
        }
        let mut next = self.position;
        for db in [&self.db, &followed] {
            let (keys, position) = told(db, self.position);
            assert!(keys == self.log[self.read..], "{}: {} changes from {}", self.context, keys.len(), self.position);
            next = position;
        }
        (self.position, self.read) = (next, self.log.len());
    }

    fn kill(&self) {
        let states = [self.model.clone()];
        self.check_image(self.machine.env.kill(), &states, "killed");
    }

    /// Behind a sync and a few writes that are not synced.
    fn lose_power(&mut self) {
        self.db.sync().unwrap();
        let mut states = vec![self.model.clone()];
        for _ in 0..5 {
            self.write();
            states.push(self.model.clone());
        }
        let mode = CrashMode::FIXED.get((random() % 8) as usize).copied().unwrap_or(CrashMode::Random);
        let image = self.machine.env.crash(&mode, random());
        self.check_image(image, &states, &format!("{mode:?}"));
    }

    /// What the next process finds opens, and its lawful keyspace is in one of these states, of
    /// which each has a write more than the one before.
    fn check_image(&self, image: MemEnv, states: &[Model], what: &str) {
        let context = format!("{}: {what}", self.context);
        let options = self.options.clone().env(Arc::new(image));
        let db = Db::open(DIRECTORY, options).unwrap_or_else(|error| panic!("{context}: {error}"));
        let (lawless, lawful) = (db.existing_keyspace("lawless").unwrap(), db.existing_keyspace("lawful").unwrap());
        let (found, now_ms) = (all(&lawful), self.now_ms());
        let keys = self.keeps_changes.then(|| told(&db, 0).0);
        let is_told = |writes: usize| keys.as_ref().is_none_or(|keys| *keys == self.log[..writes]);
        let writes_of = |state: usize| self.log.len() + 1 + state - states.len();
        let is_one = |(number, state)| visible(state, now_ms) == found && is_told(writes_of(number));
        assert!(states.iter().enumerate().any(is_one), "{context}: {found:?}, told of {keys:?}");
        self.scan(&lawless);
        (0..5).for_each(|_| write_any(&lawless, &key(random()), &key(random())));
        db.compact().unwrap();
        assert_eq!(all(&lawful), found, "{context}, compacted");
        assert!(db.health().writable, "{context}: {:?}", db.health());
        db.drop_keyspace("lawless").unwrap();
        db.compact().unwrap();
        db.verify().unwrap();
        assert_eq!(all(&lawful), found, "{context}, alone");
    }
}

fn run(name: &str, comparator: Arc<dyn Comparator>, style: CompactionStyle, keeps_changes: bool) {
    let mut run = Run::new(name, comparator, style, keeps_changes);
    for step in 0..400 {
        match step % 40 {
            0 => run.reopen(),
            10 => run.scan(&run.lawless),
            20 => run.transaction(),
            5 | 25 => run.read_along(),
            15 | 35 => run.machine.pass(Duration::from_secs(random() % 60)),
            30 if step < 200 => run.kill(),
            30 => run.lose_power(),
            7 | 17 | 27 | 37 => run.maintain(),
            _ => (0..5).for_each(|_| run.write()),
        }
    }
    run.reopen();
    run.db.compact().unwrap();
    run.scan(&run.lawless);
    let health = run.db.health();
    assert!(health.writable, "{}: {health:?}", run.context);
    run.assert_whole(&run.lawful, "at the end");
    run.read_along();
    let faults = run.db.stats().keyspaces[1].comparator_faults;
    assert!(faults > 0 || name == "circle", "{}: nothing was noticed", run.context);
    // It can still be got rid of.
    run.db.drop_keyspace("lawless").unwrap();
    run.db.compact().unwrap();
    run.db.verify().unwrap();
    run.follower.catch_up().unwrap();
    assert!(run.follower.db().existing_keyspace("lawless").is_err(), "{}", run.context);
    run.assert_whole(&run.follower.db().existing_keyspace("lawful").unwrap(), "the follower behind the drop");
}

#[test]
fn a_lawless_comparator_harms_its_own_keyspace_only() {
    println!("seed {}", seed());
    for (turn, style) in
        [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered].into_iter().enumerate()
    {
        for (number, (name, comparator)) in comparators().into_iter().enumerate() {
            run(name, comparator, style, (turn + number).is_multiple_of(2));
        }
    }
}

#[test]
fn with_a_background_thread_too() {
    println!("seed {}", seed());
    for (name, comparator) in comparators() {
        begin(seed() ^ hash(name.as_bytes()));
        let machine = Machine::new();
        let options = machine.options().background_threads(2).min_blob_size(LARGE).keep_changes(ALL_CHANGES);
        let options = options.comparator(Arc::clone(&comparator));
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let lawless = db.keyspace("lawless", settings().shared_comparator(comparator)).unwrap();
        let lawful = db.keyspace("lawful", KeyspaceOptions::default()).unwrap();
        let follower = Db::open_follower(DIRECTORY, options.clone()).unwrap();
        let mut expected = BTreeMap::new();
        for number in 0..3000u32 {
            lawless.put(key(random()), value()).unwrap();
            write_any(&lawless, &key(random()), &key(random()));
            expected.insert(number.to_be_bytes().to_vec(), value());
            lawful.put(number.to_be_bytes(), &expected[&number.to_be_bytes()[..]]).unwrap();
            if number.is_multiple_of(500) {
                lawless.delete_range(key(random())..key(random())).unwrap();
                lawless.iter().take(10_000).for_each(drop);
                machine.pass(Duration::from_secs(random() % 30));
            }
            if number.is_multiple_of(100) {
                match follower.catch_up() {
                    // The writer's threads change the files all the time.
                    Ok(_) | Err(Error::Stalled { .. }) => {}
                    Err(error) => panic!("{name}: the follower: {error}"),
                }
            }
            if number % 1000 == 999 {
                let image = options.clone().env(Arc::new(machine.env.kill())).background_threads(0);
                let killed = Db::open(DIRECTORY, image).unwrap_or_else(|error| panic!("{name}, killed: {error}"));
                assert_eq!(all(&killed.existing_keyspace("lawful").unwrap()), expected, "{name}, killed");
                killed.existing_keyspace("lawless").unwrap().iter().take(10_000).for_each(drop);
            }
        }
        db.wait_idle().unwrap();
        db.compact().unwrap();
        follower.catch_up().unwrap();
        assert_eq!(all(&follower.db().existing_keyspace("lawful").unwrap()), expected, "{name}: the follower");
        follower.db().existing_keyspace("lawless").unwrap().iter().take(10_000).for_each(drop);
        let written: Vec<Vec<u8>> = expected.into_keys().collect();
        assert!(told(&db, 0).0 == written && told(follower.db(), 0).0 == written, "{name}: the changes");
        db.close().unwrap();
    }
}
