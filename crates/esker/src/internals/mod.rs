//! Internals for benchmarks and tests. Compiled with the feature `internals` only; nothing here is
//! part of the engine's interface, and all of it may change at any time.

pub mod decoders;
mod kernels;
#[cfg(test)]
mod work_test;

pub use crate::base::random::Random;
pub use crate::version::manifest::intact_records as manifest_records;
pub use kernels::{CacheKernel, LogKernel, MemtableKernel, MergeKernel, TableKernel};

use crate::db::background::run;
use crate::handle::Db;
use std::time::Duration;

/// Has the background thread look for work, as if no write had come for `time` longer, and waits
/// until it has done all that it found. The database has such a thread.
pub fn background_round(db: &Db, time: Duration) {
    run::round_after(&db.shared.inner, time);
}

/// The threads that wait for others which flush or compact, or create, alter or drop a keyspace.
pub fn waiting_threads(db: &Db) -> usize {
    let inner = &db.shared.inner;
    inner.jobs.waiting() + inner.keyspace_changes.waiting()
}
