//! How many keys lookups find: as many as the key sequence says, and all engines the same number.

use super::played::Played;
use super::violation::{Member, Violation, odd};
use crate::flags::table;
use crate::study::grid::Cell;
use crate::study::task::{Step, Task};
use crate::workload::{self, Body};
use std::collections::BTreeMap;

/// Where rows have everything in common that decides how many keys a lookup finds, all find as
/// many. One process may do a row several times, each with keys of its own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lookups<'a> {
    benchmark: &'a str,
    ops: u64,
    flags: BTreeMap<&'a str, Option<&'a str>>,
    time: usize,
}

/// Tells of those that found another number of keys than they must; where that is not known, of
/// those that found another than most, or of all, if no number has the most.
pub(super) fn check(group: &[Member<'_>], played: &mut Played, found: &mut Vec<Violation>) {
    let mut alike: BTreeMap<Lookups<'_>, Vec<(&Member<'_>, u64)>> = BTreeMap::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for member in group {
        let time = times.entry(member.name()).or_default();
        *time += 1;
        let record = member.record;
        let Some(keys) = record.found.filter(|_| found_is_fixed(member)) else { continue };
        if let Some(expected) = expected(member, played) {
            if keys != expected {
                let reason = format!("it found {keys} keys where the key sequence has it find {expected}");
                found.push(member.violation(reason));
            }
            continue;
        }
        let of_keys = table::all().filter(|flag| flag.decides_keys);
        let flags =
            of_keys.map(|flag| (flag.name.as_str(), record.flags.get(&flag.name).map(String::as_str))).collect();
        let lookups = Lookups { benchmark: &record.benchmark, ops: record.ops, flags, time: *time };
        alike.entry(lookups).or_default().push((member, keys));
    }
    for members in alike.values() {
        odd(members, |keys| *keys, |keys| format!("it found {keys} keys, unlike"), found);
    }
}

fn expected(member: &Member<'_>, played: &mut Played) -> Option<u64> {
    let at = member.finished.records.iter().position(|record| std::ptr::eq(record, member.record))?;
    played.expected(member.finished).get(at).copied().flatten()
}

/// Whether the number of keys that a row found follows from its flags alone: one thread has looked
/// them up, and neither a clock nor chance has decided what was there. Records that came without
/// their steps do not say.
fn found_is_fixed(member: &Member<'_>) -> bool {
    let (record, finished) = (member.record, member.finished);
    let only_reads = workload::find(&record.benchmark).is_some_and(|benchmark| benchmark.only_reads());
    let has_steps = finished.cell.tasks.iter().any(|task| !task.steps.is_empty());
    only_reads && record.threads <= 1 && member.is_whole() && has_steps && !leaves_keys_to_chance(&finished.cell)
}

fn leaves_keys_to_chance(cell: &Cell) -> bool {
    let steps = cell.tasks.iter().flat_map(|task| task.steps.iter().map(move |step| (task, step)));
    steps.into_iter().any(|(task, step)| is_left_to_chance(task, step))
}

/// Whether it is chance which keys a step writes or removes.
fn is_left_to_chance(task: &Task, step: &Step) -> bool {
    let Some(benchmark) = workload::find(&step.benchmark).filter(|benchmark| benchmark.writes()) else { return false };
    // What ends early says so in its row, if it makes one.
    let may_end_unseen = step.row.is_none() && (step.most_seconds > 0.0 || task.budget.is_some());
    may_end_unseen
        || matches!(benchmark.body, Body::BesideWriter(..) | Body::Survivors | Body::Crash(_))
        || (step.threads > 1 && !step.only_adds())
}
