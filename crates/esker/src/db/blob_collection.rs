//! Emptying blob files that are mostly garbage: which table to rewrite next. (`compacting.rs` does it.)

use super::inner::{Inner, KeyspaceInner};
use crate::blob::format::HEADER_BYTES;
use crate::job::blob_garbage::{BlobShape, condemned as choose};
use crate::job::pick::shape::Plan;
use crate::options::CompactionStyle;
use crate::table::Table;
use crate::version::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table to be rewritten so that its values in these blob files are copied.
pub struct Collection {
    pub keyspace: Arc<KeyspaceInner>,
    pub tree: Arc<Tree>,
    pub plan: Plan,
    pub files: BTreeSet<u64>,
}

/// Bytes of large values that tables refer to, by blob file.
pub fn live_bytes(inner: &Inner) -> BTreeMap<u64, u64> {
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for keyspace in inner.all_keyspaces() {
        for (_, table) in keyspace.view.load().tree.tables() {
            for (&number, &bytes) in &table.summary().blobs {
                let sum = live.entry(number).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
    }
    live
}

/// The blob files whose values are to be copied elsewhere. `eager`: also if it saves little. The caller holds the job lock.
pub fn condemned(inner: &Inner, eager: bool) -> BTreeSet<u64> {
    if inner.blobs.is_empty() {
        return BTreeSet::new();
    }
    let live = live_bytes(inner);
    // How much of a file is alive is not known before the memtables that refer to it are flushed.
    let mut spared = inner.blobs.damaged();
    for keyspace in inner.all_keyspaces() {
        let view = keyspace.view.load();
        view.frozen.iter().chain([&view.active]).for_each(|memtable| spared.extend(memtable.blob_files()));
    }
    let lengths = inner.blobs.lengths().into_iter().filter(|(number, _)| !spared.contains(number));
    let shape = |(number, bytes): (u64, u64)| BlobShape {
        number,
        // Without the header: a file of one short value is no garbage, and copying it would not make it less.
        bytes: bytes.saturating_sub(HEADER_BYTES),
        live_bytes: live.get(&number).copied().unwrap_or(0),
    };
    let files = choose(&lengths.map(shape).collect::<Vec<_>>(), eager);
    if inner.blobs.current().is_some_and(|current| files.contains(&current)) {
        inner.blobs.roll();
    }
    files
}

/// The next table to rewrite, if any. Not of a keyspace whose tables leave in the order of their age, which a new one would not have: their blob files stay until
/// they leave. The caller holds the job lock.
pub fn next(inner: &Inner, eager: bool) -> Option<Collection> {
    let files = condemned(inner, eager);
    if files.is_empty() {
        return None;
    }
    let has_age = |keyspace: &KeyspaceInner| matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. });
    inner.all_keyspaces().into_iter().filter(|keyspace| !has_age(keyspace)).find_map(|keyspace| {
        let tree = Arc::clone(&keyspace.view.load().tree);
        let refers = |table: &Arc<Table>| table.summary().blobs.keys().any(|file| files.contains(file));
        let places = tree.runs.iter().enumerate();
        let place = places.filter_map(|(run, tables)| Some((run, tables.tables.iter().position(refers)?))).next();
        let (run, table) = place?;
        Some(Collection { keyspace, tree, plan: Plan::Rewrite { run, table }, files: files.clone() })
    })
}
