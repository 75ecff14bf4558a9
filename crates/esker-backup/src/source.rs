//! What a backup is made of: a checkpoint in a directory that goes away again.
//!
//! It is made in a sub-directory, beside the database unless the caller names another place, so
//! that its files are links. Several processes may back up one database, as followers of the one
//! that writes it: beside each sub-directory there is a file that is locked as long as it is used.
//! One that no call uses was left by one that was cut short, and is removed by the next.

use crate::error::{Error, Result};
use crate::moving::LocalFile;
use esker::env::os::OsEnv;
use esker::env::{Env, Lock};
use esker::{CheckpointMode, Comparator, Db, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of the sub-directories, which are the only ones that are ever removed.
const PREFIX: &str = "esker-backup-source-";
/// Behind the name of a sub-directory, of the file that is locked.
const LOCK_SUFFIX: &str = ".lock";
/// The number of attempts to reserve a place in a directory that another process may remove while
/// it is empty.
const ATTEMPTS: usize = 100;

/// The sub-directories that calls of this process use.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn in_use() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // Insertions and removals leave it whole.
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a backup gets its files.
///
/// ```
/// let options = esker_backup::Create::default().verify_source(true);
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
pub struct Create {
    scratch: Option<PathBuf>,
    mode: CheckpointMode,
    verify: bool,
    comparators: Vec<Arc<dyn Comparator>>,
    pub(crate) any_database: bool,
}

impl std::fmt::Debug for Create {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.comparators.iter().map(|comparator| comparator.name()).collect();
        f.debug_struct("Create")
            .field("scratch", &self.scratch)
            .field("mode", &self.mode)
            .field("verify", &self.verify)
            .field("comparators", &names)
            .field("any_database", &self.any_database)
            .finish()
    }
}

impl Create {
    /// A comparator that a keyspace of the database has, as for
    /// [`Options::comparator`](esker::Options::comparator): the checkpoint is opened to learn what
    /// is in it. Call it once for each.
    ///
    /// ```
    /// use std::sync::Arc;
    /// struct ByLength;
    /// impl esker::Comparator for ByLength {
    ///     fn name(&self) -> &str { "example.by-length" }
    ///     fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    ///         a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    ///     }
    /// }
    /// let create = esker_backup::Create::default().comparator(Arc::new(ByLength));
    /// ```
    #[must_use]
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Create {
        self.comparators.push(comparator);
        self
    }

    /// The directory in which the checkpoint is made that is then copied. It is created if it is
    /// not there, and used for one database only: what an earlier backup has left in it is removed.
    /// Without, it is a directory beside the database, with the name of the database and
    /// `.backup-source` behind it.
    ///
    /// ```
    /// // On the file system of the database, so that the files are links.
    /// let create = esker_backup::Create::default().scratch("/srv/scratch");
    /// # let _ = create;
    /// ```
    #[must_use]
    pub fn scratch(mut self, directory: impl Into<PathBuf>) -> Create {
        self.scratch = Some(directory.into());
        self
    }

    /// Whether the files of the checkpoint are links, the default, or copies, which are checked
    /// when they are made and take as much space as the database.
    ///
    /// ```
    /// let create = esker_backup::Create::default().checkpoint_mode(esker::CheckpointMode::Copy);
    /// # let _ = create;
    /// ```
    #[must_use]
    pub fn checkpoint_mode(mut self, mode: CheckpointMode) -> Create {
        self.mode = mode;
        self
    }

    /// Whether the checkpoint is opened and all its checksums are verified before it is copied, so
    /// that no damage of the database gets into the backup unnoticed. It takes another read of
    /// everything; off unless set.
    ///
    /// ```
    /// let create = esker_backup::Create::default().verify_source(true);
    /// # let _ = create;
    /// ```
    #[must_use]
    pub fn verify_source(mut self, verify: bool) -> Create {
        self.verify = verify;
        self
    }

    /// Whether the backup is made though the target holds those of another database, or of one that
    /// cannot be told for the same; off unless set. "The newest" is that of either then, and a
    /// prune counts both.
    ///
    /// ```
    /// // The database was moved, and everything in it rewritten since the last backup.
    /// let create = esker_backup::Create::default().any_database(true);
    /// # let _ = create;
    /// ```
    #[must_use]
    pub fn any_database(mut self, any: bool) -> Create {
        self.any_database = any;
        self
    }
}

/// A checkpoint, which is removed when this is dropped.
pub struct Source {
    place: Place,
    /// Its files.
    pub files: Vec<LocalFile>,
    /// The last write in it.
    pub sequence: u64,
    /// The names of its keyspaces.
    pub keyspaces: Vec<String>,
}

impl Source {
    /// Makes a checkpoint of `db`.
    pub fn make(db: &Db, options: &Create) -> Result<Source> {
        let parent = match &options.scratch {
            Some(directory) => directory.clone(),
            None => beside(db.path())?,
        };
        let mut source = Source { place: reserve(&parent)?, files: Vec::new(), sequence: 0, keyspaces: Vec::new() };
        db.checkpoint_with(&source.place.directory, options.mode)?;
        source.inspect(options)?;
        source.files = files(&source.place.directory)?;
        Ok(source)
    }

    /// Learns what is in the checkpoint, from itself.
    fn inspect(&mut self, create: &Create) -> Result<()> {
        let options = Options::default().create_if_missing(false);
        let options = create.comparators.iter().cloned().fold(options, Options::comparator);
        let copy = Db::open_read_only(&self.place.directory, options)?;
        if create.verify {
            copy.verify()?;
        }
        self.sequence = copy.stats().last_sequence;
        self.keyspaces = copy.keyspaces();
        Ok(())
    }
}

/// A sub-directory that is used by one backup, and removed when this is dropped.
struct Place {
    directory: PathBuf,
    parent: PathBuf,
    lock: Option<Box<dyn Lock>>,
}

impl Drop for Place {
    /// What cannot be removed now, the next backup removes.
    fn drop(&mut self) {
        let mut in_use = in_use();
        let _ = fs::remove_dir_all(&self.directory);
        if let Some(lock) = self.lock.take() {
            release(&self.directory, lock);
        }
        in_use.remove(&self.directory);
        // Unless another one is in it, or it was the caller's and has something else.
        let _ = fs::remove_dir(&self.parent);
    }
}

/// The directory beside that of a database.
fn beside(database: &Path) -> Result<PathBuf> {
    let absolute = fs::canonicalize(database).map_err(|error| Error::io("find", database, error))?;
    let name = absolute.file_name().ok_or_else(|| {
        Error::invalid(format!("{} has nothing beside it; name a scratch directory", database.display()))
    })?;
    let mut name = name.to_os_string();
    name.push(".backup-source");
    Ok(absolute.with_file_name(name))
}

/// The file that is locked while a sub-directory is used.
fn lock_of(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_os_string();
    name.push(LOCK_SUFFIX);
    name.into()
}

/// Locks a sub-directory, which need not exist. None if another process uses it.
fn lock(directory: &Path) -> Result<Option<Box<dyn Lock>>> {
    match OsEnv::new().lock(&lock_of(directory)) {
        Ok(lock) => Ok(Some(lock)),
        Err(esker::Error::Locked { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives the lock back, and removes its file.
fn release(directory: &Path, lock: Box<dyn Lock>) {
    let file = lock_of(directory);
    // Before: who takes the lock then finds that the file has no name.
    let _ = fs::remove_file(&file);
    drop(lock);
    if cfg!(windows) {
        // No open file is removed there, also none that another process has locked by now.
        let _ = fs::remove_file(&file);
    }
}

/// Takes away what was left, and returns a sub-directory for one backup, which does not exist.
fn reserve(parent: &Path) -> Result<Place> {
    let mut in_use = in_use();
    for attempt in 1.. {
        fs::create_dir_all(parent).map_err(|error| Error::io("create", parent, error))?;
        match reserve_in(parent, &in_use) {
            // Another process has removed it: it was empty.
            Err(_) if attempt < ATTEMPTS && !parent.exists() => {}
            Err(error) => return Err(error),
            Ok(place) => {
                in_use.insert(place.directory.clone());
                return Ok(place);
            }
        }
    }
    Err(Error::invalid(format!("{} is removed again and again; name a scratch directory", parent.display())))
}

fn reserve_in(parent: &Path, in_use: &BTreeSet<PathBuf>) -> Result<Place> {
    let parent = fs::canonicalize(parent).map_err(|error| Error::io("find", parent, error))?;
    let entries = fs::read_dir(&parent).map_err(|error| Error::io("list", &parent, error))?;
    let mut left = BTreeSet::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("list", &parent, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(PREFIX) {
            left.insert(parent.join(name.strip_suffix(LOCK_SUFFIX).unwrap_or(name)));
        }
    }
    for directory in left.iter().filter(|directory| !in_use.contains(*directory)) {
        if let Some(lock) = lock(directory)? {
            remove(directory)?;
            release(directory, lock);
        }
    }
    for number in 0_u64.. {
        let directory = parent.join(format!("{PREFIX}{number}"));
        if in_use.contains(&directory) {
            continue;
        }
        if let Some(lock) = lock(&directory)? {
            // Another process may have left it meanwhile.
            remove(&directory)?;
            return Ok(Place { directory, parent, lock: Some(lock) });
        }
    }
    Err(Error::invalid("too many backups at once"))
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", directory, error)),
        _ => Ok(()),
    }
}

/// The files of a checkpoint.
fn files(directory: &Path) -> Result<Vec<LocalFile>> {
    let listing = |error| Error::io("list", directory, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(listing)? {
        let entry = entry.map_err(listing)?;
        let path = entry.path();
        let metadata = entry.metadata().map_err(|error| Error::io("inspect", &path, error))?;
        let name = entry.file_name().into_string();
        match name {
            Ok(name) if metadata.is_file() && name != "LOCK" => {
                files.push(LocalFile { name, path, size: metadata.len() })
            }
            Ok(name) if name == "LOCK" => {}
            _ => return Err(Error::invalid(format!("{} is no file of a checkpoint", path.display()))),
        }
    }
    Ok(files)
}
