//! What an open does with tables that no edit names: the last edit of the manifest may have been
//! made and damaged since, and then they are all that is left of what it announced.
//!
//! Nothing but a flush or an ingest brings writes into tables. A table of either holds writes above
//! what its keyspace's tables are known to hold; any other is the result of a compaction, whose
//! inputs the remaining state names.
//!
//! A torn manifest shows that there was such an edit, or a part of one. One that ends behind a
//! record does not: any death during a flush or an ingest leaves the same, and tables would pile
//! up. There the last table of a flush is kept, with those before it, if it reaches beyond what was
//! replayed. While a process writes its tables, the log has the same, but for writes with
//! `disable_wal`. What an ingest has announced is in the first record of a manifest before it is
//! reported as done.

use crate::base::key::Sequence;
use crate::blob::format::{file_name as blob_name, file_number as blob_number};
use crate::db::files::remover;
use crate::error::{Error, Result};
use crate::options::{Options, ReadMode};
use crate::table::{BlockCache, Table, TableSummary};
use crate::version::edit::ManifestState;
use crate::version::file_name::{table, table_number};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Why edits may be missing at the end of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It is torn.
    Torn,
    /// It ends behind a record, and so may any that has lost edits. The log was replayed up to this
    /// sequence number.
    Unseen(Sequence),
    /// It ends behind a record, and the log tells that edits are missing. The last write that is
    /// known to have been made ([`last_write`]).
    Told(Sequence),
}

/// Gives the tables that a lost edit may have announced, and the blob files with their large
/// values, a second name in the directory `lost`, durably.
///
/// Where the manifest is torn: a file without the end of a table was still being written, so that
/// no edit names it. One that has an end and cannot be read, as it is damaged too or of a newer
/// version, may have been announced, with any blob file that is not among `used`.
///
/// Where it is not torn, a table that is damaged is none: an ordinary death may have left it so.
/// One that could not be read at all is kept if that goes without reading it.
///
/// # Errors
/// `Io`.
pub fn keep_tables(
    directory: &Path,
    options: &Options,
    (state, lost): (&ManifestState, Lost),
    cache: &Arc<BlockCache>,
    used: &BTreeSet<u64>,
) -> Result<()> {
    let env = &*options.env;
    let named: BTreeSet<u64> = state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
    let is_torn = lost == Lost::Torn;
    let (mut kept, mut unread) = (BTreeSet::new(), BTreeSet::new());
    // Not the tables, which may be many, and each an open file.
    let mut intact: BTreeMap<u64, TableSummary> = BTreeMap::new();
    let names = env.list(directory)?;
    for number in names.iter().filter_map(|name| table_number(name)).filter(|number| !named.contains(number)) {
        match inspect(directory, options, number, cache) {
            Ok(Unnamed::Intact(summary)) => _ = intact.insert(number, *summary),
            Ok(Unnamed::Unreadable) if is_torn => _ = kept.insert(table(number)),
            Ok(Unnamed::Unreadable | Unnamed::Unfinished) => {}
            Err(error) if is_torn => return Err(error),
            // It may be what is looked for. Its second name needs no read.
            Err(_) => _ = unread.insert(table(number)),
        }
    }
    if !kept.is_empty() {
        let is_unused = |name: &&String| blob_number(name).is_some_and(|number| !used.contains(&number));
        kept.extend(names.iter().filter(is_unused).cloned());
    }
    for number in with_newer_writes(state, lost, intact.iter().map(|(number, summary)| (*number, summary))) {
        kept.insert(table(number));
        kept.extend(intact[&number].blobs.keys().map(|blob| blob_name(*blob)));
    }
    // What cannot be read or linked keeps no database from opening whose manifest is whole.
    let _ = remover::keep_in_lost(env, directory, &unread);
    remover::keep_in_lost(env, directory, &kept)
}

/// A table that no edit names.
enum Unnamed {
    Intact(Box<TableSummary>),
    Unfinished,
    Unreadable,
}

fn inspect(directory: &Path, options: &Options, number: u64, cache: &Arc<BlockCache>) -> Result<Unnamed> {
    let path = directory.join(table(number));
    let file = options.env.open(&path)?;
    let label = match Table::label(&*file, &path, number) {
        Err(Error::Unsupported { .. }) => None,
        label => label?,
    };
    let order = label.and_then(|label| options.comparators.find(&label.comparator)).unwrap_or_default();
    match Table::open_in(&order, Arc::clone(&file), path, number, Arc::clone(cache), ReadMode::Pread) {
        Ok(found) => Ok(Unnamed::Intact(Box::new(found.summary().clone()))),
        Err(Error::Corruption { .. }) if !Table::has_an_end(&*file, number)? => Ok(Unnamed::Unfinished),
        Err(Error::Corruption { .. } | Error::Unsupported { .. } | Error::UnsupportedCompression { .. }) => {
            Ok(Unnamed::Unreadable)
        }
        Err(error) => Err(error),
    }
}

/// A flush that the manifest does not know, as far as its tables were found.
struct LostFlush<'a> {
    reached: Sequence,
    begins: &'a [u8],
}

/// The last write that is known to have been made: a load with a higher number was under way, or
/// nothing came after it.
pub fn last_write<'a>(
    state: &ManifestState,
    in_log: Sequence,
    tables: impl Iterator<Item = &'a TableSummary>,
) -> Sequence {
    let flushed = tables.filter_map(|summary| Some(summary.keyspace.as_ref()?.flushed));
    flushed.fold(state.last_sequence.max(in_log), Sequence::max)
}

/// Whether all of a table has one number, which its keyspace had not reached when it was begun. Not
/// of a table of one entry: what a flush writes may be such a one too.
pub fn is_of_a_load(summary: &TableSummary) -> bool {
    let flushed = summary.keyspace.as_ref().map_or(0, |label| label.flushed);
    summary.entries > 1 && summary.smallest_sequence == summary.largest_sequence && summary.largest_sequence > flushed
}

/// Those of the tables, by ascending number, that may be of edits that the manifest has lost: those
/// that bring writes.
pub fn with_newer_writes<'a>(
    state: &ManifestState,
    lost: Lost,
    tables: impl DoubleEndedIterator<Item = (u64, &'a TableSummary)>,
) -> BTreeSet<u64> {
    let (mut newer, is_torn) = (BTreeSet::new(), lost == Lost::Torn);
    // That of a load that was reported is in the first record of the manifest.
    let has_no_edit = |summary: &TableSummary| match lost {
        Lost::Told(last_write) => {
            let number = summary.largest_sequence;
            number > last_write || number <= state.last_sequence && is_of_a_load(summary)
        }
        _ => false,
    };
    let replayed = if let Lost::Unseen(replayed) = lost { replayed } else { 0 };
    let mut flushes: BTreeMap<u64, LostFlush<'_>> = BTreeMap::new();
    for (number, summary) in tables.rev() {
        let Some(label) = &summary.keyspace else {
            newer.extend(is_torn.then_some(number));
            continue;
        };
        // Tables of a dropped keyspace stay while they are read.
        if state.was_dropped(label.id) || has_no_edit(summary) {
            continue;
        }
        let keyspace = state.keyspaces.get(&label.id);
        let known = keyspace.map_or(0, |keyspace| keyspace.flushed).max(replayed);
        // How far a flush reached, only the last of its tables says. The others show it by their
        // sequence numbers, but those of the first flush, which writes the last run, have none:
        // they come before the last one in number and in keys. If there were other flushes behind
        // it, that one may have been merged into a later table. A keyspace that has tables flushes
        // to other runs; what is unnamed and without numbers there, a compaction has written.
        let (is_last, flush) = (label.flushed > known, flushes.get(&label.id));
        let is_first_flush = keyspace.is_none_or(|keyspace| keyspace.tables.is_empty());
        let is_earlier = is_first_flush
            && summary.largest_sequence == 0
            && flush.is_some_and(|flush| !matches!(lost, Lost::Unseen(_)) || summary.is_before(flush.begins));
        // The numbers of an ingest, whose tables say nothing else, are far above those of the log.
        let is_of = |flush: &LostFlush<'_>| summary.largest_sequence <= flush.reached;
        let has_newer = summary.largest_sequence > known && (is_torn || flush.is_some_and(is_of));
        if is_last || is_earlier || has_newer || is_torn && keyspace.is_none() {
            newer.insert(number);
        }
        if is_last || is_earlier {
            let reached = if is_last { label.flushed } else { flush.map_or(0, |flush| flush.reached) };
            flushes.insert(label.id, LostFlush { reached, begins: &summary.smallest_key });
        }
    }
    newer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableKeyspace;
    use crate::version::edit::{KeyspaceRecord, TableRecord};

    const KNOWN: u64 = 10;

    /// A keyspace that was flushed up to [`KNOWN`].
    fn state(tables: &[u64]) -> ManifestState {
        let tables = tables.iter().map(|&number| (number, TableRecord { run: 0, bytes: 1 })).collect();
        let record = KeyspaceRecord { name: "k".into(), flushed: KNOWN, tables, ..KeyspaceRecord::default() };
        ManifestState { keyspaces: BTreeMap::from([(1, record)]), next_keyspace: 2, ..ManifestState::default() }
    }

    /// A table whose keys go from the one to the other, that says `flushed`, and its newest
    /// sequence number. A number that is far above the others is that of all its entries.
    type Written<'a> = (u64, &'a str, &'a str, Sequence, Sequence);

    /// The numbers of those that may be of a lost edit.
    fn newer_than(lost: Lost, known: &ManifestState, tables: &[Written]) -> Vec<u64> {
        let label = state(&[]).keyspaces[&1].label(1);
        let summary = |&(number, first, last, flushed, largest_sequence): &Written| {
            let keyspace = Some(TableKeyspace { flushed, ..label.clone() });
            let (smallest_key, largest_key) = (first.into(), last.into());
            let smallest_sequence = if largest_sequence < 1 << 24 { 0 } else { largest_sequence };
            let sequences = TableSummary { smallest_sequence, largest_sequence, ..TableSummary::default() };
            (number, TableSummary { keyspace, smallest_key, largest_key, entries: 2, ..sequences })
        };
        let summaries: Vec<(u64, TableSummary)> = tables.iter().map(summary).collect();
        let summaries = summaries.iter().map(|(number, summary)| (*number, summary));
        with_newer_writes(known, lost, summaries).into_iter().collect()
    }

    /// As above, where the manifest is torn.
    fn newer(known: &ManifestState, tables: &[Written]) -> Vec<u64> {
        newer_than(Lost::Torn, known, tables)
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
        // What is not before it in keys is not of it, but may be of one before it.
        let overlapping = [(5, "a", "h", KNOWN, 0), flush[2]];
        assert_eq!(newer_than(Lost::Unseen(KNOWN), &state, &overlapping), [9]);
        assert_eq!(newer(&state, &overlapping), [5, 9]);
    }

    /// The last table of the first flush was merged into that of the second.
    #[test]
    fn of_several_flushes_all_tables_are_found() {
        let flushes = [(5, "a", "m", KNOWN, 0), (7, "a", "b", 20, 20), (8, "n", "z", 20, 0)];
        assert_eq!(newer_than(Lost::Told(20), &state(&[]), &flushes), [5, 7, 8]);
        // A load that was not reported as done is none of them.
        let with_load = [flushes[0], (6, "a", "b", KNOWN, 1 << 25), flushes[1], flushes[2]];
        assert_eq!(newer_than(Lost::Told(20), &state(&[]), &with_load), [5, 7, 8]);
        // Whatever flush it came after, and unless something was written after it.
        let later_load = [flushes[0], flushes[1], flushes[2], (9, "a", "b", 20, 1 << 25)];
        assert_eq!(newer_than(Lost::Told(20), &state(&[]), &later_load), [5, 7, 8]);
        assert_eq!(newer_than(Lost::Told(1 << 26), &state(&[]), &later_load), [5, 7, 8, 9]);
        // That may have been another load, which has overtaken it.
        let overtaken = ManifestState { last_sequence: 1 << 26, ..state(&[]) };
        let flush_after = [later_load[3], (10, "a", "z", (1 << 26) + 1, 0)];
        assert_eq!(newer_than(Lost::Told((1 << 26) + 1), &overtaken, &flush_after), [10]);
        // Nor is what was read when it had been merged.
        let held = [(2, "a", "z", KNOWN - 1, KNOWN - 1), flushes[1]];
        assert_eq!(newer_than(Lost::Told(20), &state(&[3]), &held), [7]);
    }

    #[test]
    fn what_a_compaction_has_written_is_no_part_of_a_flush_behind_it() {
        let state = state(&[3]);
        assert_eq!(newer(&state, &[(5, "a", "c", KNOWN, 0), (6, "m", "z", 15, 14)]), [6]);
        assert_eq!(newer(&state, &[(5, "a", "c", KNOWN, 9), (6, "m", "o", KNOWN, 12), (7, "p", "z", 15, 15)]), [6, 7]);
    }

    #[test]
    fn what_the_log_has_is_not_newer() {
        let first = state(&[]);
        let flush = [(5, "a", "c", KNOWN, 0), (6, "d", "f", 15, 0)];
        assert_eq!(newer_than(Lost::Unseen(14), &first, &flush), [5, 6]);
        assert_eq!(newer_than(Lost::Unseen(15), &first, &flush), [] as [u64; 0]);
        let later = [(5, "a", "c", KNOWN, 13), (6, "d", "f", 15, 15), (8, "a", "f", KNOWN, 15)];
        assert_eq!(newer_than(Lost::Unseen(12), &state(&[3]), &later), [5, 6]);
    }

    /// Such tables an interrupted process leaves: of a load, or of a flush that had not come to its
    /// end.
    #[test]
    fn without_the_last_table_of_a_flush_a_manifest_that_is_whole_has_lost_nothing() {
        let tables = [(5, "a", "c", KNOWN, 13), (6, "d", "z", KNOWN, 1 << 25)];
        assert_eq!(newer_than(Lost::Unseen(12), &state(&[3]), &tables), [] as [u64; 0]);
        assert_eq!(newer(&state(&[3]), &tables), [5, 6]);
    }

    #[test]
    fn the_flush_of_a_keyspace_that_the_manifest_does_not_know_is_kept_whole() {
        let flush = [(5, "a", "c", 0, 0), (6, "d", "f", 15, 0)];
        let unknown = ManifestState { keyspaces: BTreeMap::new(), next_keyspace: 1, ..state(&[]) };
        assert_eq!(newer(&unknown, &flush), [5, 6]);
        assert_eq!(newer(&unknown, &flush[..1]), [5]);
        assert_eq!(newer_than(Lost::Unseen(14), &unknown, &flush), [5, 6]);
        let dropped = ManifestState { next_keyspace: 2, ..unknown };
        assert_eq!(newer(&dropped, &flush), [] as [u64; 0]);
    }
}
