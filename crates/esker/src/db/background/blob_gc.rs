//! Blob garbage collection: which blob files are mostly garbage, or hold values that an idle
//! database can compress, and which table to rewrite next. `compaction.rs` does the rewrite.

use crate::blob::format::HEADER_BYTES;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::job::blob_compression::{Shrinkable, due, least_bytes};
use crate::job::blob_gc::{BlobShape, condemned as choose};
use crate::job::pick::shape::Plan;
use crate::options::CompactionStyle;
use crate::table::Table;
use crate::version::runs::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table to be rewritten so that its values in these blob files are copied.
pub struct Collection {
    pub keyspace: Arc<KeyspaceInner>,
    pub version: Arc<Version>,
    pub plan: Plan,
    pub files: BTreeSet<u64>,
}

/// Bytes of large values that tables refer to, by blob file.
pub fn live_bytes(inner: &Inner) -> BTreeMap<u64, u64> {
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for keyspace in inner.all_keyspaces() {
        for (_, table) in keyspace.read_state.load().stored().version.tables() {
            for (&number, &bytes) in &table.summary().blobs {
                let sum = live.entry(number).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
    }
    live
}

/// The blob files whose values are to be copied elsewhere. `eager`: also if it saves little. The
/// caller holds the job lock.
pub fn condemned(inner: &Inner, eager: bool) -> BTreeSet<u64> {
    if inner.blobs.is_empty() {
        return BTreeSet::new();
    }
    let live = live_bytes(inner);
    let spared = spared(inner);
    let lengths = inner.blobs.lengths().into_iter().filter(|(number, _)| !spared.contains(number));
    let shape = |(number, bytes): (u64, u64)| BlobShape {
        number,
        // Without the header: a file of one short value is no garbage, and copying it would not
        // make it less.
        bytes: bytes.saturating_sub(HEADER_BYTES),
        live_bytes: live.get(&number).copied().unwrap_or(0),
    };
    let files = choose(&lengths.map(shape).collect::<Vec<_>>(), eager);
    inner.blobs.end_growth(&files);
    files
}

/// Files that are not emptied: with a damaged value, or that memtables refer to. How much of those
/// is alive is not known before the memtables are flushed.
fn spared(inner: &Inner) -> BTreeSet<u64> {
    let mut spared = inner.blobs.left_alone();
    for keyspace in inner.all_keyspaces() {
        let read_state = keyspace.read_state.load();
        read_state.memtables().for_each(|memtable| spared.extend(memtable.blob_files()));
    }
    spared
}

/// The values to compress.
pub enum Compressible {
    /// Nothing, as far as is known.
    Nothing,
    /// Not all files were sampled yet.
    LookAgain,
    /// The values in these files.
    Files(BTreeSet<u64>),
}

/// Files sampled in one call: flushes wait meanwhile.
const LOOKS: usize = 16;

/// The blob files, of those with smaller numbers than `before`, whose values are to be copied
/// elsewhere to be compressed. `drain_requested`: by a caller, even if it is little. The caller
/// holds the job lock.
pub fn compressible(inner: &Inner, before: u64, drain_requested: bool) -> Compressible {
    if inner.blobs.is_empty() || !inner.blobs.compresses() {
        return Compressible::Nothing;
    }
    let live = live_bytes(inner);
    let least =
        if drain_requested { 0 } else { least_bytes(live.values().fold(0, |sum, &bytes| sum.saturating_add(bytes))) };
    let mut spared = spared(inner);
    for keyspace in inner.all_keyspaces().iter().filter(|keyspace| has_age(keyspace)) {
        for (_, table) in keyspace.read_state.load().version.tables() {
            spared.extend(table.summary().blobs.keys());
        }
    }
    let is_free = |number: &u64| live.contains_key(number) && !spared.contains(number);
    // Files already begun come first. While they exist, because a table was not rewritten or a
    // reader holds them, both they and the copies take space.
    {
        let lengths = inner.blobs.lengths();
        let mut begun = inner.shrinking.lock();
        begun.retain(|&number| lengths.contains_key(&number) && inner.blobs.may_shrink(number));
        let left_alone = inner.blobs.left_alone();
        begun.retain(|number| !left_alone.contains(number));
        if !begun.is_empty() {
            let left: BTreeSet<u64> = begun.iter().copied().filter(is_free).collect();
            return if left.is_empty() { Compressible::Nothing } else { Compressible::Files(left) };
        }
    }
    let numbers = live.iter().filter(|(number, _)| **number < before && is_free(number));
    let shrinkable = numbers.filter(|(number, _)| inner.blobs.may_shrink(**number));
    let files: Vec<Shrinkable> = shrinkable.map(|(&number, &live_bytes)| Shrinkable { number, live_bytes }).collect();
    let (mut looks, mut look_again) = (0, false);
    let would_shrink = |number| {
        if !inner.blobs.is_known_to_shrink(number) {
            if looks == LOOKS {
                look_again = true;
                return false;
            }
            looks += 1;
        }
        inner.blobs.would_shrink(number)
    };
    let files = due(&files, least, would_shrink, |files| bytes_of_tables_with(inner, files), drain_requested);
    // A manual request takes all files together, so that each table is rewritten once.
    if files.is_empty() || drain_requested && look_again {
        return if look_again { Compressible::LookAgain } else { Compressible::Nothing };
    }
    inner.blobs.end_growth(&files);
    inner.shrinking.lock().clone_from(&files);
    Compressible::Files(files)
}

/// Whether there may be values to compress.
pub fn may_compress(inner: &Inner) -> bool {
    inner.blobs.compresses() && inner.blobs.lengths().keys().any(|&number| inner.blobs.may_shrink(number))
}

fn bytes_of_tables_with(inner: &Inner, files: &BTreeSet<u64>) -> u64 {
    let of_one = |keyspace: &Arc<KeyspaceInner>| {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let refers = version.tables().map(|(_, table)| table).filter(|table| refers(table, files));
        refers.map(|table| table.summary().file_bytes).sum::<u64>()
    };
    inner.all_keyspaces().iter().map(of_one).sum()
}

fn refers(table: &Table, files: &BTreeSet<u64>) -> bool {
    table.summary().blobs.keys().any(|file| files.contains(file))
}

/// Whether the keyspace's tables leave in the order of their age (FIFO). A rewritten table
/// would have no age.
fn has_age(keyspace: &KeyspaceInner) -> bool {
    matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. })
}

/// The next table to rewrite so that these files are emptied, if any. Keyspaces whose tables have
/// an age are skipped: their blob files stay until the tables leave. A table found damaged is
/// skipped unless `drain_requested` by a caller: reading it again does not mend it. The caller
/// holds the job lock.
pub fn next(inner: &Inner, files: BTreeSet<u64>, drain_requested: bool) -> Option<Collection> {
    if files.is_empty() {
        return None;
    }
    inner.all_keyspaces().into_iter().filter(|keyspace| !has_age(keyspace)).find_map(|keyspace| {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let is_readable = |table: &Table| drain_requested || inner.error_state.damage_of(table.path()).is_none();
        let refers = |table: &Arc<Table>| refers(table, &files) && is_readable(table);
        let places = version.runs.iter().enumerate();
        let place = places.filter_map(|(run, tables)| Some((run, tables.tables.iter().position(refers)?))).next();
        let (run, table) = place?;
        Some(Collection { keyspace, version, plan: Plan::Rewrite { run, table }, files: files.clone() })
    })
}
