//! Files that are read at any offset: tables, blobs, and logs at an open.

use crate::error::Result;
use std::fmt;

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
    /// Fails if a page of the mapping was unreadable. The engine calls this after it has read bytes
    /// of the mapping, and before it relies on them. An unreadable page, as on a failing medium,
    /// reads as zeroes, and this call fails from then on; [`ReadFile::read_at`] returns the bytes
    /// that are readable. A file that passes on the mapping of another file passes on this call,
    /// too.
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
