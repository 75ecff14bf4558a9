//! Event listeners: what a database reports about its background work.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A memtable was written to tables, and the manifest names them.
///
/// ```
/// struct Log;
/// impl esker::EventListener for Log {
///     fn flush_completed(&self, event: &esker::FlushCompleted) {
///         println!("{}: {} tables, {} bytes", event.keyspace, event.tables, event.bytes);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushCompleted {
    /// The keyspace.
    pub keyspace: String,
    /// Tables written; 0 if nothing had to be kept.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Tables were compacted, and the manifest names the result.
///
/// ```
/// struct Log;
/// impl esker::EventListener for Log {
///     fn compaction_completed(&self, event: &esker::CompactionCompleted) {
///         println!("{}: {} bytes became {}", event.keyspace, event.input_bytes, event.output_bytes);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
///
/// ```
/// struct Log;
/// impl esker::EventListener for Log {
///     fn ingest_completed(&self, event: &esker::IngestCompleted) {
///         println!("{}: {} pairs", event.keyspace, event.entries);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
///
/// ```
/// struct Log;
/// impl esker::EventListener for Log {
///     fn table_created(&self, event: &esker::TableCreated) {
///         println!("{} with {} entries", event.path.display(), event.entries);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// Receives the events of a database. Every method does nothing unless it is overridden.
///
/// Events are queued where they happen and handed out by a thread of their own, one after the
/// other, in that order: a slow listener delays no write and no background work, and an event may
/// be some time old. If more than 4096 wait, later ones are left out until there is room, and
/// [`EventListener::missed`] says how many. [`crate::Db::close`], and dropping the last handle,
/// return after the listener has seen every event.
///
/// No lock of the engine is held during a call, so a listener may use the database in every way. It
/// should keep no handle of it: that handle would keep the database open. If it closes the
/// database, the events that wait come after that. A panic in a listener is contained; the next
/// event comes all the same.
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
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn flush_completed(&self, event: &esker::FlushCompleted) {
    ///     println!("{} bytes written", event.bytes);
    /// }
    /// # }
    /// ```
    fn flush_completed(&self, _event: &FlushCompleted) {}
    /// Tables were compacted.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn compaction_completed(&self, event: &esker::CompactionCompleted) {
    ///     println!("{} bytes read", event.input_bytes);
    /// }
    /// # }
    /// ```
    fn compaction_completed(&self, _event: &CompactionCompleted) {}
    /// Sorted pairs were loaded.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn ingest_completed(&self, event: &esker::IngestCompleted) {
    ///     println!("{} pairs loaded", event.entries);
    /// }
    /// # }
    /// ```
    fn ingest_completed(&self, _event: &IngestCompleted) {}
    /// A table became part of the database.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn table_created(&self, event: &esker::TableCreated) {
    ///     println!("{} is new", event.path.display());
    /// }
    /// # }
    /// ```
    fn table_created(&self, _event: &TableCreated) {}
    /// The file of an obsolete table was removed.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn table_removed(&self, path: &std::path::Path) {
    ///     println!("{} is gone", path.display());
    /// }
    /// # }
    /// ```
    fn table_removed(&self, _path: &Path) {}
    /// A write to the keyspace stops for background work, for this reason. For the memory budget,
    /// which all keyspaces share, the name is empty.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn stall_began(&self, keyspace: &str, reason: &str) {
    ///     println!("writes to {keyspace} wait: {reason}");
    /// }
    /// # }
    /// ```
    fn stall_began(&self, _keyspace: &str, _reason: &str) {}
    /// A write to the keyspace goes on after it was stopped this long.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn stall_ended(&self, keyspace: &str, waited: std::time::Duration) {
    ///     println!("writes to {keyspace} go on after {waited:?}");
    /// }
    /// # }
    /// ```
    fn stall_ended(&self, _keyspace: &str, _waited: Duration) {}
    /// Background work failed, with this error; it is tried again. Told once until it succeeds.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn background_error(&self, error: &str) {
    ///     eprintln!("{error}; tried again");
    /// }
    /// # }
    /// ```
    fn background_error(&self, _error: &str) {}
    /// Background work succeeds again.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn recovered(&self) {
    ///     println!("all is well again");
    /// }
    /// # }
    /// ```
    fn recovered(&self) {}
    /// No more writes are accepted, for this reason: only opening again helps. A close is not
    /// reported.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn became_read_only(&self, reason: &str) {
    ///     eprintln!("no more writes: {reason}");
    /// }
    /// # }
    /// ```
    fn became_read_only(&self, _reason: &str) {}
    /// This many events were left out, because too many waited.
    ///
    /// ```
    /// # struct Log;
    /// # impl esker::EventListener for Log {
    /// fn missed(&self, events: u64) {
    ///     println!("{events} events were left out");
    /// }
    /// # }
    /// ```
    fn missed(&self, _events: u64) {}
}
