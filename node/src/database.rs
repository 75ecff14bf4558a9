//! The database.

use crate::database_state::{Call, DatabaseState, OpenDatabase};
use crate::entry_iterator::{EntryIterator, KeyRange, Parts};
use crate::failure::Failure;
use crate::operations::{Failures, Operations, commit, write_each};
use crate::options::OpenOptions;
use crate::snapshot::{Snapshot, reader};
use crate::values::{Format, Found, FoundMany, Input, bound, bytes, duration};
use crate::work::{Answer, Work, guarded, run};
use esker::{Db, Expiry, Options, WriteOptions};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Unknown};
use napi_derive::napi;
use std::ops::Bound;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Deletes of one batch, where a range is cleared key by key.
const DELETES_OF_A_BATCH: usize = 4096;

/// The flags of a range.
const LOWER_EXCLUSIVE: u32 = 1;
const UPPER_EXCLUSIVE: u32 = 2;
const REVERSE: u32 = 4;
/// Of an iterator: keys, values are wanted.
const KEYS: u32 = 8;
const VALUES: u32 = 16;

/// A database, open or not. Its calls are made in the pool, but for those whose name ends in
/// `Sync`, and those that make iterators and snapshots, whose moment is that of the call.
#[napi]
#[derive(Default)]
pub struct Database {
    state: Arc<DatabaseState>,
}

#[napi]
impl Database {
    /// Not open.
    #[napi(constructor)]
    pub fn new() -> Database {
        Database::default()
    }

    /// Opens it.
    #[napi]
    pub fn open(&self, options: OpenOptions) -> AsyncTask<Work<()>> {
        let state = Arc::clone(&self.state);
        run(move || {
            if state.is_open() {
                return Err(Failure::invalid("the database is open already"));
            }
            state.opened(OpenDatabase::new(options.open()?));
            Ok(())
        })
    }

    /// Closes it after the calls under way; nothing if it is not open.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let closing = self.state.closing();
        run(move || closing.map_or(Ok(()), |database| database.close()))
    }

    /// The value of a key.
    #[napi]
    pub fn get(&self, key: Input<'_>, format: u32, snapshot: Option<&Snapshot>) -> AsyncTask<Work<Found>> {
        let (key, format) = (bytes(key), Format::from(format));
        let begun = self.begin_read(snapshot);
        run(move || begun.and_then(|(call, snapshot)| get(&call, snapshot.as_ref(), &key, format)))
    }

    /// As `get`, on this thread.
    #[napi]
    pub fn get_sync<'env>(
        &self,
        env: &'env Env,
        key: Input<'_>,
        format: u32,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<Unknown<'env>> {
        let begun = self.begin_read(snapshot);
        let found = guarded(|| {
            let (call, snapshot) = begun?;
            get(&call, snapshot.as_ref(), &bytes(key), Format::from(format))
        });
        found.map_err(|failure| failure.into_error(env))?.into_js(env)
    }

    /// The values of keys, all of one moment.
    #[napi]
    pub fn get_many(
        &self,
        keys: Vec<Input<'_>>,
        format: u32,
        snapshot: Option<&Snapshot>,
    ) -> AsyncTask<Work<FoundMany>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes).collect();
        let begun = self.begin_read(snapshot);
        run(move || {
            let (call, snapshot) = begun?;
            let values = match snapshot {
                Some(snapshot) => snapshot.multi_get(&call.keyspace, keys)?,
                None => call.keyspace.multi_get(keys),
            };
            // Copied here, in the pool: the bytes may be those of a mapped file.
            let values: esker::Result<Vec<Option<Vec<u8>>>> =
                values.into_iter().map(|value| Ok(value?.map(|value| value.to_vec()))).collect();
            Ok(FoundMany { values: values?, format: Format::from(format) })
        })
    }

    /// Whether a key has a value.
    #[napi]
    pub fn has(&self, key: Input<'_>, snapshot: Option<&Snapshot>) -> AsyncTask<Work<bool>> {
        let key = bytes(key);
        let begun = self.begin_read(snapshot);
        run(move || {
            let (call, snapshot) = begun?;
            has(&call, snapshot.as_ref(), &key)
        })
    }

    /// Whether keys have values, all of one moment.
    #[napi]
    pub fn has_many(&self, keys: Vec<Input<'_>>, snapshot: Option<&Snapshot>) -> AsyncTask<Work<Vec<bool>>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes).collect();
        let begun = self.begin_read(snapshot);
        run(move || {
            let (call, snapshot) = begun?;
            let snapshot = snapshot.unwrap_or_else(|| call.db.snapshot());
            keys.iter().map(|key| has(&call, Some(&snapshot), key)).collect()
        })
    }

    /// When the value of a key expires, in milliseconds of the wall clock: infinite if never, none
    /// if it has no value.
    #[napi]
    pub fn expires_at(&self, key: Input<'_>, snapshot: Option<&Snapshot>) -> AsyncTask<Work<Option<f64>>> {
        let key = bytes(key);
        let begun = self.begin_read(snapshot);
        run(move || {
            let (call, snapshot) = begun?;
            let expiry = match snapshot {
                Some(snapshot) => snapshot.expires_at(&call.keyspace, key)?,
                None => call.keyspace.expires_at(key)?,
            };
            Ok(expiry.map(|expiry| match expiry {
                Expiry::At(time) => time.duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_millis() as f64),
                _ => f64::INFINITY,
            }))
        })
    }

    /// Writes operations as one, and leaves none.
    #[napi]
    pub fn write(&self, operations: &Operations, sync: bool) -> AsyncTask<Work<()>> {
        let operations = operations.take();
        let call = self.state.begin();
        run(move || commit(&*call?, operations, &WriteOptions::new().sync(sync)))
    }

    /// Writes each operation by itself, in their order, and leaves none: an array with the errors
    /// of those that failed, if any did. With `sync` all are on the device then.
    #[napi]
    pub fn write_each(&self, operations: &Operations, sync: bool) -> AsyncTask<Work<Failures>> {
        let operations = operations.take();
        let call = self.state.begin();
        run(move || Ok(write_each(&*call?, operations, sync)))
    }

    /// Changes how long the value of a key lives. Whether it has one.
    #[napi]
    pub fn touch(&self, key: Input<'_>, ttl: f64) -> AsyncTask<Work<bool>> {
        let (key, ttl) = (bytes(key), duration(ttl));
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.touch(key, ttl?)?))
    }

    /// Makes the value of a key live for good. Whether it has one.
    #[napi]
    pub fn persist(&self, key: Input<'_>) -> AsyncTask<Work<bool>> {
        let key = bytes(key);
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.persist(key)?))
    }

    /// Deletes a range in one write.
    #[napi]
    pub fn clear(&self, lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) -> AsyncTask<Work<()>> {
        let range = key_range(lower, upper, flags);
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.delete_range((range.lower, range.upper))?))
    }

    /// Deletes the first `limit` keys of a range, those of a snapshot if one is given, in batches.
    #[napi]
    pub fn clear_keys(
        &self,
        lower: Option<Input<'_>>,
        upper: Option<Input<'_>>,
        flags: u32,
        limit: f64,
        snapshot: Option<&Snapshot>,
    ) -> AsyncTask<Work<()>> {
        let range = key_range(lower, upper, flags);
        let begun = self.begin_read(snapshot);
        // Of this moment, as an iterator's would be.
        let begun = begun.map(|(call, snapshot)| {
            let snapshot = snapshot.unwrap_or_else(|| call.db.snapshot());
            (call, snapshot)
        });
        run(move || {
            let (call, snapshot) = begun?;
            clear_keys(&call, &snapshot, range, limit)
        })
    }

    /// An iterator over a range of this moment, or of a snapshot.
    #[napi]
    #[allow(clippy::too_many_arguments)]
    pub fn iterator(
        &self,
        env: &Env,
        lower: Option<Input<'_>>,
        upper: Option<Input<'_>>,
        flags: u32,
        key_format: u32,
        value_format: u32,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<EntryIterator> {
        let begun = self.begin_read(snapshot);
        let (call, snapshot) = begun.map_err(|failure| failure.into_error(env))?;
        let snapshot = snapshot.unwrap_or_else(|| call.db.snapshot());
        let parts = Parts {
            keys: (flags & KEYS != 0).then(|| Format::from(key_format)),
            values: (flags & VALUES != 0).then(|| Format::from(value_format)),
        };
        Ok(EntryIterator::new(call.database(), snapshot, key_range(lower, upper, flags), parts))
    }

    /// A snapshot of this moment.
    #[napi]
    pub fn snapshot(&self, env: &Env) -> napi::Result<Snapshot> {
        let call = self.state.begin().map_err(|failure| failure.into_error(env))?;
        Ok(Snapshot::new(call.db.snapshot()))
    }

    /// About the bytes that a range takes.
    #[napi]
    pub fn approximate_size(&self, start: Input<'_>, end: Input<'_>) -> AsyncTask<Work<f64>> {
        let range = bytes(start)..bytes(end);
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.approximate_size(range)? as f64))
    }

    /// Compacts a range.
    #[napi]
    pub fn compact_range(&self, start: Input<'_>, end: Input<'_>) -> AsyncTask<Work<()>> {
        let range = (Bound::Included(bytes(start)), Bound::Included(bytes(end)));
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.compact_range(range)?))
    }

    /// The value of a property, on this thread.
    #[napi]
    pub fn property_sync(&self, env: &Env, name: String) -> napi::Result<Option<String>> {
        let begun = self.state.begin();
        let property = guarded(|| Ok(begun?.db.property(&name)));
        property.map_err(|failure| failure.into_error(env))
    }

    /// Makes a damaged database open again.
    #[napi]
    pub fn repair(location: String) -> AsyncTask<Work<()>> {
        run(move || {
            Db::repair(location, Options::default())?;
            Ok(())
        })
    }
}

impl Database {
    /// Begins a call that may read at a snapshot.
    fn begin_read(&self, snapshot: Option<&Snapshot>) -> Result<(Call, Option<esker::Snapshot>), Failure> {
        Ok((self.state.begin()?, reader(snapshot)?))
    }
}

fn get(
    database: &OpenDatabase,
    snapshot: Option<&esker::Snapshot>,
    key: &[u8],
    format: Format,
) -> Result<Found, Failure> {
    let mut value = Vec::new();
    let is_found = match snapshot {
        Some(snapshot) => snapshot.get_into(&database.keyspace, key, &mut value)?,
        None => database.keyspace.get_into(key, &mut value)?,
    };
    Ok(Found { value: is_found.then_some(value), format })
}

fn has(database: &OpenDatabase, snapshot: Option<&esker::Snapshot>, key: &[u8]) -> Result<bool, Failure> {
    Ok(match snapshot {
        Some(snapshot) => snapshot.contains_key(&database.keyspace, key)?,
        None => database.keyspace.contains_key(key)?,
    })
}

fn key_range(lower: Option<Input<'_>>, upper: Option<Input<'_>>, flags: u32) -> KeyRange {
    KeyRange {
        lower: bound(lower, flags & LOWER_EXCLUSIVE != 0),
        upper: bound(upper, flags & UPPER_EXCLUSIVE != 0),
        reverse: flags & REVERSE != 0,
    }
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
