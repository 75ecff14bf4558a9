//! The remover of the files of a database. A file is removed when no durable manifest names it and
//! no reader can hold it. (A file that a failed call has just made, a log segment in
//! `wal/segment.rs` or a link in `copy.rs`, is removed by that call, and the reserve, which says
//! nothing, by `wal/reserve.rs`.)

use crate::blob::BlobStore;
use crate::blob::format::file_number as blob_number;
use crate::db::files::{copy, repair_mark};
use crate::db::state::events::Event;
use crate::db::state::inner::Inner;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::version::edit::{Change, ManifestState};
use crate::version::file_name::{
    CURRENT, CURRENT_TEMPORARY, LOCK, LOST, REPAIR, UNFINISHED, manifest, manifest_number, table, table_number,
};
use crate::version::manifest::{current_number, point_current};
use crate::wal::format::MAX_SEGMENT_BYTES;
use crate::wal::segment::{file_name as segment_name, file_number};
use crate::wal::writer::{AppendError, LogWriter};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// While writes arrive, a flush keeps released segments for reuse, up to a write buffer divided by
/// this. A new file takes the background thread some milliseconds.
const KEPT_PART: u64 = 4;

/// Log segment files kept for reuse while writes come.
fn segments_to_keep(inner: &Inner) -> usize {
    let part = inner.options.write_buffer_bytes as u64 / KEPT_PART;
    usize::try_from(part / inner.options.wal_segment_bytes).unwrap_or(usize::MAX).clamp(1, 16)
}

/// Takes tables that a durable edit has just removed, or that none ever named, and removes the
/// files that no reader holds. A failure to remove harms nothing: the next open tries again.
pub fn retire_tables(inner: &Inner, removed: impl IntoIterator<Item = Arc<Table>>) {
    let removed = removed.into_iter().inspect(|table| inner.error_state.forget_damage(table.path()));
    inner.obsolete.add(removed);
    sweep(inner);
}

/// Removes the files of retired tables that no reader holds.
pub fn sweep(inner: &Inner) {
    for keyspace in inner.dropped.take_unseen(&inner.snapshots) {
        keyspace.read_state.release_dropped();
    }
    // They go without a lock: their files are the environment's.
    for table in inner.obsolete.take_unread() {
        let path = table.path().to_path_buf();
        drop(table);
        if inner.options.env.remove(&path).is_ok() {
            inner.error_state.forget_damage(&path);
            inner.events.note(|| Event::Removed(path));
        }
    }
}

/// Removes the blob files that no table and no memtable refers to. The caller holds the job lock,
/// so that nothing moves from one to the other, and not the writer lock.
pub fn sweep_blobs(inner: &Inner) {
    // Once read-only, the manifest on the device may name other tables than those in memory.
    if inner.blobs.is_empty() || inner.error_state.check().is_err() {
        return;
    }
    sweep(inner);
    // Before the files in use are collected: a write that refers to a file later holds it already.
    let mut candidates = inner.blobs.unheld();
    // Files of an ingest that no version names yet. They are read before the versions: an ingest
    // that ends in between is in a version.
    let in_progress = inner.in_progress.lock().clone();
    candidates.retain(|number| !in_progress.contains(number));
    if candidates.is_empty() {
        return;
    }
    let used = blobs_in_use(inner);
    // The file that jobs append to stays open for a next job, which may never come.
    inner.blobs.end_job_file_unless(|number| used.contains(&number));
    if candidates.iter().all(|number| used.contains(number)) {
        return;
    }
    // A second look, under the writer lock: a merge may have copied a reference from a table that
    // was removed meanwhile (`merge_expiry.rs`). And a write may have failed or panicked that the
    // log has and no memtable: then the next open needs its values.
    let used = {
        let _writer = inner.writer.lock();
        if inner.error_state.check().is_err() {
            return;
        }
        blobs_in_use(inner)
    };
    // A sync of the log makes durable what its records refer to, but not in a forgotten file.
    if inner.keeps_changes() {
        let unfinished = inner.error_state.unfinished();
        let synced = inner.blobs.sync();
        unfinished.finish();
        if let Err(error) = synced {
            inner.error_state.poison(error);
            return;
        }
    }
    for number in candidates.into_iter().filter(|number| !used.contains(number)) {
        // What a job wrote that failed is of no use to anyone.
        let is_logged = inner.blobs.is_logged(number);
        if let Some(path) = inner.blobs.forget(number) {
            match inner.log.as_ref().filter(|log| is_logged && log.keeps_changes()) {
                // Any record that refers to it is in this segment at the latest.
                Some(log) => inner.kept_blobs.add(path, log.active_segment()),
                None => {
                    let _ = inner.options.env.remove(&path);
                }
            }
        }
    }
}

fn blobs_in_use(inner: &Inner) -> BTreeSet<u64> {
    let mut used = BTreeSet::new();
    for keyspace in inner.all_keyspaces() {
        let read_state = keyspace.read_state.load();
        read_state.memtables().for_each(|memtable| used.extend(memtable.blob_files()));
        let version = &read_state.stored().version;
        version.tables().for_each(|(_, table)| used.extend(table.summary().blobs.keys()));
    }
    // What only readers of an earlier state have.
    inner.obsolete.for_each(|table| used.extend(table.summary().blobs.keys()));
    inner.write_buffer_manager.for_each_flushed(|memtable| used.extend(memtable.blob_files()));
    used
}

/// Removes the blob files in the directory that are not among those in use, and forgets them: what
/// a crash or a failed job left behind. Where changes are kept, they may refer to any of them: then
/// they are not removed, but returned. For the end of opening.
pub fn remove_orphan_blobs(
    env: &dyn Env,
    directory: &Path,
    blobs: &BlobStore,
    used: &BTreeSet<u64>,
    keeps_changes: bool,
) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for name in env.list(directory)? {
        if let Some(number) = blob_number(&name).filter(|number| !used.contains(number)) {
            blobs.forget(number);
            if keeps_changes {
                kept.push(directory.join(name));
            } else {
                env.remove(&directory.join(name))?;
            }
        }
    }
    Ok(kept)
}

/// Removes manifest `number`, which `CURRENT` does not name, nor will after a power loss: to other
/// processes that vouches for the switch to another one (`is_switched`). One that cannot be removed
/// goes with a later one: while it is there, they rely on the first record of none behind it.
pub fn remove_manifest(inner: &Inner, number: u64) {
    let mut left = inner.manifests_left.lock();
    left.push(number);
    left.retain(|&number| {
        let removed = inner.options.env.remove(&inner.directory.join(manifest(number)));
        removed.is_err_and(|error| !error.is_missing_file())
    });
}

/// Releases the log segments before `floor`, which a durable manifest names; where changes are
/// kept, those that nothing needs any more for them either. `keep`: some stay for reuse, but none
/// that was kept for changes.
pub fn release_segments(inner: &Inner, floor: u64, keep: bool) -> Result<()> {
    let Some(log) = &inner.log else { return Ok(()) };
    if log.keeps_changes() {
        log.archive(floor, inner.options.clock.now_ms());
        for path in inner.kept_blobs.take_unneeded(log.oldest_segment()) {
            let _ = inner.options.env.remove(&path);
        }
    }
    let keep = if keep { segments_to_keep(inner) } else { 0 };
    for path in log.release(floor, keep) {
        let _ = inner.options.env.remove(&path);
    }
    Ok(())
}

/// Gives back the space of the log that nothing needs: files kept for reuse, the prepared segment
/// and, if no memtable holds a write, all but a segment of the smallest size. The caller holds the
/// job lock. What still waits for its flush keeps the segments that hold it.
pub fn reclaim_log(inner: &Inner) -> Result<()> {
    let Some(log) = &inner.log else { return Ok(()) };
    inner.error_state.check()?;
    if log.is_idle(no_memtable_has_writes(inner)) {
        return Ok(());
    }
    let mut guard = inner.writer.lock();
    let writer = &mut *guard;
    // Under the lock no write can come in between: if no memtable has any, the segments up to here
    // hold nothing that is not in tables.
    let needless = no_memtable_has_writes(inner);
    let last_sequence = writer.last_sequence;
    // It goes before the lock: nobody writes to a segment that lacks its link.
    let unfinished = inner.error_state.unfinished();
    let rested = match &mut writer.log {
        Some(writing) => writing.rest(needless, last_sequence),
        None => Ok(()),
    };
    unfinished.finish();
    match rested {
        Ok(()) => {}
        Err(AppendError::Failed(error)) => return Err(inner.error_state.poison(error)),
        Err(AppendError::NoSegment(error)) => {
            drop(guard);
            // What is kept for reuse makes room for the next attempt.
            release_unneeded(inner)?;
            return Err(error);
        }
    }
    let floor = writer.log.as_ref().filter(|_| needless).map(|writing| writing.position().segment);
    drop(guard);
    if let Some(floor) = floor {
        log.sync_link(floor).map_err(|error| inner.error_state.poison(error))?;
        if let Some(manifest) = &mut *inner.manifest.lock() {
            // As in `commit`.
            inner.error_state.check()?;
            let mut changes = vec![Change::LastSequence(last_sequence), Change::LogFloor(floor)];
            changes.extend(inner.log_synced());
            let unfinished = inner.error_state.unfinished();
            let committed = manifest.commit(&changes);
            unfinished.finish();
            committed.map_err(|error| inner.error_state.poison(error))?;
        }
    }
    release_unneeded(inner)
}

/// Releases the log segments that the manifest needs no more, and keeps none for reuse.
fn release_unneeded(inner: &Inner) -> Result<()> {
    let floor = inner.manifest.lock().as_ref().map_or(0, |manifest| manifest.state().log_floor);
    release_segments(inner, floor, false)
}

/// Whether `reclaim_log` would give something back.
pub fn log_is_reclaimable(inner: &Inner) -> bool {
    inner.log.as_ref().is_some_and(|log| !log.is_idle(no_memtable_has_writes(inner)))
}

/// Whether everything written is in tables.
pub fn no_memtable_has_writes(inner: &Inner) -> bool {
    inner.all_keyspaces().iter().all(|keyspace| {
        let read_state = keyspace.read_state.load();
        read_state.memtables().all(|memtable| memtable.is_empty())
    })
}

/// Gives files that a repair replaces or has no use for, as far as they are there, a second name in
/// the directory `lost`, durably: a file with only its old name is removed by the next open once
/// the new manifest is current. A file that is there already keeps its name; the new one gets a
/// number behind it.
pub fn keep_in_lost(env: &dyn Env, directory: &Path, names: &BTreeSet<String>) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let lost = directory.join(LOST);
    if env.list(directory)?.iter().any(|name| name == LOST) {
        // A link could lead out of the database.
        return Err(Error::invalid(format!("{} is not a directory; move it away", lost.display())));
    }
    let mut found = false;
    for name in names {
        let from = directory.join(name);
        if !env.exists(&from)? {
            continue;
        }
        found = true;
        env.create_dir_all(&lost)?;
        let to = free_name(env, &lost, name, &from)?;
        // Of a log segment a copy, which is synced: what it holds may not be durable yet, and a
        // link would give it a durable name only. All else is. What is too long to be a segment may
        // be sparse, and its copy not.
        let segment = file_number(name).map(|_| env.open(&from)).transpose()?;
        let copied = segment.filter(|file| file.len() <= MAX_SEGMENT_BYTES);
        let source = if copied.is_some() { copied } else { copy::link_or_open(env, &from, &to)? };
        if let Some(source) = source {
            // Whatever has its name in `lost` is whole.
            let unfinished = lost.join(format!("{name}.unfinished"));
            // On a full disk it would be in the way of another attempt.
            copy::copy(env, &*source, &unfinished).inspect_err(|_| drop(env.remove(&unfinished)))?;
            env.rename(&unfinished, &to)?;
        }
    }
    if found {
        env.sync_dir(&lost)?;
        env.sync_dir(directory)?;
    }
    Ok(())
}

/// Removes the files that have a second name in `lost`, now that a manifest without them is
/// current. Returns that directory, if it exists.
pub fn remove_kept(env: &dyn Env, directory: &Path, names: &BTreeSet<String>) -> Result<Option<PathBuf>> {
    for name in names {
        let path = directory.join(name);
        if env.exists(&path)? {
            env.remove(&path)?;
        }
    }
    env.sync_dir(directory)?;
    let lost = directory.join(LOST);
    Ok(env.exists(&lost)?.then_some(lost))
}

/// A name that no file in `directory` has. One like `file`, from an attempt that was cut short, is
/// removed: a failed sync may have given up its name, which another sync would not miss.
fn free_name(env: &dyn Env, directory: &Path, name: &str, file: &Path) -> Result<PathBuf> {
    let mut path = directory.join(name);
    for number in 1u64.. {
        if !env.exists(&path)? {
            break;
        }
        if copy::is_same(env, &path, file)? {
            env.remove(&path)?;
            break;
        }
        path = directory.join(format!("{name}.{number}"));
    }
    Ok(path)
}

/// Removes what an open that failed has made: tables, blob files and manifests from number `first`
/// on. Nothing is removed unless `CURRENT` still names manifest `before` (0: there was none). A
/// failure harms nothing: the next open that succeeds removes them.
pub fn remove_made_by_failed_open(env: &dyn Env, directory: &Path, before: u64, first: u64) {
    let current = directory.join(CURRENT);
    let is_as_before = match env.exists(&current) {
        Ok(true) => before != 0 && matches!(current_number(env, directory), Ok(Some(number)) if number == before),
        Ok(false) => before == 0,
        Err(_) => false,
    };
    let Ok(names) = env.list(directory) else { return };
    for name in names.into_iter().filter(|_| is_as_before) {
        let number = table_number(&name).or_else(|| blob_number(&name)).or_else(|| manifest_number(&name));
        if number.is_some_and(|number| number >= first) {
            let _ = env.remove(&directory.join(name));
        }
    }
}

/// Removes the segment with which an open has begun the log, and which no manifest names: an open
/// that fails.
pub fn remove_unused_segment(env: &dyn Env, directory: &Path, log: &LogWriter) {
    let _ = env.remove(&directory.join(segment_name(log.position().segment)));
}

/// Takes away a copy that was not finished. The mark goes last and `CURRENT` first: cut short, it
/// still is an unfinished copy.
pub fn remove_unfinished_checkpoint(env: &dyn Env, directory: &Path) -> Result<()> {
    let mut names = env.list(directory)?;
    names.sort_by_key(|name| name != CURRENT);
    for name in names {
        let made = matches!(name.as_str(), CURRENT | CURRENT_TEMPORARY)
            || table_number(&name).is_some()
            || manifest_number(&name).is_some()
            || blob_number(&name).is_some()
            || file_number(&name).is_some();
        if made {
            env.remove(&directory.join(&name))?;
        }
        if name == CURRENT {
            env.sync_dir(directory)?;
        }
    }
    env.sync_dir(directory)?;
    remove_checkpoint_mark(env, directory)
}

/// Removes files that are all of a database, but for the lock, which the caller holds: that goes
/// last. Another process that takes it afterwards sees that its file has no name.
pub fn remove_database(env: &dyn Env, directory: &Path, mut names: Vec<String>) -> Result<()> {
    if let Some(current) = names.iter().position(|name| name == CURRENT) {
        env.remove(&directory.join(names.swap_remove(current)))?;
    }
    // Also where it is not there: an attempt before may have removed it, and not come to this.
    env.sync_dir(directory)?;
    for name in names {
        env.remove(&directory.join(&name))?;
    }
    env.sync_dir(directory)?;
    env.remove(&directory.join(LOCK))
}

/// Takes the mark off a copy that is complete, or gone.
pub fn remove_checkpoint_mark(env: &dyn Env, directory: &Path) -> Result<()> {
    let mark = directory.join(UNFINISHED);
    if env.exists(&mark)? {
        env.remove(&mark)?;
        env.sync_dir(directory)?;
    }
    Ok(())
}

/// Removes what a repair that was cut short has made, and its mark. Nothing that was there before
/// the repair is gone then: another one begins anew. If `CURRENT` names a manifest of the repair,
/// the repair is done, and only the mark goes. The caller has the lock on the directory.
pub fn remove_unfinished_repair(env: &dyn Env, directory: &Path) -> Result<()> {
    if !env.exists(&directory.join(REPAIR))? {
        return Ok(());
    }
    let current = if env.exists(&directory.join(CURRENT))? { current_number(env, directory)? } else { None };
    match (repair_mark::first_number(env, directory)?, current) {
        // A failed sync may have given up its name, which another sync would not miss.
        (Some(first), Some(current)) if current >= first => {
            point_current(env, directory, current)?;
        }
        (Some(first), _) => {
            for name in env.list(directory)? {
                let number = table_number(&name).or_else(|| blob_number(&name)).or_else(|| manifest_number(&name));
                // A segment of its own would hide that the log before it is damaged.
                let number = number.or_else(|| file_number(&name));
                if number.is_some_and(|number| number >= first) {
                    remove_emptied(env, &directory.join(name))?;
                }
            }
        }
        (None, _) => {}
    }
    remove_repair_mark(env, directory)
}

/// Removes a file that would mislead if a power loss brought its name back: then it is empty. To
/// sync the directory instead is not enough: where that fails, names that are gone may come back
/// although the sync of the next process, which cannot know that, succeeds. The file has no other
/// name: no copy gets one while the mark of the repair is there.
fn remove_emptied(env: &dyn Env, path: &Path) -> Result<()> {
    env.create(path)?.sync()?;
    env.remove(path)
}

/// Takes the mark off a directory whose repair is done, durably, or undone.
pub fn remove_repair_mark(env: &dyn Env, directory: &Path) -> Result<()> {
    remove_emptied(env, &directory.join(REPAIR))
}

/// Removes what a job has made that failed: the tables with these numbers, which no manifest has
/// ever named, and with `own_blobs` the blob files, which no other job has appended to. If that
/// fails too, the next open does it.
pub fn remove_made_by_failed_job(inner: &Inner, numbers: &[u64], own_blobs: bool) {
    // Once read-only, the manifest on the device may say something else than the one in memory.
    if inner.error_state.check().is_err() {
        return;
    }
    let (blobs, tables): (Vec<u64>, Vec<u64>) = numbers.iter().partition(|&&number| inner.blobs.has(number));
    remove_unnamed_tables(inner, &tables);
    // The next attempt would append to it, behind what is of no use.
    inner.blobs.end_growth(&blobs.iter().copied().collect());
    for path in blobs.into_iter().filter(|_| own_blobs).filter_map(|number| inner.blobs.forget(number)) {
        let _ = inner.options.env.remove(&path);
    }
}

/// Removes tables that were never named by a manifest.
pub fn remove_unnamed_tables(inner: &Inner, numbers: &[u64]) {
    for &number in numbers {
        let _ = inner.options.env.remove(&inner.directory.join(table(number)));
    }
}

/// Removes tables and manifests that `state` does not name: what a crash or a failed job left
/// behind. For an open.
pub fn remove_orphans(env: &dyn Env, directory: &Path, current: u64, state: &ManifestState) -> Result<()> {
    let live: BTreeSet<u64> = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
    for name in env.list(directory)? {
        let orphan = match (table_number(&name), manifest_number(&name)) {
            (Some(number), _) => !live.contains(&number),
            (_, Some(number)) => number != current,
            // The mark of a checkpoint that was complete when its removal was cut short.
            _ => name == CURRENT_TEMPORARY || name == UNFINISHED,
        };
        if orphan {
            env.remove(&directory.join(name))?;
        }
    }
    Ok(())
}
