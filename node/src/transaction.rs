//! Transactions.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::outcomes::Outcome;
use crate::range::{KeyRange, key_range};
use crate::values::{Entry, Format, Found, FoundMany, Input, bytes, duration, milliseconds, moment};
use crate::work::{Answer, Work, run};
use esker::{Keyspace, Slice};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, BufferSlice, JsObjectValue, JsValue, Object, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::sync::Arc;

/// A transaction until it is committed or rolled back. One call at a time uses it: the JavaScript
/// half makes them one after the other.
#[napi]
pub struct Transaction(Arc<Shared>);

struct Shared {
    database: Arc<OpenDatabase>,
    transaction: Mutex<Option<esker::Transaction>>,
    sequence: u64,
}

impl Transaction {
    /// One that has begun.
    pub fn new(database: Arc<OpenDatabase>, transaction: esker::Transaction) -> Transaction {
        let sequence = transaction.sequence();
        Transaction(Arc::new(Shared { database, transaction: Mutex::new(Some(transaction)), sequence }))
    }

    /// Ends it. Waits for no call under way, which is a mistake.
    pub fn end(&self) -> Result<esker::Transaction, Failure> {
        let mut held = self.0.transaction.try_lock().ok_or_else(Failure::transaction_busy)?;
        held.take().ok_or_else(Failure::transaction_not_open)
    }

    /// Makes a call of the transaction, in the pool.
    fn with<A: Answer>(
        &self,
        call: impl FnOnce(&mut esker::Transaction, &Keyspace) -> Result<A, Failure> + Send + 'static,
    ) -> AsyncTask<Work<A>> {
        let shared = Arc::clone(&self.0);
        let begun = shared.database.begin();
        run(move || {
            let begun = begun?;
            let mut held = shared.transaction.try_lock().ok_or_else(Failure::transaction_busy)?;
            let transaction = held.as_mut().ok_or_else(Failure::transaction_not_open)?;
            call(transaction, &begun.keyspace)
        })
    }

    /// A call whose arguments were refused: it fails in the pool, as others do.
    fn with_argument<T: Send + 'static, A: Answer>(
        &self,
        argument: Result<T, Failure>,
        call: impl FnOnce(&mut esker::Transaction, &Keyspace, T) -> Result<A, Failure> + Send + 'static,
    ) -> AsyncTask<Work<A>> {
        self.with(move |transaction, keyspace| call(transaction, keyspace, argument?))
    }
}

#[napi]
impl Transaction {
    /// The number of the last write that it sees.
    #[napi(getter)]
    pub fn sequence(&self) -> f64 {
        self.0.sequence as f64
    }

    /// The value of a key.
    #[napi]
    pub fn get(&self, key: Input<'_>, format: u32) -> AsyncTask<Work<Found>> {
        let (key, format) = (bytes(key), Format::from(format));
        self.with(move |transaction, keyspace| Ok(Found::new(transaction.get(keyspace, key)?, format)))
    }

    /// The values of keys.
    #[napi]
    pub fn get_many(&self, keys: Vec<Input<'_>>, format: u32) -> AsyncTask<Work<FoundMany>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes).collect();
        self.with(move |transaction, keyspace| {
            let copy = |value: Option<Slice>| value.map(|value| value.to_vec());
            let values: esker::Result<Vec<Option<Vec<u8>>>> =
                transaction.multi_get(keyspace, keys).into_iter().map(|value| Ok(copy(value?))).collect();
            Ok(FoundMany { values: values?, format: Format::from(format) })
        })
    }

    /// Whether a key has a value.
    #[napi]
    pub fn has(&self, key: Input<'_>) -> AsyncTask<Work<bool>> {
        let key = bytes(key);
        self.with(move |transaction, keyspace| Ok(transaction.contains_key(keyspace, key)?))
    }

    /// When the value of a key expires, in milliseconds of the wall clock, as for the database.
    #[napi]
    pub fn expires_at(&self, key: Input<'_>) -> AsyncTask<Work<Option<f64>>> {
        let key = bytes(key);
        self.with(move |transaction, keyspace| Ok(transaction.expires_at(keyspace, key)?.map(milliseconds)))
    }

    /// The number of keys of a range.
    #[napi]
    pub fn count(&self, lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) -> AsyncTask<Work<f64>> {
        let KeyRange { lower, upper, .. } = key_range(lower, upper, flags);
        self.with(move |transaction, keyspace| Ok(transaction.count(keyspace, (lower, upper))? as f64))
    }

    /// The first entries of a range: at most `size`, and, after the first, no more once `most_bytes`
    /// are reached.
    #[napi]
    #[allow(clippy::too_many_arguments)]
    pub fn entries(
        &self,
        lower: Option<Input<'_>>,
        upper: Option<Input<'_>>,
        flags: u32,
        key_format: u32,
        value_format: u32,
        size: u32,
        most_bytes: f64,
    ) -> AsyncTask<Work<Entries>> {
        let range = key_range(lower, upper, flags);
        let formats = (Format::from(key_format), Format::from(value_format));
        self.with(move |transaction, keyspace| {
            let mut scan = transaction.range(keyspace, (range.lower, range.upper));
            let (mut entries, mut bytes) = (Vec::new(), 0);
            while entries.len() < size as usize && (entries.is_empty() || (bytes as f64) < most_bytes) {
                let Some(entry) = (if range.reverse { scan.next_back() } else { scan.next() }) else {
                    return Ok(Entries { entries, is_end: true });
                };
                let entry = Entry::new(entry?, formats.0, formats.1);
                bytes += entry.bytes();
                entries.push(entry);
            }
            Ok(Entries { entries, is_end: false })
        })
    }

    /// Sets the value of a key, perhaps with a time to live.
    #[napi]
    pub fn put(&self, key: Input<'_>, value: Input<'_>, ttl: Option<f64>) -> AsyncTask<Work<()>> {
        let (key, value) = (bytes(key), bytes(value));
        self.with_argument(ttl.map(duration).transpose(), move |transaction, keyspace, ttl| {
            match ttl {
                Some(ttl) => transaction.put_with_ttl(keyspace, key, value, ttl)?,
                None => transaction.put(keyspace, key, value)?,
            }
            Ok(())
        })
    }

    /// Deletes a key.
    #[napi]
    pub fn del(&self, key: Input<'_>) -> AsyncTask<Work<()>> {
        let key = bytes(key);
        self.with(move |transaction, keyspace| Ok(transaction.delete(keyspace, key)?))
    }

    /// Merges an operand, perhaps with a time to live.
    #[napi]
    pub fn merge(&self, key: Input<'_>, operand: Input<'_>, ttl: Option<f64>) -> AsyncTask<Work<()>> {
        let (key, operand) = (bytes(key), bytes(operand));
        self.with_argument(ttl.map(duration).transpose(), move |transaction, keyspace, ttl| {
            match ttl {
                Some(ttl) => transaction.merge_with_ttl(keyspace, key, operand, ttl)?,
                None => transaction.merge(keyspace, key, operand)?,
            }
            Ok(())
        })
    }

    /// Deletes a range.
    #[napi]
    pub fn clear(&self, lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) -> AsyncTask<Work<()>> {
        let KeyRange { lower, upper, .. } = key_range(lower, upper, flags);
        self.with(move |transaction, keyspace| Ok(transaction.delete_range(keyspace, (lower, upper))?))
    }

    /// Deletes the least key: that key with its value.
    #[napi]
    pub fn pop_first(&self, key_format: u32, value_format: u32) -> AsyncTask<Work<Outcome>> {
        let (key_format, value_format) = (Format::from(key_format), Format::from(value_format));
        self.with(move |transaction, keyspace| {
            let entry = transaction.pop_first(keyspace)?;
            Ok(Outcome::Entry(entry.map(|entry| Entry::new(entry, key_format, value_format))))
        })
    }

    /// Makes the value of a key live for so long from the commit on.
    #[napi]
    pub fn touch(&self, key: Input<'_>, ttl: f64) -> AsyncTask<Work<()>> {
        let key = bytes(key);
        self.with_argument(duration(ttl), move |transaction, keyspace, ttl| Ok(transaction.touch(keyspace, key, ttl)?))
    }

    /// Makes the value of a key expire at a time.
    #[napi]
    pub fn expire_at(&self, key: Input<'_>, at: f64) -> AsyncTask<Work<()>> {
        let key = bytes(key);
        self.with_argument(moment(at), move |transaction, keyspace, at| {
            match at {
                Some(at) => transaction.expire_at(keyspace, key, at)?,
                None => transaction.persist(keyspace, key)?,
            }
            Ok(())
        })
    }

    /// Makes the value of a key live for good.
    #[napi]
    pub fn persist(&self, key: Input<'_>) -> AsyncTask<Work<()>> {
        let key = bytes(key);
        self.with(move |transaction, keyspace| Ok(transaction.persist(keyspace, key)?))
    }

    /// Ends it without writing; nothing if it has ended.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let shared = Arc::clone(&self.0);
        run(move || {
            let ended = shared.transaction.lock().take();
            ended.map_or(Ok(()), |transaction| {
                transaction.rollback();
                Ok(())
            })
        })
    }
}

impl Answer for Transaction {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        self.into_unknown(env)
    }
}

/// Entries, and whether there are no more.
pub struct Entries {
    entries: Vec<Entry>,
    is_end: bool,
}

/// An object with an array of arrays of two, and the bytes of the last key where there are more.
impl Answer for Entries {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let mut object = Object::new(env)?;
        if let (false, Some(last)) = (self.is_end, self.entries.last()) {
            object.set_named_property("last", BufferSlice::copy_from(env, last.key())?)?;
        }
        let mut array = env.create_array(self.entries.len() as u32)?;
        for (index, entry) in self.entries.into_iter().enumerate() {
            array.set(index as u32, entry.into_js(env)?)?;
        }
        object.set_named_property("entries", array)?;
        Ok(object.to_unknown())
    }
}
