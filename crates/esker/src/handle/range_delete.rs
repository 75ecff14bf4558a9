//! Deletes of ranges, on the handle of a keyspace.

use super::batch::Batch;
use super::keyspace::Keyspace;
use crate::base::key_range::KeyRange;
use crate::error::Result;
use crate::options::WriteOptions;
use std::sync::Arc;

impl Keyspace {
    /// Removes every key in `range` that exists now, as one write. A range without keys, such as an
    /// inverted one, does nothing.
    ///
    /// Costs some microseconds, however many keys are in the range: what is deleted stays on the
    /// device until it is compacted, or, where whole tables are in the range, until these are
    /// dropped unread. Reads in the range also search the tombstones.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-delete-range-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let events = db.keyspace("events", Default::default())?;
    /// for day in ["01", "02", "03"] {
    ///     events.put(day, "")?;
    /// }
    /// events.delete_range(.."03")?;
    /// assert!(events.get("02")?.is_none());
    /// assert!(events.get("03")?.is_some());
    /// events.delete_range(..)?;
    /// assert_eq!(events.iter().count(), 0);
    /// # drop((events, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range(&self, range: impl KeyRange) -> Result<()> {
        self.delete_range_with(range, &WriteOptions::new())
    }

    /// As [`Keyspace::delete_range`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.delete_range_with("a".."b", &esker::WriteOptions::new().sync(true))?;
    /// assert!(names.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range_with(&self, range: impl KeyRange, options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::new(Arc::clone(&self.shared));
        batch.delete_range(self, range)?;
        if batch.is_empty() {
            // An empty range is in no write that would find it.
            self.inner.check_exists()?;
        }
        batch.commit_with(options)
    }

    /// Removes every key that exists now, as one write: `delete_range(..)`, which is what to use in
    /// a batch or a transaction. The keyspace stays, with its options. Tables that no earlier
    /// snapshot sees are dropped unread, as soon as the write is flushed.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.clear()?;
    /// assert!(names.first()?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }
}
