//! What the tests share: small databases, entries, and a runtime in which everything has its order.

use crate::types::Runtime;
use crate::{Command, Entry, KeyValueCommand, LeaderId, LogId, Operation, Request};
use esker::Options;
use esker::env::Env;
use esker::env::mem::{CrashMode, MemEnv};
use openraft::async_runtime::AsyncRuntime;
use openraft::entry::RaftEntry;
use openraft::{BasicNode, EntryPayload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The seed of a random test, from the environment or the default; printed, for a repetition.
pub fn seed(default: u64) -> u64 {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default);
    println!("ESKER_SEED={seed}");
    seed
}

/// The numbers of that seed.
pub fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// Runs to the end in this thread, with a clock that moves when nothing else can be done.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    run_seeded(0, future)
}

/// The same; openraft draws its election timeouts from that seed. So does tokio what it draws, as
/// which of two tasks that wait for one thing goes first, where its unstable interface is compiled.
pub fn run_seeded<T>(seed: u64, future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    builder.enable_time().start_paused(true).build().unwrap().block_on(Runtime::scope(seed, future))
}

/// Starts a task with a seed that follows from that of its parent.
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    Runtime::spawn(future)
}

/// Lets so much of the simulated time pass, in which everything else that can happen does.
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// How much of the simulated time has passed, in milliseconds.
pub fn ms_since(began: tokio::time::Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Options of a database so small that every script flushes and rolls its log, with all work in
/// the calling thread.
pub fn small() -> Options {
    Options::default()
        .background_threads(0)
        .write_buffer_bytes(64 << 10)
        .block_bytes(256)
        .target_file_bytes(2 << 10)
        .wal_segment_bytes(8 << 10)
        .min_blob_size(600)
}

/// The same on that disk.
pub fn small_on(env: &Arc<dyn Env>) -> Options {
    small().env(Arc::clone(env))
}

/// What a power loss may leave on a disk: the extremes, and two others.
pub fn images(env: &MemEnv, seed: u64) -> Vec<MemEnv> {
    let fixed = CrashMode::FIXED.iter().map(|mode| env.crash(mode, seed));
    fixed.chain((0..2).map(|turn| env.crash(&CrashMode::Random, seed ^ turn))).collect()
}

pub fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(LeaderId { term, node_id: 1 }, index)
}

pub fn blank(term: u64, index: u64) -> Entry {
    Entry::new(log_id(term, index), EntryPayload::Blank)
}

pub fn entry(term: u64, index: u64, time_ms: u64, request: Request) -> Entry {
    Entry::new(log_id(term, index), EntryPayload::Normal(Command { time_ms, request }))
}

pub fn membership(term: u64, index: u64, nodes: &[u64]) -> Entry {
    let voters: BTreeSet<u64> = nodes.iter().copied().collect();
    let all = nodes.iter().map(|node| (*node, BasicNode::new(format!("node-{node}"))));
    let membership = crate::Membership::new(vec![voters], all.collect::<std::collections::BTreeMap<_, _>>());
    Entry::new(log_id(term, index), EntryPayload::Membership(membership.unwrap()))
}

/// The request that does these operations.
pub fn apply(operations: Vec<Operation>) -> Request {
    Request::Apply(KeyValueCommand { conditions: Vec::new(), operations }.to_bytes().unwrap())
}

pub fn put(keyspace: &str, key: &str, value: impl Into<Vec<u8>>, ttl_ms: Option<u64>) -> Operation {
    Operation::Put { keyspace: keyspace.into(), key: key.into(), value: value.into(), ttl_ms }
}

/// A value of some length, now and then a large one.
pub fn value(random: &mut StdRng) -> Vec<u8> {
    let length = if random.random_range(0..8) == 0 { 700 } else { random.random_range(0..40) };
    (0..length).map(|_| random.random_range(b'a'..=b'z')).collect()
}
