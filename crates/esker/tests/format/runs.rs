//! The tables of a keyspace and their runs: what doc/format/manifest.md and table.md say of them.

use crate::bytes::{Read, ensure};
use crate::manifest::Keyspace;
use crate::order::Order;
use crate::table::Table;
use std::collections::BTreeMap;

/// Checks that the tables of a run do not overlap, and that of each key runs with a greater number
/// have the newer versions.
pub fn check(keyspace: &Keyspace, tables: &BTreeMap<u64, Table>, order: Order) -> Read<()> {
    let mut runs: BTreeMap<u64, Vec<&Table>> = BTreeMap::new();
    for (number, stated) in &keyspace.tables {
        runs.entry(stated.run).or_default().push(&tables[number]);
    }
    let mut newest: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut older_ranges: Vec<(&[u8], &[u8], u64)> = Vec::new();
    for (run, tables) in &mut runs {
        check_apart(tables, order).map_err(|what| format!("run {run} of {}: {what}", keyspace.name))?;
        let entries = || tables.iter().flat_map(|table| &table.entries);
        for entry in entries() {
            let older = newest.get(&*entry.key).copied();
            ensure!(older.is_none_or(|older| older < entry.sequence), "run {run} has an older version: {entry:?}");
            let mut over = older_ranges.iter().filter(|(start, end, _)| order.covers(start, end, &entry.key));
            ensure!(over.all(|&(_, _, deleted)| deleted < entry.sequence), "run {run}: deleted below: {entry:?}");
        }
        for entry in entries() {
            let known = newest.entry(&entry.key).or_default();
            *known = entry.sequence.max(*known);
        }
        for tombstone in tables.iter().flat_map(|table| &table.properties.tombstones) {
            older_ranges.push((&tombstone.start, &tombstone.end, tombstone.sequences[0]));
        }
    }
    Ok(())
}

fn check_apart(tables: &mut [&Table], order: Order) -> Read<()> {
    tables.sort_by(|a, b| order.compare(start(a, order), start(b, order)));
    for pair in tables.windows(2) {
        let (end, is_part) = end(pair[0], order);
        let next = order.compare(end, start(pair[1], order));
        let is_apart = !end.is_empty() || is_part;
        ensure!(is_apart && (next.is_lt() || (next.is_eq() && !is_part)), "tables overlap at {end:?}");
    }
    Ok(())
}

fn start(table: &Table, order: Order) -> &[u8] {
    let range = table.properties.tombstones.first().map(|tombstone| &*tombstone.start);
    let key = table.entries.first().map(|entry| &*entry.key);
    match (key, range) {
        (Some(key), Some(range)) => std::cmp::min_by(key, range, |a, b| order.compare(a, b)),
        (key, range) => key.or(range).unwrap_or_default(),
    }
}

/// Where it ends, and whether that place is part of it.
fn end(table: &Table, order: Order) -> (&[u8], bool) {
    let range = table.properties.tombstones.last().map(|tombstone| &*tombstone.end);
    let key = table.entries.last().map(|entry| &*entry.key);
    match (key, range) {
        (_, Some(b"")) => (b"", false),
        (Some(key), Some(range)) if order.compare(key, range).is_lt() => (range, false),
        (Some(key), _) => (key, true),
        (None, range) => (range.unwrap_or_default(), false),
    }
}
