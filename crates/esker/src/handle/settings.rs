//! Changes the settings and the name of a keyspace that is in use.

use super::keyspace::Keyspace;
use crate::base::expiry::Ttl;
use crate::db::lifecycle::settings;
use crate::error::Result;
use crate::merge_operator::MergeOperator;
use std::sync::Arc;

impl Keyspace {
    /// Sets the default time to live of the keyspace. Entries can expire from now on, also if the
    /// keyspace was created without a time to live. Entries written before keep the expiry that
    /// they have, or have none; so do writes that began before, and operations that were added to
    /// batches and transactions before. The change is durable when the call returns: it writes and
    /// syncs a new manifest. Waits for a flush or compaction that is under way.
    ///
    /// Where nothing could expire before, and the keyspace has a merge operator, its operands are
    /// folded first, as by [`Keyspace::set_merge_operator`].
    ///
    /// # Errors
    /// `InvalidArgument` for [`Ttl::Disabled`] where entries can expire, and where operands cannot
    /// be folded. `KeyspaceDropped`, `ReadOnly`, `Io`.
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

    /// Gives the keyspace this merge operator, in the place of that which it has, if it has one.
    /// Durable when it returns, as [`Keyspace::set_ttl`]. Does nothing where the keyspace has an
    /// operator of that name, but supply it if the keyspace was opened without. Until the next
    /// open, additions without log take the writer lock.
    ///
    /// Where the keyspace has another operator, everything in it is compacted with that one first,
    /// so that no operand is left: the call takes the time to read and write the keyspace, and
    /// again if other threads merge meanwhile. Operands in batches and transactions that were added
    /// before are combined by the operator that is in force at the commit. If that refuses one, the
    /// commit is `InvalidArgument`, and nothing is written; so is a merge that was under way.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is none, or if operands of another operator cannot be folded:
    /// because a snapshot, an iterator or a transaction sees what is below them, because that
    /// operator fails or was not supplied, because other threads merge all the time, or with
    /// [`crate::CompactionStyle::Fifo`]. `KeyspaceDropped`, `ReadOnly`, `Io`; `Corruption` as
    /// [`Keyspace::compact`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let hits = db.keyspace("hits", Default::default())?;
    /// hits.put("page", 7u64.to_le_bytes())?;
    /// hits.set_merge_operator(esker::merge::UInt64Add)?;
    /// hits.merge("page", 1u64.to_le_bytes())?;
    /// assert_eq!(hits.get("page")?.as_deref(), Some(&8u64.to_le_bytes()[..]));
    /// hits.set_merge_operator(esker::merge::Max)?; // the addition is folded
    /// hits.merge("page", 9u64.to_le_bytes())?;
    /// assert_eq!(hits.get("page")?.as_deref(), Some(&9u64.to_le_bytes()[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_merge_operator(&self, operator: impl MergeOperator) -> Result<()> {
        settings::set_merge_operator(&self.shared.inner, &self.inner, Arc::new(operator))
    }

    /// As [`Keyspace::set_merge_operator`], with an operator that is shared already.
    ///
    /// # Errors
    /// As [`Keyspace::set_merge_operator`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let hits = db.keyspace("hits", Default::default())?;
    /// hits.set_shared_merge_operator(esker::merge::built_in("max").expect("it is built in"))?;
    /// assert_eq!(hits.merge_operator().as_deref(), Some("max"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_shared_merge_operator(&self, operator: Arc<dyn MergeOperator>) -> Result<()> {
        settings::set_merge_operator(&self.shared.inner, &self.inner, operator)
    }

    /// Gives the keyspace another name, in one atomic step that is durable when it returns: a crash
    /// during the call leaves the one or the other. All handles, snapshots, iterators, batches and
    /// transactions go on, under the new name; the old name is free at once. Does nothing where the
    /// keyspace has that name.
    ///
    /// Costs a small new file, which lists all keyspaces and tables; waits for no flush but that of
    /// a checkpoint or of an idle database, and for no compaction.
    ///
    /// # Errors
    /// `AlreadyExists` if a keyspace has that name; `InvalidArgument` for what is no name;
    /// `KeyspaceDropped`; `ReadOnly`; `Io`. On a full disk the keyspace keeps its name, and writes
    /// go on.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let drafts = db.keyspace("drafts", Default::default())?;
    /// drafts.put("ada", "1815")?;
    /// drafts.rename("names")?;
    /// assert_eq!((&*drafts.name(), db.keyspaces()), ("names", vec!["names".to_owned()]));
    /// assert!(db.existing_keyspace("names")?.contains_key("ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn rename(&self, name: &str) -> Result<()> {
        settings::rename(&self.shared.inner, &self.inner, name)
    }
}
