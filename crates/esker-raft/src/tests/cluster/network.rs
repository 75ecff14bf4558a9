//! The simulated network: messages between replicas of one process.

use super::super::world::{pause, spawn};
use super::replicas::Machine;
use crate::{SnapshotFiles, TransferReply, TypeConfig, Vote};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, OptionalSend, Raft};
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A replica as others reach it.
#[derive(Clone)]
pub struct Reachable {
    pub raft: Raft<TypeConfig, Machine>,
    pub machine: Machine,
    /// How often the node has started: what an earlier start sent is lost with it.
    pub start: u64,
}

/// The network of a cluster.
#[derive(Clone)]
pub struct Network {
    state: Arc<Mutex<State>>,
}

struct State {
    reachable: BTreeMap<u64, Reachable>,
    /// From, to.
    cut: BTreeSet<(u64, u64)>,
    /// The longest delay of most messages in milliseconds.
    usual_delay_ms: u64,
    /// How many of a hundred messages are lost.
    lost_percent: u8,
    random: StdRng,
    installed: u64,
    repeated: u64,
    /// The candidates since votes are noted, each with the nodes that voted for it.
    granted: BTreeMap<u64, BTreeSet<u64>>,
}

/// The bytes of a snapshot in a message.
const PIECE: usize = 512;
/// The longest delay of most messages in milliseconds when nothing is wrong, and how many of a
/// hundred are lost.
const USUAL: (u64, u8) = (10, 2);

impl Network {
    pub fn new(random: StdRng) -> Network {
        let (reachable, cut) = (BTreeMap::new(), BTreeSet::new());
        let (usual_delay_ms, lost_percent) = USUAL;
        let granted = BTreeMap::new();
        let state = State { reachable, cut, usual_delay_ms, lost_percent, random, installed: 0, repeated: 0, granted };
        Network { state: Arc::new(Mutex::new(state)) }
    }

    pub fn join(&self, node: u64, reachable: Reachable) {
        self.state.lock().reachable.insert(node, reachable);
    }

    pub fn leave(&self, node: u64) -> Option<Reachable> {
        self.state.lock().reachable.remove(&node)
    }

    pub fn reach(&self, node: u64) -> Option<Reachable> {
        self.state.lock().reachable.get(&node).cloned()
    }

    /// Cuts these lines, and no other.
    pub fn cut(&self, lines: impl IntoIterator<Item = (u64, u64)>) {
        self.state.lock().cut = lines.into_iter().collect();
    }

    /// Makes messages take up to so long, and loses so many of a hundred; or as usual.
    pub fn disturb(&self, how: Option<(u64, u8)>) {
        let state = &mut *self.state.lock();
        (state.usual_delay_ms, state.lost_percent) = how.unwrap_or(USUAL);
    }

    pub fn installed(&self) -> u64 {
        self.state.lock().installed
    }

    /// How many messages have come a second time.
    pub fn repeated(&self) -> u64 {
        self.state.lock().repeated
    }

    /// Notes votes from now on, and forgets those before.
    pub fn begin_to_note_votes(&self) {
        self.state.lock().granted.clear();
    }

    /// A candidate that has got that many votes of other nodes since then, and these nodes.
    pub fn elected(&self, votes: usize) -> Option<(u64, BTreeSet<u64>)> {
        let state = self.state.lock();
        state.granted.iter().find(|(_, voters)| voters.len() >= votes).map(|(node, voters)| (*node, voters.clone()))
    }

    /// Lets a message pass, after a while, or loses it.
    async fn pass(&self, from: u64, to: u64) -> Result<(), String> {
        let (delay, is_lost) = {
            let state = &mut *self.state.lock();
            let (random, usual_ms) = (&mut state.random, state.usual_delay_ms.max(1));
            let most_ms = if random.random_range(0..20) == 0 { usual_ms.max(200) } else { usual_ms };
            (random.random_range(0..most_ms), random.random_range(0..100) < state.lost_percent)
        };
        pause(Duration::from_millis(delay)).await;
        let is_cut = self.state.lock().cut.contains(&(from, to));
        if is_lost || is_cut { Err(format!("the message from {from} to {to} is lost")) } else { Ok(()) }
    }

    /// Brings a message a second time, much later, now and then: behind newer ones, and after the
    /// sender has given it up.
    fn repeat<F: Future<Output: Send> + Send + 'static>(
        &self,
        to: u64,
        bring: impl FnOnce(Reachable) -> F + Send + 'static,
    ) {
        let late_ms = {
            let state = &mut *self.state.lock();
            if state.random.random_range(0..50) > 0 {
                return;
            }
            state.repeated += 1;
            state.random.random_range(20..3_000)
        };
        let network = self.clone();
        spawn(async move {
            pause(Duration::from_millis(late_ms)).await;
            if let Some(target) = network.reach(to) {
                drop(bring(target).await);
            }
        });
    }
}

/// What a start of a node sends with.
#[derive(Clone)]
pub struct Sender {
    pub network: Network,
    pub node: u64,
    pub start: u64,
}

/// The line from a node to another one.
pub struct Line {
    sender: Sender,
    target: u64,
}

impl RaftNetworkFactory<TypeConfig> for Sender {
    type Network = Line;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Line {
        Line { sender: self.clone(), target }
    }
}

impl Line {
    /// Brings a message there, has it answered, and brings the answer back.
    async fn call<T, F: Future<Output = Result<T, String>>>(
        &self,
        option: &RPCOption,
        answer: impl FnOnce(Reachable) -> F,
    ) -> Result<T, String> {
        let Sender { network, node, start } = &self.sender;
        let exchange = async {
            let is_current = || network.reach(*node).is_some_and(|reachable| reachable.start == *start);
            if !is_current() {
                return Err("the sender is gone".to_string());
            }
            network.pass(*node, self.target).await?;
            let target = network.reach(self.target).ok_or("the target is down")?;
            let answer = answer(target).await?;
            network.pass(self.target, *node).await?;
            if is_current() { Ok(answer) } else { Err("the sender is gone".into()) }
        };
        tokio::time::timeout(option.hard_ttl(), exchange).await.unwrap_or_else(|_| Err("no answer in time".into()))
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn unreachable(why: String) -> RPCError<TypeConfig> {
    RPCError::Unreachable(Unreachable::from_string(why))
}

impl RaftNetworkV2<TypeConfig> for Line {
    type SnapshotData = SnapshotFiles;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        let again = rpc.clone();
        self.sender.network.repeat(self.target, |target| async move { target.raft.append_entries(again).await });
        let answer = |target: Reachable| async move { target.raft.append_entries(rpc).await.map_err(text) };
        self.call(&option, answer).await.map_err(unreachable)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let again = rpc.clone();
        self.sender.network.repeat(self.target, |target| async move { target.raft.vote(again).await });
        let (network, voter, candidate) = (&self.sender.network, self.target, self.sender.node);
        let answer = |target: Reachable| async move {
            let answer = target.raft.vote(rpc).await.map_err(text)?;
            if answer.vote_granted {
                network.state.lock().granted.entry(candidate).or_default().insert(voter);
            }
            Ok(answer)
        };
        self.call(&option, answer).await.map_err(unreachable)
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = |target: Reachable| async move { target.raft.handle_transfer_leader(rpc).await.map_err(text) };
        self.call(&option, answer).await.map_err(unreachable)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: crate::Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let lost = |why: String| StreamingError::Network(NetworkError::from_string(why));
        let files = snapshot.snapshot;
        let mut request = files.begin();
        loop {
            let message = request.clone();
            let receive = |target: Reachable| async move {
                let received = target.machine.receive(message);
                if matches!(received, Err(crate::Error::Stopped { .. })) {
                    // As `esker serve` does: openraft does not hear of it, and would run on.
                    spawn(async move { drop(target.raft.shutdown().await) });
                }
                received.map_err(text)
            };
            // A message that is lost is sent again, so that a transfer is seldom begun anew.
            match self.call(&option, receive).await {
                Ok(TransferReply::Wanted(place)) => {
                    request = files.piece(place, PIECE).map_err(|error| lost(text(error)))?
                }
                Ok(TransferReply::Complete) => break,
                Ok(TransferReply::Unknown) => request = files.begin(),
                Err(why) => return Err(lost(why)),
            }
        }
        let meta = snapshot.meta;
        let install = |target: Reachable| async move {
            let received = target.machine.received().ok_or("it was replaced by another one")?;
            if received.manifest().meta().map_err(text)? != meta {
                return Err("another snapshot has arrived".to_string());
            }
            let snapshot = crate::Snapshot { meta, snapshot: received };
            target.raft.install_full_snapshot(vote, snapshot).await.map_err(text)
        };
        let installed = self.call(&RPCOption::new(Duration::from_secs(5)), install).await.map_err(lost)?;
        self.sender.network.state.lock().installed += 1;
        Ok(installed)
    }
}
