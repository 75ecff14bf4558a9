//! A checkpoint of a database that another process writes, from what a follower has of it.
//!
//! 1. Catch up. What is installed then is the state at one point of the order of writes, and stays
//!    as long as the follower does not move.
//! 2. Link the tables. Of those that are gone, the follower has the open files.
//! 3. Write the memtables to tables of the copy, with the large values that they refer to.
//! 4. Let the follower move again, and do what is left as for any checkpoint (`checkpoint.rs`).
//!
//! Nothing is made, changed or removed in the directory of the database. Blob files are not linked:
//! the writer may go on appending to one, and only it knows to which.

use crate::base::expiry::Ttl;
use crate::blob::{BlobFile, BlobStore};
use crate::db::files::copy;
use crate::db::lifecycle::follow::{self, Following};
use crate::db::lifecycle::{keyspaces, recovery_flush};
use crate::db::maintenance::checkpoint::{CheckpointMode, Contents, write_into};
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::read_state::ReadState;
use crate::error::{Error, Result};
use crate::job::blob_values::{BlobValues, Copies, Copy};
use crate::job::output::table_options;
use crate::job::version_gc::Rules;
use crate::memtable::Memtable;
use crate::table::Table;
use crate::version::edit::ManifestState;
use crate::version::file_name::{self, CURRENT};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the checkpoint. It holds every write that was acknowledged before the call, but for those
/// without log that are in no table, and opens as a database.
pub fn checkpoint(inner: &Inner, following: &Mutex<Following>, target: &Path, mode: CheckpointMode) -> Result<()> {
    inner.refuse_in_callback()?;
    write_into(inner, target, || {
        let mut following = following.lock();
        follow::catch_up(inner, &mut following)?;
        gather(inner, following.state().clone(), target, mode)
    })
}

/// A keyspace, and what is there of it.
type Found = (Arc<KeyspaceInner>, Arc<ReadState>);

/// Steps 2 and 3. `state` is installed, and nothing else is meanwhile.
fn gather(inner: &Inner, mut state: ManifestState, target: &Path, mode: CheckpointMode) -> Result<Contents> {
    let mut found: Vec<Found> = Vec::new();
    let mut tables = BTreeMap::new();
    for keyspace in inner.all_keyspaces() {
        let read_state = keyspace.read_state.load_full();
        tables.extend(read_state.version.tables().map(|(_, table)| (table.summary().file_number, table)));
        found.push((keyspace, read_state));
    }
    // A repair whose mark is there can still be undone, which empties its tables under all names.
    let may_be_undone = inner.options.env.exists(&inner.directory.join(file_name::REPAIR))?;
    let mode = if may_be_undone { CheckpointMode::Copy } else { mode };
    let tables_to_copy = link_tables(inner, &state, &tables, target, mode)?;
    let referred: BTreeSet<u64> = tables.values().flat_map(|table| table.summary().blobs.keys().copied()).collect();
    let blobs_to_copy = open_blobs(inner, &referred)?;
    write_memtables(inner, &mut state, &found, &referred, target)?;
    state.last_sequence = state.last_sequence.max(inner.last_sequence.load(Ordering::Acquire));
    Ok(Contents { state, tables, tables_to_copy, blobs_to_copy })
}

/// Links what can be linked; the numbers of the other tables.
fn link_tables(
    inner: &Inner,
    state: &ManifestState,
    tables: &BTreeMap<u64, Arc<Table>>,
    target: &Path,
    mode: CheckpointMode,
) -> Result<Vec<u64>> {
    let env = &*inner.options.env;
    let mut to_copy = Vec::new();
    for number in state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys()) {
        let name = file_name::table(*number);
        let (from, to) = (inner.directory.join(&name), target.join(&name));
        let is_linked = match (mode, tables.get(number)) {
            (CheckpointMode::Link, Some(table)) => copy::link_same(env, &from, &to, table.summary().file_bytes)?,
            _ => false,
        };
        if !is_linked {
            to_copy.push(*number);
        }
    }
    Ok(to_copy)
}

/// The blob files, which the follower has open.
fn open_blobs(inner: &Inner, numbers: &BTreeSet<u64>) -> Result<Vec<Arc<BlobFile>>> {
    numbers.iter().map(|&number| inner.blobs.open_file(number, 0)).collect()
}

/// Writes what is in no table of the database to tables of the copy, and notes that in `state`.
fn write_memtables(
    inner: &Inner,
    state: &mut ManifestState,
    found: &[Found],
    referred: &BTreeSet<u64>,
    target: &Path,
) -> Result<()> {
    let options = &inner.options;
    let memtables = |read_state: &ReadState| -> Vec<Arc<Memtable>> {
        let newest_first: Vec<_> = [&read_state.active].into_iter().chain(&read_state.immutable).collect();
        newest_first.into_iter().rev().filter(|memtable| !memtable.is_empty()).cloned().collect()
    };
    let held = found.iter().flat_map(|(_, read_state)| memtables(read_state));
    let held: BTreeSet<u64> = held.flat_map(|memtable| memtable.blob_files()).collect();
    let originals = open_blobs(inner, &held)?;
    // Reads the database's files, and makes those of the copy.
    let (env, directory) = (Arc::clone(&options.env), target.to_path_buf());
    let values = BlobStore::new(env, directory, options.blob_file_bytes(), options.compression);
    originals.iter().for_each(|file| values.know(Arc::clone(file)));
    let next = AtomicU64::new(first_free(state, referred.union(&held).copied()));
    let next_file = || next.fetch_add(1, Ordering::Relaxed);
    let (threshold, copies) = (options.blob_threshold(), Copies::default());
    let large = BlobValues { store: &values, threshold, copy: Copy::All(&copies), one_by_one: true };
    let mut output = recovery_flush::output((target, options), &inner.cache, &next_file, large);
    for (keyspace, read_state) in found {
        let Some(record) = state.keyspaces.get(&keyspace.id) else { continue };
        output.keyspace = record.label(keyspace.id);
        output.order.clone_from(&keyspace.order);
        output.table = table_options(options, read_state.version.runs.is_empty());
        // As in a recovery: an operator of the program's need not be there, and what has expired or
        // is to be merged into a large value is left to a compaction.
        let operator = keyspaces::stored_operator(record);
        let expires = Ttl::from_stored(record.ttl).is_enabled();
        let operator = operator.as_deref();
        let rules = Rules { expires, operator, leaves_large: true, ..Rules::default() };
        let written = recovery_flush::write(&memtables(read_state), &read_state.version, rules, &mut output);
        let (_, changes) = written.inspect_err(|error| note_damage(inner, &originals, error))?;
        for change in &changes {
            state.apply(change).map_err(|what| Error::corruption(inner.directory.join(CURRENT), 0, what))?;
        }
    }
    state.next_file = next.load(Ordering::Relaxed);
    Ok(())
}

/// A number that no file of the copy has, and no run.
fn first_free(state: &ManifestState, blobs: impl Iterator<Item = u64>) -> u64 {
    let tables = state.keyspaces.values().flat_map(|keyspace| &keyspace.tables);
    let given = tables.flat_map(|(&number, place)| [number, place.run]).chain(blobs).max();
    state.next_file.max(given.map_or(0, |number| number.saturating_add(1)))
}

/// Notes the damage of a large value, as far as it is in one of these files.
fn note_damage(inner: &Inner, files: &[Arc<BlobFile>], error: &Error) {
    if let Error::Corruption { path, .. } = error
        && let Some(file) = files.iter().find(|file| file.path() == path)
    {
        inner.blobs.note_damage(file.number(), error);
    }
}
