//! The handle for reading changes.

use super::database::Db;
use super::shared::Shared;
use super::watch::Watch;
use crate::db::changes::{ChangeBatch, ChangeReader, KeyspaceSettings, settings_at};
use crate::error::Result;
use std::sync::Arc;
use std::time::Duration;

/// What was written, in order: yields each committed batch once. Made by [`Db::changes`].
///
/// It yields nothing where it has caught up, and more after further writes: it is no fused
/// iterator. [`Changes::wait`] waits for them. After an error it goes on where it was.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// use esker::{ChangeOperation, ChangeRetention, Db};
/// let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
/// let names = db.keyspace("names", Default::default())?;
/// let mut changes = db.changes(0)?;
/// names.put("ada", "1815")?;
/// let batch = changes.next().expect("a write")?;
/// assert!(matches!(&batch.changes[0].operation, ChangeOperation::Put { key, .. } if key == "ada"));
/// assert!(changes.next().is_none());
/// names.delete("ada")?;
/// assert!(changes.next().is_some());
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct Changes {
    shared: Arc<Shared>,
    reader: ChangeReader,
    /// Made by the first wait.
    watch: Option<Watch>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").field("position", &self.position()).finish_non_exhaustive()
    }
}

impl Db {
    /// What was written from the write with the number `from` on; 0: all that is kept. The database
    /// must be one that keeps changes: [`Options::keep_changes`](crate::Options::keep_changes). A
    /// follower's handle reads as far as the follower has caught up.
    ///
    /// To keep something in step with the database: make a snapshot, take over what it has, and go
    /// on with the changes from [`Snapshot::sequence`](crate::Snapshot::sequence)` + 1`. Keep
    /// [`ChangeBatch::next_sequence`] together with what was taken over, and begin from it again.
    /// Where writes have no log ([`WriteOptions::disable_wal`](crate::WriteOptions::disable_wal)),
    /// a crash gives their numbers to others: go on from a snapshot's number only once a flush
    /// behind it has returned.
    ///
    /// Costs a look at the manifest and at the segments of the log.
    ///
    /// # Errors
    /// `Gone` with the oldest write whose changes are kept; `InvalidArgument` if no changes are
    /// kept, or if the database ends before `from`; `InCallback`; `Io`.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// use esker::{ChangeRetention, Db};
    /// let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("bob", "1990")?;
    /// let newer = db.changes(snapshot.sequence() + 1)?.collect::<esker::Result<Vec<_>>>()?;
    /// assert_eq!(newer.len(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn changes(&self, from: u64) -> Result<Changes> {
        let reader = ChangeReader::begin(&self.shared.inner, from)?;
        Ok(Changes { shared: Arc::clone(&self.shared), reader, watch: None })
    }
}

impl Changes {
    /// Yields only what a power failure cannot take back: batches that were synced, by their own
    /// write or a later one, a flush or [`Db::sync`]. Without it, what was yielded may be lost with
    /// the power, and its numbers are then given to other writes, which a reader that begins behind
    /// them does not see. On a follower, and on a handle opened read-only, what the writer's last
    /// flush has noted counts as synced; a load, a drop or other settings of a keyspace do once the
    /// writer has gone on behind the sync of its manifest. Where the writer has made another
    /// manifest, nothing counts before it has removed those before, or written something behind.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// use esker::{ChangeRetention, Db};
    /// let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut changes = db.changes(0)?.only_durable();
    /// assert!(changes.next().is_none());
    /// db.sync()?;
    /// assert!(changes.next().is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn only_durable(mut self) -> Changes {
        self.reader.only_durable();
        // That of before is told of no sync.
        self.watch = None;
        self
    }

    /// The number to go on from with [`Db::changes`], also after a crash: that of the next change,
    /// or a smaller one above all that were yielded. 0 as long as nothing was yielded and another
    /// process, the writer, has yet to make durable where the changes begin: who goes on from 0 is
    /// not told what is gone.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # use esker::{ChangeRetention, Db};
    /// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut changes = db.changes(0)?;
    /// changes.next();
    /// assert_eq!(changes.position(), db.snapshot().sequence() + 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The settings of a keyspace after the write `sequence`: its name, the order of its keys, its
    /// merge operator, its time to live. `None` if they are unknown: the keyspace was dropped
    /// before the oldest change that is kept, or never existed. For a write before its creation,
    /// returns the settings at its creation.
    ///
    /// Costs a look at the manifest.
    ///
    /// # Errors
    /// `InvalidArgument` if no changes are kept; `InCallback`; `Io`.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # use esker::{ChangeRetention, Db};
    /// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.rename("people")?;
    /// let mut changes = db.changes(0)?;
    /// let put = changes.next().expect("a write")?.changes.remove(0);
    /// assert_eq!(&*put.keyspace, "names");
    /// let settings = changes.keyspace_settings(put.keyspace_id, put.sequence + 1)?.expect("it exists");
    /// assert_eq!((&*settings.name, settings.merge_operator), ("people", None));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace_settings(&self, keyspace_id: u64, sequence: u64) -> Result<Option<KeyspaceSettings>> {
        settings_at(&self.shared.inner, keyspace_id, sequence)
    }

    /// Waits for a write, no longer than `timeout`. Whether there may be more to read: true also
    /// without a wait if something was written since the last one. With
    /// [`Changes::only_durable`] syncs end it too.
    ///
    /// # Errors
    /// As [`Watch::wait`].
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # use esker::{ChangeRetention, Db};
    /// # use std::time::Duration;
    /// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut changes = db.changes(0)?;
    /// names.put("ada", "1815")?;
    /// while changes.wait(Duration::ZERO)? {
    ///     while let Some(batch) = changes.next() {
    ///         println!("{:?}", batch?.changes);
    ///     }
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        if self.watch.is_none() {
            self.watch = Some(Watch::any(&self.shared, self.reader.is_only_durable())?);
            // What came before the watch woke nobody.
            return Ok(true);
        }
        self.watch.as_ref().map_or(Ok(true), |watch| watch.wait(timeout))
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    /// The next batch; none if there is no more for now.
    ///
    /// An error is `Gone` if the changes were given up before they were read, `Corruption`, `Io`,
    /// or `InCallback`. The next call tries again.
    fn next(&mut self) -> Option<Result<ChangeBatch>> {
        self.reader.next(&self.shared.inner).transpose()
    }
}
