//! The handle for waiting for writes.

use super::keyspace::Keyspace;
use super::shared::Shared;
use crate::base::key_order::KeyOrder;
use crate::db::state::watchers::{Wait, Watcher};
use crate::db::write::in_place_write::Barrier;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Waits for writes to keys that begin with a prefix. Made by [`Keyspace::watch`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let jobs = db.keyspace("jobs", Default::default())?;
/// use std::time::Duration;
/// let watch = jobs.watch("mail/")?;
/// let worker = std::thread::spawn({
///     let jobs = jobs.clone();
///     move || loop {
///         // Looks first: what was there before the watch wakes nobody.
///         if let Some(job) = jobs.pop_first()? {
///             return esker::Result::Ok(job);
///         }
///         watch.wait(Duration::from_secs(60))?;
///     }
/// });
/// jobs.put("mail/1", "to ada")?;
/// assert_eq!(worker.join().unwrap()?.0, b"mail/1"[..]);
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "a watch wakes nobody once it is dropped"]
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Arc<Watcher>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.watcher.fmt(f)
    }
}

impl Keyspace {
    /// Notes from here on whether keys that begin with `prefix` are written, for
    /// [`Watch::wait`]; the empty prefix: any keys. Loads and the drop of the keyspace count as
    /// writes to all of its keys, expiry does not. On a follower, writes come with its catching up.
    ///
    /// While there is a watch, each write of the database compares its keys with the prefixes, and
    /// writes without log take the writer lock.
    ///
    /// # Errors
    /// `ReadOnly` if the database was closed; `KeyspaceDropped`; `InCallback`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use std::time::Duration;
    /// let watch = names.watch("a")?;
    /// names.put("bob", "1990")?;
    /// assert!(!watch.wait(Duration::ZERO)?);
    /// names.put("ada", "1815")?;
    /// assert!(watch.wait(Duration::ZERO)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn watch(&self, prefix: impl AsRef<[u8]>) -> Result<Watch> {
        self.inner.check_exists()?;
        Watch::of(&self.shared, Some(self.inner.id), (&self.inner.order, prefix.as_ref()), false)
    }
}

impl Watch {
    /// Of all keyspaces; `of_syncs`: and of what a sync makes durable.
    pub(super) fn any(shared: &Arc<Shared>, of_syncs: bool) -> Result<Watch> {
        Watch::of(shared, None, (&KeyOrder::Bytewise, b""), of_syncs)
    }

    fn of(
        shared: &Arc<Shared>,
        keyspace: Option<u64>,
        (order, prefix): (&KeyOrder, &[u8]),
        of_syncs: bool,
    ) -> Result<Watch> {
        let inner = &shared.inner;
        inner.refuse_in_callback()?;
        let writer = inner.lock_writer();
        // Under the lock no close is under way.
        if inner.stopping.load(Ordering::Acquire) {
            return Err(closed());
        }
        let watcher = inner.watchers.add(keyspace, order.clone(), prefix.to_vec(), of_syncs);
        Barrier::raise(inner).keep();
        drop(writer);
        Ok(Watch { shared: Arc::clone(shared), watcher })
    }

    /// Waits for a write to such a key, no longer than `timeout`. True if there was one since the
    /// last wait that returned true, or since the watch was made; it may also be true without one.
    /// Each write ends one wait of one thread, any number of writes may end the same.
    ///
    /// # Errors
    /// `ReadOnly` once the database is closed, `InCallback`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # use std::time::Duration;
    /// let watch = names.watch("")?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1990")?;
    /// assert!(watch.wait(Duration::from_secs(1))?);
    /// assert!(!watch.wait(Duration::ZERO)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        self.shared.inner.refuse_in_callback()?;
        // Too far away to be a time: for as long as it takes.
        match self.watcher.wait_until(Instant::now().checked_add(timeout)) {
            Wait::Written => Ok(true),
            Wait::TimedOut => Ok(false),
            Wait::Closed => Err(closed()),
        }
    }
}

fn closed() -> Error {
    Error::ReadOnly { why: "it was closed".into() }
}

impl Drop for Watch {
    fn drop(&mut self) {
        Barrier::lower(&self.shared.inner);
    }
}
