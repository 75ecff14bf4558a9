//! What an operator that takes long costs those who write beside it: one thread merges into one key
//! without a pause, another puts into another keyspace.
//!
//! `cargo bench --package esker --bench operators` prints microseconds of a put as its caller waits
//! for it: the mean, the 99th percentile and the longest, each the median of five rounds in which
//! all rows take turns. The last rows say what a look-up before each merge would cost: one thread,
//! a key in the active memtable, the mean of a get and of a merge with a built-in operator. The
//! database is in a temporary directory, with the log, and does not sync.

use esker::merge::UInt64Add;
use esker::{Db, KeyspaceOptions, MergeError, MergeOperator, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SECONDS_A_ROUND: u64 = 2;
const KEYS: u64 = 10_000;
const LOOKED_UP: u32 = 1_000_000;

/// Keeps the last operand, after so long. An operator that `folds` combines two operands at once.
struct Slow {
    work: Duration,
    folds: bool,
}

impl Slow {
    /// At work on the processor: a sleep would give it to the other thread.
    fn work(&self) {
        let begin = Instant::now();
        while begin.elapsed() < self.work {
            std::hint::spin_loop();
        }
    }
}

impl MergeOperator for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        self.work();
        Ok(operands.last().map(|operand| operand.to_vec()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.folds.then(|| {
            self.work();
            newer.to_vec()
        })
    }
}

/// A directory of its own, which goes with it.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("esker-bench-operators-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it is there");
    }
}

/// Microseconds: the mean, the 99th percentile, the longest.
type Waits = [f64; 3];

fn put_beside(operator: Option<Slow>) -> Waits {
    let scratch = Scratch::new();
    let db = Db::open(&scratch.0, Options::default()).expect("a database");
    let data = db.keyspace("data", KeyspaceOptions::default()).expect("a keyspace");
    let (merges, options) = (operator.is_some(), KeyspaceOptions::default());
    let options = operator.map_or_else(|| options.clone(), |operator| options.clone().merge_operator(operator));
    let merged = db.keyspace("merged", options).expect("a keyspace");
    let is_over = AtomicBool::new(false);
    let mut waits = Vec::new();
    std::thread::scope(|scope| {
        if merges {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    merged.merge("key", [7; 8]).expect("merge");
                }
            });
        }
        let begin = Instant::now();
        for key in (0..KEYS).cycle() {
            let called = Instant::now();
            data.put(key.to_be_bytes(), [7; 100]).expect("put");
            waits.push(called.elapsed().as_secs_f64() * 1e6);
            if begin.elapsed() >= Duration::from_secs(SECONDS_A_ROUND) {
                break;
            }
        }
        is_over.store(true, Relaxed);
    });
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    waits.sort_by(f64::total_cmp);
    [mean, waits[waits.len() * 99 / 100], waits[waits.len() - 1]]
}

/// The mean of an operation on keys in the active memtable.
fn alone(operation: fn(&esker::Keyspace, &[u8])) -> Waits {
    let scratch = Scratch::new();
    let db = Db::open(&scratch.0, Options::default()).expect("a database");
    let data = db.keyspace("data", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("a keyspace");
    let keys: Vec<[u8; 8]> = (0..KEYS).map(|at| (at.wrapping_mul(7_919) % KEYS).to_be_bytes()).collect();
    keys.iter().for_each(|key| data.merge(key, 1u64.to_le_bytes()).expect("merge"));
    let begin = Instant::now();
    keys.iter().cycle().take(LOOKED_UP as usize).for_each(|key| operation(&data, key));
    [begin.elapsed().as_secs_f64() * 1e6 / f64::from(LOOKED_UP), f64::NAN, f64::NAN]
}

type Row = (&'static str, fn() -> Waits);

const fn slow(work_micros: u64, folds: bool) -> Slow {
    Slow { work: Duration::from_micros(work_micros), folds }
}

const ROWS: &[Row] = &[
    ("put, beside nobody", || put_beside(None)),
    ("put, merges that take nothing", || put_beside(Some(slow(0, true)))),
    ("put, merges of 10 us", || put_beside(Some(slow(10, true)))),
    ("put, merges of 100 us", || put_beside(Some(slow(100, true)))),
    ("put, merges of 1 ms", || put_beside(Some(slow(1_000, true)))),
    ("put, merges of 1 ms kept apart", || put_beside(Some(slow(1_000, false)))),
    ("get, alone", || alone(|data, key| assert!(data.get(key).expect("get").is_some()))),
    ("merge, built in, alone", || alone(|data, key| data.merge(key, 1u64.to_le_bytes()).expect("merge"))),
];

fn main() {
    let mut taken: Vec<Vec<Waits>> = ROWS.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, measure), taken) in ROWS.iter().zip(&mut taken) {
            taken.push(measure());
        }
    }
    println!("{:<34} {:>10} {:>10} {:>10} {:>22}", "microseconds", "mean", "99 %", "longest", "means of the rounds");
    for ((name, _), taken) in ROWS.iter().zip(&taken) {
        let sorted = |at: usize| {
            let mut figures: Vec<f64> = taken.iter().map(|waits| waits[at]).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let (means, middle) = (sorted(0), ROUNDS / 2);
        let spread = format!("{:.3} to {:.3}", means[0], means[ROUNDS - 1]);
        println!(
            "{name:<34} {:10.3} {:10.3} {:10.1} {spread:>22}",
            means[middle],
            sorted(1)[middle],
            sorted(2)[middle]
        );
    }
}
