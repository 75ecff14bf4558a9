//! Typed keyspaces: what expires when, on a keyspace and with the other handles.

use super::encoded::{with_key, with_pair};
use super::key::{EncodeKey, KeyCodec};
use super::keyspace::TypedKeyspace;
use super::transaction::TypedTransaction;
use super::value::{EncodeValue, ValueCodec};
use super::with_handles::{TypedBatch, TypedSnapshot};
use crate::base::expiry::Expiry;
use crate::error::Result;
use std::time::{Duration, SystemTime};

impl<K: KeyCodec, V: ValueCodec> TypedKeyspace<K, V> {
    /// As [`Keyspace::put_until`](crate::Keyspace::put_until).
    ///
    /// # Errors
    /// As [`TypedKeyspace::put`]; `InvalidArgument` also in a keyspace without time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put_until("ada", 1815, std::time::SystemTime::UNIX_EPOCH)?; // long ago
    /// assert_eq!(births.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_until(&self, key: impl EncodeKey<K>, value: impl EncodeValue<V>, expires_at: SystemTime) -> Result<()> {
        with_pair(&key, &value, |key, value| self.keyspace().put_until(key, value, expires_at))
    }

    /// As [`Keyspace::expires_at`](crate::Keyspace::expires_at).
    ///
    /// # Errors
    /// As [`TypedKeyspace::contains_key`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// assert_eq!(births.expires_at("ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&self, key: impl EncodeKey<K>) -> Result<Option<Expiry>> {
        with_key(&key, |key| self.keyspace().expires_at(key))
    }

    /// As [`Keyspace::touch`](crate::Keyspace::touch): whether the key has a value.
    ///
    /// # Errors
    /// As [`TypedKeyspace::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// assert!(births.touch("ada", std::time::Duration::from_secs(60))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&self, key: impl EncodeKey<K>, ttl: Duration) -> Result<bool> {
        with_key(&key, |key| self.keyspace().touch(key, ttl))
    }

    /// As [`Keyspace::expire_at`](crate::Keyspace::expire_at): whether the key has a value.
    ///
    /// # Errors
    /// As [`TypedKeyspace::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// assert!(births.expire_at("ada", std::time::SystemTime::UNIX_EPOCH)?);
    /// assert_eq!(births.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&self, key: impl EncodeKey<K>, expires_at: SystemTime) -> Result<bool> {
        with_key(&key, |key| self.keyspace().expire_at(key, expires_at))
    }

    /// As [`Keyspace::persist`](crate::Keyspace::persist): whether the key has a value.
    ///
    /// # Errors
    /// As [`TypedKeyspace::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put_with_ttl("ada", 1815, std::time::Duration::from_secs(60))?;
    /// assert!(births.persist("ada")?);
    /// assert_eq!(births.expires_at("ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&self, key: impl EncodeKey<K>) -> Result<bool> {
        with_key(&key, |key| self.keyspace().persist(key))
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedSnapshot<'_, K, V> {
    /// As [`Snapshot::expires_at`](crate::Snapshot::expires_at).
    ///
    /// # Errors
    /// As [`TypedSnapshot::contains_key`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// assert_eq!(births.at(&db.snapshot()).expires_at("ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&self, key: impl EncodeKey<K>) -> Result<Option<Expiry>> {
        with_key(&key, |key| self.snapshot.expires_at(self.keyspace.keyspace(), key))
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedBatch<'_, K, V> {
    /// As [`Batch::put_until`](crate::Batch::put_until).
    ///
    /// # Errors
    /// As [`TypedBatch::put`]; `InvalidArgument` also in a keyspace without time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut batch = db.batch();
    /// births.in_batch(&mut batch).put_until("ada", 1815, std::time::SystemTime::UNIX_EPOCH)?; // long ago
    /// batch.commit()?;
    /// assert_eq!(births.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_until(
        &mut self,
        key: impl EncodeKey<K>,
        value: impl EncodeValue<V>,
        expires_at: SystemTime,
    ) -> Result<()> {
        with_pair(&key, &value, |key, value| self.batch.put_until(self.keyspace.keyspace(), key, value, expires_at))
    }

    /// As [`Batch::touch`](crate::Batch::touch).
    ///
    /// # Errors
    /// As [`TypedBatch::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut batch = db.batch();
    /// births.in_batch(&mut batch).touch("ada", std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&mut self, key: impl EncodeKey<K>, ttl: Duration) -> Result<()> {
        with_key(&key, |key| self.batch.touch(self.keyspace.keyspace(), key, ttl))
    }

    /// As [`Batch::expire_at`](crate::Batch::expire_at).
    ///
    /// # Errors
    /// As [`TypedBatch::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut batch = db.batch();
    /// births.in_batch(&mut batch).expire_at("ada", std::time::SystemTime::UNIX_EPOCH)?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&mut self, key: impl EncodeKey<K>, expires_at: SystemTime) -> Result<()> {
        with_key(&key, |key| self.batch.expire_at(self.keyspace.keyspace(), key, expires_at))
    }

    /// As [`Batch::persist`](crate::Batch::persist).
    ///
    /// # Errors
    /// As [`TypedBatch::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut batch = db.batch();
    /// births.in_batch(&mut batch).persist("ada")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        with_key(&key, |key| self.batch.persist(self.keyspace.keyspace(), key))
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedTransaction<'_, K, V> {
    /// As [`Transaction::put_until`](crate::Transaction::put_until).
    ///
    /// # Errors
    /// As [`TypedTransaction::put`]; `InvalidArgument` also in a keyspace without time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).put_until("ada", 1815, std::time::SystemTime::UNIX_EPOCH)?; // long ago
    /// transaction.commit()?;
    /// assert_eq!(births.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_until(
        &mut self,
        key: impl EncodeKey<K>,
        value: impl EncodeValue<V>,
        expires_at: SystemTime,
    ) -> Result<()> {
        with_pair(&key, &value, |key, value| {
            self.transaction.put_until(self.keyspace.keyspace(), key, value, expires_at)
        })
    }

    /// As [`Transaction::put_with_ttl`](crate::Transaction::put_with_ttl).
    ///
    /// # Errors
    /// As [`TypedTransaction::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).put_with_ttl("ada", 1815, std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// assert_eq!(births.get("ada")?, Some(1815));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(&mut self, key: impl EncodeKey<K>, value: impl EncodeValue<V>, ttl: Duration) -> Result<()> {
        with_pair(&key, &value, |key, value| self.transaction.put_with_ttl(self.keyspace.keyspace(), key, value, ttl))
    }

    /// As [`Transaction::expires_at`](crate::Transaction::expires_at).
    ///
    /// # Errors
    /// As [`Transaction::expires_at`](crate::Transaction::expires_at).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(births.in_transaction(&mut transaction).expires_at("ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&mut self, key: impl EncodeKey<K>) -> Result<Option<Expiry>> {
        with_key(&key, |key| self.transaction.expires_at(self.keyspace.keyspace(), key))
    }

    /// As [`Transaction::touch`](crate::Transaction::touch).
    ///
    /// # Errors
    /// As [`TypedTransaction::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).touch("ada", std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&mut self, key: impl EncodeKey<K>, ttl: Duration) -> Result<()> {
        with_key(&key, |key| self.transaction.touch(self.keyspace.keyspace(), key, ttl))
    }

    /// As [`Transaction::expire_at`](crate::Transaction::expire_at).
    ///
    /// # Errors
    /// As [`TypedTransaction::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).expire_at("ada", std::time::SystemTime::UNIX_EPOCH)?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&mut self, key: impl EncodeKey<K>, expires_at: SystemTime) -> Result<()> {
        with_key(&key, |key| self.transaction.expire_at(self.keyspace.keyspace(), key, expires_at))
    }

    /// As [`Transaction::persist`](crate::Transaction::persist).
    ///
    /// # Errors
    /// As [`TypedTransaction::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let births = esker::TypedKeyspace::<String, u32>::open(&db, "births", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// births.put("ada", 1815)?;
    /// let mut transaction = db.transaction();
    /// births.in_transaction(&mut transaction).persist("ada")?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        with_key(&key, |key| self.transaction.persist(self.keyspace.keyspace(), key))
    }
}
