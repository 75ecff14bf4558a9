//! What has become of writes that went to the pool together.

use crate::failure::Failure;
use crate::values::{Entry, Found};
use crate::work::Answer;
use esker::FollowerLag;
use napi::Env;
use napi::bindgen_prelude::{JsObjectValue, JsValue, Object, ToNapiValue, Unknown};

/// What a write that succeeded says.
pub enum Outcome {
    /// No more than that.
    Done,
    /// Whether the key has a value.
    HasValue(bool),
    /// A value, or none.
    Value(Found),
    /// A key with its value, or none.
    Entry(Option<Entry>),
    /// Whether the value was swapped, and the one that is there if not.
    Swap(Option<Found>),
}

impl Answer for Outcome {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        match self {
            Outcome::Done => ().into_unknown(env),
            Outcome::HasValue(has_value) => has_value.into_unknown(env),
            Outcome::Value(found) => found.into_js(env),
            Outcome::Entry(entry) => entry.map_or_else(|| ().into_unknown(env), |entry| entry.into_js(env)),
            Outcome::Swap(unequal) => {
                let mut object = Object::new(env)?;
                object.set_named_property("swapped", unequal.is_none())?;
                if let Some(current) = unequal {
                    object.set_named_property("current", current.into_js(env)?)?;
                }
                Ok(object.to_unknown())
            }
        }
    }
}

/// How far a follower is behind its writer.
pub struct Lag(pub FollowerLag);

impl Answer for Option<Lag> {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let Some(Lag(lag)) = self else { return ().into_unknown(env) };
        let mut object = Object::new(env)?;
        object.set_named_property("batches", lag.batches as f64)?;
        object.set_named_property("logBytes", lag.log_bytes as f64)?;
        object.set_named_property("sequence", lag.sequence as f64)?;
        Ok(object.to_unknown())
    }
}

/// What has become of each of several writes.
pub struct Outcomes(pub Vec<Result<Outcome, Failure>>);

/// Nothing if all were done and say no more; otherwise an array with an error, or what it says, for
/// each.
impl Answer for Outcomes {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        if self.0.iter().all(|outcome| matches!(outcome, Ok(Outcome::Done))) {
            return ().into_unknown(env);
        }
        let mut array = env.create_array(self.0.len() as u32)?;
        for (index, outcome) in self.0.into_iter().enumerate() {
            match outcome {
                Ok(Outcome::Done) => {}
                Ok(outcome) => array.set(index as u32, outcome.into_js(env)?)?,
                Err(failure) => array.set(index as u32, failure.into_object(env)?)?,
            }
        }
        Ok(array.to_unknown())
    }
}
