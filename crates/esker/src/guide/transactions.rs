//! Transactions.
//!
//! A [`Transaction`](crate::Transaction) sees the database as it was when it began, with its own
//! writes on top. Its commit is one atomic write, or fails with
//! [`Error::Conflict`](crate::Error::Conflict) if another writer has written since to what it read
//! or writes: to a key, present or absent, or to a place in a range that it scanned. So committed
//! transactions have the effect that they would have one after the other.
//!
//! [`Db::transact`](crate::Db::transact) runs a body, commits, and runs it again after a conflict.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! let accounts = db.keyspace("accounts", Default::default())?;
//! accounts.put("ada", "100")?;
//! accounts.put("bob", "20")?;
//! let number = |value: Option<esker::Slice>| -> i64 {
//!     value.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok()).unwrap_or(0)
//! };
//!
//! db.transact(10, |transaction| -> esker::Result<()> {
//!     let ada = number(transaction.get(&accounts, "ada")?);
//!     let bob = number(transaction.get(&accounts, "bob")?);
//!     transaction.put(&accounts, "ada", (ada - 30).to_string())?;
//!     transaction.put(&accounts, "bob", (bob + 30).to_string())
//! })?;
//! assert_eq!((number(accounts.get("ada")?), number(accounts.get("bob")?)), (70, 50));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! By itself, a transaction says at its commit whether it came in time:
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::Error;
//!
//! let names = db.keyspace("names", Default::default())?;
//! let mut transaction = db.transaction();
//! assert!(transaction.get(&names, "ada")?.is_none());
//! names.put("ada", "1815")?; // another writer
//! transaction.put(&names, "ada", "unknown")?;
//! assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! * No lock is held: a transaction never waits for another one, and one that is dropped has done
//!   nothing.
//! * It covers what was read through it. Reads through other handles are unknown to it.
//! * Short ones conflict seldom. Where all change the same key, a [merge](super::merging) does not
//!   conflict.
//! * A transaction keeps what it sees, as a snapshot does.
//! * [`Transaction::commit_with`](crate::Transaction::commit_with) takes
//!   [`WriteOptions`](crate::WriteOptions), `sync` among them.
