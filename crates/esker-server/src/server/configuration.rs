//! CONFIG: the settings, and those of them that can change.

use super::cluster_information::is_cluster;
use super::config::{Settings, SyncPolicy};
use super::descriptors::limit_clients;
use super::session::Session;
use super::shared::Shared;
use crate::commands::{SYNTAX, find_subcommand, help};
use crate::protocol::{Reply, parse_integer};
use crate::store::matches_glob;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::BTreeSet;

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
        ("cluster-enabled", if is_cluster(shared) { "yes" } else { "no" }.into()),
        ("daemonize", "no".into()),
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
        ("slowlog-log-slower-than", "-1".into()),
        ("slowlog-max-len", "0".into()),
        ("tcp-keepalive", "300".into()),
        ("timeout", settings.timeout_seconds.to_string()),
        ("zset-max-listpack-entries", settings.thresholds.sorted_set_entries.to_string()),
        ("zset-max-listpack-value", settings.thresholds.sorted_set_value_bytes.to_string()),
        ("zset-max-ziplist-entries", settings.thresholds.sorted_set_entries.to_string()),
        ("zset-max-ziplist-value", settings.thresholds.sorted_set_value_bytes.to_string()),
        ("tls-port", tls.map_or(0, |address| address.port()).to_string()),
    ]
}

/// Why a value is refused.
type Refusal = Cow<'static, str>;

/// The longest value of a setting that is an `int`, and an `unsigned int`, in Redis.
const INT_MAX: i64 = i32::MAX as i64;
const UNSIGNED_INT_MAX: i64 = u32::MAX as i64;

fn between(number: i64, least: i64, most: i64) -> Result<i64, Refusal> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(format!("argument must be between {least} and {most} inclusive").into())
}

fn integer(value: &str, least: i64, most: i64) -> Result<i64, Refusal> {
    match parse_integer(value.as_bytes()) {
        Some(number) => between(number, least, most),
        None => Err("argument couldn't be parsed into an integer".into()),
    }
}

/// A count without a limit.
fn count(value: &str) -> Result<u64, Refusal> {
    integer(value, 0, i64::MAX).map(i64::unsigned_abs)
}

/// A number of bytes, which may have a unit: `k` is 1,000 and `kb` 1,024 of them.
fn bytes(value: &str, least: i64) -> Result<usize, Refusal> {
    const UNITS: [(&str, i64); 8] = [
        ("", 1),
        ("b", 1),
        ("k", 1_000),
        ("kb", 1 << 10),
        ("m", 1_000_000),
        ("mb", 1 << 20),
        ("g", 1_000_000_000),
        ("gb", 1 << 30),
    ];
    let end = value.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(value.len());
    let (digits, unit) = value.split_at(end);
    let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let number = digits.parse::<i64>().ok().zip(unit).and_then(|(number, (_, size))| number.checked_mul(*size));
    let Some(number) = number else { return Err("argument must be a memory value".into()) };
    between(number, least, i64::MAX).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// One of these words.
fn word(value: &str, words: &[&str]) -> Result<(), Refusal> {
    if words.iter().any(|word| value.eq_ignore_ascii_case(word)) {
        return Ok(());
    }
    Err(format!("argument(s) must be one of the following: {}", words.join(", ")).into())
}

/// A value that is what it is and cannot be another one, for this reason.
fn only(is_so: bool, why: &'static str) -> Result<(), Refusal> {
    if is_so { Ok(()) } else { Err(why.into()) }
}

/// What can be set to the value that it has, and to no other one; `None` if there is no such
/// setting.
fn fixed(memory_budget_bytes: usize, name: &str, value: &str) -> Option<Result<(), Refusal>> {
    const POLICIES: [&str; 8] = [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
    ];
    Some(match name {
        "appendonly" if value.eq_ignore_ascii_case("no") => Err("the log is always kept".into()),
        "appendonly" => only(value.eq_ignore_ascii_case("yes"), "argument must be 'yes' or 'no'"),
        "maxmemory" => bytes(value, 0)
            .and_then(|bytes| only(bytes == memory_budget_bytes, "it is set at the start, with --memory-budget")),
        "maxmemory-policy" => word(value, &POLICIES).and_then(|()| {
            only(value.eq_ignore_ascii_case("noeviction"), "nothing is evicted; the data is on the disk")
        }),
        // There are no snapshots of memory, and the log is always kept: only that can be set.
        "save" => only(value.is_empty(), "there are no snapshots; everything is in the log"),
        "slowlog-log-slower-than" => {
            integer(value, -1, i64::MAX).and_then(|number| only(number == -1, "there is no slow log"))
        }
        "slowlog-max-len" => count(value).and_then(|number| only(number == 0, "there is no slow log")),
        _ => return None,
    })
}

/// Changes a setting; `None` if there is none of that name that can change.
fn change(settings: &mut Settings, name: &str, value: &str) -> Option<Result<(), Refusal>> {
    let thresholds = &mut settings.thresholds;
    Some(match name {
        "appendfsync" => word(value, &["everysec", "always", "no"])
            .map(|()| settings.sync = SyncPolicy::parse(value).unwrap_or(settings.sync)),
        "client-query-buffer-limit" => bytes(value, 1 << 20).map(|bytes| settings.query_buffer_bytes = bytes),
        "hash-max-listpack-entries" | "hash-max-ziplist-entries" => {
            count(value).map(|count| thresholds.hash_entries = count)
        }
        "hash-max-listpack-value" | "hash-max-ziplist-value" => {
            bytes(value, 0).map(|bytes| thresholds.hash_value_bytes = bytes)
        }
        "list-compress-depth" => {
            integer(value, 0, INT_MAX).map(|depth| thresholds.list_compress_depth = depth.unsigned_abs())
        }
        "list-max-listpack-size" | "list-max-ziplist-size" => {
            integer(value, -INT_MAX - 1, INT_MAX).map(|size| thresholds.list_listpack_size = size)
        }
        "set-max-intset-entries" => count(value).map(|count| thresholds.set_entries = count),
        "zset-max-listpack-entries" | "zset-max-ziplist-entries" => {
            count(value).map(|count| thresholds.sorted_set_entries = count)
        }
        "zset-max-listpack-value" | "zset-max-ziplist-value" => {
            bytes(value, 0).map(|bytes| thresholds.sorted_set_value_bytes = bytes)
        }
        "maxclients" => integer(value, 1, UNSIGNED_INT_MAX).and_then(|count| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            only(limit_clients(count) >= count, "the system's limit of open files is too low for so many")?;
            settings.max_clients = count;
            Ok(())
        }),
        "maxmemory-clients" => bytes(value, 0).map(|bytes| settings.client_memory_bytes = bytes),
        "proto-max-bulk-len" => bytes(value, 1 << 20).map(|bytes| settings.argument_bytes = bytes.min(512 << 20)),
        "requirepass" => {
            settings.password = Some(value.to_string()).filter(|password| !password.is_empty());
            Ok(())
        }
        "timeout" => integer(value, 0, INT_MAX).map(|seconds| settings.timeout_seconds = seconds.unsigned_abs()),
        _ => return None,
    })
}

/// CONFIG GET | SET | RESETSTAT | REWRITE | HELP
pub fn configuration(session: &Session, arguments: &[Bytes]) -> Reply {
    let description = match find_subcommand("config", arguments) {
        Ok(description) => description,
        Err(error) => return Reply::error(error),
    };
    let rest = &arguments[2..];
    match description.name {
        "config|get" => {
            let lower: Vec<Vec<u8>> = rest.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
            let found = parameters(&session.shared).into_iter();
            let found = found.filter(|(name, _)| lower.iter().any(|pattern| matches_glob(pattern, name.as_bytes())));
            Reply::Map(found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect())
        }
        "config|set" if !rest.len().is_multiple_of(2) => Reply::error(SYNTAX),
        "config|set" => set(session, rest),
        "config|resetstat" => {
            session.shared.statistics.reset();
            Reply::OK
        }
        "config|rewrite" => Reply::error("ERR The server is running without a config file"),
        _ => help("config"),
    }
}

/// All of the pairs, or none.
fn set(session: &Session, pairs: &[Bytes]) -> Reply {
    let failed = |name: &str, why: &str| {
        Reply::error(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
    };
    let known: BTreeSet<&str> = parameters(&session.shared).into_iter().map(|(name, _)| name).collect();
    let budget = session.shared.config.memory_budget_bytes.unwrap_or(0);
    let mut settings = session.shared.settings.write();
    let mut changed = settings.clone();
    let mut names = BTreeSet::new();
    for pair in pairs.chunks_exact(2) {
        let given = String::from_utf8_lossy(&pair[0]);
        let name = given.to_lowercase();
        if !known.contains(name.as_str()) {
            return Reply::error(format!("ERR Unknown option or number of arguments for CONFIG SET - '{given}'"));
        }
        if change(&mut changed.clone(), &name, "").is_none() && fixed(budget, &name, "").is_none() {
            return failed(&given, "can't set immutable config");
        }
        if !names.insert(name) {
            return failed(&given, "duplicate parameter");
        }
    }
    for pair in pairs.chunks_exact(2) {
        let given = String::from_utf8_lossy(&pair[0]);
        let name = given.to_lowercase();
        // In other letters, a password would not be the one that the client goes on to give.
        let Ok(value) = std::str::from_utf8(&pair[1]) else { return failed(&given, "argument must be UTF-8") };
        let outcome = change(&mut changed, &name, value).or_else(|| fixed(budget, &name, value));
        if let Some(Err(why)) = outcome {
            return failed(&given, &why);
        }
    }
    session.shared.client_memory.set_limit(changed.client_memory_bytes);
    *settings = changed;
    Reply::OK
}
