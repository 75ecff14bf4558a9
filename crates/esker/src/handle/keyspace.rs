//! The handle of one keyspace.

use super::iterator::{Cursor, Iter, owned_bounds, prefix_bounds};
use super::shared::Shared;
use crate::base::batch::{Operation, encode};
use crate::base::key::{Kind, MAX_KEY_BYTES, MAX_SEQUENCE, MAX_VALUE_BYTES, NEVER};
use crate::base::slice::Slice;
use crate::db::inner::KeyspaceInner;
use crate::db::scan::Source;
use crate::db::write::{Content, commit, need_of, start_record};
use crate::db::{background, read};
use crate::error::{Error, Result, escape_key};
use crate::options::WriteOptions;
use std::cell::RefCell;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// A named, ordered map from byte strings to byte strings, part of one [`crate::Db`]. Cheap to clone, usable from any thread.
///
/// Keys have 0 to 64 KiB and are ordered as unsigned bytes; values have 0 to 1 GiB.
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inner: Arc<KeyspaceInner>,
}

thread_local! {
    /// The record of the write at hand: kept, so that a write allocates nothing.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Records longer than this give their memory back after the write.
const KEEP_RECORD_BYTES: usize = 1 << 20;

/// Refuses what can be seen to be wrong with an operation before anything is written.
pub(super) fn check(keyspace: &KeyspaceInner, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::invalid(format!("the key has {} bytes, at most {MAX_KEY_BYTES} are possible", key.len())));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::invalid(format!(
            "the value has {} bytes, at most {MAX_VALUE_BYTES} are possible",
            value.len()
        )));
    }
    if kind != Kind::Merge {
        return Ok(());
    }
    if keyspace.operator_name.is_none() {
        let what = format!("keyspace {:?} was created without a merge operator", keyspace.name);
        return Err(Error::invalid(what));
    }
    match keyspace.operator().map(|operator| operator.check_operand(value)) {
        Some(Err(reason)) => {
            let what = format!("merge into key {} of keyspace {:?}: {reason}", escape_key(key), keyspace.name);
            Err(Error::invalid(what))
        }
        _ => Ok(()),
    }
}

impl Keyspace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of its merge operator, as stored when it was created.
    pub fn merge_operator(&self) -> Option<String> {
        self.inner.operator_name.clone()
    }

    fn write(&self, kind: Kind, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        check(&self.inner, kind, key, value)?;
        let operation = Operation { keyspace: self.inner.id, kind, expiry_ms: NEVER, key, value };
        let needs = [(self.inner.id, need_of(&operation))];
        RECORD.with_borrow_mut(|record| {
            start_record(record);
            encode(record, &operation);
            let result = commit(&self.shared.inner, record, Content::One(operation), &needs, options);
            if record.capacity() > KEEP_RECORD_BYTES {
                *record = Vec::new();
            }
            result
        })
    }

    /// Sets the value of `key`. The write survives the death of the process from here on, and that of the machine once a later sync returned.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value that is too long; `ReadOnly` after a failure of the log; `Io`.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new())
    }

    /// As [`Keyspace::put`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Put, key.as_ref(), value.as_ref(), options)
    }

    /// Removes `key`. It need not exist.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, &WriteOptions::new())
    }

    /// As [`Keyspace::delete`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Delete, key.as_ref(), &[], options)
    }

    /// Combines `operand` with whatever `key` holds, by the keyspace's merge operator. Reads nothing: costs what a put costs, or less where
    /// the key is in memory already.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the keyspace has no merge operator or the operator refuses the operand.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::new())
    }

    /// As [`Keyspace::merge`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    pub fn merge_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Merge, key.as_ref(), operand.as_ref(), options)
    }

    /// The value of `key`. Sees every write acknowledged before the call.
    ///
    /// # Errors
    /// `Corruption` and `Io` if it cannot be read; `MergeFailed` and `MissingMergeOperator` if operands cannot be combined.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        read::get(&self.shared.inner, &self.inner, key.as_ref(), MAX_SEQUENCE)
    }

    fn source(&self) -> Source {
        let registration = Arc::new(self.shared.inner.register_snapshot());
        Source::new(&self.shared.inner, &self.inner, registration)
    }

    /// All keys with their values, ascending, as they are now; `.rev()` for descending.
    pub fn iter(&self) -> Iter {
        Iter::new(self.source(), Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys in `range` with their values, ascending, as they are now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-range-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let names = db.keyspace("names", Default::default())?;
    /// for name in ["ada", "bob", "eve"] {
    ///     names.put(name, "")?;
    /// }
    /// let from_b: Result<Vec<_>, _> = names.range("b"..).map(|pair| pair.map(|(key, _)| key.to_vec())).collect();
    /// assert_eq!(from_b?, [b"bob".to_vec(), b"eve".to_vec()]);
    /// # drop((names, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let (lower, upper) = owned_bounds(&range);
        Iter::new(self.source(), lower, upper)
    }

    /// The keys that begin with `prefix` with their values, ascending, as they are now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let (lower, upper) = prefix_bounds(prefix.as_ref());
        Iter::new(self.source(), lower, upper)
    }

    /// A cursor over everything as it is now: cheaper than an iterator, because it lends keys and values instead of handing them out.
    ///
    /// # Errors
    /// None at present; reserved.
    pub fn cursor(&self) -> Result<Cursor> {
        Ok(Cursor::new(self.source()))
    }

    /// Flushes, then merges this keyspace into one sorted run.
    ///
    /// # Errors
    /// As [`crate::Db::compact`].
    pub fn compact(&self) -> Result<()> {
        background::compact_now(&self.shared.inner, Some(self.inner.id))
    }
}
