//! The replicas of a simulated cluster, with their disks.

use super::super::history::{hash, options};
use super::super::world::{ms_since, pause, random, small_on};
use super::network::{Network, Reachable, Sender};
use crate::{
    Apply, Command, Context, Executor, KeyValue, LogStore, RangeHash, Rejection, Reply, Request, StateMachine,
};
use esker::env::Env;
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::UInt64Add;
use esker::{Db, Keyspace, KeyspaceOptions, Ttl};
use openraft::async_runtime::watch::WatchReceiver;
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A fault of all replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Planted {
    Nothing,
    EarlyAcknowledgement,
    RestoredLeaders,
    LostVotes,
    AppliedTwice,
    LocalClocks,
    /// Nodes start with an older copy of their own disks.
    OldCopies,
}

/// The commands of the clients, perhaps with a fault. Each writes down its time, for clients to
/// see.
#[derive(Clone)]
pub struct Commands {
    inner: KeyValue,
    planted: Planted,
    skew_ms: u64,
}

pub type Machine = StateMachine<Commands>;

impl Apply for Commands {
    type Keyspaces = BTreeMap<String, Keyspace>;

    fn open(&self, db: &Db) -> esker::Result<Self::Keyspaces> {
        self.inner.open(db)
    }

    fn apply(&self, context: &mut Context<'_, Self::Keyspaces>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
        let time_ms = context.time_ms.to_le_bytes();
        context.transaction.put(&context.keyspaces["times"], "now", time_ms)?;
        match self.planted {
            Planted::AppliedTwice => drop(self.inner.apply(context, payload)?),
            Planted::LocalClocks => context.time_ms += self.skew_ms,
            _ => {}
        }
        self.inner.apply(context, payload)
    }
}

/// The replicas, up or down.
#[derive(Clone)]
pub struct Replicas {
    pub network: Network,
    nodes: Arc<Mutex<BTreeMap<u64, Node>>>,
    planted: Planted,
    began: Instant,
    /// What nodes had when they stopped earlier, for a fault.
    copies: Arc<Mutex<BTreeMap<u64, MemEnv>>>,
}

/// What a node has whether it runs or not.
struct Node {
    disk: MemEnv,
    /// How far its clock is ahead.
    ahead_ms: u64,
}

impl Node {
    /// A node with an empty disk, and a clock that does not show what that of another one shows.
    fn new(number: u64) -> Node {
        Node { disk: MemEnv::new(), ahead_ms: number * 37 }
    }
}

/// Copies the directory of the state machine to an empty disk, as an operator copies files.
fn copy_state(from: &MemEnv, to: &MemEnv) {
    let is_of_it = |path: &Path| path.components().any(|part| part.as_os_str() == "state") && !path.ends_with("LOCK");
    for path in from.files().into_iter().filter(|path| is_of_it(path)) {
        if let Some(bytes) = from.file_bytes(&path) {
            to.set_file_bytes(&path, bytes);
        }
    }
}

fn config(planted: Planted) -> Arc<Config> {
    let config = Config {
        heartbeat_interval: 50,
        election_timeout_min: 200,
        election_timeout_max: 400,
        install_snapshot_timeout: 1_000,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(8),
        max_in_snapshot_log_to_keep: 2,
        max_payload_entries: 16,
        // A leader whose follower lacks what it had confirmed ends in a build with assertions: the
        // clients are to notice it.
        allow_log_reversion: Some(planted == Planted::OldCopies),
        ..Config::default()
    };
    Arc::new(config.validate().unwrap())
}

impl Replicas {
    /// Starts a cluster of that many nodes, and waits for a leader.
    pub async fn start(seed: u64, nodes: u64, planted: Planted) -> Result<Replicas, String> {
        let all = Arc::new(Mutex::new((1..=nodes).map(|node| (node, Node::new(node))).collect()));
        let (network, copies) = (Network::new(random(seed)), Arc::default());
        let replicas = Replicas { network, nodes: all, planted, began: Instant::now(), copies };
        for node in replicas.nodes() {
            replicas.boot(node, 0).await?;
        }
        let members: BTreeMap<u64, BasicNode> = (1..=nodes).map(|node| (node, BasicNode::new(""))).collect();
        let first = replicas.network.reach(1).ok_or("node 1 is down")?;
        first.raft.initialize(members).await.map_err(|error| error.to_string())?;
        Ok(replicas)
    }

    /// Starts a node on what its disk holds.
    pub async fn boot(&self, node: u64, start: u64) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| format!("node {node} does not start: {error}");
        let env: Arc<dyn Env> = Arc::new(self.disk(node));
        let db = Db::open("log", small_on(&env)).map_err(|error| text(&error))?;
        let log = LogStore::open(&db, node, Executor::InPlace).map_err(|error| text(&error))?;
        let early = self.planted == Planted::EarlyAcknowledgement;
        log.planted().early_acknowledgement.store(early, Ordering::Relaxed);
        let restored = self.planted == Planted::RestoredLeaders;
        log.planted().restored_leaders.store(restored, Ordering::Relaxed);
        log.planted().lost_votes.store(self.planted == Planted::LostVotes, Ordering::Relaxed);
        let inner = KeyValue::new()
            .keyspace("registers", KeyspaceOptions::default())
            .keyspace("members", KeyspaceOptions::default())
            .keyspace("times", KeyspaceOptions::default())
            .keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add))
            .keyspace("leases", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }));
        let commands = Commands { inner, planted: self.planted, skew_ms: node };
        let machine = StateMachine::open("state", commands, options(env.clone(), small_on(&env)));
        let machine = machine.map_err(|error| text(&error))?;
        machine.reconcile(&log).map_err(|error| text(&error))?;
        let sender = Sender { network: self.network.clone(), node, start };
        let raft =
            Raft::new(node, config(self.planted), sender, log, machine.clone()).await.map_err(|error| text(&error))?;
        self.network.join(node, Reachable { raft, machine, start });
        Ok(())
    }

    /// The nodes, up or down.
    pub fn nodes(&self) -> Vec<u64> {
        self.nodes.lock().keys().copied().collect()
    }

    /// The disk of a node.
    pub fn disk(&self, node: u64) -> MemEnv {
        self.nodes.lock()[&node].disk.clone()
    }

    /// Sets the clock of a node so far ahead of the slowest one there can be.
    pub fn set_clock(&self, node: u64, ahead_ms: u64) {
        if let Some(node) = self.nodes.lock().get_mut(&node) {
            node.ahead_ms = ahead_ms;
        }
    }

    /// Whether a node runs that has given up, as after an error of its disk.
    pub fn has_stopped(&self, node: u64) -> bool {
        let metrics = self.network.reach(node).map(|reachable| reachable.raft.metrics());
        metrics.is_some_and(|metrics| metrics.borrow_watched().running_state.is_err())
    }

    /// Starts a node that no member knows: with an empty disk, or with a copy of the state of
    /// another node, and no log. Its number, which no node had before.
    pub async fn begin(&self, state: Option<&MemEnv>) -> Result<u64, String> {
        let node = self.nodes.lock().keys().last().map_or(1, |last| last + 1);
        let new = Node::new(node);
        if let Some(state) = state {
            copy_state(state, &new.disk);
        }
        self.nodes.lock().insert(node, new);
        self.boot(node, 0).await?;
        Ok(node)
    }

    /// Tries to put one node in the place of another one. When the cluster has agreed to that, the
    /// other one is gone with its disk; until then this is to be tried again.
    pub async fn replace(&self, old: u64, new: u64) -> bool {
        let leader = self.leader().await.and_then(|leader| self.network.reach(leader));
        let Some(leader) = leader else { return false };
        let learn = leader.raft.add_learner(new, BasicNode::new(""), false);
        if !matches!(timeout(Duration::from_secs(2), learn).await, Ok(Ok(_))) {
            return false;
        }
        let voters: BTreeSet<u64> = self.nodes().into_iter().filter(|node| *node != old).collect();
        let change = leader.raft.change_membership(voters, false);
        if !matches!(timeout(Duration::from_secs(4), change).await, Ok(Ok(_))) {
            return false;
        }
        self.crash(old, None, 0).await;
        self.nodes.lock().remove(&old);
        true
    }

    /// Stops a node at once, and leaves on its disk what the power loss leaves; without a mode only
    /// the process is killed. Its next start.
    pub async fn crash(&self, node: u64, mode: Option<CrashMode>, seed: u64) -> Option<u64> {
        let reachable = self.network.leave(node)?;
        let disk = self.disk(node);
        let image = match mode {
            Some(mode) => disk.crash(&mode, seed),
            None => disk.kill(),
        };
        // Nothing more reaches the disk while the tasks of the node end.
        disk.crash_after(disk.mutations());
        drop(timeout(Duration::from_secs(10), reachable.raft.shutdown()).await);
        let mut left = image;
        if self.planted == Planted::OldCopies {
            // What it had when it stopped the time before.
            let copy = left.kill();
            left = self.copies.lock().insert(node, copy).unwrap_or(left);
        }
        if let Some(node) = self.nodes.lock().get_mut(&node) {
            node.disk = left;
        }
        Some(reachable.start + 1)
    }

    /// For how long the cluster has run.
    pub fn ran_ms(&self) -> u64 {
        ms_since(self.began)
    }

    /// What the clock of a node shows.
    pub fn time_ms(&self, node: u64) -> u64 {
        let ahead_ms = self.nodes.lock().get(&node).map_or(0, |node| node.ahead_ms);
        1_000_000 + ms_since(self.began) + ahead_ms
    }

    /// The leader as the nodes see it.
    pub async fn leader(&self) -> Option<u64> {
        for node in self.nodes() {
            if let Some(reachable) = self.network.reach(node)
                && let Some(leader) = reachable.raft.current_leader().await
            {
                return Some(leader);
            }
        }
        None
    }

    /// Sends a command to the leader until it is answered.
    async fn command(&self, request: Request) -> Result<(u64, Reply), String> {
        for _ in 0..200 {
            if let Some(leader) = self.leader().await
                && let Some(reachable) = self.network.reach(leader)
            {
                let command = Command { time_ms: self.time_ms(leader), request: request.clone() };
                let answer = timeout(Duration::from_secs(2), reachable.raft.client_write(command)).await;
                if let Ok(Ok(answer)) = answer {
                    return Ok((answer.log_id.index(), answer.data));
                }
            }
            pause(Duration::from_millis(100)).await;
        }
        Err(format!("no leader takes a command: {}", self.describe().await))
    }

    /// Waits until all nodes have applied an entry.
    async fn applied(&self, index: u64) -> Result<(), String> {
        for _ in 0..600 {
            let all = self.nodes().into_iter().all(|node| {
                let position = self.network.reach(node).and_then(|reachable| reachable.machine.database().applied().0);
                position.is_some_and(|id| id.index() >= index)
            });
            if all {
                return Ok(());
            }
            pause(Duration::from_millis(100)).await;
        }
        Err(format!("not all nodes apply entry {index}: {}", self.describe().await))
    }

    pub async fn describe(&self) -> String {
        let nodes = self.nodes().into_iter().map(|node| match self.network.reach(node) {
            None => format!("{node} is down"),
            Some(reachable) => {
                let metrics = reachable.raft.metrics().borrow_watched().clone();
                format!("{node}: {:?}, {metrics}", metrics.running_state)
            }
        });
        nodes.collect::<Vec<_>>().join("; ")
    }

    /// All nodes come to the same state, and say so themselves.
    pub async fn agree(&self) -> Result<(), String> {
        let (index, _) = self.command(Request::Hash).await?;
        self.applied(index).await?;
        let text = |error: crate::Error| error.to_string();
        let hashes = |node: u64| {
            let reachable = self.network.reach(node).ok_or(format!("node {node} is down"))?;
            reachable.machine.hashes(index).map_err(text)
        };
        let all: Vec<Option<Vec<RangeHash>>> = self.nodes().into_iter().map(hashes).collect::<Result<_, String>>()?;
        let some = all.into_iter().flatten().next().ok_or("no node hashed its state")?;
        let (compared, reply) = self.command(Request::Compare { index, hashes: some }).await?;
        if reply != Reply::None {
            return Err(format!("the comparison answers {reply:?}"));
        }
        self.applied(compared).await?;
        let mut states = Vec::new();
        for node in self.nodes() {
            let reachable = self.network.reach(node).ok_or(format!("node {node} is down"))?;
            states.push(hash(&reachable.machine.database()));
        }
        if states.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("the states are different: {states:?}"));
        }
        for node in self.nodes() {
            if let Some(reachable) = self.network.leave(node) {
                drop(timeout(Duration::from_secs(10), reachable.raft.shutdown()).await);
            }
        }
        Ok(())
    }
}
