//! Flush: immutable memtables become tables, oldest first.

use crate::db::background::commit_version_edit::{commit, is_listed, lock_jobs, renew_manifest, rules, with_output};
use crate::db::background::forget_changes;
use crate::db::background::rotate::rotate;
use crate::db::files::remover;
use crate::db::read::memtable_sort;
use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::latencies::Timed;
use crate::db::state::memory;
use crate::db::state::write_throttle::MAX_IMMUTABLE_MEMTABLES;
use crate::db::write_controller::time_share::TimeShare;
use crate::error::{Error, Result};
use crate::event_listener::FlushCompleted;
use crate::iter::Cursor;
use crate::job::flush::{Flushed, flush};
use crate::job::version_gc::Rules;
use crate::memtable::Memtable;
use crate::table::TableSummary;
use crate::version::edit::Change;
use crate::version::runs::Version;
use crate::wal::reserve::RESERVE_BYTES;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Retired log segments that make a keyspace flush a memtable that is not full.
const MAX_LOG_BUFFERS: u64 = 4;
/// How long after a failure background work is tried again.
pub const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Flushes every memtable that waits for it, oldest first, and prepares the next log segment. Where
/// there is no room for those of one keyspace, those of the others are flushed all the same: one
/// may hold the deletes that make some.
pub fn flush_all(inner: &Inner) -> Result<()> {
    let (mut full, mut passed_over) = (None, BTreeSet::new());
    loop {
        let log = inner.log.as_ref().filter(|_| !inner.inline_jobs());
        // On a full disk a flush may be what makes room for the segment, so the flush is tried
        // whatever became of it.
        let prepared = match log {
            Some(log) if log.wants_preparation() => log.prepare_next(),
            _ => Ok(()),
        };
        // Before a flush, which may sort for a while first, and before memtable memory, which is
        // more plentiful.
        while log.is_some_and(|log| log.prefault_step()) {}
        memory::touch_ahead(inner);
        memtable_sort::merge_runs(inner);
        let keyspaces = inner.all_keyspaces().into_iter().filter(|keyspace| !passed_over.contains(&keyspace.id));
        let waiting = keyspaces.filter_map(|keyspace| {
            let oldest = keyspace.read_state.load().of_jobs().immutable.last().cloned();
            oldest.map(|memtable| (keyspace, memtable))
        });
        match waiting.min_by_key(|(_, memtable)| memtable.first_sequence()) {
            Some((keyspace, memtable)) => match flush_one(inner, &keyspace, &memtable) {
                Err(error) if error.is_disk_full() && inner.error_state.check().is_ok() => {
                    note_failure(inner, &error);
                    full.get_or_insert(error);
                    passed_over.insert(keyspace.id);
                }
                flushed => flushed?,
            },
            None => return full.map_or(prepared, Err),
        }
    }
}

/// Notes at once that a flush failed, for writers that would wait for it meanwhile. The next round
/// settles it, also where a caller flushes here.
fn note_failure(inner: &Inner, error: &Error) {
    if !inner.inline_jobs() {
        inner.error_state.note_flush(Some(error));
        inner.wake();
    }
}

/// As [`flush_all`], for what goes on where a disk is full, since it may make room. That error is
/// returned for later.
pub fn flush_what_has_room(inner: &Inner) -> Result<Option<Error>> {
    let flushed = flush_all(inner);
    match &flushed {
        Ok(()) if !inner.inline_jobs() => inner.error_state.note_flush(None),
        // That the database is read-only was reported already.
        Err(error) if inner.error_state.check().is_ok() => note_failure(inner, error),
        _ => {}
    }
    unless_disk_full(flushed)
}

/// The error of a full disk, for later; any other at once.
pub fn unless_disk_full(done: Result<()>) -> Result<Option<Error>> {
    match done {
        Ok(()) => Ok(None),
        Err(error) if error.is_disk_full() => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// What a flush does at its yield points for writers and scans, which do not wait for it.
///
/// The log's next segment comes first: a writer would stop for it. While another memtable waits,
/// the other work gets no more time than the flush, see [`TimeShare`].
fn yield_to_others(inner: &Inner, keyspace: &KeyspaceInner, shares: &mut TimeShare) {
    let flush_has_its_share = shares.pause(Instant::now());
    let others_may = flush_has_its_share || keyspace.read_state.load().immutable.len() < MAX_IMMUTABLE_MEMTABLES;
    prepare_segment(inner);
    if others_may {
        memory::touch_ahead(inner);
        memtable_sort::merge_runs(inner);
        let log = inner.log.as_ref().filter(|_| !inner.inline_jobs());
        log.inspect(|log| _ = log.prefault_step());
    }
    shares.go_on(Instant::now());
}

/// Prepares the next log segment, if it is wanted. A failure is left to the writer that needs it.
pub fn prepare_segment(inner: &Inner) {
    let log = inner.log.as_ref().filter(|_| !inner.inline_jobs());
    if let Some(log) = log.filter(|log| log.wants_preparation()) {
        let _ = log.prepare_next();
    }
}

/// A memtable that is seldom written pins the log: it is rotated once the pinned part is long.
pub fn rotate_log_holders(inner: &Inner) {
    let Some(log) = &inner.log else { return };
    let limit = (inner.options.write_buffer_bytes as u64).max(inner.options.wal_segment_bytes) * MAX_LOG_BUFFERS;
    if log.retired_bytes() <= limit {
        return;
    }
    let oldest = inner.oldest_unflushed(&[]);
    let mut writer = inner.writer.lock();
    for keyspace in inner.all_keyspaces() {
        let active = Arc::clone(&keyspace.read_state.load().active);
        if !active.is_empty() && active.first_sequence() == oldest {
            rotate(inner, &mut writer, keyspace.id, 0);
        }
    }
}

/// A memtable that waits for its flush, and whose it is.
type Waiting = (Arc<KeyspaceInner>, Arc<Memtable>);

/// Rotates every memtable that is not empty, all at one point of the order of writes. Returns all
/// immutable memtables, oldest first.
fn rotate_all(inner: &Inner, writer: &mut Writer) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for keyspace in inner.all_keyspaces() {
        if !keyspace.read_state.load().active.is_empty() {
            rotate(inner, writer, keyspace.id, 0);
        }
        let read_state = keyspace.read_state.load();
        let immutable = read_state.of_jobs().immutable.iter();
        waiting.extend(immutable.map(|memtable| (Arc::clone(&keyspace), Arc::clone(memtable))));
    }
    waiting.sort_by_key(|(_, memtable)| memtable.first_sequence());
    waiting
}

fn still_waits((keyspace, memtable): &Waiting) -> bool {
    let read_state = keyspace.read_state.load();
    read_state.of_jobs().immutable.iter().any(|immutable| Arc::ptr_eq(immutable, memtable))
}

/// Flushes everything written before the call and nothing else, then calls `then` with the job lock
/// still held: the tables are then the state at one point of the order of writes. No keyspace is
/// created or dropped meanwhile.
pub fn flush_exactly<T>(inner: &Inner, then: impl FnOnce() -> Result<T>) -> Result<T> {
    let _jobs = lock_jobs(inner)?;
    let _changes = inner.keyspace_changes.lock();
    let waiting = rotate_all(inner, &mut inner.writer.lock());
    let mut waiting = waiting.iter().filter(|waiting| still_waits(waiting));
    let flushed = waiting.try_for_each(|(keyspace, memtable)| flush_one(inner, keyspace, memtable));
    // With the job lock: otherwise the blob files of another job's result would look unreferenced.
    flushed.and_then(|()| then()).inspect_err(|_| remover::sweep_blobs(inner))
}

fn flush_one(inner: &Inner, keyspace: &Arc<KeyspaceInner>, memtable: &Arc<Memtable>) -> Result<()> {
    inner.error_state.check()?;
    // It is immutable: no writer changes it from here on.
    inner.thread_gate.wait_for_all();
    let started = Instant::now();
    if !is_listed(inner, keyspace) {
        // The drop that made it so is about to take it away.
        std::thread::yield_now();
        return Ok(());
    }
    // Also of one that is being dropped: that may be taken back.
    let version = Arc::clone(&keyspace.read_state.load().stored().version);
    // Taken before the entries are read: a reader that registers later reads at or above all of
    // them.
    let readers = inner.readers(keyspace);
    let operator = keyspace.operator();
    let rules = rules(keyspace, &readers, version.runs.is_empty(), operator.as_deref());
    let goes_last = goes_last(inner, &version, memtable);
    // Other keyspaces may have older writes, or the rest of a batch, only in the log: without them
    // this flush would leave a hole after a power loss. So would readers of changes. Before the
    // tables: where no manifest is left, a repair believes what they say.
    if inner.keeps_changes() || others_have_writes(inner, keyspace) {
        inner.sync_log()?;
    }
    // What tables refer to is durable before the last one vouches for it, and before the manifest
    // names them; jobs write the files that they refer to, or read it in other tables.
    if !memtable.blob_files().is_empty() {
        let unfinished = inner.error_state.unfinished();
        let synced = inner.blobs.sync();
        unfinished.finish();
        synced.map_err(|error| inner.error_state.poison(error))?;
    }
    let Flushed { tables, expired } = write_tables(inner, keyspace, memtable, rules, (goes_last, started))?;
    inner.counters.expired_entries.fetch_add(expired, Relaxed);
    let bytes = tables.iter().map(|table| table.summary().file_bytes).sum();
    keyspace.read_stats.note_flush(tables.iter().map(|table| table.summary().entries).sum());
    let above = inner.merging.lock().and_then(|(id, newest)| (id == keyspace.id).then_some(newest));
    let run = version.deepest_free_run(&tables, above).unwrap_or_else(|| inner.next_file_number());

    let sequence = memtable.last_sequence();
    let oldest = inner.oldest_unflushed(std::slice::from_ref(memtable));
    let mut changes = vec![Change::Flushed { keyspace: keyspace.id, sequence }, Change::LastSequence(sequence)];
    let floor = match &inner.log {
        None => None,
        Some(log) => {
            let floor = log.floor(oldest);
            log.sync_link(floor).map_err(|error| inner.error_state.poison(error))?;
            changes.push(Change::LogFloor(floor));
            Some(floor)
        }
    };
    // The keyspace may be dropped while it is flushed.
    let is_in_manifest = commit(inner, keyspace, changes, run, &tables, &[])?;
    if is_in_manifest && memtable.has_unlogged_writes() {
        // They are nowhere else. Before the memtable is gone: other callers wait for nothing more.
        // After an error it must not be flushed again, since the manifest names its tables.
        renew_manifest(inner, &[]).map_err(|error| inner.error_state.poison(error))?;
    }
    if !is_in_manifest || !keyspace.read_state.install_flush(memtable, run, &tables) {
        remover::retire_tables(inner, tables);
        return Ok(());
    }
    // What a small one costs says nothing about a full one.
    if memtable.end() >= inner.options.write_buffer_bytes / 4 {
        inner.counters.flush_speed.note(memtable.end(), started.elapsed());
    }
    if let Some(latencies) = inner.latencies.get() {
        latencies.note(Timed::Flush, started.elapsed());
    }
    memory::flushed(inner, memtable);
    if let Some(floor) = floor {
        remover::release_segments(inner, floor, true)?;
        forget_changes::forget(inner, true)?;
    }
    inner.counters.flushes.fetch_add(1, Relaxed);
    inner.counters.flush_bytes.fetch_add(bytes, Relaxed);
    let flushed = || FlushCompleted { keyspace: keyspace.name().to_string(), tables: tables.len() as u64, bytes };
    inner.events.note(|| Event::Flush(flushed()));
    inner.tell_waiting();
    Ok(())
}

/// Writes the tables of a memtable; on a full disk in the space that is held back, if they are
/// small.
fn write_tables(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    memtable: &Arc<Memtable>,
    rules: Rules<'_>,
    (goes_last, started): (bool, Instant),
) -> Result<Flushed> {
    let last = memtable.last_sequence();
    let mut shares = TimeShare::new(started);
    let in_compaction = inner.merging.lock().is_some();
    let mut write = |yields: bool| {
        let mut pause = || {
            if yields {
                yield_to_others(inner, keyspace, &mut shares);
            }
        };
        with_output(inner, keyspace, (last, goes_last), &BTreeSet::new(), in_compaction, |output| {
            flush(memtable, rules, output, &mut pause)
        })
    };
    match (write(true), &inner.log) {
        // It may hold the deletes that make room, for whose table there is none. The reserve is
        // held again by the close, or the next open: there is an edit to be made first, and more
        // by what gives the room back.
        (Err(error), Some(log)) if error.is_disk_full() && is_little(memtable) && log.reserve().spend() => {
            // Without yielding: the next log segment would take the room.
            write(false).inspect_err(|_| log.reserve().hold())
        }
        (written, _) => written,
    }
}

/// Whether a table of the memtable takes a small part of the reserve.
fn is_little(memtable: &Memtable) -> bool {
    (memtable.bytes() as u64) < RESERVE_BYTES / 4
}

/// Whether the tables of the memtable go into the last run. Only checked where that makes a
/// difference.
fn goes_last(inner: &Inner, version: &Version, memtable: &Arc<Memtable>) -> bool {
    if version.runs.is_empty() || inner.options.upper() == inner.options.compression {
        return true;
    }
    if memtable.has_range_tombstones() {
        return false;
    }
    let mut cursor = memtable.sealed_cursor();
    let mut key_at = |end: bool| {
        let moved = if end { cursor.seek_to_last() } else { cursor.seek_to_first() };
        moved.ok().filter(|()| cursor.valid()).map(|()| cursor.entry().key.to_vec())
    };
    match (key_at(false), key_at(true)) {
        (Some(smallest_key), Some(largest_key)) => {
            let bounds =
                TableSummary { smallest_key, largest_key, order: memtable.order().clone(), ..TableSummary::default() };
            version.runs.iter().all(|run| !run.overlaps(&bounds, &bounds))
        }
        _ => true,
    }
}

fn others_have_writes(inner: &Inner, keyspace: &KeyspaceInner) -> bool {
    inner.all_keyspaces().iter().filter(|other| other.id != keyspace.id).any(|other| {
        let read_state = other.read_state.load();
        read_state.memtables().any(|memtable| !memtable.is_empty())
    })
}

/// Flushes everything written before the call.
pub fn flush_now(inner: &Inner) -> Result<()> {
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    let waiting = {
        // One that is being dropped has no writer, and may be there again.
        let _changes = inner.keyspace_changes.lock();
        rotate_all(inner, &mut inner.writer.lock())
    };
    while waiting.iter().any(still_waits) {
        // The holder of the job lock flushes too, even in the middle of a compaction.
        match inner.jobs.try_lock_for(Duration::from_millis(5)) {
            Some(_jobs) => {
                inner.error_state.check()?;
                flush_all(inner)
                    .inspect_err(|_| remover::sweep_blobs(inner))
                    .map_err(|error| inner.error_state.note_failure(error))?;
            }
            None => {
                inner.error_state.check()?;
                inner.error_state.check_flush()?;
            }
        }
    }
    Ok(())
}

/// Flushes everything. The caller holds the job lock and the writer lock, so that nothing comes in
/// between.
pub fn flush_locked(inner: &Inner, writer: &mut Writer) -> Result<()> {
    rotate_all(inner, writer);
    flush_all(inner)
}
