//! The handle of a place with backups.

use crate::create;
use crate::error::{Error, Result};
use crate::forward::Forward;
use crate::log::LogReader;
use crate::origin::{self, About};
use crate::prune::{self, Prune, PruneReport};
use crate::record::BackupRecord;
use crate::source::{Create, Source};
use crate::store::Store;
use crate::transfers::Transfers;
use crate::verify::{self, VerifyReport};
use crate::{forward, restore};
use esker::Db;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use url::Url;

/// A backup that exists.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// for backup in target.list()?.backups {
///     println!("{}: {} files, up to write {}", backup.number, backup.files, backup.sequence);
/// }
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its number in the target; later ones have greater numbers, not always the next one.
    pub number: u64,
    /// The time of the backup, by the clock of the process that made it.
    pub time: SystemTime,
    /// The version of Esker that made it.
    pub esker_version: String,
    /// The sequence number of the last write in it.
    pub sequence: u64,
    /// The names of its keyspaces.
    pub keyspaces: Vec<String>,
    /// The directory of the database that it was made of; earlier versions do not say it.
    pub directory: Option<String>,
    /// How many files it has.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Backup {
    fn new(number: u64, record: &BackupRecord) -> Backup {
        Backup {
            number,
            time: UNIX_EPOCH + Duration::from_millis(record.time_ms),
            esker_version: record.esker.clone(),
            sequence: record.sequence,
            keyspaces: record.keyspaces.clone(),
            directory: record.directory.clone(),
            files: record.files.len() as u64,
            bytes: record.files.iter().map(|file| file.size).sum(),
        }
    }
}

/// What a target holds.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// let listed = target.list()?;
/// println!("{} backups", listed.backups.len());
/// for (number, what) in listed.damaged {
///     println!("{number} is damaged: {what}");
/// }
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backups {
    /// The backups, oldest first.
    pub backups: Vec<Backup>,
    /// Backups whose record cannot be read, each with the reason.
    pub damaged: Vec<(u64, String)>,
}

/// What was made, and what it took.
///
/// ```
/// # let place = tempfile::tempdir()?;
/// # let db = esker::Db::open(place.path().join("data"), esker::Options::default())?;
/// # let target = esker_backup::Target::new_directory(place.path().join("backups"))?;
/// let created = target.create(&db, &esker_backup::Create::default())?;
/// let (number, files) = (created.backup.number, created.copied_files);
/// println!("backup {number}: {files} files copied");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// The new backup.
    pub backup: Backup,
    /// How many files the target lacked, so that they were copied.
    pub copied_files: u64,
    /// Their bytes.
    pub copied_bytes: u64,
}

/// What was restored.
///
/// ```
/// # fn restore(target: &esker_backup::Target) -> esker_backup::Result<()> {
/// let forward = esker_backup::Forward::new("data");
/// let restored = target.restore_forward(None, "restored", &forward)?;
/// println!("backup {}, then up to write {}", restored.backup.number, restored.sequence);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The backup that it began with.
    pub backup: Backup,
    /// The number of the last write that was applied, in the database that the changes are of.
    pub sequence: u64,
}

/// A place with the backups of one database: a directory, or a part of an object store.
///
/// Any number of handles, processes and machines may use a target at the same time. All calls
/// block; they can be made in a thread of an asynchronous runtime too. Clones share the
/// connections.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # let path = |name: &str| place.path().join(name);
/// use esker::{Db, KeyspaceOptions, Options};
/// use esker_backup::{Create, Prune, Target};
///
/// let db = Db::open(path("data"), Options::default())?;
/// let names = db.keyspace("names", KeyspaceOptions::default())?;
/// names.put("ada", "1815")?;
///
/// let target = Target::new_directory(path("backups"))?;
/// let created = target.create(&db, &Create::default())?;
/// names.put("ada", "1852")?;
/// target.create(&db, &Create::default())?; // copies what is new
///
/// target.restore(Some(created.backup.number), path("then"))?;
/// let then = Db::open(path("then"), Options::default())?;
/// assert_eq!(then.existing_keyspace("names")?.get("ada")?.as_deref(), Some(&b"1815"[..]));
///
/// assert!(target.verify(None)?.damage.is_empty());
/// target.prune(&Prune::default().keep_last(1))?;
/// assert_eq!(target.list()?.backups.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Target {
    place: Arc<Place>,
    transfers: Transfers,
}

struct Place {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    name: String,
    /// Where the store is a directory.
    directory: Option<PathBuf>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed in a thread of an asynchronous runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Target {
    /// The backups in this store below the prefix, which may be empty.
    ///
    /// The store must put an object only if none is there when it is told to
    /// (`object_store::PutMode::Create`), at once for all who do, and list what was put before: the
    /// local file system, the memory, S3, Google's and Azure's stores do. Some servers that
    /// resemble S3 do not, and `object_store`'s client of plain HTTP does not.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a prefix that is no path of an object; `Io` if the system has no means
    /// for a runtime.
    ///
    /// ```
    /// use std::sync::Arc;
    /// let store = Arc::new(object_store::memory::InMemory::new());
    /// let target = esker_backup::Target::new(store, "backups/accounts")?;
    /// assert!(target.list()?.backups.is_empty());
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Target> {
        let prefix = ObjectPath::parse(prefix).map_err(|error| Error::invalid(error.to_string()))?;
        let name = format!("{store}/{prefix}");
        Target::in_place(store, prefix, name, None)
    }

    fn in_place(
        store: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        name: String,
        directory: Option<PathBuf>,
    ) -> Result<Target> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::io("start", Path::new("a runtime"), error))?;
        let place = Place { store, prefix, name, directory, runtime: Some(runtime) };
        Ok(Target { place: Arc::new(place), transfers: Transfers::default() })
    }

    /// The backups in a directory that exists. Everything written to it is synced.
    ///
    /// # Errors
    ///
    /// `NotFound` if it is no directory; `Io`.
    ///
    /// ```no_run
    /// let target = esker_backup::Target::directory("/mnt/backups/accounts")?;
    /// println!("{:?}", target.list()?);
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn directory(path: impl AsRef<Path>) -> Result<Target> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Err(Error::NotFound { what: format!("directory {}; check the path", path.display()) });
        }
        let store = LocalFileSystem::new_with_prefix(path).map_err(|source| Error::Store {
            operation: "open",
            object: path.display().to_string(),
            source,
        })?;
        let name = path.display().to_string();
        Target::in_place(Arc::new(store.with_fsync(true)), ObjectPath::default(), name, Some(path.to_path_buf()))
    }

    /// As [`directory`](Target::directory), and makes the directory if it is not there.
    ///
    /// # Errors
    ///
    /// `Io` if it can be neither found nor made.
    ///
    /// ```no_run
    /// let target = esker_backup::Target::new_directory("/mnt/backups/accounts")?;
    /// # let _ = target;
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn new_directory(path: impl AsRef<Path>) -> Result<Target> {
        let path = path.as_ref();
        restore::make_directory(path)?;
        Target::directory(path)
    }

    /// The backups at a URL, as `object_store::parse_url_opts` reads it: `file:///mnt/backups`,
    /// `memory:///`, and with the features `aws`, `gcp` and `azure` of this crate
    /// `s3://bucket/path`, `gs://bucket/path`, `az://container/path` and others. The options are
    /// those of the store's client, such as `aws_region`; unknown ones are ignored.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for text that is no URL; `Store` if there is no client for it; `NotFound`
    /// for a directory that does not exist.
    ///
    /// ```
    /// let options = [("aws_region", "eu-north-1")];
    /// let target = esker_backup::Target::url("memory:///backups", options)?;
    /// assert!(target.list()?.backups.is_empty());
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn url<K: AsRef<str>, V: Into<String>>(url: &str, options: impl IntoIterator<Item = (K, V)>) -> Result<Target> {
        let parsed = Url::parse(url).map_err(|error| Error::invalid(format!("{url:?} is no URL: {error}")))?;
        if parsed.scheme() == "file" {
            let path = parsed.to_file_path();
            return Target::directory(path.map_err(|()| Error::invalid(format!("{url:?} is no local path")))?);
        }
        let (store, prefix) = object_store::parse_url_opts(&parsed, options).map_err(|source| Error::Store {
            operation: "open",
            object: without_secrets(&parsed),
            source,
        })?;
        Target::in_place(Arc::from(store), prefix, without_secrets(&parsed), None)
    }

    /// The same place, with other transfers.
    ///
    /// ```
    /// use esker_backup::{Target, Transfers};
    /// let target = Target::url("memory:///", [("", "")])?.with(Transfers::default().parallel(2));
    /// # let _ = target;
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, transfers: Transfers) -> Target {
        Target { place: Arc::clone(&self.place), transfers }
    }

    /// Runs what the future does, in a thread of its own: the caller's may be one of a runtime.
    fn run<T: Send>(&self, work: impl AsyncFnOnce(&Store<'_>) -> Result<T> + Send) -> Result<T> {
        let store = &self.place.store;
        // It is there until the place is dropped.
        let Some(runtime) = &self.place.runtime else { return Err(Error::Cancelled) };
        let run = || {
            runtime.block_on(async {
                let store = Store::new(&**store, &self.place.prefix, &self.transfers);
                store.check_cancelled()?;
                work(&store).await
            })
        };
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("esker-backup".into()).spawn_scoped(scope, run);
            thread.map(std::thread::ScopedJoinHandle::join)
        });
        match outcome {
            Ok(Ok(outcome)) => outcome,
            // The program's own callback has panicked.
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::io("start", Path::new("a thread"), error)),
        }
    }

    /// Makes a backup of everything acknowledged before the call, in all keyspaces, as of one
    /// moment.
    ///
    /// Writes go on meanwhile. A checkpoint is made (`Db::checkpoint_with`), its files are hashed,
    /// and those are copied of which the target has no copy. The backup exists with the last put,
    /// and before it nothing does. It takes the time to read the whole database, to read all
    /// records of the target, and to copy what is new; memory for eight parts of 8 MiB, unless set
    /// otherwise.
    ///
    /// The database must be in the system's files: other environments have no files to read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the target is in the directory of the database, or is a directory that
    /// holds something else than backups; `AnotherDatabase` if the backups in it are of another
    /// database, as far as that can be told ([`Create::any_database`]); `Database` if the
    /// checkpoint fails; `Io`, `Store`, `Damaged`, `Cancelled`, `Contended`.
    /// Unless the last put has succeeded, no backup exists then; what was copied stays, for the
    /// next create or for a prune. An error of the store right at the last put may come although it
    /// has succeeded, and the backup exists whole: [`list`](Target::list) says.
    ///
    /// ```
    /// # let place = tempfile::tempdir()?;
    /// # let db = esker::Db::open(place.path().join("data"), esker::Options::default())?;
    /// # let target = esker_backup::Target::new_directory(place.path().join("backups"))?;
    /// let created = target.create(&db, &esker_backup::Create::default())?;
    /// println!("backup {}: {} bytes copied", created.backup.number, created.copied_bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(&self, db: &Db, options: &Create) -> Result<Created> {
        if self.transfers.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(directory) = &self.place.directory {
            origin::refuse_directory(directory, db.path())?;
        }
        let newest_before = self.run(async |store| create::newest(store).await)?;
        let source = Source::make(db, options)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let time_ms = since.as_millis() as u64;
        let directory = std::fs::canonicalize(db.path()).unwrap_or_else(|_| db.path().to_path_buf());
        let about = About {
            time_ms,
            sequence: source.sequence,
            keyspaces: source.keyspaces.clone(),
            directory: directory.to_string_lossy().into_owned(),
            newest_before,
            any_database: options.any_database,
        };
        let created = self.run(async |store| create::create(store, source.files.clone(), &about).await)?;
        if let Some(directory) = &self.place.directory {
            // What the store has synced holds only if the file system still works.
            restore::sync_directory(directory)?;
        }
        Ok(Created {
            backup: Backup::new(created.number, &created.record),
            copied_files: created.copied.0,
            copied_bytes: created.copied.1,
        })
    }

    /// The backups that exist. Reads their records, which have about 200 bytes for each file.
    ///
    /// # Errors
    ///
    /// `Store`; `Damaged` if a record is damaged so that it may be one of a prune, which decides
    /// which backups exist.
    ///
    /// ```
    /// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
    /// for backup in target.list()?.backups {
    ///     println!("{}: {} bytes", backup.number, backup.bytes);
    /// }
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn list(&self) -> Result<Backups> {
        self.run(async |store| {
            let (_, found) = LogReader::new(store).read_all().await?;
            let mut listed = Backups::default();
            for (number, backup) in found {
                match backup {
                    Ok(record) => listed.backups.push(Backup::new(number, &record)),
                    Err(what) => listed.damaged.push((number, what)),
                }
            }
            Ok(listed)
        })
    }

    /// Reads all objects of one backup, or of all, and compares each byte with what was written.
    /// Goes on behind damage: the report has all of it.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Store`, `Cancelled`; `Damaged` only for a record as in [`list`](Target::list).
    ///
    /// ```
    /// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
    /// let report = target.verify(None)?;
    /// assert!(report.damage.is_empty(), "{:?}", report.damage);
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn verify(&self, backup: Option<u64>) -> Result<VerifyReport> {
        self.run(async |store| verify::verify(store, backup).await)
    }

    /// Writes a backup, or the newest, to a directory that is empty or does not exist, which then
    /// opens as a database. Every byte is compared with what was written. All is on the device
    /// before the directory counts as a database; one that was cut short is refused by the engine,
    /// and the same call can be made again.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidArgument` for a directory with something in it, `Damaged`, `Store`,
    /// `Io`, `Cancelled`. There is no database in the directory then, and what was written is
    /// removed.
    ///
    /// ```no_run
    /// let target = esker_backup::Target::directory("/mnt/backups/accounts")?;
    /// let backup = target.restore(None, "restored")?;
    /// println!("restored backup {} of {:?}", backup.number, backup.time);
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn restore(&self, backup: Option<u64>, directory: impl AsRef<Path>) -> Result<Backup> {
        let directory = directory.as_ref();
        let (number, record) = self.run(async |store| restore::restore(store, backup, u64::MAX, directory).await)?;
        Ok(Backup::new(number, &record))
    }

    /// As [`restore`](Target::restore), and then applies the changes that a database has kept since
    /// the backup, up to a given write or to the last one. Without `backup` the call begins with
    /// the newest backup that is not after that write.
    ///
    /// The directory then holds what the database held after that write: all keyspaces, their
    /// names, and all expiries. Not restored, because no change records them, are: writes without
    /// log; removals and replacements by a compaction filter since the backup; tables that a
    /// keyspace of style `Fifo` dropped; a compaction style that was set after the backup; and the
    /// number of each write (`Restored::sequence` is that of the database). A keyspace that was
    /// created after the backup exists from its first write on.
    ///
    /// Takes the time of the restore, and of writing each change again. Until the call is done, the
    /// files are in a directory of the same name with `.restore-forward` behind it, which is
    /// renamed at the end. The file `.restore-forward.unfinished` is beside it meanwhile.
    ///
    /// # Errors
    ///
    /// As [`restore`](Target::restore). `InvalidArgument` also for a directory beside it that has
    /// something in it which no restore has left; for another database than that of the backup, as
    /// far as [`Forward::new`] can tell; for a write that it has not reached; and for a load
    /// (`Keyspace::ingest`) on the way, whose pairs no change has. `Database` if it keeps no
    /// changes, keeps only later ones (`Gone`), or if it needs a comparator or merge operator that
    /// was not supplied. There is no database in the directory then.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = tempfile::tempdir()?;
    /// # let path = |name: &str| place.path().join(name);
    /// use esker::{ChangeRetention, Db, Options};
    /// use esker_backup::{Create, Forward, Target};
    ///
    /// let db = Db::open(path("data"), Options::default().keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let target = Target::new_directory(path("backups"))?;
    /// target.create(&db, &Create::default())?;
    /// names.put("bob", "1923")?;
    /// let good = db.snapshot().sequence();
    /// names.clear()?; // a mistake
    ///
    /// let forward = Forward::new(path("data")).to_sequence(good);
    /// let restored = target.restore_forward(None, path("before"), &forward)?;
    /// assert_eq!(restored.sequence, good);
    /// let before = Db::open(path("before"), Options::default())?;
    /// assert_eq!(before.existing_keyspace("names")?.iter().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn restore_forward(
        &self,
        backup: Option<u64>,
        directory: impl AsRef<Path>,
        forward: &Forward,
    ) -> Result<Restored> {
        let directory = directory.as_ref();
        let unfinished = forward::unfinished(directory)?;
        forward::begin(directory, &unfinished)?;
        let end = forward.end();
        let restored = self.run(async |store| restore::restore(store, backup, end, &unfinished).await);
        // Half of it is of no use to anybody.
        let (number, record) = restored.inspect_err(|_| forward::abandon(&unfinished))?;
        let backup = Backup::new(number, &record);
        let sequence = forward::finish(forward, backup.sequence, directory, &unfinished)?;
        Ok(Restored { backup, sequence })
    }

    /// Removes backups, and the objects that no backup needs, also those that creates have left
    /// which were cut short. Creates may go on meanwhile: no backup ever lacks an object for it.
    /// One put removes all chosen backups at once; then objects are deleted.
    ///
    /// # Errors
    ///
    /// `NotFound` for a backup to be removed that does not exist; `Damaged` if the record of a
    /// backup that stays cannot be read, so that what it needs is not known; `Store`, `Cancelled`.
    /// The chosen backups exist no more, or all exist, and the same call can be made again.
    ///
    /// ```
    /// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
    /// let report = target.prune(&esker_backup::Prune::default().keep_last(7))?;
    /// println!("{} backups removed, {} bytes freed", report.backups.len(), report.bytes);
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    pub fn prune(&self, policy: &Prune) -> Result<PruneReport> {
        self.run(async |store| prune::prune(store, policy).await)
    }
}

/// The URL without name, password and query.
fn without_secrets(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or(""), url.path())
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("place", &self.place.name).field("transfers", &self.transfers).finish()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.name)
    }
}
