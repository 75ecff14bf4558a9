//! The error type of the engine. Every variant carries what a caller needs to act: the file, the
//! offset, the key in escaped form, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of every fallible engine call.
///
/// ```
/// fn year(names: &esker::Keyspace) -> esker::Result<Option<u32>> {
///     let value = names.get("ada")?;
///     Ok(value.and_then(|value| str::from_utf8(&value).ok()?.parse().ok()))
/// }
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and what to do.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::Error;
/// match db.existing_keyspace("names") {
///     Ok(names) => println!("{names:?}"),
///     Err(Error::NotFound { what }) => println!("there is no {what}"),
///     Err(error) if error.is_retryable() => println!("later: {error}"),
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    Io {
        /// What was being done, as a verb phrase: `"create"`, `"append to"`, `"sync"`.
        operation: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The cause as the operating system reported it. The text of this error has that of the
        /// cause, and `source()` returns it, with its kind: a report of all causes has it twice.
        source: io::Error,
    },
    /// Stored bytes do not have the form they were written in.
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// The byte offset of the damaged structure.
        offset: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// A merge operator, compaction filter, filter policy, comparator, clock or environment called
    /// its own database with a call that may have to wait for its caller: it may only read single
    /// keys. Nothing was done.
    InCallback {
        /// The directory of the database.
        database: PathBuf,
    },
    /// The caller passed something that the operation cannot take. Nothing was written.
    InvalidArgument {
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// Another handle, in this or another process, has the database open for writing.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds the lock, where it could be learned.
        holder: Option<u32>,
    },
    /// The keyspace was dropped. Nothing was written. A handle of before the drop reads on in
    /// snapshots of before it; open the keyspace again for a new one of that name.
    KeyspaceDropped {
        /// The keyspace; for a write that comes a thousand drops later, its number.
        keyspace: String,
    },
    /// The keyspace has a merge operator that was not supplied at this open.
    MissingMergeOperator {
        /// The keyspace.
        keyspace: String,
        /// The persisted name of the operator.
        operator: String,
    },
    /// The keyspace was created with a comparator that was not supplied at this open.
    MissingComparator {
        /// The keyspace.
        keyspace: String,
        /// The persisted name of the comparator.
        comparator: String,
    },
    /// A merge operator could not combine an existing value with its operands.
    MergeFailed {
        /// The keyspace.
        keyspace: String,
        /// The key, in escaped form.
        key: String,
        /// The operator.
        operator: String,
        /// The operator's reason.
        reason: String,
    },
    /// A transaction cannot be committed: since it began, another writer has written to a key that
    /// it read or writes. Nothing was written; run the transaction again.
    Conflict {
        /// The keyspace.
        keyspace: String,
        /// The key, in escaped form.
        key: String,
    },
    /// A stored key or value is not the encoding of the type that it is read as.
    Decode {
        /// The keyspace.
        keyspace: String,
        /// The key, in escaped form.
        key: String,
        /// Which of the two: `"key"` or `"value"`.
        part: &'static str,
        /// The name of the type that it is read as.
        expected: &'static str,
        /// What was expected of its encoding, and what was found.
        what: String,
    },
    /// The requested changes are not kept any more. Read a snapshot of the keyspaces instead, and
    /// then the changes from the number after it.
    Gone {
        /// The first write whose changes are kept.
        oldest: u64,
    },
    /// A read failed beside a writer that changes the files faster than the read follows.
    Stalled {
        /// What has happened, and what to do about it.
        reason: String,
    },
    /// A write that is not to wait, or not for longer ([`StallPolicy`](crate::StallPolicy)), met
    /// stalled writes. Nothing was written; the same call may succeed later.
    WriteStalled {
        /// The keyspace whose memtables or runs are the cause; none where the cause concerns all.
        keyspace: Option<String>,
        /// Why the write would have had to wait.
        cause: StallCause,
        /// How long it has waited.
        waited: Duration,
    },
    /// The handle accepts no more writes: it was opened read-only, or an earlier failure of the log
    /// or manifest made it so. Reads go on.
    ReadOnly {
        /// What made it read-only.
        why: String,
    },
    /// The files were written by a newer format than this build understands.
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// The version found there.
        version: u32,
        /// The newest version this build reads.
        supported: u32,
    },
    /// A file was compressed in a way that this build was made without. Nothing that was there was
    /// changed.
    UnsupportedCompression {
        /// The file.
        path: PathBuf,
        /// The name of the compression.
        compression: &'static str,
        /// The cargo feature that builds have it with.
        feature: &'static str,
    },
    /// No database, keyspace or file of that name exists.
    NotFound {
        /// The missing object.
        what: String,
    },
    /// A database is there already, and was not to be
    /// ([`Options::error_if_exists`](crate::Options::error_if_exists)). Nothing was changed.
    AlreadyExists {
        /// The existing object.
        what: String,
    },
}

/// Why a write would have to wait.
///
/// ```
/// use esker::StallCause;
/// assert_eq!(StallCause::LogSegment.to_string(), "the next segment of the log is not ready");
/// assert!(StallCause::LogSegment.hint().contains("disk"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallCause {
    /// Immutable memtables wait for their flush, and the active one fills faster than flushes can
    /// follow: writes are delayed.
    FlushDelay,
    /// Many runs wait for their compaction, and the active memtable fills faster than that can
    /// follow: writes are delayed.
    CompactionDelay,
    /// The active memtable is full, and those before it wait for their flush: writes stop.
    Flush,
    /// The active memtable is full, and too many runs wait for their compaction: writes stop.
    Compaction,
    /// Memtables take their share of the memory budget: writes stop.
    MemoryBudget,
    /// The active segment of the log is full, and the next one is not prepared: writes stop.
    LogSegment,
    /// Another call holds the writer lock for much longer than a write takes: it puts the result of
    /// a compaction or ingest into force, or its thread does not get the processor.
    WriterLock,
}

impl StallCause {
    /// What helps, beside trying again later.
    ///
    /// ```
    /// assert!(esker::StallCause::MemoryBudget.hint().contains("memory_budget_bytes"));
    /// ```
    pub fn hint(&self) -> &'static str {
        match self {
            StallCause::FlushDelay | StallCause::Flush => {
                "try again in some milliseconds, and write less or to a faster disk if it happens often"
            }
            StallCause::CompactionDelay | StallCause::Compaction => {
                "try again later, and give compactions more `background_threads` or a faster disk if it happens often"
            }
            StallCause::MemoryBudget => "try again after a flush, and raise `memory_budget_bytes` if it happens often",
            StallCause::LogSegment => {
                "try again in some milliseconds, and write to a faster disk, or with longer `wal_segment_bytes`, if it happens often"
            }
            StallCause::WriterLock => "try again at once",
        }
    }
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StallCause::FlushDelay => "writes are delayed: memtables wait for their flush",
            StallCause::CompactionDelay => "writes are delayed: many runs wait for their compaction",
            StallCause::Flush => "too many memtables wait for their flush",
            StallCause::Compaction => "too many runs wait for their compaction",
            StallCause::MemoryBudget => "memtables take their share of the memory budget",
            StallCause::LogSegment => "the next segment of the log is not ready",
            StallCause::WriterLock => "another call holds the writer lock",
        })
    }
}

impl Error {
    /// An I/O failure of `operation` on `path`.
    ///
    /// ```
    /// let error = esker::Error::io("open", "note", std::io::ErrorKind::NotFound.into());
    /// assert!(error.to_string().starts_with("cannot open note: "));
    /// ```
    pub fn io(operation: &'static str, path: impl AsRef<Path>, source: io::Error) -> Error {
        Error::Io { operation, path: path.as_ref().to_path_buf(), source }
    }

    /// Damage found at `offset` of `path`.
    ///
    /// ```
    /// let error = esker::Error::corruption("7.table", 4096, "the checksum of the block is wrong");
    /// assert!(error.to_string().contains("7.table is damaged at offset 4096"));
    /// ```
    pub fn corruption(path: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Error {
        Error::Corruption { path: path.as_ref().to_path_buf(), offset, what: what.into() }
    }

    /// A refused argument.
    ///
    /// ```
    /// let error = esker::Error::invalid("the key is too long");
    /// assert_eq!(error.to_string(), "invalid argument: the key is too long");
    /// ```
    pub fn invalid(what: impl Into<String>) -> Error {
        Error::InvalidArgument { what: what.into() }
    }

    /// Whether the same call may succeed later without any change by the caller: a lock that
    /// another process holds, a transaction that met a conflict (run it again from its beginning),
    /// a write that would have waited, a read-only open that met a busy writer, or a full disk.
    ///
    /// ```
    /// assert!(!esker::Error::invalid("the key is too long").is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Locked { .. } | Error::Conflict { .. } | Error::Stalled { .. } | Error::WriteStalled { .. } => true,
            Error::Io { .. } => self.is_disk_full(),
            _ => false,
        }
    }

    /// Whether the cause is a full disk or an exhausted quota.
    ///
    /// ```
    /// let error = esker::Error::io("append to", "7.table", std::io::ErrorKind::StorageFull.into());
    /// assert!(error.is_disk_full() && error.is_retryable());
    /// ```
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Error::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

    /// Whether the cause is that a file is not there.
    pub(crate) fn is_missing_file(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// `EMFILE`, which is this number on every Unix.
const TOO_MANY_OPEN_FILES: i32 = 24;

fn write_io(f: &mut fmt::Formatter<'_>, operation: &str, path: &Path, source: &io::Error) -> fmt::Result {
    write!(f, "cannot {operation} {}: {source}", path.display())?;
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            write!(f, "; free some disk space, and reopen the database if it is read-only by then")
        }
        io::ErrorKind::PermissionDenied => write!(f, "; check the permissions of the directory"),
        _ if cfg!(unix) && source.raw_os_error() == Some(TOO_MANY_OPEN_FILES) => {
            write!(f, "; raise the limit of open files of the process (`ulimit -n`): each table is one")
        }
        _ => Ok(()),
    }
}

fn write_stalled(
    f: &mut fmt::Formatter<'_>,
    keyspace: Option<&str>,
    cause: &StallCause,
    waited: Duration,
) -> fmt::Result {
    write!(f, "nothing was written: {cause}")?;
    if let Some(keyspace) = keyspace {
        write!(f, " in keyspace {keyspace:?}")?;
    }
    if !waited.is_zero() {
        write!(f, ", still after {:.3} s", waited.as_secs_f64())?;
    }
    write!(f, "; {}", cause.hint())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { operation, path, source } => write_io(f, operation, path, source),
            Error::Corruption { path, offset, what } => write!(
                f,
                "{} is damaged at offset {offset}: {what}; run `esker verify` and restore the file from a checkpoint, or try `esker repair`",
                path.display()
            ),
            Error::InCallback { database } => write!(
                f,
                "a merge operator, compaction filter, filter policy, comparator, clock or environment must not write to, iterate over or wait for its own database, {}; hand the work to another thread",
                database.display()
            ),
            Error::InvalidArgument { what } => write!(f, "invalid argument: {what}"),
            Error::Locked { path, holder: Some(pid) } => {
                write!(
                    f,
                    "the database is in use by process {pid} (lock file {}); close it there first",
                    path.display()
                )
            }
            Error::Locked { path, holder: None } => {
                write!(f, "the database is in use (lock file {}); close it there first", path.display())
            }
            Error::KeyspaceDropped { keyspace } => {
                write!(f, "keyspace {keyspace:?} was dropped; open it again to write to a new one of that name")
            }
            Error::Gone { oldest } => write!(
                f,
                "the changes are not kept any more, only those from write {oldest} on; begin anew with a snapshot"
            ),
            Error::MissingMergeOperator { keyspace, operator } => write!(
                f,
                "keyspace {keyspace:?} was created with merge operator {operator:?}; open it with that operator"
            ),
            Error::MissingComparator { keyspace, comparator } => write!(
                f,
                "keyspace {keyspace:?} was created with comparator {comparator:?}; open the database with that comparator: see `Options::comparator`"
            ),
            Error::MergeFailed { keyspace, key, operator, reason } => {
                write!(f, "merge operator {operator:?} failed on key {key} of keyspace {keyspace:?}: {reason}")
            }
            Error::Conflict { keyspace, key } => write!(
                f,
                "the transaction met a conflict: key {key} of keyspace {keyspace:?} was written since it began; run the transaction again"
            ),
            Error::Decode { keyspace, key, part, expected, what } => write!(
                f,
                "the {part} of key {key} in keyspace {keyspace:?} is not the encoding of a {expected}: {what}; read it as the type that it was written as"
            ),
            Error::Stalled { reason } => write!(f, "cannot read beside the writer: {reason}"),
            Error::WriteStalled { keyspace, cause, waited } => write_stalled(f, keyspace.as_deref(), cause, *waited),
            Error::ReadOnly { why } => write!(f, "the database is read-only: {why}; reopen it to write"),
            Error::Unsupported { path, version, supported } => write!(
                f,
                "{} has format version {version}, this build reads up to {supported}; use a newer esker",
                path.display()
            ),
            Error::UnsupportedCompression { path, compression, feature } => write!(
                f,
                "{} is compressed with {compression}, which this build cannot read; build esker with the feature `{feature}`",
                path.display()
            ),
            Error::NotFound { what } => write!(f, "{what} does not exist"),
            Error::AlreadyExists { what } => write!(f, "{what} exists already"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// A key for messages: printable ASCII as it is, every other byte as `\xNN`, long keys shortened.
///
/// ```
/// assert_eq!(esker::escape_key(b"user\x00\x01"), "user\\x00\\x01");
/// ```
pub fn escape_key(key: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text = String::new();
    for &byte in key.iter().take(SHOWN) {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(byte as char),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if key.len() > SHOWN {
        text.push_str(&format!("... ({} bytes)", key.len()));
    }
    text
}

#[cfg(all(test, unix))]
mod tests {
    use super::Error;

    #[test]
    fn the_text_has_the_cause_and_a_walk_over_the_causes_finds_it_with_its_kind() {
        let error = Error::io("open", "7.table", std::io::Error::other("the plug was pulled"));
        assert_eq!(error.to_string().matches("plug").count(), 1, "{error}");
        let mut next: Option<&dyn std::error::Error> = Some(&error);
        let mut kinds = Vec::new();
        while let Some(error) = next {
            kinds.extend(error.downcast_ref::<std::io::Error>().map(std::io::Error::kind));
            next = error.source();
        }
        assert_eq!(kinds, [std::io::ErrorKind::Other]);
    }

    #[test]
    fn missing_descriptors_are_answered_with_what_helps() {
        let error = |number| Error::io("open", "7.table", std::io::Error::from_raw_os_error(number)).to_string();
        assert!(error(24).contains("Too many open files") && error(24).contains("`ulimit -n`"), "{}", error(24));
        assert!(!error(5).contains("ulimit"));
    }
}
