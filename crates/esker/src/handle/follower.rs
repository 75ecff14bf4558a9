//! The handle of a database that another process writes.

use super::database::Db;
use super::shared::Shared;
use crate::db::lifecycle::follow::{self, Following};
use crate::db::lifecycle::follower_progress::{FollowerLag, FollowerProgress};
use crate::error::Result;
use crate::options::Options;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// A database that another process writes, read as of the last [`Follower::catch_up`].
///
/// It takes no lock and writes nothing; the writer knows nothing of it, and never waits for it. It
/// goes on through flushes, compactions, a crash of the writer and its restart.
///
/// ```
/// use esker::{Db, Options, env::mem::MemEnv};
/// let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
/// // In one process:
/// let writer = Db::open("data", options.clone())?;
/// let names = writer.keyspace("names", Default::default())?;
/// // In another:
/// let follower = Db::open_follower("data", options)?;
/// let followed = follower.db().existing_keyspace("names")?;
/// names.put("ada", "1815")?;
/// assert!(followed.get("ada")?.is_none());
/// follower.catch_up()?;
/// assert_eq!(followed.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Follower {
    db: Db,
    following: Arc<Mutex<Following>>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Follower").field(&self.db).finish()
    }
}

impl Db {
    /// Opens an existing database for reading behind a writer in another process, or in this one:
    /// each [`Follower::catch_up`] brings what the writer has written since. Takes no lock and
    /// writes nothing. Custom merge operators are supplied as for any open.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    ///
    /// ```
    /// use esker::{Db, Options, env::mem::MemEnv};
    /// let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// let writer = Db::open("data", options.clone())?;
    /// let follower = Db::open_follower("data", options)?;
    /// writer.keyspace("names", Default::default())?.put("ada", "1815")?;
    /// follower.catch_up()?;
    /// assert!(follower.db().existing_keyspace("names")?.contains_key("ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_follower(path: impl AsRef<Path>, options: Options) -> Result<Follower> {
        let (inner, following) = follow::open(path.as_ref(), options)?;
        let following = Arc::new(Mutex::new(following));
        let shared = Arc::new(Shared::of_follower(Arc::new(inner), &following));
        Ok(Follower { db: Db { shared }, following })
    }
}

impl Follower {
    /// Reads what the writer has written since: everything that was acknowledged before this call
    /// is there when it returns, but for writes without log, which come with their flush. To be
    /// called as often as the readers want to be up to date.
    ///
    /// Snapshots and iterators made before go on seeing what they saw. A read without snapshot that
    /// runs meanwhile may see a batch in part, as beside a writer; making a snapshot waits for the
    /// end of this call.
    ///
    /// # Errors
    /// `Stalled` if the writer changes its files faster than they can be read; `Io` and
    /// `Corruption` as for [`Db::open_read_only`]. The follower has the state of before, or a newer
    /// one, and may try again. `InCallback`.
    ///
    /// ```
    /// # use esker::{Db, Options, env::mem::MemEnv};
    /// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// # let writer = Db::open("data", options.clone())?;
    /// # let names = writer.keyspace("names", Default::default())?;
    /// # let follower = Db::open_follower("data", options)?;
    /// names.put("ada", "1815")?;
    /// let progress = follower.catch_up()?;
    /// println!("up to write {}", progress.sequence);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn catch_up(&self) -> Result<FollowerProgress> {
        let inner = &self.db.shared.inner;
        inner.refuse_in_callback()?;
        follow::catch_up(inner, &mut self.following.lock())
    }

    /// How far the follower is behind what the writer has written; it stays where it is. Reads the
    /// log from there on, which takes the time that catching up takes to read it. Waits for a
    /// catching up at work.
    ///
    /// Not in the numbers: what is written without log, what the writer is about to write, and what
    /// an open would not find either, such as what lies behind damage.
    ///
    /// # Errors
    /// `Io`; `Corruption`; `InCallback`. `None` if the log from there on is gone: it is in tables,
    /// which the next [`Follower::catch_up`] reads.
    ///
    /// ```
    /// # use esker::{Db, Options, env::mem::MemEnv};
    /// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// # let writer = Db::open("data", options.clone())?;
    /// # let names = writer.keyspace("names", Default::default())?;
    /// # let follower = Db::open_follower("data", options)?;
    /// names.put("ada", "1815")?;
    /// assert_eq!(follower.lag()?.map(|lag| lag.batches), Some(1));
    /// follower.catch_up()?;
    /// assert_eq!(follower.lag()?.map(|lag| lag.batches), Some(0));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn lag(&self) -> Result<Option<FollowerLag>> {
        let inner = &self.db.shared.inner;
        inner.refuse_in_callback()?;
        follow::lag(inner, &self.following.lock())
    }

    /// The handle to read with, which is that of a database opened read-only: its keyspaces show
    /// what the last catching up has found.
    ///
    /// ```
    /// # use esker::{Db, Options, env::mem::MemEnv};
    /// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// # let writer = Db::open("data", options.clone())?;
    /// # let names = writer.keyspace("names", Default::default())?;
    /// let follower = Db::open_follower("data", options)?;
    /// assert_eq!(follower.db().keyspaces(), ["names"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn db(&self) -> &Db {
        &self.db
    }
}
