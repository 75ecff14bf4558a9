//! Calls made of other calls: of a key whether it is there, the first and the last pair, a count,
//! the runs of a keyspace, the first pair taken, a prefix deleted, a put with a time to live.

use super::batch::Batch;
use super::keyspace::Keyspace;
use super::snapshot::Snapshot;
use super::transaction::{Transaction, transact};
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::db::maintenance::sizes;
use crate::db::maintenance::stats::{self, RunStats};
use crate::db::read::scan::{ScanCursor, Source};
use crate::error::Result;
use crate::options::WriteOptions;
use std::time::Duration;

/// How many transactions [`Keyspace::pop_first`] begins. Each conflict means that another writer
/// got ahead, so that only a keyspace written from all sides meets the limit.
const POP_ATTEMPTS: usize = 1000;

/// The number of keys in the range that have a value.
fn count(source: Source, range: &impl KeyRange) -> Result<u64> {
    let (lower, upper) = source.keyspace.order.stored_bounds(range.bounds());
    let mut cursor = ScanCursor::new(source, lower, upper)?;
    cursor.skip_values();
    cursor.seek_to_first()?;
    let mut count = 0;
    while cursor.valid() {
        count += 1;
        cursor.next()?;
    }
    Ok(count)
}

impl Keyspace {
    /// Whether `key` has a value now: an expired key has none, an empty value is one. Costs a
    /// [`Keyspace::get`], but a large value is not loaded. Operands are combined, because only the
    /// operator knows whether they delete the key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// assert!(names.contains_key("ada")? && !names.contains_key("bob")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.expires_at(key)?.is_some())
    }

    /// The least key that has a value now, with that value. Costs a seek, and a step for each
    /// deleted or expired entry before that key that compaction has not removed; long runs of
    /// deleted entries are remembered from one seek to the next.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// assert!(names.first()?.is_none());
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// let (name, year) = names.first()?.expect("there are two");
    /// assert!(name == "ada" && year == "1815");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The greatest key that has a value now, with that value. Costs a seek from the end, and a
    /// step for each deleted or expired entry behind that key that compaction has not removed.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// assert_eq!(names.last()?.expect("there are two").0, "bob");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// Deletes the least key and returns it with its value, in one atomic step: no smaller key was
    /// there, and of several threads each gets another key. Nothing where there is no key.
    ///
    /// Costs a [`Keyspace::first`] and the commit of a transaction, again for each writer that got
    /// ahead. Threads that write behind the least key delay nobody; many that take from one
    /// keyspace at once do the work over and over.
    ///
    /// # Errors
    /// As [`Keyspace::first`] and [`Transaction::commit`]; `Conflict` if others got ahead a
    /// thousand times. Nothing was deleted then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let jobs = db.keyspace("jobs", Default::default())?;
    /// jobs.put("1", "sweep")?;
    /// jobs.put("2", "mop")?;
    /// assert_eq!(jobs.pop_first()?.expect("there are two").1, "sweep");
    /// assert_eq!(jobs.pop_first()?.expect("there is one").1, "mop");
    /// assert!(jobs.pop_first()?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        // Where there is no key nothing is committed, which a handle that may not write would
        // accept.
        self.shared.inner.error_state.check()?;
        transact(&self.shared, POP_ATTEMPTS, &WriteOptions::new(), |transaction| transaction.pop_first(self))
    }

    /// Removes every key that begins with `prefix`, as one write, at the price of
    /// [`Keyspace::delete_range`]. The empty prefix is that of every key.
    ///
    /// # Errors
    /// As [`Keyspace::delete_range`]; `InvalidArgument` in the order of a comparator that is not
    /// built in, where keys of a prefix need not be neighbours.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// for key in ["user:1", "user:2", "visit:1"] {
    ///     names.put(key, "")?;
    /// }
    /// names.delete_prefix("user:")?;
    /// assert_eq!(names.iter().count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range(self.prefix_bounds(prefix.as_ref())?)
    }

    /// The number of keys in `range` that have a value, all at one moment. Exact, at the price of a
    /// scan of the range's keys; [`Keyspace::approximate_count`] estimates it without one.
    ///
    /// # Errors
    /// As [`Keyspace::get`], of any key in the range.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// assert_eq!((names.count(..)?, names.count("b"..)?), (2, 1));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&self, range: impl KeyRange) -> Result<u64> {
        count(self.source()?, &range)
    }

    /// About how many entries there are in `range`, at the price of [`Keyspace::approximate_size`]:
    /// no file is read.
    ///
    /// What differs from [`Keyspace::count`]: a key counts once for each table and memtable that
    /// has a version of it, a deletion or an operand too, and what has expired or was deleted as a
    /// range, until compaction drops it. Of each table whose keys go beyond the range, up to the
    /// entries of two blocks count too many, and a range has the share of a table's entries that it
    /// has of its bytes: a few that are half as long as the others count as about half as many, a
    /// few twice as long as about twice. A memtable is counted by a sample of some thousand keys,
    /// so that a range with less than a thousandth of its keys may count as nothing there. After
    /// [`Keyspace::compact`], without snapshots, the count of `..` is exact.
    ///
    /// # Errors
    /// `KeyspaceDropped`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// assert_eq!(names.approximate_count(..)?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_count(&self, range: impl KeyRange) -> Result<u64> {
        let (lower, upper) = self.stored_bounds(&range);
        self.inner.check_exists()?;
        let lower = lower.as_ref().map(Vec::as_slice);
        Ok(sizes::approximate_entries(&self.inner, lower, upper.as_ref().map(Vec::as_slice)))
    }

    /// Its runs of tables, newest first: what [`Db::stats`](crate::Db::stats) has of them, without
    /// the price of all else. A keyspace that was dropped has none.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// assert!(names.runs().is_empty());
    /// db.flush()?;
    /// assert_eq!(names.runs()[0].tables, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn runs(&self) -> Vec<RunStats> {
        stats::runs(&self.inner.read_state.load().version)
    }

    /// Sets the value of `key`, to live for `ttl` from now on, at the price of a [`Keyspace::put`].
    /// Only in a keyspace created with [`crate::KeyspaceOptions::ttl`].
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also for a time of zero, or in a keyspace without
    /// time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put_with_ttl("7", "ada", std::time::Duration::from_secs(1800))?;
    /// assert!(matches!(sessions.expires_at("7")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new().ttl(ttl))
    }

    /// As [`Keyspace::merge`]; the value lives for `ttl` from now on.
    ///
    /// # Errors
    /// As [`Keyspace::merge`]; `InvalidArgument` also for a time of zero, or in a keyspace without
    /// time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, merge::Max};
    /// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None }))?;
    /// best.merge_with_ttl("ada", "7", std::time::Duration::from_secs(60))?;
    /// assert!(matches!(best.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::new().ttl(ttl))
    }
}

impl Snapshot {
    /// Whether `key` had a value then. Costs what [`Keyspace::contains_key`] costs.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let snapshot = db.snapshot();
    /// names.put("ada", "1815")?;
    /// assert!(!snapshot.contains_key(&names, "ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.expires_at(keyspace, key)?.is_some())
    }

    /// The least key that had a value then, with that value. Costs what [`Keyspace::first`] costs.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("bob", "1923")?;
    /// let snapshot = db.snapshot();
    /// names.put("ada", "1815")?;
    /// assert_eq!(snapshot.first(&names)?.expect("there is one").0, "bob");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The greatest key that had a value then, with that value. Costs what [`Keyspace::last`]
    /// costs.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("bob", "1923")?;
    /// assert_eq!(snapshot.last(&names)?.expect("there is one").0, "ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// The number of keys in `range` that had a value then. Costs what [`Keyspace::count`] costs.
    ///
    /// # Errors
    /// As [`Keyspace::count`]; `InvalidArgument` if the keyspace belongs to another database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let snapshot = db.snapshot();
    /// names.put("bob", "1923")?;
    /// assert_eq!(snapshot.count(&names, ..)?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&self, keyspace: &Keyspace, range: impl KeyRange) -> Result<u64> {
        count(self.source(keyspace)?, &range)
    }
}

impl Transaction {
    /// Whether `key` has a value, as the transaction sees it. Costs a [`Transaction::get`], and is
    /// one: a write to the key by another writer meanwhile is a conflict.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// assert!(transaction.contains_key(&names, "ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// The least key with its value, as the transaction sees it, its own writes included. Costs
    /// what [`Keyspace::first`] costs. A write by another writer to that key, or before it, is a
    /// conflict; to any key, if there is none.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("bob", "1923")?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// assert_eq!(transaction.first(&names)?.expect("there are two").0, "ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The greatest key with its value, as the transaction sees it, its own writes included. Costs
    /// what [`Keyspace::last`] costs. A write by another writer to that key, or behind it, is a
    /// conflict; to any key, if there is none.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("bob", "1923")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete(&names, "bob")?;
    /// assert!(transaction.last(&names)?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// The number of keys in `range` that have a value, as the transaction sees it, its own writes
    /// included. Costs a scan of the range. A write by another writer in the range is a conflict.
    ///
    /// # Errors
    /// As [`Transaction::get`], of any key in the range.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "bob", "1923")?;
    /// assert_eq!(transaction.count(&names, ..)?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&mut self, keyspace: &Keyspace, range: impl KeyRange) -> Result<u64> {
        self.range(keyspace, range).try_fold(0, |count, pair| pair.map(|_| count + 1))
    }

    /// Deletes the least key at the commit, and returns it with its value. Costs a
    /// [`Transaction::first`] and a [`Transaction::delete`], and conflicts as they do.
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let jobs = db.keyspace("jobs", Default::default())?;
    /// # let done = db.keyspace("done", Default::default())?;
    /// jobs.put("1", "sweep")?;
    /// let mut transaction = db.transaction();
    /// if let Some((number, job)) = transaction.pop_first(&jobs)? {
    ///     transaction.put(&done, number, job)?;
    /// }
    /// transaction.commit()?;
    /// assert!(jobs.first()?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn pop_first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        let Some((key, value)) = self.first(keyspace)? else { return Ok(None) };
        self.delete(keyspace, &key)?;
        Ok(Some((key, value)))
    }

    /// Removes every key that begins with `prefix` at the commit, as [`Transaction::delete_range`].
    ///
    /// # Errors
    /// As [`Transaction::delete_range`]; `InvalidArgument` in the order of a comparator that is not
    /// built in, where keys of a prefix need not be neighbours.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("user:1", "")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_prefix(&names, "user:")?;
    /// transaction.commit()?;
    /// assert!(names.first()?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range(keyspace, keyspace.prefix_bounds(prefix.as_ref())?)
    }
}

impl Batch {
    /// Adds a delete of every key that begins with `prefix`, as [`Batch::delete_range`].
    ///
    /// # Errors
    /// As [`Batch::delete_range`]; `InvalidArgument` in the order of a comparator that is not
    /// built in, where keys of a prefix need not be neighbours.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("user:1", "")?;
    /// let mut batch = db.batch();
    /// batch.delete_prefix(&names, "user:")?;
    /// batch.commit()?;
    /// assert!(names.first()?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range(keyspace, keyspace.prefix_bounds(prefix.as_ref())?)
    }
}
