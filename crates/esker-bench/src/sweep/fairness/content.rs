//! What the databases hold after the runs, where all of them must hold the same.

use super::violation::{Member, Violation, odd};
use crate::record::Verification;
use crate::sweep::grid::Cell;
use crate::sweep::task::Step;
use crate::workload::{self, Body};

/// How much of what a cell leaves behind is fixed by its flags alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fixed {
    /// Nothing.
    Nothing,
    /// The number of entries: threads that put beside each other leave the values to chance, but
    /// not the keys.
    Entries,
    /// Every entry.
    All,
}

/// A look at everything is kept with the last row before it, and is about all rows since the look
/// before.
pub(super) fn check_rows(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let looks: Vec<(&Member<'_>, &Verification)> =
        group.iter().filter_map(|member| Some((member, look(member)?))).collect();
    for (member, look) in &looks {
        if look.mismatches > 0 {
            let Verification { sampled, mismatches, .. } = look;
            let reason = format!("{mismatches} of {sampled} sampled entries were not found as a scan had shown them");
            found.push(Violation { contradicts_itself: true, ..member.violation(reason) });
        }
    }
    let whole: Vec<_> = looks.into_iter().filter(|(member, _)| member.is_whole()).collect();
    match whole.iter().map(|(member, _)| fixed(&member.finished.cell)).min() {
        Some(Fixed::All) => {
            let what = |_: &&Verification| "its database holds other entries, unlike that of".into();
            odd(&whole, |look| look.content_hash.clone(), what, found);
        }
        Some(Fixed::Entries) => {
            let what = |look: &&Verification| format!("its database holds {} entries, unlike that of", look.entries);
            odd(&whole, |look| look.entries, what, found);
        }
        Some(Fixed::Nothing) | None => {}
    }
}

fn look<'a>(member: &Member<'a>) -> Option<&'a Verification> {
    let records = &member.finished.records;
    let at = records.iter().position(|record| std::ptr::eq(record, member.record)).unwrap_or(0);
    records.iter().skip(at).find_map(|record| record.verification.as_ref())
}

/// What a cell's steps leave to chance.
fn fixed(cell: &Cell) -> Fixed {
    let operator =
        |name: &str| cell.tasks.iter().any(|task| task.flags.get("merge_operator").is_some_and(|o| o == name));
    let commutes = operator("uint64add") || operator("max");
    let writes = |step: &&Step| workload::find(&step.benchmark).is_some_and(|benchmark| benchmark.writes());
    let steps: Vec<&Step> = cell.tasks.iter().flat_map(|task| &task.steps).filter(writes).collect();
    if steps.iter().any(|step| is_open_ended(step)) {
        return Fixed::Nothing;
    }
    // Merges that commute leave nothing to chance among themselves, whatever the number of threads.
    if steps.iter().all(|step| step.threads <= 1) || (commutes && steps.iter().all(|s| s.benchmark == "mergerandom")) {
        return Fixed::All;
    }
    if steps.iter().all(|step| step.only_adds()) { Fixed::Entries } else { Fixed::Nothing }
}

/// Whether a clock decides what is written or stays.
fn is_open_ended(step: &Step) -> bool {
    step.most_seconds > 0.0
        || step.benchmark.contains("ttl")
        || workload::find(&step.benchmark)
            .is_some_and(|benchmark| matches!(benchmark.body, Body::BesideWriter(..) | Body::Survivors))
}
