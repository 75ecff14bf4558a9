//! `esker serve`: a database for clients of Redis.

use crate::failure::Failure;
use crate::size::size;
use clap::{Args, ValueEnum};
use esker_server::{
    Address, ClusterConfig, ClusterTlsFiles, Config, Followers, ServerError, SyncPolicy, TlsFiles, run,
};
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use tracing_subscriber::EnvFilter;

const EXAMPLES: &str = "\
Examples:
  esker serve --db data                 # for clients on this machine, at port 6379
  esker serve --db data --sync always   # an acknowledged write survives a power failure
  esker serve --db data --listen 0.0.0.0:6379 --password-file secret --metrics 127.0.0.1:9121
  esker serve data --cluster-node 1 --cluster-listen 127.0.0.1:16379 \\
              --advertise 127.0.0.1:6379@16379
  esker serve --db data --no-listen --password-file secret \\
              --tls 0.0.0.0:6380 --tls-certificate server.pem --tls-key server.key

The process ends on SIGTERM, SIGINT and SHUTDOWN, once the commands that it has begun are done. doc/server.md has the
commands that there are.

Exit codes: 0 it was told to end; 1 it cannot start, or go on, and may be started again once that is mended; 2 wrong
usage; 3 the state of the node is not that of the others: replace it.";

/// When the log is synced.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sync {
    /// Before each reply to a write; commands that come together share one sync
    Always,
    /// Once in a second
    Everysec,
    /// When the system does it
    No,
}

/// Serve a database to clients of Redis
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// The directory of the database, which is created if it is not there
    #[arg(value_name = "DIR", required_unless_present = "db")]
    directory: Option<PathBuf>,
    /// The same
    #[arg(long, env = "ESKER_DB", value_name = "DIR")]
    db: Option<PathBuf>,
    /// Where clients connect without TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6379")]
    listen: SocketAddr,
    /// The port alone: on this machine, or at the host of --advertise if that is an IP address
    #[arg(long, value_name = "PORT", conflicts_with_all = ["listen", "no_listen"])]
    port: Option<u16>,
    /// Serve with TLS only
    #[arg(long, conflicts_with = "listen", requires = "tls")]
    no_listen: bool,
    /// Where clients connect with TLS
    #[arg(long, value_name = "ADDRESS:PORT", requires_all = ["tls_certificate", "tls_key"])]
    tls: Option<SocketAddr>,
    /// The certificate, in PEM, with those between it and the root
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Clients need certificates that one of these signs, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_client_authority: Option<PathBuf>,
    /// Where /metrics, /health/live and /health/ready are, over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// A file with the password that clients need
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The password that clients need; other users may see an argument, but not a variable
    #[arg(
        long,
        env = "ESKER_PASSWORD",
        hide_env_values = true,
        value_name = "PASSWORD",
        conflicts_with = "password_file"
    )]
    password: Option<String>,
    /// Serve everybody who can connect, also from other machines
    #[arg(long)]
    without_password: bool,
    /// When the log is synced
    #[arg(long, value_enum, default_value_t = Sync::Everysec)]
    sync: Sync,
    /// How many logical databases there are
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    databases: u16,
    /// How many clients may be connected
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_clients: usize,
    /// How many threads serve connections; more than one pay where there are many processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    io_threads: u16,
    /// After how many seconds without a request a client is disconnected; 0 is never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,
    /// The memory that requests and replies of all clients may take; above it they wait, and those
    /// that hold most are disconnected; 0 is no limit
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB")]
    client_memory: usize,
    /// The memory for caches and memtables
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_budget: Option<usize>,
    #[command(flatten)]
    cluster: Cluster,
    /// Let clients give DEBUG SLEEP, which stops the server for a time
    #[arg(long)]
    enable_debug_command: bool,
    /// What is logged, as for RUST_LOG: error, warn, info, debug, or more for each part
    #[arg(long, env = "ESKER_LOG", value_name = "FILTER", default_value = "info,openraft=error")]
    log: String,
}

/// What followers do with writes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFollowers {
    /// The leader does them, and the follower passes the replies on
    Forward,
    /// The client is told where the leader is, as by Redis Cluster
    Redirect,
}

/// A node of a cluster
#[derive(Args)]
#[command(next_help_heading = "Cluster")]
struct Cluster {
    /// Be this node of a cluster; nodes are numbered from 1
    #[arg(long, value_name = "ID", requires_all = ["cluster_listen", "advertise"],
          value_parser = clap::value_parser!(u64).range(1..))]
    cluster_node: Option<u64>,
    /// Where other nodes connect
    #[arg(long, value_name = "HOST:PORT", requires = "cluster_node")]
    cluster_listen: Option<String>,
    /// How clients and other nodes reach this node
    #[arg(long, value_name = "HOST:PORT@RAFTPORT", requires = "cluster_node")]
    advertise: Option<String>,
    /// What a node that is not the leader does with writes
    #[arg(long, value_enum, default_value_t = OnFollowers::Forward, requires = "cluster_node")]
    followers: OnFollowers,
    /// How often the leader shows that it is there
    #[arg(long, value_name = "MS", default_value_t = 100, requires = "cluster_node",
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    cluster_heartbeat_ms: u64,
    /// After how much silence a node seeks to be elected: drawn from this to twice this
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "cluster_node",
          value_parser = clap::value_parser!(u64).range(2..=600_000))]
    cluster_election_ms: u64,
    /// After how many entries of the log a snapshot is made, which lets them go
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "cluster_node",
          value_parser = clap::value_parser!(u64).range(1..))]
    cluster_snapshot_entries: u64,
    /// Begin a cluster of this node alone with the data in DIR: that of a server, of a node's
    /// state, or a backup of one that was restored
    #[arg(long, value_name = "DIR", requires = "cluster_node")]
    import: Option<PathBuf>,
    /// The certificate of this node for the others, in PEM, for the host of --advertise
    #[arg(long, value_name = "FILE", requires_all = ["cluster_tls_key", "cluster_tls_authority"])]
    cluster_tls_certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "cluster_tls_certificate")]
    cluster_tls_key: Option<PathBuf>,
    /// What signs the certificates of all nodes, in PEM
    #[arg(long, value_name = "FILE", requires = "cluster_tls_certificate")]
    cluster_tls_authority: Option<PathBuf>,
}

impl Cluster {
    fn config(self) -> Result<Option<ClusterConfig>, Failure> {
        let (Some(node), Some(listen), Some(advertise)) = (self.cluster_node, self.cluster_listen, self.advertise)
        else {
            return Ok(None);
        };
        let advertise = Address::parse(&advertise).map_err(|why| Failure::Usage(format!("--advertise: {why}")))?;
        let tls = match (self.cluster_tls_certificate, self.cluster_tls_key, self.cluster_tls_authority) {
            (Some(certificate), Some(key), Some(authority)) => Some(ClusterTlsFiles { certificate, key, authority }),
            _ => None,
        };
        Ok(Some(ClusterConfig {
            followers: match self.followers {
                OnFollowers::Forward => Followers::Forward,
                OnFollowers::Redirect => Followers::Redirect,
            },
            heartbeat_ms: self.cluster_heartbeat_ms,
            election_ms: self.cluster_election_ms,
            snapshot_entries: self.cluster_snapshot_entries,
            import: self.import,
            tls,
            ..ClusterConfig::new(node, listen, advertise)
        }))
    }
}

impl Serve {
    /// Serves until the process is told to end.
    pub fn run(self) -> Result<(), Failure> {
        let filter = EnvFilter::try_new(&self.log)
            .map_err(|error| Failure::Usage(format!("--log {:?}: {error}; see `esker serve --help`", self.log)))?;
        let config = self.config()?;
        // Logging that is set up already stays as it is.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .try_init();
        run(config).map_err(|error| match error {
            ServerError::Config(text) => Failure::Usage(text),
            ServerError::System(what, error) => Failure::io(&what, &error),
            ServerError::Diverged(text) => Failure::Diverged(text),
            other => Failure::Operation(other.to_string()),
        })
    }

    fn config(self) -> Result<Config, Failure> {
        let password = match &self.password_file {
            // Which a variable may be by mistake: the server takes it as none.
            None if self.password.as_deref() == Some("") => {
                return Err(Failure::Usage(
                    "the password is empty; give one, or leave --password and ESKER_PASSWORD out".into(),
                ));
            }
            None => self.password.clone(),
            Some(path) => Some(read_password(path)?),
        };
        let cluster = self.cluster.config()?;
        let host = cluster.as_ref().and_then(|cluster| cluster.advertise.host.parse().ok());
        let at_host = |port| SocketAddr::new(host.unwrap_or(IpAddr::from([127, 0, 0, 1])), port);
        let listen = (!self.no_listen).then_some(self.port.map_or(self.listen, at_host));
        let is_open = [listen, self.tls].iter().flatten().any(|address| !address.ip().is_loopback());
        // Certificates of clients are as good as a password.
        let is_protected = password.is_some() || listen.is_none() && self.tls_client_authority.is_some();
        if is_open && !is_protected && !self.without_password {
            return Err(Failure::Usage(
                "other machines could connect without a password; give --password-file, or --without-password if that is \
                 meant"
                    .into(),
            ));
        }
        let tls = match (self.tls, self.tls_certificate, self.tls_key) {
            (Some(address), Some(certificate), Some(key)) => {
                Some((address, TlsFiles { certificate, key, client_authority: self.tls_client_authority }))
            }
            _ => None,
        };
        Ok(Config {
            listen,
            tls,
            metrics: self.metrics,
            databases: usize::from(self.databases),
            password,
            max_clients: self.max_clients,
            io_threads: usize::from(self.io_threads),
            sync: match self.sync {
                Sync::Always => SyncPolicy::Always,
                Sync::Everysec => SyncPolicy::EverySecond,
                Sync::No => SyncPolicy::No,
            },
            timeout_seconds: self.timeout,
            client_memory_bytes: self.client_memory,
            memory_budget_bytes: self.memory_budget,
            allows_debug: self.enable_debug_command,
            cluster,
            ..Config::new(self.directory.or(self.db).unwrap_or_default())
        })
    }
}

/// The password in a file, without the end of its line.
fn read_password(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(&path.display().to_string(), &error))?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Failure::Usage(format!("{}: the file is empty; write the password into it", path.display())));
    }
    Ok(password.into())
}
