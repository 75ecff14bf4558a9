//! The orders of the model as the engine is given them: one that is built in, and one of its own.

use crate::model::Order;
use esker::{Comparator, KeyspaceOptions, Options, ReverseBytewise};
use std::cmp::Ordering;
use std::sync::Arc;

/// Shorter keys first.
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "check-by-length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        Order::ByLength.compare(a, b)
    }
}

/// The options of a keyspace in that order.
pub fn in_order(options: KeyspaceOptions, order: Order) -> KeyspaceOptions {
    match order {
        Order::Bytewise => options,
        Order::Reverse => options.comparator(ReverseBytewise),
        Order::ByLength => options.comparator(ByLength),
    }
}

/// The options of a database that may have keyspaces in any order.
pub fn with_comparators(options: Options) -> Options {
    options.comparator(Arc::new(ByLength))
}
