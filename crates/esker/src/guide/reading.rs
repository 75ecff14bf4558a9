//! Reading.
//!
//! [`Keyspace::get`](crate::Keyspace::get) returns a [`Slice`](crate::Slice) or nothing, and takes
//! no lock. [`Keyspace::multi_get`](crate::Keyspace::multi_get) is a get for many keys of one
//! moment; [`Keyspace::get_into`](crate::Keyspace::get_into) writes into a buffer of the caller.
//!
//! # In order
//!
//! Iterators yield pairs in the order of the keys, from both ends. They see the moment at which
//! they were made.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let names = db.keyspace("names", Default::default())?;
//! for (name, year) in [("ada", "1815"), ("alan", "1912"), ("grace", "1906")] {
//!     names.put(name, year)?;
//! }
//! let keys = |pairs: esker::Iter| pairs.map(|pair| pair.map(|(key, _)| String::from_utf8_lossy(&key).into_owned()));
//!
//! assert_eq!(keys(names.iter()).collect::<Result<Vec<_>, _>>()?, ["ada", "alan", "grace"]);
//! assert_eq!(keys(names.prefix("a")).collect::<Result<Vec<_>, _>>()?, ["ada", "alan"]);
//! assert_eq!(keys(names.range("alan"..)).collect::<Result<Vec<_>, _>>()?, ["alan", "grace"]);
//! let newest_first: Vec<_> = names.iter().rev().take(1).collect::<Result<_, _>>()?;
//! assert_eq!(&*newest_first[0].0, b"grace");
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! Every item is a `Result`: a damaged block is an error at its place.
//! [`Iter::keys`](crate::Iter::keys) leaves the values out, and large ones are not read then.
//!
//! # A position
//!
//! A [`Cursor`](crate::Cursor) moves both ways and lends the pair at its place, without a copy.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let names = db.keyspace("names", Default::default())?;
//! names.put("ada", "1815")?;
//! names.put("grace", "1906")?;
//! let mut cursor = names.cursor()?;
//! cursor.seek("b")?; // the first key at or after it
//! assert_eq!((cursor.key(), cursor.value()), (&b"grace"[..], &b"1906"[..]));
//! cursor.prev()?;
//! assert_eq!(cursor.key(), b"ada");
//! cursor.prev()?;
//! assert!(!cursor.valid());
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # One moment
//!
//! A [`Snapshot`](crate::Snapshot) is all keyspaces at one moment, for as long as it lives. It
//! keeps what it sees on the disk: end it when it is done.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let names = db.keyspace("names", Default::default())?;
//! names.put("ada", "1815")?;
//! let snapshot = db.snapshot();
//! names.clear()?;
//! assert_eq!((snapshot.count(&names, ..)?, names.count(..)?), (1, 0));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Beside the writer
//!
//! [`Db::open_read_only`](crate::Db::open_read_only) reads a database that another process writes,
//! as of the open. [`Follower`](crate::Follower) does so and moves on:
//! [`Follower::catch_up`](crate::Follower::catch_up) brings it to the writer's last write.
