//! CLIENT and its subcommands.

use super::execution::Execution;
use super::pause::PauseKind;
use super::session::{ReplyMode, Session};
use super::shared::{Client, now_ms};
use crate::commands::{NO_INTEGER, SYNTAX, find_subcommand, help};
use crate::protocol::{Reply, parse_integer};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// CLIENT subcommand
pub fn client(session: &mut Session, execution: &mut Execution, arguments: &[Bytes]) -> Reply {
    let description = match find_subcommand("client", arguments) {
        Ok(description) => description,
        Err(error) => return Reply::error(error),
    };
    match description.name.trim_start_matches("client|") {
        "id" => Reply::Integer(session.client.id as i64),
        "getname" => {
            let name = session.client.names.lock().name.clone();
            if name.is_empty() { Reply::Nil } else { Reply::bulk(name) }
        }
        "getredir" => Reply::Integer(-1),
        "trackinginfo" => tracking_information(),
        "caching" => Reply::error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        ),
        "pause" => pause(session, arguments),
        "unpause" => {
            session.shared.pause.end();
            Reply::OK
        }
        "setname" => set_name(session, &arguments[2]).map_or_else(|error| error, |()| Reply::OK),
        "setinfo" => set_info(session, &arguments[2], &arguments[3]),
        "info" => Reply::Verbatim(line(&session.client)),
        "list" => list(session, &arguments[2..]),
        "kill" => kill(session, &arguments[2..]),
        "unblock" => unblock(session, execution, &arguments[2..]),
        "reply" => set_reply_mode(session, &arguments[2]),
        "no-evict" if is_switch(&arguments[2]) => {
            session.client.is_kept.store(arguments[2].eq_ignore_ascii_case(b"ON"), Ordering::Relaxed);
            Reply::OK
        }
        "no-touch" if is_switch(&arguments[2]) => Reply::OK,
        "help" => help("client"),
        _ => Reply::error(SYNTAX),
    }
}

fn is_switch(argument: &[u8]) -> bool {
    argument.eq_ignore_ascii_case(b"ON") || argument.eq_ignore_ascii_case(b"OFF")
}

/// CLIENT TRACKINGINFO: no keys are tracked.
fn tracking_information() -> Reply {
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(vec![Reply::bulk("off")])),
        (Reply::bulk("redirect"), Reply::Integer(-1)),
        (Reply::bulk("prefixes"), Reply::Array(Vec::new())),
    ])
}

/// CLIENT PAUSE milliseconds [WRITE | ALL]
fn pause(session: &Session, arguments: &[Bytes]) -> Reply {
    let kind = match &arguments[3..] {
        [] => PauseKind::All,
        [word] if word.eq_ignore_ascii_case(b"ALL") => PauseKind::All,
        [word] if word.eq_ignore_ascii_case(b"WRITE") => PauseKind::Write,
        [_] => return Reply::error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => {
            let given = String::from_utf8_lossy(&arguments[1]);
            return Reply::error(format!(
                "ERR unknown subcommand or wrong number of arguments for '{given}'. Try CLIENT HELP."
            ));
        }
    };
    match parse_integer(&arguments[2]).map(u64::try_from) {
        None => Reply::error("ERR timeout is not an integer or out of range"),
        Some(Err(_)) => Reply::error("ERR timeout is negative"),
        Some(Ok(milliseconds)) => {
            session.shared.pause.begin(kind, now_ms().saturating_add(milliseconds));
            Reply::OK
        }
    }
}

/// A name of printable characters without spaces, as lines of CLIENT LIST hold it.
fn printable(argument: &[u8]) -> Option<String> {
    let is_printable = argument.iter().all(|byte| (b'!'..=b'~').contains(byte));
    is_printable.then(|| String::from_utf8_lossy(argument).into_owned())
}

/// Names the connection.
///
/// # Errors
/// The reply to a name with spaces.
pub fn set_name(session: &mut Session, argument: &[u8]) -> Result<(), Reply> {
    let Some(name) = printable(argument) else {
        return Err(Reply::error("ERR Client names cannot contain spaces, newlines or special characters."));
    };
    session.client.names.lock().name = name;
    Ok(())
}

fn set_info(session: &mut Session, attribute: &[u8], value: &[u8]) -> Reply {
    let is_name = attribute.eq_ignore_ascii_case(b"LIB-NAME");
    if !is_name && !attribute.eq_ignore_ascii_case(b"LIB-VER") {
        let attribute = String::from_utf8_lossy(attribute);
        return Reply::error(format!("ERR Unrecognized option '{attribute}'"));
    }
    let Some(value) = printable(value) else {
        let attribute = if is_name { "lib-name" } else { "lib-ver" };
        return Reply::error(format!("ERR {attribute} cannot contain spaces, newlines or special characters."));
    };
    let mut names = session.client.names.lock();
    *(if is_name { &mut names.library } else { &mut names.library_version }) = value;
    Reply::OK
}

fn set_reply_mode(session: &mut Session, argument: &[u8]) -> Reply {
    if argument.eq_ignore_ascii_case(b"ON") {
        session.reply_mode = ReplyMode::On;
        return Reply::OK;
    }
    session.reply_mode = if argument.eq_ignore_ascii_case(b"OFF") {
        ReplyMode::Off
    } else if argument.eq_ignore_ascii_case(b"SKIP") {
        if session.reply_mode == ReplyMode::Off { ReplyMode::Off } else { ReplyMode::SkipNext }
    } else {
        return Reply::error(SYNTAX);
    };
    Reply::Silence
}

/// A line of CLIENT LIST.
fn line(client: &Client) -> String {
    let names = client.names.lock().clone();
    let now = now_ms();
    let queued = client.queued.load(Ordering::Relaxed);
    let flags = if client.is_blocked.load(Ordering::Relaxed) {
        "b"
    } else if queued == usize::MAX {
        "N"
    } else {
        "x"
    };
    let bytes = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (input, free, request) =
        (bytes(&client.input_bytes), bytes(&client.input_free_bytes), bytes(&client.request_bytes));
    let (queued_bytes, output) = (bytes(&client.queued_bytes), client.held.output());
    let total = input + free + queued_bytes + output + size_of::<Session>() + size_of::<Client>();
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} sub=0 psub=0 ssub=0 multi={} \
         qbuf={input} qbuf-free={free} argv-mem={request} multi-mem={queued_bytes} rbs=0 rbp=0 obl=0 oll={} \
         omem={output} tot-mem={total} events=r cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}\n",
        client.id,
        client.address,
        client.local_address,
        client.descriptor.load(Ordering::Relaxed),
        names.name,
        now.saturating_sub(client.connected_ms) / 1000,
        now.saturating_sub(client.active_ms.load(Ordering::Relaxed)) / 1000,
        client.database.load(Ordering::Relaxed),
        if queued == usize::MAX { -1 } else { queued as i64 },
        usize::from(output > 0),
        if names.last_command.is_empty() { "NULL" } else { names.last_command },
        client.protocol.load(Ordering::Relaxed),
        names.library,
        names.library_version,
    )
}

fn all(session: &Session) -> Vec<Arc<Client>> {
    session.shared.clients.lock().values().cloned().collect()
}

fn list(session: &Session, options: &[Bytes]) -> Reply {
    let clients = all(session);
    let chosen: Vec<Arc<Client>> = match options {
        [] => clients,
        [word, kind] if word.eq_ignore_ascii_case(b"TYPE") => match is_ordinary(kind) {
            Some(true) => clients,
            Some(false) => Vec::new(),
            None => return unknown_type(kind),
        },
        [word, ids @ ..] if word.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let Some(ids) = ids.iter().map(|id| parse_integer(id)).collect::<Option<Vec<i64>>>() else {
                return Reply::error("ERR Invalid client ID");
            };
            clients.into_iter().filter(|client| ids.contains(&(client.id as i64))).collect()
        }
        _ => return Reply::error(SYNTAX),
    };
    Reply::Verbatim(chosen.iter().map(|client| line(client)).collect())
}

/// Whether the server has clients of that type; `None` if the type is unknown.
fn is_ordinary(kind: &[u8]) -> Option<bool> {
    let kinds = [("normal", true), ("master", false), ("replica", false), ("slave", false), ("pubsub", false)];
    kinds.iter().find(|(name, _)| kind.eq_ignore_ascii_case(name.as_bytes())).map(|(_, is_ordinary)| *is_ordinary)
}

fn unknown_type(kind: &[u8]) -> Reply {
    Reply::error(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(kind)))
}

fn kill(session: &mut Session, options: &[Bytes]) -> Reply {
    if let [address] = options {
        let address = String::from_utf8_lossy(address);
        let found = all(session).into_iter().find(|client| client.address.to_string() == address);
        return match found {
            Some(client) => {
                end(session, &client);
                Reply::OK
            }
            None => Reply::error("ERR No such client"),
        };
    }
    let mut skips_own = true;
    let mut chosen = all(session);
    for pair in options.chunks(2) {
        let [option, value] = pair else { return Reply::error(SYNTAX) };
        let text = String::from_utf8_lossy(value).into_owned();
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => match parse_integer(value) {
                Some(id) if id > 0 => chosen.retain(|client| client.id as i64 == id),
                _ => return Reply::error("ERR client-id should be greater than 0"),
            },
            b"ADDR" => chosen.retain(|client| client.address.to_string() == text),
            b"LADDR" => chosen.retain(|client| client.local_address.to_string() == text),
            b"TYPE" => match is_ordinary(value) {
                Some(is_ordinary) => chosen.retain(|_| is_ordinary),
                None => return unknown_type(value),
            },
            b"USER" if text == "default" => {}
            b"USER" => return Reply::error(format!("ERR No such user '{text}'")),
            b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => skips_own = true,
            b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => skips_own = false,
            _ => return Reply::error(SYNTAX),
        }
    }
    chosen.retain(|client| !(skips_own && client.id == session.client.id));
    for client in &chosen {
        end(session, client);
    }
    Reply::count(chosen.len())
}

/// Ends the wait of a connection.
fn unblock(session: &Session, execution: &mut Execution, arguments: &[Bytes]) -> Reply {
    let Some(id) = parse_integer(&arguments[0]) else { return Reply::error(NO_INTEGER) };
    let is_error = match &arguments[1..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"TIMEOUT") => false,
        [word] if word.eq_ignore_ascii_case(b"ERROR") => true,
        [_] => return Reply::error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        _ => return Reply::error(SYNTAX),
    };
    let is_waiting =
        |client: &Client| client.is_blocked.load(Ordering::Relaxed) && !client.is_held.load(Ordering::Relaxed);
    let waits = |client: &Arc<Client>| client.id as i64 == id && is_waiting(client);
    let Some(client) = all(session).into_iter().find(waits) else { return Reply::Integer(0) };
    execution.unblocked.push((client.id, is_error));
    Reply::Integer(1)
}

/// Ends a connection: its own once the reply is sent.
fn end(session: &mut Session, client: &Client) {
    if client.id == session.client.id {
        session.closes = true;
    } else {
        client.kill();
    }
}
