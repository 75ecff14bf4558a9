//! What a state machine does with a payload.

use esker::{Db, Transaction};

/// Turns payloads into writes, the same on every replica.
///
/// What [`Apply::apply`] does may depend on the payload, on what it reads through the transaction,
/// and on [`Context::time_ms`] and [`Context::index`], and on nothing else: no clock, no random
/// number, no order of a hash map, no float that is not computed the same everywhere. All replicas
/// have the same implementation, and the same keyspaces with the same options.
///
/// ```
/// use esker_raft::{Apply, Context, Rejection};
/// /// Keeps the longest payload.
/// struct Longest;
/// impl Apply for Longest {
///     type Keyspaces = esker::Keyspace;
///     fn open(&self, db: &esker::Db) -> esker::Result<esker::Keyspace> {
///         db.keyspace("longest", Default::default())
///     }
///     fn apply(&self, context: &mut Context<'_, esker::Keyspace>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
///         let before = context.transaction.get(context.keyspaces, "")?;
///         if before.as_ref().is_none_or(|before| before.len() < payload.len()) {
///             context.transaction.put(context.keyspaces, "", payload)?;
///         }
///         Ok(before.map_or_else(Vec::new, |before| before.to_vec()))
///     }
/// }
/// ```
pub trait Apply: Send + Sync + 'static {
    /// Handles of the keyspaces that payloads read and write.
    type Keyspaces: Send + Sync + 'static;

    /// Opens the keyspaces, or creates them: in a new database, in one that is opened again, and in
    /// each that comes with a snapshot. Names that begin with `raft.` are taken.
    ///
    /// No keyspace may have [`esker::CompactionStyle::Fifo`] or a compaction filter. Both drop or
    /// change values when a replica compacts, which each one does at another moment: the replicas
    /// get different states. [`crate::KeyValue`] refuses them. Time to live does what they are for.
    ///
    /// # Errors
    /// Those of [`Db::keyspace`]: the state machine does not open then.
    fn open(&self, db: &Db) -> esker::Result<Self::Keyspaces>;

    /// Applies a payload, and returns the answer to the client. The effects go into the
    /// transaction, which is committed in one write with the position of the entry.
    ///
    /// # Errors
    /// [`Rejection::Refused`] for a payload that cannot be applied: nothing of it is written, and
    /// the client is told the reason. [`Rejection::Failed`] where the database failed: the replica
    /// stops, and applies the entry when it is opened again.
    fn apply(&self, context: &mut Context<'_, Self::Keyspaces>, payload: &[u8]) -> Result<Vec<u8>, Rejection>;
}

/// What a payload is applied to.
pub struct Context<'a, K> {
    /// The handles that [`Apply::open`] returned.
    pub keyspaces: &'a K,
    /// The state before the entry, with the writes of this payload on top. Its time is `time_ms`:
    /// what expires at it or before has no value.
    pub transaction: &'a mut Transaction,
    /// The time of the entry in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The index of the entry.
    pub index: u64,
}

/// Why a payload was not applied.
#[derive(Debug)]
pub enum Rejection {
    /// It cannot be applied, on any replica; the reason is for the client.
    Refused(String),
    /// The database of this replica failed.
    Failed(esker::Error),
}

impl From<esker::Error> for Rejection {
    /// An argument that the engine does not take, and operands that cannot be combined, are the
    /// payload's fault, and so on every replica.
    fn from(error: esker::Error) -> Rejection {
        match error {
            esker::Error::InvalidArgument { .. } | esker::Error::MergeFailed { .. } => {
                Rejection::Refused(error.to_string())
            }
            error => Rejection::Failed(error),
        }
    }
}
