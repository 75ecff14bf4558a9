//! Random scripts over the whole interface, each from one seed.

use super::script::{COUNTER, HOUR_MS, KEYSPACES, NOW_MS, SLOTS, Script, Step, first_settings};
use super::session::OPTION_CHANGES;
use crate::generator::Expected;
use crate::model::{Change, Life, Operator, Ttl, Write};
use crate::orders::order_of;
use crate::random::Random;
use crate::state::Durability;
use esker::CheckpointMode;
use std::collections::BTreeSet;
use std::ops::Bound;

/// What a script may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most steps.
    pub steps: usize,
    /// The most operations of a large batch.
    pub batch: usize,
    /// The longest value, in bytes.
    pub value: usize,
    /// Whether writes may go without log.
    pub unlogged: bool,
    /// Whether databases are damaged and repaired.
    pub repair: bool,
    /// Whether keyspaces are dropped.
    pub drops: bool,
    /// Whether half of the scripts rename keyspaces and change their settings. Those repair
    /// nothing: a repair without manifest takes names and settings from tables.
    pub alterations: bool,
}

impl Limits {
    /// The usual ones.
    pub const USUAL: Limits =
        Limits { steps: 30, batch: 300, value: 3000, unlogged: true, repair: true, drops: true, alterations: true };
}

/// The script of that seed.
pub fn generated(seed: u64, limits: Limits) -> Script {
    let alterations = limits.alterations && (seed / 2).is_multiple_of(2);
    let limits = Limits { alterations, repair: limits.repair && !alterations, ..limits };
    let mut random = Random::new(seed);
    let mut cast: Vec<usize> = (0..KEYSPACES.len()).collect();
    random.shuffle(&mut cast);
    cast.truncate(random.between(1, 5));
    let keys = (0..[6, 20, 60][random.below(3)]).map(|number| key(&mut random, number)).collect();
    let sync_percent = [5, 20, 60][random.below(3)];
    let settings = first_settings();
    let mut maker =
        Maker { random, limits, cast, keys, sync_percent, settings, now: NOW_MS, checkpoints: 0, next: None };
    let count = maker.random.between(4, limits.steps);
    let steps = (0..count).map(|_| maker.step()).collect();
    Script { name: format!("generated-{seed}"), steps }
}

fn key(random: &mut Random, number: usize) -> Vec<u8> {
    match random.below(8) {
        0 => random.bytes(number % 3),
        1 => [&[b'l'; 40][..], &[number as u8]].concat(),
        2 => (number as u64).to_be_bytes().to_vec(),
        _ => format!("key-{number:03}").into_bytes(),
    }
}

struct Maker {
    random: Random,
    limits: Limits,
    cast: Vec<usize>,
    keys: Vec<Vec<u8>>,
    sync_percent: usize,
    /// Those that the keyspaces have now.
    settings: Vec<(Operator, Ttl)>,
    now: u64,
    checkpoints: usize,
    /// The step that is to come next.
    next: Option<Step>,
}

impl Maker {
    fn step(&mut self) -> Step {
        if let Some(next) = self.next.take() {
            return next;
        }
        if self.limits.alterations && self.random.percent(12) {
            return self.alteration();
        }
        match self.random.below(100) {
            0..=24 => self.batch(),
            25..=30 => self.transaction(),
            31..=38 => self.single(),
            39..=45 => self.ask(),
            46..=47 => self.typed(),
            48 => Step::PopFirst(self.keyspace()),
            49..=52 => self.ingest(),
            53..=60 => Step::Flush,
            64 if self.limits.drops => self.drop_keyspace(),
            61..=64 => Step::Compact,
            65..=67 => Step::CompactRange(self.keyspace(), self.bound(), self.bound()),
            68..=69 => Step::WaitIdle,
            70 if self.limits.drops => self.drop_keyspace(),
            70..=71 => Step::Sync,
            72..=76 => self.clock(),
            77..=80 => Step::Hold(self.random.below(SLOTS), self.keyspace()),
            81..=86 => Step::Look(self.random.below(SLOTS), self.random.below(20)),
            87..=88 => Step::Compare,
            89..=90 => Step::ReadBeside,
            91..=92 => Step::Reopen,
            93 => Step::ReopenWith(self.random.below(OPTION_CHANGES)),
            94..=96 => Step::DropAndReopen,
            97..=98 if self.limits.repair => Step::Repair,
            97..=98 => Step::DropAndReopen,
            _ if self.random.percent(30) => self.destroy(),
            _ => {
                self.checkpoints += 1;
                let mode = [CheckpointMode::Link, CheckpointMode::Copy][self.checkpoints % 2];
                Step::Checkpoint(self.checkpoints, mode)
            }
        }
    }

    fn alteration(&mut self) -> Step {
        let index = self.keyspace();
        let (operator, ttl) = self.settings[index];
        match self.random.below(10) {
            0..=3 => Step::Rename(index),
            // What a merge makes of what expires depends on what is lost.
            4..=5 if !self.limits.unlogged => {
                let ttl = Ttl::On([None, Some(HOUR_MS), Some(300)][self.random.below(3)]);
                self.settings[index] = (operator, ttl);
                Step::Ttl(index, ttl)
            }
            _ => {
                let others = operators_for(index);
                let operator = others[self.random.below(others.len())];
                self.settings[index] = (operator, ttl);
                Step::Operator(index, operator)
            }
        }
    }

    fn expires(&self, keyspace: usize) -> bool {
        self.settings[keyspace].1 != Ttl::Off
    }

    /// Not of the keyspace with the commit counter, by which a recovered database says what it
    /// holds.
    fn drop_keyspace(&mut self) -> Step {
        match self.keyspace() {
            index if index == COUNTER.0 => Step::Sync,
            index => {
                // It comes again at once, or with the next step that needs it.
                self.next = self.random.percent(50).then_some(Step::Create(index));
                self.settings[index] = first_settings()[index];
                Step::DropKeyspace(index)
            }
        }
    }

    fn destroy(&mut self) -> Step {
        self.settings = first_settings();
        Step::Destroy
    }

    fn ask(&mut self) -> Step {
        let Step::Single(write, durability) = self.single() else { return Step::Sync };
        if write.change.is_range() {
            return Step::PopFirst(write.keyspace);
        }
        let expected = match self.random.below(5) {
            0 => Expected::Other,
            1..=2 => Expected::Absent,
            _ => Expected::Current,
        };
        if self.random.percent(25) && matches!(write.change, Change::Put(_)) {
            // What has just been written and is not durable is all that a synced call sees, which
            // then declines.
            self.next = Some(Step::Ask(write.clone(), Expected::Absent, Durability::Sync));
            return Step::Single(write, Durability::Async);
        }
        Step::Ask(write, expected, durability)
    }

    fn typed(&mut self) -> Step {
        match self.single() {
            Step::Single(write, durability) => Step::Typed(write, durability),
            other => other,
        }
    }

    fn batch(&mut self) -> Step {
        let count = match self.random.below(12) {
            0 => self.random.between(self.limits.batch / 4, self.limits.batch),
            1 => 0,
            _ => self.random.between(1, 8),
        };
        let writes: Vec<Write> = (0..count).map(|_| self.write()).collect();
        let durability = self.durability(&writes);
        Step::Batch(writes, durability)
    }

    fn transaction(&mut self) -> Step {
        let count = self.random.between(0, 6);
        let writes: Vec<Write> = (0..count).map(|_| self.write()).collect();
        let durability = self.durability(&writes);
        Step::Transaction(writes, durability)
    }

    fn single(&mut self) -> Step {
        let write = self.write();
        let durability = match (&write.change, write.life) {
            (Change::Expire, _) | (_, Life::Until(_)) => Durability::Async,
            _ => self.durability(std::slice::from_ref(&write)),
        };
        Step::Single(write, durability)
    }

    fn ingest(&mut self) -> Step {
        let keyspace = self.keyspace();
        let count = self.random.between(1, 30);
        let keys: BTreeSet<Vec<u8>> = (0..count).map(|_| self.key()).collect();
        let (name, operator, _) = KEYSPACES[keyspace];
        let mut pairs: Vec<_> = keys.into_iter().map(|key| (key, self.value(operator))).collect();
        pairs.sort_by(|a, b| order_of(name).compare(&a.0, &b.0));
        Step::Ingest(keyspace, pairs)
    }

    fn clock(&mut self) -> Step {
        let milliseconds = match self.random.below(4) {
            0 => 1,
            1 => self.random.between(1, 50) as u64,
            2 => self.random.between(100, 500) as u64,
            _ => self.random.between(1000, 4_000_000) as u64,
        };
        self.now += milliseconds;
        Step::Clock(milliseconds)
    }

    /// Without log only where nothing expires: what a merge there makes depends on what is lost.
    fn durability(&mut self, writes: &[Write]) -> Durability {
        let timeless = !writes.iter().any(|write| self.expires(write.keyspace));
        match self.random.below(100) {
            below if below < self.sync_percent => Durability::Sync,
            90.. if self.limits.unlogged && timeless => Durability::Unlogged,
            _ => Durability::Async,
        }
    }

    fn write(&mut self) -> Write {
        let keyspace = self.keyspace();
        let (operator, _) = self.settings[keyspace];
        let expires = self.expires(keyspace);
        let change = match self.random.below(100) {
            0..=2 => return Write::delete_range(keyspace, self.bound(), self.bound()),
            3 if order_of(KEYSPACES[keyspace].0).has_prefixes() => {
                let mut prefix = self.key();
                prefix.truncate(prefix.len() - prefix.len().min(self.random.below(2)));
                return Write::new(keyspace, [], Change::DeletePrefix(prefix));
            }
            3 => return Write::delete_range(keyspace, self.bound(), self.bound()),
            4..=16 => Change::Delete,
            17..=19 if expires => Change::Expire,
            17..=19 => Change::Delete,
            20..=59 if operator != Operator::None => Change::Merge(self.operand(KEYSPACES[keyspace].1)),
            _ => Change::Put(self.value(KEYSPACES[keyspace].1)),
        };
        let life = match &change {
            Change::Put(_) | Change::Expire if expires => self.life(true),
            Change::Merge(_) if expires => self.life(false),
            _ => Life::Usual,
        };
        Write::new(keyspace, self.key(), change).living(life)
    }

    fn life(&mut self, of_put: bool) -> Life {
        match self.random.below(10) {
            0..=3 => Life::For(self.random.between(1, 400) as u64),
            4 => Life::For(self.random.between(1, 5_000_000) as u64),
            5..=6 if of_put => Life::Until(self.now + self.random.below(600) as u64 - 100),
            _ => Life::Usual,
        }
    }

    fn operand(&mut self, operator: Operator) -> Vec<u8> {
        if matches!(operator, Operator::UInt64Add | Operator::Int64Add) {
            return (self.random.below(1000) as u64).to_le_bytes().to_vec();
        }
        let length = self.random.below(12);
        self.random.bytes(length)
    }

    fn value(&mut self, operator: Operator) -> Vec<u8> {
        if matches!(operator, Operator::UInt64Add | Operator::Int64Add) {
            return self.operand(operator);
        }
        let length = match self.random.below(40) {
            0..=1 => 0,
            2..=29 => self.random.between(1, 20),
            30..=37 => self.random.between(21, 300),
            _ => self.random.between(301, 3000),
        };
        let length = length.min(self.limits.value);
        if self.random.percent(50) { vec![self.random.next() as u8; length] } else { self.random.bytes(length) }
    }

    fn keyspace(&mut self) -> usize {
        self.cast[self.random.below(self.cast.len())]
    }

    fn key(&mut self) -> Vec<u8> {
        self.keys[self.random.below(self.keys.len())].clone()
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.random.below(6) {
            0 => Bound::Unbounded,
            1..=3 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}

/// The operators that the values and operands of a keyspace suit: those of numbers have eight
/// bytes.
fn operators_for(keyspace: usize) -> &'static [Operator] {
    match KEYSPACES[keyspace].1 {
        Operator::UInt64Add | Operator::Int64Add => {
            &[Operator::UInt64Add, Operator::Int64Add, Operator::Max, Operator::Min, Operator::BytesXor, Operator::Put]
        }
        _ => &[
            Operator::StringAppend,
            Operator::Max,
            Operator::Min,
            Operator::Put,
            Operator::BytesXor,
            Operator::BitOr,
            Operator::Longest,
        ],
    }
}

/// Counters keep their eight bytes: merges onto others fail.
fn simpler_write(write: &Write) -> Vec<Write> {
    let counts = matches!(KEYSPACES[write.keyspace].1, Operator::UInt64Add | Operator::Int64Add);
    let sound = |simpler: &Write| !counts || matches!(&simpler.change, Change::Put(value) if value.len() == 8);
    write.simpler().into_iter().filter(sound).collect()
}

/// The same step with less in it.
pub fn simpler(step: &Step) -> Vec<Step> {
    fn parts<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
        let half = items.len() / 2;
        let mut parts = Vec::new();
        if items.len() > 1 {
            parts.extend([items[..half].to_vec(), items[half..].to_vec()]);
        }
        if items.len() <= 12 {
            parts.extend((0..items.len()).map(|index| [&items[..index], &items[index + 1..]].concat()));
        }
        parts
    }
    match step {
        Step::Batch(writes, durability) => {
            let mut found: Vec<Step> = parts(writes).into_iter().map(|part| Step::Batch(part, *durability)).collect();
            for (index, write) in writes.iter().enumerate().take(12) {
                found.extend(simpler_write(write).into_iter().map(|simpler| {
                    let mut writes = writes.clone();
                    writes[index] = simpler;
                    Step::Batch(writes, *durability)
                }));
            }
            found
        }
        Step::Transaction(writes, durability) => {
            parts(writes).into_iter().map(|part| Step::Batch(part, *durability)).collect()
        }
        Step::Single(write, durability) => {
            simpler_write(write).into_iter().map(|simpler| Step::Single(simpler, *durability)).collect()
        }
        Step::Typed(write, durability) => vec![Step::Single(write.clone(), *durability)],
        Step::Ask(write, expected, durability) => {
            let simpler = simpler_write(write).into_iter();
            let mut found: Vec<Step> = simpler.map(|simpler| Step::Ask(simpler, *expected, *durability)).collect();
            found.push(Step::Single(write.clone(), *durability));
            found
        }
        Step::ReopenWith(_) => vec![Step::Reopen],
        Step::Ingest(keyspace, pairs) => {
            let some = parts(pairs).into_iter().filter(|part| !part.is_empty());
            some.map(|part| Step::Ingest(*keyspace, part)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_merge_what_expires() {
        let merges = |write: &Write| matches!((&write.change, write.life), (Change::Merge(_), Life::For(_)));
        let steps = (0..500).flat_map(|seed| generated(seed, Limits::USUAL).steps);
        let found =
            steps.filter(|step| matches!(step, Step::Transaction(writes, _) if writes.iter().any(merges))).count();
        assert!(found > 20, "{found}");
    }
}
