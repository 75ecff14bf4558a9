//! The database handle.

use super::batch::Batch;
use super::keyspace::Keyspace;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::transaction::{Transaction, transact};
use crate::db::background::run;
use crate::db::lifecycle::{close, drop_keyspace, keyspaces, open};
use crate::db::maintenance::repair::{self, RepairReport};
use crate::error::{Error, Result};
use crate::options::{KeyspaceOptions, Options, WriteOptions};
use std::path::Path;
use std::sync::Arc;

/// An open database. Cheap to clone; all clones are the same database, usable from any thread.
///
/// Dropping the last handle stops background work and releases the lock. It writes nothing: what
/// was acknowledged is in the log already, and what was written with
/// [`crate::WriteOptions::disable_wal`] since the last flush is lost. [`Db::close`] flushes that,
/// and reports errors.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-db-{}", std::process::id()));
/// use esker::{Db, KeyspaceOptions, Options, merge::UInt64Add};
/// let db = Db::open(&directory, Options::default())?;
/// let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
/// hits.merge(b"/index.html", 1u64.to_le_bytes())?;
/// hits.merge(b"/index.html", 1u64.to_le_bytes())?;
/// assert_eq!(hits.get(b"/index.html")?.as_deref(), Some(&2u64.to_le_bytes()[..]));
/// # drop((hits, db));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    pub(crate) shared: Arc<Shared>,
}

impl Db {
    /// Opens the database in the directory `path`, creating both unless the options say otherwise.
    /// The time taken grows with the size of the log since the last flush, not with the size of the
    /// database.
    ///
    /// # Errors
    /// `Locked` if another handle has it open; `NotFound` if it is missing and must not be created;
    /// `InvalidArgument` for impossible options or a directory that holds something else;
    /// `Corruption` and `Unsupported` name the file; `Io` whatever the system refuses.
    ///
    /// ```
    /// use esker::{Db, Options, env::mem::MemEnv};
    /// // A database in memory; leave the environment out for one on disk.
    /// let db = Db::open("data", Options::default().env(std::sync::Arc::new(MemEnv::new())))?;
    /// assert_eq!(db.path(), std::path::Path::new("data"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let inner = Arc::new(open::open(path.as_ref(), options)?);
        let shared = Arc::new(Shared::new(inner));
        let inner = &shared.inner;
        if !inner.inline_jobs() {
            let for_thread = Arc::clone(inner);
            let thread = std::thread::Builder::new()
                .name("esker-background".into())
                .spawn(move || run::run(&for_thread))
                .map_err(|source| Error::io("start the background thread of", path.as_ref(), source))?;
            *shared.thread.lock() = Some(thread);
        }
        if inner.events.wanted() {
            let events = inner.events.clone();
            let thread = std::thread::Builder::new()
                .name("esker-events".into())
                .spawn(move || events.deliver())
                .map_err(|source| Error::io("start the event thread of", path.as_ref(), source))?;
            *shared.teller.lock() = Some(thread);
        }
        inner.wake();
        Ok(Db { shared })
    }

    /// Opens an existing database for reading only, beside a running writer if there is one. Takes
    /// no lock and writes nothing; sees the writes acknowledged before the call, and none after it.
    ///
    /// # Errors
    /// As [`Db::open`]; `NotFound` if there is no database. Later writes through the handle are
    /// refused with `ReadOnly`.
    ///
    /// ```
    /// use esker::{Db, Options, env::mem::MemEnv};
    /// let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// let writer = Db::open("data", options.clone())?;
    /// writer.keyspace("names", Default::default())?.put("ada", "1815")?;
    /// let reader = Db::open_read_only("data", options)?;
    /// let names = reader.existing_keyspace("names")?;
    /// assert_eq!(names.get("ada")?.as_deref(), Some(&b"1815"[..]));
    /// assert!(names.put("bob", "").is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let inner = Arc::new(open::open_read_only(path.as_ref(), options)?);
        Ok(Db { shared: Arc::new(Shared::new(inner)) })
    }

    /// Makes a damaged database open again, with everything of it that can be read, and reports the
    /// rest as lost. No handle may have it open. A database that opens and verifies is left as it
    /// is. Reads everything; it moves unusable files to the sub-directory `lost`, and deletes
    /// nothing.
    ///
    /// Damaged tables are replaced by copies of their intact blocks. The log is replayed as far as
    /// it can be read. Without a manifest, each table names its keyspace. A repair that was
    /// interrupted can be run again.
    ///
    /// What was lost may have been newer than what was kept: an older value, or a deleted key, can
    /// show again. A checkpoint is better.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Locked`; `Unsupported` for files of a newer version;
    /// `Io`: a device that cannot be read is to be copied to another first. Nothing is changed
    /// then.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # esker::Db::open("data", options.clone())?.close()?;
    /// let report = esker::Db::repair("data", options)?;
    /// assert!(report.healthy); // nothing was wrong, so nothing was changed
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn repair(path: impl AsRef<Path>, options: Options) -> Result<RepairReport> {
        repair::repair(path.as_ref(), &options)
    }

    /// The keyspace of that name, created with these options if it is missing.
    ///
    /// The merge operator's name is stored at creation. Built-in operators attach by that name at
    /// every open; a custom one must be supplied again, else reads of merged keys fail with
    /// `MissingMergeOperator`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unusable name, or if the keyspace was created with another merge
    /// operator (both names are given); `ReadOnly` if it would have to be created and cannot.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, merge::Max};
    /// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max))?;
    /// best.merge("ada", "7")?;
    /// assert!(db.keyspace("best", KeyspaceOptions::default().merge_operator(esker::merge::Min)).is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let keyspace = keyspaces::open_or_create(&self.shared.inner, name, options)?;
        Ok(Keyspace { shared: Arc::clone(&self.shared), inner: keyspace })
    }

    /// The existing keyspace of that name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// db.keyspace("names", Default::default())?;
    /// assert!(db.existing_keyspace("names").is_ok());
    /// assert!(matches!(db.existing_keyspace("nmaes"), Err(esker::Error::NotFound { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn existing_keyspace(&self, name: &str) -> Result<Keyspace> {
        let found = keyspaces::find(&self.shared.inner, name);
        let keyspace = found.ok_or_else(|| Error::NotFound { what: format!("keyspace {name:?}") })?;
        Ok(Keyspace { shared: Arc::clone(&self.shared), inner: keyspace })
    }

    /// Drops the keyspace of that name: it is gone at once, with all that is in it, as one atomic
    /// write which is durable when this returns. The name can be used again at once, with other
    /// options.
    ///
    /// Snapshots, iterators and transactions that began before read on. Every other call on a
    /// handle of the keyspace is refused with `KeyspaceDropped`, and so is the commit of a batch or
    /// a transaction with operations on it, all of it.
    ///
    /// Costs a sync of the log and a small new file, which lists the other keyspaces and their
    /// tables, whatever the keyspace holds; it waits for no compaction, and for no flush but that
    /// of a checkpoint or of an idle database. Its files are removed in the background, once no
    /// earlier snapshot sees them.
    ///
    /// # Errors
    /// `NotFound` if there is no keyspace of that name; `ReadOnly`; `Io`. On a full disk the
    /// keyspace stays, and can be dropped later; after another failure the handle takes no more
    /// writes, and the next open finds the keyspace whole or gone.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let visits = db.keyspace("visits", Default::default())?;
    /// visits.put("ada", "1")?;
    /// let before = db.snapshot();
    /// db.drop_keyspace("visits")?;
    /// assert!(db.keyspaces().is_empty());
    /// assert!(matches!(visits.get("ada"), Err(esker::Error::KeyspaceDropped { .. })));
    /// assert!(before.get(&visits, "ada")?.is_some());
    /// let visits = db.keyspace("visits", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// assert!(visits.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        drop_keyspace::drop_keyspace(&self.shared.inner, name)
    }

    /// The names of all keyspaces, ascending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// db.keyspace("names", Default::default())?;
    /// db.keyspace("emails", Default::default())?;
    /// assert_eq!(db.keyspaces(), ["emails", "names"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspaces(&self) -> Vec<String> {
        self.shared.inner.all_keyspaces().iter().map(|keyspace| keyspace.name().to_string()).collect()
    }

    /// A snapshot of all keyspaces as they are now. Takes one lock for a moment. The engine keeps
    /// the versions that the snapshot sees until it is dropped. All reads of a snapshot made by a
    /// callback of the database fail with [`crate::Error::InCallback`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let before = db.snapshot();
    /// names.put("ada", "1816")?;
    /// assert_eq!(before.get(&names, "ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use = "a snapshot keeps nothing once it is dropped"]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.shared))
    }

    /// An empty batch: operations on any keyspaces of this database that take effect together or
    /// not at all.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// batch.delete(&names, "bob")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.shared))
    }

    /// Begins a transaction: reads and writes that take effect together, if no other writer has
    /// written in the meantime what it read. Costs what a snapshot costs. One that a callback of
    /// the database begins neither reads nor commits.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// if transaction.get(&names, "ada")?.is_none() {
    ///     transaction.put(&names, "ada", "1815")?;
    /// }
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.shared))
    }

    /// Runs `body` in a transaction and commits it; after a conflict again, in a new one,
    /// `attempts` times at most (0 counts as 1). `body` must have no effect but through the
    /// transaction, because it may run several times.
    ///
    /// An error of `body` ends the transaction without a commit. It may be of any type that an
    /// [`Error`] converts into. Where `?` is used both in `body` and on the result, the compiler
    /// cannot know which one: say so in the closure, as here.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let seats = db.keyspace("seats", Default::default())?;
    /// let was_free = db.transact(10, |transaction| -> esker::Result<bool> {
    ///     let is_free = transaction.get(&seats, "12a")?.is_none();
    ///     if is_free {
    ///         transaction.put(&seats, "12a", "ada")?;
    ///     }
    ///     Ok(is_free)
    /// })?;
    /// assert!(was_free);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// With an error of the program's own:
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let seats = db.keyspace("seats", Default::default())?;
    /// #[derive(Debug)]
    /// enum Refused {
    ///     Taken,
    ///     Failed(esker::Error),
    /// }
    /// impl From<esker::Error> for Refused {
    ///     fn from(error: esker::Error) -> Refused {
    ///         Refused::Failed(error)
    ///     }
    /// }
    /// let reserve = || -> Result<(), Refused> {
    ///     db.transact(10, |transaction| match transaction.get(&seats, "12a")? {
    ///         Some(_) => Err(Refused::Taken),
    ///         None => Ok(transaction.put(&seats, "12a", "ada")?),
    ///     })
    /// };
    /// assert!(reserve().is_ok());
    /// assert!(matches!(reserve(), Err(Refused::Taken)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first of `body`, which is not run again then, and those of [`Transaction::commit`];
    /// `Conflict` if every attempt met one.
    pub fn transact<T, E: From<Error>>(
        &self,
        attempts: usize,
        body: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        transact(&self.shared, attempts, &WriteOptions::new(), body)
    }

    /// As [`Db::transact`], with options for the commits.
    ///
    /// # Errors
    /// As [`Db::transact`], and those of [`Transaction::commit_with`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let seats = db.keyspace("seats", Default::default())?;
    /// let synced = esker::WriteOptions::new().sync(true);
    /// db.transact_with(10, &synced, |transaction| transaction.put(&seats, "12a", "ada"))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transact_with<T, E: From<Error>>(
        &self,
        attempts: usize,
        options: &WriteOptions,
        body: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        transact(&self.shared, attempts, options, body)
    }

    /// Flushes what was written without log, makes everything durable, marks the log as complete,
    /// stops background work and releases the lock. Other handles of the database can still read;
    /// their writes are refused.
    ///
    /// # Errors
    /// What could not be made durable; the handle is closed all the same. `InCallback`: other
    /// handles go on then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.close()?;
    /// assert!(names.put("bob", "").is_err());
    /// assert!(names.get("ada")?.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        self.shared.inner.refuse_in_callback()?;
        let result = close::close(&self.shared.inner);
        self.shared.stop();
        result
    }

    /// The directory.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// assert_eq!(db.path(), std::path::Path::new("data"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.shared.inner.directory
    }
}
