//! What a node of a cluster says of it: RAFT.STATUS, and CLUSTER as clients of Redis Cluster know
//! it. One group of replicas has all slots, its leader is the master, and the others are its
//! replicas.

use super::cluster_reads::fold_keys;
use super::session::Session;
use super::shared::Shared;
use crate::cluster::{Followers, Member, Node, Role, SLOTS, Status, slot_of};
use crate::commands::NO_INTEGER;
use crate::protocol::{Reply, parse_integer};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Whether clients are to take the server for a node of Redis Cluster: those of a cluster are,
/// where followers redirect.
pub fn is_cluster(shared: &Shared) -> bool {
    shared.cluster.get().is_some_and(|node| node.config.followers == Followers::Redirect)
}

/// RAFT.STATUS
pub fn status(node: &Node) -> Reply {
    let Status { id, role, leader, term, last_log, committed, applied, snapshot, purged, voters, learners, failure } =
        node.status();
    let number = |value: u64| Reply::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let list = |ids: BTreeSet<u64>| Reply::bulk(ids.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
    let mut fields = vec![
        ("id", number(id)),
        ("role", Reply::bulk(role.name())),
        ("leader", leader.map_or(Reply::Nil, number)),
        ("term", number(term)),
        ("last-log", number(last_log)),
        ("committed", number(committed)),
        ("applied", number(applied)),
        ("snapshot", number(snapshot)),
        ("purged", number(purged)),
        ("voters", list(voters)),
        ("learners", list(learners)),
    ];
    if let Some(failure) = failure {
        fields.push(("failure", Reply::bulk(failure)));
    }
    Reply::Map(fields.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

/// The name of a node: 40 hexadecimal digits.
fn name_of(id: u64) -> String {
    format!("{id:040x}")
}

/// The port for a client of this connection: that which the address names.
fn port_of(member: &Member) -> Reply {
    Reply::Integer(i64::from(member.address.port))
}

/// CLUSTER subcommand
pub async fn cluster(session: &mut Session, node: &Arc<Node>, arguments: &[Bytes]) -> Reply {
    let given = String::from_utf8_lossy(&arguments[1]).into_owned();
    match (given.to_lowercase().as_str(), &arguments[2..]) {
        ("info", []) => information(node),
        ("myid", []) => Reply::bulk(name_of(node.config.node)),
        ("myshardid", []) => Reply::bulk(name_of(0)),
        ("slots", []) => slots(node),
        ("shards", []) => shards(node),
        ("nodes", []) => Reply::Verbatim(nodes(node)),
        ("replicas" | "slaves", [_]) => replicas(node),
        ("keyslot", [key]) => Reply::Integer(i64::from(slot_of(key))),
        ("countkeysinslot", [slot]) => count_keys_in_slot(session, node, slot).await,
        ("getkeysinslot", [slot, most]) => keys_in_slot(session, node, slot, most).await,
        ("count-failure-reports", [_]) => Reply::Integer(0),
        ("links", []) => Reply::Array(Vec::new()),
        ("help", []) => Reply::Array(
            ["CLUSTER INFO|MYID|SLOTS|SHARDS|NODES|REPLICAS|KEYSLOT|COUNTKEYSINSLOT|GETKEYSINSLOT"]
                .map(|line| Reply::Status(line.into()))
                .into(),
        ),
        _ => Reply::error(format!(
            "ERR unknown subcommand or wrong number of arguments for '{given}'. Members are changed with RAFT.ADD, \
             RAFT.PROMOTE and RAFT.REMOVE."
        )),
    }
}

fn information(node: &Node) -> Reply {
    let (status, members) = (node.status(), node.members());
    let is_up = status.leader.is_some();
    let assigned = if members.is_empty() { 0 } else { SLOTS };
    let mut text = String::new();
    for (name, value) in [
        ("cluster_enabled", "1".to_string()),
        ("cluster_state", if is_up { "ok" } else { "fail" }.to_string()),
        ("cluster_slots_assigned", assigned.to_string()),
        ("cluster_slots_ok", if is_up { assigned } else { 0 }.to_string()),
        ("cluster_slots_pfail", "0".to_string()),
        ("cluster_slots_fail", if is_up { 0 } else { assigned }.to_string()),
        ("cluster_known_nodes", members.len().to_string()),
        ("cluster_size", "1".to_string()),
        ("cluster_current_epoch", status.term.to_string()),
        ("cluster_my_epoch", status.term.to_string()),
    ] {
        // Writing to memory does not fail.
        let _ = write!(text, "{name}:{value}\r\n");
    }
    Reply::Verbatim(text)
}

/// The members, the leader first; none if no leader is known, so that clients ask again.
fn led(node: &Node) -> Vec<Member> {
    let members = node.members();
    if members.first().is_some_and(|member| member.is_leader) { members } else { Vec::new() }
}

fn slots(node: &Node) -> Reply {
    let members = led(node);
    if members.is_empty() {
        return Reply::Array(Vec::new());
    }
    let mut range = vec![Reply::Integer(0), Reply::Integer(i64::from(SLOTS - 1))];
    range.extend(members.iter().map(|member| {
        let (host, name) = (Reply::bulk(&member.address.host), Reply::bulk(name_of(member.id)));
        Reply::Array(vec![host, port_of(member), name, Reply::Array(Vec::new())])
    }));
    Reply::Array(vec![Reply::Array(range)])
}

fn shards(node: &Node) -> Reply {
    let offset = i64::try_from(node.status().applied).unwrap_or(i64::MAX);
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let nodes = led(node).into_iter().map(|member| {
        Reply::Map(vec![
            text("id", &name_of(member.id)),
            (Reply::bulk("port"), port_of(&member)),
            text("ip", &member.address.host),
            text("endpoint", &member.address.host),
            text("role", if member.is_leader { "master" } else { "replica" }),
            (Reply::bulk("replication-offset"), Reply::Integer(offset)),
            text("health", "online"),
        ])
    });
    let nodes: Vec<Reply> = nodes.collect();
    if nodes.is_empty() {
        return Reply::Array(Vec::new());
    }
    let range = vec![Reply::Integer(0), Reply::Integer(i64::from(SLOTS - 1))];
    Reply::Array(vec![Reply::Map(vec![
        (Reply::bulk("slots"), Reply::Array(range)),
        (Reply::bulk("nodes"), Reply::Array(nodes)),
    ])])
}

/// A line of CLUSTER NODES.
fn line(node: &Node, member: &Member, leader: Option<u64>) -> String {
    let me = if member.id == node.config.node { "myself," } else { "" };
    let role = if member.is_leader { "master" } else { "slave" };
    let master = leader.filter(|_| !member.is_leader).map_or_else(|| "-".to_string(), name_of);
    let slots = if member.is_leader { format!(" 0-{}", SLOTS - 1) } else { String::new() };
    let (name, address, term) = (name_of(member.id), &member.address, node.status().term);
    format!("{name} {address} {me}{role} {master} 0 0 {term} connected{slots}\n")
}

fn nodes(node: &Node) -> String {
    let leader = node.leader().map(|leader| leader.id);
    node.members().iter().map(|member| line(node, member, leader)).collect()
}

fn replicas(node: &Node) -> Reply {
    let leader = node.leader().map(|leader| leader.id);
    let members = node.members().into_iter().filter(|member| !member.is_leader);
    Reply::bulks(members.map(|member| line(node, &member, leader).trim_end().to_string()))
}

/// CLUSTER COUNTKEYSINSLOT slot
async fn count_keys_in_slot(session: &mut Session, node: &Arc<Node>, slot: &[u8]) -> Reply {
    let Some(slot) = parse_integer(slot) else { return Reply::error(NO_INTEGER) };
    let Some(slot) = u16::try_from(slot).ok().filter(|&slot| slot < SLOTS) else {
        return Reply::error("ERR Invalid slot");
    };
    let as_of = match session.as_of(node).await {
        Ok(as_of) => as_of,
        Err(error) => return error.reply(),
    };
    let counted = fold_keys(&session.shared, node, as_of, 0u64, move |count, key| {
        *count += u64::from(slot_of(key) == slot);
        true
    });
    counted.await.map_or_else(|error| error, |count| Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// CLUSTER GETKEYSINSLOT slot count
async fn keys_in_slot(session: &mut Session, node: &Arc<Node>, slot: &[u8], most: &[u8]) -> Reply {
    let (Some(slot), Some(most)) = (parse_integer(slot), parse_integer(most)) else {
        return Reply::error(NO_INTEGER);
    };
    let slot = u16::try_from(slot).ok().filter(|&slot| slot < SLOTS);
    let (Some(slot), Ok(most)) = (slot, usize::try_from(most)) else {
        return Reply::error("ERR Invalid slot or number of keys");
    };
    if most == 0 {
        return Reply::Array(Vec::new());
    }
    let as_of = match session.as_of(node).await {
        Ok(as_of) => as_of,
        Err(error) => return error.reply(),
    };
    let found = fold_keys(&session.shared, node, as_of, Vec::new(), move |found, key| {
        if slot_of(key) == slot {
            found.push(Reply::bulk(key));
        }
        found.len() < most
    });
    found.await.map_or_else(|error| error, Reply::Array)
}

/// The lines of INFO replication.
pub fn replication(node: &Node) -> Vec<(&'static str, String)> {
    let (status, members) = (node.status(), node.members());
    let mut lines = vec![("role", redis_role(node).to_string())];
    match members.iter().find(|member| member.is_leader).filter(|_| status.role != Role::Leader) {
        Some(leader) => {
            lines.push(("master_host", leader.address.host.clone()));
            lines.push(("master_port", leader.address.port.to_string()));
            lines.push(("master_link_status", "up".into()));
        }
        None if status.role != Role::Leader => lines.push(("master_link_status", "down".into())),
        None => {}
    }
    let replicas = if status.role == Role::Leader { members.len().saturating_sub(1) } else { 0 };
    lines.push(("connected_slaves", replicas.to_string()));
    lines.push(("master_repl_offset", status.applied.to_string()));
    for (name, value) in [
        ("raft_role", status.role.name().to_string()),
        ("raft_term", status.term.to_string()),
        ("raft_last_log", status.last_log.to_string()),
        ("raft_committed", status.committed.to_string()),
    ] {
        lines.push((name, value));
    }
    lines
}

/// What the node is in the words of Redis.
pub fn redis_role(node: &Node) -> &'static str {
    if node.leader().is_some_and(|leader| leader.is_here) { "master" } else { "slave" }
}

/// ROLE
pub fn role(node: &Node) -> Reply {
    let applied = i64::try_from(node.status().applied).unwrap_or(i64::MAX);
    let members = node.members();
    if redis_role(node) == "master" {
        let others = members.iter().filter(|member| !member.is_leader).map(|member| {
            let Member { address, .. } = member;
            Reply::bulks([address.host.clone(), address.port.to_string(), applied.to_string()])
        });
        return Reply::Array(vec![Reply::bulk("master"), Reply::Integer(applied), Reply::Array(others.collect())]);
    }
    let leader = members.iter().find(|member| member.is_leader);
    let (host, port) = leader.map_or(("", 0), |leader| (leader.address.host.as_str(), leader.address.port));
    let state = if leader.is_some() { "connected" } else { "connect" };
    Reply::Array(vec![
        Reply::bulk("slave"),
        Reply::bulk(host),
        Reply::Integer(i64::from(port)),
        Reply::bulk(state),
        Reply::Integer(applied),
    ])
}
