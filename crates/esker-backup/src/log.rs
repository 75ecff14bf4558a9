//! The log of a target: which backups exist.
//!
//! A record is committed by putting it, if nothing is there, under the number after the highest
//! one. So all creates and prunes of a target are in one order, and the one that commits number N
//! has read the log up to N - 1; otherwise its put fails, and it reads again.
//!
//! * The newest prune says which of the backups before it are kept. All others before it do not
//!   exist; all backups behind it do.
//! * A prune removes records below its own number that are not kept. So the record with the highest
//!   number always stays, and numbers from the newest prune on have no gap. A listing that has one
//!   was taken while records were added, and is taken again.
//! * A number that was used and removed is below a prune that does not keep it. A put that comes so
//!   late that it finds such a number free makes no backup; its maker sees that, and commits again.
//!
//! Nothing here relies on clocks. It takes a store whose put-if-absent is atomic and whose listings
//! show every put that was acknowledged before.

use crate::error::{Error, Result};
use crate::layout;
use crate::record::{BackupRecord, Kind, PruneRecord, Record, Unreadable, decode, encode};
use crate::store::Store;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Listings in a row that show a state in the middle of a change.
const ATTEMPTS: usize = 20;

/// The log at one moment.
pub struct Log {
    /// The number of the next record.
    pub next: u64,
    /// The backups that exist, ascending.
    pub backups: Vec<u64>,
    /// All records that are there.
    pub numbers: Vec<u64>,
    /// The newest prune.
    pub newest_prune: Option<u64>,
    /// The uploads that it condemns.
    pub condemned: BTreeSet<String>,
}

/// A record that was read.
type Read = Rc<std::result::Result<Record, Unreadable>>;

/// A record of a backup, or why it cannot be read.
pub type ReadBackup = std::result::Result<BackupRecord, String>;

/// Reads the log, and each record once: a record never changes.
pub struct LogReader<'a> {
    store: &'a Store<'a>,
    records: RefCell<BTreeMap<u64, Read>>,
}

impl<'a> LogReader<'a> {
    /// Of this store.
    pub fn new(store: &'a Store<'a>) -> LogReader<'a> {
        LogReader { store, records: RefCell::default() }
    }

    /// The log as it is now.
    pub async fn read(&self) -> Result<Log> {
        for _ in 0..ATTEMPTS {
            let listed = self.store.list(layout::LOG).await?;
            let numbers: BTreeSet<u64> =
                listed.iter().filter_map(|listed| layout::record_number(&listed.file_name)).collect();
            if let Some(log) = self.consistent(numbers.into_iter().collect()).await? {
                return Ok(log);
            }
            tokio::task::yield_now().await;
        }
        Err(Error::damaged(layout::LOG, "a record is missing that no prune has removed"))
    }

    /// The log with these records, unless they cannot be all.
    async fn consistent(&self, numbers: Vec<u64>) -> Result<Option<Log>> {
        let newest = numbers.last().copied().unwrap_or(0);
        let descending = stream::iter(numbers.iter().rev().copied());
        let mut records = descending.map(|number| self.fetch(number)).buffered(self.store.transfers.parallel);
        let mut expected = newest;
        let mut prune = None;
        while let Some(found) = records.next().await {
            let Some((number, record)) = found? else { return Ok(None) };
            if number != expected {
                return Ok(None);
            }
            expected -= 1;
            match &*record {
                Ok(Record::Prune(record)) => {
                    prune = Some((number, record.clone()));
                    break;
                }
                Ok(Record::Backup(_)) | Err(Unreadable { kind: Some(Kind::Backup), .. }) => {}
                Err(unreadable) => return Err(again(&unreadable.error)),
            }
        }
        drop(records);
        if prune.is_none() && expected != 0 {
            return Ok(None);
        }
        let newest_prune = prune.as_ref().map(|(number, _)| *number);
        let PruneRecord { kept, condemned, .. } = prune.map(|(_, record)| record).unwrap_or_default();
        let newer = numbers.iter().copied().filter(|&number| newest_prune.is_none_or(|prune| number > prune));
        let backups: BTreeSet<u64> = kept.into_iter().chain(newer).collect();
        let condemned = condemned.into_iter().collect();
        // Numbers of ten digits and more sort as text up to here, which listings in pages rely on.
        let next = newest.checked_add(1).ok_or(Error::Contended)?;
        Ok(Some(Log { next, backups: backups.into_iter().collect(), numbers, newest_prune, condemned }))
    }

    /// The record with this number, if it is still there.
    async fn fetch(&self, number: u64) -> Result<Option<(u64, Read)>> {
        if let Some(record) = self.records.borrow().get(&number) {
            return Ok(Some((number, Rc::clone(record))));
        }
        let bytes = match self.store.get(&layout::record(number)).await {
            Err(error) if error.is_missing_object() => return Ok(None),
            bytes => bytes?,
        };
        let record = Rc::new(decode(number, &bytes));
        self.records.borrow_mut().insert(number, Rc::clone(&record));
        Ok(Some((number, record)))
    }

    /// The backup with this number, whether it exists by the log or not.
    pub async fn backup(&self, number: u64) -> Result<Option<ReadBackup>> {
        let Some((_, record)) = self.fetch(number).await? else { return Ok(None) };
        Ok(match &*record {
            Ok(Record::Backup(backup)) => Some(Ok(backup.clone())),
            Ok(Record::Prune(_)) => None,
            Err(unreadable) => Some(Err(reason(&unreadable.error))),
        })
    }

    /// The log and all backups that exist, at one moment.
    pub async fn read_all(&self) -> Result<(Log, BTreeMap<u64, ReadBackup>)> {
        for attempt in 1.. {
            let log = self.read().await?;
            let numbers = stream::iter(log.backups.iter().copied());
            let read = numbers.map(async |number| Ok::<_, Error>((number, self.backup(number).await?)));
            let read: Vec<_> = read.buffer_unordered(self.store.transfers.parallel).try_collect().await?;
            // What a prune has removed meanwhile is not in the log that is read next.
            if attempt < ATTEMPTS && read.iter().any(|(_, backup)| backup.is_none()) {
                continue;
            }
            let missing = || Err("its record is missing".into());
            return Ok((log, read.into_iter().map(|(n, backup)| (n, backup.unwrap_or_else(missing))).collect()));
        }
        Err(Error::Contended)
    }

    /// Puts the record under this number. Returns whether it is in force; if not, nothing was done,
    /// and the log has changed.
    pub async fn commit(&self, number: u64, record: &Record) -> Result<bool> {
        self.store.check_cancelled()?;
        let (name, bytes) = (layout::record(number), encode(number, record)?);
        match self.store.put_new(&name, &bytes).await {
            Ok(true) => {}
            // An attempt whose answer was lost may have put it.
            outcome => match (outcome, self.store.get(&name).await) {
                (_, Ok(found)) if found == bytes => {}
                (Ok(_), Err(error)) if !error.is_missing_object() => return Err(error),
                (Ok(_), _) => return Ok(false),
                (Err(error), _) => return Err(error),
            },
        }
        let log = self.read().await?;
        Ok(match record {
            Record::Backup(_) => log.backups.contains(&number),
            Record::Prune(_) => log.newest_prune == Some(number),
        })
    }
}

/// The same error once more: the first stays with the record.
fn again(error: &Error) -> Error {
    match error {
        Error::Damaged { object, what } => Error::Damaged { object: object.clone(), what: what.clone() },
        Error::Unsupported { object, what } => Error::Unsupported { object: object.clone(), what: what.clone() },
        other => Error::damaged(layout::LOG, other.to_string()),
    }
}

/// What is wrong, without the object.
fn reason(error: &Error) -> String {
    match error {
        Error::Damaged { what, .. } | Error::Unsupported { what, .. } => what.clone(),
        other => other.to_string(),
    }
}
