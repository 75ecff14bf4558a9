//! Answers the messages of other nodes.

use super::commands::is_known;
use super::messages::{Changed, Hashes, Header, Message, Proposed, Who, decode, encode};
use super::node::Node;
use super::payload::{MOST_PAYLOAD_BYTES, Payload};
use super::transport::Handler;
use esker_raft::{Error, LogId, Request, Snapshot, TransferReply, TransferRequest, TypeConfig, Vote};
use hyper::body::Bytes;
use openraft::raft::SnapshotResponse;
use std::fmt::Display;
use std::sync::Arc;

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Handler for Node {
    async fn handle(self: Arc<Self>, message: Bytes) -> Result<Vec<u8>, String> {
        let (header, message) = decode::<(Header, Message)>(&message)?;
        if !matches!(message, Message::Who | Message::Join) {
            self.identity.check(&header)?;
        }
        match message {
            Message::Who => encode(&Who { node: self.config.node, cluster: self.cluster_or_data().await? }),
            Message::Append(request) => encode(&self.raft.append_entries(request).await.map_err(text)?),
            Message::Vote(request) => encode(&self.raft.vote(request).await.map_err(text)?),
            Message::PreVote(request) => encode(&self.raft.pre_vote(request).await.map_err(text)?),
            Message::TransferLeader(request) => encode(&self.raft.handle_transfer_leader(request).await.map_err(text)?),
            Message::Snapshot(request) => encode(&self.receive(request).await?),
            Message::Install(vote, last) => encode(&self.install(vote, last).await?),
            Message::Propose(request) => {
                let proposed = match check(&request) {
                    Ok(()) => self.propose_here(request).await,
                    Err(why) => Proposed::Refused(why),
                };
                encode(&proposed)
            }
            Message::ReadIndex => encode(&self.read_index_here().await),
            Message::Member(change) => encode(&self.change_here(change).await),
            Message::Hashes(index) => encode::<Hashes>(&self.hashes_here(index).await?),
            Message::Join => encode::<Changed>(&self.join(header).await),
        }
    }
}

/// Refuses what the replicas could not apply: once it is in the log, they stop at it.
fn check(request: &Request) -> Result<(), String> {
    let (Request::Apply(payload) | Request::ApplyOnce { payload, .. }) = request else { return Ok(()) };
    if payload.len() > MOST_PAYLOAD_BYTES {
        return Err(format!("a payload has more than {MOST_PAYLOAD_BYTES} bytes"));
    }
    match Payload::from_bytes(payload).map_err(text)? {
        Payload::Commands(list) => match list.calls.iter().find(|call| !is_known(call)) {
            Some(_) => Err("a command is not known to the leader; run one version on all nodes".into()),
            None => Ok(()),
        },
        Payload::Tick => Ok(()),
    }
}

impl Node {
    /// Is in the cluster of the sender from now on. A node is told so before it is made a member,
    /// and takes no other message before: one whose directory was lost or emptied has forgotten
    /// for whom it voted and what it confirmed, and must not count as the member that it was.
    async fn join(&self, header: Header) -> Changed {
        let known = self.cluster_or_data().await?;
        if known != 0 || header.to != self.config.node || header.cluster == 0 {
            return self.identity.check(&header);
        }
        let identity = Arc::clone(&self.identity);
        let joined = tokio::task::spawn_blocking(move || identity.join(header.cluster)).await;
        joined.map_err(text)?.map_err(text)?;
        // Another one may have been faster.
        self.identity.check(&header)
    }

    /// The number of the node's cluster. A log without one, as of an import that was cut short, is
    /// that of no other cluster.
    async fn cluster_or_data(&self) -> Result<u128, String> {
        match self.identity.cluster() {
            0 if self.raft.is_initialized().await.map_err(text)? => Ok(u128::MAX),
            cluster => Ok(cluster),
        }
    }

    /// Takes in a piece of a snapshot.
    async fn receive(self: &Arc<Self>, request: TransferRequest) -> Result<TransferReply, String> {
        let machine = self.machine.clone();
        let received = tokio::task::spawn_blocking(move || machine.receive(request)).await.map_err(text)?;
        if let Err(error @ Error::Stopped { .. }) = &received {
            // openraft does not hear of what arrives: the node would run on, and never have the
            // state.
            tracing::error!(%error, "no snapshot can be received any more: the node ends");
            let node = Arc::clone(self);
            // A task of its own: this one ends with the connection.
            drop(tokio::spawn(async move { node.raft.shutdown().await }));
        }
        received.map_err(text)
    }

    /// Puts the snapshot that has arrived into the place of the state.
    async fn install(&self, vote: Vote, last: Option<LogId>) -> Result<SnapshotResponse<TypeConfig>, String> {
        let snapshot = self.machine.received().ok_or("no snapshot has arrived whole; send it again")?;
        let meta = snapshot.manifest().meta().map_err(text)?;
        if meta.last_log_id != last {
            return Err("another snapshot has arrived; send it again".into());
        }
        self.raft.install_full_snapshot(vote, Snapshot { meta, snapshot }).await.map_err(text)
    }
}
