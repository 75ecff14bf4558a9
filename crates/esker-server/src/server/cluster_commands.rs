//! The commands that a node of a cluster has beside the others: CLUSTER and RAFT.

use super::cluster_information as information;
use super::session::Session;
use crate::cluster::{Address, MemberChange, Node};
use crate::commands::{Command, Handler};
use crate::protocol::{Reply, parse_integer};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

const fn row(name: &'static str, arity: i64) -> Command {
    Command { name, arity, flags: 0, keys: (0, 0, 0), handler: Handler::Connection }
}

/// All of them, by name.
pub static COMMANDS: [Command; 11] = [
    row("asking", 1),
    row("cluster", -2),
    row("raft.add", 3),
    row("raft.hash", 1),
    row("raft.init", -3),
    row("raft.promote", 2),
    row("raft.remove", 2),
    row("raft.status", 1),
    row("raft.transfer", 2),
    row("readonly", 1),
    row("readwrite", 1),
];

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether Redis has it too, also without a cluster.
pub fn is_of_redis(command: &Command) -> bool {
    !command.name.starts_with("raft.")
}

/// Executes one of them.
pub async fn run(session: &mut Session, node: &Arc<Node>, name: &str, arguments: &[Bytes]) -> Reply {
    match name {
        // Nothing moves between slots.
        "asking" => Reply::OK,
        "readonly" | "readwrite" => {
            session.reads_stale = name == "readonly";
            Reply::OK
        }
        "cluster" => information::cluster(session, node, arguments).await,
        "raft.status" => information::status(node),
        "raft.init" => acknowledge(initialize(node, &arguments[1..]).await),
        "raft.hash" => match node.compare().await {
            Ok(_) => Reply::OK,
            Err(why) => failed(&why),
        },
        _ => match change(name, &arguments[1..]) {
            Ok(change) => acknowledge(node.change(change).await),
            Err(why) => failed(&why),
        },
    }
}

fn acknowledge(done: Result<(), String>) -> Reply {
    done.map_or_else(|why| failed(&why), |()| Reply::OK)
}

fn failed(why: &str) -> Reply {
    Reply::error(format!("ERR {why}"))
}

fn text(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

fn number(argument: &[u8]) -> Result<u64, String> {
    let number = parse_integer(argument).and_then(|number| u64::try_from(number).ok()).filter(|&number| number > 0);
    number.ok_or_else(|| format!("'{}' is no number of a node; nodes are numbered from 1", text(argument)))
}

async fn initialize(node: &Node, arguments: &[Bytes]) -> Result<(), String> {
    let mut members = BTreeMap::new();
    for pair in arguments.chunks(2) {
        let [id, address] = pair else { return Err("each node needs a number and an address".into()) };
        if members.insert(number(id)?, Address::parse(&text(address))?).is_some() {
            return Err(format!("node {} is there twice", text(id)));
        }
    }
    node.initialize(members).await
}

fn change(name: &str, arguments: &[Bytes]) -> Result<MemberChange, String> {
    match (name, arguments) {
        ("raft.add", [id, address]) => Ok(MemberChange::Add(number(id)?, Address::parse(&text(address))?.to_string())),
        ("raft.promote", [id]) => Ok(MemberChange::Promote(number(id)?)),
        ("raft.remove", [id]) => Ok(MemberChange::Remove(number(id)?)),
        ("raft.transfer", [id]) => Ok(MemberChange::Transfer(number(id)?)),
        _ => Err(format!("the command '{name}' has no function")),
    }
}
