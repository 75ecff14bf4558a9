//! Random operations, wholly determined by a seed.
//!
//! Operations name snapshots and iterators by slot and never depend on the outcome of earlier ones: any sub-list of a
//! list of operations can be run, which is what makes shrinking simple.

use crate::model::{Change, LONGEST_KEY, Operator, Span, Write};
use crate::random::Random;
use crate::state::Durability;
use std::ops::Bound;

/// How many snapshots, and how many iterators, can be open at once.
pub const SLOTS: usize = 4;

/// The keyspaces of a run: name and operator.
pub const KEYSPACES: [(&str, Operator); 6] = [
    ("plain", Operator::None),
    ("counters", Operator::UInt64Add),
    ("log", Operator::StringAppend),
    ("greatest", Operator::Max),
    ("least", Operator::Min),
    ("last", Operator::Put),
];

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

/// One operation.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A single write.
    Write(Write, Durability),
    /// Writes as one batch.
    Batch(Vec<Write>, Durability),
    /// Reads a key.
    Get(Source, Vec<u8>),
    /// Scans a span; `true` takes from the front, `false` from the back; then the rest from the front.
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
    /// Waits for background work.
    WaitIdle,
    /// Lets the engine check itself.
    Verify,
    /// Copies the database, and compares the copy.
    Checkpoint,
    /// Compares all keyspaces with the model.
    CompareAll,
    /// Closes and opens.
    Reopen,
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
            _ => Vec::new(),
        }
    }
}

fn without_each<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    (0..items.len()).map(|index| [&items[..index], &items[index + 1..]].concat()).collect()
}

/// Makes the operations of one run.
pub struct Generator {
    random: Random,
    keys: Vec<Vec<u8>>,
    /// How many of a hundred operations write.
    write_percent: usize,
    /// How many of a thousand operations are maintenance.
    maintenance_permille: usize,
}

impl Generator {
    /// The run of that seed.
    pub fn new(seed: u64) -> Generator {
        let mut random = Random::new(seed);
        let keys = key_pool(&mut random);
        let write_percent = [15, 40, 60, 85][random.below(4)];
        let maintenance_permille = [3, 10, 30, 60][random.below(4)];
        Generator { random, keys, write_percent, maintenance_permille }
    }

    /// That many operations, the last of them a comparison of everything.
    pub fn operations(&mut self, count: usize) -> Vec<Operation> {
        let mut operations: Vec<Operation> = (1..count).map(|_| self.operation()).collect();
        operations.push(Operation::CompareAll);
        operations
    }

    fn operation(&mut self) -> Operation {
        if self.random.below(1000) < self.maintenance_permille {
            return self.maintenance();
        }
        if self.random.percent(self.write_percent) {
            return self.write_operation();
        }
        self.read_operation()
    }

    fn maintenance(&mut self) -> Operation {
        match self.random.below(22) {
            0..=6 => Operation::Flush,
            7..=9 => Operation::Compact,
            10..=11 => Operation::CompactKeyspace(self.keyspace()),
            12 => Operation::WaitIdle,
            13 => Operation::Verify,
            14 => Operation::Checkpoint,
            15..=16 => Operation::CompareAll,
            17..=18 => Operation::Reopen,
            19 => Operation::DropAndReopen,
            _ => Operation::Kill,
        }
    }

    fn write_operation(&mut self) -> Operation {
        let durability = match self.random.below(40) {
            0 => Durability::Sync,
            1 => Durability::Unlogged,
            _ => Durability::Async,
        };
        if self.random.percent(25) {
            let count = match self.random.below(12) {
                0 => 0,
                11 => self.random.between(10, 60),
                _ => self.random.between(1, 8),
            };
            return Operation::Batch((0..count).map(|_| self.write()).collect(), durability);
        }
        let mut write = self.write();
        if self.random.below(500) == 0 {
            let beyond = self.random.below(2);
            write.key = vec![b'k'; LONGEST_KEY + beyond];
        }
        Operation::Write(write, durability)
    }

    fn write(&mut self) -> Write {
        let keyspace = self.keyspace();
        let key = self.key();
        let operator = KEYSPACES[keyspace].1;
        let change = match self.random.below(100) {
            0..=39 => Change::Put(self.value(operator)),
            40..=59 => Change::Delete,
            // Mergeless keyspaces see a merge now and then: it must be refused.
            _ if operator == Operator::None && !self.random.percent(2) => Change::Put(self.value(operator)),
            _ => Change::Merge(self.operand(operator)),
        };
        Write { keyspace, key, change }
    }

    fn value(&mut self, operator: Operator) -> Vec<u8> {
        // A counter that is not 8 bytes makes later reads of merges fail, so it must stay rare.
        if operator == Operator::UInt64Add && !self.random.percent(1) {
            return self.counter();
        }
        let length = match self.random.below(200) {
            0..=9 => 0,
            10..=149 => self.random.between(1, 20),
            150..=189 => self.random.between(21, 300),
            190..=197 => self.random.between(301, 5_000),
            198 => self.random.between(8_000, 12_000),
            _ => self.random.between(12_000, 70_000),
        };
        // Half of the values compress.
        if self.random.percent(50) {
            vec![b'a' + self.random.below(26) as u8; length]
        } else {
            self.random.bytes(length)
        }
    }

    fn operand(&mut self, operator: Operator) -> Vec<u8> {
        if operator == Operator::UInt64Add {
            return if self.random.below(200) == 0 { vec![1, 2, 3] } else { self.counter() };
        }
        let length = self.random.below(12);
        self.random.bytes(length)
    }

    fn counter(&mut self) -> Vec<u8> {
        let number = match self.random.below(4) {
            0 => 1,
            1 => self.random.next(),
            2 => u64::MAX,
            _ => self.random.below(1000) as u64,
        };
        number.to_le_bytes().to_vec()
    }

    fn read_operation(&mut self) -> Operation {
        let keyspace = self.keyspace();
        let slot = self.random.below(SLOTS);
        let snapshot = if self.random.percent(40) { Some(self.random.below(SLOTS)) } else { None };
        let source = Source { keyspace, snapshot };
        match self.random.below(100) {
            0..=49 => Operation::Get(source, self.key()),
            50..=61 => Operation::Scan(source, self.span(), self.ends()),
            62..=67 => Operation::TakeSnapshot(slot),
            68..=70 => Operation::DropSnapshot(slot),
            71..=76 => Operation::OpenCursor(slot, source),
            77..=86 => Operation::MoveCursor(slot, self.moves()),
            87..=88 => Operation::DropCursor(slot),
            89..=92 => Operation::OpenIterator(slot, source, self.span()),
            93..=98 => Operation::StepIterator(slot, self.ends()),
            _ => Operation::DropIterator(slot),
        }
    }

    fn ends(&mut self) -> Vec<bool> {
        let count = self.random.below(12);
        let front_percent = [0, 50, 100][self.random.below(3)];
        (0..count).map(|_| self.random.percent(front_percent)).collect()
    }

    fn moves(&mut self) -> Vec<Move> {
        let count = self.random.between(1, 15);
        (0..count)
            .map(|_| match self.random.below(20) {
                0 => Move::First,
                1 => Move::Last,
                2..=3 => Move::Seek(self.key()),
                4..=5 => Move::SeekForPrev(self.key()),
                6..=12 => Move::Next,
                _ => Move::Prev,
            })
            .collect()
    }

    fn span(&mut self) -> Span {
        match self.random.below(4) {
            0 => Span::All,
            1 => {
                let mut prefix = self.key();
                let shorter = self.random.below(prefix.len() + 1);
                prefix.truncate(shorter);
                Span::Prefix(prefix)
            }
            _ => Span::Range(self.bound(), self.bound()),
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.random.below(5) {
            0 => Bound::Unbounded,
            1..=2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    fn keyspace(&mut self) -> usize {
        self.random.below(KEYSPACES.len())
    }

    fn key(&mut self) -> Vec<u8> {
        // A key that was never written, now and then.
        if self.random.percent(3) {
            let length = self.random.below(6);
            return self.random.bytes(length);
        }
        // Squared, so that some keys are hit much more often than others.
        let (first, second) = (self.random.below(self.keys.len()), self.random.below(self.keys.len()));
        self.keys[first.min(second)].clone()
    }
}

/// Keys that are close together, and odd ones.
fn key_pool(random: &mut Random) -> Vec<Vec<u8>> {
    let count = [8, 30, 150][random.below(3)];
    let mut keys: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0xff],
        vec![0xff; 2],
        vec![0xff; 9],
        b"p".to_vec(),
        b"pr".to_vec(),
        b"pr\0".to_vec(),
        b"pre\xff".to_vec(),
        b"pre\xff\xff".to_vec(),
        b"prefix".to_vec(),
        vec![b'l'; 300],
        [&[b'l'; 300][..], b"m"].concat(),
        vec![b'l'; 5000],
    ];
    for number in 0..count {
        keys.push(match random.below(4) {
            0 => vec![b'a' + random.below(3) as u8; random.between(1, 4)],
            1 => format!("common-prefix-of-many-keys-{number:04}").into_bytes(),
            2 => (number as u64).to_be_bytes().to_vec(),
            _ => {
                let length = random.between(1, 10);
                random.bytes(length)
            }
        });
    }
    random.shuffle(&mut keys);
    keys
}
