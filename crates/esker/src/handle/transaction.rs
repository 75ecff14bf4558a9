//! Transactions: reads and writes that take effect together, unless another writer interfered.

use super::batch::{Batch, tombstone_bounds};
use super::keyspace::Keyspace;
use super::shared::Shared;
use crate::base::expiry::{Expiry, Life, expiry_at, visible};
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::db::transaction::conflict::Conflicts;
use crate::db::transaction::scan::TransactionScan;
use crate::db::transaction::write_set;
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Reads and writes, on any keyspaces of one database, that take effect together at the commit, or
/// not at all.
///
/// A transaction reads the database as it was when it began, with its own writes on top. No reader
/// sees these before the commit, and no thread waits for a transaction: it is optimistic. The
/// commit fails with `Conflict` if another writer has written, since it began, to
/// - a key that it read, whether that had a value or not,
/// - a place in a range that it scanned, as far as its iterators came: a key that was not there
///   before is found, too,
/// - a key that it writes, even without reading it.
///
/// So committed transactions have the effect that they would have one after the other, in the order
/// of their commits, as long as they read through the transaction: reads through other handles,
/// even of the same thread, are unknown to it. A key that expires in the meantime is no conflict. A
/// transaction that wrote nothing always commits: what it read was true at the moment it began.
///
/// Meant for short transactions: what it reads and writes is kept in memory, as well as, on disk,
/// the versions it sees. Dropping one is rolling it back.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-transaction-{}", std::process::id()));
/// # let db = esker::Db::open(&directory, Default::default())?;
/// let stock = db.keyspace("stock", Default::default())?;
/// stock.put("apples", "1")?;
///
/// let mut first = db.transaction();
/// let mut second = db.transaction();
/// for transaction in [&mut first, &mut second] {
///     if transaction.get(&stock, "apples")?.as_deref() == Some(b"1") {
///         transaction.put(&stock, "apples", "0")?;
///     }
/// }
/// first.commit()?;
/// let error = second.commit().unwrap_err();
/// assert!(matches!(error, esker::Error::Conflict { .. }) && error.is_retryable());
/// # drop((stock, db));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
///
/// [`crate::Db::transact`] runs one again after a conflict.
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    shared: Arc<Shared>,
    state: write_set::Transaction,
    /// The writes, in the order in which they were made.
    batch: Batch,
}

/// Without keys and values, which may be large or secret.
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, batch) = (self.sequence(), &self.batch);
        f.debug_struct("Transaction").field("sequence", &sequence).field("batch", batch).finish_non_exhaustive()
    }
}

impl Transaction {
    pub(super) fn new(shared: Arc<Shared>) -> Transaction {
        let state = write_set::Transaction::begin(&shared.inner);
        let batch = Batch::new(Arc::clone(&shared));
        Transaction { shared, state, batch }
    }

    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Ok(());
        }
        Err(Error::invalid(format!("keyspace {:?} belongs to another database than the transaction", keyspace.name())))
    }

    /// The value of `key`: what the transaction wrote there, else what it had when the transaction
    /// began. Costs a [`Keyspace::get`] and noting the key.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `InvalidArgument` if the keyspace belongs to another database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// names.put("ada", "1816")?;
    /// assert_eq!(transaction.get(&names, "ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.check(keyspace)?;
        self.state.get(&keyspace.inner, &keyspace.stored(&key))
    }

    /// As [`Transaction::get`], into a buffer of the caller: it replaces what the buffer holds, and
    /// leaves it empty where the key has no value, or where the read fails. Whether there is a
    /// value.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let (mut transaction, mut value) = (db.transaction(), Vec::new());
    /// transaction.put(&names, "ada", "1815")?;
    /// assert!(transaction.get_into(&names, "ada", &mut value)? && value == b"1815");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_into(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.get(keyspace, key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    /// One [`Transaction::get`] for each key, in their order. A key that cannot be read does not
    /// affect the others.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// let found = transaction.multi_get(&names, ["ada", "bob"]).into_iter().collect::<esker::Result<Vec<_>>>()?;
    /// assert!(found[0].is_some() && found[1].is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Vec<Result<Option<Slice>>> {
        keys.into_iter().map(|key| self.get(keyspace, key)).collect()
    }

    /// When the value of `key` expires, if it has one, as of the beginning of the transaction.
    /// Counts as a read of the key.
    ///
    /// # Errors
    /// As [`Transaction::get`]. `InvalidArgument` for a key that the transaction has written: times
    /// count from the commit, so that its expiry is not known before.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("ada", "")?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.expires_at(&sessions, "ada")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Expiry>> {
        self.check(keyspace)?;
        self.state.expires_at(&keyspace.inner, &keyspace.stored(&key))
    }

    /// As [`Transaction::merge`]; the value lives for `ttl` from the commit on.
    ///
    /// # Errors
    /// As [`Batch::merge_with_ttl`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, merge::Max};
    /// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None }))?;
    /// let mut transaction = db.transaction();
    /// transaction.merge_with_ttl(&best, "ada", "7", std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// assert!(matches!(best.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.batch.merge_with_ttl(keyspace, &key, &operand, ttl)?;
        self.state.merge(&keyspace.inner, &keyspace.stored(&key), operand.as_ref());
        Ok(())
    }

    /// Sets the value of `key` at the commit.
    ///
    /// # Errors
    /// As [`Batch::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// assert!(names.get("ada")?.is_none()); // not yet
    /// transaction.commit()?;
    /// assert!(names.get("ada")?.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put(keyspace, &key, &value)?;
        self.state.set(&keyspace.inner, &keyspace.stored(&key), Some(value.as_ref()));
        Ok(())
    }

    /// Sets the value of `key` at the commit, to live for `ttl` from then on.
    ///
    /// # Errors
    /// As [`Batch::put_with_ttl`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut transaction = db.transaction();
    /// transaction.put_with_ttl(&sessions, "ada", "", std::time::Duration::from_secs(60))?;
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.batch.put_with_ttl(keyspace, &key, &value, ttl)?;
        self.state.set(&keyspace.inner, &keyspace.stored(&key), Some(value.as_ref()));
        Ok(())
    }

    /// Sets the value of `key` at the commit, to live until `expires_at`.
    ///
    /// # Errors
    /// As [`Batch::put_until`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut transaction = db.transaction();
    /// transaction.put_until(&sessions, "ada", "", std::time::SystemTime::UNIX_EPOCH)?; // long ago
    /// assert!(transaction.get(&sessions, "ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at: SystemTime,
    ) -> Result<()> {
        // The transaction's time stands still: what has passed already has no value in it.
        let lives = visible(expiry_at(expires_at), self.state.snapshot_guard()?.now_ms());
        self.batch.put_until(keyspace, &key, &value, expires_at)?;
        self.state.set(&keyspace.inner, &keyspace.stored(&key), lives.then_some(value.as_ref()));
        Ok(())
    }

    /// Removes `key` at the commit. It need not exist.
    ///
    /// # Errors
    /// As [`Batch::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete(&names, "ada")?;
    /// transaction.commit()?;
    /// assert!(names.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.batch.delete(keyspace, &key)?;
        self.state.set(&keyspace.inner, &keyspace.stored(&key), None);
        Ok(())
    }

    /// Removes every key in `range` at the commit, those too that the transaction itself wrote
    /// before. A write by another writer in the range meanwhile is a conflict.
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_range(&names, "a".."b")?;
    /// assert!(transaction.get(&names, "ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range(&mut self, keyspace: &Keyspace, range: impl KeyRange) -> Result<()> {
        // Asked once: a range of the program's own may answer differently the next time, and what
        // is written must be what counts as written.
        let bounds = range.bounds();
        self.batch.delete_range(keyspace, bounds)?;
        if let Some((start, end)) = tombstone_bounds(keyspace, &bounds) {
            self.state.delete_range(&keyspace.inner, &start, &end);
        }
        Ok(())
    }

    /// Combines `operand` with whatever `key` holds, by the keyspace's merge operator. Reads
    /// nothing, but another writer's write to the key is a conflict all the same.
    ///
    /// # Errors
    /// As [`Batch::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let best = db.keyspace("best", esker::KeyspaceOptions::default().merge_operator(esker::merge::Max))?;
    /// let mut transaction = db.transaction();
    /// transaction.merge(&best, "ada", "7")?;
    /// transaction.commit()?;
    /// assert_eq!(best.get("ada")?.as_deref(), Some(&b"7"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.batch.merge(keyspace, &key, &operand)?;
        self.state.merge(&keyspace.inner, &keyspace.stored(&key), operand.as_ref());
        Ok(())
    }

    /// All keys with their values, ascending, as the transaction sees them; `.rev()` for
    /// descending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "bob", "1923")?;
    /// assert_eq!(transaction.iter(&names).count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter<'_> {
        self.scan(keyspace, Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys in `range` with their values, ascending, as the transaction sees them.
    ///
    /// What counts as read is what was passed: from the beginning of the range to the last key
    /// handed out, or all of it once the iterator has ended; from the other end likewise.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.range(&names, "a".."b").count(), 1);
    /// names.put("alan", "1912")?; // would have been in that range
    /// transaction.put(&names, "how many", "1")?;
    /// assert!(transaction.commit().is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&mut self, keyspace: &Keyspace, range: impl KeyRange) -> TransactionIter<'_> {
        let (lower, upper) = keyspace.stored_bounds(&range);
        self.scan(keyspace, lower, upper)
    }

    /// The keys that begin with `prefix` with their values, ascending, as the transaction sees
    /// them.
    ///
    /// Where keys of a prefix need not be neighbours, in the order of a comparator that is not
    /// built in, its first item is `InvalidArgument`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.prefix(&names, "ad").count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        match keyspace.prefix_bounds(prefix.as_ref()) {
            Ok(bounds) => self.range(keyspace, bounds),
            Err(error) => TransactionIter(Scan::Refused(Some(error))),
        }
    }

    fn scan(&mut self, keyspace: &Keyspace, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> TransactionIter<'_> {
        let checked = self.check(keyspace);
        TransactionIter(match checked.and_then(|()| self.state.scan(&keyspace.inner, lower, upper)) {
            Ok(parts) => Scan::Pairs(Box::new(TransactionScan::new(parts))),
            Err(error) => Scan::Refused(Some(error)),
        })
    }

    /// The sequence number of the last write of others that it sees; 0 if a callback of the
    /// database began it.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// names.put("ada", "1815")?;
    /// assert_eq!(transaction.sequence() + 1, db.transaction().sequence());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sequence(&self) -> u64 {
        self.state.snapshot_guard().map_or(0, |snapshot_guard| snapshot_guard.sequence())
    }

    /// The number of writes made so far.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// assert_eq!(transaction.len(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing was written so far.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// assert!(db.transaction().is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Makes the writes, in their order, as one atomic write. The check for conflicts reads only
    /// what was written since the transaction began; most of that without delaying other writers.
    ///
    /// # Errors
    /// `Conflict` if another writer wrote where the transaction read or writes: run it again from
    /// its beginning. Else as [`Batch::commit`]. Nothing took effect then, except after a failed
    /// sync.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// names.put("ada", "1816")?; // somebody else
    /// let error = transaction.commit().unwrap_err();
    /// assert!(error.is_retryable());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::new())
    }

    /// As [`Transaction::commit`], with options.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// transaction.commit_with(&esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit_with(mut self, options: &WriteOptions) -> Result<()> {
        let mut conflicts = Conflicts::new(&self.shared.inner, &self.state)?;
        self.batch.commit_and_clear_if(options, &mut conflicts)
    }

    /// Gives the value of `key` another expiry.
    pub(super) fn change_expiry(&mut self, keyspace: &Keyspace, key: &[u8], life: Life) -> Result<()> {
        // The transaction's time stands still: what has passed already has no value in it.
        let now_ms = self.state.snapshot_guard()?.now_ms();
        self.batch.change_expiry(keyspace, key, life)?;
        match life {
            Life::UntilMs(at) if !visible(at, now_ms) => self.state.set(&keyspace.inner, &keyspace.stored(key), None),
            _ => self.state.change_expiry(&keyspace.inner, &keyspace.stored(key)),
        }
        Ok(())
    }

    /// Forgets all of it, as dropping the transaction does.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&names, "ada", "1815")?;
    /// transaction.rollback();
    /// assert!(names.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn rollback(self) {}
}

/// Runs `body` in transactions until one commits without a conflict, `attempts` times at most.
pub(super) fn transact<T, E: From<Error>>(
    shared: &Arc<Shared>,
    attempts: usize,
    options: &WriteOptions,
    mut body: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    let mut left = attempts.max(1);
    loop {
        let mut transaction = Transaction::new(Arc::clone(shared));
        let value = body(&mut transaction)?;
        left -= 1;
        match transaction.commit_with(options) {
            Ok(()) => return Ok(value),
            Err(Error::Conflict { .. }) if left > 0 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Pairs of key and value as a transaction sees them, in the order of their keys, from either end.
/// While it lives the transaction can do nothing else: collect what is needed first to write while
/// scanning.
///
/// An item is an error where a value cannot be read. After a merge that failed the scan goes on
/// behind that key; after any other error it ends.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// names.put("ada", "1815")?;
/// let mut transaction = db.transaction();
/// for pair in transaction.iter(&names).rev() {
///     let (name, year) = pair?;
///     println!("{name:?} {year:?}");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct TransactionIter<'t>(Scan<'t>);

enum Scan<'t> {
    Pairs(Box<TransactionScan<'t>>),
    Refused(Option<Error>),
}

impl TransactionIter<'_> {
    fn step(&mut self, forward: bool) -> Option<Result<(Slice, Slice)>> {
        match &mut self.0 {
            Scan::Pairs(scan) => scan.step(forward),
            Scan::Refused(error) => error.take().map(Err),
        }
    }
}

impl fmt::Debug for TransactionIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionIter").finish_non_exhaustive()
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl FusedIterator for TransactionIter<'_> {}
