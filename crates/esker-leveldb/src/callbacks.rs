//! The comparator and the filter policy of a call.

use crate::failure::{Done, Failure};
use crate::objects::{ComparatorObject, FilterPolicyObject};
use crate::option_values::OptionValues;
use crate::order::{BUILT_IN, Bytewise, Order, name_in_leveldb};
use crate::policy::Policy;
use esker::{Comparator, KeyspaceOptions, Options};
use esker_ffi::handles;
use std::sync::Arc;

/// What the handles in options name at the moment of a call.
#[derive(Default)]
pub(crate) struct Callbacks {
    order: Option<Arc<Order>>,
    policy: Option<Arc<Policy>>,
}

impl Callbacks {
    /// What the handles of these options name.
    ///
    /// # Errors
    /// If one was destroyed.
    pub(crate) fn of(values: &OptionValues) -> Done<Callbacks> {
        let order = match values.order {
            0 => None,
            order => Some(Arc::clone(&handles::get::<ComparatorObject>(order)?.0)),
        };
        let policy = match values.policy {
            0 => None,
            policy => Some(Arc::clone(&handles::get::<FilterPolicyObject>(policy)?.0)),
        };
        Ok(Callbacks { order, policy })
    }

    /// The options of the engine with them.
    pub(crate) fn of_database(&self, mut options: Options) -> Options {
        if let Some(bits) = self.policy.as_ref().and_then(|policy| policy.bits_per_key()) {
            options = options.filter_bits_per_key(bits);
        }
        if let Some(policy) = self.policy.as_ref().and_then(|policy| policy.custom()) {
            options = options.filter_policy(policy);
        }
        match self.order.clone() {
            Some(order) => options.comparator(order),
            None => options.comparator(Arc::new(Bytewise)),
        }
    }

    /// The options of a new keyspace.
    pub(crate) fn of_keyspace(&self) -> KeyspaceOptions {
        match self.order.clone() {
            Some(order) => KeyspaceOptions::default().shared_comparator(order),
            None => KeyspaceOptions::default(),
        }
    }

    /// Whether a keyspace that was created with the comparator of that name can be opened. As in
    /// LevelDB, two comparators of one name are the same order.
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
