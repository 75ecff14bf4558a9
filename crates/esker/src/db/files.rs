//! The remover of the files of a database. A file goes when no durable manifest names it and nobody can be reading it. (What a failed call has just made itself, a
//! log segment in `wal/segment.rs` or a link in `checkpoint.rs`, that call takes away again.)

use super::events::Event;
use super::inner::Inner;
use crate::blob::BlobStore;
use crate::blob::format::file_number as blob_number;
use crate::env::Env;
use crate::error::Result;
use crate::table::Table;
use crate::version::edit::{Change, ManifestState};
use crate::version::file_name::{
    CURRENT, CURRENT_TEMPORARY, LOST, UNFINISHED, manifest, manifest_number, table, table_number,
};
use crate::wal::segment::file_number;
use crate::wal::writer::AppendError;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Log segment files kept for reuse: what two full write buffers need.
fn segments_to_keep(inner: &Inner) -> usize {
    let needed = 2 * inner.options.write_buffer_bytes as u64 / inner.options.wal_segment_bytes;
    usize::try_from(needed).unwrap_or(usize::MAX).clamp(1, 16)
}

/// Takes tables that a durable edit has just removed, or that none ever named, and removes the files that nobody reads any more. A failure to remove harms nothing: the next open
/// tries again.
pub fn retire_tables(inner: &Inner, removed: impl IntoIterator<Item = Arc<Table>>) {
    inner.obsolete.lock().extend(removed);
    sweep(inner);
}

/// Removes the files of retired tables that nobody reads any more.
pub fn sweep(inner: &Inner) {
    let mut unread = Vec::new();
    inner.obsolete.lock().retain(|table| {
        // Trees and cursors hold the others. None can come back: the table is in no tree that a reader could load.
        let pinned = Arc::strong_count(table) > 1;
        if !pinned {
            unread.push(table.path().to_path_buf());
        }
        pinned
    });
    for path in unread {
        if inner.options.env.remove(&path).is_ok() {
            inner.events.note(|| Event::Removed(path));
        }
    }
}

/// Removes the blob files that no table and no memtable refers to. The caller holds the job lock, so that nothing moves from one to the other, and not the writer lock.
pub fn sweep_blobs(inner: &Inner) {
    // Once read-only, the manifest on the device may name other tables than those in memory.
    if inner.blobs.is_empty() || inner.condition.check().is_err() {
        return;
    }
    sweep(inner);
    // In this order: what a write refers to after this is in a file that it holds now.
    let mut candidates = inner.blobs.unheld();
    // Files of a load that no tree names yet. Asked for before the trees are: a load that has ended is in one.
    let in_progress = inner.in_progress.lock().clone();
    candidates.retain(|number| !in_progress.contains(number));
    if candidates.is_empty() {
        return;
    }
    let used = blobs_in_use(inner);
    if candidates.iter().all(|number| used.contains(number)) {
        return;
    }
    // Again under the writer lock: a merge may have been copying a reference out of a table that has since gone (`merge_expiry.rs`).
    let used = {
        let _writer = inner.writer.lock();
        blobs_in_use(inner)
    };
    for number in candidates.into_iter().filter(|number| !used.contains(number)) {
        if let Some(path) = inner.blobs.forget(number) {
            let _ = inner.options.env.remove(&path);
        }
    }
}

fn blobs_in_use(inner: &Inner) -> BTreeSet<u64> {
    let mut used = BTreeSet::new();
    for keyspace in inner.all_keyspaces() {
        let view = keyspace.view.load();
        view.frozen.iter().chain([&view.active]).for_each(|memtable| used.extend(memtable.blob_files()));
        view.tree.tables().for_each(|(_, table)| used.extend(table.summary().blobs.keys()));
    }
    // What only readers of an earlier state have.
    inner.obsolete.lock().iter().for_each(|table| used.extend(table.summary().blobs.keys()));
    inner.flushed.lock().retain(|memtable| match memtable.upgrade() {
        Some(memtable) => {
            used.extend(memtable.blob_files());
            true
        }
        None => false,
    });
    used
}

/// Removes the blob files in the directory that are not among those in use, and forgets them: what a crash or a failed job left behind. For the end of opening.
pub fn remove_orphan_blobs(env: &dyn Env, directory: &Path, blobs: &BlobStore, used: &BTreeSet<u64>) -> Result<()> {
    for name in env.list(directory)? {
        if let Some(number) = blob_number(&name).filter(|number| !used.contains(number)) {
            blobs.forget(number);
            env.remove(&directory.join(name))?;
        }
    }
    Ok(())
}

/// Removes manifest `number`, which `CURRENT` does not name any more.
pub fn remove_manifest(inner: &Inner, number: u64) {
    let _ = inner.options.env.remove(&inner.directory.join(manifest(number)));
}

/// Lets go of the log segments before `floor`, which a durable manifest names. `keep`: some stay for reuse.
pub fn release_segments(inner: &Inner, floor: u64, keep: bool) {
    if let Some(log) = &inner.log {
        let keep = if keep { segments_to_keep(inner) } else { 0 };
        for path in log.release(floor, keep) {
            let _ = inner.options.env.remove(&path);
        }
    }
}

/// Gives back the space of the log beyond that of an empty one. The caller holds the job lock, and has flushed: what still waits for its flush keeps the segments
/// that hold it.
pub fn reclaim_log(inner: &Inner) -> Result<()> {
    let Some(log) = &inner.log else { return Ok(()) };
    inner.condition.check()?;
    if log.is_smallest() {
        return Ok(());
    }
    let mut guard = inner.writer.lock();
    let writer = &mut *guard;
    // Under the lock no write can come in between: if no memtable has any, the segments up to here hold nothing that is not in tables.
    let floor = match &mut writer.log {
        Some(writing) if no_memtable_has_writes(inner) => {
            writing.shrink(writer.last_sequence).map_err(|error| match error {
                AppendError::NoSegment(error) => error,
                AppendError::Failed(error) => inner.condition.poison(error),
            })?;
            Some(writing.position().segment)
        }
        _ => None,
    };
    let last_sequence = writer.last_sequence;
    drop(guard);
    if let Some(floor) = floor {
        log.sync_link(floor).map_err(|error| inner.condition.poison(error))?;
        if let Some(manifest) = &mut *inner.manifest.lock() {
            let changes = [Change::LastSequence(last_sequence), Change::LogFloor(floor)];
            manifest.commit(&changes).map_err(|error| inner.condition.poison(error))?;
        }
    }
    let floor = inner.manifest.lock().as_ref().map_or(0, |manifest| manifest.state().log_floor);
    release_segments(inner, floor, false);
    Ok(())
}

/// As `reclaim_log`, of a database that holds nothing at all.
pub fn reclaim_log_of_nothing(inner: &Inner) -> Result<()> {
    let no_tables = inner.all_keyspaces().iter().all(|keyspace| keyspace.view.load().tree.runs.is_empty());
    if !no_tables || !no_memtable_has_writes(inner) || inner.log.as_ref().is_none_or(|log| log.is_smallest()) {
        return Ok(());
    }
    let _jobs = inner.jobs.lock();
    reclaim_log(inner)
}

fn no_memtable_has_writes(inner: &Inner) -> bool {
    inner.all_keyspaces().iter().all(|keyspace| {
        let view = keyspace.view.load();
        view.frozen.iter().chain([&view.active]).all(|memtable| memtable.is_empty())
    })
}

/// Moves files that a repair has no use for to the directory `lost`, if they are there, and returns it if there were any. A file that is there already keeps its
/// name; the new one gets a number behind it.
pub fn set_aside(env: &dyn Env, directory: &Path, names: &BTreeSet<String>) -> Result<Option<PathBuf>> {
    let lost = directory.join(LOST);
    let mut moved = env.exists(&lost)?;
    for name in names {
        let from = directory.join(name);
        if env.exists(&from)? {
            env.create_dir_all(&lost)?;
            env.rename(&from, &free_name(env, &lost, name)?)?;
            moved = true;
        }
    }
    if moved {
        env.sync_dir(&lost)?;
        env.sync_dir(directory)?;
    }
    Ok(moved.then_some(lost))
}

/// Gives a `CURRENT` that a repair is about to replace a second name in `lost`, where the file system has links.
pub fn keep_current(env: &dyn Env, directory: &Path) -> Result<()> {
    let current = directory.join(CURRENT);
    if env.exists(&current)? {
        let lost = directory.join(LOST);
        env.create_dir_all(&lost)?;
        let _ = env.hard_link(&current, &free_name(env, &lost, CURRENT)?);
    }
    Ok(())
}

fn free_name(env: &dyn Env, directory: &Path, name: &str) -> Result<PathBuf> {
    let mut path = directory.join(name);
    for number in 1u64.. {
        if !env.exists(&path)? {
            break;
        }
        path = directory.join(format!("{name}.{number}"));
    }
    Ok(path)
}

/// Takes away a copy that was not finished. The mark goes last and `CURRENT` first: cut short, it still is an unfinished copy.
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

/// Takes the mark off a copy that is complete, or gone.
pub fn remove_checkpoint_mark(env: &dyn Env, directory: &Path) -> Result<()> {
    let mark = directory.join(UNFINISHED);
    if env.exists(&mark)? {
        env.remove(&mark)?;
        env.sync_dir(directory)?;
    }
    Ok(())
}

/// Removes tables that were never named by a manifest.
pub fn remove_unnamed_tables(inner: &Inner, numbers: &[u64]) {
    for &number in numbers {
        let _ = inner.options.env.remove(&inner.directory.join(table(number)));
    }
}

/// Removes tables and manifests that `state` does not name and that are not `in_progress`: what a crash or a failed job left behind.
pub fn remove_orphans(
    env: &dyn Env,
    directory: &Path,
    current: u64,
    state: &ManifestState,
    in_progress: &BTreeSet<u64>,
) -> Result<()> {
    let live: BTreeSet<u64> = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
    for name in env.list(directory)? {
        let orphan = match (table_number(&name), manifest_number(&name)) {
            (Some(number), _) => !live.contains(&number) && !in_progress.contains(&number),
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
