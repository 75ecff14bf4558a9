//! The guide: how the calls go together, a page for each subject. There is no code here.
//!
//! | Page | Subject |
//! | --- | --- |
//! | [`keyspaces`] | databases, keyspaces, what is stored with them, bytes and types |
//! | [`writing`] | puts, batches, conditional writes, range deletes, loads |
//! | [`durability`] | what survives which failure, and how to ask for more |
//! | [`reading`] | gets, iterators, cursors, snapshots, readers beside the writer |
//! | [`merging`] | changes without a read: counters, and operators of your own |
//! | [`expiry`] | keys that live for a time |
//! | [`transactions`] | reads and writes that take effect as one |
//! | [`changes`] | what was written, in order, for caches, indexes and copies |
//! | [`operating`] | errors, statistics, copies, damage |
//!
//! The meaning of each call to the last detail is in `doc/semantics.md` of the repository, and
//! `doc/book` is a book for first readers, with recipes and with the ways from other engines.
//!
//! The examples run in memory ([`MemEnv`](crate::env::mem::MemEnv)), which is hidden where it does
//! not matter; a program names a directory and leaves the environment as it is:
//!
//! ```no_run
//! let db = esker::Db::open("data", esker::Options::default())?;
//! db.close()?;
//! # Ok::<(), esker::Error>(())
//! ```

pub mod changes;
pub mod durability;
pub mod expiry;
pub mod keyspaces;
pub mod merging;
pub mod operating;
pub mod reading;
pub mod transactions;
pub mod writing;
