//! The messages between nodes: postcard in the bodies of HTTP/2 requests and their answers.

use esker_raft::{LogId, RangeHash, Reply, Request, TransferRequest, TypeConfig, Vote};
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest, VoteRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The slowest line that entries get through.
const BYTES_PER_MS: u64 = 1 << 10;

/// A change of the members, which the leader makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    /// A new learner, with its address.
    Add(u64, String),
    /// A learner becomes a voter.
    Promote(u64),
    /// A node goes.
    Remove(u64),
    /// Another voter becomes the leader.
    Transfer(u64),
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The node.
    pub to: u64,
    /// The cluster; 0 from a node that is in none.
    pub cluster: u128,
}

/// Who answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The node.
    pub node: u64,
    /// Its cluster; 0 if it is in none.
    pub cluster: u128,
}

/// What a node asks another one.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// Which node it is; asked of any. Answer: [`Who`].
    Who,
    /// Entries, or a sign that the leader is there. Answer: that of openraft.
    Append(AppendEntriesRequest<TypeConfig>),
    /// A vote. Answer: that of openraft.
    Vote(VoteRequest<TypeConfig>),
    /// Whether a vote would be given. Answer: that of openraft.
    PreVote(VoteRequest<TypeConfig>),
    /// To be the leader. Answer: that of openraft.
    TransferLeader(TransferLeaderRequest<TypeConfig>),
    /// A piece of a snapshot. Answer: [`esker_raft::TransferReply`].
    Snapshot(TransferRequest),
    /// To install the snapshot that has arrived, if it is this one. Answer: that of openraft.
    Install(Vote, Option<LogId>),
    /// To put this into the log. Answer: [`Proposed`].
    Propose(Request),
    /// As of which entry a read is linearizable. Answer: [`ReadIndex`].
    ReadIndex,
    /// A change of the members. Answer: [`Changed`].
    Member(MemberChange),
    /// The hashes of the state as of an entry. Answer: `Option<Vec<RangeHash>>`.
    Hashes(u64),
    /// To be in the cluster of the sender from now on, with an empty directory. Answer:
    /// [`Changed`].
    Join,
}

/// What came of a proposal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Proposed {
    /// It was applied, as the entry of that index, with this reply.
    Done(u64, Reply),
    /// It was not put into the log, as this node is not the leader now.
    NotLeader,
    /// It is not put into the log, by any leader of this version, for this reason.
    Refused(String),
    /// It may have been put into the log.
    Unknown(String),
}

/// As of which entry a read is linearizable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ReadIndex {
    /// As of this one.
    At(u64),
    /// This node cannot tell, for this reason.
    NotLeader(String),
}

/// What came of a change of members.
pub type Changed = Result<(), String>;
/// The hashes that a node has.
pub type Hashes = Option<Vec<RangeHash>>;

/// The bytes of the payload.
pub fn payload_bytes(request: &Request) -> usize {
    match request {
        Request::Apply(payload) | Request::ApplyOnce { payload, .. } => payload.len(),
        _ => 0,
    }
}

/// How long so many bytes may be on their way.
pub fn transfer_time(bytes: usize) -> Duration {
    Duration::from_millis(bytes as u64 / BYTES_PER_MS)
}

/// The bytes of a message or an answer.
///
/// # Errors
/// The text of the serializer's error.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(value).map_err(|error| error.to_string())
}

/// Reads the bytes of a message or an answer.
///
/// # Errors
/// The text of the deserializer's error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    postcard::from_bytes(bytes).map_err(|error| format!("a message has not the form that this version reads: {error}"))
}
