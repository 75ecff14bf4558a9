//! Commands about the connection and the server.

use super::client_commands::client;
use super::cluster_information;
use super::command_information::command;
use super::configuration::configuration;
use super::debug_commands::debug;
use super::execution::Execution;
use super::information::info;
use super::session::Session;
use crate::commands::{NO_DATABASE, NO_INTEGER, SYNTAX, help};
use crate::protocol::{Protocol, Reply, parse_integer};
use bytes::Bytes;
use std::sync::atomic::Ordering;

/// Executes one of them.
pub fn run(session: &mut Session, execution: &mut Execution, name: &str, arguments: &[Bytes]) -> Reply {
    if let Some(reply) = run_without_data(session, name, arguments) {
        return reply;
    }
    match name {
        "client" => client(session, execution, arguments),
        "info" => info(session, execution, &arguments[1..]),
        "save" => save(execution, Reply::OK),
        "bgsave"
            if !matches!(arguments, [_])
                && !matches!(arguments, [_, word] if word.eq_ignore_ascii_case(b"SCHEDULE")) =>
        {
            Reply::error(SYNTAX)
        }
        "bgsave" => save(execution, Reply::Status("Background saving started".into())),
        _ => Reply::error(format!("ERR the command '{name}' has no function")),
    }
}

/// Executes one of them that does not look at the database; nothing if it does.
pub fn run_without_data(session: &mut Session, name: &str, arguments: &[Bytes]) -> Option<Reply> {
    Some(match name {
        "ping" => ping(arguments),
        "echo" => Reply::bulk(&arguments[1]),
        "quit" => {
            session.closes = true;
            Reply::OK
        }
        "hello" => hello(session, arguments),
        "auth" => authenticate(session, &arguments[1..]),
        "select" => select(session, &arguments[1]),
        "config" => configuration(session, arguments),
        "command" => command(&session.shared, arguments),
        "function" => function(arguments),
        "time" => time(),
        "debug" => debug(arguments),
        "wait" => wait(session, arguments),
        "lastsave" => Reply::Integer(session.shared.synced_seconds.load(Ordering::Relaxed) as i64),
        "shutdown" => shutdown(session, arguments),
        "role" => match session.shared.cluster.get() {
            Some(node) => cluster_information::role(node),
            None => Reply::Array(vec![Reply::bulk("master"), Reply::Integer(0), Reply::Array(Vec::new())]),
        },
        _ => return None,
    })
}

/// There are no replicas to wait for; in a cluster, what has its reply is on a majority.
fn wait(session: &Session, arguments: &[Bytes]) -> Reply {
    match (parse_integer(&arguments[1]), parse_integer(&arguments[2])) {
        (None, _) => Reply::error(NO_INTEGER),
        (_, None) => Reply::error("ERR timeout is not an integer or out of range"),
        (_, Some(timeout)) if timeout < 0 => Reply::error("ERR timeout is negative"),
        _ => Reply::count(session.shared.cluster.get().map_or(0, |node| node.status().voters.len() / 2)),
    }
}

fn ping(arguments: &[Bytes]) -> Reply {
    match arguments {
        [_] => Reply::Status("PONG".into()),
        [_, text] => Reply::bulk(text),
        _ => Reply::error("ERR wrong number of arguments for 'ping' command"),
    }
}

fn time() -> Reply {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Reply::bulks([now.as_secs().to_string(), now.subsec_micros().to_string()])
}

/// Everything is durable when the client gets the reply, which the commit of the batch sends: what
/// the batch has written so far is in no log yet. Where the sync fails, it gets the error.
fn save(execution: &mut Execution, done: Reply) -> Reply {
    execution.request_sync();
    done
}

fn shutdown(session: &mut Session, arguments: &[Bytes]) -> Reply {
    let is_given = |word: &[u8]| arguments[1..].iter().any(|option| option.eq_ignore_ascii_case(word));
    let known = ["NOSAVE", "SAVE", "NOW", "FORCE", "ABORT"];
    if !arguments[1..].iter().all(|option| known.iter().any(|word| option.eq_ignore_ascii_case(word.as_bytes())))
        || is_given(b"SAVE") && is_given(b"NOSAVE")
        || is_given(b"ABORT") && arguments.len() > 2
    {
        return Reply::error(SYNTAX);
    }
    if is_given(b"ABORT") {
        return Reply::error("ERR No shutdown in progress.");
    }
    tracing::info!(client = session.client.id, "SHUTDOWN was requested");
    session.closes = true;
    session.shared.stop();
    Reply::Silence
}

/// There are no functions: nothing is listed, and nothing is left to remove.
fn function(arguments: &[Bytes]) -> Reply {
    let given = String::from_utf8_lossy(&arguments[1]);
    match (given.to_lowercase().as_str(), arguments.len()) {
        ("help", 2) => help("function"),
        ("list", _) => Reply::Array(Vec::new()),
        ("flush", 2 | 3) => Reply::OK,
        _ => Reply::error(format!("ERR unknown subcommand '{given}'. Try FUNCTION HELP.")),
    }
}

fn select(session: &mut Session, argument: &[u8]) -> Reply {
    match parse_integer(argument).map(usize::try_from) {
        None => Reply::error(NO_INTEGER),
        Some(Ok(database)) if database < session.shared.config.databases => {
            session.select(database);
            Reply::OK
        }
        Some(_) => Reply::error(NO_DATABASE),
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn check_password(session: &mut Session, user: &[u8], given: &[u8]) -> Result<(), Reply> {
    let password = session.shared.settings.read().password.clone();
    // Without a password, every one is that of the default user.
    let is_right = password.is_none_or(|password| is_same(password.as_bytes(), given));
    if user == b"default" && is_right {
        session.is_authenticated = true;
        return Ok(());
    }
    Err(Reply::error("WRONGPASS invalid username-password pair or user is disabled."))
}

fn authenticate(session: &mut Session, arguments: &[Bytes]) -> Reply {
    let checked = match arguments {
        [_] if session.shared.settings.read().password.is_none() => {
            return Reply::error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            );
        }
        [password] => check_password(session, b"default", password),
        [user, password] => check_password(session, user, password),
        _ => return Reply::error(SYNTAX),
    };
    checked.map_or_else(|error| error, |()| Reply::OK)
}

/// The options of HELLO: user and password, and a name.
type HelloOptions<'a> = (Option<(&'a Bytes, &'a Bytes)>, Option<&'a Bytes>);

fn hello_options(mut options: &[Bytes]) -> Result<HelloOptions<'_>, Reply> {
    let (mut credentials, mut name) = (None, None);
    loop {
        match options {
            [] => return Ok((credentials, name)),
            [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                credentials = Some((user, password));
                options = rest;
            }
            [word, given, rest @ ..] if word.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(given);
                options = rest;
            }
            [word, ..] => {
                let word = String::from_utf8_lossy(word);
                return Err(Reply::error(format!("ERR Syntax error in HELLO option '{word}'")));
            }
        }
    }
}

fn hello(session: &mut Session, arguments: &[Bytes]) -> Reply {
    let mut protocol = None;
    if let Some(version) = arguments.get(1) {
        protocol = match parse_integer(version) {
            None => return Reply::error("ERR Protocol version is not an integer or out of range"),
            Some(2) => Some(Protocol::Resp2),
            Some(3) => Some(Protocol::Resp3),
            Some(_) => return Reply::error("NOPROTO unsupported protocol version"),
        };
    }
    let (credentials, name) = match hello_options(arguments.get(2..).unwrap_or_default()) {
        Ok(options) => options,
        Err(error) => return error,
    };
    if let Some((user, password)) = credentials
        && let Err(error) = check_password(session, user, password)
    {
        return error;
    }
    if !session.is_authenticated {
        return Reply::error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        );
    }
    if let Some(name) = name
        && let Err(error) = super::client_commands::set_name(session, name)
    {
        return error;
    }
    if let Some(protocol) = protocol {
        session.speak(protocol);
    }
    let version = if session.protocol == Protocol::Resp3 { 3 } else { 2 };
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let is_replica = session.shared.cluster.get().is_some_and(|node| cluster_information::redis_role(node) == "slave");
    let role = if is_replica { "replica" } else { "master" };
    Reply::Map(vec![
        text("server", "redis"),
        text("version", super::information::COMPATIBLE_VERSION),
        (Reply::bulk("proto"), Reply::Integer(version)),
        (Reply::bulk("id"), Reply::Integer(session.client.id as i64)),
        text("mode", if cluster_information::is_cluster(&session.shared) { "cluster" } else { "standalone" }),
        text("role", role),
        (Reply::bulk("modules"), Reply::Array(Vec::new())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::config::Config;
    use crate::server::shared::Shared;
    use esker::Options;
    use esker::env::mem::{CrashMode, MemEnv};
    use std::net::SocketAddr;
    use std::sync::Arc;

    const BEGIN_MS: u64 = 1_700_000_000_000;

    fn open(env: MemEnv) -> (Session, Execution) {
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).expect("a client");
        let options = Options::default().env(Arc::new(env));
        let execution = Execution::with_options(Arc::clone(&shared), options, (BEGIN_MS, 7)).expect("a database");
        (Session::new(client, shared), execution)
    }

    fn write(execution: &mut Execution, key: &'static str) {
        let key = Bytes::from(key);
        let reply = execution.run(0, |context| context.set_string(&key, &[b"v"], None, None).map(|()| Reply::OK));
        assert_eq!(reply.expect("a reply"), Reply::OK);
    }

    /// What SAVE and BGSAVE acknowledge survives a power failure: the batch that they are in, and
    /// those before it.
    #[test]
    fn a_saved_batch_is_durable() {
        for name in ["save", "bgsave"] {
            for writes_too in [true, false] {
                let env = MemEnv::new();
                let (mut session, mut execution) = open(env.clone());
                execution.begin();
                write(&mut execution, "before");
                execution.commit(false).expect("a commit");
                if writes_too {
                    write(&mut execution, "in the batch");
                }
                assert!(!run(&mut session, &mut execution, name, &[Bytes::from(name)]).is_error());
                execution.commit(false).expect("a commit");
                let (_, mut found) = open(env.crash(&CrashMode::LoseAll, 1));
                found.begin();
                let count = found.run(0, |context| context.count_keys().map(|count| Reply::Integer(count as i64)));
                assert_eq!(count.expect("a reply"), Reply::Integer(1 + i64::from(writes_too)), "{name}");
            }
        }
    }
}
