//! Files that are written: tables and manifests by appending, blob files at any offset.

use crate::error::Result;
use std::fmt;

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
    /// process. Makes nothing durable. A file that appends to another file passes on this call,
    /// too: the bytes that the other file buffers would be lost with the process.
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
