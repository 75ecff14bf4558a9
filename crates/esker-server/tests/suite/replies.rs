//! Every command in every form, with the replies of Redis 7.0, which are kept beside the commands.
//!
//! `tests/data/NAME.txt` has a command in each line, `NAME.replies` the reply to each. Where Redis
//! is installed its replies are looked at too, so that the files stay true; `ESKER_RECORD=1` writes
//! them anew.

use crate::support::{self, Client, Redis, TestServer};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

const SCRIPTS: [&str; 8] = ["strings", "keys", "expiry", "hashes", "sets", "sorted_sets", "lists", "connection"];

/// Replies that name the connection or the server.
const NAMED: [&str; 1] = ["HELLO 3"];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> Vec<String> {
    std::fs::read_to_string(file(name)).expect(name).lines().map(str::to_string).collect()
}

/// The replies to a script.
fn replies(client: &mut Client, commands: &[String]) -> Vec<String> {
    client.line("FLUSHALL");
    commands
        .iter()
        .map(|command| {
            if NAMED.contains(&command.as_str()) {
                client.hello3();
                return String::new();
            }
            client.line(command)
        })
        .collect()
}

fn differences(script: &str, commands: &[String], expected: &[String], found: &[String]) -> String {
    let mut text = String::new();
    for (number, command) in commands.iter().enumerate() {
        let (expected, found) =
            (expected.get(number).map_or("", |line| line), found.get(number).map_or("", |line| line));
        if expected != found {
            let _ = write!(text, "\n{script}:{}: {command}\n  expected {expected}\n  found    {found}", number + 1);
        }
    }
    text
}

#[test]
fn replies_are_those_of_redis() {
    let server = TestServer::start();
    let mut failed = String::new();
    for script in SCRIPTS {
        let commands = read(&format!("{script}.txt"));
        let found = replies(&mut server.client(), &commands);
        failed += &differences(script, &commands, &read(&format!("{script}.replies")), &found);
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn kept_replies_are_true() {
    let Some(redis) = Redis::start() else { return };
    let mut failed = String::new();
    for script in SCRIPTS {
        let commands = read(&format!("{script}.txt"));
        let found = replies(&mut Client::connect(redis.address), &commands);
        if std::env::var_os("ESKER_RECORD").is_some() {
            std::fs::write(file(&format!("{script}.replies")), found.join("\n") + "\n").expect("a file");
        } else {
            failed += &differences(script, &commands, &read(&format!("{script}.replies")), &found);
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// A command without a line in the scripts would be one without a test.
#[test]
fn every_command_has_a_line() {
    // These end the server, or tell of the time and the machine: `server.rs` has them.
    const ELSEWHERE: [&str; 8] = ["shutdown", "debug", "save", "bgsave", "lastsave", "role", "info", "flushall"];
    let server = TestServer::start();
    let listed = support::sorted(&server.client().line("COMMAND LIST"));
    let names = listed.iter().filter_map(|item| item.split(' ').nth(1));
    let commands: BTreeSet<String> = names.filter(|name| !name.contains('|')).map(str::to_string).collect();
    let mut tested: BTreeSet<String> = ELSEWHERE.iter().map(|name| name.to_string()).collect();
    for script in SCRIPTS {
        for line in read(&format!("{script}.txt")) {
            tested.extend(line.split(' ').next().map(str::to_lowercase));
        }
    }
    let untested: Vec<&String> = commands.difference(&tested).collect();
    assert!(commands.len() > 150 && untested.is_empty(), "{} commands, without a line: {untested:?}", commands.len());
}

/// What COMMAND INFO tells of each command is what Redis tells, but for notes, and for the
/// subcommands, of which there are fewer.
#[test]
fn commands_are_described_as_by_redis() {
    let Some(redis) = Redis::start() else { return };
    let server = TestServer::start();
    let (mut ours, mut theirs) = (server.client(), Client::connect(redis.address));
    let listed = support::sorted(&ours.line("COMMAND LIST"));
    let mut failed = String::new();
    let mut compared = 0;
    for name in listed.iter().filter_map(|item| item.split(' ').nth(1)) {
        let [found, expected] = [&mut ours, &mut theirs].map(|client| client.line(&format!("COMMAND INFO {name}")));
        // A command that Redis 7.0 does not have.
        if ["*1 $-1", "*1 *-1"].contains(&expected.as_str()) {
            continue;
        }
        let expected = without_notes(&expected);
        let (found, expected) = (without_subcommands(&found), without_subcommands(&expected));
        compared += 1;
        if found != expected {
            let _ = write!(failed, "\n{name}\n  expected {expected}\n  found    {found}");
        }
    }
    assert!(compared > 180 && failed.is_empty(), "{compared} compared{failed}");
}

/// A description of a command without what it says about keys for people.
fn without_notes(described: &str) -> String {
    let Some((before, behind)) = described.split_once("*8 $5 notes ") else { return described.to_string() };
    let behind = behind.split_once("$5 flags").map_or("", |(_, behind)| behind);
    format!("{before}*6 $5 flags{behind}")
}

/// A description of a command up to its subcommands, which are in the last place.
fn without_subcommands(described: &str) -> &str {
    let first = described.find(" *10 ").and_then(|own| described[own + 5..].find(" *10 ").map(|next| own + 5 + next));
    let described = first.map_or(described, |first| &described[..first]);
    described.rsplit_once(" *").map_or(described, |(before, _)| before)
}
