//! What survives which failure.
//!
//! | A write | survives the process | survives a power failure |
//! | --- | --- | --- |
//! | by default | once the call has returned | once a later sync, flush or close has returned |
//! | with [`sync`](crate::WriteOptions::sync) | once the call has returned | once the call has returned |
//! | with [`disable_wal`](crate::WriteOptions::disable_wal) | once a later flush or close has returned | the same |
//!
//! Choose for each write, not for the database.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::WriteOptions;
//!
//! let orders = db.keyspace("orders", Default::default())?;
//! let views = db.keyspace("views", Default::default())?;
//! views.put("/", "1")?;                                              // the process may die
//! orders.put_with("7", "1200", &WriteOptions::new().sync(true))?;    // the machine may, too
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! * A sync makes everything durable that was logged before it, of all threads and keyspaces.
//!   Threads that wait at the same time share one flush of the device.
//!   [`Db::sync`](crate::Db::sync) is a sync without a write.
//! * A power failure takes an end of the order of writes: no hole in it, and no half of a batch.
//! * After the first write or sync of the log that fails, the handle is read-only until the
//!   database is opened again. A failed sync is not tried twice.
//! * [`Db::close`](crate::Db::close) syncs, and reports what fails. Dropping the last handle makes
//!   nothing durable, and loses nothing that was acknowledged with log.
//!
//! The environment in memory can lose power, so that a program can test what it relies on:
//!
//! ```
//! use esker::env::mem::{CrashMode, MemEnv};
//! use esker::{Db, Options, WriteOptions};
//! use std::sync::Arc;
//!
//! let env = Arc::new(MemEnv::new());
//! let db = Db::open("data", Options::default().env(env.clone()))?;
//! let orders = db.keyspace("orders", Default::default())?;
//! orders.put_with("1", "synced", &WriteOptions::new().sync(true))?;
//! orders.put("2", "not synced")?;
//!
//! // The disk as the next boot finds it, if all was lost that was not synced.
//! let after = Arc::new(env.crash(&CrashMode::LoseAll, 0));
//! let db = Db::open("data", Options::default().env(after))?;
//! let orders = db.existing_keyspace("orders")?;
//! assert!(orders.contains_key("1")? && !orders.contains_key("2")?);
//! # Ok::<(), esker::Error>(())
//! ```
