//! The values of options, and what they are for the engine.

use crate::failure::{Done, Failure};
use crate::objects::{ComparatorObject, FilterPolicyObject};
use crate::order::{BUILT_IN, Bytewise, Order, name_in_leveldb};
use crate::policy::Policy;
use esker::{Comparator, Compression, KeyspaceOptions};
use esker_ffi::handles;
use std::sync::Arc;

/// Options that have a meaning here. What was not set is the engine's default.
#[derive(Clone, Default)]
pub(crate) struct OptionValues {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) write_buffer_bytes: Option<usize>,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) file_bytes: Option<usize>,
    pub(crate) is_compressed: Option<bool>,
    pub(crate) cache_bytes: Option<usize>,
    /// The handle of a comparator, or 0.
    pub(crate) order: usize,
    /// The handle of a filter policy, or 0.
    pub(crate) policy: usize,
}

/// What the handles in options name at the moment of a call.
#[derive(Default)]
pub(crate) struct Callbacks {
    order: Option<Arc<Order>>,
    policy: Option<Arc<Policy>>,
}

impl OptionValues {
    /// What the handles name.
    ///
    /// # Errors
    /// If one was destroyed.
    pub(crate) fn callbacks(&self) -> Done<Callbacks> {
        let order = match self.order {
            0 => None,
            order => Some(Arc::clone(&handles::get::<ComparatorObject>(order)?.0)),
        };
        let policy = match self.policy {
            0 => None,
            policy => Some(Arc::clone(&handles::get::<FilterPolicyObject>(policy)?.0)),
        };
        Ok(Callbacks { order, policy })
    }

    /// The options of the engine for them.
    pub(crate) fn of_database(&self, callbacks: &Callbacks) -> esker::Options {
        let mut options =
            esker::Options::default().create_if_missing(self.create_if_missing).error_if_exists(self.error_if_exists);
        // The limits are LevelDB's, which takes the nearest size that it can.
        if let Some(bytes) = self.write_buffer_bytes {
            options = options.write_buffer_bytes(bytes.clamp(64 << 10, 1 << 30));
        }
        if let Some(bytes) = self.block_bytes {
            options = options.block_bytes(bytes.clamp(1 << 10, 4 << 20));
        }
        if let Some(bytes) = self.file_bytes {
            options = options.target_file_bytes(bytes.clamp(1 << 20, 1 << 30) as u64);
        }
        if let Some(bytes) = self.cache_bytes {
            options = options.block_cache_bytes(bytes);
        }
        match self.is_compressed {
            Some(false) => options = options.compression(Compression::None),
            Some(true) => options = options.compression(Compression::Lz4),
            None => {}
        }
        if let Some(bits) = callbacks.policy.as_ref().and_then(|policy| policy.bits_per_key()) {
            options = options.filter_bits_per_key(bits);
        }
        if let Some(policy) = callbacks.policy.as_ref().and_then(|policy| policy.custom()) {
            options = options.filter_policy(policy);
        }
        match callbacks.order.clone() {
            Some(order) => options.comparator(order),
            None => options.comparator(Arc::new(Bytewise)),
        }
    }
}

impl Callbacks {
    /// The options of a new keyspace.
    pub(crate) fn of_keyspace(&self) -> KeyspaceOptions {
        match self.order.clone() {
            Some(order) => KeyspaceOptions::default().shared_comparator(order),
            None => KeyspaceOptions::default(),
        }
    }

    /// Whether a keyspace that was created with the comparator of that name can be opened. As in
    /// LevelDB, the name of its own order is that order, whoever gives it.
    pub(crate) fn fit(&self, stored: &str) -> bool {
        match &self.order {
            Some(order) => order.name() == stored || order.name() == Bytewise.name() && stored == BUILT_IN,
            None => [BUILT_IN, Bytewise.name()].contains(&stored),
        }
    }

    /// The error for a keyspace that was created with another comparator, in the words of LevelDB.
    pub(crate) fn mismatch(&self, stored: &str) -> Failure {
        let given = self.order.as_ref().map_or(BUILT_IN, |order| order.name());
        let (stored, given) = (name_in_leveldb(stored), name_in_leveldb(given));
        Failure::invalid(format!("{stored} does not match existing comparator : {given}"))
    }
}
