//! What the operations beyond put and get cost, each beside what a program would do without it.
//!
//! `cargo bench --package esker --bench features` prints microseconds per operation: the median of
//! five rounds, in each of which all of them take turns, with the least and the greatest; a word
//! behind the name chooses the rows that contain it, or with `=` before it the one that it is.
//! Databases are in a temporary directory, with the log, and do not sync, unless the call always
//! does: drops, settings and checkpoints wait for the device of `TMPDIR`. Rows of the same group
//! do the same work. What costs too little for it is measured in pairs: two databases are open,
//! short rounds take turns, and the ratio is that of the times of each pair, the median with the
//! quartiles.
use esker::merge::{Max, UInt64Add};
use esker::{
    ChangeRetention, CheckpointMode, Compression, Counters, Db, Keyspace, KeyspaceOptions, Options, ReverseBytewise,
    Ttl, TypedKeyspace, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
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

fn counters() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(UInt64Add)
}

/// What is not counted any more expires.
fn expiring_counters() -> KeyspaceOptions {
    counters().ttl(Ttl::Enabled { default: Some(HOUR) })
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

/// Closed databases with so many keyspaces, which all rounds use: each keyspace was made with a
/// manifest of all before it, and many take long.
static CROWDS: Mutex<BTreeMap<u64, Scratch>> = Mutex::new(BTreeMap::new());

fn crowd(keyspaces: u64) -> Scratch {
    let mut scratch = Scratch::new(Options::default());
    for number in 0..keyspaces {
        scratch.db().keyspace(&format!("other{number}"), KeyspaceOptions::default()).expect("a keyspace");
    }
    scratch.db.take().expect("it is open").close().expect("close");
    scratch
}

/// The time of a call on a keyspace of 1,000 entries beside so many others.
fn beside(others: u64, call: fn(&Db, &Keyspace)) -> Measured {
    let mut crowds = CROWDS.lock().expect("no row has panicked");
    let scratch = crowds.entry(others).or_insert_with(|| crowd(others));
    let db = Db::open(&scratch.directory, Options::default()).expect("a database");
    let keyspace = db.keyspace("data", KeyspaceOptions::default()).expect("a keyspace");
    fill(&keyspace, 1_000, &[7; 100]);
    db.compact().expect("compact");
    let begin = Instant::now();
    call(&db, &keyspace);
    let passed = begin.elapsed();
    // The next round is to find the others alone, whatever became of this one.
    for name in db.keyspaces().iter().filter(|name| !name.starts_with("other")) {
        db.drop_keyspace(name).expect("drop");
    }
    db.close().expect("close");
    (passed, None)
}

fn drop_data(db: &Db, _: &Keyspace) {
    db.drop_keyspace("data").expect("drop");
}

fn rename(_: &Db, keyspace: &Keyspace) {
    keyspace.rename("renamed").expect("rename");
}

fn set_ttl(_: &Db, keyspace: &Keyspace) {
    keyspace.set_ttl(Ttl::Enabled { default: Some(HOUR) }).expect("set_ttl");
}

fn set_merge_operator(_: &Db, keyspace: &Keyspace) {
    keyspace.set_merge_operator(Max).expect("set_merge_operator");
}

fn compact(_: &Db, keyspace: &Keyspace) {
    keyspace.compact().expect("compact");
}

/// Where the merge operands of a keyspace are, besides a put of each key in tables.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    None,
    InMemory,
    InTables,
}

/// The time of a call on a keyspace with many entries, which may be operands, one for each key.
fn with_data(options: KeyspaceOptions, operands: Operands, call: fn(&Db, &Keyspace)) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(options);
    fill(&keyspace, ENTRIES, &1u64.to_le_bytes());
    scratch.db().compact().expect("compact");
    if operands != Operands::None {
        keys(ENTRIES).for_each(|key| merge(&keyspace, &key));
    }
    if operands == Operands::InTables {
        scratch.db().flush().expect("flush");
    }
    let begin = Instant::now();
    call(scratch.db(), &keyspace);
    (begin.elapsed(), None)
}

/// The time of a checkpoint of so many entries of 1,000 bytes, in tables of 4 MiB that are not
/// compressed.
fn checkpoint(entries: u64, mode: CheckpointMode) -> Measured {
    let scratch = Scratch::new(Options::default().compression(Compression::None).target_file_bytes(4 << 20));
    fill(&scratch.keyspace(KeyspaceOptions::default()), entries, &[7; 1_000]);
    scratch.db().compact().expect("compact");
    let target = scratch.directory.with_extension("checkpoint");
    let begin = Instant::now();
    scratch.db().checkpoint_with(&target, mode).expect("checkpoint");
    let passed = begin.elapsed();
    std::fs::remove_dir_all(&target).expect("it is there");
    (passed, None)
}

const GROUPS: u64 = 10_000;
const IN_A_GROUP: u64 = 10;

/// The keys of a group share their first seven bytes.
fn member(group: u64, number: u64) -> [u8; 8] {
    ((group << 8) | number).to_be_bytes()
}

/// Writes once to each of so many groups. The keys of all groups are in a table.
fn over_groups(groups: u64, write: fn(&Keyspace, u64)) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    for group in 0..GROUPS {
        (0..IN_A_GROUP).for_each(|number| keyspace.put(member(group, number), [7; 100]).expect("put"));
    }
    scratch.db().compact().expect("compact");
    timed(&scratch, groups, || keys(groups).for_each(|group| write(&keyspace, u64::from_be_bytes(group))))
}

fn put_one(keyspace: &Keyspace, group: u64) {
    keyspace.put(member(group, 0), [7; 100]).expect("put");
}

fn delete_one(keyspace: &Keyspace, group: u64) {
    keyspace.delete(member(group, 0)).expect("delete");
}

fn delete_range_of_one(keyspace: &Keyspace, group: u64) {
    keyspace.delete_range(member(group, 0)..member(group, 1)).expect("delete_range");
}

fn delete_range(keyspace: &Keyspace, group: u64) {
    keyspace.delete_range(member(group, 0)..member(group, IN_A_GROUP)).expect("delete_range");
}

fn delete_prefix(keyspace: &Keyspace, group: u64) {
    keyspace.delete_prefix(&member(group, 0)[..7]).expect("delete_prefix");
}

const KEYSPACES: u64 = 100;

/// Writes once to each of many keyspaces that have so many entries in tables.
fn in_each_keyspace(entries: u64, write: fn(&Keyspace)) -> Measured {
    let scratch = Scratch::new(Options::default());
    let open = |number: u64| scratch.db().keyspace(&format!("data{number}"), KeyspaceOptions::default());
    let keyspaces: Vec<Keyspace> = (0..KEYSPACES).map(|number| open(number).expect("a keyspace")).collect();
    keyspaces.iter().for_each(|keyspace| fill(keyspace, entries, &[7; 100]));
    scratch.db().compact().expect("compact");
    timed(&scratch, KEYSPACES, || keyspaces.iter().for_each(write))
}

fn put_any(keyspace: &Keyspace) {
    keyspace.put([0; 8], [7; 100]).expect("put");
}

fn clear(keyspace: &Keyspace) {
    keyspace.clear().expect("clear");
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
fn added(options: Options, keyspace: KeyspaceOptions, add: fn(&Keyspace, &[u8])) -> Measured {
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(keyspace);
    let add_all = || keys(100_000).for_each(|key| add(&keyspace, &key));
    add_all();
    timed(&scratch, ENTRIES, || (0..2).for_each(|_| add_all()))
}

fn merge(keyspace: &Keyspace, key: &[u8]) {
    keyspace.merge(key, 1u64.to_le_bytes()).expect("merge");
}

/// As `added`, so many in each batch.
fn added_in_batches(keyspace: KeyspaceOptions, in_a_batch: usize) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(keyspace);
    let mut batch = scratch.db().batch();
    let mut add_all = || {
        for key in keys(100_000) {
            batch.merge(&keyspace, key, 1u64.to_le_bytes()).expect("merge");
            if batch.len() == in_a_batch {
                batch.commit_and_clear(&WriteOptions::new()).expect("commit");
            }
        }
    };
    add_all();
    timed(&scratch, ENTRIES, || (0..2).for_each(|_| add_all()))
}

fn typed_added() -> Measured {
    let scratch = Scratch::new(Options::default());
    let counters: Counters<u64, u64> =
        Counters::open(scratch.db(), "data", KeyspaceOptions::default()).expect("a keyspace");
    let add_all = || keys(100_000).for_each(|key| counters.add(u64::from_be_bytes(key), 1).expect("add"));
    add_all();
    timed(&scratch, ENTRIES, || (0..2).for_each(|_| add_all()))
}

/// Tables of a hundred entries, one behind the other.
fn flushed(options: Options) -> Measured {
    const FLUSHES: u64 = 100;
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    timed(&scratch, FLUSHES, || {
        for _ in 0..FLUSHES {
            fill(&keyspace, 100, &[7; 100]);
            scratch.db().flush().expect("flush");
        }
    })
}

fn synced(options: Options) -> Measured {
    const PUTS: u64 = 500;
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    let sync = WriteOptions::new().sync(true);
    timed(&scratch, PUTS, || keys(PUTS).for_each(|key| keyspace.put_with(key, [7; 100], &sync).expect("put")))
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

/// Reads once for each of so many keys, which are in one table or more.
fn read(options: Options, value_bytes: usize, entries: u64, read: fn(&Keyspace, &[u8])) -> Measured {
    let scratch = Scratch::new(options);
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    fill(&keyspace, entries, &vec![7; value_bytes]);
    scratch.db().compact().expect("compact");
    let read_all = || keys(entries).for_each(|key| read(&keyspace, &key));
    read_all();
    let begin = Instant::now();
    read_all();
    (begin.elapsed() / u32::try_from(entries).expect("few"), None)
}

fn get(keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.get(key).expect("get").is_some());
}

fn contains_key(keyspace: &Keyspace, key: &[u8]) {
    assert!(keyspace.contains_key(key).expect("contains_key"));
}

fn first_of_range(keyspace: &Keyspace, key: &[u8]) {
    keyspace.range(key..).next().expect("it is there").expect("entry");
}

fn first(keyspace: &Keyspace, _: &[u8]) {
    assert!(keyspace.first().expect("first").is_some());
}

fn last(keyspace: &Keyspace, _: &[u8]) {
    assert!(keyspace.last().expect("last").is_some());
}

const POPS: u64 = 10_000;

/// Removes the least key again and again, of entries that are in a table.
fn popped(pop: fn(&Db, &Keyspace)) -> Measured {
    let scratch = Scratch::new(Options::default());
    let keyspace = scratch.keyspace(KeyspaceOptions::default());
    fill(&keyspace, ENTRIES, &[7; 100]);
    scratch.db().compact().expect("compact");
    timed(&scratch, POPS, || (0..POPS).for_each(|_| pop(scratch.db(), &keyspace)))
}

fn pop_first(_: &Db, keyspace: &Keyspace) {
    assert!(keyspace.pop_first().expect("pop_first").is_some());
}

fn first_and_delete(_: &Db, keyspace: &Keyspace) {
    let (key, _) = keyspace.first().expect("first").expect("there are more");
    keyspace.delete(key).expect("delete");
}

fn first_and_delete_in_transaction(db: &Db, keyspace: &Keyspace) {
    let mut transaction = db.transaction();
    let (key, _) = transaction.first(keyspace).expect("first").expect("there are more");
    transaction.delete(keyspace, key).expect("delete");
    transaction.commit().expect("nobody else writes");
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
    let keyspaces = scratches.each_ref().map(|scratch| scratch.keyspace(counters()));
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
    ("drop_keyspace beside 1,000 others", || beside(1_000, drop_data)),
    ("drop_keyspace beside 10,000 others", || beside(10_000, drop_data)),
    ("rename", || beside(0, rename)),
    ("rename beside 1,000 keyspaces", || beside(1_000, rename)),
    ("set_ttl", || beside(0, set_ttl)),
    ("set_ttl, 200,000 entries", || with_data(KeyspaceOptions::default(), Operands::None, set_ttl)),
    ("set_ttl, operands in tables", || with_data(counters(), Operands::InTables, set_ttl)),
    ("set_merge_operator, none before", || with_data(KeyspaceOptions::default(), Operands::None, set_merge_operator)),
    ("set_merge_operator, no operands", || with_data(counters(), Operands::None, set_merge_operator)),
    ("set_merge_operator, operands in memory", || with_data(counters(), Operands::InMemory, set_merge_operator)),
    ("set_merge_operator, operands in tables", || with_data(counters(), Operands::InTables, set_merge_operator)),
    ("compact, operands in memory", || with_data(counters(), Operands::InMemory, compact)),
    ("compact, operands in tables", || with_data(counters(), Operands::InTables, compact)),
    ("checkpoint by links, 10 MB", || checkpoint(10_000, CheckpointMode::Link)),
    ("checkpoint by links, 100 MB", || checkpoint(100_000, CheckpointMode::Link)),
    ("checkpoint by copy, 10 MB", || checkpoint(10_000, CheckpointMode::Copy)),
    ("checkpoint by copy, 100 MB", || checkpoint(100_000, CheckpointMode::Copy)),
    ("touch, 100 bytes", || extended(100, ENTRIES, touch)),
    ("get and put, 100 bytes", || extended(100, ENTRIES, get_and_put)),
    ("touch, 100,000 bytes", || extended(100_000, 2_000, touch)),
    ("get and put, 100,000 bytes", || extended(100_000, 2_000, get_and_put)),
    ("all entries, 100 bytes", || walked(100, ENTRIES, entries)),
    ("all keys, 100 bytes", || walked(100, ENTRIES, only_keys)),
    ("count, 100 bytes", || walked(100, ENTRIES, counted)),
    ("all entries, 100,000 bytes", || walked(100_000, 2_000, entries)),
    ("all keys, 100,000 bytes", || walked(100_000, 2_000, only_keys)),
    ("put over a table, 10,000 times", || over_groups(GROUPS, put_one)),
    ("delete over a table, 10,000 times", || over_groups(GROUPS, delete_one)),
    ("delete_range of 1 key, 10,000 times", || over_groups(GROUPS, delete_range_of_one)),
    ("delete_range of 10 keys, 10,000 times", || over_groups(GROUPS, delete_range)),
    ("delete_prefix of 10 keys, 10,000 times", || over_groups(GROUPS, delete_prefix)),
    ("put over a table, 1,000 times", || over_groups(1_000, put_one)),
    ("delete_range of 10 keys, 1,000 times", || over_groups(1_000, delete_range)),
    ("delete_prefix of 10 keys, 1,000 times", || over_groups(1_000, delete_prefix)),
    ("put, once a keyspace", || in_each_keyspace(20, put_any)),
    ("clear of 20 entries, once a keyspace", || in_each_keyspace(20, clear)),
    ("clear of 2,000 entries, once a keyspace", || in_each_keyspace(2_000, clear)),
    ("put", || written(Options::default(), KeyspaceOptions::default())),
    ("put, synced", || synced(Options::default())),
    ("put, synced, latencies measured", || synced(Options::default().latency_histograms(true))),
    ("100 puts, flush", || flushed(Options::default())),
    ("100 puts, flush, latencies measured", || flushed(Options::default().latency_histograms(true))),
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
    ("merge", || added(Options::default(), counters(), merge)),
    ("merge, latencies measured", || added(Options::default().latency_histograms(true), counters(), merge)),
    ("merge, time to live", || added(Options::default(), expiring_counters(), merge)),
    ("merge, batches of 1", || added_in_batches(counters(), 1)),
    ("merge, batches of 1, time to live", || added_in_batches(expiring_counters(), 1)),
    ("merge, batches of 100", || added_in_batches(counters(), 100)),
    ("merge, batches of 100, time to live", || added_in_batches(expiring_counters(), 100)),
    ("add, typed counter", typed_added),
    ("change read", changes),
    ("get", || read(Options::default(), 100, ENTRIES, get)),
    ("get, latencies measured", || read(Options::default().latency_histograms(true), 100, ENTRIES, get)),
    ("contains_key", || read(Options::default(), 100, ENTRIES, contains_key)),
    ("get, 100,000 bytes", || read(Options::default(), 100_000, 500, get)),
    ("contains_key, 100,000 bytes", || read(Options::default(), 100_000, 500, contains_key)),
    ("first of a range", || read(Options::default(), 100, 50_000, first_of_range)),
    ("first", || read(Options::default(), 100, 50_000, first)),
    ("last", || read(Options::default(), 100, 50_000, last)),
    ("pop_first", || popped(pop_first)),
    ("transaction: first, delete", || popped(first_and_delete_in_transaction)),
    ("first, delete", || popped(first_and_delete)),
];

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let is_wanted = |name: &str| wanted.strip_prefix('=').map_or(name.contains(&wanted), |whole| name == whole);
    let rows: Vec<&Row> = ROWS.iter().filter(|(name, _)| is_wanted(name)).collect();
    let mut taken: Vec<Vec<Measured>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, measure), taken) in rows.iter().zip(&mut taken) {
            taken.push(measure());
        }
    }
    println!(
        "{:<40} {:>9} {:>9} {:>9} {:>12}",
        "microseconds per operation", "median", "least", "greatest", "log, bytes"
    );
    for ((name, _), taken) in rows.iter().zip(&mut taken) {
        taken.sort();
        let micros = |at: usize| taken[at].0.as_nanos() as f64 / 1000.0;
        let bytes = taken[ROUNDS / 2].1.map_or(String::new(), |bytes| bytes.to_string());
        println!("{name:<40} {:9.3} {:9.3} {:9.3} {bytes:>12}", micros(ROUNDS / 2), micros(0), micros(ROUNDS - 1));
    }
    for (name, measure) in IN_PAIRS.iter().filter(|(name, _)| is_wanted(name)) {
        let [low, middle, high] = measure();
        println!("{name:<40} {middle:.3} times the time without, {low:.3} to {high:.3}");
    }
    CROWDS.lock().expect("no row has panicked").clear();
}
