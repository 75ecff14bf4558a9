//! The options of `open`, from JavaScript to the engine's.

use crate::failure::Failure;
use crate::values::duration;
use esker::{Compression, Db, Keyspace, KeyspaceOptions, MergeOperator, Options, Ttl, merge};
use napi_derive::napi;
use std::sync::Arc;

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
    /// The keyspace.
    pub keyspace: String,
    /// The name of the keyspace's built-in merge operator.
    pub merge_operator: Option<String>,
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
}

impl OpenOptions {
    /// Opens the database and its keyspace.
    pub fn open(self) -> Result<(Db, Keyspace), Failure> {
        let keyspace_options = self.keyspace_options()?;
        let options = self.options();
        if self.read_only {
            let db = Db::open_read_only(&self.location, options)?;
            let keyspace = db.existing_keyspace(&self.keyspace)?;
            return Ok((db, keyspace));
        }
        let db = Db::open(&self.location, options)?;
        let keyspace = db.keyspace(&self.keyspace, keyspace_options)?;
        Ok((db, keyspace))
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
        options
    }

    fn keyspace_options(&self) -> Result<KeyspaceOptions, Failure> {
        let mut options = KeyspaceOptions::default();
        if let Some(name) = &self.merge_operator {
            options = options.shared_merge_operator(built_in_operator(name)?);
        }
        if self.ttl {
            let default = self.default_ttl.map(duration).transpose()?;
            options = options.ttl(Ttl::Enabled { default });
        }
        Ok(options)
    }
}

/// The merge operator of the engine with that name.
pub fn built_in_operator(name: &str) -> Result<Arc<dyn MergeOperator>, Failure> {
    merge::built_in(name).ok_or_else(|| Failure::invalid(format!("no merge operator {name:?}")))
}
