//! The database.

use crate::changes::{ChangeReader, Formats};
use crate::database_state::{Call, DatabaseState, OpenDatabase};
use crate::entry_iterator::{EntryIterator, Parts};
use crate::failure::Failure;
use crate::operations::{Operation, Operations};
use crate::options::{OpenOptions, merge_operator};
use crate::outcomes::{Lag, Outcomes};
use crate::range::{KeyRange, key_range};
use crate::reads::{Answers, Reads};
use crate::served_operator::ServedOperator;
use crate::snapshot::{Snapshot, reader};
use crate::transaction::Transaction;
use crate::values::{Format, Found, FoundMany, Input, bytes, duration, milliseconds};
use crate::watch::Watch;
use crate::work::{Answer, Work, guarded, run};
use crate::writes::Writes;
use esker::{CheckpointMode, Db, Options, Ttl, VerifyEvent, VerifyReport};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Unknown};
use napi_derive::napi;
use std::ops::Bound;
use std::sync::Arc;

/// Flags beside those of a range: an iterator's keys, its values are wanted.
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

    /// Makes reads, each by itself, and leaves none: an array with the answer to each.
    #[napi]
    pub fn read_all(&self, reads: &Reads) -> AsyncTask<Work<Answers>> {
        let make = reads.take();
        let call = self.state.begin();
        run(move || Ok(make(&*call?)))
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
            Ok(expiry.map(milliseconds))
        })
    }

    /// Makes writes one after the other, each by itself, and leaves none: an array with what has
    /// become of each, unless all were done and say no more.
    #[napi]
    pub fn write_all(&self, writes: &Writes) -> AsyncTask<Work<Outcomes>> {
        let make = writes.take();
        let call = self.state.begin();
        run(move || Ok(make(&*call?)))
    }

    /// Waits until all writes that are done are on the device.
    #[napi]
    pub fn sync(&self) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || Ok(call?.db.sync()?))
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

    /// A transaction that begins now.
    #[napi]
    pub fn transaction(&self) -> AsyncTask<Work<Transaction>> {
        let call = self.state.begin();
        run(move || {
            let call = call?;
            Ok(Transaction::new(call.database(), call.db.transaction()))
        })
    }

    /// A reader of what was written from a number on.
    #[napi]
    pub fn changes(
        &self,
        from: f64,
        only_durable: bool,
        key_format: u32,
        value_format: u32,
    ) -> AsyncTask<Work<ChangeReader>> {
        let call = self.state.begin();
        run(move || {
            let call = call?;
            let changes = call.db.changes(from as u64)?;
            let changes = if only_durable { changes.only_durable() } else { changes };
            let formats = Formats { keys: Format::from(key_format), values: Format::from(value_format) };
            Ok(ChangeReader::new(call.database(), changes, formats))
        })
    }

    /// A watch of the keys that begin with a prefix.
    #[napi]
    pub fn watch(&self, prefix: Input<'_>) -> AsyncTask<Work<Watch>> {
        let prefix = bytes(prefix);
        let call = self.state.begin();
        run(move || {
            let call = call?;
            let watch = call.keyspace.watch(prefix)?;
            Ok(Watch::new(call.database(), watch))
        })
    }

    /// Reads what the writer has written since: the number of the last write that is there.
    #[napi]
    pub fn catch_up(&self) -> AsyncTask<Work<f64>> {
        let call = self.state.begin();
        run(move || {
            let call = call?;
            Ok(call.follower()?.catch_up()?.sequence as f64)
        })
    }

    /// How far it is behind what the writer has written, if that is known.
    #[napi]
    pub fn lag(&self) -> AsyncTask<Work<Option<Lag>>> {
        let call = self.state.begin();
        run(move || Ok(call?.follower()?.lag()?.map(Lag)))
    }

    /// About the bytes that a range takes.
    #[napi]
    pub fn approximate_size(&self, start: Input<'_>, end: Input<'_>) -> AsyncTask<Work<f64>> {
        let range = bytes(start)..bytes(end);
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.approximate_size(range)? as f64))
    }

    /// About how many keys a range has.
    #[napi]
    pub fn approximate_count(&self, start: Input<'_>, end: Input<'_>) -> AsyncTask<Work<f64>> {
        let range = bytes(start)..bytes(end);
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.approximate_count(range)? as f64))
    }

    /// How many keys a range has, now or in a snapshot.
    #[napi]
    pub fn count(
        &self,
        lower: Option<Input<'_>>,
        upper: Option<Input<'_>>,
        flags: u32,
        snapshot: Option<&Snapshot>,
    ) -> AsyncTask<Work<f64>> {
        let KeyRange { lower, upper, .. } = key_range(lower, upper, flags);
        let begun = self.begin_read(snapshot);
        run(move || {
            let (call, snapshot) = begun?;
            Ok(match snapshot {
                Some(snapshot) => snapshot.count(&call.keyspace, (lower, upper))?,
                None => call.keyspace.count((lower, upper))?,
            } as f64)
        })
    }

    /// Loads the puts among operations, whose keys ascend, straight into tables, and leaves none: how
    /// many there were.
    #[napi]
    pub fn ingest(&self, operations: &Operations) -> AsyncTask<Work<f64>> {
        let operations = operations.take();
        let call = self.state.begin();
        run(move || {
            let pairs = operations.into_iter().filter_map(|operation| match operation {
                Operation::Put { key, value, .. } => Some((key, value)),
                Operation::Delete(_) => None,
            });
            Ok(call?.keyspace.ingest(pairs)?.entries as f64)
        })
    }

    /// From now on entries can expire, after so many milliseconds by default, or never.
    #[napi]
    pub fn set_ttl(&self, default_ttl: Option<f64>) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || {
            let default = default_ttl.map(duration).transpose()?;
            Ok(call?.keyspace.set_ttl(Ttl::Enabled { default })?)
        })
    }

    /// Gives the keyspace a merge operator: a built-in one, or one of the program.
    #[napi]
    pub fn set_merge_operator(&self, name: Option<String>, served: Option<ServedOperator>) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || {
            let none = || Failure::invalid("no merge operator");
            let operator = merge_operator(name.as_deref(), served.as_ref())?.ok_or_else(none)?;
            Ok(call?.keyspace.set_shared_merge_operator(operator)?)
        })
    }

    /// The number of the keyspace, on this thread.
    #[napi]
    pub fn keyspace_id_sync(&self, env: &Env) -> napi::Result<f64> {
        let begun = self.state.begin();
        let id = guarded(|| Ok(begun?.keyspace.id() as f64));
        id.map_err(|failure| failure.into_error(env))
    }

    /// Gives the keyspace another name.
    #[napi]
    pub fn rename_keyspace(&self, name: String) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.rename(&name)?))
    }

    /// Compacts a range.
    #[napi]
    pub fn compact_range(&self, start: Input<'_>, end: Input<'_>) -> AsyncTask<Work<()>> {
        let range = (Bound::Included(bytes(start)), Bound::Included(bytes(end)));
        let call = self.state.begin();
        run(move || Ok(call?.keyspace.compact_range(range)?))
    }

    /// Writes everything acknowledged so far into tables.
    #[napi]
    pub fn flush(&self) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || Ok(call?.db.flush()?))
    }

    /// Makes a copy in a new or empty directory that opens as a database.
    #[napi]
    pub fn checkpoint(&self, directory: String, copy: bool) -> AsyncTask<Work<()>> {
        let mode = if copy { CheckpointMode::Copy } else { CheckpointMode::Link };
        let call = self.state.begin();
        run(move || Ok(call?.db.checkpoint_with(directory, mode)?))
    }

    /// Reads everything and checks it.
    #[napi]
    pub fn verify(&self) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || {
            let call = call?;
            verified(|tell| call.db.verify_with(tell))
        })
    }

    /// The names of all keyspaces.
    #[napi]
    pub fn keyspaces(&self) -> AsyncTask<Work<Vec<String>>> {
        let call = self.state.begin();
        run(move || Ok(call?.db.keyspaces()))
    }

    /// Removes a keyspace with all that is in it.
    #[napi]
    pub fn drop_keyspace(&self, name: String) -> AsyncTask<Work<()>> {
        let call = self.state.begin();
        run(move || Ok(call?.db.drop_keyspace(&name)?))
    }

    /// The value of a property, on this thread.
    #[napi]
    pub fn property_sync(&self, env: &Env, name: String) -> napi::Result<Option<String>> {
        let begun = self.state.begin();
        let property = guarded(|| Ok(begun?.db.property(&name)));
        property.map_err(|failure| failure.into_error(env))
    }

    /// Removes a database that is not open; its directory stays.
    #[napi]
    pub fn destroy(location: String) -> AsyncTask<Work<()>> {
        run(move || Ok(Db::destroy(location, Options::default())?))
    }

    /// Reads everything of a database in its directory and checks it.
    #[napi]
    pub fn verify_directory(location: String) -> AsyncTask<Work<()>> {
        run(move || verified(|tell| Db::verify_directory(location, Options::default(), tell)))
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

/// What a verification says, whose failure has all that is damaged.
fn verified(
    verify: impl FnOnce(&mut dyn FnMut(VerifyEvent<'_>)) -> esker::Result<VerifyReport>,
) -> Result<(), Failure> {
    let mut damage: Vec<String> = Vec::new();
    let report = verify(&mut |event| {
        if let VerifyEvent::Damage(error) = event {
            damage.push(error.to_string());
        }
    });
    report.map(drop).map_err(|error| Failure::of_verification(error, damage))
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
