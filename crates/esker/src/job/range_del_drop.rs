//! Delete-only compactions: picks the tables that range tombstones cover for every reader, so that
//! they can be dropped unread. Pure: a version and the live snapshots in, table numbers out.
//!
//! A table is dropped if range tombstones of newer runs lie over all of its keys, and no snapshot
//! is so old that it sees anything in the table but not the tombstones. A table with nothing but
//! range tombstones goes if no older run has anything between its bounds, and it is not newer than
//! a snapshot.

use crate::base::key::Sequence;
use crate::base::range_tombstone::{Fragment, RangeTombstones};
use crate::table::TableSummary;
use crate::version::runs::Version;

/// The numbers of tables to remove at once. Removing them may make others removable. `snapshots`:
/// what live snapshots read at, ascending.
pub fn removable(version: &Version, snapshots: &[Sequence]) -> Vec<u64> {
    if version.runs.iter().all(|run| run.range_tombstones.is_empty()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut newer: Vec<&RangeTombstones> = Vec::new();
    for (at, run) in version.runs.iter().enumerate() {
        let older = version.runs.get(at + 1..).unwrap_or_default();
        for summary in run.tables.iter().map(|table| table.summary()) {
            // A tombstone newer than a snapshot is how its transaction detects a conflict.
            let seen_by_all = snapshots.first().is_none_or(|&oldest| summary.largest_sequence <= oldest);
            let useless =
                summary.entries == 0 && seen_by_all && !older.iter().any(|run| run.overlaps(summary, summary));
            if useless || is_covered(summary, &newer, snapshots) {
                found.push(summary.file_number);
            }
        }
        if !run.range_tombstones.is_empty() {
            newer.push(&run.range_tombstones);
        }
    }
    found
}

/// Whether the newer range tombstones hide all of the table from every reader that could see
/// something in it.
fn is_covered(table: &TableSummary, newer: &[&RangeTombstones], snapshots: &[Sequence]) -> bool {
    // The oldest snapshot that sees anything of the table must see a tombstone over it.
    let oldest = snapshots.get(snapshots.partition_point(|&snapshot| snapshot < table.smallest_sequence)..);
    let oldest = oldest.and_then(|from| from.first()).copied();
    let hides = |fragment: &&Fragment| {
        let first = fragment.sequences.last();
        first.is_some_and(|&first| oldest.is_none_or(|oldest| first <= oldest))
    };
    let mut key = table.smallest_key.as_slice();
    // Each is passed at most once, but for the fault of a comparator.
    let fragments: usize = newer.iter().map(|set| set.fragments().len()).sum();
    for _ in 0..=fragments {
        let over = newer.iter().filter_map(|set| set.fragment_of(key)).filter(hides);
        let Some(furthest) = over.max_by(|a, b| table.order.compare_ends(&a.end, &b.end)) else { return false };
        if furthest.end.is_empty() || table.is_before(&furthest.end) {
            return true;
        }
        if table.largest_exclusive && table.largest_key == furthest.end {
            return true;
        }
        key = &furthest.end;
    }
    false
}

#[cfg(test)]
#[path = "range_del_drop_tests.rs"]
mod tests;
