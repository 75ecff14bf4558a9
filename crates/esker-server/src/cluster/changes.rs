//! Changes of the members, made by the leader.

use super::address::Address;
use super::identity::cluster_number;
use super::messages::{Changed, Hashes, MemberChange, Message};
use super::node::Node;
use super::peers::CallError;
use esker_raft::{Difference, RangeHash, Reply, Request};
use openraft::{BasicNode, ChangeMembers, Instant as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
/// How long a node may take to say who it is.
const ANSWER: Duration = Duration::from_secs(2);

fn numbers(nodes: &[u64]) -> String {
    nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Says that no state is that of most members: none of them is known to be right, and none stops.
fn undecided(members: &BTreeSet<u64>, found: &[(u64, Vec<RangeHash>)]) -> String {
    let silent: Vec<u64> =
        members.iter().copied().filter(|id| found.iter().all(|(answered, _)| answered != id)).collect();
    match silent.is_empty() {
        true => "no state is that of most nodes, which all differ; restore a backup".into(),
        false => format!("most nodes are needed to compare; these did not answer: {}; start them", numbers(&silent)),
    }
}

impl Node {
    /// Begins a cluster of these nodes, all of them voters, on this node.
    ///
    /// # Errors
    /// A text that says what to do.
    pub async fn initialize(&self, members: BTreeMap<u64, Address>) -> Changed {
        if !members.contains_key(&self.config.node) {
            return Err(format!("node {} is to be among the members", self.config.node));
        }
        if members[&self.config.node] != self.config.advertise {
            return Err(format!("this node has --advertise {}; give it that address", self.config.advertise));
        }
        self.check_empty().await?;
        for (&id, address) in members.iter().filter(|(id, _)| **id != self.config.node) {
            if self.cluster_at(id, address).await? != 0 {
                return Err(format!("node {id} at {address} has the data of a cluster; empty its directory"));
            }
        }
        let beginning = self.identity.beginning.lock().await;
        // Another one may have been faster while the members were asked.
        self.check_empty().await?;
        self.join_new_cluster().await?;
        for (&id, address) in members.iter().filter(|(id, _)| **id != self.config.node) {
            self.have_join(id, address).await?;
        }
        let nodes = members.into_iter().map(|(id, address)| (id, BasicNode::new(address.to_string())));
        let nodes: BTreeMap<u64, BasicNode> = nodes.collect();
        if let Err(error) = self.raft.initialize(nodes).await {
            return Err(format!("the node is not empty: {error}"));
        }
        drop(beginning);
        // The members are set; commands wait for a leader by themselves. Before the entry with the
        // members is committed, and so applied, they cannot be changed.
        let metrics = self.raft.wait(Some(self.patience()));
        if let Err(error) = metrics
            .metrics(|metrics| metrics.current_leader.is_some() && metrics.last_applied.is_some(), "a leader")
            .await
        {
            tracing::warn!(%error, "the cluster is begun, and has no leader yet");
        }
        Ok(())
    }

    async fn check_empty(&self) -> Changed {
        match self.raft.is_initialized().await.map_err(|error| error.to_string())? {
            true => Err("the node is not empty: it has the log of a cluster".into()),
            false => Ok(()),
        }
    }

    /// Has the node with the empty directory at this address be in the cluster of this node.
    async fn have_join(&self, id: u64, address: &Address) -> Changed {
        match self.peers.call((id, &address.raft()), &Message::Join, self.patience()).await {
            Ok(joined) => joined,
            Err(error) => Err(format!("node {id} does not answer, start it first: {error}")),
        }
    }

    /// Is in a cluster that nobody else is in yet. Nodes that have joined the one of an earlier
    /// RAFT.INIT, which an error or a crash ended, need empty directories again.
    async fn join_new_cluster(&self) -> Changed {
        let (identity, cluster) = (Arc::clone(&self.identity), cluster_number(&mut self.seeds.lock()));
        let joined = tokio::task::spawn_blocking(move || identity.leave().and_then(|()| identity.join(cluster))).await;
        joined.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// The cluster that the node of this number is in, which must be the one at this address: a
    /// node of another number, or of another cluster, would lose its data, or count twice.
    async fn cluster_at(&self, id: u64, address: &Address) -> Result<u128, String> {
        let deadline = Instant::now() + self.patience();
        loop {
            match self.peers.who(&address.raft(), ANSWER).await {
                Ok(who) if who.node == id => return Ok(who.cluster),
                Ok(who) => return Err(format!("the node at {address} has number {}, not {id}", who.node)),
                Err(error) if Instant::now() >= deadline => {
                    return Err(format!("node {id} does not answer, start it first: {error}"));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Whether the node has answered this leader since that moment.
    fn is_alive(&self, id: u64, since: Instant) -> bool {
        let metrics = self.metrics();
        let last = metrics.heartbeat.as_ref().and_then(|nodes| nodes.get(&id)).copied().flatten();
        id == self.config.node || last.is_some_and(|last| last.elapsed() < since.elapsed())
    }

    /// Waits until these nodes show that they are there, which they do several times in the time
    /// of an election.
    async fn wait_alive(&self, are_there: impl Fn(&[u64]) -> bool, nodes: &BTreeSet<u64>) -> Changed {
        let began = Instant::now();
        let deadline = began + self.patience();
        loop {
            let (alive, silent): (Vec<u64>, Vec<u64>) = nodes.iter().partition(|&&id| self.is_alive(id, began));
            if are_there(&alive) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("these nodes do not answer: {}; start them, or RAFT.REMOVE one", numbers(&silent)));
            }
            sleep(PAUSE).await;
        }
    }

    /// A majority of what are to be the voters is there: else nothing could be written any more,
    /// and the members could not be changed back.
    async fn wait_majority(&self, voters: BTreeSet<u64>) -> Changed {
        self.wait_alive(|alive| alive.len() * 2 > voters.len(), &voters).await
    }

    /// Says so if a member has an empty directory: it is not the node any more that it was. One
    /// that does not answer may be down.
    async fn check_not_emptied(&self, id: u64, address: &Address) -> Changed {
        match self.peers.who(&address.raft(), ANSWER).await {
            Ok(who) if who.node == id && who.cluster == 0 => Err(format!(
                "the directory of node {id} is new, and the member had another one: RAFT.REMOVE {id} first"
            )),
            _ => Ok(()),
        }
    }

    /// Has the node follow, without a vote.
    async fn add(&self, id: u64, address: String) -> Changed {
        let parsed = Address::parse(&address)?;
        let cluster = self.cluster_at(id, &parsed).await?;
        if cluster != 0 && cluster != self.identity.cluster() {
            return Err(format!("node {id} at {address} has the data of another cluster; empty its directory"));
        }
        if cluster == 0 {
            self.have_join(id, &parsed).await?;
        }
        let added = self.raft.add_learner(id, BasicNode::new(address), false).await;
        added.map(drop).map_err(|error| error.to_string())
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
        match self.peers.call((leader.id, &address.raft()), &Message::Member(change), PATIENCE).await {
            Ok(changed) => changed,
            Err(CallError::NotSent(_) | CallError::Refused(_)) => Err(NO_LEADER.into()),
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
                if membership.get_node(&id).is_some_and(|node| node.addr == address) {
                    return self.check_not_emptied(id, &Address::parse(&address)?).await;
                }
                if is_member(&id) {
                    return Err(format!("node {id} is a member; RAFT.REMOVE it first, if it is another one now"));
                }
                return self.add(id, address).await;
            }
            MemberChange::Transfer(id) if id == self.config.node => return Ok(()),
            MemberChange::Transfer(id) if voters.contains(&id) => {
                self.wait_alive(|alive| !alive.is_empty(), &BTreeSet::from([id])).await?;
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
                self.wait_alive(|alive| !alive.is_empty(), &BTreeSet::from([id])).await?;
                self.wait_majority(voters.into_iter().chain([id]).collect()).await?;
                (ChangeMembers::AddVoterIds(BTreeSet::from([id])), true)
            }
            MemberChange::Remove(id) if !is_member(&id) => return Ok(()),
            MemberChange::Remove(id) if voters.len() == 1 && voters.contains(&id) => {
                return Err(format!("node {id} is the only voter; RAFT.PROMOTE another one first"));
            }
            MemberChange::Remove(id) if voters.contains(&id) => {
                self.wait_majority(voters.into_iter().filter(|voter| *voter != id).collect()).await?;
                (ChangeMembers::RemoveVoters(BTreeSet::from([id])), false)
            }
            MemberChange::Remove(id) => (ChangeMembers::RemoveNodes(BTreeSet::from([id])), false),
        };
        let changed = self.raft.change_membership(retained.0, retained.1).await;
        changed.map(drop).map_err(|error| error.to_string())
    }

    /// Has all replicas hash their states as of one entry, and compare them with what most of them
    /// have, if most of the members have answered. How many have.
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
                self.peers.call((*id, &address.raft()), &Message::Hashes(index), HASHES).await.unwrap_or_default()
            };
            found.extend(hashes.map(|hashes| (*id, hashes)));
        }
        let members: BTreeSet<u64> = metrics.membership_config.membership().nodes().map(|(id, _)| *id).collect();
        let votes = |hashes: &Vec<RangeHash>| found.iter().filter(|(_, other)| other == hashes).count();
        let best = found.iter().max_by_key(|(_, hashes)| votes(hashes)).map(|(_, hashes)| hashes.clone());
        let hashes = best.ok_or("no node has hashed its state; try again")?;
        if votes(&hashes) * 2 <= members.len() {
            return Err(undecided(&members, &found));
        }
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
