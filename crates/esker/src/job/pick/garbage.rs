//! Compactions that reclaim dead entries: expired entries, deletes, and tables of nothing else.

use super::shape::{Plan, Shape, TableShape};

/// Scans that skipped fewer entries than this do not trigger a compaction.
const LEAST_TOMBSTONES_SKIPPED: u64 = 4096;
/// Deletes go down into older tables with at most this many times their entries.
const WORTH: u64 = 16;

/// Whether every entry of the table is a delete, or has expired. A delete never expires, so that
/// none is counted twice.
fn is_dead(table: &TableShape<'_>, expired_until_ms: u64) -> bool {
    table.deletes + table.expiring_entries == table.entries
        && (table.expiring_entries == 0 || table.largest_expiry_ms <= expired_until_ms)
}

/// How many entries have expired, if expiries are spread evenly.
fn expired(table: &TableShape<'_>, until_ms: u64) -> u64 {
    if table.expiring_entries == 0 || until_ms < table.smallest_expiry_ms {
        return 0;
    }
    if until_ms >= table.largest_expiry_ms {
        return table.expiring_entries;
    }
    let passed = until_ms - table.smallest_expiry_ms;
    let span = table.largest_expiry_ms - table.smallest_expiry_ms;
    let share = u128::from(table.expiring_entries) * u128::from(passed) / u128::from(span);
    u64::try_from(share).unwrap_or(table.expiring_entries)
}

/// Tables without anything that a reader could see, above nothing that they hide.
pub fn dead(shape: &Shape<'_>) -> Option<Plan> {
    let mut dropped = Vec::new();
    for (at, run) in shape.runs.iter().enumerate() {
        // An entry newer than a snapshot is how its transaction detects a conflict.
        let tables = run.tables.iter().filter(|table| table.newest <= shape.oldest_snapshot);
        let dead = tables.filter(|table| is_dead(table, shape.expired_until_ms));
        let free = dead.filter(|table| shape.nothing_below(at, table.smallest, table.largest));
        dropped.extend(free.map(|table| table.number));
    }
    (!dropped.is_empty()).then_some(Plan::Drop { tables: dropped })
}

/// A table of which half or more has expired; while writes pause, also one with many deletes that
/// can go, or go further down.
pub fn rewrite(shape: &Shape<'_>) -> Option<Plan> {
    let tables = || {
        let runs = shape.runs.iter().enumerate();
        runs.flat_map(|(run, shape)| shape.tables.iter().enumerate().map(move |(at, table)| (run, at, table)))
    };
    let much = |table: &TableShape<'_>| {
        let expired = expired(table, shape.expired_until_ms);
        expired > 0 && expired * 2 >= table.entries
    };
    if let Some((run, table, _)) = tables().find(|(_, _, table)| much(table)) {
        return Some(Plan::Rewrite { run, table });
    }
    if !shape.paused {
        return None;
    }
    tables().find_map(|(run, at, table)| deletes_down(shape, run, at, table))
}

fn deletes_down(shape: &Shape<'_>, run: usize, at: usize, table: &TableShape<'_>) -> Option<Plan> {
    let gone = table.deletes + expired(table, shape.expired_until_ms);
    // What a snapshot may see below a delete keeps the delete.
    if gone == 0 || gone * 2 < table.entries || table.newest > shape.oldest_snapshot {
        return None;
    }
    if shape.nothing_below(run, table.smallest, table.largest) {
        return (!table.rewrite_futile).then_some(Plan::Rewrite { run, table: at });
    }
    let parts = shape.closure(run, run + 1, table.smallest, table.largest);
    let below = parts.iter().filter(|part| part.run > run);
    let entries: u64 =
        below.flat_map(|part| &shape.runs[part.run].tables[part.tables.clone()]).map(|table| table.entries).sum();
    (entries <= gone.saturating_mul(WORTH)).then_some(Plan::Partial { parts, target: run + 1 })
}

/// Whether scans have skipped so many dead entries that a full compaction costs less than going on
/// like that.
pub fn scans_skip_tombstones(shape: &Shape<'_>) -> bool {
    let entries: u64 = shape.runs.iter().flat_map(|run| &run.tables).map(|table| table.entries).sum();
    shape.tombstones_skipped >= entries.max(LEAST_TOMBSTONES_SKIPPED)
}

/// A full compaction, if scans skip too many dead entries and it can help.
pub fn for_scans(shape: &Shape<'_>) -> Option<Plan> {
    let deletes = || shape.runs.iter().flat_map(|run| &run.tables).any(|table| table.deletes > 0);
    let helps = shape.runs.len() > 1 || deletes();
    (shape.tombstones_skipped > 0 && helps && scans_skip_tombstones(shape))
        .then(|| Plan::Merge { first: 0, last: shape.runs.len() - 1 })
}

/// The earliest time, after the one that counts as now, at which a table will be dead, or half
/// expired if `rewriting`.
pub fn next_due(shape: &Shape<'_>, rewriting: bool) -> Option<u64> {
    let mut due: Option<u64> = None;
    for (at, run) in shape.runs.iter().enumerate() {
        for table in run.tables.iter().filter(|table| table.expiring_entries > 0) {
            let half = table.entries.div_ceil(2);
            let half_expired = rewriting && table.expiring_entries >= half;
            let span = u128::from(table.largest_expiry_ms - table.smallest_expiry_ms);
            let wait = (span * u128::from(half)).div_ceil(u128::from(table.expiring_entries));
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            let dead = is_dead(table, u64::MAX) && shape.nothing_below(at, table.smallest, table.largest);
            let times = [
                half_expired.then(|| table.smallest_expiry_ms.saturating_add(wait)),
                dead.then_some(table.largest_expiry_ms),
            ];
            due = times.into_iter().flatten().filter(|&time| time > shape.expired_until_ms).chain(due).min();
        }
    }
    due
}
