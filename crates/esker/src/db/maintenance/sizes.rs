//! Estimates of size and number.

use crate::db::state::inner::KeyspaceInner;
use std::ops::Bound;

/// About the bytes that the range takes in tables and memtables.
pub fn approximate(keyspace: &KeyspaceInner, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
    let Some((start, end)) = keyspace.order.half_open(lower, upper) else { return 0 };
    let read_state = keyspace.read_state.load();
    let in_tables = read_state.version.tables().map(|(_, table)| table.approximate_bytes(&start, end.as_deref()));
    let memtables = read_state.memtables();
    let in_memory = memtables.map(|memtable| memtable.approximate_bytes(&start, end.as_deref()));
    in_tables.sum::<u64>() + in_memory.sum::<u64>()
}

/// About the number of entries of the range in tables and memtables.
pub fn approximate_entries(keyspace: &KeyspaceInner, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
    let Some((start, end)) = keyspace.order.half_open(lower, upper) else { return 0 };
    let read_state = keyspace.read_state.load();
    let in_tables = read_state.version.tables().map(|(_, table)| table.approximate_entries(&start, end.as_deref()));
    let memtables = read_state.memtables();
    let in_memory = memtables.map(|memtable| memtable.approximate_entries(&start, end.as_deref()));
    in_tables.sum::<u64>() + in_memory.sum::<u64>()
}
