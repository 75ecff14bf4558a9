//! Reading everything, and checking it.

use crate::base::blob_reference::BlobReference;
use crate::base::key::Kind;
use crate::db::state::inner::Inner;
use crate::error::{Error, Result, escape_key};
use crate::iter::Cursor as _;
use crate::table::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was checked and found intact.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let report = db.verify(&mut |_, _| {})?;
/// println!("{} tables are good", report.tables);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Large values read: those that tables refer to.
    pub large_values: u64,
    /// Bytes of them in blob files.
    pub blob_bytes: u64,
    /// Log segments in use. What they hold was checked when the database was opened.
    pub wal_segments: u64,
}

/// Checks every block of every table, their order, their bounds and counts, that runs do not
/// overlap, and every large value that tables refer to. A file that a job had found damaged and
/// that is intact is no longer reported as damaged.
pub fn verify(inner: &Inner, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
    // Before the tables: what is noted later may be something that this does not look at.
    let damaged = inner.blobs.damaged();
    let keyspaces = inner.all_keyspaces();
    let versions: Vec<_> = keyspaces.iter().map(|keyspace| Arc::clone(&keyspace.read_state.load().version)).collect();
    for version in &versions {
        if let Some((left, right)) = version.overlap() {
            let path = inner.directory.join(crate::version::file_name::table(left));
            return Err(Error::corruption(path, 0, format!("the table overlaps table {right} of its run")));
        }
    }
    let tables: BTreeMap<u64, Arc<Table>> = versions
        .iter()
        .flat_map(|version| version.tables())
        .map(|(_, table)| (table.summary().file_number, table))
        .collect();
    let referred = |table: &Table| table.summary().blobs.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let total = tables
        .values()
        .fold(0u64, |sum, table| sum.saturating_add(table.summary().file_bytes).saturating_add(referred(table)));
    let mut report = VerifyReport { wal_segments: inner.log_segments(), ..VerifyReport::default() };
    for table in tables.values() {
        let before = report.bytes + report.blob_bytes;
        let mut done = before;
        table.verify(&mut |bytes| {
            done += bytes;
            progress(done.min(total), total);
        })?;
        inner.error_state.forget_damage(table.path());
        report.tables += 1;
        report.entries += table.summary().entries;
        report.bytes += table.summary().file_bytes;
        progress((report.bytes + report.blob_bytes).min(total), total);
        each_large(table, &mut |reference| {
            inner.blobs.read(reference)?;
            report.large_values += 1;
            report.blob_bytes += reference.stored_bytes();
            progress((report.bytes + report.blob_bytes).min(total), total);
            Ok(())
        })?;
    }
    inner.blobs.forget_damage(&damaged);
    Ok(report)
}

/// Calls `visit` with every reference to a large value in the table, which is intact.
pub fn each_large(table: &Arc<Table>, visit: &mut dyn FnMut(&BlobReference) -> Result<()>) -> Result<()> {
    if table.summary().blobs.is_empty() {
        return Ok(());
    }
    let mut cursor = table.cursor(false);
    cursor.seek_to_first()?;
    while cursor.valid() {
        let entry = cursor.entry();
        if entry.kind == Kind::PutBlob {
            let Some(reference) = BlobReference::decode(entry.value) else {
                let what = format!("the reference to the large value of key {} is malformed", escape_key(entry.key));
                return Err(Error::corruption(table.path(), 0, what));
            };
            visit(&reference)?;
        }
        cursor.next()?;
    }
    Ok(())
}
