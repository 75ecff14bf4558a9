//! A node, started and stopped.

use super::commands::Commands;
use super::config::ClusterConfig;
use super::identity::{Identity, NOBODY, cluster_number};
use super::network::Network;
use super::node::Node;
use super::notices::Notices;
use super::peers::Peers;
use super::planted::Planted;
use super::{barrier, import, ticks, tls, transport};
use crate::store::Random;
use esker::{Db, Options};
use esker_raft::{Error, Executor, LogStore, StateMachine, StateOptions};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long another node may take to lead, when this one stops.
const TRANSFER: Duration = Duration::from_secs(2);
/// The least budget that an engine is given.
const LEAST_BUDGET: usize = 16 << 20;

/// Why a node does not start; the text says what to do.
#[derive(Debug)]
pub enum StartError {
    /// Its state was found to be another one than that of the others.
    Diverged(String),
    /// Anything else.
    Failed(String),
}

impl From<String> for StartError {
    fn from(text: String) -> StartError {
        StartError::Failed(text)
    }
}

/// A node that runs.
pub struct Running {
    /// The node.
    pub node: Arc<Node>,
    log_db: Db,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("node", &self.node).finish_non_exhaustive()
    }
}

fn raft_config(config: &ClusterConfig) -> Result<Arc<Config>, String> {
    let config = Config {
        cluster_name: "esker".into(),
        heartbeat_interval: config.heartbeat_ms,
        election_timeout_min: config.election_ms,
        election_timeout_max: config.election_ms.saturating_mul(2),
        // A node that was cut off does not depose the leader when it is back.
        enable_pre_vote: Some(true),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(config.snapshot_entries),
        // A follower that was away for a moment gets entries, not a snapshot.
        max_in_snapshot_log_to_keep: config.snapshot_entries / 2,
        install_snapshot_timeout: 10_000,
        ..Config::default()
    };
    config.validate().map(Arc::new).map_err(|error| format!("{error}; see --cluster-heartbeat-ms"))
}

/// Opens log and state in the directory, and takes part in the cluster.
///
/// # Errors
/// [`StartError`].
pub async fn start(
    directory: &Path,
    config: ClusterConfig,
    (databases, budget): (usize, Option<usize>),
    seed: u64,
) -> Result<Running, StartError> {
    let raft_config = raft_config(&config)?;
    let ends = config.tls.as_ref().map(tls::ends).transpose()?;
    let (acceptor, connector) = ends.unzip();
    let listener = TcpListener::bind(&config.listen).await;
    let listener = listener.map_err(|error| format!("cannot listen at {}: {error}", config.listen))?;
    if acceptor.is_none() && listener.local_addr().is_ok_and(|address| !address.ip().is_loopback()) {
        tracing::warn!("without --cluster-tls-certificate everybody who reaches {} has the cluster", config.listen);
    }
    let (notices, planted) = (Arc::new(Notices::default()), Arc::new(Planted::default()));
    let commands = Commands::new(databases, Arc::clone(&notices), Arc::clone(&planted));
    let (dues, time_ms) = (commands.dues(), commands.time_ms());
    let (node, place) = (config.clone(), directory.to_path_buf());
    let mut seeds = Random::new(seed);
    let number = cluster_number(&mut seeds);
    // Opening reads the log of the engine, which may take a while.
    let opened = tokio::task::spawn_blocking(move || open(&place, &node, commands, (budget, number))).await;
    let (log_db, log, machine, identity) = opened.map_err(|error| error.to_string())??;
    let identity = Arc::new(identity);
    let peers = Arc::new(Peers::new(Arc::clone(&identity), connector, Arc::clone(&planted)));
    let network = Network(Arc::clone(&peers));
    let raft = Raft::new(config.node, raft_config, network, log.clone(), machine.clone()).await;
    let raft = raft.map_err(|error| error.to_string())?;
    let (barriers, requests) = mpsc::unbounded_channel();
    let (sessions, seeds) = (Mutex::default(), Mutex::new(seeds));
    let node = Arc::new(Node {
        config,
        raft,
        machine,
        log,
        identity,
        peers,
        notices,
        databases,
        sessions,
        barriers,
        dues,
        time_ms,
        planted,
        seeds,
    });
    let tasks = vec![
        tokio::spawn(transport::serve(listener, acceptor, Arc::clone(&node))),
        tokio::spawn(barrier::serve(Arc::clone(&node), requests)),
        tokio::spawn(ticks::run(Arc::clone(&node))),
    ];
    Ok(Running { node, log_db, tasks })
}

type Opened = (Db, LogStore, StateMachine<Commands>, Identity);

/// Opens what is in the directory; an import begins the cluster of that number.
fn open(
    directory: &Path,
    config: &ClusterConfig,
    commands: Commands,
    (budget, number): (Option<usize>, u128),
) -> Result<Opened, StartError> {
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let options = |share: usize| match budget {
        Some(bytes) => Options::default().memory_budget_bytes((bytes / 8 * share).max(LEAST_BUDGET)),
        None => Options::default(),
    };
    // The log is written and read in order, and needs little; the caches are those of the state.
    let log_db = Db::open(directory.join("log"), options(1)).map_err(|error| error.to_string())?;
    let log = LogStore::open(&log_db, config.node, Executor::BlockingThreads).map_err(|error| error.to_string())?;
    let identity = Identity::open(&log_db, config.node).map_err(|error| error.to_string())?;
    let state = StateOptions::default().database(options(7));
    let place = directory.join("state");
    let machine = match &config.import {
        None => StateMachine::open(place, commands, state),
        Some(source) => {
            // First: when there is a state, no other cluster takes this for an empty node.
            identity.join(number).map_err(|error| error.to_string())?;
            let member = (config.node, BasicNode::new(config.advertise.to_string()));
            let imported = StateMachine::import(place, source, member, commands, state, import::prepare);
            imported.and_then(|(machine, last)| log.begin_behind(last).map(|()| machine))
        }
    };
    let machine = machine.map_err(|error| match error {
        Error::Stopped { why } => StartError::Diverged(why),
        other => StartError::Failed(other.to_string()),
    })?;
    if identity.cluster() == NOBODY.into() && machine.database().applied().0.is_some() {
        let what = "has the state of a node without its log, which has the votes of the node and what it confirmed";
        let advice = "RAFT.ADD a node with an empty directory, or begin a cluster with --import of a copy of the state";
        return Err(StartError::Failed(format!("{} {what}; {advice}", directory.display())));
    }
    machine.reconcile(&log).map_err(|error| error.to_string())?;
    Ok((log_db, log, machine, identity))
}

impl Running {
    /// Hands the leadership on, if this node has it, and takes part no more.
    ///
    /// # Errors
    /// A text that says what failed.
    pub async fn stop(self) -> Result<(), String> {
        let Running { node, log_db, tasks } = self;
        hand_on(&node).await;
        tasks.iter().for_each(JoinHandle::abort);
        node.raft.shutdown().await.map_err(|error| error.to_string())?;
        let closed = tokio::task::spawn_blocking(move || {
            let state = node.database().db().clone();
            drop(node);
            log_db.close().and(state.close())
        });
        closed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

/// Has the voter lead that has most of the log, so that clients do not wait for an election.
async fn hand_on(node: &Node) {
    let metrics = node.metrics();
    if metrics.current_leader != Some(node.config.node) {
        return;
    }
    let voters: Vec<u64> = metrics.membership_config.membership().voter_ids().collect();
    let Some(replication) = metrics.replication else { return };
    let others = replication.into_iter().filter(|(id, _)| *id != node.config.node && voters.contains(id));
    let Some((next, _)) = others.max_by_key(|(_, at)| at.as_ref().map_or(0, |at| at.index())) else { return };
    if node.raft.trigger().transfer_leader(next).await.is_ok() {
        let moved = node.raft.wait(Some(TRANSFER));
        let moved = moved.metrics(|metrics| metrics.current_leader == Some(next), "another leader").await;
        if let Err(error) = moved {
            tracing::warn!(%error, "no other node has taken the leadership over");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Address;
    use esker::KeyspaceOptions;

    /// What a crash behind the import leaves is in a cluster of its own, and is taken by none for
    /// an empty node.
    #[test]
    fn an_import_is_in_its_own_cluster_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        let db = Db::open(&source, Options::default()).unwrap();
        db.keyspace("system", KeyspaceOptions::default()).unwrap().put("format", "1").unwrap();
        db.close().unwrap();
        let mut config = ClusterConfig::new(1, "127.0.0.1:0", Address::parse("a:1@2").unwrap());
        let commands = || Commands::new(1, Arc::default(), Arc::default());
        let place = directory.path().join("node");
        config.import = Some(source);
        drop(open(&place, &config, commands(), (None, 7)).map_err(|error| format!("{error:?}")).unwrap());
        config.import = None;
        let again = open(&place, &config, commands(), (None, 8)).map_err(|error| format!("{error:?}")).unwrap();
        assert_eq!(again.3.cluster(), 7);
    }
}
