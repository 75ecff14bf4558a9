//! The network as openraft calls it.

use super::address::Address;
use super::messages::Message;
use super::peers::{CallError, Peers};
use esker_raft::{Snapshot, SnapshotFiles, TransferReply, TypeConfig, Vote};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, OptionalSend};
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
/// How long entries may take.
const ENTRIES: Duration = Duration::from_secs(3);
/// How often a piece is sent again before the transfer is given up; the next one goes on there.
const TRIES: u32 = 5;

/// Makes lines to nodes.
#[derive(Clone)]
pub struct Network(pub Arc<Peers>);

/// The line to a node.
pub struct Line {
    peers: Arc<Peers>,
    address: Result<String, String>,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Line;

    async fn new_client(&mut self, _target: u64, node: &BasicNode) -> Line {
        Line { peers: Arc::clone(&self.0), address: Address::parse(&node.addr).map(|address| address.raft()) }
    }
}

impl Line {
    async fn call<T: DeserializeOwned>(&self, message: &Message, patience: Duration) -> Result<T, CallError> {
        let address = self.address.as_ref().map_err(|why| CallError::NotSent(why.clone()))?;
        self.peers.call(address, message, patience).await
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
        let mut failures = 0;
        loop {
            let message = Message::Snapshot(request);
            request = match self.call(&message, PIECE).await {
                Ok(TransferReply::Complete) => return Ok(()),
                Ok(TransferReply::Wanted(place)) => {
                    failures = 0;
                    let files = files.clone();
                    let piece = tokio::task::spawn_blocking(move || files.piece(place, PIECE_BYTES)).await;
                    piece.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?
                }
                Ok(TransferReply::Unknown) if failures < TRIES => {
                    failures += 1;
                    files.begin()
                }
                Ok(TransferReply::Unknown) => return Err("the node does not take the snapshot".into()),
                Err(error) if failures < TRIES => {
                    failures += 1;
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
        let patience = if rpc.entries.is_empty() { option.hard_ttl() } else { option.hard_ttl().max(ENTRIES) };
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
