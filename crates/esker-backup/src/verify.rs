//! Reading backups back, and comparing every byte with what was written.

use crate::error::{Error, Result};
use crate::log::{LogReader, ReadBackup};
use crate::record::FileRecord;
use crate::store::{Meter, Store};
use crate::transfers::Phase;
use crate::{layout, moving};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;

/// What a verification has read, and the damage it has found.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// let report = target.verify(None)?;
/// println!("{} objects of {} backups", report.objects, report.backups.len());
/// assert!(report.damage.is_empty());
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The numbers of the backups that were verified, ascending.
    pub backups: Vec<u64>,
    /// How many objects were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// All that is wrong.
    pub damage: Vec<BackupDamage>,
}

/// An object that is damaged or missing.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// for damage in target.verify(None)?.damage {
///     println!("{}: {} ({:?})", damage.object, damage.what, damage.backups);
/// }
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupDamage {
    /// The object.
    pub object: String,
    /// What is wrong with it.
    pub what: String,
    /// The backups that cannot be restored for it, ascending.
    pub backups: Vec<u64>,
}

/// The backups that the caller means: this one, or all.
pub async fn chosen(store: &Store<'_>, number: Option<u64>) -> Result<BTreeMap<u64, ReadBackup>> {
    let reader = LogReader::new(store);
    let Some(number) = number else { return Ok(reader.read_all().await?.1) };
    let missing = || Error::no_backup(format_args!("backup {number}"));
    let backup = match reader.read().await {
        Ok(log) if !log.backups.contains(&number) => return Err(missing()),
        Ok(_) => reader.backup(number).await?,
        // A damaged record elsewhere in the log: what this one names is checked all the same.
        Err(Error::Damaged { .. } | Error::Unsupported { .. }) => reader.backup(number).await?,
        Err(error) => return Err(error),
    };
    Ok(BTreeMap::from([(number, backup.ok_or_else(missing)?)]))
}

/// Reads the objects of one backup, or of all.
pub async fn verify(store: &Store<'_>, number: Option<u64>) -> Result<VerifyReport> {
    let backups = chosen(store, number).await?;
    let mut report = VerifyReport { backups: backups.keys().copied().collect(), ..VerifyReport::default() };
    let mut objects: BTreeMap<String, (FileRecord, Vec<u64>)> = BTreeMap::new();
    for (&number, backup) in &backups {
        match backup {
            Ok(backup) => {
                for file in &backup.files {
                    let entry = objects.entry(file.object()).or_insert_with(|| (file.clone(), Vec::new()));
                    if entry.1.last() != Some(&number) {
                        entry.1.push(number);
                    }
                }
            }
            Err(what) => {
                let object = layout::record(number);
                report.damage.push(BackupDamage { object, what: what.clone(), backups: vec![number] });
            }
        }
    }
    report.objects = objects.len() as u64;
    report.bytes = objects.values().map(|(file, _)| file.size).sum();
    let meter = Meter::new(Phase::Verifying, report.bytes, store.transfers);
    let meter = &meter;
    let reads = stream::iter(objects.into_values()).map(async |(file, backups)| {
        match moving::download(store, &file, None, meter).await {
            Ok(()) => Ok(None),
            Err(Error::Damaged { object, what }) => Ok(Some(BackupDamage { object, what, backups })),
            Err(error) => Err(error),
        }
    });
    let found: Vec<Option<BackupDamage>> = reads.buffer_unordered(store.transfers.parallel).try_collect().await?;
    report.damage.extend(found.into_iter().flatten());
    report.damage.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(report)
}
