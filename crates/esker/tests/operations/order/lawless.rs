//! Comparators that break the laws of an order: their keyspace may answer anything, and everything
//! else must be as if they were not there.

use super::By;
use crate::common::{DIRECTORY, Machine, all};
use esker::{CompactionStyle, Comparator, Db, Error, Keyspace, KeyspaceOptions, Options, merge::UInt64Add};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that looks random, another one at each call.
fn random() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(7);
    let state = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
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
    static CALLS: AtomicU64 = AtomicU64::new(0);
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
                // Turns round every few hundred calls.
                if (CALLS.fetch_add(1, Relaxed) / 300).is_multiple_of(2) { a.cmp(b) } else { b.cmp(a) }
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

struct Run {
    machine: Machine,
    options: Options,
    db: Db,
    lawless: Keyspace,
    lawful: Keyspace,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    written: usize,
    context: String,
}

fn key(random: u64) -> Vec<u8> {
    format!("{:x}", random % 400).into_bytes()
}

impl Run {
    fn new(name: &str, comparator: Arc<dyn Comparator>, style: CompactionStyle) -> Run {
        let machine = Machine::new();
        let options =
            machine.options().comparator(comparator.clone()).write_buffer_bytes(8 << 10).target_file_bytes(512);
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let settings = KeyspaceOptions::default().compaction_style(style).merge_operator(UInt64Add);
        let lawless = db.keyspace("lawless", settings.clone().shared_comparator(comparator)).unwrap();
        let lawful = db.keyspace("lawful", settings).unwrap();
        let context = format!("{name}, {style:?}");
        Run { machine, options, db, lawless, lawful, model: BTreeMap::new(), written: 0, context }
    }

    fn write(&mut self) {
        let (key, other) = (key(random()), key(random()));
        let value = random().to_le_bytes();
        self.written += 4;
        let mut batch = self.db.batch();
        batch.put(&self.lawful, &key, value).unwrap();
        batch.put(&self.lawless, &key, value).unwrap();
        batch.put(&self.lawless, &other, value).unwrap();
        batch.commit().unwrap();
        self.model.insert(key.clone(), value.to_vec());
        match random() % 12 {
            0 | 1 => self.lawless.delete(&other).unwrap(),
            2 => self.lawless.delete_range((Bound::Included(&key), Bound::Excluded(&other))).unwrap(),
            3 => self.lawless.delete_range((Bound::Excluded(&key), Bound::Included(&other))).unwrap(),
            4 => self.lawless.merge(&other, 7u64.to_le_bytes()).unwrap(),
            5 => drop(tolerated(self.lawless.take(&other))),
            _ => {}
        }
    }

    /// All scans come to an end, and none hands out more than was ever written.
    fn scan(&self) {
        let most = 2 * self.written + 10;
        let bounds = (key(random()), key(random()));
        let ends = |count: usize| assert!(count <= most, "{}: {count} of {} writes", self.context, self.written);
        ends(self.lawless.iter().take(most + 1).count());
        ends(self.lawless.iter().rev().take(most + 1).count());
        ends(self.lawless.range(&bounds.0..&bounds.1).take(most + 1).count());
        ends(self.lawless.range(&bounds.0..=&bounds.1).rev().take(most + 1).count());
        let mut iter = self.lawless.iter();
        let mut count = 0;
        while count <= most && (if count.is_multiple_of(3) { iter.next_back() } else { iter.next() }).is_some() {
            count += 1;
        }
        ends(count);
        let mut cursor = self.lawless.cursor().unwrap();
        for step in 0..50 {
            tolerated(match step % 7 {
                0 => cursor.seek(key(random())),
                1..=3 => cursor.next(),
                4 => cursor.seek_for_prev(key(random())),
                _ => cursor.prev(),
            });
        }
        tolerated(self.lawless.count(..));
        tolerated(self.lawless.first());
        tolerated(self.lawless.last());
        tolerated(self.lawless.approximate_size(&bounds.0..&bounds.1));
        for _ in 0..20 {
            tolerated(self.lawless.get(key(random())));
        }
    }

    fn transaction(&mut self) {
        let mut transaction = self.db.transaction();
        for _ in 0..6 {
            transaction.put(&self.lawless, key(random()), "").unwrap();
        }
        transaction.delete_range(&self.lawless, key(random())..key(random())).unwrap();
        let most = 2 * self.written + 20;
        assert!(transaction.iter(&self.lawless).take(most + 1).count() <= most, "{}", self.context);
        assert!(transaction.range(&self.lawless, key(random())..).rev().take(most + 1).count() <= most);
        tolerated(transaction.get(&self.lawless, key(random())));
        if random().is_multiple_of(2) {
            self.lawless.put(key(random()), "beside").unwrap();
        }
        self.written += 8;
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
                self.db.checkpoint(&target).unwrap();
                let copy = Db::open(&target, self.options.clone()).unwrap();
                assert_eq!(all(&copy.existing_keyspace("lawful").unwrap()), self.model, "{}", self.context);
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
        assert_eq!(all(&self.lawful), self.model, "{}", self.context);
        Db::open_read_only(DIRECTORY, self.options.clone()).unwrap();
    }
}

fn run(name: &str, comparator: Arc<dyn Comparator>, style: CompactionStyle) {
    let mut run = Run::new(name, comparator, style);
    for step in 0..400 {
        match step % 40 {
            0 => run.reopen(),
            10 => run.scan(),
            20 => run.transaction(),
            7 | 17 | 27 | 37 => run.maintain(),
            _ => (0..5).for_each(|_| run.write()),
        }
    }
    run.reopen();
    run.db.compact().unwrap();
    run.scan();
    let health = run.db.health();
    assert!(health.writable, "{}: {health:?}", run.context);
    assert_eq!(all(&run.lawful), run.model, "{}", run.context);
    let faults = run.db.stats().keyspaces[1].comparator_faults;
    assert!(faults > 0 || name == "circle", "{}: nothing was noticed", run.context);
    // It can still be got rid of.
    run.db.drop_keyspace("lawless").unwrap();
    run.db.compact().unwrap();
    run.db.verify().unwrap();
}

#[test]
fn a_lawless_comparator_harms_its_own_keyspace_only() {
    for style in [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered] {
        for (name, comparator) in comparators() {
            run(name, comparator, style);
        }
    }
}

#[test]
fn with_a_background_thread_too() {
    for (_, comparator) in comparators() {
        let machine = Machine::new();
        let options = machine.options().background_threads(2).comparator(Arc::clone(&comparator));
        let db = Db::open(DIRECTORY, options).unwrap();
        let lawless = db.keyspace("lawless", KeyspaceOptions::default().shared_comparator(comparator)).unwrap();
        for number in 0..3000u32 {
            lawless.put(key(random()), vec![7; 64]).unwrap();
            if number.is_multiple_of(500) {
                lawless.delete_range(key(random())..key(random())).unwrap();
                lawless.iter().take(10_000).for_each(drop);
            }
        }
        db.wait_idle().unwrap();
        db.compact().unwrap();
        db.close().unwrap();
    }
}
