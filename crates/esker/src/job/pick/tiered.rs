//! Tiered: runs of similar size are compacted with each other, and the oldest run only when the
//! others outgrow it. Few rewrites, more runs to read, and up to three times the space.

use super::shape::{Plan, Shape};

/// Runs of similar size at which they are compacted.
const WIDTH: usize = 4;
/// Runs are similar if none is more than this many times the largest newer one.
const SIMILAR: u64 = 2;
/// Everything is compacted when the newer runs are this many times the oldest.
const LAST_RATIO: u64 = 2;
/// Runs at which those that are cheapest to compact are compacted, similar or not.
pub const MAX_RUNS: usize = 12;

pub fn pick(shape: &Shape<'_>) -> Option<Plan> {
    let runs = &shape.runs;
    if runs.len() < WIDTH {
        return None;
    }
    let (last, newer) = runs.split_last()?;
    if newer.iter().map(|run| run.bytes).sum::<u64>() >= last.bytes.saturating_mul(LAST_RATIO) {
        return Some(Plan::Merge { first: 0, last: runs.len() - 1 });
    }
    let mut first = 0;
    while first < runs.len() {
        let mut largest = runs[first].bytes;
        let mut end = first + 1;
        while end < runs.len() && runs[end].bytes <= largest.saturating_mul(SIMILAR) {
            largest = largest.max(runs[end].bytes);
            end += 1;
        }
        if end - first >= WIDTH {
            return Some(Plan::Merge { first, last: end - 1 });
        }
        first = end;
    }
    (runs.len() >= MAX_RUNS).then_some(Plan::Merge { first: 0, last: runs.len() / 2 })
}
