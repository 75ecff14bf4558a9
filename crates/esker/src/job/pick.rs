//! What to merge next. Pure: the shape of a tree in, a plan out.
//!
//! Lazy leveling: a few runs that may overlap lie above one large sorted run, the last. Runs above are merged with each other when there are several of
//! similar size, and into the last one only when together they are large enough to be worth rewriting it, so that each byte is rewritten a
//! logarithm of times. When writes pause, a database of modest size is merged into one run.

/// What picking needs to know of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunShape {
    pub bytes: u64,
}

/// Merge the runs from index `first` to index `last`, both included, newest first, into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub first: usize,
    pub last: usize,
}

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

/// What to merge next in a keyspace with these runs, newest first; `None` if nothing is worth it. `idle`: no write came for a while.
pub fn pick(runs: &[RunShape], idle: bool) -> Option<Plan> {
    let (last, upper) = runs.split_last()?;
    if upper.is_empty() {
        return None;
    }
    let upper_bytes: u64 = upper.iter().map(|run| run.bytes).sum();
    let whole = Plan { first: 0, last: runs.len() - 1 };
    if idle {
        let modest = upper_bytes + last.bytes <= IDLE_WHOLE_BYTES;
        let due = modest || upper_bytes.saturating_mul(IDLE_LAST_RATIO) >= last.bytes;
        return (due || upper.len() > 1).then_some(if due { whole } else { Plan { first: 0, last: upper.len() - 1 } });
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
    Some(Plan { first: 0, last: end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &[u64]) -> Vec<RunShape> {
        bytes.iter().map(|&bytes| RunShape { bytes }).collect()
    }

    #[test]
    fn plans_follow_the_shape() {
        assert_eq!(pick(&[], true), None);
        assert_eq!(pick(&runs(&[5]), true), None);
        assert_eq!(pick(&runs(&[1, 5]), false), None);
        assert_eq!(pick(&runs(&[1, 5]), true), Some(Plan { first: 0, last: 1 }));
        let huge = 100 << 30;
        assert_eq!(pick(&runs(&[1, huge]), true), None, "a large last run is not rewritten for a little data");
        assert_eq!(pick(&runs(&[1, 1, huge]), true), Some(Plan { first: 0, last: 1 }));
        assert_eq!(pick(&runs(&[1, 1, 1, 1, 1, 1, huge]), false), Some(Plan { first: 0, last: 5 }));
        assert_eq!(pick(&runs(&[1, 1, 1, 1, 1, 1, 8]), false), Some(Plan { first: 0, last: 6 }));
        assert_eq!(pick(&runs(&[1, 1, 1, 100, 300, 1000, huge]), false), Some(Plan { first: 0, last: 3 }));
    }

    /// Whatever the sizes, merging as planned comes to an end with few runs.
    #[test]
    fn merging_ends() {
        let mut shape: Vec<u64> = (0..40).map(|n| 1 << (n * 7 % 36)).collect();
        for idle in [false, true] {
            for _ in 0..100 {
                let Some(plan) = pick(&runs(&shape), idle) else { break };
                assert!(plan.first < plan.last && plan.last < shape.len());
                let merged = shape[plan.first..=plan.last].iter().sum();
                shape.splice(plan.first..=plan.last, [merged]);
            }
            assert_eq!(pick(&runs(&shape), idle), None);
            assert!(shape.len() <= UPPER_RUNS);
        }
    }
}
