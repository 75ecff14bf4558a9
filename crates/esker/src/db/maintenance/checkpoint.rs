//! A consistent copy of the database in another directory: tables and blob files by hard link where
//! requested and possible, by copy otherwise.
//!
//! 1. Create the directory and in it the file `CHECKPOINT`, which says that what else is there is
//!    an unfinished copy.
//! 2. Flush; link the tables and blob files, or hold those that are to be copied, so that they
//!    stay. Only this step makes other threads wait.
//! 3. Copy those, checking what is read (`checked_copy.rs`); make a log segment, a manifest, and
//!    last `CURRENT`.
//! 4. Remove `CHECKPOINT`.
//!
//! A follower replaces step 2 (`follower_checkpoint.rs`). A copy that failed is removed. A copy
//! that was cut short stays, is refused by open, and is removed by the next attempt.

use crate::blob::BlobFile;
use crate::blob::format::file_name as blob_name;
use crate::db::background::{blob_gc, flush};
use crate::db::files::{copy, remover};
use crate::db::lifecycle::directory::create_directory;
use crate::db::maintenance::checked_copy;
use crate::db::state::inner::Inner;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::version::edit::ManifestState;
use crate::version::file_name::{self, CURRENT, UNFINISHED};
use crate::version::manifest::Manifest;
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::{Inherited, LogWriter};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Of the log segment that a manifest must name. It has a header and a link: nothing is appended to
/// it, and a backup of an unchanged database copies it anew.
const LOG_SEGMENT_BYTES: u64 = 256;

/// How the tables and blob files of a database get into a checkpoint.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// db.checkpoint_with("/mnt/backup/monday", esker::CheckpointMode::Copy)?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CheckpointMode {
    /// By hard link, in next to no time and space; a file for which that does not work, as to
    /// another file system, is copied as by `Copy`. A linked file is the same one in both
    /// directories: whatever happens to its bytes happens to both.
    #[default]
    Link,
    /// Every file is copied, and what is read for that is checked. The copy has nothing in common
    /// with the database. It takes as much space, and the time to read and write it; large values
    /// are read once more, from the copy. Not by reflink, where the file system has it: two files
    /// that share their blocks rot together, and what is to be checked has to be read anyway.
    Copy,
}

/// Writes the checkpoint. It holds every write acknowledged before the call, in all keyspaces, and
/// opens as a database.
pub fn checkpoint(inner: &Inner, target: &Path, mode: CheckpointMode) -> Result<()> {
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    let result = write_into(inner, target, || flush::flush_exactly(inner, || gather(inner, target, mode)));
    sweep(inner);
    result
}

/// Makes a checkpoint in `target` of what `gather` has found, linked there, or written there.
pub(super) fn write_into(inner: &Inner, target: &Path, gather: impl FnOnce() -> Result<Contents>) -> Result<()> {
    // Two into the same directory would take each other's copy for an unfinished one.
    let _alone = inner.checkpoints.lock();
    let env = &*inner.options.env;
    refuse_own_directory(&inner.directory, target)?;
    create_directory(env, target)?;
    let names = env.list(target)?;
    let is_unfinished = || names.iter().any(|name| name == UNFINISHED) && !names.iter().any(|name| name == CURRENT);
    if is_unfinished() {
        remover::remove_unfinished_checkpoint(env, target)?;
    } else if !names.is_empty() {
        return Err(Error::invalid(format!("{} is not empty; name a new directory", target.display())));
    }
    let begun = begin(env, target);
    let written = begun.and_then(|()| gather()).and_then(|contents| complete(inner, target, contents));
    let result = written.and_then(|()| remover::remove_checkpoint_mark(env, target));
    // What that leaves behind, the next attempt takes away.
    result.inspect_err(|_| drop(remover::remove_unfinished_checkpoint(env, target)))
}

/// Refuses a target in the database's own directory, under whatever name: a copy in there would be
/// lost with it, and copied with it. Before anything is written.
fn refuse_own_directory(directory: &Path, target: &Path) -> Result<()> {
    if !real_path(target).starts_with(real_path(directory)) {
        return Ok(());
    }
    let (target, directory) = (target.display(), directory.display());
    Err(Error::invalid(format!("{target} is in the directory of the database, {directory}; name one outside of it")))
}

/// The path without links and `..`. Simulated files need not exist for the system: their paths are
/// compared as they are named.
fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let found = path.ancestors().find_map(|ancestor| Some((ancestor, std::fs::canonicalize(ancestor).ok()?)));
    let Some((ancestor, mut real)) = found else { return path };
    for component in path.strip_prefix(ancestor).unwrap_or(Path::new("")).components() {
        // What does not exist is no link.
        match component {
            Component::ParentDir => _ = real.pop(),
            other => real.push(other),
        }
    }
    real
}

/// Marks what will come as unfinished, durably: a power loss must not leave the copy without the
/// mark.
fn begin(env: &dyn Env, target: &Path) -> Result<()> {
    let mut file = env.create(&target.join(UNFINISHED))?;
    file.append(b"an unfinished copy\n")?;
    file.sync()?;
    env.sync_dir(target)
}

/// What the copy is made of.
pub(super) struct Contents {
    /// The content of the copy's manifest, without the log.
    pub state: ManifestState,
    /// All tables of the database. While they are referenced, no job removes them or the blob
    /// files. A follower's writer may remove them, but they are open.
    pub tables: BTreeMap<u64, Arc<Table>>,
    /// The tables that are copied, since they are neither linked nor written.
    pub tables_to_copy: Vec<u64>,
    pub blobs_to_copy: Vec<Arc<BlobFile>>,
}

/// Links what the manifest names now, or holds it. The caller holds the job lock, so that no table
/// can go, and that of changes to keyspaces.
fn gather(inner: &Inner, target: &Path, mode: CheckpointMode) -> Result<Contents> {
    let env = &*inner.options.env;
    let mut tables = BTreeMap::new();
    for keyspace in inner.all_keyspaces() {
        let version = Arc::clone(&keyspace.read_state.load().version);
        tables.extend(version.tables().map(|(_, table)| (table.summary().file_number, table)));
    }
    let state = match &*inner.manifest.lock() {
        Some(manifest) => manifest.state().clone(),
        None => return Err(Error::ReadOnly { why: "it was opened read-only".into() }),
    };
    // What was appended so far is durable since the flush; nothing more is to be appended through
    // the links.
    inner.blobs.roll();
    let is_linked = |name: &str| match mode {
        CheckpointMode::Link => copy::link(env, &inner.directory.join(name), &target.join(name)),
        CheckpointMode::Copy => Ok(false),
    };
    let mut tables_to_copy = Vec::new();
    for &number in state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys()) {
        if !is_linked(&file_name::table(number))? {
            tables_to_copy.push(number);
        }
    }
    let mut blobs_to_copy = Vec::new();
    for &number in blob_gc::live_bytes(inner).keys() {
        if !is_linked(&blob_name(number))? {
            blobs_to_copy.push(inner.blobs.open_file(number, 0)?);
        }
    }
    Ok(Contents { state, tables, tables_to_copy, blobs_to_copy })
}

/// Copies what was not linked, and writes what is not copied. Holds no lock: this may take long.
fn complete(inner: &Inner, target: &Path, contents: Contents) -> Result<()> {
    let env = &*inner.options.env;
    let Contents { mut state, tables, tables_to_copy, blobs_to_copy } = contents;
    // They are in the log, which is not copied.
    state.forget_changes();
    for number in tables_to_copy {
        let name = file_name::table(number);
        let Some(table) = tables.get(&number) else {
            let what = "the manifest names the table, and no keyspace has it";
            return Err(Error::corruption(inner.directory.join(name), 0, what));
        };
        checked_copy::table(inner, table, &target.join(name))?;
    }
    let tables: Vec<Arc<Table>> = tables.into_values().collect();
    checked_copy::blobs(inner, &tables, &blobs_to_copy, target)?;
    drop((tables, blobs_to_copy));
    let maker = SegmentMaker {
        env: Arc::clone(&inner.options.env),
        directory: target.to_path_buf(),
        mapped: false,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes: LOG_SEGMENT_BYTES,
        largest_bytes: LOG_SEGMENT_BYTES,
    };
    let log = LogWriter::start(maker, Inherited::default())?;
    state.log_floor = log.position().segment;
    state.log_synced = log.position().into();
    state.next_file += 1;
    Manifest::create(env, target, state.next_file - 1, state)?;
    Ok(())
}

/// Removes what went out of use while it was held to be copied. Where a job is at work, its end
/// does that.
fn sweep(inner: &Inner) {
    remover::sweep(inner);
    if let Some(_jobs) = inner.jobs.try_lock() {
        remover::sweep_blobs(inner);
    }
}
