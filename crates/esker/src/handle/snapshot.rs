//! The database as it was.

use super::iterator::{Cursor, Iter, owned_bounds, prefix_bounds};
use super::keyspace::{Keyspace, multi_get};
use super::shared::Shared;
use crate::base::expiry::Expiry;
use crate::base::slice::Slice;
use crate::db::read;
use crate::db::scan::Source;
use crate::db::snapshot::Registration;
use crate::error::{Error, Result};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// All keyspaces as they were when it was made: exactly the writes acknowledged then, whole batches only, for as long as it lives. Cheap to clone.
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
    registration: Arc<Registration>,
}

impl Snapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Snapshot {
        let registration = Arc::new(shared.inner.register_snapshot());
        Snapshot { shared, registration }
    }

    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Ok(());
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
        self.check(keyspace)?;
        read::get(
            &self.shared.inner,
            &keyspace.inner,
            key.as_ref(),
            self.registration.sequence(),
            self.registration.now_ms(),
        )
    }

    /// As [`Snapshot::get`], but copies the value into `value`, in the place of what that holds, and returns whether there was one: see
    /// [`Keyspace::get_into`].
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
        self.check(keyspace)?;
        let (sequence, now_ms) = (self.registration.sequence(), self.registration.now_ms());
        read::get_into(&self.shared.inner, &keyspace.inner, key.as_ref(), sequence, now_ms, value)
    }

    /// The values of `keys` then, in their order. A key whose value cannot be read does not harm the others.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another database; of each key as [`Keyspace::get`].
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
        self.check(keyspace)?;
        Ok(multi_get(&self.shared.inner, &keyspace.inner, &self.registration, keys))
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
        self.check(keyspace)?;
        let reader = &self.registration;
        read::expires_at(&self.shared.inner, &keyspace.inner, key.as_ref(), reader.sequence(), reader.now_ms())
    }

    fn source(&self, keyspace: &Keyspace) -> Source {
        Source::new(&keyspace.shared.inner, &keyspace.inner, Arc::clone(&self.registration))
    }

    fn scan(&self, keyspace: &Keyspace, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Iter {
        match self.check(keyspace) {
            Ok(()) => Iter::new(self.source(keyspace), lower, upper),
            Err(error) => Iter::failed(self.source(keyspace), error),
        }
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
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Iter {
        let (lower, upper) = owned_bounds(&range);
        self.scan(keyspace, lower, upper)
    }

    /// The keys that begin with `prefix` with their values then, ascending.
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
        let (lower, upper) = prefix_bounds(prefix.as_ref());
        self.scan(keyspace, lower, upper)
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
        self.check(keyspace)?;
        Ok(Cursor::new(self.source(keyspace)))
    }

    /// The sequence number of the last write that it sees.
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
        self.registration.sequence()
    }
}
