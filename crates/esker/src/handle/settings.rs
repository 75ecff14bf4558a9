//! Settings of a keyspace that can be changed while it is in use.

use super::keyspace::Keyspace;
use crate::base::expiry::Ttl;
use crate::db::lifecycle::settings;
use crate::error::Result;
use crate::merge_operator::MergeOperator;
use std::sync::Arc;

impl Keyspace {
    /// From now on entries can expire, after this time by default: of a keyspace that was created
    /// without a time to live, or with another default. What was written before keeps the expiry
    /// that it has, or has none; so do writes that began before, and operations in batches and
    /// transactions that were added before. Durable when it returns: the manifest is written anew,
    /// and synced. Waits for a flush or compaction that is under way.
    ///
    /// # Errors
    /// `InvalidArgument` for [`Ttl::Disabled`] where entries can expire, and for a keyspace with a
    /// merge operator that was created without a time to live. `KeyspaceDropped`, `ReadOnly`, `Io`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{Ttl, WriteOptions};
    /// use std::time::Duration;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.set_ttl(Ttl::Enabled { default: None })?;
    /// names.put_with("ada", "1815", &WriteOptions::new().ttl(Duration::from_secs(60)))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_ttl(&self, ttl: Ttl) -> Result<()> {
        settings::set_ttl(&self.shared.inner, &self.inner, ttl)
    }

    /// Gives a keyspace that was created without a merge operator this one. Durable when it
    /// returns, as [`Keyspace::set_ttl`]. Does nothing where the keyspace has an operator of that
    /// name, but supply it if the keyspace was opened without. Until the next open, additions
    /// without log take the writer lock.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has an operator of another name, or if the name is none.
    /// `KeyspaceDropped`, `ReadOnly`, `Io`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let hits = db.keyspace("hits", Default::default())?;
    /// hits.put("page", 7u64.to_le_bytes())?;
    /// hits.set_merge_operator(esker::merge::UInt64Add)?;
    /// hits.merge("page", 1u64.to_le_bytes())?;
    /// assert_eq!(hits.get("page")?.as_deref(), Some(&8u64.to_le_bytes()[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_merge_operator(&self, operator: impl MergeOperator) -> Result<()> {
        settings::set_merge_operator(&self.shared.inner, &self.inner, Arc::new(operator))
    }
}
