//! Operations that are written together: those of a batch, and single ones of the same time.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::values::{Input, bytes, duration};
use crate::work::Answer;
use esker::WriteOptions;
use napi::Env;
use napi::bindgen_prelude::{JsValue, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::time::Duration;

/// An operation.
pub enum Operation {
    /// A put, perhaps with a time to live.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// How long it lives.
        ttl: Option<Duration>,
    },
    /// A merge, perhaps with a time to live.
    Merge {
        /// The key.
        key: Vec<u8>,
        /// The operand.
        operand: Vec<u8>,
        /// How long the value lives.
        ttl: Option<Duration>,
    },
    /// A delete of a key.
    Delete(Vec<u8>),
}

/// Operations in the order in which they were added. They are the engine's batch only in the pool:
/// adding a large value to that writes a file.
#[napi]
#[derive(Default)]
pub struct Operations(Mutex<Vec<Operation>>);

#[napi]
impl Operations {
    /// None yet.
    #[napi(constructor)]
    pub fn new() -> Operations {
        Operations::default()
    }

    /// Adds a put.
    #[napi]
    pub fn put(&self, env: &Env, key: Input<'_>, value: Input<'_>, ttl: Option<f64>) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.0.lock().push(Operation::Put { key: bytes(key), value: bytes(value), ttl });
        Ok(())
    }

    /// Adds a merge.
    #[napi]
    pub fn merge(&self, env: &Env, key: Input<'_>, operand: Input<'_>, ttl: Option<f64>) -> napi::Result<()> {
        let ttl = ttl.map(duration).transpose().map_err(|failure| failure.into_error(env))?;
        self.0.lock().push(Operation::Merge { key: bytes(key), operand: bytes(operand), ttl });
        Ok(())
    }

    /// Adds a delete.
    #[napi]
    pub fn del(&self, key: Input<'_>) {
        self.0.lock().push(Operation::Delete(bytes(key)));
    }

    /// Forgets all.
    #[napi]
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

impl Operations {
    /// All, which are forgotten here.
    pub fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Writes the operations as one.
pub fn commit(database: &OpenDatabase, operations: Vec<Operation>, options: &WriteOptions) -> Result<(), Failure> {
    let keyspace = &database.keyspace;
    let mut batch = database.db.batch();
    for operation in operations {
        match operation {
            Operation::Put { key, value, ttl: None } => batch.put(keyspace, key, value)?,
            Operation::Put { key, value, ttl: Some(ttl) } => batch.put_with_ttl(keyspace, key, value, ttl)?,
            Operation::Merge { key, operand, ttl: None } => batch.merge(keyspace, key, operand)?,
            Operation::Merge { key, operand, ttl: Some(ttl) } => batch.merge_with_ttl(keyspace, key, operand, ttl)?,
            Operation::Delete(key) => batch.delete(keyspace, key)?,
        }
    }
    Ok(batch.commit_with(options)?)
}

/// Writes each operation by itself, in their order, and then syncs the log once if that is wanted.
pub fn write_each(database: &OpenDatabase, operations: Vec<Operation>, sync: bool) -> Failures {
    let keyspace = &database.keyspace;
    let write = |operation| match operation {
        Operation::Put { key, value, ttl } => keyspace.put_with(key, value, &living(ttl)),
        Operation::Merge { key, operand, ttl } => keyspace.merge_with(key, operand, &living(ttl)),
        Operation::Delete(key) => keyspace.delete(key),
    };
    let mut results: Vec<_> = operations.into_iter().map(|operation| write(operation).map_err(Failure::from)).collect();
    if sync
        && results.iter().any(Result::is_ok)
        && let Err(error) = database.db.sync()
    {
        let failure = Failure::from(error);
        results.iter_mut().filter(|result| result.is_ok()).for_each(|result| *result = Err(failure.clone()));
    }
    Failures(results)
}

fn living(ttl: Option<Duration>) -> WriteOptions {
    ttl.map_or_else(WriteOptions::new, |ttl| WriteOptions::new().ttl(ttl))
}

/// What has become of each of several operations.
pub struct Failures(Vec<Result<(), Failure>>);

/// Nothing if all succeeded; otherwise an array with an error, or nothing, for each.
impl Answer for Failures {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        if self.0.iter().all(Result::is_ok) {
            return ().into_unknown(env);
        }
        let mut array = env.create_array(self.0.len() as u32)?;
        for (index, result) in self.0.into_iter().enumerate() {
            if let Err(failure) = result {
                array.set(index as u32, failure.into_object(env)?)?;
            }
        }
        Ok(array.to_unknown())
    }
}
