//! Reading everything, and checking it.

use crate::db::state::inner::Inner;
use crate::error::{Error, Result};
use crate::table::{Checked, Table};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was checked and found intact.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let report = db.verify()?;
/// println!("{} tables are good", report.tables);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
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

/// What [`crate::Db::verify_with`] tells while it goes on.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let mut damaged = 0;
/// db.verify_with(&mut |event| {
///     if let esker::VerifyEvent::Damage(error) = event {
///         println!("{error}");
///         damaged += 1;
///     }
/// })?;
/// assert_eq!(damaged, 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum VerifyEvent<'a> {
    /// So much is done.
    Progress {
        /// Bytes done.
        done: u64,
        /// All bytes.
        total: u64,
    },
    /// Something is damaged, or cannot be read.
    Damage(&'a Error),
}

/// A check under way.
struct Verifying<'a> {
    tell: &'a mut dyn FnMut(VerifyEvent<'_>),
    total: u64,
    first: Option<Error>,
}

impl Verifying<'_> {
    fn progress(&mut self, done: u64) {
        (self.tell)(VerifyEvent::Progress { done: done.min(self.total), total: self.total });
    }

    fn damage(&mut self, error: Error) {
        (self.tell)(VerifyEvent::Damage(&error));
        self.first.get_or_insert(error);
    }
}

/// Checks every block of every table, their order, their bounds and counts, that runs do not
/// overlap, and every large value that tables refer to. Goes on behind damage, and fails with the
/// first at the end. A file that a job had found damaged and that is intact is no longer reported
/// as damaged.
pub fn verify(inner: &Inner, tell: &mut dyn FnMut(VerifyEvent<'_>)) -> Result<VerifyReport> {
    // Before the tables: what is noted later may be something that this does not look at.
    let damaged = inner.blobs.damaged();
    let keyspaces = inner.all_keyspaces();
    let versions: Vec<_> = keyspaces.iter().map(|keyspace| Arc::clone(&keyspace.read_state.load().version)).collect();
    let tables: BTreeMap<u64, Arc<Table>> = versions
        .iter()
        .flat_map(|version| version.tables())
        .map(|(_, table)| (table.summary().file_number, table))
        .collect();
    let referred = |table: &Table| table.summary().blobs.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let total = tables
        .values()
        .fold(0u64, |sum, table| sum.saturating_add(table.summary().file_bytes).saturating_add(referred(table)));
    let mut verifying = Verifying { tell, total, first: None };
    for version in &versions {
        if let Some((left, right)) = version.overlap() {
            let path = inner.directory.join(crate::version::file_name::table(left));
            verifying.damage(Error::corruption(path, 0, format!("the table overlaps table {right} of its run")));
        }
    }
    let mut report = VerifyReport { wal_segments: inner.log_segments(), ..VerifyReport::default() };
    for table in tables.values() {
        verify_table(inner, table, &mut report, &mut verifying)?;
    }
    match verifying.first {
        Some(error) => Err(error),
        None => {
            inner.blobs.forget_damage(&damaged);
            Ok(report)
        }
    }
}

/// Checks a table, and the large values that it refers to.
fn verify_table(inner: &Inner, table: &Table, report: &mut VerifyReport, verifying: &mut Verifying<'_>) -> Result<()> {
    let before = report.bytes + report.blob_bytes;
    let (mut done, mut is_intact) = (before, true);
    table.verify_all(&mut |checked| {
        match checked {
            Checked::Bytes(bytes) => {
                done += bytes;
                verifying.progress(done);
            }
            Checked::Large(reference) => match inner.blobs.read(reference) {
                Ok(_) => {
                    report.large_values += 1;
                    report.blob_bytes += reference.stored_bytes();
                    done += reference.stored_bytes();
                    verifying.progress(done);
                }
                Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => verifying.damage(error),
                Err(error) => return Err(error),
            },
            Checked::Damage(error) => {
                is_intact = false;
                verifying.damage(error);
            }
        }
        Ok(())
    })?;
    report.tables += 1;
    report.entries += table.summary().entries;
    report.bytes += table.summary().file_bytes;
    if is_intact {
        inner.error_state.forget_damage(table.path());
    }
    Ok(())
}
