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
    /// Whether there is a keyspace whose operator fails.
    pub failing: bool,
    /// Whether what compaction takes cannot be foretold: the clock goes back, and, where nothing is
    /// repaired, there is a keyspace with a filter, and one that keeps its newest tables only.
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
        failing: true,
        fading: true,
    };

    /// Whether a script may have the keyspace.
    fn allow(&self, keyspace: usize) -> bool {
        match keyspace {
            FRAGILE => self.failing,
            _ if is_fading(keyspace) => self.fading && !self.repair,
            _ => true,
        }
    }
}

/// The script of that seed.
pub fn generated(seed: u64, limits: Limits) -> Script {
    let alterations = limits.alterations && (seed / 2).is_multiple_of(2);
    let limits = Limits { alterations, repair: limits.repair && !alterations, ..limits };
    let mut random = Random::new(seed);
    let mut cast: Vec<usize> = (0..KEYSPACES.len()).filter(|&keyspace| limits.allow(keyspace)).collect();
    random.shuffle(&mut cast);
    cast.truncate(random.between(1, 5));
    let keys = (0..[6, 20, MOST_KEYS][random.below(3)]).map(|number| key(&mut random, number)).collect();
    let sync_percent = [5, 20, 60][random.below(3)];
    let mut maker = Maker {
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
    };
    let count = maker.random.between(4, limits.steps);
    let steps = (0..count).map(|_| maker.step()).collect();
    Script { name: format!("generated-{seed}"), steps }
}

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
    use crate::powerloss::option_variants;
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::{SIFTED, may_fail};
    use crate::powerloss::session::{Ground, Session, run};
    use crate::simulated::MEMORY_PATH;
    use esker::Options;
    use esker::env::Env;
    use esker::env::mem::MemEnv;
    use std::collections::BTreeMap;
    use std::path::Path;

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

    fn blob_files(env: &MemEnv) -> BTreeSet<String> {
        let names = env.list(Path::new(MEMORY_PATH)).unwrap();
        names.into_iter().filter(|name| name.ends_with(".blob")).collect()
    }

    /// How many blob files go while a script runs that drops nothing and is never reopened: all of
    /// those are collected.
    fn collected(seed: u64, options: &Options) -> usize {
        let limits = Limits { repair: false, drops: false, alterations: false, ..limits_of(seed) };
        let env = MemEnv::new();
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(options, env.clone()), &mut progress).unwrap();
        let mut gone = 0;
        for step in generated(seed, limits).steps.iter().filter(|step| !step.opens()) {
            let before = blob_files(&env);
            let performed = session.perform(step, &mut progress);
            performed.unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
            gone += before.difference(&blob_files(&env)).count();
        }
        session.close().unwrap();
        gone
    }

    #[test]
    fn blob_files_are_collected_while_scripts_run() {
        let variants = option_variants();
        let (_, options) = variants.iter().find(|(name, _)| *name == "large-values").unwrap();
        let counts: Vec<usize> = (0..100).map(|seed| collected(seed, options)).collect();
        println!("{counts:?}");
        assert!(counts.iter().sum::<usize>() >= 1, "{counts:?}");
    }
}
