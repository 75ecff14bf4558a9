//! Readers of changes, which read ahead: each call to the pool returns many batches.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::values::{Format, milliseconds};
use crate::waits::{in_pieces, in_thread};
use crate::work::{Answer, Work, run};
use esker::{Change, ChangeBatch, ChangeOperation, KeyspaceSettings, Slice, Ttl};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, JsValue, Object, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What keys and values of changes become.
#[derive(Clone, Copy)]
pub struct Formats {
    /// What keys become.
    pub keys: Format,
    /// What values and operands become.
    pub values: Format,
}

/// A reader of changes until it is closed.
#[napi]
pub struct ChangeReader(Arc<Shared>);

struct Shared {
    database: Arc<OpenDatabase>,
    /// One call at a time has it, and a close waits for none.
    changes: Mutex<Option<esker::Changes>>,
    closed: AtomicBool,
    start_position: u64,
    formats: Formats,
}

impl Shared {
    /// Makes a call of the reader.
    fn with<T>(&self, call: impl FnOnce(&mut esker::Changes) -> esker::Result<T>) -> Result<T, Failure> {
        let result = {
            // A close has it for a moment too, behind the flag.
            let is_taken = || if self.is_closed() { Failure::changes_not_open() } else { Failure::changes_busy() };
            let mut held = self.changes.try_lock().ok_or_else(is_taken)?;
            match held.as_mut() {
                Some(changes) if !self.is_closed() => call(changes).map_err(|error| self.failure(error)),
                _ => Err(Failure::changes_not_open()),
            }
        };
        self.release_if_closed();
        result
    }

    /// The end of the reader, or of the database, is the reason of a failure, where it is one.
    fn failure(&self, error: esker::Error) -> Failure {
        if self.is_closed() { Failure::changes_not_open() } else { self.database.ended(error) }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Called after the flag was set, and after each call: one of the two finds the reader free.
    fn release_if_closed(&self) {
        if self.is_closed() {
            let released = self.changes.try_lock().and_then(|mut held| held.take());
            drop(released);
        }
    }
}

impl ChangeReader {
    /// An open one.
    pub fn new(database: Arc<OpenDatabase>, changes: esker::Changes, formats: Formats) -> ChangeReader {
        let start_position = changes.position();
        let (changes, closed) = (Mutex::new(Some(changes)), AtomicBool::new(false));
        ChangeReader(Arc::new(Shared { database, changes, closed, start_position, formats }))
    }
}

#[napi]
impl ChangeReader {
    /// The number that it begins with. Those after it come beside the batches.
    #[napi(getter)]
    pub fn start_position(&self) -> f64 {
        self.0.start_position as f64
    }

    /// The next committed batches: at most `size`, and, after the first, no more once `most_bytes`
    /// are reached. None if there are no more for now. An error comes after the batches before it.
    /// With them comes the number to go on from behind them.
    #[napi]
    pub fn nextv(&self, size: u32, most_bytes: f64) -> AsyncTask<Work<Batches>> {
        let shared = Arc::clone(&self.0);
        let call = shared.database.begin();
        run(move || {
            let _call = call?;
            let mut batches = Vec::new();
            let mut position = shared.with(|changes| Ok(esker::Changes::position(changes)))?;
            let mut bytes = 0;
            while batches.len() < size as usize && (batches.is_empty() || (bytes as f64) < most_bytes) {
                match shared.with(|changes| Ok((changes.next().transpose()?, esker::Changes::position(changes)))) {
                    Ok((Some(batch), behind)) => {
                        bytes += bytes_of(&batch);
                        batches.push(batch);
                        position = behind;
                    }
                    // It may have passed writes that are no changes.
                    Ok((None, behind)) => {
                        position = behind;
                        break;
                    }
                    Err(failure) if batches.is_empty() => return Err(failure),
                    // The next call meets it again.
                    Err(_) => break,
                }
            }
            Ok(Batches { batches, position, formats: shared.formats })
        })
    }

    /// Waits for a write, for at most so many milliseconds. Whether there may be more to read.
    #[napi]
    pub fn wait<'env>(&self, env: &'env Env, milliseconds: Option<f64>) -> napi::Result<Object<'env>> {
        let shared = Arc::clone(&self.0);
        in_thread(env, move || in_pieces(milliseconds, |piece| shared.with(|changes| changes.wait(piece))))
    }

    /// What a keyspace was behind a write.
    #[napi]
    pub fn keyspace_settings(&self, keyspace_id: f64, sequence: f64) -> AsyncTask<Work<FoundSettings>> {
        let shared = Arc::clone(&self.0);
        let call = shared.database.begin();
        run(move || {
            let _call = call?;
            let found = shared.with(|changes| changes.keyspace_settings(keyspace_id as u64, sequence as u64))?;
            Ok(FoundSettings(found))
        })
    }

    /// Ends it. A wait under way ends with its piece.
    #[napi]
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.release_if_closed();
    }
}

impl Drop for ChangeReader {
    /// Where JavaScript has it no more, a thread that waits must not have it either.
    fn drop(&mut self) {
        self.close();
    }
}

impl Answer for ChangeReader {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        self.into_unknown(env)
    }
}

/// The bytes of keys and values.
fn bytes_of(batch: &ChangeBatch) -> usize {
    let of_bound = |bound: &Bound<Slice>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.len(),
        Bound::Unbounded => 0,
    };
    let bytes = |change: &Change| match &change.operation {
        ChangeOperation::Put { key, value, .. } => key.len() + value.len(),
        ChangeOperation::Delete { key } => key.len(),
        ChangeOperation::Merge { key, operand, .. } => key.len() + operand.len(),
        ChangeOperation::DeleteRange { start, end } => of_bound(start) + of_bound(end),
        _ => 0,
    };
    batch.changes.iter().map(bytes).sum()
}

/// Batches that were read.
pub struct Batches {
    batches: Vec<ChangeBatch>,
    position: u64,
    formats: Formats,
}

impl Answer for Batches {
    /// An object of an array of arrays of changes, `batches`, and of the `position` behind them.
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let mut array = env.create_array(self.batches.len() as u32)?;
        for (index, batch) in self.batches.iter().enumerate() {
            let mut changes = env.create_array(batch.changes.len() as u32)?;
            for (place, change) in batch.changes.iter().enumerate() {
                changes.set(place as u32, object(env, change, self.formats)?)?;
            }
            array.set(index as u32, changes)?;
        }
        let mut object = Object::new(env)?;
        object.set("batches", array)?;
        object.set("position", self.position as f64)?;
        Ok(object.to_unknown())
    }
}

/// The object of a change, whose keys and values are yet to be decoded.
fn object<'env>(env: &'env Env, change: &Change, formats: Formats) -> napi::Result<Object<'env>> {
    let mut object = Object::new(env)?;
    object.set("sequence", change.sequence as f64)?;
    object.set("keyspace", &*change.keyspace)?;
    object.set("keyspaceId", change.keyspace_id as f64)?;
    let key_of = |key: &Slice| formats.keys.copy(env, key);
    let value_of = |value: &Slice| formats.values.copy(env, value);
    match &change.operation {
        ChangeOperation::Put { key, value, expiry } => {
            object.set("type", "put")?;
            object.set("key", key_of(key)?)?;
            object.set("value", value_of(value)?)?;
            object.set("expiresAt", milliseconds(*expiry))?;
        }
        ChangeOperation::Delete { key } => {
            object.set("type", "del")?;
            object.set("key", key_of(key)?)?;
        }
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            object.set("type", "merge")?;
            object.set("key", key_of(key)?)?;
            object.set("operand", value_of(operand)?)?;
            object.set("isFirst", *is_first)?;
            object.set("expiresAt", milliseconds(*expiry))?;
        }
        ChangeOperation::DeleteRange { start, end } => {
            object.set("type", "clear")?;
            for (included, excluded, bound) in [("gte", "gt", start), ("lte", "lt", end)] {
                match bound {
                    Bound::Included(key) => object.set(included, key_of(key)?)?,
                    Bound::Excluded(key) => object.set(excluded, key_of(key)?)?,
                    Bound::Unbounded => {}
                }
            }
        }
        ChangeOperation::Load => object.set("type", "load")?,
        ChangeOperation::DropKeyspace => object.set("type", "dropKeyspace")?,
        ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl } => {
            object.set("type", "alterKeyspace")?;
            object.set("formerName", &**former_name)?;
            set_settings(env, &mut object, merge_operator.as_deref(), *ttl)?;
        }
        _ => object.set("type", "other")?,
    }
    Ok(object)
}

/// A merge operator, and a time to live as the option `ttl` has it.
fn set_settings(env: &Env, object: &mut Object<'_>, merge_operator: Option<&str>, ttl: Ttl) -> napi::Result<()> {
    match merge_operator {
        Some(name) => object.set("mergeOperator", name)?,
        None => object.set("mergeOperator", ().into_unknown(env)?)?,
    }
    match ttl {
        Ttl::Enabled { default: Some(default) } => object.set("ttl", default.as_millis() as f64),
        Ttl::Enabled { default: None } => object.set("ttl", true),
        Ttl::Disabled => object.set("ttl", false),
    }
}

/// What a keyspace was, if it is known.
pub struct FoundSettings(Option<KeyspaceSettings>);

impl Answer for FoundSettings {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let Some(settings) = self.0 else { return ().into_unknown(env) };
        let mut object = Object::new(env)?;
        object.set("name", &*settings.name)?;
        object.set("comparator", &*settings.comparator)?;
        set_settings(env, &mut object, settings.merge_operator.as_deref(), settings.ttl)?;
        Ok(object.to_unknown())
    }
}
