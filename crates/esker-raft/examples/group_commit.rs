//! Measures how many commands a second a cluster of one replica commits, with one writer and with
//! many, with every commit durable:
//!
//! ```text
//! group_commit DIRECTORY [--seconds 5] [--writers 1,64] [--value-bytes 100] [--databases two]
//! ```
//!
//! `--databases one` puts the log into the database of the state machine, for comparison only: a
//! snapshot would have the log in it. Each line has the writers, the commands a second, the syncs a
//! second and the commands that one sync made durable; the last one how much faster the most
//! writers were than the fewest.

use esker::{Db, Options};
use esker_raft::{
    Command, Executor, KeyValue, KeyValueCommand, LogStore, Operation, Request, SnapshotFiles, StateMachine,
    StateOptions, TypeConfig, Vote,
};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{BasicNode, Config, OptionalSend, Raft, RaftNetworkFactory, RaftNetworkV2};
use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What was asked on the command line.
struct Arguments {
    directory: PathBuf,
    seconds: u64,
    writers: Vec<usize>,
    value_bytes: usize,
    one_database: bool,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    // An option in its place would become a directory of that name.
    let is_directory = |first: &String| !first.starts_with('-');
    let directory = given.next().filter(is_directory).ok_or("name a directory on the device to measure")?.into();
    let mut arguments =
        Arguments { directory, seconds: 5, writers: vec![1, 64], value_bytes: 100, one_database: false };
    while let Some(flag) = given.next() {
        let value = given.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--seconds" => arguments.seconds = value.parse()?,
            "--writers" => arguments.writers = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--value-bytes" => arguments.value_bytes = value.parse()?,
            "--databases" if value == "one" || value == "two" => arguments.one_database = value == "one",
            _ => return Err(format!("{flag} {value} is unknown").into()),
        }
    }
    Ok(arguments)
}

/// The network of a cluster of one.
struct Nobody;

impl RaftNetworkFactory<TypeConfig> for Nobody {
    type Network = Nobody;

    async fn new_client(&mut self, _target: u64, _node: &BasicNode) -> Nobody {
        Nobody
    }
}

fn nobody() -> Unreachable<TypeConfig> {
    Unreachable::from_string("a cluster of one has no other node")
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
        _snapshot: esker_raft::Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(nobody().into())
    }
}

type Replica = Raft<TypeConfig, StateMachine<KeyValue>>;

/// Starts the replica, with its log.
async fn start(directory: &Path, one_database: bool) -> Result<(Replica, LogStore), Box<dyn Error>> {
    let apply = KeyValue::new().keyspace("values", Default::default());
    let machine = StateMachine::open(directory.join("state"), apply, StateOptions::default())?;
    let log = if one_database {
        LogStore::open(machine.database().db(), 1, Executor::default())?
    } else {
        LogStore::open(&Db::open(directory.join("log"), Options::default())?, 1, Executor::default())?
    };
    // No snapshot interrupts the measurement.
    let config = Config { snapshot_policy: openraft::SnapshotPolicy::Never, ..Config::default() };
    machine.reconcile(&log)?;
    let raft = Raft::new(1, Arc::new(config.validate()?), Nobody, log.clone(), machine).await?;
    raft.initialize(BTreeMap::from([(1, BasicNode::new(""))])).await?;
    raft.wait(Some(Duration::from_secs(10))).current_leader(1, "a leader").await?;
    Ok((raft, log))
}

/// One writer: its next command goes when the one before is committed and applied.
async fn write(raft: Replica, writer: usize, value_bytes: usize, until: Instant) -> Result<u64, String> {
    let mut count = 0;
    while Instant::now() < until {
        let operation = Operation::Put {
            keyspace: "values".into(),
            key: format!("{writer:04}-{count:012}").into(),
            value: vec![b'v'; value_bytes],
            ttl_ms: None,
        };
        let payload = KeyValueCommand::new().then(operation).to_bytes().map_err(|error| error.to_string())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ms = u64::try_from(now.as_millis()).unwrap_or(0);
        let command = Command { time_ms, request: Request::Apply(payload) };
        raft.client_write(command).await.map_err(|error| error.to_string())?;
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    if arguments.directory.exists() {
        return Err(format!("{} is there already; name a new directory", arguments.directory.display()).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (raft, log) = start(&arguments.directory, arguments.one_database).await?;
        let mut rates: Vec<f64> = Vec::new();
        println!("{:>8} {:>14} {:>12} {:>18}", "writers", "commands/s", "syncs/s", "commands per sync");
        for &writers in &arguments.writers {
            let (before, began) = (log.stats(), Instant::now());
            let until = began + Duration::from_secs(arguments.seconds);
            let tasks =
                (0..writers).map(|writer| tokio::spawn(write(raft.clone(), writer, arguments.value_bytes, until)));
            let mut commands = 0;
            for task in tasks.collect::<Vec<_>>() {
                commands += task.await??;
            }
            let (seconds, syncs) = (began.elapsed().as_secs_f64(), log.stats().syncs - before.syncs);
            let rate = commands as f64 / seconds;
            let per_sync = commands as f64 / syncs.max(1) as f64;
            println!("{writers:>8} {rate:>14.0} {:>12.0} {per_sync:>18.1}", syncs as f64 / seconds);
            rates.push(rate);
        }
        if let (Some(first), Some(last)) = (rates.first(), rates.last()) {
            println!("the last is {:.1} times the first", last / first);
        }
        raft.shutdown().await?;
        Ok(())
    })
}
