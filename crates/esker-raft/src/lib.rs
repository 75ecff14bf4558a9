//! Log storage, state machine and snapshots for openraft, over Esker.
//!
//! A replica of a cluster has a [`LogStore`] in a database of its own, and a [`StateMachine`] in a
//! directory beside it. openraft keeps the entries of the logs of all replicas the same, and this
//! crate makes them durable, applies them, and brings a replica that has fallen behind up to date
//! with a snapshot.
//!
//! ```
//! use esker::env::mem::MemEnv;
//! use esker_raft::{Executor, KeyValue, LogStore, StateMachine, StateOptions};
//! use std::sync::Arc;
//!
//! let env = Arc::new(MemEnv::new());
//! let db = esker::Db::open("log", esker::Options::default().env(env.clone()))?;
//! let log = LogStore::open(&db, 1, Executor::BlockingThreads)?;
//! let apply = KeyValue::new().keyspace("names", esker::KeyspaceOptions::default());
//! let machine = StateMachine::open("state", apply, StateOptions::default().env(env))?;
//! machine.reconcile(&log)?;
//! // Both go into openraft::Raft::new, with a configuration and a network.
//! # let _ = (log, machine);
//! # Ok::<(), esker_raft::Error>(())
//! ```
//!
//! * **Commands.** A [`Command`] carries the leader's time and a [`Request`]. A request is a
//!   payload, whose meaning an implementation of [`Apply`] knows: [`KeyValue`] is the built-in one.
//!   Every replica applies it to the same state with the same result.
//! * **Time.** What has expired is decided by the time of the entries and by no clock of a replica.
//! * **Sessions.** [`Request::ApplyOnce`] is applied once, however often it is in the log.
//! * **Reads.** [`StateMachine::database`] has the state. A linearizable read first waits for
//!   `openraft::Raft::ensure_linearizable` on the leader; any other sees some earlier state.
//! * **Snapshots.** [`SnapshotFiles`] is a checkpoint. A network sends it with
//!   [`SnapshotFiles::begin`] and [`SnapshotFiles::piece`], and the other side takes it with
//!   [`StateMachine::receive`] and hands [`StateMachine::received`] to
//!   `openraft::Raft::install_full_snapshot`.
//! * **Comparison.** [`Request::Hash`] and [`Request::Compare`] find a replica whose state is not
//!   that of the others, and stop it.
//!
//! `doc/raft.md` has the promises, and why there are two databases; `encoding.rs`, `state_file.rs`
//! and `sessions.rs` have the formats.
//!
//! Modules, each importing only from those above it: `range_hash`, `error`; `types`, `executor`;
//! `encoding`; `shared_sync`, `log_store`; `apply`, `slots`, `manifest`, `transfer`, `state_file`;
//! `snapshot_files`, `incoming`, `sessions`, `state_hash`, `marks`; `key_value`, `database`;
//! `state_machine`; `import`, `raft_state_machine`.

mod apply;
mod database;
mod encoding;
mod error;
mod executor;
mod import;
mod incoming;
mod key_value;
mod log_store;
mod manifest;
mod marks;
#[cfg(test)]
mod planted;
mod raft_state_machine;
mod range_hash;
mod sessions;
mod shared_sync;
mod slots;
mod snapshot_files;
mod state_file;
mod state_hash;
mod state_machine;
#[cfg(test)]
mod tests;
mod transfer;
mod types;

pub use apply::{Apply, Context, Rejection};
pub use database::StateDatabase;
pub use error::{Error, Result};
pub use executor::Executor;
pub use key_value::{Condition, KeyValue, KeyValueAnswer, KeyValueCommand, Operation};
pub use log_store::{LogStats, LogStore};
pub use manifest::{SnapshotFile, SnapshotManifest};
pub use raft_state_machine::{Snapshot, SnapshotBuilder};
pub use range_hash::{Difference, RangeHash};
pub use snapshot_files::SnapshotFiles;
pub use state_machine::{StateMachine, StateOptions};
pub use transfer::{Place, TransferReply, TransferRequest};
pub use types::{
    Command, Entry, LeaderId, LogId, MAX_PAYLOAD_BYTES, Membership, Reply, Request, SnapshotMeta, StoredMembership,
    TypeConfig, Vote,
};
