//! FIFO: nothing is compacted; when tables and their large values exceed the limit, the oldest
//! tables are dropped.

use super::shape::{Plan, Shape};

pub fn pick(shape: &Shape<'_>, max_bytes: u64) -> Option<Plan> {
    let mut total = shape.bytes();
    if total <= max_bytes {
        return None;
    }
    // File numbers only grow, so the smallest is the oldest.
    let mut left: Vec<_> = shape
        .runs
        .iter()
        .enumerate()
        .flat_map(|(run, shape)| shape.tables.iter().map(move |table| (run, table)))
        .collect();
    left.sort_by_key(|(_, table)| table.number);
    let mut dropped = Vec::new();
    // The newest stays, however large.
    while total > max_bytes && left.len() > 1 {
        // Never from above something older: that would come back. Only a compaction, under another
        // style, can leave such an order.
        let at = left.iter().position(|(run, table)| {
            let below = shape.runs.iter().skip(run + 1);
            below
                .flat_map(|older| &older.tables[older.overlapping(table.smallest, table.largest)])
                .all(|older| dropped.contains(&older.number))
        })?;
        let (_, table) = left.remove(at);
        total -= table.all_bytes().min(total);
        dropped.push(table.number);
    }
    (!dropped.is_empty()).then_some(Plan::Drop { tables: dropped })
}
