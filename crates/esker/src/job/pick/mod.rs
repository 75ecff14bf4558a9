//! What to do next. Pure: the shape of a version in, a plan out.
//!
//! A style (`lazy`, `leveled`, `tiered`, `fifo`) says which runs are merged, and what any style
//! should do for the sake of what is dead is in `garbage`.

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

/// Whether the scan debt is so high that it must lead to a merge, or be forgiven.
pub fn skipped_tombstones_are_due(shape: &Shape<'_>) -> bool {
    shape.tombstones_skipped > 0 && garbage::scans_suffer(shape)
}

/// The earliest clock time at which there will be something to do although nobody writes.
pub fn next_due(shape: &Shape<'_>, style: CompactionStyle) -> Option<u64> {
    garbage::next_due(shape, !matches!(style, CompactionStyle::Fifo { .. }))
}

/// Merges everything with keys from `smallest` to `largest` into the last run; `None` if that would
/// change nothing. `anyway`: it might, whatever the tables look like.
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

/// Merges everything into one run; `None` and `anyway` as for `merge_range`.
pub fn merge_all(shape: &Shape<'_>, anyway: bool) -> Option<Plan> {
    let last = shape.runs.len().checked_sub(1)?;
    let done = last == 0 && !anyway && shape.runs[0].tables.iter().all(|table| shape.is_finished(table));
    (!done).then_some(Plan::Merge { first: 0, last })
}
