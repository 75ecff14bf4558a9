//! Random scripts over the whole interface, each from one seed.

use super::script::{
    COUNTER, FRAGILE, HOUR_MS, KEYSPACES, MOST_KEYS, NOW_MS, SLOTS, Script, Step, WINDOW, WINDOW_BYTES, first_settings,
    is_fading, usual_key,
};
use super::session::OPTION_CHANGES;
use crate::generator::Expected;
use crate::model::{Change, FAILING, Life, Operator, PANICKING, Ttl, Write};
use crate::orders::order_of;
use crate::random::Random;
use crate::state::Durability;
use esker::{CheckpointMode, CompactionStyle};
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
    maker.random = Random::derived(seed, &[COLLECTING]);
    if let Some(collecting) = maker.collecting_steps() {
        let at = maker.random.below(steps.len() + 1);
        steps.splice(at..at, collecting);
    }
    Script { name: format!("generated-{seed}"), steps }
}

/// The stream of a seed that the steps are drawn from by which large values are collected: the rest
/// of a script is the same with and without them.
const COLLECTING: u64 = 3;

/// So many scripts in a hundred have such steps.
const COLLECTING_PERCENT: usize = 40;

/// How many large values there are then at most.
const LARGE_VALUES: usize = 6;

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

    /// Writes large values, overwrites or deletes all but one, and compacts, so that the one that
    /// lives is copied and its file goes. By chance such steps seldom come together.
    fn collecting_steps(&mut self) -> Option<Vec<Step>> {
        if !self.random.percent(COLLECTING_PERCENT) {
            return None;
        }
        let cast = self.cast.iter().copied();
        let suitable: Vec<usize> = cast.filter(|&keyspace| !is_fading(keyspace) && !counts(keyspace)).collect();
        let keyspace = *suitable.get(self.random.below(suitable.len()))?;
        let keys: BTreeSet<Vec<u8>> = (0..LARGE_VALUES).map(|_| self.key()).collect();
        let mut large = Vec::new();
        for key in &keys {
            let length = self.random.between(600, 1500);
            large.push(Write::new(keyspace, key.clone(), Change::Put(self.filled(length))));
        }
        let living = self.random.below(keys.len());
        let mut dead = Vec::new();
        for (_, key) in keys.into_iter().enumerate().filter(|(place, _)| *place != living) {
            let change = if self.random.percent(50) { Change::Delete } else { Change::Put(self.random.bytes(3)) };
            dead.push(Write::new(keyspace, key, change));
        }
        let durabilities = [self.durability(&large), self.durability(&dead)];
        let mut steps = vec![Step::Batch(large, durabilities[0])];
        steps.extend(self.random.percent(50).then_some(Step::Flush));
        steps.extend([Step::Batch(dead, durabilities[1]), Step::Compact]);
        Some(steps)
    }

    fn alteration(&mut self) -> Step {
        let index = self.keyspace();
        let (operator, ttl) = self.settings[index];
        match self.random.below(12) {
            0..=3 => Step::Rename(index),
            10..=11 => self.style(index),
            _ if is_fading(index) => self.style(index),
            // What a merge makes of what expires depends on what is lost, and whether what fails
            // has expired cannot be read.
            4..=5 if !self.limits.unlogged && index != FRAGILE => {
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

    fn style(&mut self, keyspace: usize) -> Step {
        // But for the one that is to keep little, all that there is.
        let max_bytes = if keyspace == WINDOW { WINDOW_BYTES } else { 1 << 40 };
        let fifo = CompactionStyle::Fifo { max_bytes };
        let styles = [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered, fifo];
        Step::Style(keyspace, styles[self.random.below(styles.len())])
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

    /// Without log only where nothing expires, and no merge fails: what it makes there depends on
    /// what is lost.
    fn durability(&mut self, writes: &[Write]) -> Durability {
        let depends = |write: &Write| self.expires(write.keyspace) || write.keyspace == FRAGILE;
        let is_foretold = !writes.iter().any(depends);
        match self.random.below(100) {
            below if below < self.sync_percent => Durability::Sync,
            90.. if self.limits.unlogged && is_foretold => Durability::Unlogged,
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
            20..=59 if operator != Operator::None => Change::Merge(self.operand(keyspace)),
            _ => Change::Put(self.value(keyspace)),
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

    fn operand(&mut self, keyspace: usize) -> Vec<u8> {
        if counts(keyspace) {
            return (self.random.below(1000) as u64).to_le_bytes().to_vec();
        }
        let length = self.random.below(12);
        let mut operand = self.random.bytes(length);
        // Rarely, as the key fails until it is overwritten.
        if keyspace == FRAGILE && self.random.percent(15) {
            operand.insert(0, [FAILING, PANICKING][self.random.below(2)]);
        }
        operand
    }

    fn value(&mut self, keyspace: usize) -> Vec<u8> {
        if counts(keyspace) {
            return self.operand(keyspace);
        }
        let length = match self.random.below(40) {
            0..=1 => 0,
            2..=29 => self.random.between(1, 20),
            30..=37 => self.random.between(21, 300),
            _ => self.random.between(301, 3000),
        };
        self.filled(length)
    }

    /// So many bytes, or as many as a value may have, which compress or do not.
    fn filled(&mut self, length: usize) -> Vec<u8> {
        let length = length.min(self.limits.value);
        if self.random.percent(50) { vec![self.random.next() as u8; length] } else { self.random.bytes(length) }
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

/// The operators that the values and operands of a keyspace suit.
fn operators_for(keyspace: usize) -> &'static [Operator] {
    match keyspace {
        FRAGILE => &[Operator::Fragile, Operator::Longest, Operator::StringAppend],
        _ if counts(keyspace) => {
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
    let counts = counts(write.keyspace);
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
        Step::Abandon(writes) => parts(writes).into_iter().map(Step::Abandon).collect(),
        Step::Contend(writes) => parts(writes).into_iter().map(Step::Contend).collect(),
        Step::Begin(slot, writes) => parts(writes).into_iter().map(|part| Step::Begin(*slot, part)).collect(),
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
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::{SIFTED, may_fail};
    use crate::powerloss::session::{Ground, Session, run};
    use crate::powerloss::{blob_files, option_variants};
    use esker::env::mem::MemEnv;
    use esker::{Compression, Options};
    use std::collections::BTreeMap;

    /// The limits as the campaign chooses them.
    fn limits_of(seed: u64) -> Limits {
        Limits { unlogged: seed.is_multiple_of(2), ..Limits::USUAL }
    }

    #[test]
    fn transactions_merge_what_expires() {
        let merges = |write: &Write| matches!((&write.change, write.life), (Change::Merge(_), Life::For(_)));
        let has_merges = |step: &Step| match step {
            Step::Transaction(writes, _) | Step::Abandon(writes) | Step::Contend(writes) | Step::Begin(_, writes) => {
                writes.iter().any(merges)
            }
            _ => false,
        };
        let steps = (0..500).flat_map(|seed| generated(seed, Limits::USUAL).steps);
        let found = steps.filter(has_merges).count();
        assert!(found > 20, "{found}");
    }

    /// The name of a kind of step, and how many there must be of it in 300 scripts: about a third
    /// of those that are to be expected. A new kind has to be named here.
    fn kind(step: &Step) -> (&'static str, usize) {
        match step {
            Step::Batch(..) => ("batch", 400),
            Step::Transaction(..) => ("transaction", 60),
            Step::Abandon(_) => ("abandoned transaction", 10),
            Step::Contend(_) => ("conflicting transaction", 8),
            Step::Begin(..) => ("begin of a transaction", 40),
            Step::Commit(..) => ("commit of a held transaction", 25),
            Step::Rollback(_) => ("rollback of a held transaction", 8),
            Step::Single(..) => ("single write", 100),
            Step::Typed(..) => ("typed write", 25),
            Step::Ask(..) => ("conditional write", 80),
            Step::PopFirst(_) => ("pop_first", 12),
            Step::Ingest(..) => ("load", 50),
            Step::Create(_) => ("create", 10),
            Step::DropKeyspace(_) => ("drop", 25),
            Step::Rename(_) => ("rename", 35),
            Step::Operator(..) => ("other operator", 35),
            Step::Ttl(..) => ("other lives", 8),
            Step::Style(..) => ("other style", 12),
            Step::Sync => ("sync", 20),
            Step::Flush => ("flush", 100),
            Step::Compact => ("compact", 40),
            Step::CompactRange(..) => ("compact_range", 35),
            Step::WaitIdle => ("wait_idle", 25),
            Step::Clock(_) => ("clock", 60),
            Step::ClockBack(_) => ("clock that goes back", 20),
            Step::Hold(..) => ("hold", 50),
            Step::Look(..) => ("look", 80),
            Step::Compare => ("compare", 25),
            Step::ReadBeside => ("read beside", 25),
            Step::Reopen => ("reopen", 25),
            Step::ReopenWith(_) => ("other options", 12),
            Step::DropAndReopen => ("drop and reopen", 40),
            Step::Repair => ("repair", 12),
            Step::Destroy => ("destroy", 3),
            Step::Checkpoint(..) => ("checkpoint", 8),
        }
    }

    /// The same of writes whose outcome is not told by what is written.
    fn kind_of_write(write: &Write) -> Option<(&'static str, usize)> {
        let is_put = matches!(write.change, Change::Put(_));
        match write.keyspace {
            FRAGILE if may_fail(write) => Some(("merge that fails", 25)),
            FRAGILE if is_put => Some(("put over merges that fail", 40)),
            WINDOW if is_put => Some(("put into a window", 60)),
            SIFTED if is_put => Some(("put that a filter sees", 60)),
            _ => None,
        }
    }

    /// How many kinds [`kind`] and [`kind_of_write`] know: one that never comes up is in no count.
    const KINDS: usize = 39;

    #[test]
    fn every_kind_of_step_comes_up() {
        let mut counts: BTreeMap<(&str, usize), usize> = BTreeMap::new();
        for step in (0..300).flat_map(|seed| generated(seed, limits_of(seed)).steps) {
            for kind in step.writes().iter().filter_map(kind_of_write).chain([kind(&step)]) {
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{counts:?}");
        let rare: Vec<_> = counts.iter().filter(|((_, least), count)| *count < least).collect();
        assert!(rare.is_empty(), "{rare:?} of {counts:?}");
        assert_eq!(counts.len(), KINDS, "{counts:?}");
    }

    /// The steps of transactions come in pairs, and each must do without the other.
    #[test]
    fn a_script_without_any_one_of_its_steps_is_a_script() {
        let (_, options) = option_variants().swap_remove(0);
        let passes = |seed: u64, steps: &[Step]| {
            let outcome = run(steps, &Ground::new(&options, MemEnv::new()), &mut Progress::default(), &mut |_| {});
            outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}; {steps:?}"));
        };
        let mut left_out = 0;
        for seed in (0..60_u64).filter(|&seed| (seed / 4).is_multiple_of(3)) {
            let Script { steps, .. } = generated(seed, limits_of(seed));
            passes(seed, &steps);
            for index in (0..steps.len()).filter(|&index| steps[index].is_contended()) {
                passes(seed, &[&steps[..index], &steps[index + 1..]].concat());
                left_out += 1;
            }
        }
        assert!(left_out >= 20, "{left_out}");
    }

    /// What came of the collecting steps of a script on a database without anything else: whether
    /// the last of them made a blob file go, and whether it copied large values.
    fn collected(seed: u64, options: &Options) -> Option<(bool, bool)> {
        let mut maker = Maker::of(seed, limits_of(seed));
        maker.random = Random::derived(seed, &[COLLECTING]);
        let mut steps = maker.collecting_steps()?;
        assert_eq!(steps.pop(), Some(Step::Compact), "seed {seed}");
        let env = MemEnv::new();
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(options, env.clone()), &mut progress).unwrap();
        let mut perform = |session: &mut Session, step: &Step| {
            let performed = session.perform(step, &mut progress);
            performed.unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
        };
        steps.iter().for_each(|step| perform(&mut session, step));
        let before = (blob_files(&env), session.db().stats().blob_written_bytes);
        perform(&mut session, &Step::Compact);
        perform(&mut session, &Step::Compare);
        let after = (blob_files(&env), session.db().stats().blob_written_bytes);
        session.close().unwrap();
        Some((!before.0.is_subset(&after.0), after.1 > before.1))
    }

    /// Values that are not compressed are copied for no other reason than that most of their file
    /// is garbage. If most values lived, or were not large ones, this would fail.
    #[test]
    fn collecting_steps_make_blob_files_go_and_copy_what_lives() {
        let variants = option_variants();
        let (_, options) = variants.iter().find(|(name, _)| *name == "large-values").unwrap();
        let options = options.clone().compression(Compression::None).upper_compression(Compression::None);
        let all: Vec<(bool, bool)> = (0..150).filter_map(|seed| collected(seed, &options)).collect();
        let gone = all.iter().filter(|(is_gone, _)| *is_gone).count();
        let copied = all.iter().filter(|(_, is_copied)| *is_copied).count();
        println!("{} scripts, in {gone} files went, in {copied} values were copied", all.len());
        assert!(all.len() >= 30, "{}", all.len());
        assert!(gone * 4 >= all.len() * 3 && copied * 3 >= all.len(), "{gone} and {copied} of {}", all.len());
    }

    /// Each kind of change before a repair, and what a filter or FIFO takes.
    fn before_a_repair(step: &Step) -> Vec<&'static str> {
        let kept = |write: &Write| match write.keyspace {
            WINDOW => Some("put into a window"),
            SIFTED => Some("put that a filter sees"),
            _ => None,
        };
        let alteration = match step {
            Step::Rename(_) => Some("rename"),
            Step::Operator(..) => Some("other operator"),
            Step::Ttl(..) => Some("other lives"),
            Step::Style(..) => Some("other style"),
            _ => None,
        };
        alteration.into_iter().chain(step.writes().iter().filter_map(kept)).collect()
    }

    /// If scripts that change names and settings repaired nothing, or had no keyspace of which
    /// compaction takes values, this would fail.
    #[test]
    fn what_a_repair_must_leave_alone_comes_before_repairs() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..2000 {
            let Script { steps, .. } = generated(seed, Limits { altered_repair: true, ..limits_of(seed) });
            let Some(last) = steps.iter().rposition(|step| *step == Step::Repair) else { continue };
            let before: BTreeSet<&str> = steps[..last].iter().flat_map(before_a_repair).collect();
            before.into_iter().for_each(|what| *counts.entry(what).or_default() += 1);
        }
        println!("{counts:?}");
        assert_eq!(counts.len(), 6, "{counts:?}");
        assert!(counts.values().all(|&count| count >= 3), "{counts:?}");
    }

    /// Scripts of kept seeds are what they were but for the steps that were put between.
    #[test]
    fn steps_that_are_put_between_change_no_other() {
        for seed in 0..100 {
            let limits = limits_of(seed);
            let mut alone = Maker::of(seed, limits);
            let count = alone.random.between(4, limits.steps);
            let others: Vec<Step> = (0..count).map(|_| alone.step()).collect();
            let Script { steps, .. } = generated(seed, limits);
            let more = steps.len() - others.len();
            let is_between = |at: usize| steps[..at] == others[..at] && steps[at + more..] == others[at..];
            assert!([0, 3, 4].contains(&more) && (0..=count).any(is_between), "seed {seed}");
        }
    }
}
