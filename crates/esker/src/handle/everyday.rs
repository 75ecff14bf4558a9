//! What is short to say and made of other operations, on the handle of a keyspace.

use super::batch::Batch;
use super::iterator::{owned_bounds, prefix_bounds};
use super::keyspace::Keyspace;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use std::ops::Bound;
use std::time::Duration;

/// How often [`Keyspace::pop_first`] tries again after somebody else took the first key.
const POP_ATTEMPTS: usize = 1000;

impl Keyspace {
    /// Whether `key` has a value now. A large value is not loaded; operands are combined, because
    /// only the operator knows what they come to.
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

    /// The least key with its value, as it is now. Costs the search of an iterator.
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
    /// assert_eq!((name, year), ("ada".as_bytes().to_vec().into(), "1815".as_bytes().to_vec().into()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The greatest key with its value, as it is now. Costs the search of an iterator.
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

    /// Removes the least key and returns it with its value; of several threads each gets another
    /// key. A transaction for each attempt: a queue with one consumer pays little for it.
    ///
    /// # Errors
    /// As [`crate::Transaction::commit`]; `Conflict` if others were faster a thousand times.
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
        let mut left = POP_ATTEMPTS;
        loop {
            let mut transaction = Transaction::new(self.shared.clone());
            let Some((key, value)) = transaction.iter(self).next().transpose()? else { return Ok(None) };
            transaction.delete(self, &key)?;
            left -= 1;
            match transaction.commit() {
                Ok(()) => return Ok(Some((key, value))),
                Err(Error::Conflict { .. }) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes every key that begins with `prefix`, as one write, at the price of
    /// [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
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
        self.delete_range(prefix_bounds(prefix.as_ref()))
    }

    /// The number of keys in `range` that have a value now: exact, by a scan of the range.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
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
        let (lower, upper) = owned_bounds(range.bounds());
        let mut cursor = self.cursor()?;
        match &lower {
            Bound::Unbounded => cursor.seek_to_first()?,
            Bound::Included(key) | Bound::Excluded(key) => cursor.seek(key)?,
        }
        if cursor.valid() && matches!(&lower, Bound::Excluded(key) if cursor.key() == key.as_slice()) {
            cursor.next()?;
        }
        let mut count = 0;
        while cursor.valid() && crate::base::key_range::is_below(upper.as_ref().map(Vec::as_slice), cursor.key()) {
            count += 1;
            cursor.next()?;
        }
        Ok(count)
    }

    /// As [`Keyspace::put`], with a value that lives as long as `ttl`, from now on. Only in a
    /// keyspace created with [`crate::KeyspaceOptions::ttl`].
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also in a keyspace without time to live.
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
}

impl Snapshot {
    /// Whether `key` had a value then. A large value is not loaded.
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

    /// The least key then, with its value.
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

    /// The greatest key then, with its value.
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
}

impl Transaction {
    /// Whether `key` has a value, as the transaction sees it. Counts as a read of the key.
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

    /// The least key with its value, as the transaction sees it. What anybody writes before it
    /// meanwhile is a conflict.
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

    /// The greatest key with its value, as the transaction sees it. What anybody writes behind it
    /// meanwhile is a conflict.
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

    /// Removes every key that begins with `prefix` at the commit, as [`Transaction::delete_range`].
    ///
    /// # Errors
    /// As [`Transaction::delete_range`].
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
        self.delete_range(keyspace, prefix_bounds(prefix.as_ref()))
    }
}

impl Batch {
    /// Adds a delete of every key that begins with `prefix`, as [`Batch::delete_range`].
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
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
        self.delete_range(keyspace, prefix_bounds(prefix.as_ref()))
    }
}
