//! Reads that go to the pool together. Each has a result of its own.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::values::{Format, Found, Input, bytes};
use crate::work::{Answer, guarded};
use napi::Env;
use napi::bindgen_prelude::{JsValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;

/// A read of a key.
struct Read {
    key: Vec<u8>,
    /// What its value becomes; without one, whether it has a value is what is asked.
    format: Option<Format>,
}

/// Reads in the order in which they were added.
#[napi]
#[derive(Default)]
pub struct Reads(Mutex<Vec<Read>>);

#[napi]
impl Reads {
    /// None yet.
    #[napi(constructor)]
    pub fn new() -> Reads {
        Reads::default()
    }

    /// Adds a get.
    #[napi]
    pub fn get(&self, key: Input<'_>, format: u32) {
        self.0.lock().push(Read { key: bytes(key), format: Some(Format::from(format)) });
    }

    /// Adds the question whether a key has a value.
    #[napi]
    pub fn has(&self, key: Input<'_>) {
        self.0.lock().push(Read { key: bytes(key), format: None });
    }
}

impl Reads {
    /// Makes all of them, and leaves none.
    pub fn take(&self) -> impl FnOnce(&OpenDatabase) -> Answers + Send + use<> {
        let reads = std::mem::take(&mut *self.0.lock());
        move |database| {
            // One by one: reads that need no common moment take no lock of the writers.
            let answer = |read: &Read| {
                let Some(format) = read.format else {
                    return Ok(OneAnswer::Has(database.keyspace.contains_key(&read.key)?));
                };
                let mut value = Vec::new();
                let is_found = database.keyspace.get_into(&read.key, &mut value)?;
                Ok(OneAnswer::Value(Found { value: is_found.then_some(value), format }))
            };
            // A failure of one of them says nothing about the others.
            Answers(reads.iter().map(|read| guarded(|| answer(read))).collect())
        }
    }
}

enum OneAnswer {
    Value(Found),
    Has(bool),
}

/// The answer to each of several reads.
pub struct Answers(Vec<Result<OneAnswer, Failure>>);

/// An array with a value, nothing, a boolean or an error for each.
impl Answer for Answers {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let mut array = env.create_array(self.0.len() as u32)?;
        for (index, answer) in self.0.into_iter().enumerate() {
            match answer {
                Ok(OneAnswer::Value(found)) => array.set(index as u32, found.into_js(env)?)?,
                Ok(OneAnswer::Has(has_value)) => array.set(index as u32, has_value)?,
                Err(failure) => array.set(index as u32, failure.into_object(env)?)?,
            }
        }
        Ok(array.to_unknown())
    }
}
