//! What a node says of itself and of the members.

use super::address::Address;
use super::messages::ReadIndex;
use super::node::Node;
use openraft::ServerState;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a node is in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It orders the writes.
    Leader,
    /// It follows a leader, and votes.
    Follower,
    /// It seeks to be elected.
    Candidate,
    /// It follows a leader, without a vote.
    Learner,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Leader => "leader",
            Role::Follower => "follower",
            Role::Candidate => "candidate",
            Role::Learner => "learner",
        }
    }
}

/// A member, as this node knows it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub id: u64,
    /// Where it is.
    pub address: Address,
    /// Whether it leads.
    pub is_leader: bool,
}

/// What a node says of itself.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its number.
    pub id: u64,
    /// What it is.
    pub role: Role,
    /// The leader that it knows.
    pub leader: Option<u64>,
    /// Its term.
    pub term: u64,
    /// The last entry of its log.
    pub last_log: u64,
    /// The last entry that it knows to be committed.
    pub committed: u64,
    /// The last entry that is in its state.
    pub applied: u64,
    /// The last entry that is in its newest snapshot.
    pub snapshot: u64,
    /// The last entry that its log does not have any more.
    pub purged: u64,
    /// Who votes.
    pub voters: BTreeSet<u64>,
    /// Who does not.
    pub learners: BTreeSet<u64>,
    /// Why it does nothing any more.
    pub failure: Option<String>,
}

impl Node {
    /// What it says of itself.
    pub fn status(&self) -> Status {
        let metrics = self.metrics();
        let membership = metrics.membership_config.membership();
        let role = match metrics.state {
            ServerState::Leader => Role::Leader,
            ServerState::Candidate => Role::Candidate,
            ServerState::Follower => Role::Follower,
            ServerState::Learner | ServerState::Shutdown => Role::Learner,
        };
        let index = |id: Option<esker_raft::LogId>| id.map_or(0, |id| id.index());
        Status {
            id: self.config.node,
            role,
            leader: metrics.current_leader,
            term: metrics.current_term,
            last_log: metrics.last_log_index.unwrap_or(0),
            committed: index(metrics.local_committed),
            applied: index(metrics.last_applied),
            snapshot: index(metrics.snapshot),
            purged: index(metrics.purged),
            voters: membership.voter_ids().collect(),
            learners: membership.learner_ids().collect(),
            failure: self.failure(),
        }
    }

    /// The members whose addresses can be read, the leader first.
    pub fn members(&self) -> Vec<Member> {
        let metrics = self.metrics();
        let nodes = metrics.membership_config.membership().nodes();
        let mut members: Vec<Member> = nodes
            .filter_map(|(&id, node)| {
                let address = Address::parse(&node.addr).ok()?;
                Some(Member { id, address, is_leader: metrics.current_leader == Some(id) })
            })
            .collect();
        members.sort_by_key(|member| (!member.is_leader, member.id));
        members
    }

    /// Why the node is not ready: it has no leader that a majority follows, or lacks entries that
    /// are committed. It asks the leader.
    pub async fn problem(&self) -> Option<String> {
        /// How long what is on its way may take.
        const PATIENCE: Duration = Duration::from_secs(1);
        let status = self.status();
        if status.failure.is_some() {
            return status.failure;
        }
        if status.leader.is_none() {
            return Some("there is no leader".into());
        }
        // The leader that it knows may be one that was deposed, or cut off.
        let committed = match self.read_index().await {
            ReadIndex::At(index) => index,
            ReadIndex::NotLeader(why) => return Some(format!("there is no leader that a majority follows: {why}")),
        };
        // A node that was removed never has the entry that says so.
        let waited = self.raft.wait(Some(PATIENCE)).applied_index_at_least(Some(committed), "readiness").await;
        waited.err().map(|_| format!("the state lacks entry {committed}, which is committed"))
    }
}
