//! What of the formats the databases of a test had: a test of which none had a large value, say,
//! would show nothing about them.

use crate::directory::Database;
use crate::operation::{Kind, Operation};
use esker::Compression;
use std::collections::BTreeSet;

/// Names of parts of the formats.
pub type Features = BTreeSet<String>;

/// What databases of random work have.
#[rustfmt::skip]
const USUAL: &[&str] = &[
    "Delete in a table", "Delete in the log", "MergeOntoNothing in the log", "MergeOntoNothing in the log, expiring",
    "Merge in a table", "Merge in a table, expiring", "Merge in the log", "Merge in the log, expiring",
    "Put in a table", "Put in a table, expiring", "Put in the log", "Put in the log, expiring",
    "PutBlob in a table", "PutBlob in a table, expiring", "PutBlob in the log", "PutBlob in the log, expiring",
    "blob file of version 1", "blob file of version 2", "compressed values in a blob file of version 2",
    "plain values in one of version 2", "blocks with compression 0", "blocks with compression 1",
    "field 1", "field 2", "field 3", "field 4", "field 5", "field 6", "field 7", "field 9", "field 10",
    "field 12", "field 13", "field 14", "field 15", "field 16", "field 17", "field 18",
    "filter", "filter of the program", "flag 1", "flag 2", "flag 8", "flag 32", "flag 64",
    "log of several segments", "log that was not closed", "manifest of version 3", "manifest of version 4",
    "manifest of version 5", "manifest of version 6", "no flag 1", "no flag 2", "no flag 8", "no flag 32", "no flag 64", "operator ",
    "operator bitor", "operator bytesxor", "operator int64add", "operator max", "operator min", "operator put",
    "operator stringappend", "operator uint64add", "range delete in the log", "range deletes in a table",
    "range that was deleted twice", "range without end", "segment that was used again", "style 0", "style 1",
    "style 2", "style 3", "table without entries", "table without filter", "tables with keys in the order bytewise",
    "tables with keys in the order reverse-bytewise", "tables with keys in the order shortest-first",
];

/// And where the build has zstd.
const WITH_ZSTD: &[&str] =
    &["blob file of version 3", "compressed values in a blob file of version 3", "blocks with compression 2"];

/// Fails unless all of that was met, and more. Not of a run with seeds of the caller's.
pub fn assert_usual(met: &Features, more: &[&str]) {
    if std::env::var_os("ESKER_SEED").is_some() {
        return;
    }
    let zstd = if Compression::Zstd.is_available() { WITH_ZSTD } else { &[] };
    let missing: Vec<_> = [USUAL, zstd, more].concat().into_iter().filter(|&one| !met.contains(one)).collect();
    assert!(missing.is_empty(), "no database had {missing:?}");
}

impl Database {
    /// Adds what this database has.
    pub fn add_features(&self, all: &mut Features) {
        let mut add = |is_there: bool, what: String| all.extend(is_there.then_some(what));
        add(true, format!("manifest of version {}", self.manifest.version));
        add(!self.manifest.is_vouched, "manifest whose last edit has no voucher".into());
        add(self.manifest.is_torn, "manifest with a torn end".into());
        for field in &self.manifest.fields {
            add(true, format!("field {field}"));
        }
        for keyspace in self.manifest.keyspaces.values() {
            add(true, format!("style {}", keyspace.style.0));
            add(true, format!("operator {}", keyspace.operator.split(':').next().unwrap_or_default()));
            add(!keyspace.tables.is_empty(), format!("tables with keys in the order {}", keyspace.comparator));
        }
        add(self.log.is_closed, "log that was closed".into());
        add(!self.log.is_closed, "log that was not closed".into());
        add(self.log.chain.len() > 1, "log of several segments".into());
        add(self.log.is_used_again, "segment that was used again".into());
        add(self.log.is_cut, "log that ends before its last segment".into());
        add(self.log.lost_a_link, "log that ends before a segment without link".into());
        for operation in self.log.batches.iter().flat_map(|batch| &batch.operations) {
            match operation {
                Operation::Write { kind, expiry, .. } => {
                    let expires = if *expiry == 0 { "" } else { ", expiring" };
                    add(true, format!("{kind:?} in the log{expires}"));
                }
                Operation::DeleteRange { .. } => add(true, "range delete in the log".into()),
            }
        }
        self.add_features_of_files(all);
    }

    fn add_features_of_files(&self, all: &mut Features) {
        let mut add = |is_there: bool, what: String| all.extend(is_there.then_some(what));
        for table in self.tables.values() {
            for kind in [Kind::Delete, Kind::Put, Kind::Merge, Kind::MergeOntoNothing, Kind::PutBlob] {
                let of_kind = || table.entries.iter().filter(|entry| entry.kind == kind);
                add(of_kind().any(|entry| entry.expiry == 0), format!("{kind:?} in a table"));
                add(of_kind().any(|entry| entry.expiry != 0), format!("{kind:?} in a table, expiring"));
            }
            for bit in 0..7 {
                add(table.flags.0 >> bit & 1 == 1, format!("flag {}", 1 << bit));
                add(table.flags.1 >> bit & 1 == 1, format!("no flag {}", 1 << bit));
            }
            let tombstones = &table.properties.tombstones;
            add(!tombstones.is_empty(), "range deletes in a table".into());
            add(!tombstones.is_empty() && table.entries.is_empty(), "table without entries".into());
            add(tombstones.iter().any(|one| one.sequences.len() > 1), "range that was deleted twice".into());
            add(tombstones.iter().any(|one| one.end.is_empty()), "range without end".into());
            add(table.has_filter, "filter".into());
            add(!table.has_filter && !table.entries.is_empty(), "table without filter".into());
            add(table.properties.policy.is_some(), "filter of the program".into());
            for (kind, _) in table.compressions.iter().enumerate().filter(|(_, has)| **has) {
                add(true, format!("blocks with compression {kind}"));
            }
        }
        for blob in self.blobs.values() {
            let (values, compressed) = blob.counts();
            add(values > 0, format!("blob file of version {}", blob.version));
            add(compressed > 0, format!("compressed values in a blob file of version {}", blob.version));
            add(values > compressed && blob.version > 1, format!("plain values in one of version {}", blob.version));
        }
    }
}
