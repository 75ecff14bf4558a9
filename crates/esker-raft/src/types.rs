//! What an entry of the log carries, and the types that openraft is given.

use crate::range_hash::RangeHash;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What openraft runs on.
#[cfg(not(test))]
type Runtime = openraft_rt_tokio::TokioRuntime;
/// The same, with election timeouts from a seed: tests run in its `scope`.
#[cfg(test)]
pub(crate) type Runtime = openraft::rt::deterministic_rng::DeterministicRng<openraft_rt_tokio::TokioRuntime>;

openraft::declare_raft_types!(
    /// The types of a cluster: commands and replies, nodes that are numbers with an address.
    pub TypeConfig:
        D = Command,
        R = Reply,
        NodeId = u64,
        Node = openraft::BasicNode,
        AsyncRuntime = Runtime,
);

/// The identity of a leader: its term and its node.
pub type LeaderId = openraft::impls::leader_id_adv::LeaderId<u64, u64>;
/// The identity of an entry: the leader that wrote it, and its index.
pub type LogId = openraft::LogId<LeaderId>;
/// A vote, as it is kept.
pub type Vote = openraft::impls::Vote<LeaderId>;
/// An entry of the log.
pub type Entry = openraft::Entry<LeaderId, openraft::EntryPayload<Command, u64, openraft::BasicNode>>;
/// Which nodes the cluster has.
pub type Membership = openraft::Membership<u64, openraft::BasicNode>;
/// The membership with the entry that set it.
pub type StoredMembership = openraft::StoredMembership<LeaderId, u64, openraft::BasicNode>;
/// What openraft says of a snapshot.
pub type SnapshotMeta = openraft::SnapshotMeta<LeaderId, u64, openraft::BasicNode>;

/// The longest payload of a command, in bytes. The log of the leader cannot take a longer one,
/// which would stop the replica: a program refuses it before it proposes the command.
pub const MAX_PAYLOAD_BYTES: usize = (1 << 30) - 1024;

/// A command of a client, as the leader put it into the log. Every replica applies it with these
/// bytes and nothing else, so that all come to the same state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The leader's time when it proposed the command, in milliseconds since the Unix epoch. It
    /// decides what has expired, on every replica. A time before that of an earlier entry counts
    /// as that entry's: the time of a state machine never steps back.
    pub time_ms: u64,
    /// What to do.
    pub request: Request,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Applies a payload each time it is in the log.
    Apply(Vec<u8>),
    /// Opens a session. The reply is its number, that of this entry, which no other session has.
    OpenSession,
    /// Applies a payload once, however often the session sends the same number.
    ApplyOnce {
        /// The session that was opened before.
        session: u64,
        /// The number of the request in its session: each new one is greater than those before. The
        /// first is at least 1: number 0 is that of the opening, so a request with it is taken for
        /// a repeat of that and never applied.
        number: u64,
        /// The payload.
        payload: Vec<u8>,
    },
    /// Makes each replica hash its state as of this entry; see [`crate::StateMachine::hashes`].
    Hash,
    /// Makes each replica compare the hashes of its state as of an entry with these.
    Compare {
        /// The entry of [`Request::Hash`].
        index: u64,
        /// What the state hashes to.
        hashes: Vec<RangeHash>,
    },
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { time_ms, request } = self;
        match request {
            Request::Apply(payload) => write!(f, "apply {} bytes at {time_ms}", payload.len()),
            Request::OpenSession => write!(f, "open a session at {time_ms}"),
            Request::ApplyOnce { session, number, payload } => {
                write!(f, "apply {} bytes once as {session}/{number} at {time_ms}", payload.len())
            }
            Request::Hash => write!(f, "hash the state at {time_ms}"),
            Request::Compare { index, .. } => write!(f, "compare the state of entry {index} at {time_ms}"),
        }
    }
}

/// What came of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The entry carried no command, or one without an answer.
    None,
    /// The payload was applied, with this answer.
    Applied(Vec<u8>),
    /// The payload cannot be applied, for this reason; it changed nothing, on any replica.
    Rejected(String),
    /// The number of the session that was opened.
    SessionOpened(u64),
    /// There is no such session: it was never opened, had no new request for as long as sessions
    /// are kept, or was ended as one of too many; it does not come back. Nothing was applied by
    /// this request; whether an earlier one of the same number was is not known any more.
    UnknownSession,
    /// The session has sent a greater number since: the answer to this one is not kept any more.
    /// Nothing was applied.
    Superseded {
        /// The greatest number of the session.
        newest: u64,
    },
}
