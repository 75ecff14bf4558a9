//! The seam to the operating system. Everything that touches a disk goes through [`Env`], so that tests can lose,
//! tear, reorder and refuse it: [`os`] is the real one, [`mem`] a deterministic one with a power-loss model,
//! [`fault`] wraps any other and fails the n-th call that matches.

use crate::error::Result;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub mod fault;
pub mod mem;
pub mod os;

/// Files, directories and locks. Paths are used as given. All calls may come from any thread.
///
/// What each call promises about durability is the least any supported system gives:
/// a created, renamed, linked or removed name is durable only after [`Env::sync_dir`] of its directory; the contents of a file only after
/// `sync` of the file; dropping a file makes nothing durable.
pub trait Env: Send + Sync + fmt::Debug {
    /// Creates the directory and its parents; succeeds if it is there.
    fn create_dir_all(&self, directory: &Path) -> Result<()>;
    /// The names (not paths) of the files in a directory, in no particular order; sub-directories are left out.
    fn list(&self, directory: &Path) -> Result<Vec<String>>;
    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Opens an existing file for random reads; its length is fixed at this moment.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Creates a file for appending; an existing one is truncated.
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Creates a file that grows by writes at given offsets; an existing one is truncated.
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>>;
    /// Opens a log segment: an existing file of any length, or with `create_bytes` a new file of that length that reads as zeroes and whose
    /// space is really allocated (nothing of it durable yet). With `mapped`, [`LogFile::store`] goes through a memory mapping.
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>>;
    /// Atomically gives a file another name in the same file system, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Gives a file a second name; falls back to nothing: an error where the file system has no links.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, directory: &Path) -> Result<()>;
    /// Takes the exclusive lock on `path` until the returned guard is dropped, and leaves the process id in the file.
    /// [`crate::Error::Locked`] with the holder's process id if another handle, also of this process, has it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;
}

/// Holds a lock until dropped.
pub trait Lock: Send + Sync + fmt::Debug {}

/// A file open for random reads.
pub trait ReadFile: Send + Sync + fmt::Debug {
    /// The length when it was opened, in bytes.
    fn len(&self) -> u64;
    /// Whether it was empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `buffer` from `offset`; an end of file before that is [`crate::Error::Corruption`].
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// The whole file as memory, where the environment can map it. The first call maps; later calls are free.
    fn mapping(&self) -> Option<&[u8]>;
}

/// A file open for appending. Implementations may buffer: bytes reach the system at the latest at `sync`.
pub trait WriteFile: Send + fmt::Debug {
    /// Appends all of `bytes`. After an error the file's content beyond the last successful sync is unknown.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes everything appended so far durable, with the length. Never called again after it failed.
    fn sync(&mut self) -> Result<()>;
    /// Bytes appended so far.
    fn len(&self) -> u64;
    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file that grows: any thread may write, read and sync it at any time. Writes at different places do not disturb each other.
///
/// A write gives its bytes to the system before it returns: they survive the death of the process, and with `sync` that of the machine.
pub trait GrowingFile: Send + Sync + fmt::Debug {
    /// Writes `bytes` at `offset`, which may lie behind the end; what is skipped reads as zeroes. After an error the content of exactly these
    /// bytes is unknown.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Fills `buffer` from `offset`; an end of file before that is [`crate::Error::Corruption`].
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// Makes everything written before the call durable, with the length. Never called again after it failed.
    fn sync(&self) -> Result<()>;
}

/// A log segment: a file of fixed, really allocated length, written by one thread at a time, synced from any thread.
///
/// Both ways of writing give the bytes to the system before they return: they survive the death of the process, and with
/// `sync` that of the machine. Both see each other's bytes.
pub trait LogFile: Send + Sync + fmt::Debug {
    /// The fixed length in bytes.
    fn len(&self) -> u64;
    /// Whether the segment has no room at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes `bytes` at `offset` the way that is cheapest for small records: a store into the mapping, or [`LogFile::write`] where there is
    /// none. Beyond the end is [`crate::Error::InvalidArgument`].
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Writes `bytes` at `offset` with a system call: the way for large records and for those about to be synced.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Fills `buffer` from `offset`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
    /// Makes everything written so far durable. Never called again after it failed.
    fn sync(&self) -> Result<()>;
    /// A hint that stores will follow in the whole segment: makes the first one into each page cheap, where it can. The next `sync` may then write
    /// the whole segment.
    fn prefault(&self) {}
    /// A hint that no store will follow for long: what the mapping takes of the process's memory can go. The bytes stay with the system.
    fn release_memory(&self) {}
}
