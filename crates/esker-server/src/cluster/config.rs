//! How a node of a cluster is set up.

use super::address::Address;
use std::path::PathBuf;

/// What a node that is not the leader does with writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followers {
    /// It has the leader do them, and passes its replies on.
    Forward,
    /// It tells the client where the leader is, with MOVED, as clients of Redis Cluster expect.
    Redirect,
}

/// The files of TLS between the nodes, in PEM. Each node shows its certificate and asks for that of
/// the other one.
#[derive(Clone, Debug)]
pub struct ClusterTlsFiles {
    /// The certificate of this node, for the host of its address, with those between it and the
    /// root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Those that sign the certificates of the nodes.
    pub authority: PathBuf,
}

/// How a node of a cluster is set up.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The number of the node; at least 1. The directory of a node belongs to its number.
    pub node: u64,
    /// Where other nodes connect, as `host:port`.
    pub listen: String,
    /// How others reach this node.
    pub advertise: Address,
    /// What it does with writes while it is not the leader.
    pub followers: Followers,
    /// How often the leader shows that it is there.
    pub heartbeat_ms: u64,
    /// After how much silence of the leader a node seeks to be elected: drawn from this to twice
    /// this.
    pub election_ms: u64,
    /// After how many entries a snapshot is made, which lets the log go up to it.
    pub snapshot_entries: u64,
    /// A database that a new cluster of this node alone begins with, as a backup of a server or of
    /// a node's state.
    pub import: Option<PathBuf>,
    /// TLS between the nodes. Without it who reaches the port has the cluster.
    pub tls: Option<ClusterTlsFiles>,
}

impl ClusterConfig {
    /// The defaults for a node.
    pub fn new(node: u64, listen: impl Into<String>, advertise: Address) -> ClusterConfig {
        ClusterConfig {
            node,
            listen: listen.into(),
            advertise,
            followers: Followers::Forward,
            heartbeat_ms: 100,
            election_ms: 500,
            snapshot_entries: 100_000,
            import: None,
            tls: None,
        }
    }
}
