//! Metrics and the state of health, over HTTP.
//!
//! `GET /metrics` is the text format of Prometheus; `GET /health/live` is 200 while the server
//! runs; `GET /health/ready` is 200 while it takes writes, and 503 with the reason otherwise.

use super::shared::Shared;
use crate::cluster::{Node, Role};
use esker::{Db, PrometheusText};
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head of a request at most.
const HEAD_BYTES: usize = 8 << 10;
/// Where it is said whether the server takes writes.
const READY: &str = "/health/ready";
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The engine's database of the moment, which the snapshot of a leader may replace.
pub type Database = Arc<dyn Fn() -> Db + Send + Sync>;

/// Answers one request, and ends the connection.
pub async fn answer(mut stream: TcpStream, shared: Arc<Shared>, database: Database) {
    let answered = tokio::time::timeout(PATIENCE, exchange(&mut stream, &shared, database)).await;
    if let Ok(Err(error)) = answered {
        tracing::debug!(%error, "a request for metrics has failed");
    }
}

async fn exchange(stream: &mut TcpStream, shared: &Arc<Shared>, database: Database) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 || head.len() > HEAD_BYTES {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or("").to_string();
    let shared = Arc::clone(shared);
    let replica = match shared.cluster.get() {
        Some(node) if line.contains(READY) => node.problem().await,
        _ => None,
    };
    // The engine takes short locks for its figures, and the state of a node longer ones.
    let response = tokio::task::spawn_blocking(move || respond(&line, &shared, &database(), replica)).await?;
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

fn respond(line: &str, shared: &Shared, db: &Db, replica: Option<String>) -> String {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    if method != "GET" && method != "HEAD" {
        return response("405 Method Not Allowed", "only GET and HEAD\n", method);
    }
    match path {
        "/metrics" => response("200 OK", &metrics(shared, db), method),
        "/health/live" => response("200 OK", "live\n", method),
        READY => match problem(shared, db, replica) {
            None => response("200 OK", "ready\n", method),
            Some(problem) => response("503 Service Unavailable", &format!("{problem}\n"), method),
        },
        _ => response("404 Not Found", "there are /metrics, /health/live and /health/ready\n", method),
    }
}

fn response(status: &str, body: &str, method: &str) -> String {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    if method == "HEAD" { head } else { head + body }
}

/// The figures of a node of a cluster.
fn replica_metrics(text: &mut String, node: &Node) {
    let (status, log) = (node.status(), node.log.stats());
    for (name, kind, help, value) in [
        ("leader", "gauge", "Whether this node leads.", u64::from(status.role == Role::Leader)),
        ("has_leader", "gauge", "Whether this node knows a leader.", u64::from(status.leader.is_some())),
        ("term", "gauge", "The term.", status.term),
        ("last_log_index", "gauge", "The last entry of the log.", status.last_log),
        ("committed_index", "gauge", "The last entry that is known to be committed.", status.committed),
        ("applied_index", "gauge", "The last entry that is in the state.", status.applied),
        ("snapshot_index", "gauge", "The last entry that is in the newest snapshot.", status.snapshot),
        ("purged_index", "gauge", "The last entry that the log does not have any more.", status.purged),
        ("voters", "gauge", "Nodes that vote.", status.voters.len() as u64),
        ("learners", "gauge", "Nodes that do not vote.", status.learners.len() as u64),
        ("log_entries_total", "counter", "Entries that were appended to the log.", log.entries_appended),
        ("log_syncs_total", "counter", "Syncs that made them durable.", log.syncs),
    ] {
        // Writing to memory does not fail.
        let _ = write!(
            text,
            "# HELP esker_raft_{name} {help}\n# TYPE esker_raft_{name} {kind}\nesker_raft_{name} {value}\n"
        );
    }
}

/// Why writes are not taken.
fn problem(shared: &Shared, db: &Db, replica: Option<String>) -> Option<String> {
    if shared.is_stopping() {
        return Some("the server is stopping".into());
    }
    if replica.is_some() {
        return replica;
    }
    let health = db.health();
    if health.writable { None } else { Some(health.problem.unwrap_or_else(|| "writes are refused".into())) }
}

fn metrics(shared: &Shared, db: &Db) -> String {
    let statistics = &shared.statistics;
    let blocked =
        shared.clients.lock().values().filter(|client| client.is_blocked.load(Ordering::Relaxed)).count() as u64;
    let connected = shared.clients.lock().len() as u64;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("connections_total", "counter", "Connections that were accepted.", statistics.connections.get()),
        (
            "refused_connections_total",
            "counter",
            "Connections that were refused, as there were too many.",
            statistics.refused_connections.get(),
        ),
        (
            "evicted_clients_total",
            "counter",
            "Clients that were disconnected, as all together held too much memory.",
            statistics.evicted_clients.get(),
        ),
        (
            "client_memory_bytes",
            "gauge",
            "Bytes of requests that are not executed yet, and of replies that are not taken yet.",
            shared.client_memory.total() as u64,
        ),
        ("connected_clients", "gauge", "Clients that are connected.", connected),
        ("blocked_clients", "gauge", "Clients that wait in a blocking command.", blocked),
        ("commands_total", "counter", "Commands that were executed.", statistics.commands.get()),
        ("error_replies_total", "counter", "Error replies.", statistics.errors.get()),
        ("batches_total", "counter", "Commits, each of the commands of a batch.", statistics.batches.get()),
        (
            "expired_collections_total",
            "counter",
            "Collections whose elements were removed, as they had expired.",
            statistics.expired_collections.get(),
        ),
        ("input_bytes_total", "counter", "Bytes read from clients.", statistics.input_bytes.get()),
        ("output_bytes_total", "counter", "Bytes written to clients.", statistics.output_bytes.get()),
    ] {
        // Writing to memory does not fail.
        let _ = write!(
            text,
            "# HELP esker_server_{name} {help}\n# TYPE esker_server_{name} {kind}\nesker_server_{name} {value}\n"
        );
    }
    if let Some(node) = shared.cluster.get() {
        replica_metrics(&mut text, node);
    }
    let mut engine = PrometheusText::new();
    db.record(&mut engine);
    let _ = write!(text, "{engine}");
    text
}
