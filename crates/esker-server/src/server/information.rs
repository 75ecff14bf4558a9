//! CONFIG and INFO.

use super::cluster_information::{is_cluster, replication};
use super::config::{Settings, SyncPolicy};
use super::descriptors::limit_clients;
use super::execution::Execution;
use super::session::Session;
use super::shared::{Shared, now_ms};
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Outcome, matches_glob};
use bytes::Bytes;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// The version of Redis whose commands and replies these are.
pub const COMPATIBLE_VERSION: &str = "7.0.15";

/// A parameter of CONFIG with its value now.
fn parameters(shared: &Shared) -> Vec<(&'static str, String)> {
    let settings = shared.settings.read();
    let config = &shared.config;
    let (listen, tls) = (config.listen, config.tls.as_ref().map(|(address, _)| *address));
    vec![
        ("appendfsync", settings.sync.to_string()),
        ("appendonly", "yes".into()),
        ("bind", listen.or(tls).map_or(String::new(), |address| address.ip().to_string())),
        ("client-query-buffer-limit", settings.query_buffer_bytes.to_string()),
        ("databases", config.databases.to_string()),
        ("dir", config.directory.display().to_string()),
        ("hash-max-listpack-entries", settings.thresholds.hash_entries.to_string()),
        ("hash-max-listpack-value", settings.thresholds.hash_value_bytes.to_string()),
        ("hash-max-ziplist-entries", settings.thresholds.hash_entries.to_string()),
        ("hash-max-ziplist-value", settings.thresholds.hash_value_bytes.to_string()),
        ("io-threads", config.io_threads.to_string()),
        ("list-compress-depth", settings.thresholds.list_compress_depth.to_string()),
        ("list-max-listpack-size", settings.thresholds.list_listpack_size.to_string()),
        ("list-max-ziplist-size", settings.thresholds.list_listpack_size.to_string()),
        ("maxclients", settings.max_clients.to_string()),
        ("maxmemory", config.memory_budget_bytes.unwrap_or(0).to_string()),
        ("maxmemory-clients", settings.client_memory_bytes.to_string()),
        ("maxmemory-policy", "noeviction".into()),
        ("port", listen.map_or(0, |address| address.port()).to_string()),
        ("proto-max-bulk-len", settings.argument_bytes.to_string()),
        ("requirepass", settings.password.clone().unwrap_or_default()),
        ("save", String::new()),
        ("set-max-intset-entries", settings.thresholds.set_entries.to_string()),
        ("tcp-keepalive", "300".into()),
        ("timeout", settings.timeout_seconds.to_string()),
        ("zset-max-listpack-entries", settings.thresholds.sorted_set_entries.to_string()),
        ("zset-max-listpack-value", settings.thresholds.sorted_set_value_bytes.to_string()),
        ("zset-max-ziplist-entries", settings.thresholds.sorted_set_entries.to_string()),
        ("zset-max-ziplist-value", settings.thresholds.sorted_set_value_bytes.to_string()),
        ("tls-port", tls.map_or(0, |address| address.port()).to_string()),
    ]
}

/// Changes a setting; `None` if there is none of that name that can change.
fn change(settings: &mut Settings, name: &str, value: &str) -> Option<Result<(), &'static str>> {
    let number = |least: i64| match parse_integer(value.as_bytes()) {
        Some(number) if number >= least => Ok(number as usize),
        Some(_) => Err("argument must be larger than what was given"),
        None => Err("argument couldn't be parsed into an integer"),
    };
    let changed = match name {
        "appendfsync" => match SyncPolicy::parse(value) {
            Some(policy) => {
                settings.sync = policy;
                Ok(())
            }
            None => Err("argument(s) must be one of the following: everysec, always, no"),
        },
        "client-query-buffer-limit" => number(1 << 20).map(|bytes| settings.query_buffer_bytes = bytes),
        "hash-max-listpack-entries" | "hash-max-ziplist-entries" => {
            number(0).map(|count| settings.thresholds.hash_entries = count as u64)
        }
        "hash-max-listpack-value" | "hash-max-ziplist-value" => {
            number(0).map(|bytes| settings.thresholds.hash_value_bytes = bytes)
        }
        "list-compress-depth" => number(0).map(|depth| settings.thresholds.list_compress_depth = depth as u64),
        "list-max-listpack-size" | "list-max-ziplist-size" => match parse_integer(value.as_bytes()) {
            Some(size) => {
                settings.thresholds.list_listpack_size = size;
                Ok(())
            }
            None => Err("argument couldn't be parsed into an integer"),
        },
        "set-max-intset-entries" => number(0).map(|count| settings.thresholds.set_entries = count as u64),
        "zset-max-listpack-entries" | "zset-max-ziplist-entries" => {
            number(0).map(|count| settings.thresholds.sorted_set_entries = count as u64)
        }
        "zset-max-listpack-value" | "zset-max-ziplist-value" => {
            number(0).map(|bytes| settings.thresholds.sorted_set_value_bytes = bytes)
        }
        "maxclients" => match number(1) {
            Ok(count) if limit_clients(count) < count => Err("the system's limit of open files is too low for so many"),
            checked => checked.map(|count| settings.max_clients = count),
        },
        "maxmemory-clients" => number(0).map(|bytes| settings.client_memory_bytes = bytes),
        "proto-max-bulk-len" => number(1 << 20).map(|bytes| settings.argument_bytes = bytes.min(512 << 20)),
        "requirepass" => {
            settings.password = Some(value.to_string()).filter(|password| !password.is_empty());
            Ok(())
        }
        // There are no snapshots of memory, and the log is always kept: only that can be set.
        "save" if value.is_empty() => Ok(()),
        "save" => Err("there are no snapshots; everything is in the log"),
        "appendonly" if value.eq_ignore_ascii_case("yes") => Ok(()),
        "appendonly" => Err("the log is always kept"),
        "timeout" => number(0).map(|seconds| settings.timeout_seconds = seconds as u64),
        _ => return None,
    };
    Some(changed)
}

/// CONFIG GET | SET | RESETSTAT | REWRITE
pub fn configuration(session: &Session, arguments: &[Bytes]) -> Reply {
    let subcommand = String::from_utf8_lossy(&arguments[1]).to_lowercase();
    let rest = &arguments[2..];
    match subcommand.as_str() {
        "get" if !rest.is_empty() => {
            let lower: Vec<Vec<u8>> = rest.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
            let found = parameters(&session.shared).into_iter();
            let found = found.filter(|(name, _)| lower.iter().any(|pattern| matches_glob(pattern, name.as_bytes())));
            Reply::Map(found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect())
        }
        "set" if !rest.is_empty() && rest.len().is_multiple_of(2) => set(session, rest),
        "resetstat" if rest.is_empty() => {
            let statistics = &session.shared.statistics;
            for counter in [&statistics.connections, &statistics.commands, &statistics.errors] {
                counter.reset();
            }
            Reply::OK
        }
        "rewrite" if rest.is_empty() => Reply::error("ERR The server is running without a config file"),
        "help" => Reply::Array(vec![Reply::Status("CONFIG GET | SET | RESETSTAT | REWRITE".into())]),
        "get" | "set" | "resetstat" | "rewrite" => {
            Reply::error(format!("ERR wrong number of arguments for 'config|{subcommand}' command"))
        }
        _ => {
            let name = String::from_utf8_lossy(&arguments[1]);
            Reply::error(format!("ERR unknown subcommand '{name}'. Try CONFIG HELP."))
        }
    }
}

/// All of the pairs, or none.
fn set(session: &Session, pairs: &[Bytes]) -> Reply {
    let mut settings = session.shared.settings.write();
    let mut changed = settings.clone();
    for pair in pairs.chunks_exact(2) {
        let name = String::from_utf8_lossy(&pair[0]);
        // In other letters, a password would not be the one that the client goes on to give.
        let Ok(value) = std::str::from_utf8(&pair[1]) else {
            return Reply::error(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - argument must be UTF-8"
            ));
        };
        match change(&mut changed, &name.to_lowercase(), value) {
            Some(Ok(())) => {}
            Some(Err(why)) => {
                return Reply::error(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"));
            }
            None => {
                return Reply::error(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"));
            }
        }
    }
    session.shared.client_memory.set_limit(changed.client_memory_bytes);
    *settings = changed;
    Reply::OK
}

/// The sections of INFO.
const SECTIONS: [&str; 8] =
    ["server", "clients", "memory", "persistence", "stats", "replication", "cluster", "keyspace"];

/// INFO section...
pub fn info(session: &Session, execution: &mut Execution, sections: &[Bytes]) -> Reply {
    let names: Vec<String> = sections.iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    let is_all = names.is_empty() || names.iter().any(|name| ["all", "default", "everything"].contains(&name.as_str()));
    let mut text = String::new();
    for section in SECTIONS {
        if is_all || names.iter().any(|name| name == section) {
            let lines = lines(&session.shared, execution, section);
            let separator = if text.is_empty() { "" } else { "\r\n" };
            let title = section[..1].to_uppercase() + &section[1..];
            let _ = write!(text, "{separator}# {title}\r\n{lines}");
        }
    }
    Reply::Verbatim(text)
}

fn lines(shared: &Shared, execution: &mut Execution, section: &str) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to memory does not fail.
        let _ = write!(text, "{name}:{value}\r\n");
    };
    match section {
        "server" => {
            let uptime = now_ms().saturating_sub(shared.started_ms) / 1000;
            line("redis_version", &COMPATIBLE_VERSION);
            line("esker_version", &env!("CARGO_PKG_VERSION"));
            line("redis_mode", &if is_cluster(shared) { "cluster" } else { "standalone" });
            line("arch_bits", &usize::BITS);
            line("process_id", &std::process::id());
            line("run_id", &shared.run_id);
            line("tcp_port", &shared.config.listen.map_or(0, |address| address.port()));
            line("uptime_in_seconds", &uptime);
            line("uptime_in_days", &(uptime / 86_400));
        }
        "clients" => {
            let clients: Vec<_> = shared.clients.lock().values().cloned().collect();
            let blocked = clients.iter().filter(|client| client.is_blocked.load(Ordering::Relaxed)).count();
            line("connected_clients", &clients.len());
            line("maxclients", &shared.settings.read().max_clients);
            line("blocked_clients", &blocked);
        }
        "memory" => {
            let memory = execution.keyspaces().db().stats().memory;
            let memory = memory.memtable_bytes
                + memory.immutable_memtable_bytes
                + memory.cache_bytes
                + memory.index_bytes
                + memory.filter_bytes;
            line("used_memory", &memory);
            line("maxmemory", &shared.config.memory_budget_bytes.unwrap_or(0));
            line("mem_clients_normal", &shared.client_memory.total());
            line("maxmemory_policy", &"noeviction");
        }
        "persistence" => {
            line("loading", &0);
            line("aof_enabled", &1);
            line("rdb_last_save_time", &shared.synced_seconds.load(Ordering::Relaxed));
            if let Some(node) = shared.cluster.get() {
                line("raft_state_directory", &node.database().directory().display());
            }
        }
        "stats" => {
            let statistics = &shared.statistics;
            line("total_connections_received", &statistics.connections.get());
            line("total_commands_processed", &statistics.commands.get());
            line("total_net_input_bytes", &statistics.input_bytes.get());
            line("total_net_output_bytes", &statistics.output_bytes.get());
            line("rejected_connections", &statistics.refused_connections.get());
            line("evicted_clients", &statistics.evicted_clients.get());
            line("total_error_replies", &statistics.errors.get());
        }
        "cluster" => line("cluster_enabled", &u8::from(is_cluster(shared))),
        "replication" => match shared.cluster.get() {
            Some(node) => replication(node).iter().for_each(|(name, value)| line(name, value)),
            None => {
                line("role", &"master");
                line("connected_slaves", &0);
            }
        },
        _ => return keyspace_lines(shared, execution),
    }
    text
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
