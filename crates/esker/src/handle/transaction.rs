//! Reads and writes that take effect together, if nobody interfered.

use super::batch::Batch;
use super::iterator::{owned_bounds, prefix_bounds};
use super::keyspace::Keyspace;
use super::shared::Shared;
use crate::base::expiry::{expiry_at, visible};
use crate::base::range_tombstone::half_open;
use crate::base::slice::Slice;
use crate::db::conflict::Conflicts;
use crate::db::transaction;
use crate::db::transaction_scan::TransactionScan;
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Reads and writes, on any keyspaces of one database, that take effect together at the commit, or not at all.
///
/// A transaction reads the database as it was when it began, with its own writes on top. Nobody sees these before the commit, and nobody waits for a transaction: it is
/// optimistic. The commit fails with `Conflict` if anybody else has written, since it began, to
/// - a key that it read, whether that had a value or not,
/// - a place in a range that it scanned, as far as its iterators came: a key that was not there before is found, too,
/// - a key that it writes, even without reading it.
///
/// So committed transactions have the effect that they would have one after the other, in the order of their commits, as long as they read through the transaction: reads
/// through other handles, even of the same thread, are unknown to it. A key that expires in the meantime is no conflict. A transaction that wrote nothing always commits: what it
/// read was true at the moment it began.
///
/// Meant for short transactions: what it reads and writes is kept in memory, as well as, on disk, the versions it sees. Dropping one is rolling it back.
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
#[derive(Debug)]
pub struct Transaction {
    shared: Arc<Shared>,
    state: transaction::Transaction,
    /// The writes, in the order in which they were made.
    batch: Batch,
}

impl Transaction {
    pub(super) fn new(shared: Arc<Shared>) -> Transaction {
        let state = transaction::Transaction::begin(&shared.inner);
        let batch = Batch::new(Arc::clone(&shared));
        Transaction { shared, state, batch }
    }

    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Ok(());
        }
        Err(Error::invalid(format!("keyspace {:?} belongs to another database than the transaction", keyspace.name())))
    }

    /// The value of `key`: what the transaction wrote there, else what it had when the transaction began. Costs a [`Keyspace::get`] and noting the key.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `InvalidArgument` if the keyspace belongs to another database.
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.check(keyspace)?;
        self.state.get(&keyspace.inner, key.as_ref())
    }

    /// Sets the value of `key` at the commit.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put(keyspace, &key, &value)?;
        self.state.set(&keyspace.inner, key.as_ref(), Some(value.as_ref()));
        Ok(())
    }

    /// Sets the value of `key` at the commit, to live for `ttl` from then on.
    ///
    /// # Errors
    /// As [`Batch::put_with_ttl`].
    pub fn put_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.batch.put_with_ttl(keyspace, &key, &value, ttl)?;
        self.state.set(&keyspace.inner, key.as_ref(), Some(value.as_ref()));
        Ok(())
    }

    /// Sets the value of `key` at the commit, to live until `expires_at`.
    ///
    /// # Errors
    /// As [`Batch::put_until`].
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at: SystemTime,
    ) -> Result<()> {
        self.batch.put_until(keyspace, &key, &value, expires_at)?;
        // The transaction's time stands still: what has passed already has no value in it.
        let lives = visible(expiry_at(expires_at), self.state.registration().now_ms());
        self.state.set(&keyspace.inner, key.as_ref(), lives.then_some(value.as_ref()));
        Ok(())
    }

    /// Removes `key` at the commit. It need not exist.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.batch.delete(keyspace, &key)?;
        self.state.set(&keyspace.inner, key.as_ref(), None);
        Ok(())
    }

    /// Removes every key in `range` at the commit, those too that the transaction itself wrote before. What anybody else writes in the range meanwhile is a
    /// conflict.
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Result<()> {
        let bounds = half_open(&range);
        self.batch.delete_range(keyspace, range)?;
        if let Some((start, end)) = bounds {
            self.state.delete_range(&keyspace.inner, &start, &end);
        }
        Ok(())
    }

    /// Combines `operand` with whatever `key` holds, by the keyspace's merge operator. Reads nothing, but a write of somebody else to the key is a
    /// conflict all the same.
    ///
    /// # Errors
    /// As [`Batch::merge`].
    pub fn merge(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.batch.merge(keyspace, &key, &operand)?;
        self.state.merge(&keyspace.inner, key.as_ref(), operand.as_ref());
        Ok(())
    }

    /// All keys with their values, ascending, as the transaction sees them; `.rev()` for descending.
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter<'_> {
        self.scan(keyspace, Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys in `range` with their values, ascending, as the transaction sees them.
    ///
    /// What counts as read is what was passed: from the beginning of the range to the last key handed out, or all of it once the iterator has ended; from the other end likewise.
    pub fn range<K: AsRef<[u8]>>(&mut self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> TransactionIter<'_> {
        let (lower, upper) = owned_bounds(&range);
        self.scan(keyspace, lower, upper)
    }

    /// The keys that begin with `prefix` with their values, ascending, as the transaction sees them.
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        let (lower, upper) = prefix_bounds(prefix.as_ref());
        self.scan(keyspace, lower, upper)
    }

    fn scan(&mut self, keyspace: &Keyspace, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> TransactionIter<'_> {
        TransactionIter(match self.check(keyspace) {
            Ok(()) => Scan::Pairs(Box::new(TransactionScan::new(self.state.scan(&keyspace.inner, lower, upper)))),
            Err(error) => Scan::Refused(Some(error)),
        })
    }

    /// The sequence number of the last write of others that it sees.
    pub fn sequence(&self) -> u64 {
        self.state.registration().sequence()
    }

    /// The number of writes made so far.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Makes the writes, in their order, as one atomic write. Checking for conflicts looks only at what was written since the transaction began; most of that without
    /// holding up other writers.
    ///
    /// # Errors
    /// `Conflict` if somebody else wrote where the transaction read or writes: run it again from its beginning. Else as [`Batch::commit`]. Nothing took effect then,
    /// except after a failed sync.
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::new())
    }

    /// As [`Transaction::commit`], with options.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(mut self, options: &WriteOptions) -> Result<()> {
        let mut conflicts = Conflicts::new(&self.shared.inner, &self.state);
        self.batch.commit_and_clear_if(options, &mut conflicts)
    }

    /// Forgets all of it, as dropping the transaction does.
    pub fn rollback(self) {}
}

/// Pairs of key and value as a transaction sees them, in the order of their keys, from either end. While it lives the transaction can do nothing else:
/// collect what is needed first to write while scanning.
///
/// An item is an error where a value cannot be read. After a merge that failed the scan goes on behind that key; after any other error it ends.
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
