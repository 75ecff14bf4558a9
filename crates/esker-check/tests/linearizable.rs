//! The calls that several threads make on one key are linearizable.
//!
//! Each call takes a number when it begins, and one when it has returned. Then, for each key, an
//! order of its calls is looked for in which each answers what the calls before it leave, and in
//! which none comes before a call that had returned when it began. Every put writes another value,
//! and every operand is a bit of its own, so that a value tells which writes it is made of.
//!
//! A transaction conflicts only where it writes, and where another thread has written to one of its
//! keys meanwhile.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different; the interleaving is
//! up to the machine. The seed is that of the first database, and each other one has the next seed.

use calls::{Answer, Call, Event, Write, conflict_without_cause, describe, draw_call, draw_write};
use calls::{has_order, overlapping};
use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{Clock, Comparator, CompareAndSwap, Db, Error, Keyspace, KeyspaceOptions};
use esker::{MergeError, MergeOperator, Options, Ttl, WriteOptions};
use esker_check::random::Random;
use esker_check::settings::Settings;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;

#[path = "linearizable/calls.rs"]
mod calls;

/// Threads that call at once, and how often each does.
const THREADS: usize = 3;
const CALLS: usize = 8;
/// The most calls that are made of the keys before.
const MOST_BEFORE: usize = 3;
/// Databases, and histories in each, however long that takes.
const DATABASES: u64 = 24;
const HISTORIES: u64 = 25;

/// Lets another thread go on, in the middle of a call of the engine.
fn give_way(one_in: u64) {
    static TIMES: AtomicU64 = AtomicU64::new(0);
    if TIMES.fetch_add(1, Relaxed).is_multiple_of(one_in) {
        thread::yield_now();
    }
}

/// Adds as `UInt64Add` does, and takes its time.
struct SlowAdd;

impl MergeOperator for SlowAdd {
    fn name(&self) -> &str {
        "test.slow-add"
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        give_way(2);
        UInt64Add.full_merge(key, existing, operands)
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        UInt64Add.partial_merge(key, older, newer)
    }
}

/// The usual order, which takes its time.
struct SlowOrder;

impl Comparator for SlowOrder {
    fn name(&self) -> &str {
        "test.slow-order"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        give_way(16);
        a.cmp(b)
    }
}

/// A clock that stands still, and takes its time.
#[derive(Debug)]
struct SlowClock;

impl Clock for SlowClock {
    fn now_ms(&self) -> u64 {
        give_way(2);
        1_700_000_000_000
    }
}

/// Keyspaces whose calls go different ways through the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Operands without log are added in place.
    Counters,
    /// Values without log are put in place. No merges.
    Plain,
    /// Callbacks give way to other threads in the middle of calls, also under the writer lock.
    Slow,
    /// Every value is a large one.
    Large,
}

const SORTS: [Sort; 4] = [Sort::Counters, Sort::Plain, Sort::Slow, Sort::Large];

/// A database and a keyspace whose histories are looked at.
struct Scene {
    db: Db,
    keyspace: Keyspace,
    merges: bool,
    /// Whether ranges are deleted, and pairs loaded. Where a range was deleted, nothing is changed
    /// in place.
    has_ranges: bool,
    /// The number of the next beginning or end of a call.
    next: AtomicU64,
}

impl Scene {
    fn open(sort: Sort, background_threads: usize, has_ranges: bool) -> Scene {
        let options = Options::default()
            .env(Arc::new(MemEnv::new()))
            .background_threads(background_threads)
            .write_buffer_bytes(4 << 10)
            .wal_segment_bytes(16 << 10)
            .block_bytes(256)
            .target_file_bytes(4 << 10);
        let (options, settings) = match sort {
            Sort::Counters => (options, KeyspaceOptions::default().merge_operator(UInt64Add)),
            Sort::Plain => (options, KeyspaceOptions::default()),
            Sort::Slow => {
                let settings = KeyspaceOptions::default().merge_operator(SlowAdd).comparator(SlowOrder);
                (options.clock(Arc::new(SlowClock)), settings.ttl(Ttl::Enabled { default: None }))
            }
            Sort::Large => (options.min_blob_size(8), KeyspaceOptions::default().merge_operator(UInt64Add)),
        };
        let db = Db::open("/db", options).expect("a database in memory opens");
        let keyspace = db.keyspace("keys", settings).expect("a new keyspace");
        Scene { db, keyspace, merges: sort != Sort::Plain, has_ranges, next: AtomicU64::new(0) }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, SeqCst)
    }

    /// Moves everything to other places while the threads call.
    fn maintain(&self, mut random: Random) {
        // Operands above what a snapshot sees are kept apart.
        let held = random.percent(30).then(|| self.db.snapshot());
        for _ in 0..random.below(6) {
            match random.below(6) {
                0 | 1 => self.db.flush().expect("a flush"),
                2 => self.db.compact().expect("a compaction"),
                3 => drop(self.db.snapshot()),
                // Behind all keys. A few of them fill a memtable.
                _ => {
                    let filler = vec![7; random.between(200, 2000)];
                    self.keyspace.put(format!("z{}", random.below(40)), filler).expect("a put");
                }
            }
            thread::yield_now();
        }
        drop(held);
    }
}

fn value_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a value has eight bytes"))
}

/// A thread that calls.
struct Caller<'a> {
    scene: &'a Scene,
    keys: &'a [Vec<u8>],
    thread: usize,
    random: Random,
    /// What the last answer about each key was, which is what swaps expect.
    seen: Vec<Option<u64>>,
    events: Vec<Event>,
}

impl<'a> Caller<'a> {
    fn new(scene: &'a Scene, keys: &'a [Vec<u8>], thread: usize, random: Random) -> Caller<'a> {
        Caller { scene, keys, thread, random, seen: vec![None; keys.len()], events: Vec::new() }
    }

    /// Makes the call of that number.
    fn call(&mut self, number: usize) {
        match self.random.below(10) {
            0 => self.batch(number),
            1 | 2 => self.transaction(number),
            _ => {
                let key = self.random.below(self.keys.len());
                let call = draw_call(&mut self.random, self.seen[key], number, self.scene.merges);
                self.make(key, call);
            }
        }
    }

    /// Half of the writes are in no log.
    fn options(&mut self) -> WriteOptions {
        WriteOptions::new().disable_wal(self.random.percent(50))
    }

    fn make(&mut self, key: usize, call: Call) {
        let (options, way) = (self.options(), self.random.below(5));
        let begun = self.scene.number();
        let answer = self.answer(&self.keys[key], call, &options, way);
        let ended = self.scene.number();
        self.note(key, call, answer, (begun, ended));
    }

    fn note(&mut self, key: usize, call: Call, answer: Answer, (begun, ended): (u64, u64)) {
        self.events.push(Event { thread: self.thread, key, call, answer, begun, ended });
        self.seen[key] = match (call, answer) {
            (_, Answer::Value(value)) => value,
            (_, Answer::Committed { after, .. }) => after,
            (_, Answer::Conflict { before, .. }) => before,
            (_, Answer::Refused) => self.seen[key],
            (Call::Write(write), Answer::Done) => write.apply(self.seen[key]),
            (Call::CompareAndSwap { new, .. }, Answer::Done) => new,
            (_, Answer::Done) => self.seen[key],
        };
    }

    fn answer(&self, key: &[u8], call: Call, options: &WriteOptions, way: usize) -> Answer {
        let keyspace = &self.scene.keyspace;
        let found = match call {
            Call::Get => return Answer::Value(self.get(key, way)),
            Call::Write(write) => {
                self.write(key, write, options, way);
                return Answer::Done;
            }
            Call::MergeAndGet(operand) => keyspace.merge_and_get_with(key, operand.to_le_bytes(), options),
            Call::PutIfAbsent(value) => keyspace.put_if_absent_with(key, value.to_le_bytes(), options),
            Call::CompareAndSwap { expected, new } => {
                let (expected, new) = (expected.map(u64::to_le_bytes), new.map(u64::to_le_bytes));
                let (expected, new) = (expected.as_ref().map(|bytes| &bytes[..]), new.as_ref().map(|bytes| &bytes[..]));
                match keyspace.compare_and_swap_with(key, expected, new, options) {
                    Ok(CompareAndSwap::Swapped) => return Answer::Done,
                    Ok(CompareAndSwap::Unequal { current }) => Ok(current),
                    Err(error) => Err(error),
                }
            }
            Call::Take => keyspace.take_with(key, options),
            Call::Transaction(_) => unreachable!("transactions are made of several keys at once"),
        };
        let value = found.unwrap_or_else(|error| panic!("{call:x?}: {error}"));
        Answer::Value(value.map(|value| value_of(&value)))
    }

    fn get(&self, key: &[u8], way: usize) -> Option<u64> {
        let Scene { db, keyspace, .. } = self.scene;
        let found = match way {
            0 => db.snapshot().get(keyspace, key),
            1 => keyspace.range(key..=key).next().transpose().map(|pair| pair.map(|(_, value)| value)),
            2 => keyspace.multi_get([key]).pop().expect("an answer for each key"),
            _ => keyspace.get(key),
        };
        found.expect("a read").map(|value| value_of(&value))
    }

    fn write(&self, key: &[u8], write: Write, options: &WriteOptions, way: usize) {
        let keyspace = &self.scene.keyspace;
        let written = match write {
            Write::Put(value) if self.scene.has_ranges && way == 0 => {
                keyspace.ingest([(key, value.to_le_bytes())]).map(|_| ())
            }
            Write::Put(value) => keyspace.put_with(key, value.to_le_bytes(), options),
            Write::Delete if self.scene.has_ranges && way < 2 => keyspace.delete_range_with(key..=key, options),
            Write::Delete => keyspace.delete_with(key, options),
            Write::Merge(operand) => keyspace.merge_with(key, operand.to_le_bytes(), options),
        };
        written.unwrap_or_else(|error| panic!("{write:x?}: {error}"));
    }

    /// Some of the keys, each once: a batch with two operations on a key shows gets the first one
    /// before the second.
    fn some_keys(&mut self) -> Vec<usize> {
        let mut keys: Vec<usize> = (0..self.keys.len()).collect();
        self.random.shuffle(&mut keys);
        keys.truncate(self.random.between(1, self.keys.len()));
        keys
    }

    fn batch(&mut self, number: usize) {
        let (keys, options, merges) = (self.some_keys(), self.options(), self.scene.merges);
        let writes: Vec<(usize, Write)> =
            keys.into_iter().map(|key| (key, draw_write(&mut self.random, number, merges))).collect();
        let Scene { db, keyspace, .. } = self.scene;
        let begun = self.scene.number();
        let mut batch = db.batch();
        for &(key, write) in &writes {
            let key = &self.keys[key];
            let added = match write {
                Write::Put(value) => batch.put(keyspace, key, value.to_le_bytes()),
                Write::Delete => batch.delete(keyspace, key),
                Write::Merge(operand) => batch.merge(keyspace, key, operand.to_le_bytes()),
            };
            added.expect("an operation of a batch");
        }
        batch.commit_with(&options).expect("a commit of a batch");
        let ended = self.scene.number();
        for (key, write) in writes {
            self.note(key, Call::Write(write), Answer::Done, (begun, ended));
        }
    }

    /// One that reads each key, writes some and reads again, or one that only writes.
    fn transaction(&mut self, number: usize) {
        let (keys, options, merges) = (self.some_keys(), self.options(), self.scene.merges);
        let reads = self.random.percent(75);
        let draw = |key| {
            let writes = !reads || self.random.percent(70);
            (key, writes.then(|| draw_write(&mut self.random, number, merges)))
        };
        let writes: Vec<(usize, Option<Write>)> = keys.into_iter().map(draw).collect();
        let Scene { db, keyspace, .. } = self.scene;
        let begun = self.scene.number();
        let mut transaction = db.transaction();
        let mut seen = Vec::new();
        for &(key, write) in &writes {
            let key = &self.keys[key];
            let before = if reads { transaction.get(keyspace, key).expect("a read") } else { None };
            let added = match write {
                None => Ok(()),
                Some(Write::Put(value)) => transaction.put(keyspace, key, value.to_le_bytes()),
                Some(Write::Delete) => transaction.delete(keyspace, key),
                Some(Write::Merge(operand)) => transaction.merge(keyspace, key, operand.to_le_bytes()),
            };
            added.expect("a write of a transaction");
            // Here others come between.
            thread::yield_now();
            let after = if reads { transaction.get(keyspace, key).expect("a read") } else { None };
            seen.push((before.map(|value| value_of(&value)), after.map(|value| value_of(&value))));
        }
        let has_writes = writes.iter().any(|(_, write)| write.is_some());
        let committed = match transaction.commit_with(&options) {
            Ok(()) => true,
            Err(Error::Conflict { .. }) if has_writes => false,
            Err(error) => panic!("the commit of a transaction: {error}"),
        };
        let interval = (begun, self.scene.number());
        for ((key, write), (before, after)) in writes.into_iter().zip(seen) {
            let answer =
                if committed { Answer::Committed { before, after } } else { Answer::Conflict { before, after } };
            match (reads, write) {
                (true, _) => self.note(key, Call::Transaction(write), answer, interval),
                (false, Some(write)) => {
                    let answer = if committed { Answer::Done } else { Answer::Refused };
                    self.note(key, Call::Write(write), answer, interval);
                }
                (false, None) => unreachable!("it reads or writes each of its keys"),
            }
        }
    }
}

/// What was looked at.
#[derive(Debug, Default)]
struct Totals {
    histories: u64,
    calls: usize,
    overlapping: usize,
    swapped: usize,
    unequal: usize,
    committed: usize,
    conflicts: usize,
}

impl Totals {
    fn add(&mut self, events: &[Event]) {
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        self.calls += events.len();
        self.overlapping += overlapping(events);
        let is_swap = |event: &Event| matches!(event.call, Call::CompareAndSwap { .. });
        let swapped = events.iter().filter(|event| is_swap(event) && event.answer == Answer::Done).count();
        self.swapped += swapped;
        self.unequal += events.iter().filter(|event| is_swap(event)).count() - swapped;
        self.committed += count(|event| matches!(event.answer, Answer::Committed { .. }));
        self.conflicts += count(|event| matches!(event.answer, Answer::Conflict { .. } | Answer::Refused));
    }
}

/// Calls by one thread, then by several at once, and a get of each key behind them.
fn history(scene: &Scene, keys: &[Vec<u8>], seeds: impl Fn(usize) -> Random) -> Vec<Event> {
    let mut first = Caller::new(scene, keys, THREADS, seeds(THREADS));
    for number in 0..first.random.below(MOST_BEFORE + 1) {
        first.call(THREADS * CALLS + number);
    }
    match first.random.below(4) {
        0 => scene.db.flush().expect("a flush"),
        1 => scene.db.compact().expect("a compaction"),
        _ => {}
    }
    let ready = &AtomicUsize::new(0);
    let mut events = Vec::new();
    thread::scope(|scope| {
        let begin = |thread: usize| {
            let mut caller = Caller::new(scene, keys, thread, seeds(thread));
            scope.spawn(move || {
                // They begin together, or the first one is done when the last one is there.
                ready.fetch_add(1, SeqCst);
                while ready.load(SeqCst) < THREADS {
                    thread::yield_now();
                }
                (0..CALLS).for_each(|step| caller.call(caller.thread * CALLS + step));
                caller.events
            })
        };
        let callers: Vec<_> = (0..THREADS).map(begin).collect();
        scene.maintain(seeds(THREADS + 1));
        for caller in callers {
            events.extend(caller.join().expect("a thread ends without a panic"));
        }
    });
    (0..keys.len()).for_each(|key| first.make(key, Call::Get));
    events.extend(first.events);
    events
}

/// Says how to begin with the same database, when a thread of it or a check has failed.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if thread::panicking() {
            let seed = self.0;
            eprintln!("again: ESKER_CHECK_SEED={seed} cargo test -p esker-check --test linearizable");
        }
    }
}

/// A database with its histories. The seed says which way its calls go.
fn run(seed: u64, totals: &mut Totals) {
    let _repeat = Repeat(seed);
    let sort = SORTS[(seed % 4) as usize];
    let (background_threads, has_ranges) = ((seed / 4 % 2) as usize, seed / 8 % 2 == 1);
    let scene = Scene::open(sort, background_threads, has_ranges);
    let place = format!("seed {seed} ({sort:?}, {background_threads} background threads)");
    for number in 0..HISTORIES {
        let mut random = Random::derived(seed, &[number]);
        let count = if random.percent(50) { 1 } else { random.between(2, 3) };
        let keys: Vec<Vec<u8>> = (0..count).map(|key| format!("{number:04}-{key}").into_bytes()).collect();
        let events = history(&scene, &keys, |who| Random::derived(seed, &[number, who as u64]));
        totals.histories += 1;
        if let Some(conflict) = conflict_without_cause(&events) {
            panic!("{place}, history {number}: nobody is the cause of {conflict:x?} in\n{}", describe(&events));
        }
        for (key, name) in keys.iter().enumerate() {
            let own: Vec<Event> = events.iter().filter(|event| event.key == key).copied().collect();
            totals.add(&own);
            let name = String::from_utf8_lossy(name);
            assert!(has_order(&own), "{place}, key {name}: no order of\n{}", describe(&own));
        }
    }
    scene.db.close().expect("the database closes");
}

#[test]
fn the_calls_on_each_key_have_an_order() {
    let settings = Settings::from_environment(31, 5).at_least(DATABASES);
    println!("seed {}", settings.seed);
    let mut totals = Totals::default();
    for database in 0.. {
        if settings.enough(database) {
            break;
        }
        run(settings.seed.wrapping_add(database), &mut totals);
    }
    println!("{totals:?}");
    assert!(totals.histories >= DATABASES * HISTORIES);
    assert!(totals.overlapping > 0, "no call began while another one was under way: {totals:?}");
    let least = [totals.swapped, totals.unequal, totals.committed];
    assert!(least.iter().all(|&count| count > 0), "something was not met: {totals:?}");
}
