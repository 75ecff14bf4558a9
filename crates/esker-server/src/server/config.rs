//! The settings of a server, and those of them that can change while it runs.

use crate::cluster::ClusterConfig;
use crate::store::Thresholds;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// When the log is synced, as `appendfsync` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before each reply to a write: one sync for all commands that are executed together.
    Always,
    /// Once in a second, if something was written.
    EverySecond,
    /// When the system does it: a crash of the machine may lose more than a second.
    No,
}

impl SyncPolicy {
    const NAMES: [(SyncPolicy, &'static str); 3] =
        [(SyncPolicy::Always, "always"), (SyncPolicy::EverySecond, "everysec"), (SyncPolicy::No, "no")];

    /// The policy of that name.
    pub fn parse(name: &str) -> Option<SyncPolicy> {
        SyncPolicy::NAMES.iter().find(|(_, other)| other.eq_ignore_ascii_case(name)).map(|(policy, _)| *policy)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        SyncPolicy::NAMES.iter().find(|(policy, _)| *policy == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The files of TLS, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, with those between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// If clients need certificates: those that sign them.
    pub client_authority: Option<PathBuf>,
}

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory of the database.
    pub directory: PathBuf,
    /// Where clients connect without TLS; none is a server for TLS only.
    pub listen: Option<SocketAddr>,
    /// Where clients connect with TLS.
    pub tls: Option<(SocketAddr, TlsFiles)>,
    /// Where metrics and the state of health are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// How many logical databases there are.
    pub databases: usize,
    /// The password that clients need.
    pub password: Option<String>,
    /// How many clients may be connected.
    pub max_clients: usize,
    /// How many threads read requests, execute them, and write replies. Commands are executed one
    /// after the other, whatever the number; see `doc/server.md`.
    pub io_threads: usize,
    /// When the log is synced.
    pub sync: SyncPolicy,
    /// After how many seconds without a request a client is disconnected; never if 0.
    pub timeout_seconds: u64,
    /// The bytes that a client's requests may take before they are executed.
    pub query_buffer_bytes: usize,
    /// The bytes of requests that are not executed yet, and of replies that are not taken yet, that
    /// all clients may hold together; no limit if 0.
    pub client_memory_bytes: usize,
    /// The engine's budget; see [`esker::Options::memory_budget_bytes`].
    pub memory_budget_bytes: Option<usize>,
    /// The node of a cluster that this server is, if it is one.
    pub cluster: Option<ClusterConfig>,
    /// Whether clients may give DEBUG, with which each of them can stop the server for a time.
    pub allows_debug: bool,
}

impl Config {
    /// The default port.
    pub const PORT: u16 = 6379;

    /// The defaults, for a database in `directory`: on the local host, without password.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            listen: Some(SocketAddr::from(([127, 0, 0, 1], Config::PORT))),
            tls: None,
            metrics: None,
            databases: 16,
            password: None,
            max_clients: 10_000,
            io_threads: 1,
            sync: SyncPolicy::EverySecond,
            timeout_seconds: 0,
            query_buffer_bytes: 1 << 30,
            client_memory_bytes: 1 << 30,
            memory_budget_bytes: None,
            cluster: None,
            allows_debug: false,
        }
    }
}

/// What CONFIG SET changes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As [`Config::password`].
    pub password: Option<String>,
    /// As [`Config::max_clients`].
    pub max_clients: usize,
    /// As [`Config::sync`].
    pub sync: SyncPolicy,
    /// As [`Config::timeout_seconds`].
    pub timeout_seconds: u64,
    /// As [`Config::query_buffer_bytes`].
    pub query_buffer_bytes: usize,
    /// As [`Config::client_memory_bytes`].
    pub client_memory_bytes: usize,
    /// The longest argument.
    pub argument_bytes: usize,
    /// What OBJECT ENCODING goes by.
    pub thresholds: Thresholds,
}

impl Settings {
    /// What a server begins with.
    pub fn of(config: &Config) -> Settings {
        Settings {
            password: config.password.clone(),
            max_clients: config.max_clients,
            sync: config.sync,
            timeout_seconds: config.timeout_seconds,
            query_buffer_bytes: config.query_buffer_bytes,
            client_memory_bytes: config.client_memory_bytes,
            argument_bytes: 512 << 20,
            thresholds: Thresholds::default(),
        }
    }
}
