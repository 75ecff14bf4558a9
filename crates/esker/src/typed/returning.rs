//! Typed keyspaces: writes that return something, merges, and several keys at a time.

use super::encoded::with_pair;
use super::iterator::decode_pair;
use super::key::{EncodeKey, KeyCodec, KeyPrefix};
use super::keyspace::{TypedKeyspace, encode_prefix};
use super::range::TypedRange;
use super::transaction::TypedTransaction;
use super::value::{EncodeValue, ValueCodec};
use super::with_handles::TypedSnapshot;
use crate::error::Result;
use crate::options::WriteOptions;

/// The encodings of keys, in their order.
fn encode_keys<K, E: EncodeKey<K>>(keys: impl IntoIterator<Item = E>) -> Vec<Vec<u8>> {
    let encode = |key: E| {
        let mut encoded = Vec::new();
        key.encode_key(&mut encoded);
        encoded
    };
    keys.into_iter().map(encode).collect()
}

impl<K: KeyCodec, V: ValueCodec> TypedKeyspace<K, V> {
    /// As [`Keyspace::multi_get`](crate::Keyspace::multi_get): one get for each key, all of one
    /// moment.
    ///
    /// # Errors
    /// Those of [`TypedKeyspace::get`], each at the place of its key.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let found = births.multi_get(["ada", "bob"]).into_iter().collect::<esker::Result<Vec<_>>>()?;
    /// assert_eq!(found, [Some(1815), None]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<E: EncodeKey<K>>(&self, keys: impl IntoIterator<Item = E>) -> Vec<Result<Option<V>>> {
        let keys = encode_keys(keys);
        let found = self.keyspace().multi_get(&keys);
        keys.iter().zip(found).map(|(key, found)| self.decode_found(key, found?)).collect()
    }

    /// As [`Keyspace::merge`](crate::Keyspace::merge): the operand is encoded as a value is.
    ///
    /// # Errors
    /// As [`Keyspace::merge`](crate::Keyspace::merge).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// best.merge("ada", 7)?;
    /// best.merge("ada", 5)?;
    /// assert_eq!(best.get("ada")?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&self, key: impl EncodeKey<K>, operand: impl EncodeValue<V>) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::new())
    }

    /// As [`Keyspace::merge_and_get`](crate::Keyspace::merge_and_get).
    ///
    /// # Errors
    /// As [`TypedKeyspace::merge`], and as [`TypedKeyspace::get`]: a result that is no encoding of
    /// a value is written all the same.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// best.put("ada", 7)?;
    /// assert_eq!(best.merge_and_get("ada", 5)?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_and_get(&self, key: impl EncodeKey<K>, operand: impl EncodeValue<V>) -> Result<Option<V>> {
        self.merge_and_get_with(key, operand, &WriteOptions::new())
    }

    /// As [`Keyspace::compare_and_swap`](crate::Keyspace::compare_and_swap), by the encodings:
    /// whether the key had the expected value. No value can be expected, and be the new one.
    ///
    /// # Errors
    /// As [`TypedKeyspace::put`] and [`TypedKeyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// assert!(births.compare_and_swap("ada", None, Some(1816))?);
    /// assert!(births.compare_and_swap("ada", Some(1816), Some(1815))?);
    /// assert!(!births.compare_and_swap("ada", Some(1816), None)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_swap(&self, key: impl EncodeKey<K>, expected: Option<V>, new: Option<V>) -> Result<bool>
    where
        V: EncodeValue<V>,
    {
        self.compare_and_swap_with(key, expected, new, &WriteOptions::new())
    }

    /// As [`Keyspace::pop_first`](crate::Keyspace::pop_first).
    ///
    /// # Errors
    /// As [`Keyspace::pop_first`](crate::Keyspace::pop_first), and as [`TypedKeyspace::get`]: a
    /// pair that cannot be decoded is deleted all the same.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// assert_eq!(births.pop_first()?, Some(("ada".to_owned(), 1815)));
    /// assert_eq!(births.pop_first()?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(K, V)>> {
        self.keyspace().pop_first()?.map(|pair| decode_pair(self.keyspace(), pair)).transpose()
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedSnapshot<'_, K, V> {
    /// As [`Snapshot::multi_get`](crate::Snapshot::multi_get).
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another database; of each key as
    /// [`TypedSnapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// let found = births.at(&snapshot).multi_get(["ada", "bob"])?.into_iter().collect::<esker::Result<Vec<_>>>()?;
    /// assert_eq!(found, [Some(1815), None]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<E: EncodeKey<K>>(&self, keys: impl IntoIterator<Item = E>) -> Result<Vec<Result<Option<V>>>> {
        let keys = encode_keys(keys);
        let found = self.snapshot.multi_get(self.keyspace.keyspace(), &keys)?;
        Ok(keys.iter().zip(found).map(|(key, found)| self.keyspace.decode_found(key, found?)).collect())
    }

    /// As [`Snapshot::first`](crate::Snapshot::first).
    ///
    /// # Errors
    /// As [`TypedSnapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(births.at(&snapshot).first()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(K, V)>> {
        let pair = self.snapshot.first(self.keyspace.keyspace())?;
        pair.map(|pair| decode_pair(self.keyspace.keyspace(), pair)).transpose()
    }

    /// As [`Snapshot::last`](crate::Snapshot::last).
    ///
    /// # Errors
    /// As [`TypedSnapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(births.at(&snapshot).last()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<(K, V)>> {
        let pair = self.snapshot.last(self.keyspace.keyspace())?;
        pair.map(|pair| decode_pair(self.keyspace.keyspace(), pair)).transpose()
    }

    /// As [`Snapshot::count`](crate::Snapshot::count).
    ///
    /// # Errors
    /// As [`Snapshot::count`](crate::Snapshot::count).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(births.at(&snapshot).count(..)?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&self, range: impl TypedRange<K>) -> Result<u64> {
        self.snapshot.count(self.keyspace.keyspace(), range.encode_bounds())
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedTransaction<'_, K, V> {
    /// As [`Transaction::multi_get`](crate::Transaction::multi_get).
    ///
    /// # Errors
    /// Those of [`TypedTransaction::get`], each at the place of its key.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// let found = births.in_transaction(&mut transaction).multi_get(["ada", "bob"]);
    /// assert_eq!(found.into_iter().collect::<esker::Result<Vec<_>>>()?, [Some(1815), None]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<E: EncodeKey<K>>(&mut self, keys: impl IntoIterator<Item = E>) -> Vec<Result<Option<V>>> {
        let keys = encode_keys(keys);
        let found = self.transaction.multi_get(self.keyspace.keyspace(), &keys);
        keys.iter().zip(found).map(|(key, found)| self.keyspace.decode_found(key, found?)).collect()
    }

    /// As [`Transaction::first`](crate::Transaction::first).
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(births.in_transaction(&mut transaction).first()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&mut self) -> Result<Option<(K, V)>> {
        let pair = self.transaction.first(self.keyspace.keyspace())?;
        pair.map(|pair| decode_pair(self.keyspace.keyspace(), pair)).transpose()
    }

    /// As [`Transaction::last`](crate::Transaction::last).
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(births.in_transaction(&mut transaction).last()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&mut self) -> Result<Option<(K, V)>> {
        let pair = self.transaction.last(self.keyspace.keyspace())?;
        pair.map(|pair| decode_pair(self.keyspace.keyspace(), pair)).transpose()
    }

    /// As [`Transaction::count`](crate::Transaction::count).
    ///
    /// # Errors
    /// As [`Transaction::count`](crate::Transaction::count).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(births.in_transaction(&mut transaction).count(..)?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&mut self, range: impl TypedRange<K>) -> Result<u64> {
        self.transaction.count(self.keyspace.keyspace(), range.encode_bounds())
    }

    /// As [`Transaction::pop_first`](crate::Transaction::pop_first).
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(births.in_transaction(&mut transaction).pop_first()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn pop_first(&mut self) -> Result<Option<(K, V)>> {
        let pair = self.transaction.pop_first(self.keyspace.keyspace())?;
        pair.map(|pair| decode_pair(self.keyspace.keyspace(), pair)).transpose()
    }

    /// As [`Transaction::delete_prefix`](crate::Transaction::delete_prefix).
    ///
    /// # Errors
    /// As [`TypedTransaction::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).delete_prefix("a")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&mut self, prefix: impl KeyPrefix<K>) -> Result<()> {
        self.transaction.delete_prefix(self.keyspace.keyspace(), encode_prefix(&prefix))
    }

    /// As [`Transaction::merge`](crate::Transaction::merge).
    ///
    /// # Errors
    /// As [`Transaction::merge`](crate::Transaction::merge).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// let mut transaction = db.transaction();
    /// best.in_transaction(&mut transaction).merge("ada", 7)?;
    /// assert_eq!(best.in_transaction(&mut transaction).get("ada")?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&mut self, key: impl EncodeKey<K>, operand: impl EncodeValue<V>) -> Result<()> {
        with_pair(&key, &operand, |key, operand| self.transaction.merge(self.keyspace.keyspace(), key, operand))
    }
}
