//! COMMAND: what clients ask about the commands.

use super::cluster_commands;
use super::shared::Shared;
use crate::commands::{COMMANDS, Command, FLAG_NAMES, SYNTAX, find};
use crate::protocol::Reply;
use crate::store::matches_glob;
use bytes::Bytes;

fn described(command: &Command) -> Reply {
    let flags = FLAG_NAMES.iter().filter(|(flag, _)| command.has(*flag));
    let flags = flags.map(|(_, name)| Reply::Status((*name).into())).collect();
    let (first, last, step) = command.keys;
    let list = || Reply::Array(Vec::new());
    Reply::Array(vec![
        Reply::bulk(command.name),
        Reply::Integer(command.arity),
        Reply::Set(flags),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(Vec::new()),
        list(),
        list(),
        list(),
    ])
}

/// The commands that the server executes: on a node of a cluster, those of a cluster too.
fn commands(shared: &Shared) -> impl Iterator<Item = &'static Command> {
    let of_cluster: &[Command] = if shared.cluster.get().is_some() { &cluster_commands::COMMANDS } else { &[] };
    COMMANDS.iter().chain(of_cluster)
}

/// The command of that name, if the server executes it.
fn found(shared: &Shared, name: &[u8]) -> Option<&'static Command> {
    find(name).or_else(|| shared.cluster.get().and_then(|_| cluster_commands::find(name)))
}

fn chosen(shared: &Shared, names: &[Bytes]) -> Vec<Option<&'static Command>> {
    match names {
        [] => commands(shared).map(Some).collect(),
        names => names.iter().map(|name| found(shared, name)).collect(),
    }
}

/// COMMAND [COUNT | INFO name... | DOCS name... | LIST | GETKEYS command argument...]
pub fn command(shared: &Shared, arguments: &[Bytes]) -> Reply {
    let Some(subcommand) = arguments.get(1) else {
        return Reply::Array(commands(shared).map(described).collect());
    };
    let rest = &arguments[2..];
    match subcommand.to_ascii_lowercase().as_slice() {
        b"count" if rest.is_empty() => Reply::count(commands(shared).count()),
        b"info" => {
            let found = chosen(shared, rest).into_iter();
            Reply::Array(found.map(|command| command.map_or(Reply::Nil, described)).collect())
        }
        b"docs" => Reply::Map(
            chosen(shared, rest)
                .into_iter()
                .flatten()
                .map(|command| {
                    let arity = (Reply::bulk("arity"), Reply::Integer(command.arity));
                    (Reply::bulk(command.name), Reply::Map(vec![arity]))
                })
                .collect(),
        ),
        b"list" => list(shared, rest),
        b"getkeys" if rest.len() >= 2 => keys_of(shared, rest),
        b"help" => Reply::Array(vec![Reply::Status("COMMAND [COUNT | INFO | DOCS | LIST | GETKEYS]".into())]),
        b"count" | b"getkeys" => {
            let name = String::from_utf8_lossy(subcommand).to_lowercase();
            Reply::error(format!("ERR wrong number of arguments for 'command|{name}' command"))
        }
        _ => {
            let name = String::from_utf8_lossy(subcommand);
            Reply::error(format!("ERR unknown subcommand '{name}'. Try COMMAND HELP."))
        }
    }
}

fn list(shared: &Shared, options: &[Bytes]) -> Reply {
    let pattern = match options {
        [] => &b"*"[..],
        [filter, by, pattern] if filter.eq_ignore_ascii_case(b"FILTERBY") && by.eq_ignore_ascii_case(b"PATTERN") => {
            pattern
        }
        _ => return Reply::error(SYNTAX),
    };
    Reply::bulks(commands(shared).map(|command| command.name).filter(|name| matches_glob(pattern, name.as_bytes())))
}

fn keys_of(shared: &Shared, arguments: &[Bytes]) -> Reply {
    let Some(command) = found(shared, &arguments[0]) else { return Reply::error("ERR Invalid command specified") };
    if !command.accepts(arguments.len()) {
        return Reply::error("ERR Invalid number of arguments specified for command");
    }
    let keys = command.keys_of(arguments);
    if keys.is_empty() {
        return Reply::error("ERR The command has no key arguments");
    }
    Reply::bulks(keys)
}
