//! A consistent copy of the database in another directory: tables and blob files by hard link where that works, by copying otherwise.

use super::blob_collection;
use super::flushing;
use super::inner::Inner;
use super::open::create_directory;
use crate::blob::format::file_name as blob_name;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::WalMode;
use crate::version::edit::ManifestState;
use crate::version::file_name;
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
    if env.exists(target)? && !env.list(target)?.is_empty() {
        return Err(Error::invalid(format!("{} is not empty; name a new directory", target.display())));
    }
    create_directory(env, target)?;
    flushing::flush_exactly(inner, || write(inner, target))
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
