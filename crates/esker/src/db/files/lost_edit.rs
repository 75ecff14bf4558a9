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
    // Not the tables, which may be many, and each an open file.
    let mut intact: BTreeMap<u64, TableSummary> = BTreeMap::new();
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
            Ok(found) => _ = intact.insert(number, found.summary().clone()),
            Err(Error::Corruption { .. }) if !Table::has_an_end(&*file, number)? => {}
            Err(Error::Corruption { .. } | Error::Unsupported { .. } | Error::UnsupportedCompression { .. }) => {
                kept.insert(table(number));
                some_cannot_be_read = true;
            }
            Err(error) => return Err(error),
        }
    }
    for number in with_newer_writes(state, intact.iter().map(|(number, summary)| (*number, summary))) {
        kept.insert(table(number));
        kept.extend(intact[&number].blobs.keys().map(|blob| blob_name(*blob)));
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
    // Of each keyspace the first key in the tables of a first flush that were found so far.
    let mut flush_begins: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for (number, summary) in tables.rev() {
        let Some(label) = &summary.keyspace else {
            newer.insert(number);
            continue;
        };
        // How far a flush reached, only the last of its tables says. The others show it by their
        // sequence numbers, but those of the first flush, which writes the last run, have none:
        // they come before the last one in number and in keys. A keyspace that has tables flushes
        // to other runs; what is unnamed and without numbers there, a compaction has written.
        let is_first = state.keyspaces.get(&label.id).is_some_and(|known| known.tables.is_empty());
        let is_of_flush = || flush_begins.get(&label.id).is_some_and(|first| summary.is_before(first));
        let is_earlier = is_first && summary.largest_sequence == 0 && is_of_flush();
        if is_earlier || says_newer(state, label, summary) {
            newer.insert(number);
            // An ingest does not say how far it reached, and is no part of a flush.
            if is_first && (is_earlier || has_flushed(state, label)) {
                flush_begins.insert(label.id, &summary.smallest_key);
            }
        }
    }
    newer
}

/// Whether the table is the last one of a flush that the manifest does not know.
fn has_flushed(state: &ManifestState, label: &TableKeyspace) -> bool {
    state.keyspaces.get(&label.id).is_some_and(|known| label.flushed > known.flushed)
}

/// Whether the table says by itself that it has writes that the tables of its keyspace had not.
fn says_newer(state: &ManifestState, label: &TableKeyspace, summary: &TableSummary) -> bool {
    let reached = label.flushed.max(summary.largest_sequence);
    // Tables of a dropped keyspace stay while they are read.
    !state.was_dropped(label.id) && state.keyspaces.get(&label.id).is_none_or(|keyspace| reached > keyspace.flushed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::edit::{KeyspaceRecord, TableRecord};

    const KNOWN: u64 = 10;

    /// A keyspace that was flushed up to [`KNOWN`].
    fn state(tables: &[u64]) -> ManifestState {
        let tables = tables.iter().map(|&number| (number, TableRecord { run: 0, bytes: 1 })).collect();
        let record = KeyspaceRecord { name: "k".into(), flushed: KNOWN, tables, ..KeyspaceRecord::default() };
        ManifestState { keyspaces: BTreeMap::from([(1, record)]), next_keyspace: 2, ..ManifestState::default() }
    }

    /// The tables of this state whose keys go from the one to the other, that say `flushed`, and
    /// whose newest sequence number is the last one.
    fn newer(state: &ManifestState, tables: &[(u64, &str, &str, u64, u64)]) -> Vec<u64> {
        let summary = |&(number, first, last, flushed, largest_sequence): &(u64, &str, &str, u64, u64)| {
            let keyspace = Some(TableKeyspace { flushed, ..state.keyspaces[&1].label(1) });
            let (smallest_key, largest_key) = (first.into(), last.into());
            (number, TableSummary { keyspace, smallest_key, largest_key, largest_sequence, ..TableSummary::default() })
        };
        let summaries: Vec<(u64, TableSummary)> = tables.iter().map(summary).collect();
        with_newer_writes(state, summaries.iter().map(|(number, summary)| (*number, summary))).into_iter().collect()
    }

    #[test]
    fn a_first_flush_has_all_of_its_tables_whatever_else_was_written_meanwhile() {
        let state = state(&[]);
        let flush = [(5, "a", "c", KNOWN, 0), (6, "d", "f", KNOWN, 0), (9, "g", "i", 15, 0)];
        assert_eq!(newer(&state, &flush), [5, 6, 9]);
        // A load has sequence numbers, and takes its own from between.
        let with_load = [flush[0], flush[1], (7, "b", "c", KNOWN, 12), flush[2]];
        assert_eq!(newer(&state, &with_load), [5, 6, 7, 9]);
        // Without its last table it says nothing, and the log has all of it.
        assert_eq!(newer(&state, &flush[..2]), [] as [u64; 0]);
        // What is not before it in keys is not of it.
        assert_eq!(newer(&state, &[(5, "a", "h", KNOWN, 0), flush[2]]), [9]);
    }

    #[test]
    fn what_a_compaction_has_written_is_no_part_of_a_flush_behind_it() {
        let state = state(&[3]);
        assert_eq!(newer(&state, &[(5, "a", "c", KNOWN, 0), (6, "m", "z", 15, 14)]), [6]);
        assert_eq!(newer(&state, &[(5, "a", "c", KNOWN, 9), (6, "m", "o", KNOWN, 12), (7, "p", "z", 15, 15)]), [6, 7]);
    }
}
