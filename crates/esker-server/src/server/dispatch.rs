//! A command of a connection: checked, queued behind MULTI, or executed.

use super::cluster_commands;
use super::connection_commands;
use super::debug_commands::DEBUG_FORBIDDEN;
use super::execution::Execution;
use super::pause::PauseKind;
use super::session::{Queue, ReplyMode, Session};
use super::watches::Watches;
use crate::commands::{Command, DataFunction, Handler, NO_AUTH, READ, WRITE, check_subcommand, find, full_name};
use crate::protocol::{Protocol, Reply};
use crate::store::{Blocked, Kind};
use bytes::Bytes;
use std::sync::atomic::Ordering;

/// A command that waits for a key to be filled.
#[derive(Debug)]
pub struct Waiting {
    /// What executes it.
    pub function: DataFunction,
    /// The command.
    pub arguments: Vec<Bytes>,
    /// Its logical database.
    pub database: usize,
}

impl Waiting {
    /// The type of values that it waits for.
    pub fn kind(&self) -> Kind {
        let waits_for_members = self.arguments.first().is_some_and(|name| name.to_ascii_lowercase().starts_with(b"bz"));
        if waits_for_members { Kind::SortedSet } else { Kind::List }
    }

    /// The command for one of its `count` keys, which was filled: what is at the others does not
    /// count any more.
    pub fn arguments_for(&self, key: &Bytes, count: usize) -> Vec<Bytes> {
        let name = self.arguments.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        match (&name[..], &self.arguments[..]) {
            (b"blpop" | b"brpop" | b"bzpopmin" | b"bzpopmax", [name, .., timeout]) => {
                vec![name.clone(), key.clone(), timeout.clone()]
            }
            (b"blmpop" | b"bzmpop", [name, timeout, _, rest @ ..]) => {
                let mut arguments = vec![name.clone(), timeout.clone(), Bytes::from_static(b"1"), key.clone()];
                arguments.extend(rest.iter().skip(count).cloned());
                arguments
            }
            _ => self.arguments.clone(),
        }
    }
}

/// Whether CLIENT PAUSE holds the command up. One that would be refused is not: its error is sent
/// at once.
pub fn is_held(session: &Session, arguments: &[Bytes], now_ms: u64) -> bool {
    let Some(kind) = session.shared.pause.kind(now_ms) else { return false };
    let Ok(command) = admit(session, arguments) else { return false };
    let writes_together = || {
        command.name == "exec"
            && session.queue.as_ref().is_some_and(|queue| queue.commands.iter().any(|(command, _)| command.has(WRITE)))
    };
    kind == PauseKind::All || command.has(WRITE) || writes_together()
}

/// Commands of the connection whose replies depend on the commit of the batch.
const COMMITTED: [&str; 3] = ["exec", "save", "bgsave"];

/// Executes a command, and sends the reply. What is returned waits for a key.
pub fn execute(session: &mut Session, execution: &mut Execution, arguments: Vec<Bytes>) -> Option<(Waiting, Blocked)> {
    let now_ms = execution.now_ms();
    let command = prepare(session, &mut execution.watches, now_ms, &arguments)?;
    session.is_on_data = matches!(command.handler, Handler::Data(_)) || COMMITTED.contains(&command.name);
    match run(session, execution, command, &arguments) {
        Ok(reply) => session.reply(&reply),
        Err(blocked) => {
            let Handler::Data(function) = command.handler else { return None };
            return Some((Waiting { function, arguments, database: session.database }, blocked));
        }
    }
    None
}

/// The command that is to be executed now. One that is refused, or queued behind MULTI, has got its
/// reply.
pub fn prepare(
    session: &mut Session,
    watches: &mut Watches,
    now_ms: u64,
    arguments: &[Bytes],
) -> Option<&'static Command> {
    session.shared.statistics.commands.add(1);
    session.is_on_data = false;
    session.client.active_ms.store(now_ms, Ordering::Relaxed);
    if is_http(arguments) {
        if let Some(passed_over) = session.shared.log.http.take(now_ms) {
            let address = session.client.address;
            tracing::warn!(%address, passed_over, "a client sends HTTP, as a web page may have a browser do; it is \
                                                   disconnected");
        }
        session.closes = true;
        return None;
    }
    let command = match admit(session, arguments) {
        Ok(command) => command,
        Err(error) => {
            let name = arguments.first().map_or(&b""[..], |name| name);
            if let Some(command) = find(name).filter(|_| session.shared.cluster.get().is_none()) {
                session.shared.statistics.by_command.add_rejected(full_name(command.name, arguments));
            }
            if let Some(queue) = &mut session.queue {
                queue.has_failed = true;
            }
            let error = if arguments.first().is_some_and(|name| name.eq_ignore_ascii_case(b"exec")) {
                aborted(session, watches, error)
            } else {
                error
            };
            session.reply(&error);
            return None;
        }
    };
    session.client.names.lock().last_command = full_name(command.name, arguments);
    let controls = ["exec", "discard", "multi", "watch", "quit", "reset"];
    if session.queue.is_some() && !controls.contains(&command.name) {
        let reply = enqueue(session, watches, command, arguments);
        session.reply(&reply);
        return None;
    }
    Some(command)
}

/// Whether it is a line of a request of HTTP. A page in a browser of the machine can send one here,
/// whose body has commands.
fn is_http(arguments: &[Bytes]) -> bool {
    let is = |name: &Bytes| name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:");
    arguments.first().is_some_and(is)
}

/// Puts a command behind MULTI. A queue beyond client-query-buffer-limit ends its connection,
/// without a reply.
fn enqueue(session: &mut Session, watches: &mut Watches, command: &'static Command, arguments: &[Bytes]) -> Reply {
    /// What a command and each argument take in memory beside their bytes, about.
    const OVERHEAD_BYTES: usize = 64;
    let limit = session.shared.settings.read().query_buffer_bytes;
    let Some(queue) = &mut session.queue else { return Reply::Silence };
    queue.bytes += OVERHEAD_BYTES + arguments.iter().map(|argument| argument.len() + OVERHEAD_BYTES).sum::<usize>();
    if queue.bytes > limit {
        tracing::warn!(client = session.client.id, limit, "the queue of a transaction is too long");
        session.queue = None;
        session.note_queue();
        session.unwatch(watches);
        session.closes = true;
        return Reply::Silence;
    }
    // The queue outlives the buffer that the command came in.
    queue.commands.push((command, arguments.iter().map(|argument| Bytes::copy_from_slice(argument)).collect()));
    session.note_queue();
    Reply::Status("QUEUED".into())
}

/// An EXEC that is refused ends the transaction.
fn aborted(session: &mut Session, watches: &mut Watches, error: Reply) -> Reply {
    session.queue = None;
    session.note_queue();
    session.unwatch(watches);
    let Reply::Error(text) = error else { return error };
    let text = text.strip_prefix("ERR ").unwrap_or(&text);
    Reply::error(format!("EXECABORT Transaction discarded because of: {text}"))
}

/// The command, if the connection may give it.
fn admit(session: &Session, arguments: &[Bytes]) -> Result<&'static Command, Reply> {
    let name = arguments.first().map_or(&b""[..], |name| name);
    let is_alone = session.shared.cluster.get().is_none();
    let is_known = |command: &&Command| !is_alone || cluster_commands::is_of_redis(command);
    let in_cluster = || cluster_commands::find(name).filter(is_known);
    let Some(command) = find(name).or_else(in_cluster) else { return Err(unknown(arguments)) };
    if !command.accepts(arguments.len()) {
        return Err(Reply::error(format!("ERR wrong number of arguments for '{}' command", command.name)));
    }
    check_subcommand(command.name, arguments).map_err(Reply::error)?;
    if command.name == "debug" && !session.shared.config.allows_debug {
        return Err(Reply::error(DEBUG_FORBIDDEN));
    }
    if !session.is_authenticated && !command.has(NO_AUTH) {
        return Err(Reply::error("NOAUTH Authentication required."));
    }
    if session.queue.is_some()
        && (["save", "shutdown"].contains(&command.name) || !is_alone && cluster_commands::find(name).is_some())
    {
        return Err(Reply::error("ERR Command not allowed inside a transaction"));
    }
    if is_alone && cluster_commands::find(name).is_some() {
        return Err(Reply::error("ERR This instance has cluster support disabled"));
    }
    Ok(command)
}

fn run(
    session: &mut Session,
    execution: &mut Execution,
    command: &Command,
    arguments: &[Bytes],
) -> Result<Reply, Blocked> {
    let outcome = match command.handler {
        Handler::Data(function) => execution.call(session.database, function, arguments),
        Handler::Connection => Ok(match command.name {
            "multi" => multi(session),
            "exec" => exec(session, execution),
            "discard" => discard(session, &mut execution.watches),
            "watch" => watch(session, execution, &arguments[1..]),
            "unwatch" => {
                session.unwatch(&mut execution.watches);
                Reply::OK
            }
            "reset" => reset(session, &mut execution.watches),
            _ => connection_commands::run(session, execution, command.name, arguments),
        }),
    };
    count(session, execution, command, arguments, &outcome);
    outcome
}

/// Counts a command that was executed. One that waits is counted when it goes on.
fn count(
    session: &Session,
    execution: &mut Execution,
    command: &Command,
    arguments: &[Bytes],
    outcome: &Result<Reply, Blocked>,
) {
    let statistics = &session.shared.statistics;
    let (found, missed) = execution.take_lookups();
    let took = execution.take_time();
    if command.has(READ) {
        statistics.found_keys.add(found);
        statistics.missed_keys.add(missed);
    }
    if let Ok(reply) = outcome {
        statistics.by_command.add(full_name(command.name, arguments), took, reply.is_error());
    }
}

/// MULTI
pub fn multi(session: &mut Session) -> Reply {
    if session.queue.is_some() {
        return Reply::error("ERR MULTI calls can not be nested");
    }
    session.queue = Some(Queue::default());
    session.note_queue();
    Reply::OK
}

/// DISCARD
pub fn discard(session: &mut Session, watches: &mut Watches) -> Reply {
    if session.queue.take().is_none() {
        return Reply::error("ERR DISCARD without MULTI");
    }
    session.note_queue();
    session.unwatch(watches);
    Reply::OK
}

fn exec(session: &mut Session, execution: &mut Execution) -> Reply {
    let Some(queue) = session.queue.take() else { return Reply::error("ERR EXEC without MULTI") };
    session.note_queue();
    let is_touched = is_touched(session, execution);
    session.unwatch(&mut execution.watches);
    if queue.has_failed {
        return Reply::error("EXECABORT Transaction discarded because of previous errors.");
    }
    if is_touched {
        return Reply::NilArray;
    }
    let mut replies = Vec::with_capacity(queue.commands.len());
    for (command, arguments) in queue.commands {
        session.shared.statistics.commands.add(1);
        // Nothing waits within EXEC.
        let reply = run(session, execution, command, &arguments).unwrap_or_else(|blocked| blocked.otherwise);
        session.shared.statistics.note(&reply);
        replies.push(reply);
    }
    Reply::Array(replies)
}

fn watch(session: &mut Session, execution: &mut Execution, keys: &[Bytes]) -> Reply {
    if session.queue.is_some() {
        return Reply::error("ERR WATCH inside MULTI is not allowed");
    }
    let mut watch = session.watch.take().unwrap_or_default();
    for key in keys {
        let exists = exists(execution, session.database, key);
        execution.watches.add(&mut watch, session.database, key, exists);
    }
    session.watch = Some(watch);
    Reply::OK
}

/// Whether a watched key was written, has expired, or came with a swap, since.
fn is_touched(session: &Session, execution: &mut Execution) -> bool {
    let Some(watch) = &session.watch else { return false };
    watch.is_touched()
        || watch.keys.iter().any(|((database, key), existed)| *existed != exists(execution, *database, key))
}

/// RESET
pub fn reset(session: &mut Session, watches: &mut Watches) -> Reply {
    session.queue = None;
    session.note_queue();
    session.unwatch(watches);
    session.select(0);
    session.speak(Protocol::Resp2);
    session.reply_mode = ReplyMode::On;
    session.reads_stale = false;
    session.is_authenticated = session.shared.settings.read().password.is_none();
    session.client.names.lock().name.clear();
    Reply::Status("RESET".into())
}

fn exists(execution: &mut Execution, database: usize, key: &Bytes) -> bool {
    let found = execution.run(database, |context| Ok(Reply::Boolean(context.entry(key)?.is_some())));
    matches!(found, Ok(Reply::Boolean(true)))
}

/// The error for a command that is not there.
fn unknown(arguments: &[Bytes]) -> Reply {
    const SHOWN: usize = 128;
    let short = |bytes: &[u8], limit: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]).into_owned();
    let name = short(arguments.first().map_or(&b""[..], |name| name), SHOWN);
    let mut shown = String::new();
    for argument in arguments.iter().skip(1) {
        if shown.len() >= SHOWN {
            break;
        }
        shown += &format!("'{}' ", short(argument, SHOWN - shown.len()));
    }
    Reply::error(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::config::Config;
    use crate::server::shared::Shared;
    use esker::Options;
    use esker::env::fault::{Action, Class, FaultEnv, Rule};
    use esker::env::mem::MemEnv;
    use std::io::ErrorKind;
    use std::net::SocketAddr;
    use std::sync::Arc;

    fn open(env: &Arc<FaultEnv>) -> (Session, Execution) {
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).unwrap();
        let options = Options::default().env(Arc::<FaultEnv>::clone(env));
        let execution = Execution::with_options(Arc::clone(&shared), options, (1, 7)).unwrap();
        (Session::new(client, shared), execution)
    }

    fn batch(session: &mut Session, execution: &mut Execution, lines: &[&str]) -> String {
        execution.begin();
        session.begin();
        for line in lines {
            let arguments = line.split(' ').map(|word| Bytes::from(word.to_string())).collect();
            assert!(execute(session, execution, arguments).is_none(), "{line}");
        }
        if let Err(error) = execution.commit(true) {
            session.fail(&error);
        }
        let replies = String::from_utf8(session.output.split().to_vec()).unwrap();
        replies
            .lines()
            .map(|line| if line.starts_with("-ERR the storage") { "-" } else { line })
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// After a batch that was not committed, a connection is in the state that its replies say.
    #[test]
    fn a_failed_batch_leaves_what_was_acknowledged() {
        let env = Arc::new(FaultEnv::new(Arc::new(MemEnv::new())));
        let (mut session, mut execution) = open(&env);
        env.add(Rule::new(Class::LogWrite, 0, Action::Fail(ErrorKind::StorageFull)).from_then_on());
        let lines = ["SET a 1", "SELECT 3", "GET a", "MULTI", "SET b 1"];
        assert_eq!(batch(&mut session, &mut execution, &lines), "- +OK - +OK +QUEUED");
        assert!(env.fired() > 0);
        assert_eq!(session.database, 3);
        assert_eq!(batch(&mut session, &mut execution, &["SET c 1", "EXEC", "PING"]), "+QUEUED - +PONG");
        assert_eq!(batch(&mut session, &mut execution, &["EXEC"]), "-ERR EXEC without MULTI");
    }
}
