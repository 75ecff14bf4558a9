//! Estimates of size.

use crate::db::state::inner::KeyspaceInner;
use std::ops::Bound;

/// The range as a first key and the key before which it ends; `None` if it is empty whatever the
/// keys.
fn half_open(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let behind = |key: &[u8]| [key, &[0]].concat();
    let start = match lower {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) => behind(key),
    };
    let end = match upper {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(behind(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
    };
    end.as_ref().is_none_or(|end| start < *end).then_some((start, end))
}

/// About the bytes that the range takes in tables and memtables.
pub fn approximate(keyspace: &KeyspaceInner, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
    let Some((start, end)) = half_open(lower, upper) else { return 0 };
    let read_state = keyspace.read_state.load();
    let in_tables = read_state.version.tables().map(|(_, table)| table.approximate_bytes(&start, end.as_deref()));
    let memtables = read_state.immutable.iter().chain([&read_state.active]);
    let in_memory = memtables.map(|memtable| memtable.approximate_bytes(&start, end.as_deref()));
    in_tables.sum::<u64>() + in_memory.sum::<u64>()
}
