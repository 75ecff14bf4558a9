//! A replica with what it needs to talk to the others.

use super::address::Address;
use super::commands::Commands;
use super::config::ClusterConfig;
use super::dues::Dues;
use super::identity::Identity;
use super::notices::Notices;
use super::peers::Peers;
use super::planted::Planted;
use crate::store::Random;
use esker_raft::{LogStore, StateDatabase, StateMachine, TypeConfig};
use openraft::Raft;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftMetrics;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

/// The state machine of a replica.
pub type Machine = StateMachine<Commands>;
/// One that waits until the state is as new as a linearizable read needs it.
pub type BarrierRequest = oneshot::Sender<Result<(), String>>;

/// A session of the log, which makes a request that is repeated one request.
#[derive(Clone, Copy, Debug)]
pub struct LogSession {
    /// Its number.
    pub id: u64,
    /// That of its next request.
    pub next: u64,
}

impl LogSession {
    /// The session when that request was sent.
    pub fn after_request(self) -> LogSession {
        LogSession { next: self.next + 1, ..self }
    }
}

/// The node that leads, as this one knows it.
#[derive(Clone, Debug)]
pub struct Leader {
    /// Its number.
    pub id: u64,
    /// Where it is; nothing if its address cannot be read.
    pub address: Option<Address>,
    /// Whether it is this node.
    pub is_here: bool,
}

/// A node of a cluster.
pub struct Node {
    /// How it is set up.
    pub config: ClusterConfig,
    /// The consensus.
    pub raft: Raft<TypeConfig, Machine>,
    /// The state.
    pub machine: Machine,
    /// The log.
    pub log: LogStore,
    /// Which node of which cluster it is.
    pub identity: Arc<Identity>,
    /// The other nodes.
    pub peers: Arc<Peers>,
    /// Who waits for keys.
    pub notices: Arc<Notices>,
    /// How many logical databases there are.
    pub databases: usize,
    /// Sessions that no request is in.
    pub sessions: Mutex<Vec<LogSession>>,
    /// Where reads wait.
    pub barriers: mpsc::UnboundedSender<BarrierRequest>,
    /// When keys of the state may expire.
    pub dues: Arc<Mutex<Dues>>,
    /// The time of the newest payload that was applied, in milliseconds since the epoch.
    pub time_ms: Arc<AtomicU64>,
    /// A fault, in tests.
    pub planted: Arc<Planted>,
    /// What random replies are drawn from.
    pub seeds: Mutex<Random>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Milliseconds since the epoch, by the system's clock.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Node {
    /// What openraft says of itself.
    pub fn metrics(&self) -> RaftMetrics<TypeConfig> {
        self.raft.metrics().borrow_watched().clone()
    }

    /// The leader, if this node knows one.
    pub fn leader(&self) -> Option<Leader> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.running_state.is_err() {
            return None;
        }
        let id = metrics.current_leader?;
        let node = metrics.membership_config.membership().get_node(&id);
        let address = node.and_then(|node| Address::parse(&node.addr).ok());
        Some(Leader { id, address, is_here: id == self.config.node })
    }

    /// The state as of now.
    pub fn database(&self) -> Arc<StateDatabase<Commands>> {
        self.machine.database()
    }

    /// The next seed.
    pub fn seed(&self) -> u64 {
        self.seeds.lock().next()
    }

    /// Returns when the replica does nothing any more: why, and whether it has another state than
    /// the others.
    pub async fn stopped(&self) -> (String, bool) {
        let mut metrics = self.raft.metrics();
        let why = loop {
            if let Some(why) = self.failure() {
                break why;
            }
            if metrics.changed().await.is_err() {
                break "the replica has ended".into();
            }
        };
        let machine = self.machine.clone();
        let diverged = tokio::task::spawn_blocking(move || machine.has_diverged()).await;
        (why, diverged.is_ok_and(|diverged| diverged.unwrap_or(false)))
    }

    /// Why the replica does nothing any more, if it does not.
    pub fn failure(&self) -> Option<String> {
        let metrics = self.raft.metrics();
        let running = metrics.borrow_watched().running_state.clone();
        running.err().map(|error| format!("the replica has stopped, and is to be started again: {error}"))
    }
}
