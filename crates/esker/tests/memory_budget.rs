//! The memory of the process stays within the budget, whatever is written and read.
//!
//! What is measured is `VmRSS`: all that the system counts to the process. Its peak may be 1.15
//! times the budget, which leaves 15 % to the allocator, plus [`CONSTANT_BYTES`]. Tables are read
//! by system call: pages of mapped ones would be counted too, though the system can take them back.
//!
//! Each budget is tried in a process of its own, because memory that was given back to the
//! allocator stays with the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use esker::internals::Random;
use esker::merge::UInt64Add;
use esker::{Db, Keyspace, KeyspaceOptions, Options, ReadMode, WriteOptions};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What does not grow with the budget: the program's code and data (about 8 MiB), the two log
/// segments that are mapped at a time (a sixteenth of the budget each, at most 16 MiB), the stacks
/// of five threads (about 0.5 MiB), a record buffer of up to 1 MiB for each writing thread, and
/// what reading ahead for a merge of ten runs takes (2.5 MiB).
const CONSTANT_BYTES: u64 = 24 << 20;

/// Bytes written, as a multiple of the budget.
const DATA_FACTOR: u64 = 4;

const BUDGET: &str = "ESKER_TEST_MEMORY_BUDGET_MIB";

/// Deletes of ranges that would together take almost twice the budget of 32 MiB.
const RANGE_DELETES: usize = 400_000;

#[test]
fn a_random_load_stays_within_the_budget() {
    in_processes("a_random_load_stays_within_the_budget", &["32", "64", "128"], measure);
}

#[test]
fn range_deletes_in_many_keyspaces_stay_within_the_budget() {
    in_processes("range_deletes_in_many_keyspaces_stay_within_the_budget", &["32"], measure_range_deletes);
}

/// Measures with each budget in another process, which runs this test alone.
fn in_processes(test: &str, budgets: &[&str], measure: fn(u64)) {
    if let Ok(budget) = std::env::var(BUDGET) {
        return measure(budget.parse().unwrap());
    }
    for budget in budgets {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test, "--nocapture"]).env(BUDGET, budget);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        println!("{}", text.lines().filter(|line| line.contains("MiB")).collect::<Vec<_>>().join("\n"));
        assert!(output.status.success(), "budget of {budget} MiB:\n{text}");
    }
}

#[test]
fn memory_of_flushed_memtables_goes_back_when_no_writes_come() {
    let directory: PathBuf = std::env::temp_dir().join(format!("esker-memory-at-rest-{}", std::process::id()));
    std::fs::remove_dir_all(&directory).ok();
    let db = Db::open(&directory, Options::default().write_buffer_bytes(1 << 20)).unwrap();
    let keyspace = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    // Several memtables, whose memory is kept for the next ones.
    (0..60_000_u32).for_each(|number| keyspace.put(number.to_be_bytes(), [7; 100]).unwrap());
    db.flush().unwrap();
    let begun = Instant::now();
    while esker::unused_memory_bytes() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(300), "{} bytes are kept", esker::unused_memory_bytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    // All of its handles: with one left the database stays open, and works on in its directory.
    drop((keyspace, db));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The most that was seen, in bytes.
#[derive(Default)]
struct Peak {
    resident: u64,
    anonymous: u64,
    counted: u64,
}

impl Peak {
    fn look(&mut self, db: &Db) {
        self.resident = self.resident.max(status("VmRSS"));
        self.anonymous = self.anonymous.max(status("RssAnon"));
        self.counted = self.counted.max(db.stats().memory.total_bytes());
        std::thread::sleep(Duration::from_millis(2));
    }

    fn check(&self, budget: u64) {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let allowed = budget * 115 / 100 + CONSTANT_BYTES;
        println!(
            "budget {} MiB: peak {:.1} MiB of {:.1} MiB, RssAnon {:.1} MiB, counted at most {:.1} MiB",
            mib(budget),
            mib(self.resident),
            mib(allowed),
            mib(self.anonymous),
            mib(self.counted)
        );
        assert!(self.resident <= allowed, "{} bytes are more than {allowed}", self.resident);
        assert!(self.counted <= budget, "the parts add up to {} bytes", self.counted);
    }
}

fn open_with_budget(budget_mib: u64) -> (PathBuf, Db) {
    let directory: PathBuf = std::env::temp_dir().join(format!("esker-memory-budget-{}", std::process::id()));
    std::fs::remove_dir_all(&directory).ok();
    let options = Options::default().memory_budget_bytes((budget_mib as usize) << 20).read_mode(ReadMode::Pread);
    let db = Db::open(&directory, options).unwrap();
    (directory, db)
}

fn measure(budget_mib: u64) {
    let seed = 1;
    let budget = budget_mib << 20;
    let (directory, db) = open_with_budget(budget_mib);
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut peak = Peak::default();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                let (db, written) = (&db, &written);
                scope.spawn(move || write(db, Random::new(seed * 1000 + thread), budget * DATA_FACTOR, written))
            })
            .collect();
        let reader = scope.spawn(|| read(&db, Random::new(seed), &done));
        while writers.iter().any(|writer| !writer.is_finished()) {
            peak.look(&db);
        }
        done.store(true, Relaxed);
        reader.join().unwrap();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let stats = db.stats();
    println!("seed {seed}, {} MiB in tables, {} stalls", stats.table_bytes >> 20, stats.stalls);
    println!("{} compactions, memory at the end: {}", stats.compactions, stats.memory);
    assert!(stats.table_bytes > 2 * budget, "there must be more data than memory");
    peak.check(budget);
    drop(db);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Short ranges all over the keys of twenty keyspaces in turn, without log: no segments of it make
/// a memtable immutable that is not full.
fn measure_range_deletes(budget_mib: u64) {
    let (directory, db) = open_with_budget(budget_mib);
    let keyspace = |number: u32| db.keyspace(&format!("k{number}"), KeyspaceOptions::default()).unwrap();
    let keyspaces: Vec<Keyspace> = (0..20).map(keyspace).collect();
    let mut peak = Peak::default();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut random, unlogged) = (Random::new(1), WriteOptions::new().disable_wal(true));
            for keyspace in keyspaces.iter().cycle().take(RANGE_DELETES) {
                let start = random.next() >> 1;
                keyspace.delete_range_with(start.to_be_bytes()..(start + 1).to_be_bytes(), &unlogged).unwrap();
            }
        });
        while !writer.is_finished() {
            peak.look(&db);
        }
        writer.join().unwrap();
    });
    println!("memory at the end, in MiB: {}", db.stats().memory);
    peak.check(budget_mib << 20);
    drop((keyspaces, db));
    std::fs::remove_dir_all(&directory).unwrap();
}

fn open(db: &Db) -> [Keyspace; 4] {
    let counters = KeyspaceOptions::default().merge_operator(UInt64Add);
    let plain = |name: &str| db.keyspace(name, KeyspaceOptions::default()).unwrap();
    [plain("documents"), plain("events"), db.keyspace("hits", counters).unwrap(), plain("settings")]
}

/// Puts, merges and deletes in several keyspaces until all threads together have written so many
/// bytes.
fn write(db: &Db, mut random: Random, bytes: u64, written: &AtomicU64) {
    let [documents, events, hits, settings] = open(db);
    while written.load(Relaxed) < bytes {
        let key = random.next().to_be_bytes();
        let mut size = key.len();
        match random.below(100) {
            0..40 => {
                let length = 200 + random.below(1000) as usize;
                size += length;
                documents.put(key, random.noise(length)).unwrap();
            }
            40..70 => {
                size += 24;
                events.put(key, random.noise(24)).unwrap();
            }
            70..98 => {
                size += 8;
                hits.merge(key, 1u64.to_le_bytes()).unwrap();
            }
            98 => settings.put(&key[..1], random.noise(64)).unwrap(),
            _ => documents.delete(key).unwrap(),
        }
        written.fetch_add(size as u64, Relaxed);
    }
}

/// Gets whose results are held for a while, and scans.
fn read(db: &Db, mut random: Random, done: &AtomicBool) {
    let keyspaces = open(db);
    let mut held = std::collections::VecDeque::new();
    while !done.load(Relaxed) {
        let keyspace = &keyspaces[random.below(4) as usize];
        let start = random.next().to_be_bytes();
        for pair in keyspace.range(&start[..]..).take(20) {
            let (key, _) = pair.unwrap();
            for _ in 0..3 {
                held.extend(keyspace.get(&key).unwrap());
            }
        }
        for pair in keyspace.range(..&start[..]).rev().take(5) {
            pair.unwrap();
        }
        while held.len() > 200 {
            held.pop_front();
        }
    }
}
