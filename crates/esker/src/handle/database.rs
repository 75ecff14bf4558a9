//! The database handle.

use super::batch::Batch;
use super::keyspace::Keyspace;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::transaction::{Transaction, transact};
use crate::db::background::{compaction, flush, run};
use crate::db::lifecycle::{close, drop_keyspace, keyspaces, open};
use crate::db::maintenance::checkpoint::CheckpointMode;
use crate::db::maintenance::metrics::Recorder;
use crate::db::maintenance::repair::RepairReport;
use crate::db::maintenance::stats::{Stats, collect};
use crate::db::maintenance::verify::{VerifyEvent, VerifyReport};
use crate::db::maintenance::{checkpoint, follower_checkpoint, metrics, properties, repair, verify, verify_directory};
use crate::db::state::error_state::Health;
use crate::db::write_controller::condition;
use crate::error::{Error, Result};
use crate::options::{Explanation, KeyspaceOptions, Options, WriteOptions};
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
    /// Costs a sync of the log and a small new file, whatever the keyspace holds; it waits for no
    /// compaction, and for no flush but that of a checkpoint or of an idle database. Its files are
    /// removed in the background, once no earlier snapshot sees them.
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

    /// All keyspaces as they are now. Costs one short lock; while it lives, versions that it sees
    /// are kept. All reads of a snapshot made by a callback of the database fail with
    /// [`crate::Error::InCallback`].
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

    /// Writes everything acknowledged so far into tables.
    ///
    /// # Errors
    /// `Io` if that fails; the writes stay in the log and in memory then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// assert_eq!(db.stats().table_files, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        flush::flush_now(&self.shared.inner)
    }

    /// Flushes, then compacts every keyspace into one sorted run, dropping what no reader can see,
    /// and gives back unused log files. Rewrites the whole database at worst. Large values are
    /// compressed where that pays. With [`crate::CompactionStyle::Fifo`] nothing is compacted.
    ///
    /// # Errors
    /// As [`Db::flush`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// names.delete("ada")?;
    /// db.compact()?;
    /// assert_eq!(db.stats().table_files, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        compaction::compact_now(&self.shared.inner, None)
    }

    /// Waits until the background work of an idle database is done: flushes, compactions, and
    /// compression of the large values written before the call.
    ///
    /// # Errors
    /// What the background work failed with.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.wait_idle()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<()> {
        run::wait_idle(&self.shared.inner)
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// `Io` if the device refuses; the handle is read-only from then on.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// for name in ["ada", "bob", "eve"] {
    ///     names.put(name, "")?;
    /// }
    /// db.sync()?; // from here on all three survive a power loss
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.shared.inner.error_state.check()?;
        self.shared.inner.sync_log()
    }

    /// Writes a copy of the whole database, as of now, that opens as a database of its own. Writing
    /// goes on meanwhile. Tables are hard links where the file system allows, so that the copy
    /// takes little time and space.
    ///
    /// A linked file is the same file as in this database, under a second name. Never change or
    /// truncate it in place: this database reads it, in part through mappings, and what is
    /// truncated it cannot read any more. Deleting the copy, or opening it as a database, does no
    /// harm. For a copy with files of its own there is [`Db::checkpoint_with`].
    ///
    /// On the handle of a [`Follower`](crate::Follower) it is a copy of what a database holds that
    /// another process writes, without its doing; see [`Db::checkpoint_with`].
    ///
    /// # Errors
    /// `InvalidArgument` if `directory` exists and is not empty, or is in the database's own; `Io`;
    /// `ReadOnly` on a handle opened read-only; `Stalled` on that of a follower.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.checkpoint("backup")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with(directory, CheckpointMode::Link)
    }

    /// As [`Db::checkpoint`], with files of its own on request: with [`CheckpointMode::Copy`], what
    /// happens to the files of the copy, or to where they lie on the device, does not happen to
    /// those of this database, nor the other way round.
    ///
    /// Everything that is copied is checked: tables block by block, as they are read, and each
    /// large value when it is in the copy. All of it is on the device before the directory counts
    /// as a database. Writes, flushes and compactions go on meanwhile; files that these replace are
    /// removed when the copy is done.
    ///
    /// On the handle of a [`Follower`](crate::Follower) the call catches up first. It holds every
    /// write that was acknowledged before it, but for writes without log that are not flushed, and
    /// also those that the writer has not synced. Nothing is written to the directory of the
    /// database, and the writer does not wait, whatever it does meanwhile. Blob files are copied
    /// with either mode: the writer may go on appending to them.
    ///
    /// # Errors
    /// `InvalidArgument` if `directory` exists and is not empty, or is in the database's own; `Io`;
    /// `ReadOnly` on a handle opened read-only; on that of a follower `Stalled` if the writer
    /// changes its files faster than they can be opened, and what
    /// [`Follower::catch_up`](crate::Follower::catch_up) returns.
    /// `Corruption` names a damaged file of this database, as [`Db::health`] then does, and the
    /// place in it. After an error there is no copy.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::CheckpointMode;
    /// names.put("ada", "1815")?;
    /// match db.checkpoint_with("backup", CheckpointMode::Copy) {
    ///     Err(esker::Error::Corruption { path, offset, .. }) => println!("{} is damaged at {offset}", path.display()),
    ///     other => other?,
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint_with(&self, directory: impl AsRef<Path>, mode: CheckpointMode) -> Result<()> {
        let (inner, target) = (&self.shared.inner, directory.as_ref());
        match &self.shared.following {
            None => checkpoint::checkpoint(inner, target, mode),
            Some(following) => follower_checkpoint::checkpoint(inner, following, target, mode),
        }
    }

    /// Reads every table and every large value, and checks everything that can be checked. Damage
    /// does not end it: all is read, and [`Db::verify_with`] tells of each.
    ///
    /// # Errors
    /// `Corruption` names the first damaged file and the place in it; `Io` a file that cannot be
    /// read.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// assert_eq!(db.verify()?.tables, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(&mut |_| {})
    }

    /// As [`Db::verify`]; `tell` is called with the progress, and with all damage as it is found.
    ///
    /// # Errors
    /// As [`Db::verify`], after all has been read.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::VerifyEvent;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// db.verify_with(&mut |event| match event {
    ///     VerifyEvent::Damage(error) => println!("{error}"),
    ///     VerifyEvent::Progress { done, total } => println!("{done} of {total} bytes"),
    ///     _ => {}
    /// })?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify_with(&self, tell: &mut dyn FnMut(VerifyEvent<'_>)) -> Result<VerifyReport> {
        verify::verify(&self.shared.inner, tell)
    }

    /// As [`Db::verify_with`], of the database in the directory `path`, which need not open. Takes
    /// no lock and writes nothing; a writer may be at work beside it.
    ///
    /// A database that opens for reading is checked as by [`Db::verify_with`]. Of one that does
    /// not, every part is gone over on its own: the manifest, each table that it names, the log,
    /// and each large value that tables and log refer to. `tell` gets every damaged place that can
    /// be found, and every file that cannot be read. What only damage leads to is not found: the
    /// blocks of a table behind the first damaged one, where its index is damaged too, and the
    /// records of a manifest behind a damaged first one. Where the manifest is damaged, tables that
    /// it does not name are looked at, too.
    ///
    /// Takes the memory of an open of the database. What is done where that fails takes the memory
    /// of the index of a table, and of a record of the log, at a time.
    ///
    /// # Errors
    /// As [`Db::verify`], after all has been read: the first of what `tell` was given. `NotFound`
    /// if there is no database; `MissingComparator`; `Stalled` beside a writer that is too fast.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # esker::Db::open("data", options.clone())?.close()?;
    /// use esker::{Db, VerifyEvent};
    /// let mut damaged = Vec::new();
    /// let result = Db::verify_directory("data", options, &mut |event| {
    ///     if let VerifyEvent::Damage(error) = event {
    ///         damaged.push(error.to_string());
    ///     }
    /// });
    /// assert_eq!(result.is_ok(), damaged.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify_directory(
        path: impl AsRef<Path>,
        options: Options,
        tell: &mut dyn FnMut(VerifyEvent<'_>),
    ) -> Result<VerifyReport> {
        verify_directory::verify_directory(path.as_ref(), &options, tell)
    }

    /// The statistics of this moment. Cheap.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.last_sequence, 1);
    /// println!("{stats}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        collect(&self.shared.inner)
    }

    /// Every option with its present value, its origin, and its trade-off.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-explain-{}", std::process::id()));
    /// use esker::{Db, Options};
    /// let db = Db::open(&directory, Options::default().memory_budget_bytes(64 << 20))?;
    /// assert!(db.explain().to_string().contains("write_buffer_bytes = 16 MiB (from the memory budget)"));
    /// # drop(db);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self) -> Explanation {
        self.shared.inner.options.explain()
    }

    /// Whether the database can be written, and what is wrong if not.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let health = db.health();
    /// assert!(health.writable && health.problem.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn health(&self) -> Health {
        let inner = &self.shared.inner;
        inner.error_state.report(condition::reason(inner), inner.blobs.damage())
    }

    /// The values of [`Db::stats`] and [`Db::health`] under names that do not change, as text:
    /// `esker.memtable.bytes`, and for each keyspace `esker.keyspace.NAME.runs` and others. Counts
    /// are in decimal, sizes in bytes, times in microseconds. Costs what the two cost.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// for (name, value) in db.properties() {
    ///     println!("{name} {value}");
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn properties(&self) -> Vec<(String, String)> {
        let inner = &self.shared.inner;
        let latencies = |timed| inner.latencies.get().map(|latencies| latencies.of(timed));
        properties::properties(&self.stats(), &self.health(), latencies)
    }

    /// The property of that name, one of those that [`Db::properties`] lists; `None` if there is
    /// none. Costs as much as all of them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-property-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// db.keyspace("names", Default::default())?.put("ada", "")?;
    /// assert_eq!(db.property("esker.keyspace.names.memtable_entries").as_deref(), Some("1"));
    /// assert_eq!(db.property("esker.no.such.figure"), None);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn property(&self, name: &str) -> Option<String> {
        self.properties().into_iter().find_map(|(found, value)| (found == name).then_some(value))
    }

    /// Hands every metric of [`METRICS`](crate::METRICS) with its present value to `recorder`, in
    /// that order: for exporters, which call it each time they are asked. No lock is held
    /// meanwhile. Costs what [`Db::stats`] costs, and a few microseconds for each histogram.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let mut text = esker::PrometheusText::new();
    /// db.record(&mut text);
    /// print!("{text}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn record(&self, recorder: &mut dyn Recorder) {
        let inner = &self.shared.inner;
        let latencies = |timed| inner.latencies.get().map(|latencies| latencies.of(timed));
        metrics::record(&self.stats(), &self.health(), latencies, recorder);
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
