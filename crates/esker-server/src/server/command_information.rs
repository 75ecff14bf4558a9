//! COMMAND: what clients ask about the commands.

use super::cluster_commands;
use super::shared::Shared;
use crate::commands::{
    COMMANDS, Command, Description, KeySpan, SYNTAX, Span, describe, describe_subcommand, find, find_subcommand, help,
};
use crate::protocol::Reply;
use crate::store::matches_glob;
use bytes::Bytes;

fn text(text: &str) -> Reply {
    Reply::bulk(text)
}

fn statuses<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> Reply {
    Reply::Set(names.into_iter().map(|&name| Reply::Status(name.into())).collect())
}

fn described_keys(keys: &KeySpan) -> Reply {
    let number = |name: &str, value: i64| (text(name), Reply::Integer(value));
    let typed = |kind: &str, fields| Reply::Map(vec![(text("type"), text(kind)), (text("spec"), Reply::Map(fields))]);
    let found = match keys.span {
        Span::Range { last, step } => {
            typed("range", vec![number("lastkey", last), number("keystep", step), number("limit", 0)])
        }
        Span::Number => typed("keynum", vec![number("keynumidx", 0), number("firstkey", 1), number("keystep", 1)]),
    };
    Reply::Map(vec![
        (text("flags"), statuses(&keys.flags)),
        (text("begin_search"), typed("index", vec![number("index", keys.first)])),
        (text("find_keys"), found),
    ])
}

/// The places of the first and the last key, and their distance; zeros where there is no such
/// range.
fn range(description: &Description) -> (i64, i64, i64) {
    if let Some(command) = find(description.name.as_bytes()) {
        return command.keys;
    }
    match description.keys.first() {
        Some(&KeySpan { first, span: Span::Range { last, step }, .. }) => {
            (first, if last < 0 { last } else { first + last }, step)
        }
        _ => (0, 0, 0),
    }
}

fn described(description: &Description) -> Reply {
    let (first, last, step) = range(description);
    let categories = description.categories.iter().map(|name| Reply::Status(format!("@{name}").into()));
    Reply::Array(vec![
        text(description.name),
        Reply::Integer(description.arity),
        statuses(&description.flags),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(categories.collect()),
        Reply::Set(description.tips.iter().map(|tip| text(tip)).collect()),
        Reply::Set(description.keys.iter().map(described_keys).collect()),
        Reply::Set(description.subcommands().map(described).collect()),
    ])
}

fn documented(description: &Description) -> (Reply, Reply) {
    let mut fields = vec![(text("summary"), text(description.summary))];
    if description.since != "-" {
        fields.push((text("since"), text(description.since)));
    }
    fields.push((text("group"), text(description.group)));
    fields.push((text("complexity"), text(description.complexity)));
    let mut key = 0;
    let arguments = description.arguments();
    if !arguments.is_empty() {
        let keys = description.keys.len();
        let arguments = arguments.iter().map(|argument| argument.described(&mut key, keys)).collect();
        fields.push((text("arguments"), Reply::Array(arguments)));
    }
    let subcommands: Vec<(Reply, Reply)> = description.subcommands().map(documented).collect();
    if !subcommands.is_empty() {
        fields.push((text("subcommands"), Reply::Map(subcommands)));
    }
    (text(description.name), Reply::Map(fields))
}

/// The commands that the server executes: on a node of a cluster, those of a cluster too.
fn commands(shared: &Shared) -> impl Iterator<Item = &'static Command> {
    let of_cluster: &[Command] = if shared.cluster.get().is_some() { &cluster_commands::COMMANDS } else { &[] };
    COMMANDS.iter().chain(of_cluster)
}

/// What is told of these commands.
fn descriptions(shared: &Shared) -> impl Iterator<Item = &'static Description> {
    commands(shared).filter_map(|command| describe(command.name.as_bytes()))
}

/// The command of that name, if the server executes it.
fn found(shared: &Shared, name: &[u8]) -> Option<&'static Command> {
    find(name).or_else(|| shared.cluster.get().and_then(|_| cluster_commands::find(name)))
}

fn chosen(shared: &Shared, names: &[Bytes]) -> Vec<Option<&'static Description>> {
    if names.is_empty() {
        return descriptions(shared).map(Some).collect();
    }
    let of_name = |name: &Bytes| {
        let command = name.split(|&byte| byte == b'|').next().unwrap_or_default();
        found(shared, command).and_then(|_| describe(name))
    };
    names.iter().map(of_name).collect()
}

/// COMMAND [COUNT | INFO name... | DOCS name... | LIST | GETKEYS command argument... | HELP]
pub fn command(shared: &Shared, arguments: &[Bytes]) -> Reply {
    if arguments.len() == 1 {
        return Reply::Array(descriptions(shared).map(described).collect());
    }
    let rest = &arguments[2..];
    let description = match find_subcommand("command", arguments) {
        Ok(description) => description,
        Err(error) => return Reply::error(error),
    };
    match description.name {
        "command|count" => Reply::count(commands(shared).count()),
        "command|info" => {
            let found = chosen(shared, rest).into_iter();
            Reply::Array(found.map(|description| description.map_or(Reply::Nil, described)).collect())
        }
        "command|docs" => Reply::Map(chosen(shared, rest).into_iter().flatten().map(documented).collect()),
        "command|list" => list(shared, rest),
        "command|getkeys" => keys_of(shared, rest, |key, _| Reply::bulk(key)),
        "command|getkeysandflags" => {
            keys_of(shared, rest, |key, flags| Reply::Array(vec![Reply::bulk(key), statuses(flags)]))
        }
        _ => help("command"),
    }
}

/// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
fn list(shared: &Shared, options: &[Bytes]) -> Reply {
    let is_chosen: &dyn Fn(&Description) -> bool = match options {
        [] => &|_| true,
        [word, by, value] if word.eq_ignore_ascii_case(b"FILTERBY") => match by.to_ascii_uppercase().as_slice() {
            b"PATTERN" => &|description| matches_glob(value, description.name.as_bytes()),
            b"ACLCAT" => &|description| {
                description.categories.iter().any(|category| value.eq_ignore_ascii_case(category.as_bytes()))
            },
            // There are no modules.
            b"MODULE" => &|_| false,
            _ => return Reply::error(SYNTAX),
        },
        _ => return Reply::error(SYNTAX),
    };
    let all =
        descriptions(shared).flat_map(|description| std::iter::once(description).chain(description.subcommands()));
    Reply::bulks(all.filter(|description| is_chosen(description)).map(|description| description.name))
}

/// The keys of a command, each as `shown` shows it.
fn keys_of(shared: &Shared, arguments: &[Bytes], shown: impl Fn(&Bytes, &[&'static str]) -> Reply) -> Reply {
    let Some(command) = found(shared, &arguments[0]) else { return Reply::error("ERR Invalid command specified") };
    let subcommand = arguments.get(1).and_then(|name| describe_subcommand(command.name, name));
    let whole = describe(command.name.as_bytes());
    let whole = whole.filter(|whole| arguments.len() == 1 || whole.subcommands().next().is_none());
    let Some(description) = subcommand.or(whole) else { return Reply::error("ERR Invalid command specified") };
    if description.keys.is_empty() {
        return Reply::error("ERR The command has no key arguments");
    }
    if !description.accepts(arguments.len()) {
        return Reply::error("ERR Invalid number of arguments specified for command");
    }
    match description.keys_of(arguments) {
        Some(keys) => Reply::Array(keys.iter().map(|(key, flags)| shown(key, flags)).collect()),
        None => Reply::error("ERR Invalid arguments specified for command"),
    }
}
