//! A consistent copy of the database in another directory: tables and blob files by hard link where that works, by copying otherwise.
//!
//! 1. Create the directory and in it the file `CHECKPOINT`, which says that what else is there is an unfinished copy.
//! 2. Flush; link or copy the tables and blob files; make a log segment, a manifest, and last `CURRENT`.
//! 3. Remove `CHECKPOINT`.
//!
//! A copy that failed is taken away again. One that was cut short stays, is refused by whoever tries to open it, and taken away by the next attempt.

use super::inner::Inner;
use super::open::create_directory;
use super::{blob_collection, files, flushing};
use crate::blob::format::file_name as blob_name;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::WalMode;
use crate::version::edit::ManifestState;
use crate::version::file_name::{self, CURRENT, UNFINISHED};
use crate::version::manifest::Manifest;
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::{Inherited, LogWriter};
use std::path::Path;
use std::sync::Arc;

/// Copies in pieces of this size.
const COPY_BYTES: u64 = 1 << 20;

/// Writes the checkpoint. It holds every write acknowledged before the call, in all keyspaces, and opens as a database.
pub fn checkpoint(inner: &Inner, target: &Path) -> Result<()> {
    inner.condition.check()?;
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
    let written = begun.and_then(|()| flushing::flush_exactly(inner, || write(inner, target)));
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

/// Copies what the manifest names now. The caller holds the job lock, so that no table can go.
fn write(inner: &Inner, target: &Path) -> Result<()> {
    let env = &*inner.options.env;
    let manifest = inner.manifest.lock();
    let Some(manifest) = &*manifest else { return Err(Error::ReadOnly { why: "it was opened read-only".into() }) };
    let mut state: ManifestState = manifest.state().clone();
    for number in state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys()) {
        let name = file_name::table(*number);
        link_or_copy(env, &inner.directory.join(&name), &target.join(&name))?;
    }
    // What was appended so far is durable since the flush; nothing more is to be appended through the links.
    inner.blobs.roll();
    for number in blob_collection::live_bytes(inner).keys() {
        let name = blob_name(*number);
        link_or_copy(env, &inner.directory.join(&name), &target.join(&name))?;
    }
    let maker = SegmentMaker {
        env: Arc::clone(&inner.options.env),
        directory: target.to_path_buf(),
        mapped: inner.options.wal_mode == WalMode::Mapped,
        release_memory: false,
        read_only: false,
        smallest_bytes: inner.options.wal_segment_bytes.clamp(256, 1 << 20),
        largest_bytes: inner.options.wal_segment_bytes.max(256),
    };
    let log = LogWriter::start(maker, Inherited::default())?;
    state.log_floor = log.position().segment;
    state.next_file += 1;
    Manifest::create(env, target, state.next_file - 1, state)?;
    Ok(())
}

fn link_or_copy(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    if env.hard_link(from, to).is_ok() {
        return Ok(());
    }
    // A link that was made but not reported would be written through, into the original.
    if env.exists(to)? {
        env.remove(to)?;
    }
    let source = env.open(from)?;
    let mut copy = env.create(to)?;
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < source.len() {
        buffer.resize(COPY_BYTES.min(source.len() - offset) as usize, 0);
        source.read_at(offset, &mut buffer)?;
        copy.append(&buffer)?;
        offset += buffer.len() as u64;
    }
    copy.sync()
}
