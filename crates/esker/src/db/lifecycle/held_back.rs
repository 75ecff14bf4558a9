//! Which databases hold space back for opens on a full disk (`wal/reserve.rs`).

use crate::db::state::inner::{Inner, KeyspaceInner};
use std::sync::Arc;

/// A database of so many bytes of files is long enough to hold something back.
const GROWN_BYTES: u64 = 16 << 20;
/// One that is smaller than this again when it is closed gives it back: it is no larger than an
/// empty one then.
const SMALL_BYTES: u64 = 4 << 20;

/// Holds it, at the end of an open. `reserved`: the database did so before.
pub fn hold(inner: &Inner, reserved: bool) {
    if let Some(log) = inner.log.as_ref().filter(|_| reserved || bytes_of_files(inner) >= GROWN_BYTES) {
        log.reserve().hold();
    }
}

/// Gives it back at a close, if the database has become small.
pub fn give_back_if_small(inner: &Inner) {
    let small = inner.log.as_ref().filter(|_| bytes_of_files(inner) < SMALL_BYTES);
    if let Some(log) = small.filter(|log| log.reserve().is_held()) {
        log.reserve().spend();
    }
}

/// Of tables, large values and the log.
fn bytes_of_files(inner: &Inner) -> u64 {
    let of_tables = |keyspace: &Arc<KeyspaceInner>| -> u64 {
        keyspace.read_state.load().version.tables().map(|(_, table)| table.summary().file_bytes).sum()
    };
    let of_log = inner.log.as_ref().map_or(0, |log| log.held_bytes());
    let of_blobs: u64 = inner.blobs.lengths().values().sum();
    inner.all_keyspaces().iter().map(of_tables).sum::<u64>() + of_blobs + of_log
}
