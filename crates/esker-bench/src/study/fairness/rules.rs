//! The rules about single settings and counts.

use super::violation::{Member, Violation};
use crate::engine::{Compression, Durability};
use crate::record::Record;
use crate::study::grid::Cell;
use crate::study::task::{Step, Task};
use crate::workload::{self, Body};
use std::collections::BTreeMap;

/// Engines that can compress what they store; the others have nothing to turn on.
const COMPRESSING: [&str; 5] = ["esker", "leveldb", "rocksdb", "kyoto", "fjall"];

pub(super) fn check(group: &[Member<'_>], found: &mut Vec<Violation>) {
    durability(group, found);
    compression(group, found);
    operations(group, found);
    keys_found(group, found);
    machine(group, found);
    for member in group {
        if let Some(problem) = &member.finished.failure {
            found.push(member.violation(format!("its run failed: {problem}")));
        }
    }
}

/// The class that was asked for.
fn asked(record: &Record) -> Durability {
    match (record.options.sync, record.options.disable_wal) {
        (true, _) => Durability::Device,
        (false, true) => Durability::Process,
        (false, false) => Durability::OperatingSystem,
    }
}

/// An engine that is safer than was asked for pays for it, so that is told too.
fn durability(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let classes = || group.iter().filter_map(|member| member.record.durability.map(|class| (member, class)));
    let Some((first, one)) = classes().next() else { return };
    if classes().all(|(_, class)| class == one) {
        return;
    }
    let wanted = asked(first.record);
    for (member, actual) in classes().filter(|(_, class)| *class != wanted) {
        let (actual, wanted) = (actual.name(), wanted.name());
        let reason = format!("its durability is `{actual}` where `{wanted}` was asked for, and the engines differ");
        found.push(member.violation(reason));
    }
}

fn compresses(record: &Record) -> Option<bool> {
    let kind = record.settings.iter().find(|(name, _)| name == "compression")?.1.as_str();
    Some(!kind.is_empty() && !kind.starts_with("none"))
}

fn compression(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let able = || {
        let able = group.iter().filter(|member| COMPRESSING.contains(&member.finished.cell.engine.as_str()));
        able.filter_map(|member| compresses(member.record).map(|on| (member, on)))
    };
    let Some((first, one)) = able().next() else { return };
    if able().all(|(_, on)| on == one) {
        return;
    }
    let wanted = first.record.options.compression == Compression::Lz;
    for (member, on) in able().filter(|(_, on)| *on != wanted) {
        let (own, other) = if on { ("compressed", "not") } else { ("not compressed", "are") };
        found.push(member.violation(format!("its data are {own}, those of others {other}")));
    }
}

fn operations(group: &[Member<'_>], found: &mut Vec<Violation>) {
    // A process that is killed has done some operations more than it had to, by chance.
    let is_killed = |record: &Record| {
        workload::find(&record.benchmark).is_some_and(|benchmark| matches!(benchmark.body, Body::Survivors))
    };
    if group.iter().any(|member| is_killed(member.record)) {
        return;
    }
    let Some(most) = group.iter().map(|member| member.record.ops).max() else { return };
    for member in group {
        let ops = member.record.ops;
        if member.record.message.contains("(ended early") {
            found.push(member.violation(format!("it ended early, after {ops} operations")));
        } else if ops < most {
            found.push(member.violation(format!("it did {ops} operations where another did {most}")));
        }
    }
}

/// Flags that decide which keys there are and which are looked up.
const KEY_FLAGS: [&str; 13] = [
    "benchmarks",
    "deletes",
    "fill_num",
    "fill_seed",
    "fresh_process",
    "keygen",
    "merge_keys",
    "mergereadpercent",
    "num",
    "reads",
    "seed",
    "use_existing_db",
    "writes",
];

/// Where rows have everything in common that decides how many keys a lookup finds, all find as many. One process may do a row several times,
/// each with keys of its own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lookups<'a> {
    benchmark: &'a str,
    ops: u64,
    flags: [Option<&'a str>; KEY_FLAGS.len()],
    time: usize,
}

/// Tells of those that found another number of keys than most; of all, if no number has the most.
fn keys_found(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let mut alike: BTreeMap<Lookups<'_>, Vec<(&Member<'_>, u64)>> = BTreeMap::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for member in group {
        let time = times.entry(member.name()).or_default();
        *time += 1;
        let record = member.record;
        let Some(keys) = record.found.filter(|_| found_is_fixed(member)) else { continue };
        let flags = KEY_FLAGS.map(|name| record.flags.get(name).map(String::as_str));
        let lookups = Lookups { benchmark: &record.benchmark, ops: record.ops, flags, time: *time };
        alike.entry(lookups).or_default().push((member, keys));
    }
    for members in alike.values() {
        let count = |keys: u64| members.iter().filter(|(_, other)| *other == keys).count();
        let most = members.iter().map(|(_, keys)| count(*keys)).max().unwrap_or(0);
        let mut leading: Vec<u64> = members.iter().map(|(_, keys)| *keys).filter(|keys| count(*keys) == most).collect();
        leading.sort_unstable();
        leading.dedup();
        let usual = leading.first().filter(|_| leading.len() == 1);
        for (member, keys) in members.iter().filter(|(_, keys)| usual != Some(keys)) {
            let others = members.iter().filter(|(_, other)| other != keys);
            let names: Vec<String> = others.map(|(other, _)| other.name()).collect();
            found.push(member.violation(format!("it found {keys} keys, unlike {}", names.join(", "))));
        }
    }
}

/// Whether the number of keys that a row found follows from its flags alone: one thread has looked them up, and neither a clock nor chance
/// has decided what was there. Records that came without their steps do not say.
fn found_is_fixed(member: &Member<'_>) -> bool {
    let (record, finished) = (member.record, member.finished);
    let only_reads = workload::find(&record.benchmark).is_some_and(|benchmark| benchmark.only_reads());
    let is_whole =
        finished.failure.is_none() && !finished.records.iter().any(|row| row.message.contains("(ended early"));
    let has_steps = finished.cell.tasks.iter().any(|task| !task.steps.is_empty());
    only_reads && record.threads <= 1 && is_whole && has_steps && !leaves_keys_to_chance(&finished.cell)
}

fn leaves_keys_to_chance(cell: &Cell) -> bool {
    let steps = cell.tasks.iter().flat_map(|task| task.steps.iter().map(move |step| (task, step)));
    steps.into_iter().any(|(task, step)| is_left_to_chance(task, step))
}

/// Whether it is chance which keys a step writes or removes.
fn is_left_to_chance(task: &Task, step: &Step) -> bool {
    const ONLY_ADDING: [&str; 4] = ["fill", "overwrite", "updaterandom", "mergerandom"];
    let Some(benchmark) = workload::find(&step.benchmark).filter(|benchmark| benchmark.writes()) else { return false };
    // What ends early says so in its row, if it makes one.
    let may_end_unseen = step.row.is_none() && (step.most_seconds > 0.0 || task.budget.is_some());
    let only_adds = ONLY_ADDING.iter().any(|prefix| benchmark.name.starts_with(prefix));
    may_end_unseen
        || matches!(benchmark.body, Body::BesideWriter(..) | Body::Survivors | Body::Crash(_))
        || (step.threads > 1 && !only_adds)
}

/// A run that was resumed elsewhere.
fn machine(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let Some(first) = group.first() else { return };
    let known = &first.record.host;
    for member in group {
        let host = &member.record.host;
        if (&host.cpu, host.cores, host.memory_bytes) != (&known.cpu, known.cores, known.memory_bytes) {
            found.push(member.violation(format!("it was measured on another machine than {}", first.name())));
        }
    }
}
