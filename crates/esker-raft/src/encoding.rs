//! The records that this crate stores, byte by byte. Integers are little-endian, but for the index
//! in a key of the log, which is big-endian so that entries are in their order.
//!
//! ```text
//! log id      term u64, node u64, index u64
//! vote        format u8 = 1, term u64, node u64, committed u8 (0 or 1)
//! node        format u8 = 1, node u64
//! position    format u8 = 1, log id
//! applied     format u8 = 1, time in ms u64, present u8 (0 or 1), log id if present
//! key         index u64, big-endian
//! entry       format u8 = 1, kind u8, log id, body
//!   kind 0    blank; no body
//!   kind 1    command: time in ms u64, request
//!   kind 2    membership: postcard of (list of sets of voters, list of (node, address))
//! request     kind u8
//!   kind 0    apply: the payload, to the end
//!   kind 1    open a session
//!   kind 2    apply once: session u64, number u64, the payload, to the end
//!   kind 3    hash
//!   kind 4    compare: index u64, postcard of a list of hashes
//! membership  format u8 = 1, present u8, log id if present, as the body of kind 2
//! ```

use crate::error::{Error, Result};
use crate::types::{Command, Entry, LeaderId, LogId, Membership, Request, StoredMembership, Vote};
use openraft::entry::RaftEntry;
use openraft::{BasicNode, EntryPayload};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet};

const FORMAT: u8 = 1;

/// The body of a membership.
type MembershipBody = (Vec<BTreeSet<u64>>, Vec<(u64, String)>);

/// Reads a record from its beginning to its end.
pub(crate) struct Reader<'b> {
    object: &'static str,
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Checks the format, which comes first.
    pub fn new(object: &'static str, bytes: &'b [u8]) -> Result<Reader<'b>> {
        let mut reader = Reader { object, rest: bytes };
        match reader.u8()? {
            FORMAT => Ok(reader),
            version if version > FORMAT => Err(Error::Unsupported { object: object.into(), version }),
            version => Err(reader.damaged(format!("it has format {version}"))),
        }
    }

    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.object, what)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.damaged(format!("{N} bytes were expected, {} are left", self.rest.len())));
        };
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.damaged(format!("{other} is neither 0 nor 1"))),
        }
    }

    pub fn log_id(&mut self) -> Result<LogId> {
        let leader = LeaderId { term: self.u64()?, node_id: self.u64()? };
        Ok(LogId::new(leader, self.u64()?))
    }

    pub fn optional_log_id(&mut self) -> Result<Option<LogId>> {
        if self.flag()? { self.log_id().map(Some) } else { Ok(None) }
    }

    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest).to_vec()
    }

    pub fn postcard<T: DeserializeOwned>(&mut self) -> Result<T> {
        let decoded = postcard::take_from_bytes(self.rest);
        let (value, rest) = decoded.map_err(|error| self.damaged(error.to_string()))?;
        self.rest = rest;
        Ok(value)
    }

    pub fn end(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.damaged(format!("{} bytes too many", self.rest.len()))) }
    }
}

/// A record that begins with its format.
pub(crate) fn record() -> Vec<u8> {
    vec![FORMAT]
}

pub(crate) fn put_log_id(bytes: &mut Vec<u8>, id: &LogId) {
    let leader = id.committed_leader_id();
    for number in [leader.term, leader.node_id, id.index()] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

pub(crate) fn put_optional_log_id(bytes: &mut Vec<u8>, id: Option<&LogId>) {
    bytes.push(u8::from(id.is_some()));
    if let Some(id) = id {
        put_log_id(bytes, id);
    }
}

/// Appends the postcard encoding of a value that has one.
pub(crate) fn put_postcard(bytes: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    let encoded = postcard::to_stdvec(value);
    bytes.extend_from_slice(&encoded.map_err(|error| Error::invalid(format!("it has no encoding: {error}")))?);
    Ok(())
}

/// The key of the entry of that index.
pub(crate) fn log_key(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

/// The index in a key of the log.
pub(crate) fn log_index(key: &[u8]) -> Result<u64> {
    let bytes = key.try_into().map_err(|_| Error::damaged("a key of the log", "it does not have 8 bytes"))?;
    Ok(u64::from_be_bytes(bytes))
}

pub(crate) fn encode_vote(vote: &Vote) -> Vec<u8> {
    let mut bytes = record();
    bytes.extend_from_slice(&vote.leader_id().term.to_le_bytes());
    bytes.extend_from_slice(&vote.leader_id().node_id.to_le_bytes());
    bytes.push(u8::from(vote.is_committed()));
    bytes
}

pub(crate) fn decode_vote(bytes: &[u8]) -> Result<Vote> {
    let mut reader = Reader::new("the vote", bytes)?;
    let (term, node) = (reader.u64()?, reader.u64()?);
    let vote = if reader.flag()? { Vote::new_committed(term, node) } else { Vote::new(term, node) };
    reader.end()?;
    Ok(vote)
}

pub(crate) fn encode_node(node: u64) -> Vec<u8> {
    let mut bytes = record();
    bytes.extend_from_slice(&node.to_le_bytes());
    bytes
}

pub(crate) fn decode_node(bytes: &[u8]) -> Result<u64> {
    let mut reader = Reader::new("the number of the node", bytes)?;
    let node = reader.u64()?;
    reader.end()?;
    Ok(node)
}

pub(crate) fn encode_position(id: &LogId) -> Vec<u8> {
    let mut bytes = record();
    put_log_id(&mut bytes, id);
    bytes
}

pub(crate) fn decode_position(bytes: &[u8]) -> Result<LogId> {
    let mut reader = Reader::new("a position in the log", bytes)?;
    let id = reader.log_id()?;
    reader.end()?;
    Ok(id)
}

fn put_membership(bytes: &mut Vec<u8>, membership: &Membership) -> Result<()> {
    let nodes = membership.nodes().map(|(node, BasicNode { addr })| (*node, addr.clone())).collect();
    let body: MembershipBody = (membership.get_joint_config().clone(), nodes);
    put_postcard(bytes, &body)
}

fn read_membership(reader: &mut Reader<'_>) -> Result<Membership> {
    let (configs, nodes): MembershipBody = reader.postcard()?;
    if configs.is_empty() && nodes.is_empty() {
        // What a state machine has that was never told of any; `new` refuses it.
        return Ok(Membership::default());
    }
    let nodes: BTreeMap<u64, BasicNode> = nodes.into_iter().map(|(node, addr)| (node, BasicNode { addr })).collect();
    Membership::new(configs, nodes).map_err(|error| Error::damaged("a membership", error.to_string()))
}

pub(crate) fn encode_membership(membership: &StoredMembership) -> Result<Vec<u8>> {
    let mut bytes = record();
    put_optional_log_id(&mut bytes, membership.log_id().as_ref());
    put_membership(&mut bytes, membership.membership())?;
    Ok(bytes)
}

pub(crate) fn decode_membership(bytes: &[u8]) -> Result<StoredMembership> {
    let mut reader = Reader::new("the membership", bytes)?;
    let (id, membership) = (reader.optional_log_id()?, read_membership(&mut reader)?);
    reader.end()?;
    Ok(StoredMembership::new(id, membership))
}

pub(crate) fn encode_entry(entry: &Entry) -> Result<Vec<u8>> {
    let mut bytes = record();
    let kind = match &entry.payload {
        EntryPayload::Blank => 0,
        EntryPayload::Normal(_) => 1,
        EntryPayload::Membership(_) => 2,
    };
    bytes.push(kind);
    put_log_id(&mut bytes, &entry.log_id());
    match &entry.payload {
        EntryPayload::Blank => {}
        EntryPayload::Normal(command) => put_command(&mut bytes, command)?,
        EntryPayload::Membership(membership) => put_membership(&mut bytes, membership)?,
    }
    Ok(bytes)
}

pub(crate) fn decode_entry(bytes: &[u8]) -> Result<Entry> {
    let mut reader = Reader::new("an entry of the log", bytes)?;
    let kind = reader.u8()?;
    let id = reader.log_id()?;
    let payload = match kind {
        0 => EntryPayload::Blank,
        1 => EntryPayload::Normal(read_command(&mut reader)?),
        2 => EntryPayload::Membership(read_membership(&mut reader)?),
        other => return Err(reader.damaged(format!("{other} is no kind of entry"))),
    };
    reader.end()?;
    Ok(Entry::new(id, payload))
}

fn put_command(bytes: &mut Vec<u8>, command: &Command) -> Result<()> {
    bytes.extend_from_slice(&command.time_ms.to_le_bytes());
    match &command.request {
        Request::Apply(payload) => {
            bytes.push(0);
            bytes.extend_from_slice(payload);
        }
        Request::OpenSession => bytes.push(1),
        Request::ApplyOnce { session, number, payload } => {
            bytes.push(2);
            bytes.extend_from_slice(&session.to_le_bytes());
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(payload);
        }
        Request::Hash => bytes.push(3),
        Request::Compare { index, hashes } => {
            bytes.push(4);
            bytes.extend_from_slice(&index.to_le_bytes());
            put_postcard(bytes, hashes)?;
        }
    }
    Ok(())
}

fn read_command(reader: &mut Reader<'_>) -> Result<Command> {
    let time_ms = reader.u64()?;
    let request = match reader.u8()? {
        0 => Request::Apply(reader.rest()),
        1 => Request::OpenSession,
        2 => Request::ApplyOnce { session: reader.u64()?, number: reader.u64()?, payload: reader.rest() },
        3 => Request::Hash,
        4 => Request::Compare { index: reader.u64()?, hashes: reader.postcard()? },
        other => return Err(reader.damaged(format!("{other} is no kind of request"))),
    };
    Ok(Command { time_ms, request })
}
