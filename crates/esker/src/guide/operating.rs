//! Errors, figures, copies, damage.
//!
//! # Errors
//!
//! An [`Error`](crate::Error) says what was wrong, where, and what helps.
//!
//! ```
//! use esker::{Db, Error, Options};
//! # let env = std::sync::Arc::new(esker::env::mem::MemEnv::new());
//! let options = Options::default().env(env).create_if_missing(false);
//! match Db::open("data", options) {
//!     Err(Error::NotFound { .. }) => println!("there is no database yet"),
//!     Err(error) if error.is_retryable() => println!("later: {error}"),
//!     Err(error) => return Err(error),
//!     Ok(db) => db.close()?,
//! }
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Figures
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::PrometheusText;
//!
//! assert!(db.health().writable);
//! println!("{} bytes of tables", db.stats().table_bytes);
//! println!("{}", db.explain()); // every option, its value, and why
//! let mut scrape = PrometheusText::new();
//! db.record(&mut scrape);
//! assert!(scrape.to_string().contains("esker_health_writable 1"));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! [`EventListener`](crate::EventListener) is told about flushes, compactions, stalls and failures.
//!
//! # Copies
//!
//! [`Db::checkpoint`](crate::Db::checkpoint) makes a copy of one moment that opens as a database,
//! beside writes. The crate `esker-backup` copies to another place, and only what is new there.
//!
//! ```
//! use esker::{Db, Options};
//! # let options = Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
//! let db = Db::open("data", options.clone())?;
//! db.keyspace("names", Default::default())?.put("ada", "1815")?;
//! db.checkpoint("copy")?;
//! let copy = Db::open("copy", options)?;
//! assert!(copy.existing_keyspace("names")?.contains_key("ada")?);
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Damage
//!
//! Every block and record has a checksum. [`Db::verify`](crate::Db::verify) reads everything;
//! [`Db::repair`](crate::Db::repair) makes a damaged database open with what can be read, and says
//! what is lost. A backup is better.
