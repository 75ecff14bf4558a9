//! Typed keyspaces: conditional and returning writes with options, and merges.

use super::counters::{Count, Counters};
use super::encoded::{with_key, with_pair};
use super::key::{EncodeKey, KeyCodec};
use super::keyspace::TypedKeyspace;
use super::range::TypedRange;
use super::transaction::TypedTransaction;
use super::value::{EncodeValue, ValueCodec};
use super::with_handles::TypedBatch;
use crate::error::Result;
use crate::options::WriteOptions;
use std::time::Duration;

impl<K: KeyCodec, V: ValueCodec> TypedKeyspace<K, V> {
    /// As [`Keyspace::put_if_absent_with`](crate::Keyspace::put_if_absent_with).
    ///
    /// # Errors
    /// As [`TypedKeyspace::put_if_absent`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace, WriteOptions};
    /// // A lease of ten seconds.
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let leases: TypedKeyspace<String, String> = TypedKeyspace::open(&db, "leases", expiring)?;
    /// let lease = WriteOptions::new().ttl(std::time::Duration::from_secs(10));
    /// assert_eq!(leases.put_if_absent_with("mail", "ada", &lease)?, None);
    /// assert_eq!(leases.put_if_absent_with("mail", "bob", &lease)?.as_deref(), Some("ada"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_if_absent_with(
        &self,
        key: impl EncodeKey<K>,
        value: impl EncodeValue<V>,
        options: &WriteOptions,
    ) -> Result<Option<V>> {
        with_pair(&key, &value, |key, value| {
            let present = self.keyspace().put_if_absent_with(key, value, options)?;
            self.decode_found(key, present)
        })
    }

    /// As [`Keyspace::compare_and_swap_with`](crate::Keyspace::compare_and_swap_with), by the
    /// encodings.
    ///
    /// # Errors
    /// As [`TypedKeyspace::compare_and_swap`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// let synced = esker::WriteOptions::new().sync(true);
    /// assert!(births.compare_and_swap_with("ada", None, Some(1815), &synced)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_swap_with(
        &self,
        key: impl EncodeKey<K>,
        expected: Option<V>,
        new: Option<V>,
        options: &WriteOptions,
    ) -> Result<bool>
    where
        V: EncodeValue<V>,
    {
        let encode = |value: Option<V>| -> Result<Option<Vec<u8>>> {
            let Some(value) = value else { return Ok(None) };
            let mut memory = Vec::new();
            Ok(Some(value.encode_value(&mut memory)?.to_vec()))
        };
        let (expected, new) = (encode(expected)?, encode(new)?);
        with_key(&key, |key| {
            let (expected, new) = (expected.as_deref(), new.as_deref());
            Ok(self.keyspace().compare_and_swap_with(key, expected, new, options)?.is_swapped())
        })
    }

    /// As [`Keyspace::take_with`](crate::Keyspace::take_with).
    ///
    /// # Errors
    /// As [`TypedKeyspace::take`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// assert_eq!(births.take_with("ada", &esker::WriteOptions::new().sync(true))?, Some(1815));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn take_with(&self, key: impl EncodeKey<K>, options: &WriteOptions) -> Result<Option<V>> {
        with_key(&key, |key| self.decode_found(key, self.keyspace().take_with(key, options)?))
    }

    /// As [`Keyspace::merge_with`](crate::Keyspace::merge_with).
    ///
    /// # Errors
    /// As [`TypedKeyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// best.merge_with("ada", 7, &esker::WriteOptions::new().sync(true))?;
    /// assert_eq!(best.get("ada")?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with(
        &self,
        key: impl EncodeKey<K>,
        operand: impl EncodeValue<V>,
        options: &WriteOptions,
    ) -> Result<()> {
        with_pair(&key, &operand, |key, operand| self.keyspace().merge_with(key, operand, options))
    }

    /// As [`Keyspace::merge_and_get_with`](crate::Keyspace::merge_and_get_with).
    ///
    /// # Errors
    /// As [`TypedKeyspace::merge_and_get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// assert_eq!(best.merge_and_get_with("ada", 7, &esker::WriteOptions::new().sync(true))?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_and_get_with(
        &self,
        key: impl EncodeKey<K>,
        operand: impl EncodeValue<V>,
        options: &WriteOptions,
    ) -> Result<Option<V>> {
        with_pair(&key, &operand, |key, operand| {
            let merged = self.keyspace().merge_and_get_with(key, operand, options)?;
            self.decode_found(key, merged)
        })
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedBatch<'_, K, V> {
    /// As [`Batch::merge`](crate::Batch::merge): the operand is encoded as a value is.
    ///
    /// # Errors
    /// As [`Batch::merge`](crate::Batch::merge).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = esker::TypedKeyspace::<String, u32>::open(&db, "best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// let mut batch = db.batch();
    /// best.in_batch(&mut batch).merge("ada", 7)?;
    /// best.in_batch(&mut batch).merge("ada", 5)?;
    /// batch.commit()?;
    /// assert_eq!(best.get("ada")?, Some(7));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&mut self, key: impl EncodeKey<K>, operand: impl EncodeValue<V>) -> Result<()> {
        with_pair(&key, &operand, |key, operand| self.batch.merge(self.keyspace.keyspace(), key, operand))
    }

    /// As [`Batch::merge_with_ttl`](crate::Batch::merge_with_ttl).
    ///
    /// # Errors
    /// As [`Batch::merge_with_ttl`](crate::Batch::merge_with_ttl).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace, merge::Max};
    /// let expiring = KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None });
    /// let best: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "best", expiring)?;
    /// let mut batch = db.batch();
    /// best.in_batch(&mut batch).merge_with_ttl("ada", 7, std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// assert!(matches!(best.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(
        &mut self,
        key: impl EncodeKey<K>,
        operand: impl EncodeValue<V>,
        ttl: Duration,
    ) -> Result<()> {
        with_pair(&key, &operand, |key, operand| self.batch.merge_with_ttl(self.keyspace.keyspace(), key, operand, ttl))
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedTransaction<'_, K, V> {
    /// As [`Transaction::merge_with_ttl`](crate::Transaction::merge_with_ttl).
    ///
    /// # Errors
    /// As [`Transaction::merge_with_ttl`](crate::Transaction::merge_with_ttl).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace, merge::Max};
    /// let expiring = KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None });
    /// let best: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "best", expiring)?;
    /// let mut transaction = db.transaction();
    /// best.in_transaction(&mut transaction).merge_with_ttl("ada", 7, std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// assert!(matches!(best.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(
        &mut self,
        key: impl EncodeKey<K>,
        operand: impl EncodeValue<V>,
        ttl: Duration,
    ) -> Result<()> {
        with_pair(&key, &operand, |key, operand| {
            self.transaction.merge_with_ttl(self.keyspace.keyspace(), key, operand, ttl)
        })
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedKeyspace<K, V> {
    /// As [`Keyspace::merge_with_ttl`](crate::Keyspace::merge_with_ttl).
    ///
    /// # Errors
    /// As [`Keyspace::merge_with_ttl`](crate::Keyspace::merge_with_ttl).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace, merge::Max};
    /// let expiring = KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None });
    /// let best: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "best", expiring)?;
    /// best.merge_with_ttl("ada", 7, std::time::Duration::from_secs(60))?;
    /// assert!(matches!(best.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(&self, key: impl EncodeKey<K>, operand: impl EncodeValue<V>, ttl: Duration) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::new().ttl(ttl))
    }

    /// As [`Keyspace::delete_range_with`](crate::Keyspace::delete_range_with).
    ///
    /// # Errors
    /// As [`TypedKeyspace::delete_range`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", Default::default())?;
    /// births.put("ada", 1815)?;
    /// births.delete_range_with("a".."b", &esker::WriteOptions::new().sync(true))?;
    /// assert_eq!(births.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range_with(&self, range: impl TypedRange<K>, options: &WriteOptions) -> Result<()> {
        self.keyspace().delete_range_with(range.encode_bounds(), options)
    }
}

impl<K: KeyCodec, N: Count> Counters<K, N> {
    /// As [`Counters::add_and_get`], with options.
    ///
    /// # Errors
    /// As [`Counters::add_and_get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let tickets: esker::Counters<String> = esker::Counters::open(&db, "tickets", Default::default())?;
    /// // Durable before it leaves the process.
    /// assert_eq!(tickets.add_and_get_with("next", 1, &esker::WriteOptions::new().sync(true))?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_and_get_with(&self, key: impl EncodeKey<K>, n: N, options: &WriteOptions) -> Result<N> {
        Ok(self.as_typed().merge_and_get_with(key, n, options)?.unwrap_or_default())
    }
}
