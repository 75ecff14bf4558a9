//! The public handles: documentation, checks of arguments, and delegation.

mod batch;
mod changes;
mod conditional;
mod convenience;
mod database;
mod destroy;
mod expiry;
mod follower;
mod iterator;
mod keyspace;
mod maintenance;
mod range_delete;
mod read;
mod settings;
mod shared;
mod snapshot;
mod transaction;
mod watch;

pub use batch::Batch;
pub use changes::Changes;
pub use database::Db;
pub use follower::Follower;
pub use iterator::{Cursor, Iter, Keys};
pub use keyspace::Keyspace;
pub use snapshot::Snapshot;
pub use transaction::{Transaction, TransactionIter};
pub use watch::Watch;
