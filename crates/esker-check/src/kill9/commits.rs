//! What the child does. The commit of a number, the call behind it and the settings under which it
//! is made are functions of the seed and the number alone.

use crate::asked::{Call, Question};
use crate::generator::Expected;
use crate::model::{Change, Life, Model, Operator, Ttl, Write};
use crate::random::Random;
use crate::state::Durability;
use esker::{ChangeRetention, ManualClock, Options, WalMode};
use std::ops::Bound;
use std::sync::Arc;

/// The keyspaces, with what they have at the beginning.
pub(super) const KEYSPACES: [(&str, Operator, Ttl); 6] = [
    ("values", Operator::None, Ttl::Off),
    ("counters", Operator::UInt64Add, Ttl::Off),
    ("passing", Operator::UInt64Add, Ttl::Off),
    ("latest", Operator::None, Ttl::Off),
    ("rates", Operator::UInt64Add, Ttl::On(None)),
    ("altered", Operator::None, Ttl::Off),
];
/// Their names.
pub(super) const NAMES: [&str; 6] =
    [KEYSPACES[0].0, KEYSPACES[1].0, KEYSPACES[2].0, KEYSPACES[3].0, KEYSPACES[4].0, KEYSPACES[5].0];
/// The keyspace that has the number of the last commit.
pub(super) const VALUES: usize = 0;
const COUNTERS: usize = 1;
/// The keyspace that is dropped now and then.
pub(super) const PASSING: usize = 2;
/// Its other name.
pub(super) const RENAMED: &str = "passed";
/// The one in reverse order.
const LATEST: usize = 3;
/// The one whose entries can expire from the beginning.
pub(super) const RATES: usize = 4;
/// The one that gets other settings.
pub(super) const ALTERED: usize = 5;
/// Those without the number, which may be emptied.
const OTHERS: [usize; 5] = [COUNTERS, PASSING, LATEST, RATES, ALTERED];

/// The key of the number of the last commit. It comes after the others, as a load needs it.
pub(super) const COUNTER: &[u8] = b"~commits";
/// The key of the number of the last transaction, in another keyspace.
const TRANSACTIONS: &[u8] = b"~transactions";
/// The key of what a transaction has taken elsewhere.
const TAKEN: &[u8] = b"taken";

/// What the clock of both sides shows, in milliseconds since the Unix epoch. It stands still, so
/// that an expiry that counts from a write is known, too.
pub(super) const NOW: u64 = 1_900_000_000_000;
/// Absolute expiries are later than this one.
const FAR: u64 = 4_000_000_000_000;
const DAY: u64 = 86_400_000;

/// Mostly more than a child writes in its life.
const KEPT_BYTES: u64 = 4 << 20;

/// Behind so many commits a name or a setting changes: that costs a new manifest, and an operator
/// a compaction of its keyspace.
pub(super) const CHANGE_EVERY: u64 = 100;

/// The operators in turn. They combine any bytes.
pub(super) const OPERATORS: [Operator; 4] = [Operator::Max, Operator::BytesXor, Operator::Min, Operator::BitOr];

/// The options of both sides: small, so that everything happens often.
pub(super) fn options(seed: u64) -> Options {
    let options = Options::default()
        .write_buffer_bytes(48 << 10)
        .target_file_bytes(64 << 10)
        .block_bytes(1 << 10)
        .wal_segment_bytes(64 << 10)
        .background_threads(1)
        .clock(Arc::new(ManualClock::new(NOW)));
    let options = if seed % 2 == 1 { options.wal_mode(WalMode::Plain) } else { options };
    let options = if seed % 8 >= 4 { options.min_blob_size(4 << 10) } else { options };
    if keeps_changes(seed) { options.keep_changes(ChangeRetention::Bytes(KEPT_BYTES)) } else { options }
}

/// Whether the database of that seed keeps its changes.
pub(super) fn keeps_changes(seed: u64) -> bool {
    seed % 4 >= 2
}

/// What changes with the number of the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The name of the keyspace that comes and goes.
    pub(super) passing: &'static str,
    /// What [`ALTERED`] has.
    pub(super) altered: (Operator, Ttl),
}

impl Settings {
    /// Those under which the commit of that number is made: from one number to the next one thing
    /// changes at most.
    pub(super) fn of(seed: u64, number: u64) -> Settings {
        let changes = number / CHANGE_EVERY;
        // The three kinds take turns; which is first is the seed's choice.
        let of_kind = |kind: u64| (changes + 2 - (kind + 3 - seed % 3) % 3) / 3;
        let (renames, lives, operators) = (of_kind(0), of_kind(1), of_kind(2));
        let ttl = match lives {
            0 => Ttl::Off,
            even if even.is_multiple_of(2) => Ttl::On(None),
            odd => Ttl::On(Some(odd * DAY)),
        };
        let operator = match operators {
            0 => Operator::None,
            more => OPERATORS[(more - 1) as usize % OPERATORS.len()],
        };
        let passing = if renames.is_multiple_of(2) { NAMES[PASSING] } else { RENAMED };
        Settings { passing, altered: (operator, ttl) }
    }

    /// The settings of a keyspace.
    pub(super) fn of_keyspace(&self, keyspace: usize) -> (Operator, Ttl) {
        let (_, operator, ttl) = KEYSPACES[keyspace];
        if keyspace == ALTERED { self.altered } else { (operator, ttl) }
    }
}

/// How a commit is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As a batch.
    Batch,
    /// By a conditional write: the number takes the place of the one before, and that is all.
    Swap,
    /// As a transaction, which reads the number before.
    Transaction,
    /// By a load of pairs, of which the number is the last.
    Load,
}

impl How {
    fn of(number: u64) -> How {
        match number {
            _ if number.is_multiple_of(8) => How::Swap,
            _ if number % 8 == 4 => How::Transaction,
            // It costs a flush and a new manifest. These numbers are odd.
            _ if number % 100 == 25 => How::Load,
            _ => How::Batch,
        }
    }
}

/// A commit, which is atomic and has its number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Counting from 1.
    pub(super) number: u64,
    pub(super) how: How,
    /// The keyspace whose first pair a transaction takes, to put it into another one.
    pub(super) takes: Option<usize>,
    /// The writes, that of the number last.
    pub(super) writes: Vec<Write>,
    pub(super) durability: Durability,
}

impl Commit {
    pub(super) fn new(seed: u64, number: u64) -> Commit {
        let mut random = Random::derived(seed, &[number]);
        let (how, settings) = (How::of(number), Settings::of(seed, number));
        let takes = (how == How::Transaction && random.percent(25)).then(|| OTHERS[random.below(OTHERS.len())]);
        let count = if how == How::Swap { 0 } else { random.between(1, 6) };
        let mut writes: Vec<Write> = match how {
            How::Load => load_of(&mut random, VALUES),
            _ => (0..count).map(|_| write_of(&mut random, &settings)).collect(),
        };
        let value = Change::Put(number.to_le_bytes().to_vec());
        if how == How::Transaction {
            writes.push(Write::new(COUNTERS, TRANSACTIONS, value.clone()));
        }
        writes.push(Write::new(VALUES, COUNTER, value));
        let durability = if random.percent(3) { Durability::Sync } else { Durability::Async };
        Commit { number, how, takes, writes, durability }
    }

    /// The writes that it comes to in a database with these contents.
    pub(super) fn effect(&self, model: &Model) -> Vec<Write> {
        let taken = self.takes.and_then(|from| {
            let (key, value) = model.end(from, true, model.present())?;
            let value = value.ok()?;
            Some([Write::new(from, &key[..], Change::Delete), taken(&key, &value)])
        });
        taken.into_iter().flatten().chain(self.writes.iter().cloned()).collect()
    }
}

/// What a transaction writes about the pair that it has taken: so the contents tell whether it was
/// the right one.
pub(super) fn taken(key: &[u8], value: &[u8]) -> Write {
    Write::new(VALUES, TAKEN, Change::Put([key, &b"="[..], value].concat()))
}

/// What is done behind a commit, before the commit is reported: one call that has no number in it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Nothing,
    /// The keyspace that comes and goes is dropped, and created again.
    Drop,
    Clear(usize),
    /// A load of these pairs.
    Load(usize, Vec<Write>),
    /// A write outside a batch.
    Single(Write),
    /// A call that says what was there.
    Ask(Question),
}

impl Step {
    pub(super) fn new(seed: u64, number: u64) -> Step {
        let mut random = Random::derived(seed, &[number, 1]);
        let settings = Settings::of(seed, number);
        // Only the first and the third cost more than a commit does.
        match random.below(240) {
            0..=3 => Step::Drop,
            4 => Step::Clear(OTHERS[random.below(OTHERS.len())]),
            5 => {
                let keyspace = OTHERS[random.below(OTHERS.len())];
                Step::Load(keyspace, load_of(&mut random, keyspace))
            }
            6..=11 => Step::Ask(Question::PopFirst(OTHERS[random.below(OTHERS.len())])),
            12..=31 => asked(write_of(&mut random, &settings)),
            32..=43 => asked(change_of_expiry(&mut random, &settings)),
            44..=55 => Step::Single(write_of(&mut random, &settings)),
            _ => Step::Nothing,
        }
    }

    /// The writes that it comes to in a database with these contents. A drop is none.
    pub(super) fn effect(&self, model: &Model) -> Vec<Write> {
        match self {
            Step::Nothing | Step::Drop => Vec::new(),
            Step::Clear(keyspace) => vec![Write::delete_range(*keyspace, Bound::Unbounded, Bound::Unbounded)],
            Step::Load(_, writes) => writes.clone(),
            Step::Single(write) => vec![write.clone()],
            Step::Ask(question) => question.right(model).ok().and_then(|(_, write)| write).into_iter().collect(),
        }
    }
}

/// The write as the call that says what was there before; a delete of a range says nothing.
fn asked(write: Write) -> Step {
    let is_put = matches!(write.change, Change::Put(_));
    // No conditional put takes an absolute time.
    let write = if is_put && matches!(write.life, Life::Until(_)) { write.living(Life::Usual) } else { write };
    let expected = if is_put { Expected::Absent } else { Expected::Current };
    match Call::of(&write, expected, None) {
        Some(call) => Step::Ask(Question::Key(write, call)),
        None => Step::Single(write),
    }
}

fn write_of(random: &mut Random, settings: &Settings) -> Write {
    let keyspace = random.below(KEYSPACES.len());
    let (operator, ttl) = settings.of_keyspace(keyspace);
    let first = random.below(1500);
    let key = format!("key{first:04}").into_bytes();
    let change = match random.below(40) {
        0 => {
            let last = format!("key{:04}", first + random.below(12)).into_bytes();
            let (low, high) = if keyspace == LATEST { (last, key) } else { (key, last) };
            return Write::delete_range(keyspace, Bound::Included(low), Bound::Included(high));
        }
        1 => return Write::new(keyspace, [], Change::DeletePrefix(key[..6].to_vec())),
        2..=7 => Change::Delete,
        8..=13 if ttl != Ttl::Off => Change::Expire,
        14..=21 => Change::Put(value_of(random, keyspace)),
        _ if operator == Operator::None => Change::Put(value_of(random, keyspace)),
        _ => Change::Merge((random.below(1000) as u64).to_le_bytes().to_vec()),
    };
    let life = life_of(random, ttl, &change);
    Write::new(keyspace, key, change).living(life)
}

fn change_of_expiry(random: &mut Random, settings: &Settings) -> Write {
    let is_altered = settings.altered.1 != Ttl::Off && random.percent(50);
    let key = format!("key{:04}", random.below(1500));
    let life = life_of(random, Ttl::On(None), &Change::Expire);
    Write::new(if is_altered { ALTERED } else { RATES }, key, Change::Expire).living(life)
}

fn life_of(random: &mut Random, ttl: Ttl, change: &Change) -> Life {
    let percent = match change {
        Change::Put(_) | Change::Expire => 70,
        Change::Merge(_) => 10,
        _ => 0,
    };
    if ttl == Ttl::Off || !random.percent(percent) {
        return Life::Usual;
    }
    // No merge takes an absolute time.
    if matches!(change, Change::Merge(_)) || random.percent(50) {
        return Life::For(1000 * random.between(1, 1_000_000) as u64);
    }
    Life::Until(FAR + 1000 * random.below(1000) as u64)
}

/// Pairs for a load, in the order of the keyspace.
fn load_of(random: &mut Random, keyspace: usize) -> Vec<Write> {
    let (first, distance, count) = (random.below(1400), random.between(1, 4), random.between(1, 40));
    let write = |place: usize| {
        let key = format!("key{:04}", first + place * distance);
        Write::new(keyspace, key, Change::Put(value_of(random, keyspace)))
    };
    let mut writes: Vec<Write> = (0..count).map(write).collect();
    if keyspace == LATEST {
        writes.reverse();
    }
    writes
}

fn value_of(random: &mut Random, keyspace: usize) -> Vec<u8> {
    match keyspace {
        VALUES | LATEST | ALTERED => {
            let length = if random.percent(2) { random.between(1000, 12_000) } else { random.between(0, 120) };
            random.bytes(length)
        }
        // What is added to.
        _ => random.next().to_le_bytes().to_vec(),
    }
}
