//! Subcommands: which there are, and how many arguments each has. A command with a wrong one is
//! refused before it is executed, so that it is not queued behind MULTI.

use super::table::Command;
use bytes::Bytes;

/// The commands whose second argument is a subcommand, with these, and how many arguments each has,
/// with both names; at least so many if negative.
const SUBCOMMANDS: [(&str, &[(&str, i64)]); 6] = [
    (
        "client",
        &[
            ("caching", 3),
            ("getname", 2),
            ("getredir", 2),
            ("help", 2),
            ("id", 2),
            ("info", 2),
            ("kill", -3),
            ("list", -2),
            ("no-evict", 3),
            ("no-touch", 3),
            ("pause", -3),
            ("reply", 3),
            ("setinfo", 4),
            ("setname", 3),
            ("trackinginfo", 2),
            ("unblock", -3),
            ("unpause", 2),
        ],
    ),
    (
        "command",
        &[
            ("count", 2),
            ("docs", -2),
            ("getkeys", -4),
            ("getkeysandflags", -4),
            ("help", 2),
            ("info", -2),
            ("list", -2),
        ],
    ),
    ("config", &[("get", -3), ("help", 2), ("resetstat", 2), ("rewrite", 2), ("set", -4)]),
    ("function", &[("flush", -2), ("list", -2)]),
    ("memory", &[("help", 2), ("usage", -3)]),
    ("object", &[("encoding", 3), ("freq", 3), ("help", 2), ("idletime", 3), ("refcount", 3)]),
];

/// Checks the subcommand, if the command has some and one is given.
///
/// # Errors
/// The text of the error for a subcommand that is not there, or has not so many arguments.
pub fn check_subcommand(command: &Command, arguments: &[Bytes]) -> Result<(), String> {
    let found = SUBCOMMANDS.iter().find(|(name, _)| *name == command.name);
    let (Some((_, subcommands)), Some(given)) = (found, arguments.get(1)) else { return Ok(()) };
    let is_given = |(name, _): &&(&str, i64)| given.eq_ignore_ascii_case(name.as_bytes());
    let Some((name, arity)) = subcommands.iter().find(is_given) else {
        let (given, command) = (String::from_utf8_lossy(given), command.name.to_uppercase());
        return Err(format!("ERR unknown subcommand '{given}'. Try {command} HELP."));
    };
    if super::table::accepts(*arity, arguments.len()) {
        Ok(())
    } else {
        Err(format!("ERR wrong number of arguments for '{}|{name}' command", command.name))
    }
}
