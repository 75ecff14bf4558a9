//! Answers the messages of other nodes.

use super::messages::{Hashes, Message, decode, encode};
use super::node::Node;
use super::transport::Handler;
use esker_raft::TypeConfig;
use esker_raft::{LogId, Snapshot, Vote};
use hyper::body::Bytes;
use openraft::raft::SnapshotResponse;
use std::fmt::Display;
use std::sync::Arc;

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Handler for Node {
    async fn handle(self: Arc<Self>, message: Bytes) -> Result<Vec<u8>, String> {
        match decode(&message)? {
            Message::Append(request) => encode(&self.raft.append_entries(request).await.map_err(text)?),
            Message::Vote(request) => encode(&self.raft.vote(request).await.map_err(text)?),
            Message::PreVote(request) => encode(&self.raft.pre_vote(request).await.map_err(text)?),
            Message::TransferLeader(request) => encode(&self.raft.handle_transfer_leader(request).await.map_err(text)?),
            Message::Snapshot(request) => {
                let machine = self.machine.clone();
                let received = tokio::task::spawn_blocking(move || machine.receive(request)).await;
                encode(&received.map_err(text)?.map_err(text)?)
            }
            Message::Install(vote, last) => encode(&self.install(vote, last).await?),
            Message::Propose(request) => encode(&self.propose_here(request).await),
            Message::ReadIndex => encode(&self.read_index_here().await),
            Message::Member(change) => encode(&self.change_here(change).await),
            Message::Hashes(index) => encode::<Hashes>(&self.hashes_here(index).await?),
        }
    }
}

impl Node {
    /// Puts the snapshot that has arrived into the place of the state.
    async fn install(&self, vote: Vote, last: Option<LogId>) -> Result<SnapshotResponse<TypeConfig>, String> {
        let snapshot = self.machine.received().ok_or("no snapshot has arrived whole; send it again")?;
        let meta = snapshot.manifest().meta().map_err(text)?;
        if meta.last_log_id != last {
            return Err("another snapshot has arrived; send it again".into());
        }
        let installed = self.raft.install_full_snapshot(vote, Snapshot { meta, snapshot }).await.map_err(text)?;
        // No entry has told what its entries filled.
        self.notices.tell_all();
        Ok(installed)
    }
}
