//! Leveled: each level is one run, ten times the one above it, and a few young runs lie on top. The
//! excess of a level goes down table by table, compacted with the tables that it overlaps. Read and
//! space amplification are low; each byte is rewritten several times a level.
//!
//! Which run is which level is not stored. A run counts as young while it is small, and what a
//! level may hold follows from the size of the last one: a level that would be smaller than
//! `level_base_bytes` may hold nothing, and empties into the next.

use super::shape::{Plan, Shape};

/// Young runs at which they are compacted.
pub const YOUNG_RUNS: usize = 4;
/// How much larger each level is than the one above it.
const FANOUT: u64 = 10;

pub fn pick(shape: &Shape<'_>) -> Option<Plan> {
    let runs = &shape.runs;
    let last = runs.last()?;
    let young = runs.iter().take_while(|run| run.bytes < shape.level_base_bytes).count();
    if young >= YOUNG_RUNS || (shape.paused && young > 1) {
        return Some(Plan::Merge { first: 0, last: young - 1 });
    }
    let mut worst = None;
    let mut target = last.bytes;
    for at in (young..runs.len() - 1).rev() {
        target /= FANOUT;
        let allowed = if target < shape.level_base_bytes { 0 } else { target };
        let excess = u128::from(runs[at].bytes) * 1000 / u128::from(allowed.max(1));
        if runs[at].bytes > allowed && worst.is_none_or(|(most, _)| excess >= most) {
            worst = Some((excess, at));
        }
    }
    push_down(shape, worst?.1)
}

/// Compacts the table of `run` that costs the least for its size into the next run.
fn push_down(shape: &Shape<'_>, run: usize) -> Option<Plan> {
    let next = &shape.runs[run + 1];
    let cost = |table: &&super::shape::TableShape<'_>| {
        let overlapping = &next.tables[next.overlapping(table.smallest, table.largest)];
        let bytes: u64 = overlapping.iter().map(|table| table.bytes).sum();
        u128::from(bytes) * 1000 / u128::from(table.bytes.max(1))
    };
    let cheapest = shape.runs[run].tables.iter().min_by_key(cost)?;
    let parts = shape.closure(run, run + 1, cheapest.smallest, cheapest.largest);
    Some(Plan::Partial { parts, target: run + 1 })
}
