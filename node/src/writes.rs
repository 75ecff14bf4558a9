//! Writes that go to the pool together, and take effect there one after the other.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::operations::{Operation, Operations, commit};
use crate::outcomes::{Outcome, Outcomes};
use crate::range::{KeyRange, key_range};
use crate::snapshot::{Snapshot, reader};
use crate::transaction::Transaction;
use crate::values::{Entry, Format, Found, Input, bytes, duration, moment};
use crate::work::guarded;
use esker::{CompareAndSwap, WriteOptions};
use napi::Env;
use napi_derive::napi;
use parking_lot::Mutex;
use std::time::{Duration, SystemTime};

/// Deletes of one batch, where a range is cleared key by key.
const DELETES_OF_A_BATCH: usize = 4096;

/// A write.
enum Write {
    /// A put or a delete.
    Single(Operation),
    Merge {
        key: Vec<u8>,
        operand: Vec<u8>,
        ttl: Option<Duration>,
    },
    /// Operations that take effect together.
    Batch(Vec<Operation>),
    /// A delete of a range, as one.
    Clear(KeyRange),
    /// Deletes of the first keys of a range, in batches.
    ClearKeys {
        range: KeyRange,
        limit: f64,
        /// Whose keys; without one, those that are there when the turn of the write has come.
        snapshot: Option<esker::Snapshot>,
    },
    Touch {
        key: Vec<u8>,
        ttl: Duration,
    },
    ExpireAt {
        key: Vec<u8>,
        at: SystemTime,
    },
    Persist(Vec<u8>),
    PutIfAbsent {
        key: Vec<u8>,
        value: Vec<u8>,
        ttl: Option<Duration>,
        /// What the value that is returned becomes.
        format: Format,
    },
    CompareAndSwap {
        key: Vec<u8>,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
        ttl: Option<Duration>,
        format: Format,
    },
    MergeAndGet {
        key: Vec<u8>,
        operand: Vec<u8>,
        ttl: Option<Duration>,
        format: Format,
    },
    Take {
        key: Vec<u8>,
        format: Format,
    },
    PopFirst {
        key_format: Format,
        value_format: Format,
    },
    /// All that a transaction has written.
    Commit(Box<esker::Transaction>),
}

/// Writes in the order in which they were added.
#[napi]
#[derive(Default)]
pub struct Writes(Mutex<Vec<Write>>);

#[napi]
impl Writes {
    /// None yet.
    #[napi(constructor)]
    pub fn new() -> Writes {
        Writes::default()
    }

    /// Adds a put.
    #[napi]
    pub fn put(&self, env: &Env, key: Input<'_>, value: Input<'_>, ttl: Option<f64>) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.add(Write::Single(Operation::Put { key: bytes(key), value: bytes(value), ttl }));
        Ok(())
    }

    /// Adds a delete.
    #[napi]
    pub fn del(&self, key: Input<'_>) {
        self.add(Write::Single(Operation::Delete(bytes(key))));
    }

    /// Adds a merge.
    #[napi]
    pub fn merge(&self, env: &Env, key: Input<'_>, operand: Input<'_>, ttl: Option<f64>) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.add(Write::Merge { key: bytes(key), operand: bytes(operand), ttl });
        Ok(())
    }

    /// Adds a batch of operations, and leaves none of them.
    #[napi]
    pub fn batch(&self, operations: &Operations) {
        self.add(Write::Batch(operations.take()));
    }

    /// Adds a delete of a range.
    #[napi]
    pub fn clear(&self, lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) {
        self.add(Write::Clear(key_range(lower, upper, flags)));
    }

    /// Adds deletes of the first `limit` keys of a range, those of a snapshot if one is given. A
    /// negative limit is none.
    #[napi]
    pub fn clear_keys(
        &self,
        env: &Env,
        lower: Option<Input<'_>>,
        upper: Option<Input<'_>>,
        flags: u32,
        limit: f64,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<()> {
        let snapshot = reader(snapshot).map_err(|failure| failure.into_error(env))?;
        self.add(Write::ClearKeys { range: key_range(lower, upper, flags), limit, snapshot });
        Ok(())
    }

    /// Adds a change of how long the value of a key lives.
    #[napi]
    pub fn touch(&self, env: &Env, key: Input<'_>, ttl: f64) -> napi::Result<()> {
        let ttl = duration(ttl).map_err(|failure| failure.into_error(env))?;
        self.add(Write::Touch { key: bytes(key), ttl });
        Ok(())
    }

    /// Adds a change of when the value of a key expires, in milliseconds since 1970, or infinite for
    /// never.
    #[napi]
    pub fn expire_at(&self, env: &Env, key: Input<'_>, at: f64) -> napi::Result<()> {
        let (key, at) = (bytes(key), moment(at).map_err(|failure| failure.into_error(env))?);
        self.add(match at {
            Some(at) => Write::ExpireAt { key, at },
            None => Write::Persist(key),
        });
        Ok(())
    }

    /// Adds a put for a key that has no value: the outcome is the value that it has.
    #[napi]
    pub fn put_if_absent(
        &self,
        env: &Env,
        key: Input<'_>,
        value: Input<'_>,
        ttl: Option<f64>,
        format: u32,
    ) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.add(Write::PutIfAbsent { key: bytes(key), value: bytes(value), ttl, format: Format::from(format) });
        Ok(())
    }

    /// Adds a put, or a delete without a value, for a key that has the expected value, or none.
    #[napi]
    pub fn compare_and_swap(
        &self,
        env: &Env,
        key: Input<'_>,
        expected: Option<Input<'_>>,
        value: Option<Input<'_>>,
        ttl: Option<f64>,
        format: u32,
    ) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        let (key, expected, value) = (bytes(key), expected.map(bytes), value.map(bytes));
        self.add(Write::CompareAndSwap { key, expected, value, ttl, format: Format::from(format) });
        Ok(())
    }

    /// Adds a merge whose outcome is the value behind it.
    #[napi]
    pub fn merge_and_get(
        &self,
        env: &Env,
        key: Input<'_>,
        operand: Input<'_>,
        ttl: Option<f64>,
        format: u32,
    ) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.add(Write::MergeAndGet { key: bytes(key), operand: bytes(operand), ttl, format: Format::from(format) });
        Ok(())
    }

    /// Adds a delete whose outcome is the value before it.
    #[napi]
    pub fn take_value(&self, key: Input<'_>, format: u32) {
        self.add(Write::Take { key: bytes(key), format: Format::from(format) });
    }

    /// Adds a delete of the least key, whose outcome is that key with its value.
    #[napi]
    pub fn pop_first(&self, key_format: u32, value_format: u32) {
        let (key_format, value_format) = (Format::from(key_format), Format::from(value_format));
        self.add(Write::PopFirst { key_format, value_format });
    }

    /// Adds the commit of a transaction, which ends here.
    #[napi]
    pub fn commit(&self, env: &Env, transaction: &Transaction) -> napi::Result<()> {
        let transaction = transaction.end().map_err(|failure| failure.into_error(env))?;
        self.add(Write::Commit(Box::new(transaction)));
        Ok(())
    }

    /// Adds that the value of a key lives for good.
    #[napi]
    pub fn persist(&self, key: Input<'_>) {
        self.add(Write::Persist(bytes(key)));
    }
}

impl Writes {
    fn add(&self, write: Write) {
        self.0.lock().push(write);
    }

    /// Makes all of them, each by itself, and leaves none.
    pub fn take(&self) -> impl FnOnce(&OpenDatabase) -> Outcomes + Send + use<> {
        let writes = std::mem::take(&mut *self.0.lock());
        // A panic in one of them says nothing about the others.
        move |database| Outcomes(writes.into_iter().map(|write| guarded(|| write.make(database))).collect())
    }
}

impl Write {
    fn make(self, database: &OpenDatabase) -> Result<Outcome, Failure> {
        let keyspace = &database.keyspace;
        match self {
            Write::Single(Operation::Put { key, value, ttl }) => keyspace.put_with(key, value, &living(ttl))?,
            Write::Single(Operation::Delete(key)) => keyspace.delete(key)?,
            Write::Merge { key, operand, ttl } => keyspace.merge_with(key, operand, &living(ttl))?,
            Write::Batch(operations) => commit(database, operations)?,
            Write::Clear(range) => keyspace.delete_range((range.lower, range.upper))?,
            Write::ClearKeys { range, limit, snapshot } => {
                let snapshot = snapshot.unwrap_or_else(|| database.db.snapshot());
                clear_keys(database, &snapshot, range, limit)?;
            }
            Write::Touch { key, ttl } => return Ok(Outcome::HasValue(keyspace.touch(key, ttl)?)),
            Write::ExpireAt { key, at } => return Ok(Outcome::HasValue(keyspace.expire_at(key, at)?)),
            Write::Persist(key) => return Ok(Outcome::HasValue(keyspace.persist(key)?)),
            Write::PutIfAbsent { key, value, ttl, format } => {
                let existing = keyspace.put_if_absent_with(key, value, &living(ttl))?;
                return Ok(Outcome::Value(Found::new(existing, format)));
            }
            Write::CompareAndSwap { key, expected, value, ttl, format } => {
                let (expected, value) = (expected.as_deref(), value.as_deref());
                return Ok(Outcome::Swap(
                    match keyspace.compare_and_swap_with(key, expected, value, &living(ttl))? {
                        CompareAndSwap::Swapped => None,
                        CompareAndSwap::Unequal { current } => Some(Found::new(current, format)),
                    },
                ));
            }
            Write::MergeAndGet { key, operand, ttl, format } => {
                let value = keyspace.merge_and_get_with(key, operand, &living(ttl))?;
                return Ok(Outcome::Value(Found::new(value, format)));
            }
            Write::Take { key, format } => return Ok(Outcome::Value(Found::new(keyspace.take(key)?, format))),
            Write::PopFirst { key_format, value_format } => {
                let entry = keyspace.pop_first()?;
                return Ok(Outcome::Entry(entry.map(|entry| Entry::new(entry, key_format, value_format))));
            }
            Write::Commit(transaction) => transaction.commit()?,
        }
        Ok(Outcome::Done)
    }
}

fn living(ttl: Option<Duration>) -> WriteOptions {
    ttl.map_or_else(WriteOptions::new, |ttl| WriteOptions::new().ttl(ttl))
}

fn clear_keys(database: &OpenDatabase, snapshot: &esker::Snapshot, range: KeyRange, limit: f64) -> Result<(), Failure> {
    let mut keys = snapshot.range(&database.keyspace, (range.lower, range.upper)).keys();
    let mut batch = database.db.batch();
    let mut left = if limit >= 0.0 { limit as u64 } else { u64::MAX };
    while left > 0 {
        let key = if range.reverse { keys.next_back() } else { keys.next() };
        let Some(key) = key else { break };
        batch.delete(&database.keyspace, key?)?;
        left -= 1;
        if batch.len() == DELETES_OF_A_BATCH {
            batch.commit_and_clear(&WriteOptions::new())?;
        }
    }
    Ok(batch.commit()?)
}
