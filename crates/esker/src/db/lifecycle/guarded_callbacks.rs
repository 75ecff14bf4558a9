//! The user's callbacks as a database calls them: a call that one makes back into the database is
//! recognized (`base/callback.rs`).

use crate::base::callback::Database;
use crate::base::clock::{Clock, SystemClock};
use crate::base::key_order::KeyOrder;
use crate::compaction_filter::{CompactionFilter, Decision};
use crate::merge_operator::{MergeError, MergeOperator, built_in};
use std::sync::Arc;

/// A callback, and its caller.
#[derive(Debug)]
struct Guarded<C: ?Sized> {
    database: Database,
    callback: Arc<C>,
}

/// The operator of that name, guarded unless it is built in.
pub fn operator(database: Database, callback: Arc<dyn MergeOperator>, name: &str) -> Arc<dyn MergeOperator> {
    if built_in(name).is_some() { callback } else { Arc::new(Guarded { database, callback }) }
}

/// A callback that knows keys as the program does, of a keyspace with this order.
#[derive(Debug)]
struct OfKeys<C: ?Sized> {
    order: KeyOrder,
    callback: Arc<C>,
}

/// The operator, called with keys as the program knows them. The built-in ones do not look at keys.
pub fn operator_of(order: &KeyOrder, callback: Arc<dyn MergeOperator>, name: &str) -> Arc<dyn MergeOperator> {
    if order.is_bytewise() || built_in(name).is_some() {
        return callback;
    }
    Arc::new(OfKeys { order: order.clone(), callback })
}

/// The filter, called with keys as the program knows them.
pub fn filter_of(order: &KeyOrder, callback: Arc<dyn CompactionFilter>) -> Arc<dyn CompactionFilter> {
    if order.is_bytewise() { callback } else { Arc::new(OfKeys { order: order.clone(), callback }) }
}

impl MergeOperator for OfKeys<dyn MergeOperator> {
    fn name(&self) -> &str {
        self.callback.name()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        self.callback.full_merge(self.order.key_of(key), existing, operands)
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.callback.partial_merge(self.order.key_of(key), older, newer)
    }

    fn may_delete(&self) -> bool {
        self.callback.may_delete()
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        self.callback.check_operand(operand)
    }
}

impl CompactionFilter for OfKeys<dyn CompactionFilter> {
    fn name(&self) -> &str {
        self.callback.name()
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        self.callback.decide(self.order.key_of(key), value)
    }
}

/// The filter, guarded.
pub fn filter(database: Database, callback: Arc<dyn CompactionFilter>) -> Arc<dyn CompactionFilter> {
    Arc::new(Guarded { database, callback })
}

/// The clock, guarded.
pub fn clock(database: Database, callback: Arc<dyn Clock>) -> Arc<dyn Clock> {
    Arc::new(Guarded { database, callback })
}

fn nested() -> MergeError {
    MergeError("the operator was called by reads that it made itself, again and again".into())
}

impl MergeOperator for Guarded<dyn MergeOperator> {
    fn name(&self) -> &str {
        let _inside = self.database.enter();
        self.callback.name()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let _inside = self.database.enter().ok_or_else(nested)?;
        self.callback.full_merge(key, existing, operands)
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let _inside = self.database.enter()?;
        self.callback.partial_merge(key, older, newer)
    }

    fn may_delete(&self) -> bool {
        let _inside = self.database.enter();
        self.callback.may_delete()
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        let _inside = self.database.enter().ok_or_else(nested)?;
        self.callback.check_operand(operand)
    }
}

impl CompactionFilter for Guarded<dyn CompactionFilter> {
    fn name(&self) -> &str {
        let _inside = self.database.enter();
        self.callback.name()
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        let _inside = self.database.enter();
        self.callback.decide(key, value)
    }
}

impl Clock for Guarded<dyn Clock> {
    /// A clock that calls the database for something that needs the time, which needs the clock,
    /// gets the system's time in the end.
    fn now_ms(&self) -> u64 {
        match self.database.enter() {
            Some(_inside) => self.callback.now_ms(),
            None => SystemClock.now_ms(),
        }
    }
}
