//! Writing.
//!
//! Each call is one atomic write, visible to every read that begins after it returned. A put and a
//! delete read nothing.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let names = db.keyspace("names", Default::default())?;
//! names.put("ada", "1815")?;
//! names.delete("ada")?;
//! assert!(names.get("ada")?.is_none());
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Several as one
//!
//! A [`Batch`](crate::Batch) makes any number of operations one atomic write, over any keyspaces:
//! after a crash all of it is there or nothing. Many small writes also cost less in a batch.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let people = db.keyspace("people", Default::default())?;
//! let by_year = db.keyspace("by year", Default::default())?;
//! let mut batch = db.batch();
//! batch.put(&people, "ada", "1815")?;
//! batch.put(&by_year, "1815/ada", "")?;
//! batch.commit()?;
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Look and write in one step
//!
//! No other write to the key comes between the two. What reads several keys is a
//! [transaction](super::transactions).
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let owners = db.keyspace("owners", Default::default())?;
//! assert!(owners.put_if_absent("lock", "ada")?.is_none()); // it was free
//! assert!(owners.put_if_absent("lock", "bob")?.is_some()); // it is ada's
//! assert!(owners.compare_and_swap("lock", Some(b"ada"), Some(b"bob"))?.is_swapped());
//! assert_eq!(owners.take("lock")?.as_deref(), Some(&b"bob"[..]));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Many at a time
//!
//! [`Keyspace::delete_range`](crate::Keyspace::delete_range) and
//! [`Keyspace::delete_prefix`](crate::Keyspace::delete_prefix) cost a put, whatever they remove.
//! [`Keyspace::ingest`](crate::Keyspace::ingest) brings sorted pairs in past the log, visible and
//! durable together.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let points = db.keyspace("points", Default::default())?;
//! points.ingest((0..1000u32).map(|number| (number.to_be_bytes(), "")))?;
//! points.delete_range(..900u32.to_be_bytes())?;
//! assert_eq!(points.count(..)?, 100);
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # When the database is behind
//!
//! A write waits where flushes or compactions are too far behind. With
//! [`WriteOptions::stall`](crate::WriteOptions::stall) it fails instead, or waits for a limited
//! time; then nothing was written, and [`Error::is_retryable`](crate::Error::is_retryable) is true.
