//! Segments of the log: files of a fixed length, which stores through a mapping can write.

use crate::error::Result;
use std::fmt;

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
