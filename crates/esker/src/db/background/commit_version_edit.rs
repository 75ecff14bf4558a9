//! Common to flush and compaction: the permission to work, the place of new tables, and the version
//! edit that makes a result durable.

use crate::base::key::Sequence;
use crate::db::files::remover;
use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::snapshots::Readers;
use crate::error::{Error, Result};
use crate::event_listener::TableCreated;
use crate::job::blob_values::{BlobValues, Copy};
use crate::job::output::{OutputOptions, table_options};
use crate::job::version_gc::Rules;
use crate::merge_operator::MergeOperator;
use crate::table::{Table, TableKeyspace};
use crate::version::edit::{Change, KeyspaceRecord, ManifestState, Settings};
use crate::version::file_name::CURRENT;
use crate::version::manifest::{Manifest, prepare_current, switch_current};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A manifest longer than this is rewritten. It is read as a whole.
const LONG_MANIFEST_BYTES: u64 = 32 << 20;

/// The permission to flush and compact, for a handle that may still write.
pub fn lock_jobs(inner: &Inner) -> Result<MutexGuard<'_, ()>> {
    inner.refuse_in_callback()?;
    let jobs = inner.jobs.lock();
    // The previous holder may have closed the database.
    inner.error_state.check()?;
    Ok(jobs)
}

/// What new tables of the keyspace say about it.
pub fn label(inner: &Inner, id: u64) -> TableKeyspace {
    let manifest = inner.manifest.lock();
    let record = manifest.as_ref().and_then(|manifest| manifest.state().keyspaces.get(&id));
    record.map(|record| record.label(id)).unwrap_or_default()
}

/// What the manifest says of a keyspace that can be changed.
pub fn settings(inner: &Inner, id: u64) -> Option<Settings> {
    let manifest = inner.manifest.lock();
    manifest.as_ref()?.state().keyspaces.get(&id).map(KeyspaceRecord::settings)
}

/// Whether the manifest has the keyspace: not if it was dropped, though readers may still find what
/// was in it.
pub fn is_listed(inner: &Inner, keyspace: &KeyspaceInner) -> bool {
    let manifest = inner.manifest.lock();
    manifest.as_ref().is_none_or(|manifest| manifest.state().keyspaces.contains_key(&keyspace.id))
}

/// What a job writes with, into the last run of a keyspace or into another. `flushed`: the last
/// write of the keyspace that is in tables with the job, as far as it changes that. `emptied`: the
/// blob files whose values it copies. `within_another`: the job is done inside a compaction, which
/// shares the job lock.
///
/// The tables of a job that fails are removed: those that it has made, and no others, since a
/// compaction around it has some that no manifest names yet. So are its blob files within another;
/// otherwise they go with the next sweep. After a panic, as of the environment, they stay until
/// the next open, and the handle is read-only, as after one in the background.
pub fn with_output<T>(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    (flushed, last_run): (Sequence, bool),
    emptied: &BTreeSet<u64>,
    within_another: bool,
    job: impl FnOnce(&OutputOptions<'_>) -> Result<T>,
) -> Result<T> {
    let is_emptied = |file: u64| emptied.contains(&file);
    let made = Mutex::new(Vec::new());
    let next_file = || {
        let number = inner.next_file_number();
        made.lock().push(number);
        number
    };
    let unfinished = inner.error_state.unfinished();
    let done = job(&OutputOptions {
        env: &*inner.options.env,
        directory: inner.directory.clone(),
        table: table_options(&inner.options, last_run),
        order: keyspace.order.clone(),
        filter_policy: inner.options.filter_policy.clone(),
        keyspace: label(inner, keyspace.id),
        flushed,
        target_file_bytes: inner.options.target_file_bytes,
        cache: Arc::clone(&inner.cache),
        read_mode: inner.options.read_mode,
        next_file: &next_file,
        large: BlobValues {
            store: &inner.blobs,
            threshold: inner.blob_threshold,
            copy: Copy::From(&is_emptied),
            // The caller holds the job lock until the tables are installed.
            one_by_one: !within_another,
        },
    });
    unfinished.finish();
    done.inspect_err(|_| remover::remove_made_by_failed_job(inner, &made.lock(), within_another))
}

/// What a job on the keyspace keeps.
pub fn rules<'a>(
    keyspace: &'a KeyspaceInner,
    readers: &'a Readers,
    bottom: bool,
    operator: Option<&'a dyn MergeOperator>,
) -> Rules<'a> {
    Rules {
        snapshots: &readers.sequences,
        expired_until_ms: readers.expired_until_ms,
        expires: keyspace.ttl().is_enabled(),
        bottom,
        operator,
        leaves_large: false,
        filter: None,
        longest_chain: Some(&keyspace.longest_chain),
    }
}

/// Makes a job's result durable. False if the keyspace was dropped meanwhile: nothing is changed
/// then, and no manifest will name the tables.
#[must_use = "the tables are useless if the keyspace was dropped"]
pub fn commit(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    mut changes: Vec<Change>,
    run: u64,
    added: &[Arc<Table>],
    removed: &[u64],
) -> Result<bool> {
    let id = keyspace.id;
    changes.extend(removed.iter().map(|&number| Change::RemoveTable { keyspace: id, number }));
    changes.extend(added.iter().map(|table| {
        let summary = table.summary();
        Change::AddTable { keyspace: id, run, number: summary.file_number, bytes: summary.file_bytes }
    }));
    changes.push(Change::NextFile(inner.next_file.load(Relaxed)));
    changes.extend(inner.log_synced());
    let mut is_long = false;
    if let Some(manifest) = &mut *inner.manifest.lock() {
        // Under the lock: what held it before may have failed to replace the manifest, and another
        // one may be in force.
        inner.error_state.check()?;
        if !manifest.state().keyspaces.contains_key(&id) {
            return Ok(false);
        }
        let unfinished = inner.error_state.unfinished();
        let committed = manifest.commit(&changes);
        unfinished.finish();
        committed.map_err(|error| inner.error_state.poison(error))?;
        is_long = manifest.appended_bytes() > LONG_MANIFEST_BYTES;
    }
    if is_long {
        renew_manifest(inner, &[])?;
    }
    for table in added {
        let summary = table.summary();
        let created = || TableCreated {
            keyspace: keyspace.name().to_string(),
            path: table.path().to_path_buf(),
            bytes: summary.file_bytes,
            entries: summary.entries,
        };
        inner.events.note(|| Event::Created(created()));
    }
    Ok(true)
}

/// Writes the whole state to a new manifest, with `changes`, and makes it current. Its first record
/// cannot be lost to damage that looks like a torn edit, so this is for changes that nothing else
/// in the directory records.
pub fn renew_manifest(inner: &Inner, changes: &[Change]) -> Result<()> {
    // The manifest may name what the caller has yet to install.
    let unfinished = inner.error_state.unfinished();
    let renewed = match (try_renew_manifest(inner, changes), &inner.log) {
        // In the room that is held back: without it the database would take no more writes.
        (Err(error), Some(log))
            if error.is_disk_full() && inner.error_state.check().is_ok() && log.reserve().spend() =>
        {
            let renewed = try_renew_manifest(inner, changes);
            log.reserve().hold();
            renewed
        }
        (renewed, _) => renewed,
    };
    unfinished.finish();
    renewed.map_err(|error| match inner.error_state.check() {
        Ok(()) if error.is_disk_full() => inner.error_state.poison(error),
        _ => error,
    })
}

/// As [`renew_manifest`]; on a full disk the old manifest stays in force, and the database open for
/// writes.
pub fn try_renew_manifest(inner: &Inner, changes: &[Change]) -> Result<()> {
    renew_with(inner, |state| changes.iter().try_for_each(|change| state.apply(change)))
}

/// The same with other settings of a keyspace: no change in a manifest stands for those, but one
/// for readers of changes, if they have a place in the order of writes.
pub fn alter_keyspace(
    inner: &Inner,
    id: u64,
    place: Option<Sequence>,
    alter: impl FnOnce(&mut KeyspaceRecord),
) -> Result<()> {
    renew_with(inner, |state| {
        let record = state.keyspaces.get_mut(&id).ok_or_else(|| format!("there is no keyspace {id}"))?;
        let before = record.settings();
        alter(record);
        let Some(sequence) = place else { return Ok(()) };
        state.apply(&Change::LastSequence(sequence))?;
        state.apply(&Change::Altered { sequence, keyspace: id, before })
    })
}

/// What is wrong with the state if it cannot be altered so.
type Altered = std::result::Result<(), String>;

fn renew_with(inner: &Inner, alter: impl FnOnce(&mut ManifestState) -> Altered) -> Result<()> {
    let mut manifest = inner.manifest.lock();
    let Some(current) = &*manifest else { return Err(Error::ReadOnly { why: "it was opened read-only".into() }) };
    // Until the new manifest is current, no other process can be the writer.
    let lock = inner.lock.lock();
    inner.error_state.check()?;
    if lock.is_none() {
        return Err(Error::ReadOnly { why: "it was closed".into() });
    }
    let (old, mut state) = (current.number(), current.state().clone());
    let number = inner.next_file_number();
    let next_file = Change::NextFile(inner.next_file.load(Relaxed));
    alter(&mut state)
        .and_then(|()| [&next_file].into_iter().chain(&inner.log_synced()).try_for_each(|change| state.apply(change)))
        .map_err(|what| Error::corruption(inner.directory.join(CURRENT), 0, what))?;
    let unfinished = inner.error_state.unfinished();
    let renewed = make_current(inner, number, state).map(|next| {
        *manifest = Some(next);
        remover::remove_manifest(inner, old);
    });
    unfinished.finish();
    renewed
}

/// Writes a manifest with this state, and has `CURRENT` name it.
fn make_current(inner: &Inner, number: u64, state: ManifestState) -> Result<Manifest> {
    let env = &*inner.options.env;
    let next = Manifest::prepare(env, &inner.directory, number, state)
        .and_then(|next| prepare_current(env, &inner.directory, number).map(|()| next))
        // `CURRENT` does not name it.
        .inspect_err(|_| remover::remove_manifest(inner, number))
        .map_err(|error| match &error {
            // New files alone are concerned, and they are gone. A sync of the directory concerns
            // what others rely on.
            Error::Io { path, .. } if error.is_disk_full() && *path != inner.directory => error,
            _ => inner.error_state.poison(error),
        })?;
    switch_current(env, &inner.directory).map_err(|error| inner.error_state.poison(error))?;
    Ok(next)
}
