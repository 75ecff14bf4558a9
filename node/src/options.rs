//! The options of `open`, from JavaScript to the engine's.

use crate::failure::Failure;
use crate::served_operator::ServedOperator;
use crate::values::duration;
use esker::{
    ChangeRetention, Compression, Db, Follower, Keyspace, KeyspaceOptions, MergeOperator, Options, Ttl, merge,
};
use napi_derive::napi;
use std::sync::Arc;
use std::time::Duration;

/// What `index.js` passes: each option is checked for its type there.
#[napi(object)]
pub struct OpenOptions {
    /// The directory.
    pub location: String,
    /// Whether a missing database is created.
    pub create_if_missing: bool,
    /// Whether an existing database is refused.
    pub error_if_exists: bool,
    /// Whether it is opened beside a writer, for reads.
    pub read_only: bool,
    /// Whether it is opened behind a writer, for reads that catch up with it.
    pub follower: bool,
    /// The keyspace.
    pub keyspace: String,
    /// The name of the keyspace's built-in merge operator.
    pub merge_operator: Option<String>,
    /// The merge operator of the program instead.
    pub served_operator: Option<ServedOperator>,
    /// Whether entries of the keyspace can expire.
    pub ttl: bool,
    /// After how many milliseconds they do where nothing else is said.
    pub default_ttl: Option<f64>,
    /// Whether blocks are compressed.
    pub compression: Option<bool>,
    /// Bytes of the block cache.
    pub cache_size: Option<f64>,
    /// Bytes of a memtable.
    pub write_buffer_size: Option<f64>,
    /// Bytes of a block.
    pub block_size: Option<f64>,
    /// Bytes for all of memtables, caches, indexes and filters.
    pub memory_budget: Option<f64>,
    /// Bytes of the log that are kept for readers of changes.
    pub keep_changes_bytes: Option<f64>,
    /// For how many milliseconds changes are kept.
    pub keep_changes_time: Option<f64>,
    /// Whether changes are kept as they were before.
    pub keep_changes_as_before: Option<bool>,
}

/// What was opened.
pub struct Opened {
    /// The database.
    pub db: Db,
    /// Its keyspace.
    pub keyspace: Keyspace,
    /// What catches up with the writer, if that is asked for.
    pub follower: Option<Follower>,
}

impl OpenOptions {
    /// Opens the database and its keyspace.
    pub fn open(self) -> Result<Opened, Failure> {
        let keyspace_options = self.keyspace_options()?;
        let options = self.options();
        if self.follower {
            let follower = Db::open_follower(&self.location, options)?;
            let db = follower.db().clone();
            let keyspace = self.existing_keyspace(&db, keyspace_options)?;
            return Ok(Opened { db, keyspace, follower: Some(follower) });
        }
        if self.read_only {
            let db = Db::open_read_only(&self.location, options)?;
            let keyspace = self.existing_keyspace(&db, keyspace_options)?;
            return Ok(Opened { db, keyspace, follower: None });
        }
        let db = Db::open(&self.location, options)?;
        let keyspace = db.keyspace(&self.keyspace, keyspace_options)?;
        Ok(Opened { db, keyspace, follower: None })
    }

    /// A keyspace for reading, with the merge operator of the program, where there is one.
    fn existing_keyspace(&self, db: &Db, options: KeyspaceOptions) -> Result<Keyspace, Failure> {
        let found = db.existing_keyspace(&self.keyspace)?;
        Ok(if self.served_operator.is_some() { db.keyspace(&self.keyspace, options)? } else { found })
    }

    fn options(&self) -> Options {
        let mut options =
            Options::default().create_if_missing(self.create_if_missing).error_if_exists(self.error_if_exists);
        if let Some(yes) = self.compression {
            options = options.compression(if yes { Compression::Lz4 } else { Compression::None });
        }
        if let Some(bytes) = self.cache_size {
            options = options.block_cache_bytes(bytes as usize);
        }
        if let Some(bytes) = self.write_buffer_size {
            options = options.write_buffer_bytes(bytes as usize);
        }
        if let Some(bytes) = self.block_size {
            options = options.block_bytes(bytes as usize);
        }
        if let Some(bytes) = self.memory_budget {
            options = options.memory_budget_bytes(bytes as usize);
        }
        if let Some(bytes) = self.keep_changes_bytes {
            options = options.keep_changes(ChangeRetention::Bytes(bytes as u64));
        }
        if let Some(milliseconds) = self.keep_changes_time {
            options = options.keep_changes(ChangeRetention::Time(Duration::from_millis(milliseconds as u64)));
        }
        if self.keep_changes_as_before == Some(true) {
            options = options.keep_changes(ChangeRetention::AsBefore);
        }
        options
    }

    fn keyspace_options(&self) -> Result<KeyspaceOptions, Failure> {
        let mut options = KeyspaceOptions::default();
        if let Some(operator) = merge_operator(self.merge_operator.as_deref(), self.served_operator.as_ref())? {
            options = options.shared_merge_operator(operator);
        }
        if self.ttl {
            let default = self.default_ttl.map(duration).transpose()?;
            options = options.ttl(Ttl::Enabled { default });
        }
        Ok(options)
    }
}

/// The merge operator with that name, or that of the program, if there is one.
pub fn merge_operator(
    name: Option<&str>,
    served: Option<&ServedOperator>,
) -> Result<Option<Arc<dyn MergeOperator>>, Failure> {
    match (name, served) {
        (_, Some(served)) => served.operator().map(Some),
        (Some(name), None) => built_in_operator(name).map(Some),
        (None, None) => Ok(None),
    }
}

/// The merge operator of the engine with that name.
fn built_in_operator(name: &str) -> Result<Arc<dyn MergeOperator>, Failure> {
    merge::built_in(name).ok_or_else(|| Failure::invalid(format!("no merge operator {name:?}")))
}
