//! What a random run can do.
//!
//! Operations name snapshots and iterators by slot and never depend on the outcome of earlier ones:
//! any sub-list of a list of operations can be run, which is what makes shrinking simple.

use super::feed::FeedOperation;
use crate::model::{Model, Operator, Span, Ttl, Write};
use crate::state::Durability;
use std::ops::Bound;

/// How many snapshots, and how many iterators, can be open at once.
pub const SLOTS: usize = 4;

/// One step of an iterator or cursor.
#[derive(Clone, Debug)]
pub enum Move {
    /// To the first key.
    First,
    /// To the last key.
    Last,
    /// To the first key not below.
    Seek(Vec<u8>),
    /// To the last key not above.
    SeekForPrev(Vec<u8>),
    /// One forward. Skipped where there is no position.
    Next,
    /// One back. Skipped where there is no position.
    Prev,
}

/// What a read looks at.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Index of the keyspace.
    pub keyspace: usize,
    /// Slot of the snapshot; without one, or if it is empty, the present.
    pub snapshot: Option<usize>,
}

/// A movement of the clock.
#[derive(Clone, Copy, Debug)]
pub enum Tick {
    /// Ahead by so many milliseconds.
    Ahead(u64),
    /// To so many milliseconds from the next time at which something expires, if that lies ahead.
    ToExpiry(i64),
    /// Back by so many milliseconds.
    Back(u64),
}

impl Tick {
    /// The time that it leads to from the model's present; none if that is too far away.
    pub fn target(self, model: &Model) -> Option<u64> {
        // Nothing near it expires.
        const LAST: u64 = 1 << 46;
        let now = model.present().now;
        let then = match self {
            Tick::Ahead(milliseconds) => now + milliseconds,
            Tick::Back(milliseconds) => now - milliseconds,
            Tick::ToExpiry(offset) => match model.next_expiry() {
                Some(expiry) if expiry < LAST => expiry.saturating_add_signed(offset).max(now),
                _ => now,
            },
        };
        (then <= LAST).then_some(then)
    }
}

/// Which value a conditional write expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// What is there.
    Current,
    /// None.
    Absent,
    /// One that is not there.
    Other,
}

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum TransactionStep {
    /// It reads a key.
    Get(usize, Vec<u8>),
    /// It asks whether a key has a value.
    Contains(usize, Vec<u8>),
    /// It asks when a key expires.
    ExpiresAt(usize, Vec<u8>),
    /// It scans a span to its end.
    Scan(usize, Span),
    /// It asks for the first pair (`true`) or the last.
    End(usize, bool),
    /// It counts the keys of a span.
    Count(usize, Span),
    /// It takes the first pair.
    PopFirst(usize),
    /// It writes.
    Write(Write),
    /// Others write, as one batch.
    Outside(Vec<Write>),
    /// Others drop a keyspace, and create it again as it was.
    Drop(usize),
    /// The clock moves, ahead only.
    Clock(Tick),
}

/// One operation.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A single write.
    Write(Write, Durability),
    /// A write if the key has that value: put if absent, compare and swap, take; of a merge, with
    /// its result.
    OnValue(Write, Expected, Durability),
    /// Writes as one batch.
    Batch(Vec<Write>, Durability),
    /// Takes the first pair of a keyspace.
    PopFirst(usize),
    /// Loads pairs past the log.
    Load(usize, Vec<(Vec<u8>, Vec<u8>)>),
    /// Does something with changes.
    Feed(FeedOperation),
    /// Reads a key.
    Get(Source, Vec<u8>),
    /// Asks whether a key has a value.
    Contains(Source, Vec<u8>),
    /// Asks for the first pair (`true`) or the last.
    End(Source, bool),
    /// Counts the keys of a span.
    Count(Source, Span),
    /// Reads keys at once.
    MultiGet(Source, Vec<Vec<u8>>),
    /// Asks when a key expires.
    ExpiresAt(Source, Vec<u8>),
    /// Scans a span; `true` takes from the front, `false` from the back; then the rest from the
    /// front.
    Scan(Source, Span, Vec<bool>),
    /// Keeps a snapshot.
    TakeSnapshot(usize),
    /// Drops it.
    DropSnapshot(usize),
    /// Keeps a cursor.
    OpenCursor(usize, Source),
    /// Moves it.
    MoveCursor(usize, Vec<Move>),
    /// Drops it.
    DropCursor(usize),
    /// Keeps a range iterator.
    OpenIterator(usize, Source, Span),
    /// Takes from its front (`true`) and back (`false`).
    StepIterator(usize, Vec<bool>),
    /// Drops it.
    DropIterator(usize),
    /// Flushes.
    Flush,
    /// Compacts everything.
    Compact,
    /// Compacts one keyspace.
    CompactKeyspace(usize),
    /// Compacts a range of one keyspace.
    CompactRange(usize, Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Asks for the size of a range of one keyspace.
    ApproximateSize(usize, Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Drops a keyspace and creates one of that name, with that operator and those lives.
    DropKeyspace(usize, Operator, Ttl),
    /// Calls on the handle of a keyspace that was dropped, the number says which of its kind.
    UseDropped(usize, usize, Write),
    /// A batch with these writes, the first of which is to the keyspace before it was dropped.
    BatchOnDropped(usize, Vec<Write>),
    /// Removes all keys of a keyspace.
    Clear(usize),
    /// Gives a keyspace its other name.
    Rename(usize),
    /// Gives it another operator, or other lives; `true` with no reader open.
    Alter(usize, Operator, Ttl, bool),
    /// Waits for background work.
    WaitIdle,
    /// Lets the engine check itself.
    Verify,
    /// Copies the database, and compares the copy.
    Checkpoint,
    /// Opens for reading only, beside the writer, and compares.
    ReadBeside,
    /// A transaction, with writes by others while it runs; `true` commits it, `false` drops it.
    Transaction(Vec<TransactionStep>, bool),
    /// The clock moves.
    Clock(Tick),
    /// Compares all keyspaces with the model.
    CompareAll,
    /// Closes and opens; from then on with or without [`crate::model::Operator::Shelved`].
    Reopen(bool),
    /// Drops all handles without closing, and opens.
    DropAndReopen,
    /// The process dies and another one opens.
    Kill,
}

impl Operation {
    /// Operations of the same kind that do less.
    pub fn simpler(&self) -> Vec<Operation> {
        match self {
            Operation::Write(write, durability) => {
                write.simpler().into_iter().map(|write| Operation::Write(write, *durability)).collect()
            }
            Operation::OnValue(write, expected, durability) => {
                let simpler = write.simpler().into_iter();
                simpler.map(|write| Operation::OnValue(write, *expected, *durability)).collect()
            }
            Operation::Batch(writes, durability) => {
                let mut candidates: Vec<Vec<Write>> = without_each(writes);
                for (index, write) in writes.iter().enumerate() {
                    for simpler in write.simpler() {
                        let mut candidate = writes.clone();
                        candidate[index] = simpler;
                        candidates.push(candidate);
                    }
                }
                candidates.into_iter().map(|writes| Operation::Batch(writes, *durability)).collect()
            }
            Operation::MoveCursor(slot, moves) => {
                without_each(moves).into_iter().map(|moves| Operation::MoveCursor(*slot, moves)).collect()
            }
            Operation::StepIterator(slot, ends) => {
                without_each(ends).into_iter().map(|ends| Operation::StepIterator(*slot, ends)).collect()
            }
            Operation::Scan(source, span, ends) => {
                let shorter = without_each(ends).into_iter();
                let mut candidates: Vec<_> = shorter.map(|ends| Operation::Scan(*source, span.clone(), ends)).collect();
                if *span != Span::All {
                    candidates.push(Operation::Scan(*source, Span::All, ends.clone()));
                }
                candidates
            }
            Operation::MultiGet(source, keys) => {
                without_each(keys).into_iter().map(|keys| Operation::MultiGet(*source, keys)).collect()
            }
            Operation::Transaction(steps, commit) => {
                without_each(steps).into_iter().map(|steps| Operation::Transaction(steps, *commit)).collect()
            }
            Operation::Load(keyspace, pairs) => {
                without_each(pairs).into_iter().map(|pairs| Operation::Load(*keyspace, pairs)).collect()
            }
            Operation::Feed(operation) => operation.simpler().into_iter().map(Operation::Feed).collect(),
            _ => Vec::new(),
        }
    }
}

fn without_each<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    (0..items.len()).map(|index| [&items[..index], &items[index + 1..]].concat()).collect()
}
