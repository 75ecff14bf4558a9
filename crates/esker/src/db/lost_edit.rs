//! What an open does that found a torn manifest: its last edit may have been made and damaged since, and then files that the remaining state does not name are all that is left
//! of what the edit announced.
//!
//! Nothing but a flush or an ingest brings writes into tables. A table of either holds writes above what its keyspace's tables are known to hold; any other is the result
//! of a compaction, whose inputs the remaining state names.

use super::files;
use crate::blob::format::file_name as blob_name;
use crate::error::{Error, Result};
use crate::options::{Options, ReadMode};
use crate::table::{BlockCache, Table, TableSummary};
use crate::version::edit::ManifestState;
use crate::version::file_name::{table, table_number};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Gives the tables that a lost edit may have announced, and the blob files with their large values, a second name in the directory `lost`, durably. A file that is no whole table was
/// still being written, so that no edit names it.
///
/// # Errors
/// `Io`.
pub fn keep_tables(directory: &Path, options: &Options, state: &ManifestState, cache: &Arc<BlockCache>) -> Result<()> {
    let env = &*options.env;
    let named: BTreeSet<u64> = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
    let mut kept = BTreeSet::new();
    for name in env.list(directory)? {
        let Some(number) = table_number(&name).filter(|number| !named.contains(number)) else { continue };
        let path = directory.join(&name);
        let opened =
            env.open(&path).and_then(|file| Table::open(file, path, number, Arc::clone(cache), ReadMode::Pread));
        let found = match opened {
            Ok(found) => found,
            Err(Error::Corruption { .. } | Error::Unsupported { .. }) => continue,
            Err(error) => return Err(error),
        };
        if holds_newer_writes(state, found.summary()) {
            kept.insert(table(number));
            kept.extend(found.summary().blobs.keys().map(|blob| blob_name(*blob)));
        }
    }
    files::keep_in_lost(env, directory, &kept)
}

/// Whether the table may be of an edit that the manifest has lost: one that brings writes.
pub fn holds_newer_writes(state: &ManifestState, summary: &TableSummary) -> bool {
    let Some(label) = &summary.keyspace else { return true };
    // In the last run entries have no sequence numbers; how far a flush reached, its table says besides.
    let reached = label.flushed.max(summary.largest_sequence);
    state.keyspaces.get(&label.id).is_none_or(|keyspace| reached > keyspace.flushed)
}
