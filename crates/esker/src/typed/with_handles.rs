//! A typed keyspace together with a snapshot or a batch.

use super::encoded::{with_key, with_pair};
use super::iterator::TypedIter;
use super::key::{EncodeKey, KeyCodec, KeyPrefix};
use super::keyspace::{TypedKeyspace, encode_prefix};
use super::range::TypedRange;
use super::value::{EncodeValue, ValueCodec};
use crate::error::Result;
use crate::handle::{Batch, Snapshot};
use std::fmt;
use std::time::Duration;

impl<K, V> TypedKeyspace<K, V> {
    /// The keyspace as the snapshot sees it.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// born.delete("ada")?;
    /// assert_eq!(born.at(&snapshot).get("ada")?, Some(1815));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn at<'a>(&'a self, snapshot: &'a Snapshot) -> TypedSnapshot<'a, K, V> {
        TypedSnapshot { keyspace: self, snapshot }
    }

    /// Writes to the keyspace that are part of the batch.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut batch = db.batch();
    /// born.in_batch(&mut batch).put("ada", 1815)?;
    /// born.in_batch(&mut batch).put("bob", 1923)?;
    /// batch.commit()?;
    /// assert_eq!(born.count(..)?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn in_batch<'a>(&'a self, batch: &'a mut Batch) -> TypedBatch<'a, K, V> {
        TypedBatch { keyspace: self, batch }
    }
}

/// A typed keyspace as a snapshot sees it: see [`TypedKeyspace::at`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
/// let snapshot = db.snapshot();
/// assert_eq!(born.at(&snapshot).iter().count(), 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "it reads nothing by itself"]
pub struct TypedSnapshot<'a, K, V> {
    pub(super) keyspace: &'a TypedKeyspace<K, V>,
    pub(super) snapshot: &'a Snapshot,
}

impl<K, V> fmt::Debug for TypedSnapshot<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedSnapshot").field("keyspace", &self.keyspace).field("snapshot", &self.snapshot).finish()
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedSnapshot<'_, K, V> {
    /// The value of `key` then.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; `Decode` if what is there is no `V`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let snapshot = db.snapshot();
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.at(&snapshot).get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl EncodeKey<K>) -> Result<Option<V>> {
        with_key(&key, |key| {
            let value = self.snapshot.get(self.keyspace.keyspace(), key)?;
            self.keyspace.decode_found(key, value)
        })
    }

    /// Whether `key` had a value then.
    ///
    /// # Errors
    /// As [`Snapshot::contains_key`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// assert!(!born.at(&db.snapshot()).contains_key("ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl EncodeKey<K>) -> Result<bool> {
        with_key(&key, |key| self.snapshot.contains_key(self.keyspace.keyspace(), key))
    }

    /// All keys of then with their values, ascending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(born.at(&snapshot).iter().count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> TypedIter<K, V> {
        TypedIter::new(self.keyspace.keyspace(), self.snapshot.iter(self.keyspace.keyspace()))
    }

    /// The keys in `range` of then with their values, ascending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(born.at(&snapshot).range("b"..).count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&self, range: impl TypedRange<K>) -> TypedIter<K, V> {
        let pairs = self.snapshot.range(self.keyspace.keyspace(), range.encode_bounds());
        TypedIter::new(self.keyspace.keyspace(), pairs)
    }

    /// The keys of then that begin with `prefix` with their values, ascending: see
    /// [`TypedKeyspace::prefix`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(born.at(&snapshot).prefix("ad").count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> TypedIter<K, V> {
        let pairs = self.snapshot.prefix(self.keyspace.keyspace(), encode_prefix(&prefix));
        TypedIter::new(self.keyspace.keyspace(), pairs)
    }
}

/// Writes to a typed keyspace that are part of a batch: see [`TypedKeyspace::in_batch`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
/// let mut batch = db.batch();
/// let mut in_batch = born.in_batch(&mut batch);
/// in_batch.put("ada", 1815)?;
/// in_batch.delete("bob")?;
/// batch.commit()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "it writes nothing by itself"]
pub struct TypedBatch<'a, K, V> {
    pub(super) keyspace: &'a TypedKeyspace<K, V>,
    pub(super) batch: &'a mut Batch,
}

impl<K, V> fmt::Debug for TypedBatch<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedBatch").field("keyspace", &self.keyspace).field("batch", &self.batch).finish()
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedBatch<'_, K, V> {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// As [`Batch::put`]; `InvalidArgument` also if the value has no encoding.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut batch = db.batch();
    /// born.in_batch(&mut batch).put("ada", 1815)?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&mut self, key: impl EncodeKey<K>, value: impl EncodeValue<V>) -> Result<()> {
        with_pair(&key, &value, |key, value| self.batch.put(self.keyspace.keyspace(), key, value))
    }

    /// Sets the value of `key`, to live for `ttl`.
    ///
    /// # Errors
    /// As [`Batch::put_with_ttl`]; `InvalidArgument` also if the value has no encoding.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace};
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let sessions: TypedKeyspace<u64, String> = TypedKeyspace::open(&db, "sessions", expiring)?;
    /// let mut batch = db.batch();
    /// sessions.in_batch(&mut batch).put_with_ttl(7, "ada", std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(&mut self, key: impl EncodeKey<K>, value: impl EncodeValue<V>, ttl: Duration) -> Result<()> {
        with_pair(&key, &value, |key, value| self.batch.put_with_ttl(self.keyspace.keyspace(), key, value, ttl))
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Batch::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut batch = db.batch();
    /// born.in_batch(&mut batch).delete("ada")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        with_key(&key, |key| self.batch.delete(self.keyspace.keyspace(), key))
    }

    /// Removes every key in `range`.
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut batch = db.batch();
    /// born.in_batch(&mut batch).delete_range("a".."b")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range(&mut self, range: impl TypedRange<K>) -> Result<()> {
        self.batch.delete_range(self.keyspace.keyspace(), range.encode_bounds())
    }

    /// Removes every key that begins with `prefix`: see [`TypedKeyspace::prefix`].
    ///
    /// # Errors
    /// As [`Batch::delete_prefix`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let logins: esker::TypedKeyspace<(String, u32), String> = esker::TypedKeyspace::open(&db, "logins", Default::default())?;
    /// let mut batch = db.batch();
    /// logins.in_batch(&mut batch).delete_prefix(("ada",))?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&mut self, prefix: impl KeyPrefix<K>) -> Result<()> {
        self.batch.delete_prefix(self.keyspace.keyspace(), encode_prefix(&prefix))
    }
}
