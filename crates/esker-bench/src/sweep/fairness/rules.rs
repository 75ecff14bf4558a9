//! The rules about single settings and counts.

use super::violation::{Member, Violation};
use crate::record::Record;
use crate::workload::{self, Body};
use esker_engines::{Compression, Durability, registry};

pub(super) fn check(group: &[Member<'_>], found: &mut Vec<Violation>) {
    durability(group, found);
    compression(group, found);
    operations(group, found);
    machine(group, found);
    for member in group {
        if let Some(problem) = &member.finished.failure {
            found.push(member.violation(format!("its run failed: {problem}")));
        }
    }
}

/// The class that was requested.
fn asked(record: &Record) -> Durability {
    match (record.options.sync, record.options.disable_wal) {
        (true, _) => Durability::Device,
        (false, true) => Durability::Process,
        (false, false) => Durability::OperatingSystem,
    }
}

/// An engine that is safer than was requested pays for it, so that is told too.
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
    record.setting("compression").map(|kind| !kind.is_empty() && !kind.starts_with("none"))
}

fn compression(group: &[Member<'_>], found: &mut Vec<Violation>) {
    // Engines that cannot compress what they store have nothing to turn on.
    let can = |engine: &str| registry::row(engine).is_some_and(|kind| kind.capabilities.compression);
    let able = || {
        let able = group.iter().filter(|member| can(&member.finished.cell.engine));
        able.filter_map(|member| compresses(member.record).map(|on| (member, on)))
    };
    let Some((first, one)) = able().next() else { return };
    if able().all(|(_, on)| on == one) {
        return;
    }
    let wanted = first.record.options.compression != Compression::None;
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
        if member.record.ended_early() {
            found.push(member.violation(format!("it ended early, after {ops} operations")));
        } else if ops < most {
            found.push(member.violation(format!("it did {ops} operations where another did {most}")));
        }
    }
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
