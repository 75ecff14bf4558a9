//! Which node of which cluster this is: a message for another one is refused before it is looked
//! at.

use super::messages::Header;
use crate::store::Random;
use esker::{Db, Keyspace, KeyspaceOptions, WriteOptions};
use parking_lot::Mutex;

/// The keyspace, in the database of the log, and its record.
const KEYSPACE: &str = "cluster";
const RECORD: &str = "identity";
/// The number of nobody: that of a cluster that is not known yet, and of any node at an
/// address.
pub const NOBODY: u64 = 0;

/// The number of a new cluster.
pub fn cluster_number(random: &mut Random) -> u128 {
    (u128::from(random.next()) << 64 | u128::from(random.next())).max(1)
}

/// The number of a node, and that of its cluster.
pub struct Identity {
    node: u64,
    stored: Keyspace,
    /// Drawn at RAFT.INIT or an import; 0 as long as the node is in no cluster.
    cluster: Mutex<u128>,
    /// One RAFT.INIT at a time begins a cluster.
    pub beginning: tokio::sync::Mutex<()>,
    /// The last refusal, which is logged once.
    refusal: Mutex<String>,
}

impl Identity {
    /// Reads what is stored beside the log.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn open(db: &Db, node: u64) -> esker::Result<Identity> {
        let stored = db.keyspace(KEYSPACE, KeyspaceOptions::default())?;
        let cluster = stored.get(RECORD)?.and_then(|bytes| bytes.as_ref().try_into().ok());
        let cluster = Mutex::new(cluster.map_or(0, u128::from_be_bytes));
        Ok(Identity { node, stored, cluster, beginning: tokio::sync::Mutex::default(), refusal: Mutex::default() })
    }

    /// The number of the cluster; 0 if this node is in none.
    pub fn cluster(&self) -> u128 {
        *self.cluster.lock()
    }

    /// Takes part in that cluster from now on, durably, unless the node is in one.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn join(&self, cluster: u128) -> esker::Result<()> {
        let mut known = self.cluster.lock();
        if *known == 0 {
            self.stored.put_with(RECORD, cluster.to_be_bytes(), &WriteOptions::new().sync(true))?;
            *known = cluster;
        }
        Ok(())
    }

    /// Is in no cluster again.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn leave(&self) -> esker::Result<()> {
        let mut known = self.cluster.lock();
        self.stored.delete(RECORD)?;
        *known = 0;
        Ok(())
    }

    /// The head of a message to that node.
    pub fn header(&self, to: u64) -> Header {
        Header { to, cluster: self.cluster() }
    }

    /// Refuses what is meant for another node, or comes from another cluster, and everything as
    /// long as the node is in none.
    ///
    /// # Errors
    /// A text that says which.
    pub fn check(&self, header: &Header) -> Result<(), String> {
        let (node, cluster) = (self.node, self.cluster());
        let refusal = if header.to != node {
            format!("the node at this address has number {node}, not {}", header.to)
        } else if cluster == 0 {
            format!("the directory of node {node} is new, and in no cluster: RAFT.REMOVE the node, then RAFT.ADD it")
        } else if header.cluster != cluster {
            format!("node {node} has the data of another cluster; see doc/server.md, or empty its directory")
        } else {
            return Ok(());
        };
        let mut last = self.refusal.lock();
        if *last != refusal {
            tracing::warn!("a message is refused: {refusal}");
            last.clone_from(&refusal);
        }
        Err(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_for_others_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), esker::Options::default()).unwrap();
        let identity = Identity::open(&db, 3).unwrap();
        let is_admitted = |identity: &Identity, to, cluster| identity.check(&Header { to, cluster }).is_ok();
        assert!(!is_admitted(&identity, 3, 0) && !is_admitted(&identity, 3, 7) && !is_admitted(&identity, 4, 0));
        identity.join(7).unwrap();
        // The first one counts.
        identity.join(8).unwrap();
        let again = Identity::open(&db, 3).unwrap();
        for identity in [identity, again] {
            assert_eq!(identity.header(1), Header { to: 1, cluster: 7 });
            for (to, cluster, is_right) in [(3, 7, true), (3, 8, false), (3, 0, false), (4, 7, false)] {
                assert_eq!(is_admitted(&identity, to, cluster), is_right, "{to} {cluster}");
            }
        }
    }
}
