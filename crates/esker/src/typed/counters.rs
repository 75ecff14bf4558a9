//! Keyspaces of counters.

use super::encoded::with_pair;
use super::iterator::TypedIter;
use super::key::{EncodeKey, KeyCodec, KeyPrefix};
use super::keyspace::TypedKeyspace;
use super::range::TypedRange;
use super::value::{EncodeValue, ValueCodec};
use crate::error::{Error, Result};
use crate::handle::{Batch, Db, Keyspace, Snapshot, Transaction};
use crate::merge_operator::{INT64_ADD, Int64Add, UINT64_ADD, UInt64Add};
use crate::options::{KeyspaceOptions, WriteOptions};
use std::fmt;
use std::time::Duration;

mod sealed {
    /// Numbers that there is a merge operator for.
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for i64 {}
}

/// The numbers that [`Counters`] add: `u64`, which wraps around and is stored with the merge
/// operator `uint64add`, and `i64`, which stays at its limits, with `int64add`. Nothing else can be
/// one.
///
/// ```
/// use esker::typed::Count;
/// assert_eq!((u64::OPERATOR, i64::OPERATOR), ("uint64add", "int64add"));
/// ```
pub trait Count: ValueCodec + EncodeValue<Self> + Copy + Default + sealed::Sealed {
    /// The name of the merge operator.
    const OPERATOR: &'static str;

    /// The options, with that operator.
    ///
    /// ```
    /// use esker::typed::Count;
    /// let options = u64::with_operator(Default::default());
    /// ```
    fn with_operator(options: KeyspaceOptions) -> KeyspaceOptions;
}

impl Count for u64 {
    const OPERATOR: &'static str = UINT64_ADD;

    fn with_operator(options: KeyspaceOptions) -> KeyspaceOptions {
        options.merge_operator(UInt64Add)
    }
}

impl Count for i64 {
    const OPERATOR: &'static str = INT64_ADD;

    fn with_operator(options: KeyspaceOptions) -> KeyspaceOptions {
        options.merge_operator(Int64Add)
    }
}

/// Counters by keys of type `K`: a keyspace with a merge operator that adds. Adding reads nothing.
/// A key that was never counted counts as 0, and is in no scan.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::Counters;
/// let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
/// hits.add("/index.html", 1)?;
/// hits.add("/index.html", 2)?;
/// assert_eq!(hits.get("/index.html")?, 3);
///
/// let stock: Counters<(String, u32), i64> = Counters::open(&db, "stock", Default::default())?;
/// stock.add(("screws", 8), -12)?;
/// for count in stock.iter() {
///     let ((what, size), pieces) = count?;
///     println!("{what} {size}: {pieces}");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Counters<K, N = u64>(TypedKeyspace<K, N>);

impl<K, N> Clone for Counters<K, N> {
    fn clone(&self) -> Self {
        Counters(self.0.clone())
    }
}

impl<K, N> fmt::Debug for Counters<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counters").field(self.0.keyspace()).finish()
    }
}

impl<K: KeyCodec, N: Count> Counters<K, N> {
    /// Opens the keyspace, or creates it with the merge operator of `N`. Other options may be
    /// given, as a time to live.
    ///
    /// # Errors
    /// As [`Db::keyspace`]: `InvalidArgument` if the keyspace has another merge operator.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Counters, KeyspaceOptions, Ttl};
    /// let day = std::time::Duration::from_secs(24 * 60 * 60);
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(day) });
    /// let hits: Counters<String> = Counters::open(&db, "hits", expiring)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open(db: &Db, name: &str, options: KeyspaceOptions) -> Result<Counters<K, N>> {
        Counters::new(db.keyspace(name, N::with_operator(options))?)
    }

    /// The keyspace, as counters.
    ///
    /// # Errors
    /// `InvalidArgument` if it has another merge operator than that of `N`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Counters, KeyspaceOptions, merge::UInt64Add};
    /// let keyspace = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
    /// let hits: Counters<String> = Counters::new(keyspace)?;
    /// hits.add("/", 1)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new(keyspace: Keyspace) -> Result<Counters<K, N>> {
        let operator = keyspace.merge_operator();
        if operator.as_deref() == Some(N::OPERATOR) {
            return Ok(Counters(TypedKeyspace::new(keyspace)));
        }
        let has = operator.map_or_else(|| "no merge operator".to_owned(), |name| format!("merge operator {name:?}"));
        let name = keyspace.name();
        Err(Error::invalid(format!("keyspace {name:?} has {has}; these counters need {:?}", N::OPERATOR)))
    }

    /// The same keyspace as one of numbers, for calls that counters do not have: snapshots are read
    /// with [`TypedKeyspace::at`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/", 1)?;
    /// assert_eq!(hits.as_typed().first()?, Some(("/".to_owned(), 1)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn as_typed(&self) -> &TypedKeyspace<K, N> {
        &self.0
    }

    /// Adds `n` to the counter of `key`: see [`Keyspace::merge`].
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/", 1)?;
    /// assert_eq!(hits.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add(&self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        self.add_with(key, n, &WriteOptions::new())
    }

    /// As [`Counters::add`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add_with("/", 1, &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_with(&self, key: impl EncodeKey<K>, n: N, options: &WriteOptions) -> Result<()> {
        with_pair(&key, &n, |key, n| self.0.keyspace().merge_with(key, n, options))
    }

    /// As [`Counters::add`], and the counter lives for `ttl` from now on.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Counters, KeyspaceOptions, Ttl};
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let hits: Counters<String> = Counters::open(&db, "hits", expiring)?;
    /// hits.add_with_ttl("/", 1, std::time::Duration::from_secs(60))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_with_ttl(&self, key: impl EncodeKey<K>, n: N, ttl: Duration) -> Result<()> {
        self.add_with(key, n, &WriteOptions::new().ttl(ttl))
    }

    /// Adds `n` to the counter of `key` and returns what it is then: see
    /// [`Keyspace::merge_and_get`]. Calls that add positive numbers to one key get different ones,
    /// short of the limit, until it is set, deleted or expires.
    ///
    /// # Errors
    /// As [`Keyspace::merge_and_get`]; `Decode` if what is there is no number.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// assert_eq!(hits.add_and_get("ticket", 1)?, 1);
    /// assert_eq!(hits.add_and_get("ticket", 1)?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_and_get(&self, key: impl EncodeKey<K>, n: N) -> Result<N> {
        self.add_and_get_with(key, n, &WriteOptions::new())
    }

    /// The counter of `key`: 0 if it was never counted.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `Decode` if what is there is no number.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// assert_eq!(hits.get("/")?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl EncodeKey<K>) -> Result<N> {
        Ok(self.0.get(key)?.unwrap_or_default())
    }

    /// The counter of `key` when the snapshot was made.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; `Decode` if what is there is no number.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let snapshot = db.snapshot();
    /// hits.add("/", 1)?;
    /// assert_eq!(hits.get_at(&snapshot, "/")?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_at(&self, snapshot: &Snapshot, key: impl EncodeKey<K>) -> Result<N> {
        Ok(self.0.at(snapshot).get(key)?.unwrap_or_default())
    }

    /// Sets the counter of `key` to `n`.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.set("/", 7)?;
    /// hits.add("/", 1)?;
    /// assert_eq!(hits.get("/")?, 8);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set(&self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        self.0.put(key, n)
    }

    /// Removes the counter of `key`.
    ///
    /// # Errors
    /// As [`Keyspace::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/", 1)?;
    /// hits.delete("/")?;
    /// assert_eq!(hits.get("/")?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&self, key: impl EncodeKey<K>) -> Result<()> {
        self.0.delete(key)
    }

    /// All counters, by key, ascending, as they are now.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/", 1)?;
    /// let total: u64 = hits.iter().map(|pair| pair.map(|(_, n)| n)).sum::<esker::Result<_>>()?;
    /// assert_eq!(total, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> TypedIter<K, N> {
        self.0.iter()
    }

    /// The counters of the keys in `range`, ascending, as they are now.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/about", 1)?;
    /// assert_eq!(hits.range("/b"..).count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&self, range: impl TypedRange<K>) -> TypedIter<K, N> {
        self.0.range(range)
    }

    /// The counters of the keys that begin with `prefix`, ascending, as they are now: see
    /// [`TypedKeyspace::prefix`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// hits.add("/about", 1)?;
    /// assert_eq!(hits.prefix("/a").count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> TypedIter<K, N> {
        self.0.prefix(prefix)
    }

    /// Additions that are part of the batch.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut batch = db.batch();
    /// hits.in_batch(&mut batch).add("/", 1)?;
    /// batch.commit()?;
    /// assert_eq!(hits.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn in_batch<'a>(&'a self, batch: &'a mut Batch) -> CounterBatch<'a, K, N> {
        CounterBatch { counters: self, batch }
    }

    /// Additions and reads that are part of the transaction.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut transaction = db.transaction();
    /// hits.in_transaction(&mut transaction).add("/", 1)?;
    /// transaction.commit()?;
    /// assert_eq!(hits.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn in_transaction<'a>(&'a self, transaction: &'a mut Transaction) -> CounterTransaction<'a, K, N> {
        CounterTransaction { counters: self, transaction }
    }
}

/// Additions to counters that are part of a batch: see [`Counters::in_batch`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
/// let mut batch = db.batch();
/// hits.in_batch(&mut batch).add("/", 1)?;
/// batch.commit()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "it writes nothing by itself"]
pub struct CounterBatch<'a, K, N> {
    counters: &'a Counters<K, N>,
    batch: &'a mut Batch,
}

impl<K, N> fmt::Debug for CounterBatch<'_, K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterBatch").field("counters", &self.counters).field("batch", &self.batch).finish()
    }
}

impl<K: KeyCodec, N: Count> CounterBatch<'_, K, N> {
    /// Adds `n` to the counter of `key`.
    ///
    /// # Errors
    /// As [`Batch::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut batch = db.batch();
    /// hits.in_batch(&mut batch).add("/", 1)?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add(&mut self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        with_pair(&key, &n, |key, n| self.batch.merge(self.counters.0.keyspace(), key, n))
    }

    /// As [`CounterBatch::add`], and the counter lives for `ttl` from the commit on.
    ///
    /// # Errors
    /// As [`Batch::merge_with_ttl`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Counters, KeyspaceOptions, Ttl};
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let hits: Counters<String> = Counters::open(&db, "hits", expiring)?;
    /// let mut batch = db.batch();
    /// hits.in_batch(&mut batch).add_with_ttl("/", 1, std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// assert_eq!(hits.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_with_ttl(&mut self, key: impl EncodeKey<K>, n: N, ttl: Duration) -> Result<()> {
        self.counters.0.in_batch(self.batch).merge_with_ttl(key, n, ttl)
    }

    /// Sets the counter of `key` to `n`.
    ///
    /// # Errors
    /// As [`Batch::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut batch = db.batch();
    /// hits.in_batch(&mut batch).set("/", 7)?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set(&mut self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        self.counters.0.in_batch(self.batch).put(key, n)
    }

    /// Removes the counter of `key`.
    ///
    /// # Errors
    /// As [`Batch::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut batch = db.batch();
    /// hits.in_batch(&mut batch).delete("/")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        self.counters.0.in_batch(self.batch).delete(key)
    }
}

/// Counters in a transaction: see [`Counters::in_transaction`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
/// let mut transaction = db.transaction();
/// hits.in_transaction(&mut transaction).add("/", 1)?;
/// transaction.commit()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "it reads and writes nothing by itself"]
pub struct CounterTransaction<'a, K, N> {
    counters: &'a Counters<K, N>,
    transaction: &'a mut Transaction,
}

impl<K, N> fmt::Debug for CounterTransaction<'_, K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterTransaction")
            .field("counters", &self.counters)
            .field("transaction", &self.transaction)
            .finish()
    }
}

impl<K: KeyCodec, N: Count> CounterTransaction<'_, K, N> {
    /// Adds `n` to the counter of `key` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut transaction = db.transaction();
    /// hits.in_transaction(&mut transaction).add("/", 1)?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add(&mut self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        with_pair(&key, &n, |key, n| self.transaction.merge(self.counters.0.keyspace(), key, n))
    }

    /// As [`CounterTransaction::add`], and the counter lives for `ttl` from the commit on.
    ///
    /// # Errors
    /// As [`Transaction::merge_with_ttl`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Counters, KeyspaceOptions, Ttl};
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let hits: Counters<String> = Counters::open(&db, "hits", expiring)?;
    /// let mut transaction = db.transaction();
    /// hits.in_transaction(&mut transaction).add_with_ttl("/", 1, std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// assert_eq!(hits.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn add_with_ttl(&mut self, key: impl EncodeKey<K>, n: N, ttl: Duration) -> Result<()> {
        self.counters.0.in_transaction(self.transaction).merge_with_ttl(key, n, ttl)
    }

    /// Sets the counter of `key` to `n` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut transaction = db.transaction();
    /// hits.in_transaction(&mut transaction).set("/", 7)?;
    /// transaction.commit()?;
    /// assert_eq!(hits.get("/")?, 7);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set(&mut self, key: impl EncodeKey<K>, n: N) -> Result<()> {
        self.counters.0.in_transaction(self.transaction).put(key, n)
    }

    /// The counter of `key`, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `Decode` if what is there is no number.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut transaction = db.transaction();
    /// let mut in_transaction = hits.in_transaction(&mut transaction);
    /// in_transaction.add("/", 1)?;
    /// assert_eq!(in_transaction.get("/")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&mut self, key: impl EncodeKey<K>) -> Result<N> {
        Ok(self.counters.0.in_transaction(self.transaction).get(key)?.unwrap_or_default())
    }

    /// Removes the counter of `key` at the commit.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits: esker::Counters<String> = esker::Counters::open(&db, "hits", Default::default())?;
    /// let mut transaction = db.transaction();
    /// hits.in_transaction(&mut transaction).delete("/")?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl EncodeKey<K>) -> Result<()> {
        self.counters.0.in_transaction(self.transaction).delete(key)
    }
}
