//! A typed keyspace in a transaction.

use super::encoded::{with_key, with_pair};
use super::iterator::TypedIter;
use super::key::{EncodeKey, KeyCodec, KeyPrefix};
use super::keyspace::{TypedKeyspace, encode_prefix};
use super::range::TypedRange;
use super::value::{EncodeValue, ValueCodec};
use crate::error::Result;
use crate::handle::{Transaction, TransactionIter};
use std::fmt;

impl<K, V> TypedKeyspace<K, V> {
    /// Reads and writes of the keyspace that are part of the transaction.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// db.transact(10, |transaction| -> esker::Result<()> {
    ///     let mut born = born.in_transaction(transaction);
    ///     let year = born.get("ada")?.unwrap_or(1815);
    ///     born.put("bob", year + 108)
    /// })?;
    /// assert_eq!(born.get("bob")?, Some(1923));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn in_transaction<'a>(&'a self, transaction: &'a mut Transaction) -> TypedTransaction<'a, K, V> {
        TypedTransaction { keyspace: self, transaction }
    }
}

/// A typed keyspace in a transaction: see [`TypedKeyspace::in_transaction`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
/// let mut transaction = db.transaction();
/// born.in_transaction(&mut transaction).put("ada", 1815)?;
/// transaction.commit()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "it reads and writes nothing by itself"]
pub struct TypedTransaction<'a, K, V> {
    pub(super) keyspace: &'a TypedKeyspace<K, V>,
    pub(super) transaction: &'a mut Transaction,
}

impl<K, V> fmt::Debug for TypedTransaction<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTransaction")
            .field("keyspace", &self.keyspace)
            .field("transaction", &self.transaction)
            .finish()
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedTransaction<'_, K, V> {
    /// The value of `key`, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `Decode` if what is there is no `V`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(born.in_transaction(&mut transaction).get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&mut self, key: impl EncodeKey<K>) -> Result<Option<V>> {
        with_key(&key, |key| {
            let value = self.transaction.get(self.keyspace.keyspace(), key)?;
            self.keyspace.decode_found(key, value)
        })
    }

    /// Whether `key` has a value, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::contains_key`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// assert!(!born.in_transaction(&mut transaction).contains_key("ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&mut self, key: impl EncodeKey<K>) -> Result<bool> {
        with_key(&key, |key| self.transaction.contains_key(self.keyspace.keyspace(), key))
    }

    /// Sets the value of `key` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `InvalidArgument` also if the value has no encoding.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// born.in_transaction(&mut transaction).put("ada", 1815)?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&mut self, key: impl EncodeKey<K>, value: impl EncodeValue<V>) -> Result<()> {
        with_pair(&key, &value, |key, value| self.transaction.put(self.keyspace.keyspace(), key, value))
    }

    /// Removes `key` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// born.in_transaction(&mut transaction).delete("ada")?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        with_key(&key, |key| self.transaction.delete(self.keyspace.keyspace(), key))
    }

    /// Removes every key in `range` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::delete_range`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// born.in_transaction(&mut transaction).delete_range("a".."b")?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range(&mut self, range: impl TypedRange<K>) -> Result<()> {
        self.transaction.delete_range(self.keyspace.keyspace(), range.encode_bounds())
    }

    /// All keys with their values, ascending, as the transaction sees them.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// born.in_transaction(&mut transaction).put("ada", 1815)?;
    /// assert_eq!(born.in_transaction(&mut transaction).iter().count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&mut self) -> TypedIter<K, V, TransactionIter<'_>> {
        TypedIter::new(self.keyspace.keyspace(), self.transaction.iter(self.keyspace.keyspace()))
    }

    /// The keys in `range` with their values, ascending, as the transaction sees them.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(born.in_transaction(&mut transaction).range("a"..).count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&mut self, range: impl TypedRange<K>) -> TypedIter<K, V, TransactionIter<'_>> {
        let pairs = self.transaction.range(self.keyspace.keyspace(), range.encode_bounds());
        TypedIter::new(self.keyspace.keyspace(), pairs)
    }

    /// The keys that begin with `prefix` with their values, ascending, as the transaction sees
    /// them: see [`TypedKeyspace::prefix`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let logins: esker::TypedKeyspace<(String, u32), String> = esker::TypedKeyspace::open(&db, "logins", Default::default())?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(logins.in_transaction(&mut transaction).prefix(("ada",)).count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&mut self, prefix: impl KeyPrefix<K>) -> TypedIter<K, V, TransactionIter<'_>> {
        let pairs = self.transaction.prefix(self.keyspace.keyspace(), encode_prefix(&prefix));
        TypedIter::new(self.keyspace.keyspace(), pairs)
    }
}
