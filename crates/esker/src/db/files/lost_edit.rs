//! What an open does that found a torn manifest: its last edit may have been made and damaged
//! since, and then files that the remaining state does not name are all that is left of what the
//! edit announced.
//!
//! Nothing but a flush or an ingest brings writes into tables. A table of either holds writes above
//! what its keyspace's tables are known to hold; any other is the result of a compaction, whose
//! inputs the remaining state names.

use crate::blob::format::{file_name as blob_name, file_number as blob_number};
use crate::db::files::remover;
use crate::error::{Error, Result};
use crate::options::{Options, ReadMode};
use crate::table::{BlockCache, Table, TableSummary};
use crate::version::edit::ManifestState;
use crate::version::file_name::{table, table_number};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Gives the tables that a lost edit may have announced, and the blob files with their large
/// values, a second name in the directory `lost`, durably. A file without the end of a table was
/// still being written, so that no edit names it. One that has an end and cannot be read, as it is
/// damaged too or of a newer version, may have been announced, with any blob file that is not among
/// `used`.
///
/// # Errors
/// `Io`.
pub fn keep_tables(
    directory: &Path,
    options: &Options,
    state: &ManifestState,
    cache: &Arc<BlockCache>,
    used: &BTreeSet<u64>,
) -> Result<()> {
    let env = &*options.env;
    let named: BTreeSet<u64> = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
    let mut kept = BTreeSet::new();
    let mut some_cannot_be_read = false;
    let names = env.list(directory)?;
    for name in &names {
        let Some(number) = table_number(name).filter(|number| !named.contains(number)) else { continue };
        let path = directory.join(name);
        let file = env.open(&path)?;
        let label = match Table::label(&*file, &path, number) {
            // What cannot be read is kept below.
            Err(Error::Unsupported { .. }) => None,
            label => label?,
        };
        let order = label.and_then(|label| options.comparators.find(&label.comparator));
        let order = order.unwrap_or_default();
        match Table::open_in(&order, Arc::clone(&file), path, number, Arc::clone(cache), ReadMode::Pread) {
            Ok(found) if holds_newer_writes(state, found.summary()) => {
                kept.insert(table(number));
                kept.extend(found.summary().blobs.keys().map(|blob| blob_name(*blob)));
            }
            Ok(_) => {}
            Err(Error::Corruption { .. }) if !Table::has_an_end(&*file, number)? => {}
            Err(Error::Corruption { .. } | Error::Unsupported { .. } | Error::UnsupportedCompression { .. }) => {
                kept.insert(table(number));
                some_cannot_be_read = true;
            }
            Err(error) => return Err(error),
        }
    }
    if some_cannot_be_read {
        let is_unused = |name: &&String| blob_number(name).is_some_and(|number| !used.contains(&number));
        kept.extend(names.iter().filter(is_unused).cloned());
    }
    remover::keep_in_lost(env, directory, &kept)
}

/// Whether the table may be of an edit that the manifest has lost: one that brings writes.
pub fn holds_newer_writes(state: &ManifestState, summary: &TableSummary) -> bool {
    let Some(label) = &summary.keyspace else { return true };
    // In the last run entries have no sequence numbers; how far a flush reached, its table says
    // besides.
    let reached = label.flushed.max(summary.largest_sequence);
    // Tables of a dropped keyspace stay while they are read.
    !state.was_dropped(label.id) && state.keyspaces.get(&label.id).is_none_or(|keyspace| reached > keyspace.flushed)
}
