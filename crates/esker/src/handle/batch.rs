//! Several operations as one.

use super::keyspace::{Keyspace, check};
use super::shared::Shared;
use crate::base::batch::{Operation, encode};
use crate::base::key::{Kind, NEVER};
use crate::db::write::{Content, Need, commit, need_of, start_record};
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use std::sync::Arc;

/// Operations, on any keyspaces of one database, that take effect together or not at all: for readers, for snapshots, and across a crash.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-batch-{}", std::process::id()));
/// # let db = esker::Db::open(&directory, Default::default())?;
/// let users = db.keyspace("users", Default::default())?;
/// let emails = db.keyspace("emails", Default::default())?;
/// let mut batch = db.batch();
/// batch.put(&users, "7", "ada")?;
/// batch.put(&emails, "ada@example.org", "7")?;
/// batch.commit()?;
/// # assert_eq!(emails.get("ada@example.org")?.as_deref(), Some(&b"7"[..]));
/// # drop((users, emails, db));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Batch {
    shared: Arc<Shared>,
    record: Vec<u8>,
    needs: Vec<Need>,
    count: u64,
}

impl Batch {
    pub(super) fn new(shared: Arc<Shared>) -> Batch {
        let mut record = Vec::new();
        start_record(&mut record);
        Batch { shared, record, needs: Vec::new(), count: 0 }
    }

    fn add(&mut self, keyspace: &Keyspace, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Err(Error::invalid(format!("keyspace {:?} belongs to another database", keyspace.name())));
        }
        check(&keyspace.inner, kind, key, value)?;
        let id = keyspace.inner.id;
        let operation = Operation { keyspace: id, kind, expiry_ms: NEVER, key, value };
        let need = need_of(&operation);
        match self.needs.iter_mut().find(|(other, _)| *other == id) {
            Some((_, bytes)) => *bytes += need,
            None => self.needs.push((id, need)),
        }
        encode(&mut self.record, &operation);
        self.count += 1;
        Ok(())
    }

    /// Adds a put.
    ///
    /// # Errors
    /// `InvalidArgument` as for [`Keyspace::put`], or if the keyspace belongs to another database.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds a delete.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Delete, key.as_ref(), &[])
    }

    /// Adds a merge.
    ///
    /// # Errors
    /// As [`Batch::put`], and as [`Keyspace::merge`].
    pub fn merge(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Merge, key.as_ref(), operand.as_ref())
    }

    /// The number of operations added.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether no operation was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all operations, and keeps the memory.
    pub fn clear(&mut self) {
        start_record(&mut self.record);
        self.needs.clear();
        self.count = 0;
    }

    /// Performs the operations, in the order in which they were added.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the batch is longer than 4 GiB. Nothing took effect then, except after a failed sync.
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::new())
    }

    /// As [`Batch::commit`], with options.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    pub fn commit_with(mut self, options: &WriteOptions) -> Result<()> {
        self.commit_and_clear(options)
    }

    /// As [`Batch::commit_with`], but keeps the batch, empty, for reuse. After an error it still holds its operations.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    pub fn commit_and_clear(&mut self, options: &WriteOptions) -> Result<()> {
        if self.count > 0 {
            let content = Content::Encoded(self.count);
            commit(&self.shared.inner, &mut self.record, content, &self.needs, options)?;
        } else if options.sync {
            // The promise of a sync covers everything acknowledged before it.
            self.shared.inner.condition.check()?;
            self.shared.inner.sync_log()?;
        }
        self.clear();
        Ok(())
    }
}
