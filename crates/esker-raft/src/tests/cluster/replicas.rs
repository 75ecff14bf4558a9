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
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use parking_lot::Mutex;
use std::collections::BTreeMap;
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
    AppliedTwice,
    LocalClocks,
}

/// The commands of the clients, perhaps with a fault.
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
    pub nodes: u64,
    disks: Arc<Mutex<BTreeMap<u64, MemEnv>>>,
    planted: Planted,
    began: Instant,
}

fn config() -> Arc<Config> {
    let config = Config {
        heartbeat_interval: 50,
        election_timeout_min: 200,
        election_timeout_max: 400,
        install_snapshot_timeout: 1_000,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(8),
        max_in_snapshot_log_to_keep: 2,
        max_payload_entries: 16,
        ..Config::default()
    };
    Arc::new(config.validate().unwrap())
}

impl Replicas {
    /// Starts a cluster of that many nodes, and waits for a leader.
    pub async fn start(seed: u64, nodes: u64, planted: Planted) -> Result<Replicas, String> {
        let disks = Arc::new(Mutex::new((1..=nodes).map(|node| (node, MemEnv::new())).collect()));
        let network = Network::new(random(seed));
        let replicas = Replicas { network, nodes, disks, planted, began: Instant::now() };
        for node in 1..=nodes {
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
        let disk = self.disks.lock()[&node].clone();
        let env: Arc<dyn Env> = Arc::new(disk);
        let db = Db::open("log", small_on(&env)).map_err(|error| text(&error))?;
        let log = LogStore::open(&db, node, Executor::InPlace).map_err(|error| text(&error))?;
        let early = self.planted == Planted::EarlyAcknowledgement;
        log.planted().early_acknowledgement.store(early, Ordering::Relaxed);
        let restored = self.planted == Planted::RestoredLeaders;
        log.planted().restored_leaders.store(restored, Ordering::Relaxed);
        let inner = KeyValue::new()
            .keyspace("registers", KeyspaceOptions::default())
            .keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add))
            .keyspace("leases", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }));
        let commands = Commands { inner, planted: self.planted, skew_ms: node };
        let machine = StateMachine::open("state", commands, options(env.clone(), small_on(&env)));
        let machine = machine.map_err(|error| text(&error))?;
        let sender = Sender { network: self.network.clone(), node, start };
        let raft = Raft::new(node, config(), sender, log, machine.clone()).await.map_err(|error| text(&error))?;
        self.network.join(node, Reachable { raft, machine, start });
        Ok(())
    }

    /// The disk of a node.
    pub fn disk(&self, node: u64) -> MemEnv {
        self.disks.lock()[&node].clone()
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
        self.disks.lock().insert(node, image);
        Some(reachable.start + 1)
    }

    /// What the clock of a node shows: not what that of another one shows.
    pub fn time_ms(&self, node: u64) -> u64 {
        1_000_000 + ms_since(self.began) + node * 37
    }

    pub fn snapshots_installed(&self) -> u64 {
        self.network.installed()
    }

    /// The leader as the nodes see it.
    pub async fn leader(&self) -> Option<u64> {
        for node in 1..=self.nodes {
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
            let all = (1..=self.nodes).all(|node| {
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

    async fn describe(&self) -> String {
        let nodes = (1..=self.nodes).map(|node| match self.network.reach(node) {
            None => format!("{node} is down"),
            Some(reachable) => {
                let metrics =
                    openraft::async_runtime::watch::WatchReceiver::borrow_watched(&reachable.raft.metrics()).clone();
                format!("{node}: {metrics}")
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
        let all: Vec<Option<Vec<RangeHash>>> = (1..=self.nodes).map(hashes).collect::<Result<_, String>>()?;
        let some = all.into_iter().flatten().next().ok_or("no node hashed its state")?;
        let (compared, reply) = self.command(Request::Compare { index, hashes: some }).await?;
        if reply != Reply::None {
            return Err(format!("the comparison answers {reply:?}"));
        }
        self.applied(compared).await?;
        let mut states = Vec::new();
        for node in 1..=self.nodes {
            let reachable = self.network.reach(node).ok_or(format!("node {node} is down"))?;
            states.push(hash(&reachable.machine.database()));
        }
        if states.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("the states are different: {states:?}"));
        }
        for node in 1..=self.nodes {
            if let Some(reachable) = self.network.leave(node) {
                drop(timeout(Duration::from_secs(10), reachable.raft.shutdown()).await);
            }
        }
        Ok(())
    }
}
