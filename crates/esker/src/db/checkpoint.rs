//! A consistent copy of the database in another directory: tables and blob files by hard link where that works, by copying otherwise.
//!
//! 1. Create the directory and in it the file `CHECKPOINT`, which says that what else is there is an unfinished copy.
//! 2. Flush; link the tables and blob files, or where that does not work open them. Only for this step others have to wait.
//! 3. Check what was opened, and copy it; make a log segment, a manifest, and last `CURRENT`.
//! 4. Remove `CHECKPOINT`.
//!
//! A copy that failed is taken away again. One that was cut short stays, is refused by whoever tries to open it, and taken away by the next attempt.

use super::inner::Inner;
use super::open::create_directory;
use super::{blob_collection, copying, files, flushing, verify};
use crate::blob::format::file_name as blob_name;
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::options::WalMode;
use crate::table::Table;
use crate::version::edit::ManifestState;
use crate::version::file_name::{self, CURRENT, UNFINISHED};
use crate::version::manifest::Manifest;
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::{Inherited, LogWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the checkpoint. It holds every write acknowledged before the call, in all keyspaces, and opens as a database.
pub fn checkpoint(inner: &Inner, target: &Path) -> Result<()> {
    inner.refuse_in_callback()?;
    inner.condition.check()?;
    // Two into the same directory would take each other's copy for an unfinished one.
    let _alone = inner.checkpoints.lock();
    let env = &*inner.options.env;
    create_directory(env, target)?;
    let names = env.list(target)?;
    let is_unfinished = || names.iter().any(|name| name == UNFINISHED) && !names.iter().any(|name| name == CURRENT);
    if is_unfinished() {
        files::remove_unfinished_checkpoint(env, target)?;
    } else if !names.is_empty() {
        return Err(Error::invalid(format!("{} is not empty; name a new directory", target.display())));
    }
    let begun = begin(env, target);
    let linked = begun.and_then(|()| flushing::flush_exactly(inner, || link(inner, target)));
    let written = linked.and_then(|contents| complete(inner, target, contents));
    let result = written.and_then(|()| files::remove_checkpoint_mark(env, target));
    // What that leaves behind, the next attempt takes away.
    result.inspect_err(|_| drop(files::remove_unfinished_checkpoint(env, target)))
}

/// Marks what will come as unfinished, durably: a power loss must not leave the copy without the mark.
fn begin(env: &dyn Env, target: &Path) -> Result<()> {
    let mut file = env.create(&target.join(UNFINISHED))?;
    file.append(b"an unfinished copy\n")?;
    file.sync()?;
    env.sync_dir(target)
}

/// What the copy is made of.
struct Contents {
    state: ManifestState,
    /// Files that could not be linked, and their names in the copy. Open, so that jobs may go on and remove them.
    to_copy: Vec<(Arc<dyn ReadFile>, PathBuf)>,
    /// If there are any: all tables, whose damage must not be copied without a word. They keep the files that they refer to.
    to_check: Vec<Arc<Table>>,
}

/// Links what the manifest names now, or opens it. The caller holds the job lock, so that no table can go.
fn link(inner: &Inner, target: &Path) -> Result<Contents> {
    let env = &*inner.options.env;
    let state = match &*inner.manifest.lock() {
        Some(manifest) => manifest.state().clone(),
        None => return Err(Error::ReadOnly { why: "it was opened read-only".into() }),
    };
    let tables = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys());
    let tables: Vec<String> = tables.map(|number| file_name::table(*number)).collect();
    // What was appended so far is durable since the flush; nothing more is to be appended through the links.
    inner.blobs.roll();
    let live = blob_collection::live_bytes(inner);
    let mut to_copy = Vec::new();
    for name in tables.into_iter().chain(live.keys().map(|number| blob_name(*number))) {
        let path = target.join(&name);
        if let Some(file) = copying::link_or_open(env, &inner.directory.join(&name), &path)? {
            to_copy.push((file, path));
        }
    }
    let keyspaces = if to_copy.is_empty() { Vec::new() } else { inner.all_keyspaces() };
    let trees = keyspaces.iter().map(|keyspace| Arc::clone(&keyspace.view.load().tree));
    let to_check = trees.flat_map(|tree| tree.tables().map(|(_, table)| table).collect::<Vec<_>>()).collect();
    Ok(Contents { state, to_copy, to_check })
}

/// Copies what was not linked, and writes what is not copied. Holds no lock: this may take long.
fn complete(inner: &Inner, target: &Path, contents: Contents) -> Result<()> {
    let env = &*inner.options.env;
    let Contents { mut state, to_copy, to_check } = contents;
    let checked = verify::check_inputs(inner, &to_check);
    drop(to_check);
    files::sweep(inner);
    checked?;
    for (file, path) in to_copy {
        copying::copy(env, &*file, &path)?;
    }
    let maker = SegmentMaker {
        env: Arc::clone(&inner.options.env),
        directory: target.to_path_buf(),
        mapped: inner.options.wal_mode == WalMode::Mapped,
        in_foreground: false,
        read_only: false,
        smallest_bytes: inner.options.wal_segment_bytes.clamp(256, 1 << 20),
        largest_bytes: inner.options.wal_segment_bytes.max(256),
    };
    let log = LogWriter::start(maker, Inherited::default())?;
    state.log_floor = log.position().segment;
    state.log_synced = log.position().into();
    state.next_file += 1;
    Manifest::create(env, target, state.next_file - 1, state)?;
    Ok(())
}
