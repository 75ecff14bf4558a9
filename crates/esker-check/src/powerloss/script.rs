//! Scripts of the power-loss harness: their keyspaces, their steps, and the model of the contents
//! after each step.
//!
//! Every batch and every transaction also puts its number under one key. No two states of the model
//! are equal then, and a recovered database shows how many commits it holds. Other writes do not
//! put a number: they test their own calls.

use crate::generator::Expected;
use crate::model::{Change, FAILING, Holding, Model, Operator, PANICKING, Ttl, Write};
use crate::orders::order_of;
use crate::state::{Durability, Held, State};
use esker::{ChangeRetention, CheckpointMode, CompactionStyle};
use std::ops::Bound;

/// The keyspaces of all scripts. Scripts written by hand use the first four.
pub const KEYSPACES: [(&str, Operator, Ttl); 17] = [
    ("a", Operator::None, Ttl::Off),
    ("b", Operator::UInt64Add, Ttl::Off),
    ("c", Operator::StringAppend, Ttl::Off),
    ("d", Operator::StringAppend, Ttl::On(Some(HOUR_MS))),
    ("signed", Operator::Int64Add, Ttl::Off),
    ("greatest", Operator::Max, Ttl::Off),
    ("least", Operator::Min, Ttl::Off),
    ("last", Operator::Put, Ttl::Off),
    ("xor", Operator::BytesXor, Ttl::Off),
    ("or", Operator::BitOr, Ttl::Off),
    ("longest", Operator::Longest, Ttl::Off),
    ("sessions", Operator::None, Ttl::On(None)),
    ("rates", Operator::UInt64Add, Ttl::On(Some(300))),
    // In the reverse order: see `order_of`.
    ("latest", Operator::None, Ttl::Off),
    ("fragile", Operator::Fragile, Ttl::Off),
    ("window", Operator::None, Ttl::Off),
    ("sifted", Operator::None, Ttl::Off),
];

/// The index of the keyspace whose operator fails.
pub const FRAGILE: usize = 14;

/// The index of the keyspace that is created to keep the newest [`WINDOW_BYTES`] and no more.
pub const WINDOW: usize = 15;

/// The index of the keyspace with a compaction filter.
pub const SIFTED: usize = 16;

/// So few that a few flushes exceed it.
pub const WINDOW_BYTES: u64 = 2 << 10;

/// Whether compaction takes values of the keyspace that are neither overwritten nor deleted, and
/// have not expired. Nothing that depends on what is there is done in those: no merges, no
/// transactions and no conditional writes.
pub fn is_fading(keyspace: usize) -> bool {
    matches!(keyspace, WINDOW | SIFTED)
}

/// The style with which a keyspace is created.
pub fn first_style(keyspace: usize) -> CompactionStyle {
    if keyspace == WINDOW { CompactionStyle::Fifo { max_bytes: WINDOW_BYTES } } else { CompactionStyle::default() }
}

/// Their names.
pub const NAMES: [&str; KEYSPACES.len()] = {
    let mut names = [""; KEYSPACES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = KEYSPACES[index].0;
        index += 1;
    }
    names
};

/// The index of the keyspace of the written scripts whose entries expire.
pub(super) const EXPIRING: usize = 3;

pub(super) const HOUR_MS: u64 = 3_600_000;

/// Where the clock of every script begins.
pub const NOW_MS: u64 = 1_700_000_000_000;

/// An empty model of the keyspaces at a time.
pub fn empty_model(now: u64) -> Model {
    let mut model = Model::with_ttl(&KEYSPACES.map(|(_, operator, ttl)| (operator, ttl)));
    NAMES.iter().enumerate().for_each(|(keyspace, name)| model.set_order(keyspace, order_of(name)));
    model.set_now(now);
    model
}

/// The settings of the keyspaces when they are created.
pub fn first_settings() -> Vec<(Operator, Ttl)> {
    KEYSPACES.iter().map(|&(_, operator, ttl)| (operator, ttl)).collect()
}

/// A model that holds that much and has no history.
pub fn model_of(state: &State, now: u64) -> Model {
    model_with(state, now, &first_settings())
}

/// The same with these settings.
pub fn model_with(state: &State, now: u64, settings: &[(Operator, Ttl)]) -> Model {
    let mut model = empty_model(now);
    settings.iter().enumerate().for_each(|(keyspace, settings)| model.set_settings(keyspace, *settings));
    for ((keyspace, key), Held { value, expiry, fails }) in state {
        model.restore(*keyspace, key, (&value[..], *fails), *expiry);
    }
    model
}

/// All that a model holds: also what has expired, and what compaction has taken.
pub fn whole_state(model: &Model) -> State {
    state_of(model, |_| true)
}

/// What a reader sees that begins now.
pub fn seen_state(model: &Model) -> State {
    state_of(model, |holding| holding.is_seen)
}

fn state_of(model: &Model, is_wanted: fn(&Holding) -> bool) -> State {
    let mut state = State::new();
    for keyspace in 0..model.keyspace_count() {
        for holding in model.holdings(keyspace).into_iter().filter(is_wanted) {
            let Holding { key, value, fails, expiry, .. } = holding;
            state.insert((keyspace, key.to_vec()), Held { fails, ..Held::value(value.to_vec(), expiry) });
        }
    }
    state
}

/// The keyspace and key of the commit counter.
pub const COUNTER: (usize, &[u8]) = (0, b"~commits");

/// The write that goes with the commit of that number.
pub fn count(number: u64) -> Write {
    Write::new(COUNTER.0, COUNTER.1, Change::Put(number.to_be_bytes().to_vec()))
}

/// Why a load is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its last key comes twice.
    Twice,
    /// Behind its last key comes the first one again.
    OutOfOrder,
    /// Behind its last key comes one that is too long.
    TooLong,
    /// What yields the pairs panics behind the last one.
    Panic,
}

impl Refusal {
    /// Each of them.
    pub const ALL: [Refusal; 4] = [Refusal::Twice, Refusal::OutOfOrder, Refusal::TooLong, Refusal::Panic];
}

/// One step of a script. Keyspaces are created when a step first needs them.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A batch, with the commit counter.
    Batch(Vec<Write>, Durability),
    /// A transaction that reads what it writes, with the commit counter.
    Transaction(Vec<Write>, Durability),
    /// A transaction that is rolled back or dropped.
    Abandon(Vec<Write>),
    /// A transaction that meets a single write by others to a key of its own, and so must not
    /// commit; an abandoned one if it has no such key.
    Contend(Vec<Write>),
    /// Begins a transaction without the commit counter, which is held open under that number, and
    /// drops the one that was held there.
    Begin(usize, Vec<Write>),
    /// Commits the transaction under that number, if there is one.
    Commit(usize, Durability),
    /// Rolls it back, if there is one.
    Rollback(usize),
    /// A single write, without.
    Single(Write, Durability),
    /// The same through a typed handle.
    Typed(Write, Durability),
    /// A conditional or returning write of the kind of this one, without.
    Ask(Write, Expected, Durability),
    /// Takes the first pair of a keyspace.
    PopFirst(usize),
    /// Loads ascending pairs into a keyspace.
    Ingest(usize, Vec<(Vec<u8>, Vec<u8>)>),
    /// Tries to load ascending pairs, behind which comes what the load is refused for.
    RefusedIngest(usize, Vec<(Vec<u8>, Vec<u8>)>, Refusal),
    /// Creates a keyspace.
    Create(usize),
    /// Drops a keyspace, if need be creates it first.
    DropKeyspace(usize),
    /// Gives a keyspace its other name.
    Rename(usize),
    /// Gives it a merge operator.
    Operator(usize, Operator),
    /// Lets its entries expire, or by another default.
    Ttl(usize, Ttl),
    /// Compacts it in another style from now on.
    Style(usize, CompactionStyle),
    /// Syncs the log.
    Sync,
    /// Flushes.
    Flush,
    /// Compacts.
    Compact,
    /// Compacts a range of a keyspace.
    CompactRange(usize, Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Does the merges that are due.
    WaitIdle,
    /// Moves the clock ahead, in milliseconds.
    Clock(u64),
    /// Sets it back by so many.
    ClockBack(u64),
    /// Takes a snapshot and begins an iterator over a keyspace; both are held under that number.
    Hold(usize, usize),
    /// Compares what the snapshot sees, and so many steps of the iterator.
    Look(usize, usize),
    /// Compares everything with the model, absent keys too.
    Compare,
    /// Opens the database for reading beside the writer, and compares everything.
    ReadBeside,
    /// Closes and opens.
    Reopen,
    /// Closes, and opens with the options of that number until the next such step.
    ReopenWith(usize),
    /// Closes, and opens with changes kept for so long until the next step that opens with other
    /// options; without a length, with the options that the script began with.
    Keep(Option<ChangeRetention>),
    /// Drops without closing, and opens.
    DropAndReopen,
    /// Drops, loses the file that names the manifest, repairs, and opens.
    Repair,
    /// Closes, removes the whole database, and opens.
    Destroy,
    /// Copies to a directory of that number.
    Checkpoint(usize, CheckpointMode),
}

impl Step {
    /// Whether it changes the name or the settings of a keyspace.
    pub fn is_alteration(&self) -> bool {
        matches!(self, Step::Rename(_) | Step::Operator(..) | Step::Ttl(..) | Step::Style(..))
    }

    /// The writes that it says.
    pub fn writes(&self) -> &[Write] {
        match self {
            Step::Batch(writes, _)
            | Step::Transaction(writes, _)
            | Step::Abandon(writes)
            | Step::Contend(writes)
            | Step::Begin(_, writes) => writes,
            Step::Single(write, _) | Step::Typed(write, _) | Step::Ask(write, ..) => std::slice::from_ref(write),
            _ => &[],
        }
    }

    /// Whether what it leads to is not told by the values that are written: a merge fails,
    /// compaction may take what is written, or has taken what a clock that goes back would show.
    pub fn is_open_ended(&self) -> bool {
        match self {
            Step::ClockBack(_) => true,
            Step::Ingest(keyspace, _) => is_fading(*keyspace),
            _ => self.writes().iter().any(|write| is_fading(write.keyspace) || may_fail(write)),
        }
    }

    /// Whether others may write while a transaction of it is open.
    pub fn is_contended(&self) -> bool {
        matches!(self, Step::Contend(_) | Step::Begin(..) | Step::Commit(..) | Step::Rollback(_))
    }

    /// Whether it closes the database, and opens it anew.
    pub fn closes(&self) -> bool {
        matches!(self, Step::Reopen | Step::ReopenWith(_) | Step::Keep(_) | Step::Destroy)
    }

    /// Whether it opens the database anew.
    pub fn opens(&self) -> bool {
        matches!(self, Step::DropAndReopen | Step::Repair) || self.closes()
    }

    /// How safe what it writes must be, where that is for it to say.
    pub fn durability(&self) -> Option<Durability> {
        match self {
            Step::Batch(_, how)
            | Step::Transaction(_, how)
            | Step::Commit(_, how)
            | Step::Single(_, how)
            | Step::Typed(_, how)
            | Step::Ask(_, _, how) => Some(*how),
            _ => None,
        }
    }
}

/// Whether the operator of its keyspace fails on what it merges.
pub fn may_fail(write: &Write) -> bool {
    let fails = |operand: &[u8]| matches!(operand.first(), Some(&FAILING | &PANICKING));
    write.keyspace == FRAGILE && matches!(&write.change, Change::Merge(operand) if fails(operand))
}

/// How many snapshots and iterators are held at a time, and how many transactions.
pub const SLOTS: usize = 3;

/// How many keys a generated script chooses from at most.
pub const MOST_KEYS: usize = 60;

/// The usual key of that number.
pub fn usual_key(number: usize) -> Vec<u8> {
    format!("key-{number:03}").into_bytes()
}

/// The write of others that a transaction with these writes meets: one of its own, outside it.
pub fn contended(writes: &[Write]) -> Option<&Write> {
    // A change of an expiry writes nothing where there is no value.
    writes.iter().find(|write| !write.change.is_range() && write.change != Change::Expire)
}

/// A name and the steps.
#[derive(Clone, Debug)]
pub struct Script {
    /// For messages and commands.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// The drop of a keyspace as a write to its contents: once it is recovered, every write before it
/// is.
pub fn dropping(keyspace: usize) -> Vec<Write> {
    vec![Write::delete_range(keyspace, Bound::Unbounded, Bound::Unbounded)]
}

/// The writes of a load: puts with the life that the keyspace gives.
pub fn loaded(keyspace: usize, pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<Write> {
    pairs.iter().map(|(key, value)| Write::new(keyspace, key.clone(), Change::Put(value.clone()))).collect()
}
