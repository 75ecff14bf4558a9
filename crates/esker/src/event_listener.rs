//! What a program can be told about the work that a database does on its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A memtable was written to tables, and the manifest names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlushCompleted {
    /// The keyspace.
    pub keyspace: String,
    /// Tables written; 0 if nothing had to be kept.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Tables were merged, and the manifest names the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionCompleted {
    /// The keyspace.
    pub keyspace: String,
    /// Tables read.
    pub input_tables: u64,
    /// Bytes of them.
    pub input_bytes: u64,
    /// Tables written.
    pub output_tables: u64,
    /// Bytes of them.
    pub output_bytes: u64,
}

/// Sorted pairs were loaded past the log, and the manifest names their tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestCompleted {
    /// The keyspace.
    pub keyspace: String,
    /// Pairs loaded.
    pub entries: u64,
    /// Tables written.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A table became part of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCreated {
    /// The keyspace.
    pub keyspace: String,
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Entries in it: versions, not keys.
    pub entries: u64,
}

/// Is told of what happens in a database. Every method does nothing unless it is overridden.
///
/// Events are queued where they happen and handed out by a thread of their own, one after the other, in that order: a slow listener delays no
/// write and no background work, and an event may be some time old. If more than 4096 wait, later ones are left out until there is room, and
/// [`EventListener::missed`] says how many. [`crate::Db::close`], and dropping the last handle, return after the listener has seen every event.
///
/// No lock of the engine is held during a call, so a listener may use the database. It should keep no handle of it: that handle
/// would keep the database open. Only closing must be left to other threads. A panic in a listener is contained; the next event comes all the same.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-events-{}", std::process::id()));
/// use esker::{Db, EventListener, FlushCompleted, Options};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
/// impl EventListener for Flushed {
///     fn flush_completed(&self, event: &FlushCompleted) {
///         self.0.fetch_add(event.bytes, Ordering::Relaxed);
///     }
/// }
///
/// let flushed = Arc::new(Flushed::default());
/// let db = Db::open(&directory, Options::default().event_listener(flushed.clone()))?;
/// db.keyspace("names", Default::default())?.put("ada", "")?;
/// db.flush()?;
/// db.close()?;
/// assert!(flushed.0.load(Ordering::Relaxed) > 0);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
pub trait EventListener: Send + Sync {
    /// A memtable was written to tables.
    fn flush_completed(&self, _event: &FlushCompleted) {}
    /// Tables were merged.
    fn compaction_completed(&self, _event: &CompactionCompleted) {}
    /// Sorted pairs were loaded.
    fn ingest_completed(&self, _event: &IngestCompleted) {}
    /// A table became part of the database.
    fn table_created(&self, _event: &TableCreated) {}
    /// The file of a table that is not part of the database any more was removed.
    fn table_removed(&self, _path: &Path) {}
    /// A write to the keyspace waits for background work, for this reason. For the memory budget, which all keyspaces share, the name is empty.
    fn stall_began(&self, _keyspace: &str, _reason: &str) {}
    /// A write to the keyspace goes on after it waited this long.
    fn stall_ended(&self, _keyspace: &str, _waited: Duration) {}
    /// Background work failed, with this error; it is tried again. Told once until it succeeds.
    fn background_error(&self, _error: &str) {}
    /// Background work succeeds again.
    fn recovered(&self) {}
    /// No more writes are accepted, for this reason: only opening again helps. Not told of a close.
    fn became_read_only(&self, _reason: &str) {}
    /// This many events were left out, because too many waited.
    fn missed(&self, _events: u64) {}
}
