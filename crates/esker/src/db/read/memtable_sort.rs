//! Long runs of a memtable's order, which scans leave to the background thread to merge
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

/// Merges the runs of active memtables, if a scan asked for it. Those that are put aside a flush is
/// about to merge.
pub fn merge_runs(inner: &Inner) {
    // Whoever asks from here on asks again.
    if !inner.order_wanted.load(Relaxed) || !inner.order_wanted.swap(false, Relaxed) {
        return;
    }
    for keyspace in inner.all_keyspaces() {
        let active = Arc::clone(&keyspace.read_state.load().active);
        active.merge_runs();
    }
}
