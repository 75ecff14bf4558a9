//! The change feed.
//!
//! With [`Options::keep_changes`](crate::Options::keep_changes) the database keeps what was
//! written, and [`Db::changes`](crate::Db::changes) yields every committed batch once, in order,
//! from a number on. A snapshot and the feed from its number together miss nothing and see nothing
//! twice.
//!
//! ```
//! use esker::{ChangeOperation, ChangeRetention, Db, Options};
//! # let env = std::sync::Arc::new(esker::env::mem::MemEnv::new());
//! let options = Options::default().keep_changes(ChangeRetention::Bytes(16 << 20));
//! # let options = options.env(env);
//! let db = Db::open("data", options)?;
//! let prices = db.keyspace("prices", Default::default())?;
//! prices.put("apple", "30")?;
//!
//! let snapshot = db.snapshot();
//! let mut known = snapshot.count(&prices, ..)?;
//! let mut changes = db.changes(snapshot.sequence() + 1)?;
//!
//! prices.put("pear", "40")?;
//! while let Some(batch) = changes.next() {
//!     for change in batch?.changes {
//!         match change.operation {
//!             ChangeOperation::Put { .. } => known += 1,
//!             other => println!("{other:?}"),
//!         }
//!     }
//! }
//! assert_eq!(known, 2);
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! * Where it has caught up it yields nothing; [`Changes::wait`](crate::Changes::wait) waits for
//!   more.
//! * [`ChangeBatch::next_sequence`](crate::ChangeBatch::next_sequence) is where to go on: keep it
//!   with what was made of the changes, in one write.
//! * A reader holds nothing back. One that is overtaken gets [`Error::Gone`](crate::Error::Gone),
//!   and begins anew with a snapshot.
//! * [`Changes::only_durable`](crate::Changes::only_durable) yields what a power failure cannot
//!   take any more: for readers that hand changes to other systems.
//! * [`Keyspace::watch`](crate::Keyspace::watch) waits for a write to keys with a prefix. It tells
//!   that there was one, not which, and needs nothing to be kept.
