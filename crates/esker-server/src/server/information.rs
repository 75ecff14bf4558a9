//! INFO.

use super::cluster_information::{is_cluster, replication};
use super::command_statistics::CommandCounts;
use super::execution::Execution;
use super::process::{self, Process};
use super::session::Session;
use super::shared::{Shared, now_ms};
use crate::protocol::Reply;
use crate::store::{Context, Outcome};
use bytes::Bytes;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

/// The version of Redis whose commands and replies these are.
pub const COMPATIBLE_VERSION: &str = "7.0.15";

/// The sections of INFO, and whether they are among those that nobody has to ask for.
const SECTIONS: [(&str, bool); 13] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
];

/// INFO section...
pub fn info(session: &Session, execution: &mut Execution, sections: &[Bytes]) -> Reply {
    let names: Vec<String> = sections.iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let is_default = names.is_empty() || has("default");
    let is_all = has("all") || has("everything");
    let mut text = String::new();
    for (section, is_in_default) in SECTIONS {
        let is_asked = has(section) || is_default && is_in_default || is_all && section != "modules";
        if is_asked || has("everything") {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            let title = if section == "cpu" { "CPU".into() } else { section[..1].to_uppercase() + &section[1..] };
            let lines = lines(&session.shared, execution, section);
            let _ = write!(text, "{separator}# {title}\r\n{lines}");
        }
    }
    Reply::Verbatim(text)
}

/// The lines of a section.
#[derive(Debug, Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: impl Display) {
        // Writing to memory does not fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// A number of bytes, and the same for people.
    fn add_bytes(&mut self, name: &str, bytes: u64) {
        self.add(name, bytes);
        self.add(&format!("{name}_human"), human(bytes));
    }
}

/// A number of bytes with a unit.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit < UNITS.len() - 1 {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes}B") } else { format!("{size:.2}{}", UNITS[unit]) }
}

fn lines(shared: &Shared, execution: &mut Execution, section: &str) -> String {
    let mut lines = Lines::default();
    match section {
        "server" => server(&mut lines, shared),
        "clients" => clients(&mut lines, shared),
        "memory" => memory(&mut lines, shared, execution),
        "persistence" => persistence(&mut lines, shared),
        "stats" => statistics(&mut lines, shared),
        "replication" => match shared.cluster.get() {
            Some(node) => replication(node).iter().for_each(|(name, value)| lines.add(name, value)),
            None => alone(&mut lines, shared),
        },
        "cpu" => cpu(&mut lines),
        "commandstats" => commands(&mut lines, shared),
        "errorstats" => {
            for (code, count) in shared.statistics.by_command.codes() {
                lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
            }
        }
        "cluster" => lines.add("cluster_enabled", u8::from(is_cluster(shared))),
        "keyspace" => return keyspace_lines(shared, execution),
        // There are no modules, and times are not kept one by one.
        _ => {}
    }
    lines.0
}

fn server(lines: &mut Lines, shared: &Shared) {
    let uptime = now_ms().saturating_sub(shared.started_ms) / 1000;
    lines.add("redis_version", COMPATIBLE_VERSION);
    lines.add("esker_version", env!("CARGO_PKG_VERSION"));
    lines.add("redis_mode", if is_cluster(shared) { "cluster" } else { "standalone" });
    lines.add("os", process::system());
    lines.add("arch_bits", usize::BITS);
    lines.add("process_id", std::process::id());
    lines.add("run_id", &shared.run_id);
    lines.add("tcp_port", shared.config.listen.map_or(0, |address| address.port()));
    lines.add("server_time_usec", now_ms() * 1000);
    lines.add("uptime_in_seconds", uptime);
    lines.add("uptime_in_days", uptime / 86_400);
    if let Ok(path) = std::env::current_exe() {
        lines.add("executable", path.display());
    }
    lines.add("config_file", "");
    lines.add("io_threads_active", u8::from(shared.config.io_threads > 1));
}

fn clients(lines: &mut Lines, shared: &Shared) {
    let clients: Vec<_> = shared.clients.lock().values().cloned().collect();
    let blocked = clients.iter().filter(|client| client.is_blocked.load(Ordering::Relaxed)).count();
    lines.add("connected_clients", clients.len());
    lines.add("maxclients", shared.settings.read().max_clients);
    lines.add("tracking_clients", 0);
    lines.add("blocked_clients", blocked);
}

fn memory(lines: &mut Lines, shared: &Shared, execution: &mut Execution) {
    let memory = execution.keyspaces().db().stats().memory;
    let used = memory.memtable_bytes
        + memory.immutable_memtable_bytes
        + memory.cache_bytes
        + memory.index_bytes
        + memory.filter_bytes;
    lines.add_bytes("used_memory", used);
    if let Some(process) = Process::read() {
        lines.add_bytes("used_memory_rss", process.resident_bytes);
        lines.add_bytes("total_system_memory", process.machine_bytes);
    }
    lines.add_bytes("maxmemory", shared.config.memory_budget_bytes.unwrap_or(0) as u64);
    lines.add("mem_clients_normal", shared.client_memory.total());
    lines.add("maxmemory_policy", "noeviction");
    // A value is removed with its key, in the same batch.
    lines.add("lazyfree_pending_objects", 0);
    lines.add("lazyfreed_objects", 0);
}

fn persistence(lines: &mut Lines, shared: &Shared) {
    lines.add("loading", 0);
    lines.add("rdb_bgsave_in_progress", 0);
    lines.add("rdb_last_save_time", shared.synced_seconds.load(Ordering::Relaxed));
    lines.add("aof_enabled", 1);
    lines.add("aof_rewrite_in_progress", 0);
    if let Some(node) = shared.cluster.get() {
        lines.add("raft_state_directory", node.database().directory().display());
    }
}

fn statistics(lines: &mut Lines, shared: &Shared) {
    let statistics = &shared.statistics;
    lines.add("total_connections_received", statistics.connections.get());
    lines.add("total_commands_processed", statistics.commands.get());
    if shared.cluster.get().is_none() {
        lines.add("instantaneous_ops_per_sec", statistics.rate.per_second());
    }
    lines.add("total_net_input_bytes", statistics.input_bytes.get());
    lines.add("total_net_output_bytes", statistics.output_bytes.get());
    lines.add("rejected_connections", statistics.refused_connections.get());
    // No key is evicted, and nothing published or traced.
    lines.add("evicted_keys", 0);
    lines.add("evicted_clients", statistics.evicted_clients.get());
    if shared.cluster.get().is_none() {
        lines.add("keyspace_hits", statistics.found_keys.get());
        lines.add("keyspace_misses", statistics.missed_keys.get());
    }
    lines.add("pubsub_channels", 0);
    lines.add("pubsub_patterns", 0);
    lines.add("total_error_replies", statistics.errors.get());
}

/// Of a server that has no replicas and is none.
fn alone(lines: &mut Lines, shared: &Shared) {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    // What is written goes to nobody: there is one history for each run, and no place in it.
    lines.add("master_replid", &shared.run_id);
    lines.add("master_replid2", "0".repeat(40));
    lines.add("master_repl_offset", 0);
    lines.add("second_repl_offset", -1);
    lines.add("repl_backlog_active", 0);
}

fn cpu(lines: &mut Lines) {
    let Some(process) = Process::read() else { return };
    let seconds = |ticks: u64| format!("{}.{:02}0000", ticks / 100, ticks % 100);
    lines.add("used_cpu_sys", seconds(process.system_ticks));
    lines.add("used_cpu_user", seconds(process.user_ticks));
}

/// What was counted of each command. In a cluster the nodes execute them together, and nothing is
/// counted.
fn commands(lines: &mut Lines, shared: &Shared) {
    for (name, CommandCounts { calls, failed, rejected, took }) in shared.statistics.by_command.commands() {
        let microseconds = took.as_micros();
        let each = took.as_secs_f64() * 1e6 / calls.max(1) as f64;
        lines.add(
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={calls},usec={microseconds},usec_per_call={each:.2},rejected_calls={rejected},\
                 failed_calls={failed}"
            ),
        );
    }
}

/// So many keys are counted in each logical database; the rest is estimated.
const COUNTED_KEYS: u64 = 10_000;

/// A line for each logical database that has keys.
fn keyspace_lines(shared: &Shared, execution: &mut Execution) -> String {
    let mut text = String::new();
    for number in 0..shared.config.databases {
        if !execution.keyspaces().is_created(number) {
            continue;
        }
        let mut counts = (0u64, 0u64);
        let _ = execution.run(number, |context| count(context, &mut counts));
        if counts.0 > 0 {
            let _ = write!(text, "db{number}:keys={},expires={},avg_ttl=0\r\n", counts.0, counts.1);
        }
    }
    text
}

/// Counts the keys, and those that expire. Monitors ask often, and a scan of all keys would hold
/// every client up: where there are many, the engine estimates their number, and the first ones,
/// which a hash has put there, are a sample.
fn count(context: &mut Context<'_>, (keys, expiring): &mut (u64, u64)) -> Outcome {
    context.scan_keys(&[], |_, _, entry| {
        *keys += 1;
        *expiring += u64::from(entry.expiry_ms.is_some());
        *keys <= COUNTED_KEYS
    })?;
    if *keys > COUNTED_KEYS {
        let all = context.estimate_keys()?.max(*keys);
        *expiring = (u128::from(*expiring) * u128::from(all) / u128::from(*keys)) as u64;
        *keys = all;
    }
    Ok(Reply::OK)
}
