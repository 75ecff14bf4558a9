//! The network as openraft calls it.

use super::address::Address;
use super::messages::{Message, payload_bytes, transfer_time};
use super::peers::{CallError, Peers};
use esker_raft::{Entry, Place, Snapshot, SnapshotFiles, TransferReply, TypeConfig, Vote};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, EntryPayload, OptionalSend};
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The bytes of a snapshot in a message.
const PIECE_BYTES: usize = 1 << 20;
/// How long a message of a snapshot may take.
const PIECE: Duration = Duration::from_secs(20);
/// How long the installation may take: files are linked, and a database is opened.
const INSTALL: Duration = Duration::from_secs(120);
/// How long entries may take beside their way.
const ENTRIES: Duration = Duration::from_secs(3);
/// How often a piece is sent again before the transfer is given up; the next one goes on there.
const TRIES: u32 = 5;

/// Makes lines to nodes.
#[derive(Clone)]
pub struct Network(pub Arc<Peers>);

/// The line to a node.
pub struct Line {
    peers: Arc<Peers>,
    target: u64,
    address: Result<String, String>,
}

/// What of a snapshot has arrived, and how often it was sent again since more of it had.
#[derive(Default)]
struct Attempts {
    failures: u32,
    best: (u32, u64),
}

impl Attempts {
    /// The node wants what begins there. A file that arrives damaged is sent anew from its first
    /// byte, which is nothing new.
    fn advance(&mut self, place: Place) {
        let place = (place.file, place.offset);
        if place > self.best {
            *self = Attempts { failures: 0, best: place };
        }
    }

    /// Whether to send again.
    fn fail(&mut self) -> bool {
        self.failures += 1;
        self.failures <= TRIES
    }
}

/// The bytes of an entry that matter for its way.
fn bytes_of(entry: &Entry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(command) => payload_bytes(&command.request),
        _ => 0,
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Line;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Line {
        Line { peers: Arc::clone(&self.0), target, address: Address::parse(&node.addr).map(|address| address.raft()) }
    }
}

impl Line {
    async fn call<T: DeserializeOwned>(&self, message: &Message, patience: Duration) -> Result<T, CallError> {
        let address = self.address.as_ref().map_err(|why| CallError::NotSent(why.clone()))?;
        self.peers.call((self.target, address), message, patience).await
    }

    async fn ask<T: DeserializeOwned>(&self, message: Message, option: &RPCOption) -> Result<T, RPCError<TypeConfig>> {
        self.call(&message, option.hard_ttl()).await.map_err(|error| match error {
            // openraft tries a node that is not there less often.
            CallError::NotSent(why) => RPCError::Unreachable(Unreachable::from_string(why)),
            CallError::NoAnswer(why) | CallError::Refused(why) => RPCError::Network(NetworkError::from_string(why)),
        })
    }

    /// Sends the files until the other node has them all.
    async fn send(&self, files: &SnapshotFiles) -> Result<(), String> {
        let mut request = files.begin();
        let mut attempts = Attempts::default();
        loop {
            let message = Message::Snapshot(request);
            request = match self.call(&message, PIECE).await {
                Ok(TransferReply::Complete) => return Ok(()),
                Ok(TransferReply::Wanted(place)) => {
                    attempts.advance(place);
                    let files = files.clone();
                    let piece = tokio::task::spawn_blocking(move || files.piece(place, PIECE_BYTES)).await;
                    piece.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?
                }
                Ok(TransferReply::Unknown) if attempts.fail() => files.begin(),
                Ok(TransferReply::Unknown) => return Err("the node does not take the snapshot".into()),
                Err(error) if attempts.fail() => {
                    tracing::debug!(%error, "a piece of a snapshot is sent again");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    files.begin()
                }
                Err(error) => return Err(error.to_string()),
            };
        }
    }
}

impl RaftNetworkV2<TypeConfig> for Line {
    type SnapshotData = SnapshotFiles;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        // Signs of life keep openraft's limit; entries may take longer on a slow line or device.
        let patience = match rpc.entries.iter().map(bytes_of).sum() {
            0 if rpc.entries.is_empty() => option.hard_ttl(),
            bytes => option.hard_ttl().max(ENTRIES + transfer_time(bytes)),
        };
        self.ask(Message::Append(rpc), &RPCOption::new(patience)).await
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.ask(Message::Vote(rpc), &option).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.ask(Message::PreVote(rpc), &option).await
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.ask(Message::TransferLeader(rpc), &option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let lost = |why: String| StreamingError::Network(NetworkError::from_string(why));
        let sent = async {
            self.send(&snapshot.snapshot).await?;
            let install = Message::Install(vote, snapshot.snapshot.manifest().last_log_id());
            self.call(&install, INSTALL).await.map_err(|error| error.to_string())
        };
        tokio::select! {
            sent = sent => sent.map_err(lost),
            closed = cancel => Err(StreamingError::Closed(closed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_arrives_damaged_is_given_up() {
        let mut attempts = Attempts::default();
        let mut sent = 0;
        for offset in [0, 100, 200] {
            attempts.advance(Place { file: 0, offset });
        }
        // The file is damaged at the sender: it comes whole each time, and never with its hash.
        while attempts.fail() {
            sent += 1;
            assert!(sent <= TRIES, "it is sent without end");
            [0, 100, 200].into_iter().for_each(|offset| attempts.advance(Place { file: 0, offset }));
        }
        // A device that fails now and then ends no transfer that goes on.
        attempts.advance(Place { file: 1, offset: 0 });
        assert!(attempts.fail());
    }

    #[test]
    fn long_entries_have_the_time_that_they_take() {
        assert!(transfer_time(0).is_zero());
        assert!(transfer_time(super::super::payload::MOST_PAYLOAD_BYTES) >= Duration::from_secs(60));
    }
}
