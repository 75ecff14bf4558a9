//! Lazy leveling: a few runs that may overlap lie above one large sorted run, the last.
//!
//! Runs above are compacted with each other when there are many: a window of neighbours of similar
//! size, or the window that costs the least for each run that it saves. They go into the last run
//! only when they amount to a good part of what they overlap there, so that each byte is rewritten
//! a logarithm of times. That is done in pieces, by key: a large run gives up its leftmost tables
//! with all that they overlap, again and again, and each piece is installed and its inputs removed
//! before the next. So the extra space is that of a few tables, not of the last run once more, and
//! what is left to do follows from the shape alone.
//!
//! While gets have high read amplification, as without filters, fewer runs are kept.
//!
//! While writes pause, a database of modest size is compacted into one run.

use super::shape::{Plan, RunShape, Shape};
use std::ops::Bound;

/// Runs are similar if the older ones are less than this many times the newest of them.
const SIMILAR: u64 = 2;
/// In a pause, this part is enough.
const DUE_WHEN_IDLE: Share = Share { numerator: 1, denominator: 8 };
/// A run smaller than this part of what it overlaps does not go down by itself.
const LARGE: Share = Share { numerator: 1, denominator: 16 };
/// A database up to this size is compacted into one run in a pause, whatever its shape.
const IDLE_WHOLE_BYTES: u64 = 1 << 30;
/// A last run of fewer tables is compacted as a whole.
const FEW_TABLES: usize = 8;
/// The most tables of an upper run in one piece. With fewer, more is rewritten because it is in a
/// table with what must be.
const PIECE_TABLES: usize = 4;

/// A fraction.
struct Share {
    numerator: u64,
    denominator: u64,
}

impl Share {
    fn reached(&self, bytes: u64, of: u64) -> bool {
        u128::from(bytes) * u128::from(self.denominator) >= u128::from(of) * u128::from(self.numerator)
    }
}

/// How much is put off.
pub struct Limits {
    /// Runs above the last one at which compaction begins.
    upper_runs: usize,
    /// Runs of similar size that are compacted with each other.
    width: usize,
    /// Runs above the last one at which those that are cheapest to compact are compacted, similar
    /// or not, before anything else.
    pub most_upper_runs: usize,
    /// Under load, runs go into the last one when they are this part of what they overlap there.
    due: Share,
    /// A run whose left end has gone there already goes on down to this part: the rest of it would
    /// only be compacted once more.
    due_to_go_on: Share,
}

/// Usually: the fewest rewrites.
pub const FOR_WRITES: Limits = Limits {
    upper_runs: 8,
    width: 6,
    most_upper_runs: 12,
    due: Share { numerator: 1, denominator: 2 },
    due_to_go_on: Share { numerator: 1, denominator: 4 },
};

/// While read amplification is high: half of the runs, for two to three times the rewrites.
pub const FOR_GETS: Limits = Limits {
    upper_runs: 3,
    width: 2,
    most_upper_runs: 4,
    due: Share { numerator: 1, denominator: 4 },
    due_to_go_on: Share { numerator: 1, denominator: 8 },
};

fn limits(shape: &Shape<'_>) -> &'static Limits {
    if shape.high_read_amp { &FOR_GETS } else { &FOR_WRITES }
}

pub fn pick(shape: &Shape<'_>) -> Option<Plan> {
    let (last, upper) = shape.runs.split_last()?;
    if upper.is_empty() {
        return None;
    }
    if shape.paused {
        return when_idle(shape);
    }
    let limits = limits(shape);
    let first = first_narrow(shape);
    let goes_down = Descent::of(shape, first).filter(|goes_down| goes_down.is_due());
    if upper.len() < limits.upper_runs && !goes_down.as_ref().is_some_and(|goes_down| goes_down.begun) {
        return None;
    }
    let upper_bytes: u64 = upper.iter().map(|run| run.bytes).sum();
    if last.tables.len() < FEW_TABLES {
        let due = limits.due.reached(upper_bytes, last.bytes);
        return if due { Some(whole(shape)) } else { among_themselves(shape, upper.len()) };
    }
    if let Some(goes_down) = goes_down {
        return match among_themselves(shape, first) {
            Some(plan) if upper.len() >= limits.most_upper_runs => Some(plan),
            _ => goes_down.piece(),
        };
    }
    if limits.due.reached(upper_bytes, last.bytes) && first > 1 {
        // All together are worth it. The wide ones compacted with each other are tables that can go
        // down one by one.
        return Some(Plan::Merge { first: 0, last: first - 1 });
    }
    among_themselves(shape, upper.len())
}

fn whole(shape: &Shape<'_>) -> Plan {
    Plan::Merge { first: 0, last: shape.runs.len() - 1 }
}

/// In a pause: towards one run, as far as that is worth rewriting the last one.
fn when_idle(shape: &Shape<'_>) -> Option<Plan> {
    let (last, upper) = shape.runs.split_last()?;
    let upper_bytes: u64 = upper.iter().map(|run| run.bytes).sum();
    let modest = upper_bytes + last.bytes <= IDLE_WHOLE_BYTES;
    let due = modest || DUE_WHEN_IDLE.reached(upper_bytes, last.bytes);
    if due && last.tables.len() < FEW_TABLES {
        return Some(whole(shape));
    }
    let first = first_narrow(shape);
    if let Some(goes_down) = Descent::of(shape, first)
        && (modest || DUE_WHEN_IDLE.reached(goes_down.bytes, goes_down.overlapped))
    {
        return goes_down.piece();
    }
    match upper.len() {
        1 => due.then(|| whole(shape)),
        count => Some(Plan::Merge { first: 0, last: count - 1 }),
    }
}

/// The first of the oldest upper runs that can go down in pieces: a table of each overlaps at most
/// half of the last run. Nor are they so small that compacting them with each other first is
/// cheaper. The number of upper runs if the oldest cannot.
fn first_narrow(shape: &Shape<'_>) -> usize {
    let Some((last, upper)) = shape.runs.split_last() else { return 0 };
    let cannot = |run: &RunShape<'_>| {
        let overlapped = |from: &[u8], to: Bound<&[u8]>| {
            last.tables[last.overlapping(from, to)].iter().map(|table| table.bytes).sum::<u64>()
        };
        let ([leftmost, .., rightmost] | [leftmost @ rightmost]) = run.tables.as_slice() else { return true };
        overlapped(leftmost.smallest, leftmost.largest) > last.bytes / 2
            || !LARGE.reached(run.bytes, overlapped(leftmost.smallest, rightmost.largest))
    };
    upper.iter().rposition(cannot).map_or(0, |wide| wide + 1)
}

/// The upper runs from `first` on, which are to go into the last run piece by piece.
struct Descent<'s, 'a> {
    shape: &'s Shape<'a>,
    first: usize,
    bytes: u64,
    /// Bytes that they overlap in the last run.
    overlapped: u64,
    /// Something in the last run lies left of all of them.
    begun: bool,
}

impl<'s, 'a> Descent<'s, 'a> {
    fn of(shape: &'s Shape<'a>, first: usize) -> Option<Descent<'s, 'a>> {
        let (last, upper) = shape.runs.split_last()?;
        let runs = upper.get(first..).filter(|runs| !runs.is_empty())?;
        let tables = || runs.iter().flat_map(|run| &run.tables);
        let order = shape.order();
        let smallest = tables().map(|table| table.smallest).reduce(|a, b| order.min(a, b))?;
        let largest = tables().map(|table| table.largest).reduce(|a, b| order.later(a, b))?;
        let overlapped = last.overlapping(smallest, largest);
        let begun = overlapped.start > 0;
        let overlapped = last.tables[overlapped].iter().map(|table| table.bytes).sum();
        Some(Descent { shape, first, bytes: runs.iter().map(|run| run.bytes).sum(), overlapped, begun })
    }

    fn is_due(&self) -> bool {
        let limits = limits(self.shape);
        let due = if self.begun { &limits.due_to_go_on } else { &limits.due };
        due.reached(self.bytes, self.overlapped)
    }

    /// The leftmost tables, and what they overlap in older runs.
    fn piece(&self) -> Option<Plan> {
        let target = self.shape.runs.len() - 1;
        let runs = &self.shape.runs[self.first..target];
        let order = self.shape.order();
        let first = runs.iter().filter_map(|run| run.tables.first()).map(|table| table.smallest);
        let smallest = first.reduce(|a, b| order.min(a, b))?;
        // By the tables of the largest run: cut at those of a small one, slivers of it would be
        // compacted with much.
        let largest = runs.iter().max_by_key(|run| run.bytes)?;
        let count = (largest.tables.len() / 8).clamp(1, PIECE_TABLES);
        let largest = largest.tables.get(count - 1)?.largest;
        let parts = self.shape.closure(self.first, target, smallest, largest);
        Some(Plan::Partial { parts, target })
    }
}

/// Compacts upper runs, of the newest `count`, with each other if there are too many of them.
fn among_themselves(shape: &Shape<'_>, count: usize) -> Option<Plan> {
    let limits = limits(shape);
    let sizes: Vec<u64> = shape.runs.iter().take(count).map(|run| run.bytes).collect();
    let mut first = 0;
    while first < sizes.len() {
        let similar = |bytes: &&u64| **bytes < sizes[first].saturating_mul(SIMILAR);
        let width = 1 + sizes[first + 1..].iter().take_while(similar).count();
        if width >= limits.width {
            return Some(Plan::Merge { first, last: first + width - 1 });
        }
        first += width;
    }
    if shape.runs.len() <= limits.most_upper_runs {
        return None;
    }
    let mut cheapest: Option<(u64, Plan)> = None;
    for (first, &newest) in sizes.iter().enumerate() {
        let mut bytes = newest;
        for (last, &older) in sizes.iter().enumerate().skip(first + 1) {
            bytes = bytes.saturating_add(older);
            let cost = bytes / (last - first) as u64;
            if cheapest.as_ref().is_none_or(|(least, _)| cost < *least) {
                cheapest = Some((cost, Plan::Merge { first, last }));
            }
        }
    }
    cheapest.map(|(_, plan)| plan)
}
