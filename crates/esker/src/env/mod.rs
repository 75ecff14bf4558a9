//! The interface to the operating system. Every access to a disk goes through [`Env`], so that
//! tests can lose, tear, reorder and refuse it: [`os`] is the real one, [`mem`] a deterministic one
//! with a power-loss model, [`fault`] wraps any other and fails the n-th call that matches.

use crate::error::Result;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

pub(crate) mod directory_syncs;
pub mod fault;
mod log_file;
mod mapping_fault;
pub mod mem;
pub mod os;
mod read_file;
mod write_file;

pub use log_file::LogFile;
pub(crate) use mapping_fault::{mapping_fault_seen, note_mapping_fault};
pub use read_file::ReadFile;
pub use write_file::{GrowingFile, WriteFile};

/// Files, directories and locks. Paths are used as given. All calls may come from any thread.
///
/// What each call promises about durability is the least any supported system gives: a created,
/// renamed, linked or removed name is durable only after [`Env::sync_dir`] of its directory; the
/// contents of a file only after `sync` of the file; dropping a file makes nothing durable.
///
/// The engine calls an environment and its files with locks held. They may call a database whose
/// environment they are as far as a [`crate::MergeOperator`] may call its own: single keys and
/// statistics; the rest is refused with [`crate::Error::InCallback`]. That is so in the `Drop` of a
/// file or a lock, too. Reads that call themselves that way fail with that error after a few times.
///
/// ```
/// use esker::env::{Env, mem::MemEnv};
/// use std::path::Path;
/// /// Writes a file so that it is there, whole, after any power loss from the return on.
/// fn keep(env: &dyn Env, directory: &Path, bytes: &[u8]) -> esker::Result<()> {
///     let mut file = env.create(&directory.join("new"))?;
///     file.append(bytes)?;
///     file.sync()?;
///     env.rename(&directory.join("new"), &directory.join("kept"))?;
///     env.sync_dir(directory)
/// }
/// keep(&MemEnv::new(), Path::new(""), b"ada")?;
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Env: Send + Sync + fmt::Debug {
    /// Creates the directory and its parents; succeeds if it is there.
    ///
    /// # Errors
    /// `Io`, as when something else has one of the names.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create_dir_all(Path::new("a/b"))?;
    /// assert!(env.exists(Path::new("a"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn create_dir_all(&self, directory: &Path) -> Result<()>;
    /// The names (not paths) of the files in a directory, in no particular order; sub-directories
    /// are left out.
    ///
    /// # Errors
    /// `Io`, as when there is no such directory.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// assert_eq!(env.list(Path::new(""))?, ["note"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn list(&self, directory: &Path) -> Result<Vec<String>>;
    /// Whether a file or directory of that name exists.
    ///
    /// # Errors
    /// `Io` if that is unknown; a missing name is no error.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// assert!(!env.exists(Path::new("note"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Opens an existing file for random reads; its length is fixed at this moment.
    ///
    /// # Errors
    /// `Io`, of the kind `NotFound` where there is no such file.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?.append(b"ada")?;
    /// assert_eq!(env.open(Path::new("note"))?.len(), 3);
    /// assert!(env.open(Path::new("absent")).is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Creates a file for appending; an existing one is truncated.
    ///
    /// # Errors
    /// `Io`, as on a full disk.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// file.sync()?;
    /// env.sync_dir(Path::new(""))?; // the name
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Creates a file that grows by writes at given offsets; an existing one is truncated.
    ///
    /// # Errors
    /// `Io`, as on a full disk.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let file = env.create_growing(Path::new("values"))?;
    /// file.write(100, b"ada")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>>;
    /// Opens a log segment: an existing file of any length, or with `create_bytes` a new file of
    /// that length that reads as zeroes and whose space is really allocated (nothing of it durable
    /// yet). With `mapped`, [`LogFile::store`] goes through a memory mapping.
    ///
    /// # Errors
    /// `Io`, as on a full disk: no file is left then.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.store(0, b"ada")?;
    /// assert_eq!(log.len(), 4096);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>>;
    /// Atomically gives a file another name in the same file system, replacing the file that had
    /// it.
    ///
    /// # Errors
    /// `Io`; either name may be in force then, never none.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("new"))?;
    /// env.rename(Path::new("new"), Path::new("note"))?;
    /// env.sync_dir(Path::new(""))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// `Io`, of the kind `NotFound` where there is no such file.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// env.remove(Path::new("note"))?;
    /// assert!(!env.exists(Path::new("note"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn remove(&self, path: &Path) -> Result<()>;
    /// Gives a file a second name; falls back to nothing: an error where the file system has no
    /// links.
    ///
    /// # Errors
    /// `Io`, also where the second name is taken.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// env.hard_link(Path::new("note"), Path::new("again"))?;
    /// env.remove(Path::new("note"))?;
    /// assert!(env.exists(Path::new("again"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// `Io`: which names are durable is unknown then.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// env.sync_dir(Path::new(""))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn sync_dir(&self, directory: &Path) -> Result<()>;
    /// Takes the exclusive lock on `path` until the returned guard is dropped, and leaves the
    /// process id in the file. [`crate::Error::Locked`] with the holder's process id if another
    /// handle, also of this process, has it.
    ///
    /// # Errors
    /// `Locked` as said; `Io`.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let lock = env.lock(Path::new("LOCK"))?;
    /// assert!(env.lock(Path::new("LOCK")).is_err());
    /// drop(lock);
    /// assert!(env.lock(Path::new("LOCK")).is_ok());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;
    /// A number that cannot be predicted without the ones before; for the salts of log segments,
    /// not for secrets. A simulated environment may give the same numbers in every run.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// assert_ne!(MemEnv::new().random(), esker::env::os::OsEnv::new().random());
    /// ```
    fn random(&self) -> u64 {
        RandomState::new().hash_one(())
    }
    /// Whether none of its calls, nor of those of its files, ever uses a database. If this is true,
    /// the engine does not mark threads that are in them, which takes some nanoseconds for each
    /// call; a call that uses its own database all the same may then wait for ever.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// assert!(MemEnv::new().calls_no_database());
    /// ```
    fn calls_no_database(&self) -> bool {
        false
    }
}

/// Holds a lock until dropped.
///
/// ```
/// # use esker::env::{Env, mem::MemEnv};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// let lock: Box<dyn esker::env::Lock> = env.lock(Path::new("LOCK"))?;
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Lock: Send + Sync + fmt::Debug {}
