//! Snapshots: the database as of one sequence number.

use super::iterator::{Cursor, Iter};
use super::keyspace::Keyspace;
use super::read::multi_get;
use super::shared::Shared;
use crate::base::expiry::Expiry;
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::db::read::get;
use crate::db::read::scan::Source;
use crate::db::state::latencies::Timed;
use crate::db::state::snapshots::SnapshotGuard;
use crate::error::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// All keyspaces as they were when it was made: exactly the writes acknowledged then, whole batches
/// only, for as long as it lives. Cheap to clone.
///
/// While a snapshot lives, the versions it sees stay on disk.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// # names.put("ada", "1815")?;
/// let snapshot = db.snapshot();
/// names.delete("ada")?;
/// assert!(names.get("ada")?.is_none());
/// assert!(snapshot.get(&names, "ada")?.is_some());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    shared: Arc<Shared>,
    /// None in a snapshot that a callback of the database made.
    snapshot_guard: Option<Arc<SnapshotGuard>>,
}

impl Snapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Snapshot {
        let snapshot_guard = shared.inner.register_snapshot().ok().map(Arc::new);
        Snapshot { shared, snapshot_guard }
    }

    /// What reads of the keyspace read at.
    fn reader(&self, keyspace: &Keyspace) -> Result<&Arc<SnapshotGuard>> {
        if Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return self.snapshot_guard.as_ref().ok_or_else(|| self.shared.inner.in_callback());
        }
        Err(Error::invalid(format!("keyspace {:?} belongs to another database than the snapshot", keyspace.name())))
    }

    /// The value of `key` then.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `InvalidArgument` if the keyspace belongs to another database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("ada", "1816")?;
    /// assert_eq!(snapshot.get(&names, "ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let reader = self.reader(keyspace)?;
        let inner = &self.shared.inner;
        inner.timed(Timed::Get, || get::get(inner, &keyspace.inner, &keyspace.stored(&key), reader.point()))
    }

    /// As [`Snapshot::get`], but copies the value into `value`, in the place of what that holds,
    /// and returns whether there was one: see [`Keyspace::get_into`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.delete("ada")?;
    /// let mut year = Vec::new();
    /// assert!(snapshot.get_into(&names, "ada", &mut year)?);
    /// assert_eq!(year, b"1815");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`]; `value` is empty then.
    pub fn get_into(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let reader = self.reader(keyspace)?;
        let inner = &self.shared.inner;
        inner.timed(Timed::Get, || get::get_into(inner, &keyspace.inner, &keyspace.stored(&key), reader.point(), value))
    }

    /// The values of `keys` then, in their order. A key whose value cannot be read does not harm
    /// the others.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another database; of each key as
    /// [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let values = db.snapshot().multi_get(&names, ["ada", "bob"])?;
    /// assert!(matches!(&values[..], [Ok(Some(_)), Ok(None)]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Result<Option<Slice>>>> {
        Ok(multi_get(&self.shared.inner, &keyspace.inner, self.reader(keyspace)?, keys))
    }

    /// When the value that `key` had then expires; none if it had none.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("ada", "")?;
    /// let snapshot = db.snapshot();
    /// sessions.delete("ada")?;
    /// assert_eq!(snapshot.expires_at(&sessions, "ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Expiry>> {
        let reader = self.reader(keyspace)?;
        get::expires_at(&self.shared.inner, &keyspace.inner, &keyspace.stored(&key), reader.point())
    }

    pub(super) fn source(&self, keyspace: &Keyspace) -> Result<Source> {
        let reader = Arc::clone(self.reader(keyspace)?);
        Source::new(&keyspace.shared.inner, &keyspace.inner, reader)
    }

    fn scan(&self, keyspace: &Keyspace, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Iter {
        Iter::new(self.source(keyspace), lower, upper)
    }

    /// All keys with their values then, ascending; `.rev()` for descending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("bob", "1923")?;
    /// assert_eq!(snapshot.iter(&names).count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self, keyspace: &Keyspace) -> Iter {
        self.scan(keyspace, Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys in `range` with their values then, ascending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(snapshot.range(&names, "a".."b").count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyRange) -> Iter {
        let (lower, upper) = keyspace.stored_bounds(&range);
        self.scan(keyspace, lower, upper)
    }

    /// The keys that begin with `prefix` with their values then, ascending.
    ///
    /// Where keys of a prefix need not be neighbours, in the order of a comparator that is not
    /// built in, its first item is `InvalidArgument`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(snapshot.prefix(&names, "ad").count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Iter {
        match keyspace.prefix_bounds(prefix.as_ref()) {
            Ok(bounds) => self.range(keyspace, bounds),
            Err(error) => Iter::new(Err(error), Bound::Unbounded, Bound::Unbounded),
        }
    }

    /// A cursor over everything then.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let mut cursor = db.snapshot().cursor(&names)?;
    /// cursor.seek_to_last()?;
    /// assert_eq!(cursor.key(), b"ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor(&self, keyspace: &Keyspace) -> Result<Cursor> {
        Cursor::new(self.source(keyspace)?)
    }

    /// The sequence number of the last write that it sees; 0 if a callback of the database made it.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("bob", "1923")?;
    /// assert_eq!(snapshot.sequence() + 1, db.snapshot().sequence());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sequence(&self) -> u64 {
        self.snapshot_guard.as_ref().map_or(0, |snapshot_guard| snapshot_guard.sequence())
    }
}
