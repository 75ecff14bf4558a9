//! What handles name.

use crate::failure::Done;
use crate::operations::Operations;
use crate::option_values::OptionValues;
use crate::order::Order;
use crate::policy::Policy;
use esker::{Db, Keyspace, Snapshot};
use esker_ffi::handles::{self, Object};
use parking_lot::Mutex;
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

    /// Closes a handle, and returns what it named.
    fn take(handle: *const Self) -> Done<Arc<Self::Named>> {
        Ok(handles::remove(handle.addr())?)
    }

    /// Closes a handle. What it named ends here, where a panic of it is contained.
    fn close(handle: *const Self) -> Done<()> {
        Self::take(handle).map(drop)
    }

    /// Makes a handle for an object.
    fn make(object: Self::Named) -> Done<*mut Self> {
        Ok(ptr::without_provenance_mut(handles::insert(Arc::new(object))?))
    }
}

/// A handle, and what it names.
macro_rules! objects {
    ($($handle:ident => $object:ident($content:ty);)*) => {$(
        #[doc = concat!("`", stringify!($handle), "` of LevelDB's header.")]
        pub struct $handle(());

        impl Handle for $handle {
            type Named = $object;
        }

        pub(crate) struct $object(pub(crate) $content);

        impl Object for $object {
            const NAME: &'static str = concat!("a ", stringify!($handle));
        }
    )*};
}

objects! {
    leveldb_t => Database(Open);
    leveldb_snapshot_t => SnapshotObject(Snapshot);
    leveldb_writebatch_t => WriteBatch(Mutex<Arc<Operations>>);
    leveldb_options_t => Options(Mutex<OptionValues>);
    leveldb_readoptions_t => ReadOptions(Mutex<ReadValues>);
    leveldb_writeoptions_t => WriteOptions(Mutex<bool>);
    leveldb_comparator_t => ComparatorObject(Arc<Order>);
    leveldb_filterpolicy_t => FilterPolicyObject(Arc<Policy>);
    leveldb_cache_t => Cache(usize);
    leveldb_env_t => Environment(());
}

/// `leveldb_iterator_t` of LevelDB's header: see `iterator.rs`.
pub struct leveldb_iterator_t(());

/// `leveldb_logger_t` of LevelDB's header, which nothing makes.
pub struct leveldb_logger_t(());

/// An open database, and the keyspace that holds its pairs.
pub(crate) struct Open {
    pub(crate) db: Db,
    pub(crate) keyspace: Keyspace,
}

/// The options of reads that have a meaning here: the handle of a snapshot, or 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadValues {
    pub(crate) snapshot: usize,
}
