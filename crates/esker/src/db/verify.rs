//! Reading everything, and checking it.

use super::inner::Inner;
use crate::error::{Error, Result};
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
    /// Log segments in use. What they hold was checked when the database was opened.
    pub wal_segments: u64,
}

/// Checks every block of every table, their order, their bounds and counts, and that runs do not overlap.
pub fn verify(inner: &Inner, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
    let keyspaces = inner.all_keyspaces();
    let trees: Vec<_> = keyspaces.iter().map(|keyspace| Arc::clone(&keyspace.view.load().tree)).collect();
    for tree in &trees {
        if let Some((left, right)) = tree.overlap() {
            let path = inner.directory.join(crate::version::file_name::table(left));
            return Err(Error::corruption(path, 0, format!("the table overlaps table {right} of its run")));
        }
    }
    let tables: BTreeMap<u64, Arc<Table>> =
        trees.iter().flat_map(|tree| tree.tables()).map(|(_, table)| (table.summary().file_number, table)).collect();
    let total: u64 = tables.values().map(|table| table.summary().file_bytes).sum();
    let mut report = VerifyReport { wal_segments: inner.log_segments(), ..VerifyReport::default() };
    for table in tables.values() {
        let before = report.bytes;
        let mut done = before;
        table.verify(&mut |bytes| {
            done += bytes;
            progress(done.min(total), total);
        })?;
        report.tables += 1;
        report.entries += table.summary().entries;
        report.bytes = before + table.summary().file_bytes;
        progress(report.bytes, total);
    }
    Ok(report)
}
