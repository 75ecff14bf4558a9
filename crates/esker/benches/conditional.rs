//! What conditional writes cost, beside the transaction that does the same: on one key that all
//! threads want, and on many.
//!
//! `cargo bench --package esker --bench conditional` prints microseconds per operation: the median
//! of five rounds, in each of which all of them take turns, with the least and the greatest. The
//! database is in a temporary directory, with the log, and does not sync.

use esker::merge::UInt64Add;
use esker::{CompareAndSwap, Db, Keyspace, KeyspaceOptions, Options};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const OPERATIONS: u64 = 200_000;
const MANY: u64 = 100_000;

type Step = fn(&Db, &Keyspace, &[u8]);

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().expect("eight bytes")))
}

fn merge(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge(key, 1u64.to_le_bytes()).expect("merge");
}

fn merge_and_get(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge_and_get(key, 1u64.to_le_bytes()).expect("merge");
}

fn compare_and_swap(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    let mut current = keyspace.get(key).expect("get");
    loop {
        let next = (number(current.as_deref()) + 1).to_le_bytes();
        match keyspace.compare_and_swap(key, current.as_deref(), Some(&next)).expect("swap") {
            CompareAndSwap::Swapped => return,
            CompareAndSwap::Unequal { current: other } => current = other,
        }
    }
}

fn transaction(db: &Db, keyspace: &Keyspace, key: &[u8]) {
    let add = |transaction: &mut esker::Transaction| -> esker::Result<()> {
        let next = number(transaction.get(keyspace, key)?.as_deref()) + 1;
        transaction.put(keyspace, key, next.to_le_bytes())
    };
    while let Err(error) = db.transact(10, add) {
        assert!(error.is_retryable(), "{error}");
    }
}

fn put_if_absent_of_a_present_key(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.put_if_absent(key, 1u64.to_le_bytes()).expect("put").is_some());
}

fn take_and_put_if_absent(_: &Db, keyspace: &Keyspace, key: &[u8]) {
    keyspace.take(key).expect("take");
    keyspace.put_if_absent(key, 1u64.to_le_bytes()).expect("put");
}

const STEPS: [(&str, Step); 6] = [
    ("merge", merge),
    ("merge_and_get", merge_and_get),
    ("get, compare_and_swap", compare_and_swap),
    ("transaction: get, put", transaction),
    ("put_if_absent, present", put_if_absent_of_a_present_key),
    ("take, put_if_absent", take_and_put_if_absent),
];

fn measure(step: Step, threads: u64, keys: u64) -> Duration {
    let directory = std::env::temp_dir().join(format!("esker-bench-conditional-{}", std::process::id()));
    let db = Db::open(&directory, Options::default()).expect("a database");
    let keyspace = db.keyspace("counters", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace");
    for key in 0..keys {
        keyspace.put(key.to_be_bytes(), 1u64.to_le_bytes()).expect("put");
    }
    let each = OPERATIONS / threads;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, keyspace) = (&db, &keyspace);
            scope.spawn(move || {
                let mut state = thread + 1;
                for _ in 0..each {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    step(db, keyspace, &((state >> 33) % keys).to_be_bytes());
                }
            });
        }
    });
    let passed = begin.elapsed();
    drop((keyspace, db));
    std::fs::remove_dir_all(&directory).expect("it is there");
    passed / u32::try_from(each * threads).expect("few")
}

fn main() {
    for keys in [1, MANY] {
        for threads in [1, 2, 10] {
            println!("{keys} keys, {threads} threads");
            let mut taken = STEPS.map(|_| Vec::new());
            for _ in 0..ROUNDS {
                for ((_, step), taken) in STEPS.iter().zip(&mut taken) {
                    taken.push(measure(*step, threads, keys));
                }
            }
            for ((name, _), taken) in STEPS.iter().zip(&mut taken) {
                taken.sort();
                let micros = |at: usize| taken[at].as_nanos() as f64 / 1000.0;
                println!("  {name:<24} {:7.3}  ({:.3} to {:.3})", micros(ROUNDS / 2), micros(0), micros(ROUNDS - 1));
            }
        }
    }
}
