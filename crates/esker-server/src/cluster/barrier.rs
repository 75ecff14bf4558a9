//! Linearizable reads: a read waits until the state of this node has every write that was
//! acknowledged when the read began. Reads that come together wait for one round of messages.

use super::messages::{Message, ReadIndex};
use super::node::{BarrierRequest, Node};
use super::planted::Fault;
use super::proposals::ProposeError;
use openraft::ReadPolicy;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How long one leader may take.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

impl Node {
    /// The entry from which on a read is linearizable, if this node leads and a majority has
    /// confirmed it.
    pub async fn read_index_here(&self) -> ReadIndex {
        if self.planted.has(Fault::DeposedReads) && self.leader().is_some_and(|leader| leader.is_here) {
            return ReadIndex::At(self.database().applied().0.map_or(0, |id| id.index()));
        }
        match timeout(ATTEMPT, self.raft.get_read_log_id(ReadPolicy::ReadIndex)).await {
            Ok(Ok((id, _))) => ReadIndex::At(id.index()),
            Ok(Err(error)) => ReadIndex::NotLeader(error.to_string()),
            Err(_) => ReadIndex::NotLeader("no majority has confirmed the leader in time".into()),
        }
    }

    /// The entry from which on a read is linearizable, asked of the leader that this node knows.
    pub async fn read_index(&self) -> ReadIndex {
        let Some(leader) = self.leader() else { return ReadIndex::NotLeader("no leader is known".into()) };
        if leader.is_here {
            return self.read_index_here().await;
        }
        let Some(address) = leader.address else { return ReadIndex::NotLeader("the leader has no address".into()) };
        let asked = self.peers.call((leader.id, &address.raft()), &Message::ReadIndex, ATTEMPT).await;
        asked.unwrap_or_else(|error| ReadIndex::NotLeader(error.to_string()))
    }

    /// Waits until a read of the state is linearizable.
    ///
    /// # Errors
    /// `NoLeader` if that cannot be known in time.
    pub async fn wait_readable(&self) -> Result<(), ProposeError> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.barriers.send(sender).is_ok();
        match if sent { receiver.await.ok() } else { None } {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => {
                tracing::debug!(why, "a read has found no leader");
                Err(ProposeError::NoLeader)
            }
            None => Err(ProposeError::NoLeader),
        }
    }

    /// Waits until the state of this node has the entry of an index.
    ///
    /// # Errors
    /// `NoLeader` if it does not come in time.
    pub async fn wait_applied(&self, index: u64) -> Result<(), ProposeError> {
        let waited = self.raft.wait(Some(self.patience())).applied_index_at_least(Some(index), "a read").await;
        waited.map(drop).map_err(|error| {
            tracing::debug!(%error, "a read has not found what its connection wrote");
            ProposeError::NoLeader
        })
    }

    /// One round, for all reads that have begun before it.
    async fn round(&self) -> Result<(), String> {
        let deadline = Instant::now() + self.patience();
        loop {
            let why = match self.read_index().await {
                ReadIndex::At(index) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let waited = self.raft.wait(Some(left)).applied_index_at_least(Some(index), "a read").await;
                    return waited.map(drop).map_err(|error| error.to_string());
                }
                ReadIndex::NotLeader(why) => why,
            };
            if Instant::now() >= deadline {
                return Err(why);
            }
            sleep(PAUSE).await;
        }
    }
}

/// Serves reads, a round at a time, until the node is gone.
pub async fn serve(node: Arc<Node>, mut requests: mpsc::UnboundedReceiver<BarrierRequest>) {
    let mut waiting = Vec::new();
    while requests.recv_many(&mut waiting, usize::MAX).await > 0 {
        let result = node.round().await;
        for request in waiting.drain(..) {
            // A client that has gone waits no more.
            let _ = request.send(result.clone());
        }
    }
}
