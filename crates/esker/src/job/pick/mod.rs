//! Compaction picking. Pure: the shape of a version in, a plan out.
//!
//! A style (`lazy`, `leveled`, `tiered`, `fifo`) says which runs are compacted; what any style does
//! to reclaim dead entries is in `garbage`.

pub mod shape;

mod fifo;
mod garbage;
mod lazy;
mod leveled;
mod tiered;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::options::CompactionStyle;
use shape::{Plan, Shape};
use std::ops::Bound;

/// What to do next in a keyspace; `None` if nothing is worth it.
pub fn pick(shape: &Shape<'_>, style: CompactionStyle) -> Option<Plan> {
    pick_by_style(shape, style).map(|plan| with_progress(shape, plan))
}

/// The plan, unless it moves nothing down because a comparator breaks its laws: then one that does,
/// so that compactions come to an end.
fn with_progress(shape: &Shape<'_>, plan: Plan) -> Plan {
    match plan {
        Plan::Partial { parts, target }
            if !shape.order().is_trusted()
                && !parts.iter().any(|part| part.run < target && !part.tables.is_empty()) =>
        {
            shape.order().note_fault();
            Plan::Merge { first: 0, last: target }
        }
        plan => plan,
    }
}

fn pick_by_style(shape: &Shape<'_>, style: CompactionStyle) -> Option<Plan> {
    garbage::dead(shape).or_else(|| match style {
        CompactionStyle::LazyLeveling => lazy::pick(shape).or_else(|| for_the_dead(shape)),
        CompactionStyle::Leveled => leveled::pick(shape).or_else(|| for_the_dead(shape)),
        CompactionStyle::Tiered => tiered::pick(shape).or_else(|| for_the_dead(shape)),
        CompactionStyle::Fifo { max_bytes } => fifo::pick(shape, max_bytes),
    })
}

fn for_the_dead(shape: &Shape<'_>) -> Option<Plan> {
    garbage::rewrite(shape).or_else(|| garbage::for_scans(shape))
}

/// Whether so many tombstones were skipped that they must lead to a compaction, or the count be
/// reset.
pub fn skipped_tombstones_are_due(shape: &Shape<'_>) -> bool {
    shape.tombstones_skipped > 0 && garbage::scans_skip_tombstones(shape)
}

/// The earliest clock time at which something becomes due without a write.
pub fn next_due(shape: &Shape<'_>, style: CompactionStyle) -> Option<u64> {
    garbage::next_due(shape, !matches!(style, CompactionStyle::Fifo { .. }))
}

/// Compacts everything with keys from `smallest` to `largest` into the last run; `None` if that
/// would change nothing. `anyway`: it might, whatever the tables look like.
pub fn merge_range<'a>(shape: &Shape<'a>, smallest: &'a [u8], largest: Bound<&'a [u8]>, anyway: bool) -> Option<Plan> {
    let target = shape.runs.len().checked_sub(1)?;
    let parts = shape.closure(0, target, smallest, largest);
    let tables = |part: &shape::Part| shape.runs[part.run].tables[part.tables.clone()].iter();
    let done = match parts.as_slice() {
        [only] if only.run == target => !anyway && tables(only).all(|table| shape.is_finished(table)),
        parts => parts.is_empty(),
    };
    (!done).then_some(Plan::Partial { parts, target })
}

/// Compacts everything into one run; `None` and `anyway` as for `merge_range`.
pub fn merge_all(shape: &Shape<'_>, anyway: bool) -> Option<Plan> {
    let last = shape.runs.len().checked_sub(1)?;
    let done = last == 0 && !anyway && shape.runs[0].tables.iter().all(|table| shape.is_finished(table));
    (!done).then_some(Plan::Merge { first: 0, last })
}
