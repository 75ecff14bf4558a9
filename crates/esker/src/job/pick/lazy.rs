//! Lazy leveling: a few runs that may overlap lie above one large sorted run, the last. Runs above are merged with each other when there are several of
//! similar size, and into the last one only when together they are large enough to be worth rewriting it, so that each byte is rewritten a
//! logarithm of times. When writes pause, a database of modest size is merged into one run.

use super::shape::{Plan, Shape};

/// Runs above the last one at which merging begins.
pub const UPPER_RUNS: usize = 6;
/// A database up to this size is merged into one run when idle, whatever its shape.
const IDLE_WHOLE_BYTES: u64 = 1 << 30;
/// When idle, a larger one is merged into one run if the last run is at most this many times the others.
const IDLE_LAST_RATIO: u64 = 8;
/// Under load the last run is rewritten when it is at most this many times the others.
const LAST_RATIO: u64 = 2;
/// A run joins a merge if it is at most this many times all the newer ones in it.
const SIMILAR: u64 = 2;

pub fn pick(shape: &Shape<'_>) -> Option<Plan> {
    let runs = &shape.runs;
    let (last, upper) = runs.split_last()?;
    if upper.is_empty() {
        return None;
    }
    let upper_bytes: u64 = upper.iter().map(|run| run.bytes).sum();
    let whole = Plan::Merge { first: 0, last: runs.len() - 1 };
    if shape.idle {
        let modest = upper_bytes + last.bytes <= IDLE_WHOLE_BYTES;
        let due = modest || upper_bytes.saturating_mul(IDLE_LAST_RATIO) >= last.bytes;
        let upper_only = Plan::Merge { first: 0, last: upper.len() - 1 };
        return (due || upper.len() > 1).then_some(if due { whole } else { upper_only });
    }
    if upper.len() < UPPER_RUNS {
        return None;
    }
    if upper_bytes.saturating_mul(LAST_RATIO) >= last.bytes {
        return Some(whole);
    }
    let mut end = 0;
    let mut bytes = upper[0].bytes;
    while end + 1 < upper.len() && upper[end + 1].bytes <= bytes.saturating_mul(SIMILAR) {
        end += 1;
        bytes += upper[end].bytes;
    }
    // Too many runs of growing sizes: merge the newest half, which is the cheap half.
    let end = end.max(upper.len() / 2);
    Some(Plan::Merge { first: 0, last: end })
}
