//! Many writers at a time on a real runtime: their commands share the syncs of the log.

use super::history::key_value;
use super::world::{apply, put, spawn};
use crate::types::Runtime;
use crate::{Command, Executor, LogStore, Reply, SnapshotFiles, StateMachine, StateOptions, TypeConfig, Vote};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Options};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{BasicNode, Config, OptionalSend, Raft, RaftNetworkFactory, RaftNetworkV2};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The network of a cluster of one.
struct Nobody;

fn nobody() -> Unreachable<TypeConfig> {
    Unreachable::from_string("there is no other node")
}

impl RaftNetworkFactory<TypeConfig> for Nobody {
    type Network = Nobody;

    async fn new_client(&mut self, _target: u64, _node: &BasicNode) -> Nobody {
        Nobody
    }
}

impl RaftNetworkV2<TypeConfig> for Nobody {
    type SnapshotData = SnapshotFiles;

    async fn append_entries(
        &mut self,
        _rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(nobody().into())
    }

    async fn vote(
        &mut self,
        _rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(nobody().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: crate::Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(nobody().into())
    }
}

/// How many syncs it takes until so many writers have each written so many commands, one after the
/// other, to a log whose device is slow.
async fn syncs(writers: usize, commands: usize) -> u64 {
    let disk: Arc<dyn Env> = Arc::new(MemEnv::new());
    let slow = FaultEnv::new(Arc::clone(&disk));
    slow.add(Rule::new(Class::Sync, 0, Action::Delay(Duration::from_millis(2))).from_then_on());
    let db = Db::open("log", Options::default().env(Arc::new(slow))).unwrap();
    let log = LogStore::open(&db, 1, Executor::BlockingThreads).unwrap();
    let machine = StateMachine::open("state", key_value(), StateOptions::default().env(disk)).unwrap();
    let config = Arc::new(Config::default().validate().unwrap());
    let raft = Raft::new(1, config, Nobody, log.clone(), machine.clone()).await.unwrap();
    raft.initialize(BTreeMap::from([(1, BasicNode::new(""))])).await.unwrap();
    raft.wait(Some(Duration::from_secs(300))).current_leader(1, "a leader").await.unwrap();
    let before = log.stats();
    let tasks = (0..writers).map(|writer| {
        let raft = raft.clone();
        spawn(async move {
            for number in 0..commands {
                let operation = put("names", &format!("{writer}-{number}"), "value", None);
                let command = Command { time_ms: 1, request: apply(vec![operation]) };
                let written = raft.client_write(command).await.unwrap();
                assert!(matches!(written.data, Reply::Applied(_)), "{:?}", written.data);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let after = log.stats();
    let written = (writers * commands) as u64;
    assert_eq!(after.entries_appended - before.entries_appended, written);
    assert_eq!(machine.database().keyspaces()["names"].count(..).unwrap(), written);
    raft.shutdown().await.unwrap();
    after.syncs - before.syncs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_writers_share_their_syncs() {
    let (alone, together) = Runtime::scope(0, async { (syncs(1, 32).await, syncs(64, 32).await) }).await;
    println!("{alone} syncs for 32 commands of one writer, {together} for 2048 of 64");
    assert!(alone >= 32, "{alone} syncs make 32 commands durable one after the other");
    // Sixty-four times the commands with at most eight times the syncs.
    assert!(together <= 8 * alone, "{together} syncs of 64 writers, {alone} of one");
}
