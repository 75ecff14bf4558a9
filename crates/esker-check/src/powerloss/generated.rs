//! Random scripts over the whole interface, each from one seed.

mod altering;
mod collecting;
mod keeping;
mod refusing;
mod simpler;
mod unlogged;
mod writes;

use super::script::{
    COUNTER, FRAGILE, KEYSPACES, MOST_KEYS, NOW_MS, SLOTS, Script, Step, first_settings, is_fading, usual_key,
};
use super::session::OPTION_CHANGES;
use crate::generator::Expected;
use crate::model::{Change, Life, Operator, Ttl, Write};
use crate::orders::order_of;
use crate::random::Random;
use crate::state::Durability;
use esker::CheckpointMode;
pub use simpler::simpler;
use std::collections::BTreeSet;
use std::ops::Bound;

/// What a script may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most steps, beside those by which large values are collected.
    pub steps: usize,
    /// The most operations of a large batch.
    pub batch: usize,
    /// The longest value, in bytes.
    pub value: usize,
    /// Whether writes may go without log.
    pub unlogged: bool,
    /// Whether they may do so where entries expire, too.
    pub expiring_unlogged: bool,
    /// Whether loads are tried that are refused.
    pub refusals: bool,
    /// Whether some scripts keep changes, or for another time than at first, from one open to the
    /// next.
    pub retentions: bool,
    /// Whether databases are damaged and repaired.
    pub repair: bool,
    /// Whether keyspaces are dropped.
    pub drops: bool,
    /// Whether half of the scripts rename keyspaces and change their settings.
    pub alterations: bool,
    /// Whether a third of those repair, too. The other half does in any case where databases are
    /// repaired.
    pub altered_repair: bool,
    /// Whether there is a keyspace whose operator fails.
    pub failing: bool,
    /// Whether what compaction takes cannot be foretold: the clock goes back, and, where settings
    /// change or nothing is repaired, there is a keyspace with a filter, and one that keeps its
    /// newest tables only.
    pub fading: bool,
}

impl Limits {
    /// The usual ones.
    pub const USUAL: Limits = Limits {
        steps: 30,
        batch: 300,
        value: 3000,
        unlogged: true,
        expiring_unlogged: true,
        refusals: true,
        retentions: true,
        repair: true,
        drops: true,
        alterations: true,
        altered_repair: false,
        failing: true,
        fading: true,
    };

    /// Whether a script may have the keyspace.
    fn allow(&self, keyspace: usize) -> bool {
        match keyspace {
            FRAGILE => self.failing,
            _ if is_fading(keyspace) => self.fading && (self.alterations || !self.repair),
            _ => true,
        }
    }
}

/// The script of that seed.
pub fn generated(seed: u64, limits: Limits) -> Script {
    let mut maker = Maker::of(seed, limits);
    let count = maker.random.between(4, limits.steps);
    let mut steps: Vec<Step> = (0..count).map(|_| maker.step()).collect();
    for (stream, more_steps) in BETWEEN {
        maker.random = Random::derived(seed, &[stream]);
        for more in more_steps(&mut maker) {
            let at = maker.random.below(steps.len() + 1);
            steps.splice(at..at, more);
        }
    }
    Script { name: format!("generated-{seed}"), steps }
}

/// What is put between the other steps of a script, each from a stream of its own of the seed: the
/// rest of a script is the same with and without it.
const BETWEEN: [(u64, MoreSteps); 4] = [
    (COLLECTING, Maker::collections),
    (4, Maker::unlogged_steps),
    (5, Maker::refused_loads),
    (6, Maker::keeping_steps),
];

/// Makes steps, each list of which is put in at one place.
type MoreSteps = fn(&mut Maker) -> Vec<Vec<Step>>;

/// The stream of the steps by which large values are collected.
const COLLECTING: u64 = 3;

fn key(random: &mut Random, number: usize) -> Vec<u8> {
    match random.below(8) {
        0 => random.bytes(number % 3),
        1 => [&[b'l'; 40][..], &[number as u8]].concat(),
        2 => (number as u64).to_be_bytes().to_vec(),
        _ => usual_key(number),
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
    /// Whether others write while transactions are open.
    contended: bool,
    /// Whether a transaction is held open under each number.
    open: [bool; SLOTS],
    /// The step that is to come next.
    next: Option<Step>,
}

impl Maker {
    fn of(seed: u64, limits: Limits) -> Maker {
        let alterations = limits.alterations && (seed / 2).is_multiple_of(2);
        let repair = limits.repair && (!alterations || limits.altered_repair && (seed / 8).is_multiple_of(3));
        let limits = Limits { alterations, repair, ..limits };
        let mut random = Random::new(seed);
        let mut cast: Vec<usize> = (0..KEYSPACES.len()).filter(|&keyspace| limits.allow(keyspace)).collect();
        random.shuffle(&mut cast);
        cast.truncate(random.between(1, 5));
        let keys = (0..[6, 20, MOST_KEYS][random.below(3)]).map(|number| key(&mut random, number)).collect();
        let sync_percent = [5, 20, 60][random.below(3)];
        Maker {
            random,
            limits,
            cast,
            keys,
            sync_percent,
            settings: first_settings(),
            now: NOW_MS,
            checkpoints: 0,
            // In a third of the scripts: after a failing call less can be foretold of those.
            contended: (seed / 4).is_multiple_of(3),
            open: [false; SLOTS],
            next: None,
        }
    }

    fn step(&mut self) -> Step {
        let step = self.next.take().unwrap_or_else(|| self.some_step());
        if step.opens() || step.is_alteration() {
            self.open = [false; SLOTS];
        }
        step
    }

    fn some_step(&mut self) -> Step {
        if self.contended && self.random.percent(20) {
            return self.held_transaction();
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
            48 => Step::PopFirst(self.sure_keyspace()),
            49..=52 => self.ingest(),
            53..=60 => Step::Flush,
            64 if self.limits.drops => self.drop_keyspace(),
            61..=64 => Step::Compact,
            65..=67 => Step::CompactRange(self.keyspace(), self.bound(), self.bound()),
            68..=69 => Step::WaitIdle,
            70 if self.limits.drops => self.drop_keyspace(),
            70..=71 => Step::Sync,
            72..=76 => self.clock(),
            77..=80 => Step::Hold(self.random.below(SLOTS), self.sure_keyspace()),
            81..=86 => Step::Look(self.random.below(SLOTS), self.random.below(20)),
            87..=88 => Step::Compare,
            89..=90 => Step::ReadBeside,
            91..=92 => Step::Reopen,
            93 => Step::ReopenWith(self.random.below(OPTION_CHANGES)),
            // So few scripts do both that each repairs more often.
            94..=96 if self.limits.alterations && self.limits.repair => Step::Repair,
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
        if is_fading(write.keyspace) {
            return Step::Single(write, durability);
        }
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
        let writes = self.transaction_writes();
        let durability = self.durability(&writes);
        match self.random.below(8) {
            0 => Step::Abandon(writes),
            1..=3 if self.contended => Step::Contend(writes),
            _ => Step::Transaction(writes, durability),
        }
    }

    fn transaction_writes(&mut self) -> Vec<Write> {
        let count = self.random.between(0, 6);
        let writes = (0..count).map(|_| self.write());
        writes.filter(|write| !is_fading(write.keyspace)).collect()
    }

    /// Begins a transaction that is held open, or ends one: soon, so that some meet nobody.
    fn held_transaction(&mut self) -> Step {
        let held = self.open.iter().position(|&open| open).filter(|_| self.random.percent(60));
        let slot = held.unwrap_or_else(|| self.random.below(SLOTS));
        self.open[slot] = !self.open[slot];
        if self.open[slot] {
            return Step::Begin(slot, self.transaction_writes());
        }
        match self.random.below(4) {
            0 => Step::Rollback(slot),
            _ => Step::Commit(slot, [Durability::Async, Durability::Sync][self.random.below(2)]),
        }
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
        let mut pairs: Vec<_> = keys.into_iter().map(|key| (key, self.value(keyspace))).collect();
        pairs.sort_by(|a, b| order_of(KEYSPACES[keyspace].0).compare(&a.0, &b.0));
        Step::Ingest(keyspace, pairs)
    }

    fn clock(&mut self) -> Step {
        let milliseconds = match self.random.below(4) {
            0 => 1,
            1 => self.random.between(1, 50) as u64,
            2 => self.random.between(100, 500) as u64,
            _ => self.random.between(1000, 4_000_000) as u64,
        };
        if self.limits.fading && self.random.percent(30) {
            self.now -= milliseconds;
            return Step::ClockBack(milliseconds);
        }
        self.now += milliseconds;
        Step::Clock(milliseconds)
    }

    fn keyspace(&mut self) -> usize {
        self.cast[self.random.below(self.cast.len())]
    }

    /// One in which nothing goes that compaction may take at any time.
    fn sure_keyspace(&mut self) -> usize {
        let sure: Vec<usize> = self.cast.iter().copied().filter(|&keyspace| !is_fading(keyspace)).collect();
        if sure.is_empty() { COUNTER.0 } else { sure[self.random.below(sure.len())] }
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

/// Whether the values of a keyspace are numbers of eight bytes.
fn counts(keyspace: usize) -> bool {
    matches!(KEYSPACES[keyspace].1, Operator::UInt64Add | Operator::Int64Add)
}

#[cfg(test)]
mod tests;
