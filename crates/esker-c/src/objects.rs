//! What handles name.

use crate::caller::Output;
use crate::failure::{Done, Failure};
use esker::{Batch, Cursor, Db, Follower, Iter, Keyspace, KeyspaceOptions, Options, Slice, Snapshot, Transaction};
use esker_ffi::handles::{self, Object};
use parking_lot::{Mutex, MutexGuard};
use std::ptr;
use std::sync::Arc;

/// A type of C that is a handle of an object.
pub(crate) trait Handle: Sized {
    /// What it names.
    type Named: Object;

    /// The object of a handle.
    fn get(handle: *const Self) -> Done<Arc<Self::Named>> {
        Ok(handles::get(handle.addr())?)
    }

    /// Closes a handle.
    fn close(handle: *const Self) -> Done<Arc<Self::Named>> {
        Ok(handles::remove(handle.addr())?)
    }

    /// Makes a handle for an object.
    fn make(object: Self::Named) -> Done<*mut Self> {
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
    esker_cursor => CursorObject(Exclusive<Cursor>), "an esker_cursor";
    esker_iterator => IteratorObject(Exclusive<Pairs>), "an esker_iterator";
    esker_transaction => TransactionObject(Exclusive<Option<Transaction>>), "an esker_transaction";
    esker_follower => FollowerObject(Follower), "an esker_follower";
    esker_options => OptionsObject(Exclusive<Options>), "an esker_options";
    esker_keyspace_options => KeyspaceOptionsObject(Exclusive<KeyspaceOptions>), "an esker_keyspace_options";
    esker_write_options => WriteOptionsObject(Exclusive<esker::WriteOptions>), "an esker_write_options";
    esker_output => OutputObject(Mutex<Produced>), "an esker_output";
}

/// An iterator, and the pair that it lends.
pub(crate) struct Pairs {
    pub(crate) iter: Iter,
    pub(crate) pair: Option<(Slice, Slice)>,
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
