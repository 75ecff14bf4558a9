//! Whether everything that scripts may do comes up in them.

use super::*;
use crate::powerloss::option_variants;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{Refusal, SIFTED, WINDOW, may_fail};
use crate::powerloss::session::{Ground, run};
use esker::env::mem::MemEnv;
use std::collections::BTreeMap;

/// The limits as the campaign chooses them.
pub(super) fn limits_of(seed: u64) -> Limits {
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
        Step::RefusedIngest(_, _, Refusal::Twice) => ("load with a key twice", 10),
        Step::RefusedIngest(_, _, Refusal::OutOfOrder) => ("load out of order", 10),
        Step::RefusedIngest(_, _, Refusal::TooLong) => ("load with a key that is too long", 10),
        Step::RefusedIngest(_, _, Refusal::Panic) => ("load that panics", 10),
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
        Step::Keep(None) => ("changes kept as at first", 15),
        Step::Keep(Some(_)) => ("changes kept for another time", 45),
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

/// The same of writes without log where entries expire.
fn unlogged_where_it_expires(step: &Step) -> Vec<(&'static str, usize)> {
    let expiring = |write: &&Write| KEYSPACES[write.keyspace].2 != Ttl::Off;
    let of_change = |write: &Write| match write.change {
        Change::Put(_) => ("put without log that expires", 60),
        Change::Merge(_) => ("merge without log that expires", 20),
        _ => ("other change without log of what expires", 30),
    };
    let writes: &[Write] = if step.durability() == Some(Durability::Unlogged) { step.writes() } else { &[] };
    writes.iter().filter(expiring).map(of_change).collect()
}

/// How many kinds these know: one that never comes up is in no count.
const KINDS: usize = 48;

#[test]
fn every_kind_of_step_comes_up() {
    let mut counts: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    for step in (0..300).flat_map(|seed| generated(seed, limits_of(seed)).steps) {
        let unlogged = unlogged_where_it_expires(&step).into_iter();
        for kind in step.writes().iter().filter_map(kind_of_write).chain(unlogged).chain([kind(&step)]) {
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
        let collecting = Limits { expiring_unlogged: false, refusals: false, retentions: false, ..limits };
        let Script { steps, .. } = generated(seed, collecting);
        let more = steps.len() - others.len();
        let is_between = |at: usize| steps[..at] == others[..at] && steps[at + more..] == others[at..];
        assert!([0, 3, 4].contains(&more) && (0..=count).any(is_between), "seed {seed}");
        // All others are between these.
        let mut whole = generated(seed, limits).steps.into_iter();
        assert!(steps.iter().all(|step| whole.any(|other| other == *step)), "seed {seed}");
    }
}

/// What becomes of a logged merge, or of another expiry, of what may be lost, nobody can foretell.
#[test]
fn what_is_written_without_log_where_it_expires_no_logged_step_depends_on() {
    let may_depend = |write: &Write| !matches!(write.change, Change::Put(_) | Change::Delete);
    let (mut unlogged, mut logged) = (0, 0);
    for seed in 0..600 {
        let steps = generated(seed, limits_of(seed)).steps;
        let expires = |write: &&Write| KEYSPACES[write.keyspace].2 != Ttl::Off && !write.change.is_range();
        let is_lost = |step: &&Step| step.durability() == Some(Durability::Unlogged);
        let written = |step: &Step| -> Vec<Write> { step.writes().iter().filter(expires).cloned().collect() };
        let lost: Vec<Write> = steps.iter().filter(is_lost).flat_map(written).collect();
        unlogged += lost.len();
        for step in steps.iter().filter(|step| !is_lost(step)) {
            let own =
                |write: &Write| lost.iter().any(|lost| (lost.keyspace, &lost.key) == (write.keyspace, &write.key));
            let to_own: Vec<Write> = written(step).into_iter().filter(own).collect();
            assert!(!to_own.iter().any(may_depend), "seed {seed}: {step:?}");
            assert!(to_own.is_empty() || matches!(step, Step::Batch(..)), "seed {seed}: {step:?}");
            logged += to_own.len();
        }
        // Alone, a change of an expiry would be logged.
        let alone = |step: &Step| matches!(step, Step::Single(Write { change: Change::Expire, .. }, _));
        assert!(!steps.iter().filter(is_lost).any(alone), "seed {seed}");
    }
    println!("{unlogged} writes without log, {logged} to the same keys with it");
    assert!(unlogged >= 300 && logged >= 80, "{unlogged} and {logged}");
}
