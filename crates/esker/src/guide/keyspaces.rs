//! Databases and keyspaces.
//!
//! A [`Db`](crate::Db) is a directory. One handle at a time has it open for writing, in all
//! processes; another open is [`Error::Locked`](crate::Error::Locked). A handle is cheap to clone
//! and belongs to no thread.
//!
//! A database holds keyspaces: ordered maps from bytes to bytes, each with a name.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::{KeyspaceOptions, merge::UInt64Add};
//!
//! let names = db.keyspace("names", KeyspaceOptions::default())?;
//! let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
//! names.put("ada", "1815")?;
//! hits.merge("ada", 1u64.to_le_bytes())?;
//! assert_eq!(db.keyspaces(), ["hits", "names"]);
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! * [`Db::keyspace`](crate::Db::keyspace) opens a keyspace or creates it, and
//!   [`Db::existing_keyspace`](crate::Db::existing_keyspace) never creates one.
//! * Merge operator, time to live and comparator are stored when a keyspace is created. A later
//!   open with others is an error that names both; one that says nothing keeps what is stored.
//! * [`Db::drop_keyspace`](crate::Db::drop_keyspace) removes one with all that is in it, durably,
//!   and [`Keyspace::clear`](crate::Keyspace::clear) empties it as an ordinary write.
//! * All keyspaces share one log and one order of writes. So a batch over several is one write, and
//!   a snapshot is of all.
//!
//! # Keys
//!
//! Keys are ordered as unsigned bytes, shorter before longer. Numbers in keys are written
//! big-endian, so that the order of the bytes is that of the numbers.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let events = db.keyspace("events", Default::default())?;
//! for number in [300u32, 7, 70_000] {
//!     events.put(number.to_be_bytes(), "")?;
//! }
//! let last = events.last()?.expect("there are three");
//! assert_eq!(*last.0, 70_000u32.to_be_bytes());
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Types
//!
//! [`TypedKeyspace`](crate::TypedKeyspace) encodes keys and values by their types, keys so that
//! they are in the order of their values, tuples included. See [`typed`](crate::typed).
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::TypedKeyspace;
//!
//! // By customer and number: the price.
//! let orders: TypedKeyspace<(String, u32), u64> = TypedKeyspace::open(&db, "orders", Default::default())?;
//! orders.put(("ada", 12), 450)?;
//! orders.put(("ada", 7), 1200)?;
//! let numbers: Vec<u32> = orders.prefix(("ada",)).map(|pair| pair.map(|((_, number), _)| number)).collect::<Result<_, _>>()?;
//! assert_eq!(numbers, [7, 12]);
//! # Ok::<(), esker::Error>(())
//! ```
