//! Closing a database.

use crate::db::background::commit_version_edit::try_renew_manifest;
use crate::db::background::flush;
use crate::db::files::remover;
use crate::db::state::inner::{Inner, Writer};
use crate::db::write::in_place_write;
use crate::error::Result;
use crate::version::edit::Change;
use std::sync::atomic::Ordering;

/// A close leaves no more than this of the log to later opens. Each of them replays it in some
/// 10 ms; longer logs are better flushed once.
const MOST_REPLAYED_BYTES: u64 = 4 << 20;

/// Stops accepting writes, makes everything durable and marks the end of the log. The handle is
/// unusable for writes afterwards.
pub fn close(inner: &Inner) -> Result<()> {
    if inner.manifest.lock().is_none() {
        inner.watchers.close();
        return Ok(());
    }
    if has_unlogged_writes(inner) || is_long_to_replay(inner) {
        // Most of the flush before the locks. What comes in meanwhile, and what a compaction beside
        // it has kept from being flushed, is flushed under them as far as it is not in the log: a
        // full disk, or whatever else keeps the rest from the tables, is no failure of the close.
        let _ = flush::flush_now(inner);
    }
    // Before the locks: a running compaction gives up instead of being waited for.
    inner.stopping.store(true, Ordering::Release);
    let _jobs = inner.jobs.lock();
    // A keyspace that is being dropped is gone first, or there again.
    let _changes = inner.keyspace_changes.lock();
    let mut writer = inner.writer.lock();
    // It goes before the locks, of which a panic lets writers through.
    let unfinished = inner.error_state.unfinished();
    in_place_write::Barrier::raise(inner).keep();
    let result = finish(inner, &mut writer);
    if let (Err(error), Some(log)) = (&result, &inner.log)
        && error.is_disk_full()
    {
        // A flush may have spent it.
        log.reserve().hold();
    }
    // In any case: the caller releases the lock on the directory, and another process may then
    // write there.
    inner.error_state.refuse_writes("it was closed");
    unfinished.finish();
    if result.is_ok() {
        // What found no room is in the log, and no round comes to settle it.
        inner.error_state.note_flush(None);
    }
    inner.watchers.close();
    result
}

fn finish(inner: &Inner, writer: &mut Writer) -> Result<()> {
    inner.error_state.check()?;
    let flushed = if has_unlogged_writes(inner) { flush::flush_locked(inner, writer) } else { Ok(()) };
    // Those that found no room are in the log.
    let flushed = flushed.or_else(|error| match error.is_disk_full() && !has_unlogged_writes(inner) {
        true => Ok(()),
        false => Err(error),
    });
    // What was written without log is lost then. What is in the log is made durable all the same,
    // which takes no space, and marked as complete, so that the next open needs none either.
    let closed = inner.error_state.check().and_then(|()| close_log(inner, writer));
    flushed.and(closed)
}

fn close_log(inner: &Inner, writer: &mut Writer) -> Result<()> {
    let Some(log) = &mut writer.log else { return Ok(()) };
    log.close()?;
    let end = log.position();
    let is_closed = [
        Change::LastSequence(inner.last_sequence.load(Ordering::Acquire)),
        Change::Closed { segment: end.segment, offset: end.offset },
    ];
    match commit(inner, &is_closed) {
        // Another manifest says so, in the room that is held back for opens: of a log that was not
        // closed the next one has to write tables, for which there is no room at all.
        Err(error) if error.is_disk_full() && log.shared().reserve().spend() => {
            let closed = try_renew_manifest(inner, &[]).and_then(|()| commit(inner, &is_closed));
            log.shared().reserve().hold();
            closed
        }
        other => {
            // A flush may have spent it.
            log.shared().reserve().hold();
            other
        }
    }
}

/// Has the manifest say that the database was closed, and refuses writes before it is unlocked.
fn commit(inner: &Inner, is_closed: &[Change]) -> Result<()> {
    let mut manifest = inner.manifest.lock();
    if let Some(manifest) = &mut *manifest {
        manifest.commit(is_closed)?;
        // With the lock: a keyspace that is being dropped needs no other, and a manifest of its own
        // would not say that the database was closed.
        inner.error_state.refuse_writes("it was closed");
    }
    Ok(())
}

/// Whether later opens would take long to replay the log. A short one is left to them: otherwise
/// each close of a program that writes little would make a table.
fn is_long_to_replay(inner: &Inner) -> bool {
    let Some(log) = &inner.log else { return false };
    !remover::no_memtable_has_writes(inner) && log.bytes_to_replay() > MOST_REPLAYED_BYTES
}

fn has_unlogged_writes(inner: &Inner) -> bool {
    inner.all_keyspaces().iter().any(|keyspace| {
        let read_state = keyspace.read_state.load();
        read_state.memtables().any(|memtable| memtable.has_unlogged_writes())
    })
}
