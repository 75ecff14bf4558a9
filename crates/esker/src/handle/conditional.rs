//! Writes that look at the value they replace: a condition, or the value itself as the answer.

use super::keyspace::{Keyspace, life_of};
use crate::base::compare_and_swap::CompareAndSwap;
use crate::base::key::Kind;
use crate::base::slice::Slice;
use crate::db::read::get::full_merge;
use crate::db::state::latencies::Timed;
use crate::db::write::conditional::OnValue;
use crate::error::Result;
use crate::options::WriteOptions;

/// Conditional and returning writes. Each is one atomic step in the order of all writes: no other
/// write to the key comes between what it sees and what it writes. A write that is declined costs a
/// get, and with `sync` a sync; one that goes ahead costs a get and a write, with a second lookup
/// under the writer lock.
impl Keyspace {
    /// Writes if `decide` says so about the value that the key has then; whether it did.
    fn write_on_value(
        &self,
        (kind, key, value): (Kind, &[u8], &[u8]),
        options: &WriteOptions,
        decide: impl FnMut(Option<Slice>) -> Result<bool>,
    ) -> Result<bool> {
        let mut condition = OnValue::new(&self.shared.inner, &self.inner, (kind, key), decide);
        let life = life_of(options.ttl)?;
        let write = || self.write_if(kind, key, value, life, options, &mut condition);
        let is_written = self.shared.inner.timed(Timed::Conditional, write)?;
        if !is_written && options.sync {
            // What it has seen is durable, too, once it returns.
            self.shared.inner.sync_log()?;
        }
        Ok(is_written)
    }

    /// Sets the value of `key` if it has none, and returns `None`; otherwise writes nothing and
    /// returns the value that is there. A key whose value has expired has none.
    ///
    /// # Errors
    /// As [`Keyspace::put`] and [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// assert!(names.put_if_absent("ada", "1815")?.is_none());
    /// assert_eq!(names.put_if_absent("ada", "1852")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.put_if_absent_with(key, value, &WriteOptions::new())
    }

    /// As [`Keyspace::put_if_absent`], with options. A time to live is that of the value written.
    ///
    /// # Errors
    /// As [`Keyspace::put_if_absent`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::WriteOptions;
    /// assert!(names.put_if_absent_with("ada", "1815", &WriteOptions::new().sync(true))?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_if_absent_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<Option<Slice>> {
        let mut present = None;
        self.write_on_value((Kind::Put, &self.stored(&key), value.as_ref()), options, |current| {
            present = current;
            Ok(present.is_none())
        })?;
        Ok(present)
    }

    /// Sets the value of `key` to `new` if it is `expected`. `None` stands for no value, both ways:
    /// an expected `None` writes only where there is none, and a new `None` deletes the key, also
    /// one that has no value.
    ///
    /// # Errors
    /// As [`Keyspace::put`] and [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::CompareAndSwap;
    /// names.put("ada", "1815")?;
    /// assert!(names.compare_and_swap("ada", Some(b"1815"), Some(b"1816"))?.is_swapped());
    /// let CompareAndSwap::Unequal { current } = names.compare_and_swap("ada", Some(b"1815"), None)? else {
    ///     panic!("the value is another one")
    /// };
    /// assert_eq!(current.as_deref(), Some(&b"1816"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CompareAndSwap> {
        self.compare_and_swap_with(key, expected, new, &WriteOptions::new())
    }

    /// As [`Keyspace::compare_and_swap`], with options. A time to live is that of the new value;
    /// the expiry of the old one is not kept.
    ///
    /// # Errors
    /// As [`Keyspace::compare_and_swap`]; `InvalidArgument` also for a time to live of a delete.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::WriteOptions;
    /// let synced = WriteOptions::new().sync(true);
    /// assert!(names.compare_and_swap_with("ada", None, Some(b"1815"), &synced)?.is_swapped());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_swap_with(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        options: &WriteOptions,
    ) -> Result<CompareAndSwap> {
        let (kind, value) = new.map_or((Kind::Delete, &[][..]), |value| (Kind::Put, value));
        let mut found = None;
        let swapped = self.write_on_value((kind, &self.stored(&key), value), options, |current| {
            found = current;
            Ok(found.as_deref() == expected)
        })?;
        Ok(if swapped { CompareAndSwap::Swapped } else { CompareAndSwap::Unequal { current: found } })
    }

    /// Combines `operand` with the value of `key`, as [`Keyspace::merge`] does, and returns what
    /// that makes of it: of a counter its new value; `None` if the operator deletes the
    /// key.
    ///
    /// # Errors
    /// As [`Keyspace::merge`] and [`Keyspace::get`]. After `MergeFailed` nothing was written.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let tickets = db.keyspace("tickets", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// let next = || tickets.merge_and_get("next", 1u64.to_le_bytes());
    /// assert_eq!(next()?.as_deref(), Some(&1u64.to_le_bytes()[..]));
    /// assert_eq!(next()?.as_deref(), Some(&2u64.to_le_bytes()[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_and_get(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.merge_and_get_with(key, operand, &WriteOptions::new())
    }

    /// As [`Keyspace::merge_and_get`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::merge_and_get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let tickets = db.keyspace("tickets", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// let synced = esker::WriteOptions::new().sync(true);
    /// assert!(tickets.merge_and_get_with("next", 1u64.to_le_bytes(), &synced)?.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_and_get_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<Option<Slice>> {
        let (key, operand) = (&*self.stored(&key), operand.as_ref());
        let mut merged = None;
        self.write_on_value((Kind::Merge, key, operand), options, |current| {
            let settings = self.inner.present_merge_settings();
            let value = full_merge(&self.shared.inner, &self.inner, &settings, key, current.as_deref(), &[operand])?;
            merged = value.map(Slice::from);
            Ok(true)
        })?;
        Ok(merged)
    }

    /// Deletes `key` and returns the value that it had. Of several threads that take a key, one
    /// gets the value. Where there is none, nothing is written.
    ///
    /// # Errors
    /// As [`Keyspace::delete`] and [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// assert_eq!(names.take("ada")?.as_deref(), Some(&b"1815"[..]));
    /// assert!(names.take("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.take_with(key, &WriteOptions::new())
    }

    /// As [`Keyspace::take`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::take`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// assert!(names.take_with("ada", &esker::WriteOptions::new().sync(true))?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn take_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<Option<Slice>> {
        let mut taken = None;
        self.write_on_value((Kind::Delete, &self.stored(&key), &[]), options, |current| {
            taken = current;
            Ok(taken.is_some())
        })?;
        Ok(taken)
    }
}
