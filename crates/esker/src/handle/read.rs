//! Reads of a keyspace, on its handle.

use super::iterator::{Cursor, Iter};
use super::keyspace::Keyspace;
use crate::base::expiry::Expiry;
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::db::read::get;
use crate::db::read::scan::Source;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::latencies::Timed;
use crate::db::state::snapshots::{ReadPoint, SnapshotGuard};
use crate::error::Result;
use std::ops::Bound;
use std::sync::Arc;

/// The values of `keys` as the reader sees them.
pub(super) fn multi_get<K: AsRef<[u8]>>(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    reader: &SnapshotGuard,
    keys: impl IntoIterator<Item = K>,
) -> Vec<Result<Option<Slice>>> {
    let get = |key: K| get::get(inner, keyspace, &keyspace.order.stored(key.as_ref()), reader.point());
    keys.into_iter().map(get).collect()
}

impl Keyspace {
    /// The value of `key`. Sees every write acknowledged before the call.
    ///
    /// # Errors
    /// `Corruption` and `Io` if it cannot be read; `MergeFailed` and `MissingMergeOperator` if
    /// operands cannot be combined.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// if let Some(year) = names.get("ada")? {
    ///     assert_eq!(&*year, b"1815");
    /// }
    /// assert!(names.get("bob")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let inner = &self.shared.inner;
        let point = ReadPoint::newest(inner.now_ms(&self.inner));
        inner.timed(Timed::Get, || get::get(inner, &self.inner, &self.stored(&key), point))
    }

    /// As [`Keyspace::get`], but copies the value into `value`, in the place of what that holds,
    /// and returns whether there is one; without one `value` is empty afterwards. The cheapest way
    /// to read many values: with one buffer for all, nothing is allocated.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let mut year = Vec::new();
    /// assert!(names.get_into("ada", &mut year)?);
    /// assert_eq!(year, b"1815");
    /// assert!(!names.get_into("bob", &mut year)?);
    /// assert!(year.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `value` is empty then.
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        let inner = &self.shared.inner;
        let point = ReadPoint::newest(inner.now_ms(&self.inner));
        inner.timed(Timed::Get, || get::get_into(inner, &self.inner, &self.stored(&key), point, value))
    }

    /// The values of `keys`, in their order, all as of one moment. A key whose value cannot be read
    /// does not harm the others.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-multi-get-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.put("7", "ada")?;
    /// let values = names.multi_get(["7", "8"]);
    /// assert_eq!(values[0].as_ref().ok().cloned().flatten().as_deref(), Some(&b"ada"[..]));
    /// assert!(matches!(values[1], Ok(None)));
    /// # drop((names, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Vec<Result<Option<Slice>>> {
        match self.shared.inner.register_snapshot() {
            Ok(snapshot_guard) => multi_get(&self.shared.inner, &self.inner, &snapshot_guard, keys),
            Err(_) => keys.into_iter().map(|_| Err(self.shared.inner.in_callback())).collect(),
        }
    }

    /// When the value of `key` expires; none if it has no value now.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// use std::time::{Duration, SystemTime};
    /// let expires_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
    /// sessions.put_until("ada", "", expires_at)?;
    /// assert_eq!(sessions.expires_at("ada")?, Some(esker::Expiry::At(expires_at)));
    /// assert_eq!(sessions.expires_at("bob")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>> {
        let inner = &self.shared.inner;
        get::expires_at(inner, &self.inner, &self.stored(&key), ReadPoint::newest(inner.now_ms(&self.inner)))
    }

    pub(super) fn source(&self) -> Result<Source> {
        let snapshot_guard = Arc::new(self.shared.inner.register_snapshot()?);
        Source::new(&self.shared.inner, &self.inner, snapshot_guard)
    }

    /// All keys with their values, ascending, as they are now; `.rev()` for descending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// for pair in names.iter().rev() {
    ///     let (name, year) = pair?;
    ///     println!("{name:?} {year:?}");
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
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
    pub fn range(&self, range: impl KeyRange) -> Iter {
        let (lower, upper) = self.stored_bounds(&range);
        Iter::new(self.source(), lower, upper)
    }

    /// The keys that begin with `prefix` with their values, ascending, as they are now.
    ///
    /// Where keys of a prefix need not be neighbours, in the order of a comparator that is not
    /// built in, its first item is `InvalidArgument`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// for key in ["user:1", "user:2", "visit:1"] {
    ///     names.put(key, "")?;
    /// }
    /// assert_eq!(names.prefix("user:").count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        match self.prefix_bounds(prefix.as_ref()) {
            Ok(bounds) => self.range(bounds),
            Err(error) => Iter::new(Err(error), Bound::Unbounded, Bound::Unbounded),
        }
    }

    /// A cursor over everything as it is now: cheaper than an iterator, because it lends keys and
    /// values instead of handing them out.
    ///
    /// # Errors
    /// `KeyspaceDropped`; `InCallback` in a callback of the database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put("bob", "1923")?;
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_to_first()?;
    /// while cursor.valid() {
    ///     println!("{:?} {:?}", cursor.key(), cursor.value());
    ///     cursor.next()?;
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor(&self) -> Result<Cursor> {
        Cursor::new(self.source()?)
    }
}

/// As [`Keyspace::iter`].
impl IntoIterator for &Keyspace {
    type Item = Result<(Slice, Slice)>;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        self.iter()
    }
}
