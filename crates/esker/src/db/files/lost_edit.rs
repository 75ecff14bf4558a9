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
use crate::table::{BlockCache, Table, TableKeyspace, TableSummary};
use crate::version::edit::ManifestState;
use crate::version::file_name::{table, table_number};
use std::collections::{BTreeMap, BTreeSet};
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
    let mut intact = BTreeMap::new();
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
            Ok(found) => _ = intact.insert(number, found),
            Err(Error::Corruption { .. }) if !Table::has_an_end(&*file, number)? => {}
            Err(Error::Corruption { .. } | Error::Unsupported { .. } | Error::UnsupportedCompression { .. }) => {
                kept.insert(table(number));
                some_cannot_be_read = true;
            }
            Err(error) => return Err(error),
        }
    }
    for number in with_newer_writes(state, intact.iter().map(|(number, found)| (*number, found.summary()))) {
        kept.insert(table(number));
        kept.extend(intact[&number].summary().blobs.keys().map(|blob| blob_name(*blob)));
    }
    if some_cannot_be_read {
        let is_unused = |name: &&String| blob_number(name).is_some_and(|number| !used.contains(&number));
        kept.extend(names.iter().filter(is_unused).cloned());
    }
    remover::keep_in_lost(env, directory, &kept)
}

/// Those of the tables, by ascending number, that may be of an edit that the manifest has lost: one
/// that brings writes.
pub fn with_newer_writes<'a>(
    state: &ManifestState,
    tables: impl DoubleEndedIterator<Item = (u64, &'a TableSummary)>,
) -> BTreeSet<u64> {
    let mut newer = BTreeSet::new();
    // Of each keyspace the first key in the tables of a flush that were found so far.
    let mut flush_begins: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for (number, summary) in tables.rev() {
        let Some(label) = &summary.keyspace else {
            newer.insert(number);
            continue;
        };
        // In the last run entries have no sequence numbers, and how far a flush reached, only the
        // last of its tables says: the others come before it in number and in keys.
        let is_before_one = || flush_begins.get(&label.id).is_some_and(|first| summary.is_before(first));
        if says_newer(state, label, summary) || summary.largest_sequence == 0 && is_before_one() {
            newer.insert(number);
            flush_begins.insert(label.id, &summary.smallest_key);
        }
    }
    newer
}

/// Whether the table says by itself that it has writes that the tables of its keyspace had not.
fn says_newer(state: &ManifestState, label: &TableKeyspace, summary: &TableSummary) -> bool {
    let reached = label.flushed.max(summary.largest_sequence);
    // Tables of a dropped keyspace stay while they are read.
    !state.was_dropped(label.id) && state.keyspaces.get(&label.id).is_none_or(|keyspace| reached > keyspace.flushed)
}
