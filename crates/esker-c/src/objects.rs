//! What handles name.

use crate::caller::Output;
use crate::change_batch::{LentBatch, LentSettings};
use crate::failure::{Done, Failure, not_forked};
use esker::{
    Batch, Changes, Cursor, Db, Follower, Iter, Keys, Keyspace, KeyspaceOptions, MergeOperator, Options, Slice,
    Snapshot, Transaction, Watch,
};
use esker_ffi::handles::{self, Object};
use parking_lot::{Mutex, MutexGuard};
use std::ptr;
use std::sync::Arc;

/// A type of C that is a handle of an object. In a child of fork there are none.
pub(crate) trait Handle: Sized {
    /// What it names.
    type Named: Object;

    /// The object of a handle.
    fn get(handle: *const Self) -> Done<Arc<Self::Named>> {
        not_forked()?;
        Ok(handles::get(handle.addr())?)
    }

    /// Closes a handle.
    fn close(handle: *const Self) -> Done<Arc<Self::Named>> {
        not_forked()?;
        Ok(handles::remove(handle.addr())?)
    }

    /// Makes a handle for an object.
    fn make(object: Self::Named) -> Done<*mut Self> {
        not_forked()?;
        Ok(ptr::without_provenance_mut(handles::insert(Arc::new(object))?))
    }

    /// Makes a handle for an object, as a result.
    fn give(output: &Output<'_, *mut Self>, object: Self::Named) -> Done<()> {
        output.set(Self::make(object)?);
        Ok(())
    }
}

/// What one thread at a time uses.
pub(crate) struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Exclusive<T> {
        Exclusive(Mutex::new(value))
    }

    /// The value, unless another call uses it: waiting would only hide a mistake, and a callback
    /// that uses what it was called from would wait for ever.
    pub(crate) fn lock(&self, what: &str) -> Done<MutexGuard<'_, T>> {
        self.0.try_lock().ok_or_else(|| Failure::busy(what))
    }

    /// The value, for those who hold it for a moment only.
    pub(crate) fn wait(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

/// A handle, and what it names.
macro_rules! objects {
    ($($(#[$doc:meta])* $handle:ident => $object:ident($content:ty), $name:literal;)*) => {$(
        impl Handle for $handle {
            type Named = $object;
        }

        pub(crate) struct $object(pub(crate) $content);

        impl Object for $object {
            const NAME: &'static str = $name;
        }
    )*};
}

/// An open database.
pub struct esker_db(());
/// A keyspace of an open database.
pub struct esker_keyspace(());
/// Operations that are written together.
pub struct esker_batch(());
/// All keyspaces at one moment.
pub struct esker_snapshot(());
/// A position among the keys of a keyspace.
pub struct esker_cursor(());
/// The pairs of a range, from both ends.
pub struct esker_iterator(());
/// A transaction.
pub struct esker_transaction(());
/// A database that is read behind its writer.
pub struct esker_follower(());
/// What was written, in order.
pub struct esker_changes(());
/// Waits for writes to some keys.
pub struct esker_watch(());
/// The options of a database.
pub struct esker_options(());
/// The options of a keyspace.
pub struct esker_keyspace_options(());
/// The options of a write.
pub struct esker_write_options(());
/// Where a callback puts its result.
pub struct esker_output(());

objects! {
    esker_db => DbObject(Db), "an esker_db";
    esker_keyspace => KeyspaceObject(Keyspace), "an esker_keyspace";
    esker_batch => BatchObject(Exclusive<Batch>), "an esker_batch";
    esker_snapshot => SnapshotObject(Snapshot), "an esker_snapshot";
    esker_cursor => CursorObject(Exclusive<Position>), "an esker_cursor";
    esker_iterator => IteratorObject(Exclusive<Pairs>), "an esker_iterator";
    esker_transaction => TransactionObject(Exclusive<Option<Transaction>>), "an esker_transaction";
    esker_follower => FollowerObject(Follower), "an esker_follower";
    esker_changes => ChangesObject(Exclusive<Feed>), "an esker_changes";
    esker_watch => WatchObject(Watch), "an esker_watch";
    esker_options => OptionsObject(Exclusive<Options>), "an esker_options";
    esker_keyspace_options => KeyspaceOptionsObject(Exclusive<KeyspaceValues>), "an esker_keyspace_options";
    esker_write_options => WriteOptionsObject(Exclusive<esker::WriteOptions>), "an esker_write_options";
    esker_output => OutputObject(Mutex<Produced>), "an esker_output";
}

/// The options of a keyspace, and its merge operator once more, for a keyspace that exists.
#[derive(Clone, Default)]
pub(crate) struct KeyspaceValues {
    pub(crate) options: KeyspaceOptions,
    pub(crate) operator: Option<Arc<dyn MergeOperator>>,
}

/// A cursor, and whether it has values.
pub(crate) struct Position {
    pub(crate) cursor: Cursor,
    pub(crate) has_values: bool,
}

/// An iterator, and the pair that it lends.
pub(crate) struct Pairs {
    pub(crate) scan: Scan,
    pub(crate) pair: Option<Step>,
}

impl Pairs {
    pub(crate) fn new(iter: Iter) -> Pairs {
        Pairs { scan: Scan::Pairs(iter), pair: None }
    }
}

/// A key, and its value where the iterator has values.
pub(crate) type Step = (Slice, Option<Slice>);

/// What an iterator hands out.
pub(crate) enum Scan {
    Pairs(Iter),
    Keys(Keys),
    /// Between the two, where a panic has left it.
    Ended,
}

impl Scan {
    /// From here on without values.
    pub(crate) fn skip_values(&mut self) {
        *self = match std::mem::replace(self, Scan::Ended) {
            Scan::Pairs(iter) => Scan::Keys(iter.keys()),
            other => other,
        };
    }

    /// The next pair from the front, or from the back.
    pub(crate) fn step(&mut self, forward: bool) -> Option<esker::Result<Step>> {
        let with_value = |pair: esker::Result<(Slice, Slice)>| pair.map(|(key, value)| (key, Some(value)));
        let without_value = |key: esker::Result<Slice>| key.map(|key| (key, None));
        match (self, forward) {
            (Scan::Pairs(iter), true) => iter.next().map(with_value),
            (Scan::Pairs(iter), false) => iter.next_back().map(with_value),
            (Scan::Keys(keys), true) => keys.next().map(without_value),
            (Scan::Keys(keys), false) => keys.next_back().map(without_value),
            (Scan::Ended, _) => None,
        }
    }
}

/// A reader of changes, and the batch and the settings that it lends.
pub(crate) struct Feed {
    pub(crate) changes: Changes,
    pub(crate) batch: Option<LentBatch>,
    pub(crate) settings: Option<LentSettings>,
}

/// What a callback has put into its output.
#[derive(Default)]
pub(crate) enum Produced {
    #[default]
    Nothing,
    Value(Vec<u8>),
    Deleted,
    Failed(String),
}
