//! The calls that several threads make on one key are linearizable.
//!
//! Each call takes a number when it begins, and one when it has returned. Then, for each key, an
//! order of its calls is looked for in which each answers what the calls before it leave, and in
//! which none comes before a call that had returned when it began. Every put writes another value,
//! and every operand is a bit of its own, so that a value tells which writes it is made of.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different; the interleaving is
//! up to the machine.

use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{Clock, Comparator, CompareAndSwap, Db, Error, Keyspace, KeyspaceOptions};
use esker::{MergeError, MergeOperator, Options, Ttl, WriteOptions};
use esker_check::random::Random;
use esker_check::settings::Settings;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;

/// Threads that call at once, and how often each does.
const THREADS: usize = 3;
const CALLS: usize = 8;
/// The most calls that are made of the keys before.
const MOST_BEFORE: usize = 3;
/// Databases, and histories in each, however long that takes.
const DATABASES: u64 = 24;
const HISTORIES: u64 = 25;

/// A write that says nothing of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Put(u64),
    Delete,
    Merge(u64),
}

impl Write {
    fn apply(self, value: Option<u64>) -> Option<u64> {
        match self {
            Write::Put(new) => Some(new),
            Write::Delete => None,
            Write::Merge(operand) => Some(value.unwrap_or(0).wrapping_add(operand)),
        }
    }
}

/// What a call does with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Get,
    Write(Write),
    MergeAndGet(u64),
    PutIfAbsent(u64),
    CompareAndSwap {
        expected: Option<u64>,
        new: Option<u64>,
    },
    Take,
    /// Reads, writes and reads again in a transaction.
    Transaction(Option<Write>),
}

/// What a call says of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Value(Option<u64>),
    Committed {
        before: Option<u64>,
        after: Option<u64>,
    },
    /// Nothing was written; what the transaction read was there when it began.
    Conflict {
        before: Option<u64>,
        after: Option<u64>,
    },
}

/// The value of one key, when one call comes after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Register(Option<u64>);

impl SequentialSpec for Register {
    type Op = Call;
    type Ret = Answer;

    fn invoke(&mut self, call: &Call) -> Answer {
        let before = self.0;
        match *call {
            Call::Get => Answer::Value(before),
            Call::Write(write) => {
                self.0 = write.apply(before);
                Answer::Done
            }
            Call::MergeAndGet(operand) => {
                self.0 = Write::Merge(operand).apply(before);
                Answer::Value(self.0)
            }
            Call::PutIfAbsent(value) => {
                self.0 = before.or(Some(value));
                Answer::Value(before)
            }
            Call::CompareAndSwap { expected, new } if expected == before => {
                self.0 = new;
                Answer::Done
            }
            Call::CompareAndSwap { .. } => Answer::Value(before),
            Call::Take => {
                self.0 = None;
                Answer::Value(before)
            }
            Call::Transaction(write) => {
                self.0 = write.map_or(before, |write| write.apply(before));
                Answer::Committed { before, after: self.0 }
            }
        }
    }

    fn is_valid_step(&mut self, call: &Call, answer: &Answer) -> bool {
        if let (Call::Transaction(write), Answer::Conflict { before, after }) = (call, answer) {
            let own = write.map_or(self.0, |write| write.apply(self.0));
            return (*before, *after) == (self.0, own);
        }
        self.invoke(call) == *answer
    }
}

/// A call on one key, between the numbers with which it began and returned.
#[derive(Clone, Copy, Debug)]
struct Event {
    thread: usize,
    key: usize,
    call: Call,
    answer: Answer,
    begun: u64,
    ended: u64,
}

/// Whether there is an order of these calls on one key, which nobody has written before.
///
/// The calls that are done and the value decide what may follow, so that no pair of these is tried
/// twice, as in decision 39: the tester of `stateright` would not end where many calls overlap.
fn has_order(events: &[Event]) -> bool {
    assert!(events.len() < 64, "a bit for each call");
    let all = (1u64 << events.len()) - 1;
    let (mut seen, mut open) = (HashSet::new(), vec![(0u64, Register(None))]);
    while let Some((done, register)) = open.pop() {
        if done == all {
            return true;
        }
        let left: Vec<usize> = (0..events.len()).filter(|index| done & (1u64 << index) == 0).collect();
        let first_end = left.iter().map(|&index| events[index].ended).min().unwrap_or(u64::MAX);
        for &index in left.iter().filter(|index| events[**index].begun < first_end) {
            let Event { call, answer, .. } = &events[index];
            let mut next = (done | (1u64 << index), register);
            if next.1.is_valid_step(call, answer) && seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// Values in hexadecimal: the bits of the operands below, the number of the put above.
fn describe(events: &[Event]) -> String {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| event.begun);
    let mut text = String::new();
    for Event { thread, call, answer, begun, ended, .. } in sorted {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {begun:>4} to {ended:>4}, thread {thread}: {call:x?} was {answer:x?}");
    }
    text
}

/// How many of the calls began while another one was under way: one after the other they say
/// little.
fn overlapping(events: &[Event]) -> usize {
    let is_within = |event: &&Event| events.iter().any(|other| other.begun < event.begun && event.begun < other.ended);
    events.iter().filter(is_within).count()
}

fn draw_write(random: &mut Random, number: usize, merges: bool) -> Write {
    match random.below(4) {
        0 => Write::Delete,
        1 | 2 if merges => Write::Merge(1 << number),
        _ => Write::Put((number as u64 + 1) << 32),
    }
}

/// A call on a key that was seen to have a value. The number is that of the call in its history.
fn draw_call(random: &mut Random, seen: Option<u64>, number: usize, merges: bool) -> Call {
    let value = (number as u64 + 1) << 32;
    match random.below(12) {
        0..=2 => Call::Get,
        3 | 4 => Call::Write(draw_write(random, number, merges)),
        5 | 6 if merges => Call::MergeAndGet(1 << number),
        5..=7 => Call::PutIfAbsent(value),
        8..=10 => {
            let expected = if random.percent(85) { seen } else { None };
            Call::CompareAndSwap { expected, new: random.percent(75).then_some(value) }
        }
        _ => Call::Take,
    }
}

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
        let committed = match transaction.commit_with(&options) {
            Ok(()) => true,
            Err(Error::Conflict { .. }) => false,
            Err(error) => panic!("the commit of a transaction: {error}"),
        };
        let interval = (begun, self.scene.number());
        for ((key, write), (before, after)) in writes.into_iter().zip(seen) {
            let answer =
                if committed { Answer::Committed { before, after } } else { Answer::Conflict { before, after } };
            match (reads, write) {
                (true, _) => self.note(key, Call::Transaction(write), answer, interval),
                (false, Some(write)) if committed => self.note(key, Call::Write(write), Answer::Done, interval),
                // It has seen nothing, and left nothing.
                (false, _) => {}
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
        self.conflicts += count(|event| matches!(event.answer, Answer::Conflict { .. }));
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

/// A database with its histories. The number of the database says which way its calls go.
fn run(seed: u64, database: u64, totals: &mut Totals) {
    let sort = SORTS[(database % 4) as usize];
    let (background_threads, has_ranges) = ((database / 4 % 2) as usize, database / 8 % 2 == 1);
    let scene = Scene::open(sort, background_threads, has_ranges);
    for number in 0..HISTORIES {
        let mut random = Random::derived(seed, &[database, number]);
        let count = if random.percent(50) { 1 } else { random.between(2, 3) };
        let keys: Vec<Vec<u8>> = (0..count).map(|key| format!("{number:04}-{key}").into_bytes()).collect();
        let events = history(&scene, &keys, |who| Random::derived(seed, &[database, number, who as u64]));
        totals.histories += 1;
        for (key, name) in keys.iter().enumerate() {
            let own: Vec<Event> = events.iter().filter(|event| event.key == key).copied().collect();
            totals.add(&own);
            assert!(
                has_order(&own),
                "seed {seed}, database {database} ({sort:?}, {background_threads} background threads), key {}: no \
                 order of\n{}",
                String::from_utf8_lossy(name),
                describe(&own)
            );
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
        run(settings.seed, database, &mut totals);
    }
    println!("{totals:?}");
    assert!(totals.histories >= DATABASES * HISTORIES);
    assert!(totals.overlapping > 0, "no call began while another one was under way: {totals:?}");
    let least = [totals.swapped, totals.unequal, totals.committed];
    assert!(least.iter().all(|&count| count > 0), "something was not met: {totals:?}");
}

/// Of a thread that makes one call.
fn event(thread: usize, (begun, ended): (u64, u64), call: Call, answer: Answer) -> Event {
    Event { thread, key: 0, call, answer, begun, ended }
}

/// Each pair is calls on one key with wrong answers, and the same calls with right ones.
#[test]
fn a_history_that_is_wrong_has_no_order() {
    let (first, second, last) = ((0, 2), (1, 3), (8, 9));
    let value = |value| Answer::Value(Some(value));
    let absent = Answer::Value(None);
    let put = event(2, (0, 1), Call::Write(Write::Put(7)), Answer::Done);
    let with_put = |events: &[Event]| -> Vec<Event> {
        let later = |event: &Event| Event { begun: event.begun + 2, ended: event.ended + 2, ..*event };
        [put].into_iter().chain(events.iter().map(later)).collect()
    };
    let two = |call: [Call; 2], answers: [Answer; 2]| -> Vec<Event> {
        vec![event(0, first, call[0], answers[0]), event(1, second, call[1], answers[1])]
    };
    let merges = [Call::MergeAndGet(1), Call::MergeAndGet(2)];
    let swap = |new| Call::CompareAndSwap { expected: Some(7), new };
    let swaps = [swap(Some(8)), swap(None)];
    let absents = [Call::PutIfAbsent(8), Call::PutIfAbsent(9)];
    let adds = [Call::Transaction(Some(Write::Merge(1))), Call::Transaction(Some(Write::Merge(2)))];
    let committed = |before, after| Answer::Committed { before, after };
    let conflict = Answer::Conflict { before: Some(7), after: Some(8) };
    let then_get = |mut events: Vec<Event>, answer: Answer| {
        events.push(event(2, last, Call::Get, answer));
        events
    };
    let pairs = [
        ("an addition is lost", two(merges, [value(1), value(2)]), two(merges, [value(1), value(3)])),
        ("both were absent", two(absents, [absent, absent]), two(absents, [value(9), absent])),
        (
            "both swaps were made",
            with_put(&two(swaps, [Answer::Done, Answer::Done])),
            with_put(&two(swaps, [Answer::Done, value(8)])),
        ),
        (
            "a value is taken twice",
            with_put(&two([Call::Take, Call::Take], [value(7), value(7)])),
            with_put(&two([Call::Take, Call::Take], [absent, value(7)])),
        ),
        (
            "a get misses what was acknowledged",
            with_put(&[event(0, first, Call::Get, absent)]),
            with_put(&[event(0, first, Call::Get, value(7))]),
        ),
        (
            "a value comes back",
            then_get(with_put(&[event(0, first, Call::Write(Write::Put(8)), Answer::Done)]), value(7)),
            with_put(&two([Call::Write(Write::Put(8)), Call::Get], [Answer::Done, value(7)])),
        ),
        (
            "an update of a transaction is lost",
            with_put(&two(adds, [committed(Some(7), Some(8)), committed(Some(7), Some(9))])),
            with_put(&two(adds, [committed(Some(9), Some(10)), committed(Some(7), Some(9))])),
        ),
        (
            "what was refused is there",
            then_get(with_put(&[event(0, (0, 1), adds[0], conflict)]), value(8)),
            then_get(with_put(&[event(0, (0, 1), adds[0], conflict)]), value(7)),
        ),
    ];
    for (what, wrong, right) in pairs {
        assert!(has_order(&right), "refused beside: {what}\n{}", describe(&right));
        assert!(!has_order(&wrong), "{what}\n{}", describe(&wrong));
    }
}

/// A call that is under way, and its answer once it has one.
#[derive(Clone, Copy)]
struct UnderWay {
    begun: u64,
    call: Call,
    answer: Option<Answer>,
}

/// An answer of a call at some moment between its beginning and its end: one in eight tells of an
/// older value and leaves nothing.
fn answer_of(random: &mut Random, call: &Call, register: &mut Register, mut older: Register) -> Answer {
    match (call, random.below(8)) {
        (_, 0) => older.invoke(call),
        (Call::Transaction(write), 1 | 2) => {
            let before = register.0;
            Answer::Conflict { before, after: write.map_or(before, |write| write.apply(before)) }
        }
        _ => register.invoke(call),
    }
}

/// Ten calls of threads that overlap, as a history and as the tester of `stateright` is told.
fn made_up(random: &mut Random) -> (Vec<Event>, LinearizabilityTester<usize, Register>) {
    const MOST: usize = 10;
    let mut register = Register(None);
    let (mut older, mut tester) = (register, LinearizabilityTester::new(register));
    let (mut events, mut made) = (Vec::new(), 0);
    let mut under_way: [Option<UnderWay>; THREADS] = [None; THREADS];
    for now in 0.. {
        if made == MOST && under_way.iter().all(Option::is_none) {
            break;
        }
        let thread = random.below(THREADS);
        match under_way[thread].take() {
            None if made < MOST => {
                let call = match random.below(5) {
                    0 => Call::Transaction(random.percent(70).then(|| draw_write(random, made, true))),
                    _ => draw_call(random, register.0, made, true),
                };
                tester.on_invoke(thread, call).expect("the thread makes no other call");
                under_way[thread] = Some(UnderWay { begun: now, call, answer: None });
                made += 1;
            }
            None => {}
            Some(UnderWay { begun, call, answer: None }) => {
                let answer = Some(answer_of(random, &call, &mut register, older));
                under_way[thread] = Some(UnderWay { begun, call, answer });
            }
            Some(UnderWay { begun, call, answer: Some(answer) }) => {
                tester.on_return(thread, answer).expect("the thread has made a call");
                events.push(Event { thread, key: 0, call, answer, begun, ended: now });
            }
        }
        if random.percent(15) {
            older = register;
        }
    }
    (events, tester)
}

#[test]
fn the_check_says_what_that_of_stateright_says() {
    let seed = Settings::from_environment(31, 0).seed;
    println!("seed {seed}");
    let (mut right, mut wrong) = (0, 0);
    for number in 0..1_000 {
        let (events, tester) = made_up(&mut Random::derived(seed, &[number]));
        let is_right = has_order(&events);
        assert_eq!(is_right, tester.is_consistent(), "seed {seed}, history {number}\n{}", describe(&events));
        *(if is_right { &mut right } else { &mut wrong }) += 1;
    }
    assert!(right > 50 && wrong > 50, "{right} right, {wrong} wrong");
}
