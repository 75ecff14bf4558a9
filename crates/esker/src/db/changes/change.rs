//! A change as readers get it.

use crate::base::expiry::{Expiry, Ttl};
use crate::base::slice::Slice;
use std::ops::Bound;
use std::sync::Arc;

/// One committed batch, or a load, a drop or other settings of a keyspace.
///
/// ```
/// # use esker::{ChangeRetention, Db, Options, env::mem::MemEnv};
/// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 20)))?;
/// # let names = db.keyspace("names", Default::default())?;
/// let mut batch = db.batch();
/// batch.put(&names, "ada", "1815")?;
/// batch.delete(&names, "bob")?;
/// batch.commit()?;
/// for batch in db.changes(0)? {
///     for change in batch?.changes {
///         println!("{} {}: {:?}", change.sequence, change.keyspace, change.operation);
///     }
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeBatch {
    /// In the order in which they were made; not empty. They took effect together.
    pub changes: Vec<Change>,
}

impl ChangeBatch {
    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let of_one = |change: &Change| {
            size_of::<Change>()
                + match &change.operation {
                    ChangeOperation::Put { key, value, .. } => key.len() + value.len(),
                    ChangeOperation::Merge { key, operand, .. } => key.len() + operand.len(),
                    ChangeOperation::Delete { key } => key.len(),
                    ChangeOperation::DeleteRange { start, end } => bound_bytes(start) + bound_bytes(end),
                    ChangeOperation::Load | ChangeOperation::DropKeyspace | ChangeOperation::AlterKeyspace { .. } => 0,
                }
        };
        self.changes.iter().map(of_one).sum()
    }

    /// The number to begin from next, behind the last of these changes.
    ///
    /// ```
    /// # use esker::{ChangeRetention, Db, Options, env::mem::MemEnv};
    /// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 20)))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let first = db.changes(0)?.next().expect("a write")?;
    /// assert!(db.changes(first.next_sequence())?.next().is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn next_sequence(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.sequence + 1)
    }
}

/// One operation as it was committed.
///
/// ```
/// # use esker::{ChangeRetention, Db, Options, env::mem::MemEnv};
/// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 20)))?;
/// # let names = db.keyspace("names", Default::default())?;
/// # names.put("ada", "1815")?;
/// let batch = db.changes(0)?.next().expect("a write")?;
/// assert_eq!(&*batch.changes[0].keyspace, "names");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Its place in the order of writes. Numbers ascend, with gaps.
    pub sequence: u64,
    /// The name that the keyspace had then; of a change of its name, the new one.
    pub keyspace: Arc<str>,
    /// The number of the keyspace, which no other keyspace of this database ever has.
    pub keyspace_id: u64,
    /// What was done.
    pub operation: ChangeOperation,
}

/// What was done.
///
/// ```
/// use esker::{ChangeOperation, Slice};
/// fn key(operation: &ChangeOperation) -> Option<&Slice> {
///     match operation {
///         ChangeOperation::Put { key, .. } | ChangeOperation::Delete { key } => Some(key),
///         ChangeOperation::Merge { key, .. } => Some(key),
///         _ => None,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeOperation {
    /// The key has this value from here on. Also a change of its expiry.
    Put {
        /// The key.
        key: Slice,
        /// The value.
        value: Slice,
        /// When it expires.
        expiry: Expiry,
    },
    /// The key has no value from here on.
    Delete {
        /// The key.
        key: Slice,
    },
    /// The operand was combined with what the key had.
    Merge {
        /// The key.
        key: Slice,
        /// The operand.
        operand: Slice,
        /// When the key expires.
        expiry: Expiry,
        /// The key had no value, or one that had expired: the operand was combined with nothing.
        is_first: bool,
    },
    /// The keys of a range, in the order of the keyspace, have no value from here on.
    DeleteRange {
        /// Where it begins.
        start: Bound<Slice>,
        /// Where it ends.
        end: Bound<Slice>,
    },
    /// [`Keyspace::ingest`](crate::Keyspace::ingest) has loaded pairs, which are not listed: read
    /// the keyspace.
    Load,
    /// The keyspace was dropped.
    DropKeyspace,
    /// The keyspace was renamed, or has other settings from here on.
    AlterKeyspace {
        /// The name that it had before.
        former_name: Arc<str>,
        /// The name of its merge operator.
        merge_operator: Option<Arc<str>>,
        /// Whether its entries can expire.
        ttl: Ttl,
    },
}

/// What a keyspace was at one place in the order of writes:
/// [`Changes::keyspace_settings`](crate::Changes::keyspace_settings).
///
/// ```
/// fn is_counter(settings: &esker::KeyspaceSettings) -> bool {
///     settings.merge_operator.as_deref() == Some("uint64add")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceSettings {
    /// Its name.
    pub name: Arc<str>,
    /// The name of the order of its keys.
    pub comparator: Arc<str>,
    /// The name of its merge operator.
    pub merge_operator: Option<Arc<str>>,
    /// Whether its entries can expire.
    pub ttl: Ttl,
}

fn bound_bytes(bound: &Bound<Slice>) -> usize {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.len(),
        Bound::Unbounded => 0,
    }
}
