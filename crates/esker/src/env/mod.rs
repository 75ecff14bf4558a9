//! The interface to the operating system. Every access to a disk goes through [`Env`], so that
//! tests can lose, tear, reorder and refuse it: [`os`] is the real one, [`mem`] a deterministic one
//! with a power-loss model, [`fault`] wraps any other and fails the n-th call that matches.

use crate::error::Result;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

pub(crate) mod directory_syncs;
pub mod fault;
pub mod mem;
pub mod os;

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

/// A file open for random reads.
///
/// ```
/// # use esker::env::{Env, mem::MemEnv};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// # env.create(Path::new("note"))?.append(b"ada")?;
/// let file = env.open(Path::new("note"))?;
/// let mut bytes = [0; 2];
/// file.read_at(1, &mut bytes)?;
/// assert_eq!(&bytes, b"da");
/// # Ok::<(), esker::Error>(())
/// ```
pub trait ReadFile: Send + Sync + fmt::Debug {
    /// The length when it was opened, in bytes.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// assert_eq!(env.open(Path::new("note"))?.len(), 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn len(&self) -> u64;
    /// Whether it was empty.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// assert!(!env.open(Path::new("note"))?.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `buffer` from `offset`; an end of file before that is [`crate::Error::Corruption`].
    ///
    /// # Errors
    /// `Corruption` as said; `Io`. What is in `buffer` then is unknown.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// let mut bytes = [0; 3];
    /// env.open(Path::new("note"))?.read_at(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"ada");
    /// assert!(env.open(Path::new("note"))?.read_at(1, &mut bytes).is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// The whole file as memory, where the environment can map it. The first call maps; later calls
    /// are free. Bytes read there are valid only once [`ReadFile::check_mapping`] has succeeded
    /// after the read.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// let file = env.open(Path::new("note"))?;
    /// match file.mapping() {
    ///     Some(bytes) => assert_eq!(bytes, b"ada"),
    ///     None => println!("read it with `read_at`"),
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn mapping(&self) -> Option<&[u8]>;
    /// Whether every page of the mapping that was read could be had: called after its bytes were
    /// read, and before anything relies on them. Where a page of it cannot be had, as when the
    /// medium fails, the page reads as zeroes, and this fails from then on: [`ReadFile::read_at`]
    /// returns the bytes that can be read. A file that passes on the mapping of another passes on
    /// this call, too.
    ///
    /// # Errors
    /// `Io` as said.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// let file = env.open(Path::new("note"))?;
    /// let first = file.mapping().and_then(|bytes| bytes.first().copied());
    /// file.check_mapping()?;
    /// assert!(first.is_none() || first == Some(b'a'));
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn check_mapping(&self) -> Result<()>;
    /// Says that these bytes of the mapping are about to be read, so that the system may load those
    /// that are not in memory, without waiting for them. An environment may ignore it, as this
    /// default does. The mapping is otherwise read in single pages, here and there. A file that
    /// passes on the mapping of another passes on this call, too.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.create(Path::new("note"))?.append(b"ada")?;
    /// let file = env.open(Path::new("note"))?;
    /// file.will_read(0, file.len());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn will_read(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }
}

/// See [`mapping_fault_seen`].
static MAPPING_FAULT: AtomicBool = AtomicBool::new(false);

/// Whether a page under any mapping of the process could ever not be had: the only check for each
/// read, until the first time. What was loaded from a mapping before the call was loaded before the
/// answer: if it came out of such a page, the answer is yes.
#[inline]
pub(crate) fn mapping_fault_seen() -> bool {
    // For this thread, whose access may just have been interrupted; and for what others have
    // replaced.
    compiler_fence(Ordering::SeqCst);
    fence(Ordering::Acquire);
    MAPPING_FAULT.load(Ordering::Relaxed)
}

/// May be called by a signal handler.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) fn note_mapping_fault() {
    MAPPING_FAULT.store(true, Ordering::SeqCst);
}

/// A file open for appending. Implementations may buffer: bytes reach the system at the latest at
/// `sync`.
///
/// ```
/// # use esker::env::{Env, mem::MemEnv};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// let mut file = env.create(Path::new("note"))?;
/// file.append(b"ada")?;
/// file.sync()?;
/// assert_eq!(file.len(), 3);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait WriteFile: Send + fmt::Debug {
    /// Appends all of `bytes`. After an error the file's content beyond the last successful sync is
    /// unknown.
    ///
    /// # Errors
    /// `Io`, as on a full disk.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Hands everything appended so far to the system, so that it survives the death of this
    /// process. Makes nothing durable. A file that appends to another passes on this call, too:
    /// what that one buffers would be lost with the process.
    ///
    /// # Errors
    /// `Io`, as for `append`.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// file.flush()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn flush(&mut self) -> Result<()>;
    /// Makes everything appended so far durable, with the length. Never called again after it
    /// failed.
    ///
    /// # Errors
    /// `Io`: what was appended since the last sync may be lost, even if a later sync were to
    /// succeed.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// file.sync()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn sync(&mut self) -> Result<()>;
    /// Bytes appended so far.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// assert_eq!(file.len(), 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn len(&self) -> u64;
    /// Whether nothing was appended yet.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let mut file = env.create(Path::new("note"))?;
    /// assert!(file.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file that grows: any thread may write, read and sync it at any time. Writes at different
/// places do not disturb each other.
///
/// A write gives its bytes to the system before it returns: they survive the death of the process,
/// and with `sync` that of the machine.
///
/// ```
/// # use esker::env::{Env, mem::MemEnv};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// let file = env.create_growing(Path::new("values"))?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| file.write(0, b"ada"));
///     scope.spawn(|| file.write(3, b"bob"));
/// });
/// file.sync()?;
/// # Ok::<(), esker::Error>(())
/// ```
pub trait GrowingFile: Send + Sync + fmt::Debug {
    /// Writes `bytes` at `offset`, which may lie behind the end; what is skipped reads as zeroes.
    /// After an error the content of exactly these bytes is unknown.
    ///
    /// # Errors
    /// `Io`, as on a full disk.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let file = env.create_growing(Path::new("values"))?;
    /// file.write(100, b"ada")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Fills `buffer` from `offset`; an end of file before that is [`crate::Error::Corruption`].
    ///
    /// # Errors
    /// `Corruption` as said; `Io`.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let file = env.create_growing(Path::new("values"))?;
    /// file.write(1, b"a")?;
    /// let mut bytes = [7; 2];
    /// file.read_at(0, &mut bytes)?;
    /// assert_eq!(bytes, [0, b'a']);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// Makes everything written before the call durable, with the length. Never called again after
    /// it failed.
    ///
    /// # Errors
    /// `Io`: what was written since the last sync may be lost.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let file = env.create_growing(Path::new("values"))?;
    /// file.write(0, b"ada")?;
    /// file.sync()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn sync(&self) -> Result<()>;
}

/// A log segment: a file of fixed, really allocated length, written by one thread at a time, synced
/// from any thread.
///
/// Both ways of writing give the bytes to the system before they return: they survive the death of
/// the process, and with `sync` that of the machine. Both see each other's bytes.
///
/// ```
/// # use esker::env::{Env, mem::MemEnv};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
/// log.store(0, b"ada")?;
/// log.write(3, b"bob")?;
/// log.sync()?;
/// # Ok::<(), esker::Error>(())
/// ```
pub trait LogFile: Send + Sync + fmt::Debug {
    /// The fixed length in bytes.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// assert_eq!(log.len(), 4096);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn len(&self) -> u64;
    /// Whether the segment has no room at all.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// assert!(!log.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes `bytes` at `offset` the way that is cheapest for small records: a store into the
    /// mapping, or [`LogFile::write`] where there is none. Between their end and the next multiple
    /// of 8 zeroes may be written too. Cheapest where `offset` is a multiple of 8. Beyond the end
    /// is [`crate::Error::InvalidArgument`].
    ///
    /// # Errors
    /// `InvalidArgument` as said; `Io`: then the content of these bytes is unknown, and the file is
    /// not to be synced any more.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.store(0, b"ada")?;
    /// assert!(log.store(4094, b"ada").is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Writes `bytes` at `offset` with a system call: the way for large records and for those about
    /// to be synced.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the end; `Io`.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.write(0, b"ada")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `Corruption` beyond the end; `Io`.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.store(0, b"ada")?;
    /// let mut bytes = [0; 4];
    /// log.read_at(0, &mut bytes)?;
    /// assert_eq!(&bytes, b"ada\0");
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// Makes everything written so far durable, with the length. Neither this nor `sync_range` is
    /// ever called again after either failed.
    ///
    /// # Errors
    /// `Io`: what was written since the last sync may be lost.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.store(0, b"ada")?;
    /// log.sync()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn sync(&self) -> Result<()>;
    /// Makes the bytes from `from` to before `to` durable as far as they were written before the
    /// call, and promises nothing about others. The length of the file must be durable already.
    /// `to` is at most where the next store goes, so that the pages before it take no more stores.
    ///
    /// # Errors
    /// `Io`: what was written since the last sync may be lost.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.sync()?; // the length
    /// log.store(0, b"ada")?;
    /// log.sync_range(0, 3)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        let _ = (from, to);
        self.sync()
    }
    /// A hint that stores will follow between these offsets: makes the first one into each page
    /// cheap, where it can. A `sync` may then write all of these pages.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.prefault(0, 4096);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn prefault(&self, from: u64, to: u64);
    /// A hint that stores will follow everywhere from `from` on, in a file that was just made and
    /// holds nothing there: brings its zeroes into the system's memory without reading them, where
    /// it can.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.fill_new(64);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn fill_new(&self, from: u64);
    /// A hint that no store will follow for long between these offsets: what the mapping takes of
    /// the process's memory there can go. The bytes stay with the system.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// log.store(0, b"ada")?;
    /// log.release_memory(0, 4096);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn release_memory(&self, from: u64, to: u64);
}
