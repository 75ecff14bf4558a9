//! The operations of a batch.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::values::{Input, bytes, duration};
use napi::Env;
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
pub fn commit(database: &OpenDatabase, operations: Vec<Operation>) -> Result<(), Failure> {
    let keyspace = &database.keyspace;
    let mut batch = database.db.batch();
    for operation in operations {
        match operation {
            Operation::Put { key, value, ttl: None } => batch.put(keyspace, key, value)?,
            Operation::Put { key, value, ttl: Some(ttl) } => batch.put_with_ttl(keyspace, key, value, ttl)?,
            Operation::Delete(key) => batch.delete(keyspace, key)?,
        }
    }
    Ok(batch.commit()?)
}
