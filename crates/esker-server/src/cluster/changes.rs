//! Changes of the members, made by the leader.

use super::address::Address;
use super::messages::{Changed, Hashes, MemberChange, Message};
use super::node::Node;
use super::peers::CallError;
use esker_raft::{Difference, Reply, Request};
use openraft::{BasicNode, ChangeMembers};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What is said while no leader is known.
const NO_LEADER: &str = "there is no leader; try again when a majority of the nodes is up";
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a change may take: a new voter has to have the log.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many entries a learner may be behind that is to become a voter. A voter that is far behind
/// confirms no new entries until it has the old ones.
const LAG_ENTRIES: u64 = 10_000;
/// How long the other nodes may take for their hashes.
const HASHES: Duration = Duration::from_secs(60);

impl Node {
    /// Begins a cluster of these nodes, all of them voters, on this node.
    ///
    /// # Errors
    /// A text that says what to do.
    pub async fn initialize(&self, members: BTreeMap<u64, Address>) -> Changed {
        if !members.contains_key(&self.config.node) {
            return Err(format!("node {} is to be among the members", self.config.node));
        }
        let nodes = members.into_iter().map(|(id, address)| (id, BasicNode::new(address.to_string())));
        let nodes: BTreeMap<u64, BasicNode> = nodes.collect();
        self.raft.initialize(nodes).await.map_err(|error| format!("the node is not empty: {error}"))?;
        // The members are set; commands wait for a leader by themselves.
        let metrics = self.raft.wait(Some(self.patience()));
        if let Err(error) = metrics.metrics(|metrics| metrics.current_leader.is_some(), "a leader").await {
            tracing::warn!(%error, "the cluster is begun, and has no leader yet");
        }
        Ok(())
    }

    /// Changes the members, here or at the leader.
    ///
    /// # Errors
    /// A text that says what to do.
    pub async fn change(&self, change: MemberChange) -> Changed {
        let deadline = Instant::now() + self.patience();
        loop {
            let changed = self.change_once(change.clone()).await;
            if changed != Err(NO_LEADER.to_string()) || Instant::now() >= deadline {
                return changed;
            }
            sleep(PAUSE).await;
        }
    }

    async fn change_once(&self, change: MemberChange) -> Changed {
        let leader = self.leader().ok_or(NO_LEADER)?;
        if leader.is_here {
            return self.change_here(change).await;
        }
        let address = leader.address.ok_or(NO_LEADER)?;
        match self.peers.call(&address.raft(), &Message::Member(change), PATIENCE).await {
            Ok(changed) => changed,
            Err(CallError::NotSent(_)) => Err(NO_LEADER.into()),
            Err(error) => Err(format!("it is not known whether it was done: {error}; see RAFT.STATUS")),
        }
    }

    /// Changes the members as the leader.
    ///
    /// # Errors
    /// A text that says what to do.
    pub async fn change_here(&self, change: MemberChange) -> Changed {
        if !self.leader().is_some_and(|leader| leader.is_here) {
            return Err(NO_LEADER.into());
        }
        let changed = tokio::time::timeout(PATIENCE, self.change_members(change)).await;
        changed.unwrap_or_else(|_| Err("it takes long; see RAFT.STATUS, and repeat it if it was not done".into()))
    }

    async fn change_members(&self, change: MemberChange) -> Changed {
        let metrics = self.metrics();
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let is_member = |id: &u64| membership.get_node(id).is_some();
        let retained = match change {
            MemberChange::Add(id, address) => {
                Address::parse(&address)?;
                if membership.get_node(&id).is_some_and(|node| node.addr == address) {
                    return Ok(());
                }
                if is_member(&id) {
                    return Err(format!("node {id} is a member; RAFT.REMOVE it first, if it is another one now"));
                }
                let added = self.raft.add_learner(id, BasicNode::new(address), false).await;
                return added.map(drop).map_err(|error| error.to_string());
            }
            MemberChange::Transfer(id) if voters.contains(&id) => {
                return self.raft.trigger().transfer_leader(id).await.map_err(|error| error.to_string());
            }
            MemberChange::Transfer(id) => return Err(format!("node {id} is no voter; RAFT.PROMOTE it first")),
            MemberChange::Promote(id) if voters.contains(&id) => return Ok(()),
            MemberChange::Promote(id) if !is_member(&id) => {
                return Err(format!("node {id} is no learner; RAFT.ADD it first"));
            }
            MemberChange::Promote(id) => {
                let matched = metrics.replication.as_ref().and_then(|nodes| nodes.get(&id));
                let matched = matched.and_then(|at| at.as_ref()).map_or(0, |at| at.index());
                let lag = metrics.last_log_index.unwrap_or(0).saturating_sub(matched);
                if lag > LAG_ENTRIES || matched == 0 {
                    return Err(format!("node {id} is {lag} entries behind; try again when it has caught up"));
                }
                (ChangeMembers::AddVoterIds(BTreeSet::from([id])), true)
            }
            MemberChange::Remove(id) if !is_member(&id) => return Ok(()),
            MemberChange::Remove(id) if voters.len() == 1 && voters.contains(&id) => {
                return Err(format!("node {id} is the only voter; RAFT.PROMOTE another one first"));
            }
            MemberChange::Remove(id) if voters.contains(&id) => {
                (ChangeMembers::RemoveVoters(BTreeSet::from([id])), false)
            }
            MemberChange::Remove(id) => (ChangeMembers::RemoveNodes(BTreeSet::from([id])), false),
        };
        let changed = self.raft.change_membership(retained.0, retained.1).await;
        changed.map(drop).map_err(|error| error.to_string())
    }

    /// Has all replicas hash their states as of one entry, and compare them with what most of them
    /// have. How many answered.
    ///
    /// # Errors
    /// A text that says which replica has another state, or what to do.
    pub async fn compare(&self) -> Result<usize, String> {
        let (index, _) = self.propose(&Request::Hash).await.map_err(|error| error.to_string())?;
        let metrics = self.metrics();
        let mut found = Vec::new();
        for (id, node) in metrics.membership_config.membership().nodes() {
            let hashes: Hashes = if *id == self.config.node {
                self.hashes_here(index).await?
            } else {
                let Ok(address) = Address::parse(&node.addr) else { continue };
                // A node that is down compares nothing.
                self.peers.call(&address.raft(), &Message::Hashes(index), HASHES).await.unwrap_or_default()
            };
            found.extend(hashes.map(|hashes| (*id, hashes)));
        }
        let votes = |hashes| found.iter().filter(|(_, other)| other == hashes).count();
        let best = found.iter().max_by_key(|(_, hashes)| votes(hashes)).map(|(_, hashes)| hashes.clone());
        let hashes = best.ok_or("no node has hashed its state; try again")?;
        let differ = found.iter().find_map(|(id, other)| {
            Difference::first(index, other, &hashes).map(|difference| format!("node {id}: {difference}"))
        });
        let compared = self.propose(&Request::Compare { index, hashes }).await;
        match (differ, compared) {
            (Some(difference), _) => Err(difference),
            (None, Ok((_, Reply::None))) => Ok(found.len()),
            (None, Ok((_, other))) => Err(format!("the comparison answers {other:?}")),
            (None, Err(error)) => Err(error.to_string()),
        }
    }

    /// The hashes of the state of this node as of an entry, once it has applied it.
    ///
    /// # Errors
    /// A text that says why there are none.
    pub async fn hashes_here(&self, index: u64) -> Result<Hashes, String> {
        let waited = self.raft.wait(Some(HASHES)).applied_index_at_least(Some(index), "a hash").await;
        waited.map_err(|error| error.to_string())?;
        let machine = self.machine.clone();
        let hashed = tokio::task::spawn_blocking(move || machine.hashes(index)).await;
        hashed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}
