//! What conditional writes cost, beside the transaction that does the same: on one key that all
//! threads want, and on many; and with options, beside a put with the same options.
//!
//! `cargo bench --package esker --bench conditional` prints microseconds per operation: the median
//! of five rounds, in each of which all of them take turns, with the least and the greatest; a word
//! behind the name chooses the tables whose title contains it. The database is in a temporary
//! directory, with the log, and does not sync but where the title says so. `TMPDIR` has to be on a
//! device for that: a file system in memory syncs for nothing.
//!
//! A `take` leaves no value, and the next one of that key would be declined. So where keys are
//! chosen again and again, it comes behind a put, which has a row of its own; as a `put_if_absent`
//! comes behind a delete. They are alone where each of many keys is chosen once.

use esker::merge::UInt64Add;
use esker::{CompareAndSwap, Db, Keyspace, KeyspaceOptions, Options, Transaction, Ttl, WriteOptions};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const OPERATIONS: u64 = 200_000;
const MANY: u64 = 100_000;
/// Fewer where each waits for the device.
const SYNCED: u64 = 500;
const HOUR: Duration = Duration::from_secs(3600);
const ONE: [u8; 8] = 1u64.to_le_bytes();

type Step = fn(&Db, &Keyspace, &[u8]);

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().expect("eight bytes")))
}

/// Until it is committed.
fn transact(db: &Db, body: impl Fn(&mut Transaction) -> esker::Result<()>) {
    while let Err(error) = db.transact::<(), esker::Error>(10, &body) {
        assert!(error.is_retryable(), "{error}");
    }
}

fn put(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.put(key, ONE).expect("put");
}

fn delete(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.delete(key).expect("delete");
}

fn merge(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge(key, ONE).expect("merge");
}

fn merge_and_get(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge_and_get(key, ONE).expect("merge");
}

fn get_and_compare_and_swap(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    let mut current = keyspace.get(key).expect("get");
    loop {
        let next = (number(current.as_deref()) + 1).to_le_bytes();
        match keyspace.compare_and_swap(key, current.as_deref(), Some(&next)).expect("swap") {
            CompareAndSwap::Swapped => return,
            CompareAndSwap::Unequal { current: other } => current = other,
        }
    }
}

fn get_and_put_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    transact(db, |transaction| {
        let next = number(transaction.get(keyspace, key)?.as_deref()) + 1;
        transaction.put(keyspace, key, next.to_le_bytes())
    });
}

/// The new value is the old one: whatever the other threads do, the expected value is known.
fn compare_and_swap(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.compare_and_swap(key, Some(&ONE), Some(&ONE)).expect("swap").is_swapped());
}

fn compare_and_swap_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    transact(db, |transaction| {
        assert_eq!(transaction.get(keyspace, key)?.as_deref(), Some(&ONE[..]));
        transaction.put(keyspace, key, ONE)
    });
}

fn put_if_absent(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.put_if_absent(key, ONE).expect("put");
}

fn put_if_absent_of_a_present_key(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.put_if_absent(key, ONE).expect("put").is_some());
}

fn put_if_absent_of_an_absent_key(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.put_if_absent(key, ONE).expect("put").is_none());
}

fn put_if_absent_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    transact(db, |transaction| match transaction.get(keyspace, key)? {
        Some(_) => Ok(()),
        None => transaction.put(keyspace, key, ONE),
    });
}

fn take(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.take(key).expect("take");
}

fn take_of_a_present_key(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.take(key).expect("take").is_some());
}

fn take_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    transact(db, |transaction| match transaction.get(keyspace, key)? {
        Some(_) => transaction.delete(keyspace, key),
        None => Ok(()),
    });
}

fn take_and_put_if_absent(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    take(db, keyspace, key);
    put_if_absent(db, keyspace, key);
}

fn put_and_take(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    put(db, keyspace, key);
    take(db, keyspace, key);
}

fn put_and_take_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    put(db, keyspace, key);
    take_in_transaction(db, keyspace, key);
}

fn delete_and_put_if_absent(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    delete(db, keyspace, key);
    put_if_absent(db, keyspace, key);
}

fn delete_and_put_if_absent_in_transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    delete(db, keyspace, key);
    put_if_absent_in_transaction(db, keyspace, key);
}

/// Of keys that are chosen again and again.
const STEPS: &[(&str, Step)] = &[
    ("merge", merge),
    ("merge_and_get", merge_and_get),
    ("get, compare_and_swap", get_and_compare_and_swap),
    ("transaction: get, put", get_and_put_in_transaction),
    ("compare_and_swap, value known", compare_and_swap),
    ("transaction: get, compare, put", compare_and_swap_in_transaction),
    ("put_if_absent, present", put_if_absent_of_a_present_key),
    ("take, put_if_absent", take_and_put_if_absent),
    ("put", put),
    ("put, take", put_and_take),
    ("put, transaction: get, delete", put_and_take_in_transaction),
    ("delete", delete),
    ("delete, put_if_absent", delete_and_put_if_absent),
    ("delete, transaction: get, put", delete_and_put_if_absent_in_transaction),
];

/// Of keys without a value, each chosen once.
const OF_ABSENT_KEYS: &[(&str, Step)] = &[
    ("put", put),
    ("put_if_absent", put_if_absent_of_an_absent_key),
    ("transaction: get, put", put_if_absent_in_transaction),
];

/// Of keys with a value, each chosen once.
const OF_PRESENT_KEYS: &[(&str, Step)] =
    &[("delete", delete), ("take", take_of_a_present_key), ("transaction: get, delete", take_in_transaction)];

type StepWith = fn(&Keyspace, &[u8], &WriteOptions);

fn put_with(keyspace: &Keyspace, key: &[u8], options: &WriteOptions) {
    keyspace.put_with(key, ONE, options).expect("put");
}

fn put_if_absent_with(keyspace: &Keyspace, key: &[u8], options: &WriteOptions) {
    assert!(keyspace.put_if_absent_with(key, ONE, options).expect("put").is_none());
}

fn compare_and_swap_with(keyspace: &Keyspace, key: &[u8], options: &WriteOptions) {
    assert!(keyspace.compare_and_swap_with(key, Some(&ONE), Some(&ONE), options).expect("swap").is_swapped());
}

fn merge_and_get_with(keyspace: &Keyspace, key: &[u8], options: &WriteOptions) {
    assert!(keyspace.merge_and_get_with(key, ONE, options).expect("merge").is_some());
}

/// Of keys without a value, each chosen once.
const WITH_OPTIONS_OF_ABSENT_KEYS: &[(&str, StepWith)] = &[("put", put_with), ("put_if_absent", put_if_absent_with)];

/// Of keys with a value, each chosen once.
const WITH_OPTIONS_OF_PRESENT_KEYS: &[(&str, StepWith)] =
    &[("put", put_with), ("compare_and_swap", compare_and_swap_with), ("merge_and_get", merge_and_get_with)];

/// Options of a keyspace and of the writes to it.
struct WithOptions {
    title: &'static str,
    keyspace: KeyspaceOptions,
    write: WriteOptions,
    operations: u64,
}

fn counters() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(UInt64Add)
}

fn with_options() -> [WithOptions; 4] {
    let expiring = |default: Option<Duration>| counters().ttl(Ttl::Enabled { default });
    let (plain, operations) = (WriteOptions::new(), MANY);
    [
        WithOptions { title: "no options", keyspace: counters(), write: plain, operations },
        WithOptions { title: "time to live by default", keyspace: expiring(Some(HOUR)), write: plain, operations },
        WithOptions { title: "time to live in the call", keyspace: expiring(None), write: plain.ttl(HOUR), operations },
        WithOptions { title: "synced", keyspace: counters(), write: plain.sync(true), operations: SYNCED },
    ]
}

/// The keys that the threads of a round choose.
#[derive(Clone, Copy)]
struct Choice {
    keys: u64,
    threads: u64,
    /// Whether each key is chosen once, and no other thread chooses it. Otherwise each thread
    /// chooses at random.
    each_once: bool,
}

impl Choice {
    /// Of all threads together.
    fn operations(self) -> u64 {
        if self.each_once { self.keys } else { OPERATIONS }
    }

    /// Does it with each key that this thread chooses.
    fn go_through(self, thread: u64, operation: impl Fn(&[u8])) {
        let mut state = thread + 1;
        for at in 0..self.operations() / self.threads {
            let key = if self.each_once {
                // In no order.
                (at * self.threads + thread).wrapping_mul(7_919) % self.keys
            } else {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % self.keys
            };
            operation(&key.to_be_bytes());
        }
    }
}

/// Works in a new keyspace, in which so many keys have a value.
fn in_keyspace(
    options: KeyspaceOptions,
    present: u64,
    write: &WriteOptions,
    work: impl FnOnce(&Db, &Keyspace) -> Duration,
) -> Duration {
    let directory = std::env::temp_dir().join(format!("esker-bench-conditional-{}", std::process::id()));
    let db = Db::open(&directory, Options::default()).expect("a database");
    let keyspace = db.keyspace("counters", options).expect("a keyspace");
    for key in 0..present {
        keyspace.put_with(key.to_be_bytes(), ONE, write).expect("put");
    }
    let passed = work(&db, &keyspace);
    drop((keyspace, db));
    std::fs::remove_dir_all(&directory).expect("it is there");
    passed
}

/// Time per operation, of all threads together.
fn measure(step: Step, choice: Choice, are_present: bool) -> Duration {
    let present = if are_present { choice.keys } else { 0 };
    let passed = in_keyspace(counters(), present, &WriteOptions::new(), |db, keyspace| {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..choice.threads {
                scope.spawn(move || choice.go_through(thread, |key| step(db, keyspace, key)));
            }
        });
        begin.elapsed()
    });
    passed / u32::try_from(choice.operations()).expect("few")
}

/// Time per operation, of one thread that chooses each key once.
fn measure_with(step: StepWith, with: &WithOptions, are_present: bool) -> Duration {
    let choice = Choice { keys: with.operations, threads: 1, each_once: true };
    let present = if are_present { choice.keys } else { 0 };
    let passed = in_keyspace(with.keyspace.clone(), present, &with.write.sync(false), |db, keyspace| {
        // What was put before is no part of the first sync.
        db.sync().expect("sync");
        let begin = Instant::now();
        choice.go_through(0, |key| step(keyspace, key, &with.write));
        begin.elapsed()
    });
    passed / u32::try_from(choice.operations()).expect("few")
}

/// Prints the table, if its title contains the word.
fn print<S: Copy>(wanted: &str, title: &str, rows: &[(&str, S)], measure: impl Fn(S) -> Duration) {
    if !title.contains(wanted) {
        return;
    }
    println!("{title}");
    let mut taken: Vec<Vec<Duration>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, step), taken) in rows.iter().zip(&mut taken) {
            taken.push(measure(*step));
        }
    }
    for ((name, _), taken) in rows.iter().zip(&mut taken) {
        taken.sort();
        let micros = |at: usize| taken[at].as_nanos() as f64 / 1000.0;
        println!("  {name:<32} {:9.3}  ({:.3} to {:.3})", micros(ROUNDS / 2), micros(0), micros(ROUNDS - 1));
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for keys in [1, MANY] {
        for threads in [1, 2, 10] {
            let title = format!("{keys} keys, {threads} threads");
            let choice = Choice { keys, threads, each_once: false };
            print(&wanted, &title, STEPS, |step| measure(step, choice, true));
        }
    }
    for threads in [1, 2, 10] {
        let choice = Choice { keys: MANY, threads, each_once: true };
        for (what, are_present, rows) in [("without", false, OF_ABSENT_KEYS), ("with", true, OF_PRESENT_KEYS)] {
            let title = format!("{MANY} keys {what} a value, each once, {threads} threads");
            print(&wanted, &title, rows, |step| measure(step, choice, are_present));
        }
    }
    for with in with_options() {
        let kinds = [("without", false, WITH_OPTIONS_OF_ABSENT_KEYS), ("with", true, WITH_OPTIONS_OF_PRESENT_KEYS)];
        for (what, are_present, rows) in kinds {
            let title = format!("{}, {} keys {what} a value, each once, 1 thread", with.title, with.operations);
            print(&wanted, &title, rows, |step| measure_with(step, &with, are_present));
        }
    }
}
