//! What the operations beyond put and get cost, each beside what a program would do without it.
//!
//! `cargo bench --package esker --bench features` prints microseconds per operation: the median of
//! five rounds, in each of which all of them take turns, with the least and the greatest; a word
//! behind the name chooses the rows that contain it. Databases are in a temporary directory, with
//! the log, and do not sync. Rows of the same group do the same work. What costs too little for it
//! is measured in pairs: two databases are open, short rounds take turns, and the ratio is that of
//! the times of each pair, the median with the quartiles.

use esker::merge::UInt64Add;
use esker::{
    ChangeRetention, Counters, Db, Keyspace, KeyspaceOptions, Options, ReverseBytewise, Ttl, TypedKeyspace,
    WriteOptions,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const ENTRIES: u64 = 200_000;
const HOUR: Duration = Duration::from_secs(3600);

/// A database in a directory of its own, which goes with it.
struct Scratch {
    directory: PathBuf,
    db: Option<Db>,
}

impl Scratch {
    fn new(options: Options) -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("esker-bench-features-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        let db = Db::open(&directory, options).expect("a database");
        Scratch { directory, db: Some(db) }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("until it is dropped")
    }

    fn keyspace(&self, options: KeyspaceOptions) -> Keyspace {
        self.db().keyspace("data", options).expect("a keyspace")
    }

    fn log_bytes(&self) -> u64 {
        self.db().stats().wal_bytes
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.db = None;
        std::fs::remove_dir_all(&self.directory).expect("it is there");
    }
}

fn with_ttl() -> KeyspaceOptions {
    KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })
}

/// The keys in no order, each once.
fn keys(entries: u64) -> impl Iterator<Item = [u8; 8]> {
    (0..entries).map(move |at| (at.wrapping_mul(7_919) % entries).to_be_bytes())
}

fn fill(keyspace: &Keyspace, entries: u64, value: &[u8]) {
    keys(entries).for_each(|key| keyspace.put(key, value).expect("put"));
}

/// Time per operation, and bytes of log per operation where they say something.
type Measured = (Duration, Option<u64>);

fn timed(scratch: &Scratch, operations: u64, work: impl FnOnce()) -> Measured {
    let (bytes, begin) = (scratch.log_bytes(), Instant::now());
    work();
    let passed = begin.elapsed();
    (passed / u32::try_from(operations).expect("few"), Some((scratch.log_bytes() - bytes) / operations))
}

/// The time that the caller of a drop waits, with so many entries in tables.
fn drop_of(entries: u64) -> Measured {
    let scratch = Scratch::new(Options::default());
    fill(&scratch.keyspace(KeyspaceOptions::default()), entries, &[7; 100]);
    scratch.db().compact().expect("compact");
    let begin = Instant::now();
    scratch.db().drop_keyspace("data").expect("drop");
    (begin.elapsed(), None)
}

/// A database with so many keyspaces beside one of 1,000 entries.
fn crowded(others: u64) -> Scratch {
    let scratch = Scratch::new(Options::default());
    for other in 0..others {
        scratch.db().keyspace(&format!("other{other}"), KeyspaceOptions::default()).expect("a keyspace");
    }
    fill(&scratch.keyspace(KeyspaceOptions::default()), 1_000, &[7; 100]);
    scratch.db().compact().expect("compact");
    scratch
}

fn drop_beside(others: u64) -> Measured {
    let scratch = crowded(others);
    let begin = Instant::now();
    scratch.db().drop_keyspace("data").expect("drop");
    (begin.elapsed(), None)
}

/// Settings of a keyspace are made durable like a drop.
fn set_beside(others: u64, set: fn(&Keyspace)) -> Measured {
    let scratch = crowded(others);
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    let begin = Instant::now();
    set(&keyspace);
    (begin.elapsed(), None)
}

fn rename(keyspace: &Keyspace) {
    keyspace.rename("renamed").expect("rename");
}

fn set_ttl(keyspace: &Keyspace) {
    keyspace.set_ttl(Ttl::Enabled { default: Some(HOUR) }).expect("set_ttl");
}

/// Numbers as keys, texts as values.
fn typed_written() -> Measured {
    let scratch = Scratch::new(Options::default());
    let typed: TypedKeyspace<u64, String> =
        TypedKeyspace::open(scratch.db(), "data", KeyspaceOptions::default()).expect("a keyspace");
    let value = "7".repeat(100);
    timed(&scratch, ENTRIES, || {
        keys(ENTRIES).for_each(|key| typed.put(u64::from_be_bytes(key), value.as_str()).expect("put"));
    })
}

/// Adds one to each of 100,000 counters in turn.
fn added(options: Options, add: fn(&Keyspace, &[u8])) -> Measured {
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(KeyspaceOptions::default().merge_operator(UInt64Add));
    let add_all = || keys(100_000).for_each(|key| add(&keyspace, &key));
    add_all();
    timed(&scratch, ENTRIES, || (0..2).for_each(|_| add_all()))
}

fn merge(keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge(key, 1u64.to_le_bytes()).expect("merge");
}

fn typed_added() -> Measured {
    let scratch = Scratch::new(Options::default());
    let counters: Counters<u64, u64> =
        Counters::open(scratch.db(), "data", KeyspaceOptions::default()).expect("a keyspace");
    let add_all = || keys(100_000).for_each(|key| counters.add(u64::from_be_bytes(key), 1).expect("add"));
    add_all();
    timed(&scratch, ENTRIES, || (0..2).for_each(|_| add_all()))
}

/// Puts while somebody watches the keyspace, and looks now and then.
fn watched() -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    let _watch = keyspace.watch("").expect("watch");
    timed(&scratch, ENTRIES, || fill(&keyspace, ENTRIES, &[7; 100]))
}

fn extended(value_bytes: usize, entries: u64, extend: fn(&Keyspace, &[u8])) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(with_ttl());
    fill(&keyspace, entries, &vec![7; value_bytes]);
    scratch.db().flush().expect("flush");
    timed(&scratch, entries, || keys(entries).for_each(|key| extend(&keyspace, &key)))
}

fn touch(keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.touch(key, HOUR).expect("touch"));
}

fn get_and_put(keyspace: &Keyspace, key: &[u8]) {
    let value = keyspace.get(key).expect("get").expect("it is there");
    keyspace.put_with(key, value, &WriteOptions::new().ttl(HOUR)).expect("put");
}

fn walked(value_bytes: usize, entries: u64, walk: fn(&Keyspace) -> usize) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    fill(&keyspace, entries, &vec![7; value_bytes]);
    scratch.db().compact().expect("compact");
    assert_eq!(walk(&keyspace) as u64, entries);
    let begin = Instant::now();
    assert_eq!(walk(&keyspace) as u64, entries);
    (begin.elapsed() / u32::try_from(entries).expect("few"), None)
}

fn entries(keyspace: &Keyspace) -> usize {
    keyspace.iter().map(|entry| entry.expect("entry")).filter(|(key, value)| key.len() < value.len()).count()
}

fn only_keys(keyspace: &Keyspace) -> usize {
    keyspace.iter().keys().map(|key| key.expect("key")).filter(|key| !key.is_empty()).count()
}

fn counted(keyspace: &Keyspace) -> usize {
    keyspace.count(..).expect("count") as usize
}

fn written(options: Options, keyspace: KeyspaceOptions) -> Measured {
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(keyspace);
    timed(&scratch, ENTRIES, || fill(&keyspace, ENTRIES, &[7; 100]))
}

fn read(options: Options) -> Measured {
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    fill(&keyspace, ENTRIES, &[7; 100]);
    scratch.db().compact().expect("compact");
    let get = |key: [u8; 8]| assert!(keyspace.get(key).expect("get").is_some());
    keys(ENTRIES).for_each(get);
    let begin = Instant::now();
    keys(ENTRIES).for_each(get);
    (begin.elapsed() / u32::try_from(ENTRIES).expect("few"), None)
}

/// Reads all changes of as many puts.
fn changes() -> Measured {
    let scratch = Scratch::new(Options::default().keep_changes(ChangeRetention::Bytes(1 << 30)));
    fill(&scratch.keyspace(KeyspaceOptions::default()), ENTRIES, &[7; 100]);
    let begin = Instant::now();
    let batches = scratch.db().changes(1).expect("changes").inspect(|batch| assert!(batch.is_ok())).count() as u64;
    assert!(batches >= ENTRIES, "{batches}");
    (begin.elapsed() / u32::try_from(ENTRIES).expect("few"), None)
}

const PAIRS: usize = 200;
const IN_A_PAIR: u64 = 50_000;

/// How much longer an operation takes with latencies measured: the quartiles of the ratios.
fn latencies_in_pairs(operation: fn(&Keyspace, &[u8])) -> [f64; 3] {
    let scratches = [false, true].map(|on| Scratch::new(Options::default().latency_histograms(on)));
    let counting = || KeyspaceOptions::default().merge_operator(UInt64Add);
    let keyspaces = scratches.each_ref().map(|scratch| scratch.keyspace(counting()));
    for (scratch, keyspace) in scratches.iter().zip(&keyspaces) {
        fill(keyspace, IN_A_PAIR, &[7; 100]);
        scratch.db().compact().expect("compact");
    }
    let round = |which: usize| {
        let begin = Instant::now();
        keys(IN_A_PAIR).for_each(|key| operation(&keyspaces[which], &key));
        begin.elapsed().as_secs_f64()
    };
    let pair = |number: usize| match number % 2 {
        0 => (round(0), round(1)),
        _ => {
            let with = round(1);
            (round(0), with)
        }
    };
    let mut ratios: Vec<f64> = (0..PAIRS).map(pair).map(|(without, with)| with / without).collect();
    ratios.sort_by(f64::total_cmp);
    [PAIRS / 4, PAIRS / 2, PAIRS * 3 / 4].map(|at| ratios[at])
}

type Pair = (&'static str, fn() -> [f64; 3]);

const IN_PAIRS: &[Pair] = &[
    ("get, latencies measured, in pairs", || {
        latencies_in_pairs(|keyspace, key| assert!(keyspace.get(key).expect("get").is_some()))
    }),
    ("put, latencies measured, in pairs", || {
        latencies_in_pairs(|keyspace, key| keyspace.put(key, [7; 100]).expect("put"))
    }),
    ("merge, latencies measured, in pairs", || {
        // Below the first entries, which are no numbers.
        latencies_in_pairs(|keyspace, key| merge(keyspace, &key[1..]))
    }),
];

type Row = (&'static str, fn() -> Measured);

const ROWS: &[Row] = &[
    ("drop_keyspace of 1,000 entries", || drop_of(1_000)),
    ("drop_keyspace of 1,000,000 entries", || drop_of(1_000_000)),
    ("drop_keyspace beside 1,000 others", || drop_beside(1_000)),
    ("drop_keyspace beside 10,000 others", || drop_beside(10_000)),
    ("rename", || set_beside(0, rename)),
    ("rename beside 1,000 keyspaces", || set_beside(1_000, rename)),
    ("set_ttl", || set_beside(0, set_ttl)),
    ("touch, 100 bytes", || extended(100, ENTRIES, touch)),
    ("get and put, 100 bytes", || extended(100, ENTRIES, get_and_put)),
    ("touch, 100,000 bytes", || extended(100_000, 2_000, touch)),
    ("get and put, 100,000 bytes", || extended(100_000, 2_000, get_and_put)),
    ("all entries, 100 bytes", || walked(100, ENTRIES, entries)),
    ("all keys, 100 bytes", || walked(100, ENTRIES, only_keys)),
    ("count, 100 bytes", || walked(100, ENTRIES, counted)),
    ("all entries, 100,000 bytes", || walked(100_000, 2_000, entries)),
    ("all keys, 100,000 bytes", || walked(100_000, 2_000, only_keys)),
    ("put", || written(Options::default(), KeyspaceOptions::default())),
    ("put, changes kept", || {
        written(Options::default().keep_changes(ChangeRetention::Bytes(1 << 30)), KeyspaceOptions::default())
    }),
    ("put, latencies measured", || written(Options::default().latency_histograms(true), KeyspaceOptions::default())),
    ("put, reverse order", || {
        let options = Options::default().comparator(std::sync::Arc::new(ReverseBytewise));
        written(options, KeyspaceOptions::default().comparator(ReverseBytewise))
    }),
    ("put, typed", typed_written),
    ("put, watched", watched),
    ("merge", || added(Options::default(), merge)),
    ("merge, latencies measured", || added(Options::default().latency_histograms(true), merge)),
    ("add, typed counter", typed_added),
    ("change read", changes),
    ("get", || read(Options::default())),
    ("get, latencies measured", || read(Options::default().latency_histograms(true))),
];

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let rows: Vec<&Row> = ROWS.iter().filter(|(name, _)| name.contains(&wanted)).collect();
    let mut taken: Vec<Vec<Measured>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, measure), taken) in rows.iter().zip(&mut taken) {
            taken.push(measure());
        }
    }
    println!(
        "{:<36} {:>9} {:>9} {:>9} {:>12}",
        "microseconds per operation", "median", "least", "greatest", "log, bytes"
    );
    for ((name, _), taken) in rows.iter().zip(&mut taken) {
        taken.sort();
        let micros = |at: usize| taken[at].0.as_nanos() as f64 / 1000.0;
        let bytes = taken[ROUNDS / 2].1.map_or(String::new(), |bytes| bytes.to_string());
        println!("{name:<36} {:9.3} {:9.3} {:9.3} {bytes:>12}", micros(ROUNDS / 2), micros(0), micros(ROUNDS - 1));
    }
    for (name, measure) in IN_PAIRS.iter().filter(|(name, _)| name.contains(&wanted)) {
        let [low, middle, high] = measure();
        println!("{name:<36} {middle:.3} times the time without, {low:.3} to {high:.3}");
    }
}
