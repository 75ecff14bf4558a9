//! Writes that go to the pool together, and take effect there one after the other.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::operations::{Operation, Operations, commit};
use crate::range::{KeyRange, key_range};
use crate::snapshot::{Snapshot, reader};
use crate::values::{Input, bytes, duration};
use crate::work::{Answer, guarded};
use esker::WriteOptions;
use napi::Env;
use napi::bindgen_prelude::{JsValue, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::time::Duration;

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
    Persist(Vec<u8>),
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
            Write::Persist(key) => return Ok(Outcome::HasValue(keyspace.persist(key)?)),
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

/// What a write that succeeded says.
enum Outcome {
    Done,
    /// Whether the key has a value.
    HasValue(bool),
}

/// What has become of each of several writes.
pub struct Outcomes(Vec<Result<Outcome, Failure>>);

/// Nothing if all were done and say no more; otherwise an array with an error, a boolean or nothing
/// for each.
impl Answer for Outcomes {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        if self.0.iter().all(|outcome| matches!(outcome, Ok(Outcome::Done))) {
            return ().into_unknown(env);
        }
        let mut array = env.create_array(self.0.len() as u32)?;
        for (index, outcome) in self.0.into_iter().enumerate() {
            match outcome {
                Ok(Outcome::Done) => {}
                Ok(Outcome::HasValue(has_value)) => array.set(index as u32, has_value)?,
                Err(failure) => array.set(index as u32, failure.into_object(env)?)?,
            }
        }
        Ok(array.to_unknown())
    }
}
