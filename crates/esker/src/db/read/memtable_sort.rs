//! Long sorted runs of a memtable, which scans leave to the background thread to merge
//! (`memtable/sorted_runs.rs`).

use crate::db::state::inner::Inner;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Lets the background thread merge the runs of active memtables; without one they are merged here.
#[cold]
pub fn want_merged(inner: &Inner) {
    let asked = inner.order_wanted.swap(true, Relaxed);
    if inner.inline_jobs() {
        merge_runs(inner);
    } else if !asked {
        inner.wake();
    }
}

/// Merges the sorted runs of active memtables, if a scan requested it. Those of immutable memtables
/// are about to be merged by a flush.
pub fn merge_runs(inner: &Inner) {
    // A request that comes from here on is a new one.
    if !inner.order_wanted.load(Relaxed) || !inner.order_wanted.swap(false, Relaxed) {
        return;
    }
    for keyspace in inner.all_keyspaces() {
        let active = Arc::clone(&keyspace.read_state.load().active);
        active.merge_runs();
    }
}
