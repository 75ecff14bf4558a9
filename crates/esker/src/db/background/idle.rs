//! What an idle database gives back: the space of the log, and memory kept for the next memtables.
//!
//! A memtable that is not full keeps its log, which takes more space than its table would. It is
//! flushed once that is worth it. The cost is not the flush but the compaction that follows in an
//! idle database: the small table may go into a run as large as the keyspace. So, without a manual
//! request, the bytes logged since the last time must be a good part of all tables. However writes
//! and pauses alternate, each byte is then compacted a limited number of times for it, and a log
//! that stays is a small part of what the database takes. Large values that a memtable refers to
//! count as logged: they are compressed once a table refers to them.

use crate::db::background::blob_gc;
use crate::db::background::commit_version_edit::lock_jobs;
use crate::db::background::flush::flush_exactly;
use crate::db::background::forget_changes;
use crate::db::files::remover;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A log of at most this many bytes on disk is left alone.
const SMALL_LOG_BYTES: u64 = 4 << 20;
/// In a pause, at least this part of a write buffer must have been logged since the last time.
const BUFFER_PART: u64 = 8;
/// And at least this part of what the tables take.
const TABLES_PART: u64 = 16;

/// Flushes the memtables that pin a log worth the flush, and releases that log at once.
/// `drain_requested`: by a caller, who waits for it.
pub fn empty_log(inner: &Inner, drain_requested: bool) -> Result<()> {
    if !log_is_worth_a_flush(inner, drain_requested) {
        return reclaim(inner);
    }
    if let Some(log) = &inner.log {
        log.note_idle();
    }
    // Writes that come between would keep the log.
    flush_exactly(inner, || {
        remover::reclaim_log(inner)?;
        forget_changes::forget(inner, false)
    })
}

/// Gives back what was kept for more writes.
pub fn reclaim(inner: &Inner) -> Result<()> {
    inner.memory.note_idle(true);
    let is_needless = !remover::log_is_reclaimable(inner) && !forget_changes::are_expendable(inner);
    if inner.stopping.load(Relaxed) || is_needless {
        return Ok(());
    }
    let _jobs = lock_jobs(inner)?;
    remover::reclaim_log(inner)?;
    forget_changes::forget(inner, false)
}

/// Whether anything would be given back after a pause.
pub fn gives_something_back(inner: &Inner) -> bool {
    inner.memory.unused_bytes() > 0
        || remover::log_is_reclaimable(inner)
        || forget_changes::are_expendable(inner)
        || log_is_worth_a_flush(inner, false)
        || blob_gc::may_compress(inner)
}

fn log_is_worth_a_flush(inner: &Inner, drain_requested: bool) -> bool {
    let Some(log) = &inner.log else { return false };
    let large = large_bytes_in_memory(inner);
    if log.held_bytes().max(large) <= SMALL_LOG_BYTES || remover::no_memtable_has_writes(inner) {
        return false;
    }
    let logged = log.bytes_since_idle().saturating_add(large);
    drain_requested
        || (logged > SMALL_LOG_BYTES
            && logged >= inner.options.write_buffer_bytes as u64 / BUFFER_PART
            && logged >= table_bytes(inner) / TABLES_PART)
}

/// Bytes of large values that only memtables refer to and that may be compressed once tables do.
fn large_bytes_in_memory(inner: &Inner) -> u64 {
    if !blob_gc::may_compress(inner) {
        return 0;
    }
    inner.all_keyspaces().iter().map(|keyspace| keyspace.read_state.load().active.blob_bytes()).sum()
}

fn table_bytes(inner: &Inner) -> u64 {
    let of_one = |keyspace: &Arc<KeyspaceInner>| {
        keyspace.read_state.load().version.runs.iter().map(|run| run.bytes()).sum::<u64>()
    };
    inner.all_keyspaces().iter().map(of_one).sum()
}
