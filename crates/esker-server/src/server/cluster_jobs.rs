//! Executes the commands of connections on a node of a cluster: what may write goes into the log as
//! one payload, what only reads is read from the state of this node. Connections do not wait for
//! each other.

use super::cluster_reads::{guards, read, view};
use super::dispatch::{discard, is_held, multi, prepare, reset};
use super::executor::{Finished, Job, Message, OUTPUT_BYTES, UNBLOCKED};
use super::session::{Queue, Session};
use super::shared::{Shared, now_ms};
use super::watches::Watches;
use super::{cluster_commands, connection_commands};
use crate::cluster::{Answer, Call, CommandList, Followers, Node, Payload, Place, ProposeError, Waits, slot_of};
use crate::commands::{BLOCKING, Command, Handler, WRITE, check_subcommand};
use crate::protocol::Reply;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The bytes of the commands of a payload, about.
const PAYLOAD_BYTES: usize = 1 << 20;

/// Why a command waits no more.
enum Ending {
    /// Its connection is gone, or is to go.
    Gone,
    /// With this reply.
    Reply(Reply),
}

/// What all jobs share.
struct Jobs {
    shared: Arc<Shared>,
    node: Arc<Node>,
    /// How the jobs that are executed hear that they wait no more, by the numbers of their
    /// connections.
    endings: Mutex<HashMap<u64, mpsc::UnboundedSender<Ending>>>,
}

/// Why a job waits no more, once there is a reason.
type Endings = mpsc::UnboundedReceiver<Ending>;

/// Executes what comes until it is told to stop.
pub async fn run(shared: Arc<Shared>, node: Arc<Node>, mut messages: mpsc::UnboundedReceiver<Message>) {
    let jobs = Arc::new(Jobs { shared, node, endings: Mutex::default() });
    while let Some(message) = messages.recv().await {
        match message {
            Message::Run(job) => {
                // Before the job begins: its connection may be released at once, and only once.
                let (sender, endings) = mpsc::unbounded_channel();
                jobs.endings.lock().insert(job.session.client.id, sender);
                drop(tokio::spawn(Arc::clone(&jobs).execute(job, endings)));
            }
            Message::Release(id) => jobs.end(id, Ending::Gone),
            // What a session watches is with the session.
            Message::Forget(_) => {}
            Message::Stop => return,
        }
    }
}

/// Commands on data that are executed together.
#[derive(Default)]
struct Group {
    calls: Vec<Call>,
    bytes: usize,
    writes: bool,
}

impl Group {
    fn add(&mut self, session: &Session, command: &Command, arguments: Vec<Bytes>) {
        self.bytes += arguments.iter().map(Bytes::len).sum::<usize>();
        self.writes |= command.has(WRITE);
        self.calls.push(Call { database: session.database as u32, arguments });
    }
}

/// What the replicas have done with commands.
struct Written {
    /// The replies to the first ones.
    replies: Vec<Reply>,
    /// Those that were not executed.
    rest: Vec<Call>,
    /// What the first of these waits for.
    waits: Option<Waits>,
}

impl Jobs {
    async fn execute(self: Arc<Self>, mut job: Job, mut endings: Endings) {
        job.session.begin();
        let mut group = Group::default();
        while job.session.output.len() < OUTPUT_BYTES
            && !self.shared.client_memory.holds_execution()
            && !job.session.closes
            && !job.session.client.is_killed()
            && let Some(arguments) = job.requests.pop_front()
        {
            let elsewhere = self.elsewhere(&job.session, &arguments);
            if !group.calls.is_empty() && (elsewhere.is_some() || !joins(&job.session, &arguments)) {
                job.requests.push_front(arguments);
                self.flush(&mut job, &mut group).await;
                continue;
            }
            if is_held(&job.session, &arguments, now_ms()) {
                job.requests.push_front(arguments);
                self.flush(&mut job, &mut group).await;
                // The replies of before are sent first.
                if !job.session.output.is_empty() || self.hold(&mut job, &mut endings).await.is_break() {
                    break;
                }
                continue;
            }
            if is_blocking(&job.session, &arguments) && !job.session.output.is_empty() {
                // The replies of before are sent first: the client may wait for them.
                job.requests.push_front(arguments);
                break;
            }
            if let Some(error) = elsewhere {
                refuse(&mut job.session, &error);
                continue;
            }
            if self.step(&mut job.session, &mut group, &mut endings, arguments).await.is_break() {
                break;
            }
            if group.bytes >= PAYLOAD_BYTES {
                self.flush(&mut job, &mut group).await;
            }
        }
        self.flush(&mut job, &mut group).await;
        job.session.note_output();
        let Job { session, requests, done } = job;
        // Before the connection gives the next job.
        self.endings.lock().remove(&session.client.id);
        // A connection that has gone wants nothing back.
        let _ = done.send(Finished { session, requests });
    }

    /// Waits until CLIENT PAUSE holds nothing up any more. The job goes back, and its commands are
    /// not executed, where its connection is to go.
    async fn hold(&self, job: &mut Job, endings: &mut Endings) -> ControlFlow<()> {
        let client = &job.session.client;
        client.hold(true);
        let mut is_gone = false;
        while !is_gone && self.shared.pause.kind(now_ms()).is_some() {
            tokio::select! {
                ending = endings.recv() => is_gone = !matches!(ending, Some(Ending::Reply(_))),
                () = self.shared.pause.wait(now_ms()) => {}
            }
        }
        client.hold(false);
        if is_gone {
            job.requests.clear();
            // What else has come is not executed: its replies would be taken for those of these.
            job.session.closes = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// One command: it joins the group, or is executed; then the group is empty. The job goes back
    /// where its connection is to go.
    async fn step(
        &self,
        session: &mut Session,
        group: &mut Group,
        endings: &mut Endings,
        arguments: Vec<Bytes>,
    ) -> ControlFlow<()> {
        let Some(command) = prepare(session, &mut Watches::default(), now_ms(), &arguments) else {
            return ControlFlow::Continue(());
        };
        let reply = match command.handler {
            Handler::Data(_) if command.has(BLOCKING) => match self.wait(session, endings, command, arguments).await {
                Some(reply) => reply,
                None => return ControlFlow::Break(()),
            },
            Handler::Data(_) => {
                group.add(session, command, arguments);
                return ControlFlow::Continue(());
            }
            Handler::Connection => self.connection(session, command, &arguments).await,
        };
        session.reply(&reply);
        ControlFlow::Continue(())
    }

    async fn connection(&self, session: &mut Session, command: &Command, arguments: &[Bytes]) -> Reply {
        match command.name {
            "multi" => multi(session),
            "exec" => self.exec(session).await,
            "discard" => discard(session, &mut Watches::default()),
            "watch" => self.watch(session, &arguments[1..]).await,
            "unwatch" => {
                session.unwatch(&mut Watches::default());
                Reply::OK
            }
            "reset" => reset(session, &mut Watches::default()),
            name if cluster_commands::find(name.as_bytes()).is_some() => {
                cluster_commands::run(session, &self.node, name, arguments).await
            }
            _ => self.on_connection(session, command, arguments),
        }
    }

    /// A command about the connection or the server, which may look at the state of this node.
    fn on_connection(&self, session: &mut Session, command: &Command, arguments: &[Bytes]) -> Reply {
        if command.name != "debug"
            && let Some(reply) = connection_commands::run_without_data(session, command.name, arguments)
        {
            return reply;
        }
        // DEBUG SLEEP takes its time, and others look at the state.
        tokio::task::block_in_place(|| {
            if let Some(reply) = connection_commands::run_without_data(session, command.name, arguments) {
                return reply;
            }
            let mut execution = match view(&self.shared, &self.node) {
                Ok(execution) => execution,
                Err(why) => return Reply::error(format!("ERR {why}")),
            };
            let reply = connection_commands::run(session, &mut execution, command.name, arguments);
            for (id, is_error) in std::mem::take(&mut execution.unblocked) {
                self.end(id, Ending::Reply(if is_error { UNBLOCKED } else { Reply::NilArray }));
            }
            reply
        })
    }

    /// The error for a write that another node has to do, where the client is to go there.
    fn elsewhere(&self, session: &Session, arguments: &[Bytes]) -> Option<Reply> {
        if self.node.config.followers == Followers::Forward || !session.is_authenticated {
            return None;
        }
        let command = command_of(arguments).filter(|command| command.accepts(arguments.len()))?;
        if !command.has(WRITE) {
            return None;
        }
        match self.node.leader() {
            Some(leader) if leader.is_here => None,
            Some(leader) => {
                let slot = command.keys_of(arguments).first().map_or(0, |key| slot_of(key));
                let address = leader.address?;
                Some(Reply::error(format!("MOVED {slot} {}", address.client())))
            }
            None => Some(ProposeError::NoLeader.reply()),
        }
    }

    /// Executes the group, and sends the replies. Where these are long, the last commands become
    /// the next ones of the job again.
    async fn flush(&self, job: &mut Job, group: &mut Group) {
        let Group { calls, writes, .. } = std::mem::take(group);
        if calls.is_empty() {
            return;
        }
        let session = &mut job.session;
        session.is_on_data = true;
        let count = calls.len();
        let executed = if writes {
            self.write(session, list(&self.node, calls, false)).await.map(|written| (written.replies, written.rest))
        } else {
            self.read(session, calls, OUTPUT_BYTES).await
        };
        match executed {
            Ok((replies, rest)) => {
                replies.iter().for_each(|reply| session.reply(reply));
                rest.into_iter().rev().for_each(|call| job.requests.push_front(call.arguments));
            }
            Err(error) => (0..count).for_each(|_| session.reply(&error.reply())),
        }
    }

    async fn read(
        &self,
        session: &mut Session,
        calls: Vec<Call>,
        most_bytes: usize,
    ) -> Result<(Vec<Reply>, Vec<Call>), ProposeError> {
        let as_of = session.as_of(&self.node).await?;
        read(&self.shared, &self.node, as_of, calls, most_bytes).await
    }

    async fn write(&self, session: &mut Session, list: CommandList) -> Result<Written, ProposeError> {
        let payload = Payload::Commands(list);
        let (index, answer) = self.node.write(&payload, &mut session.doubt).await?;
        session.written_index = session.written_index.max(index);
        let calls = if let Payload::Commands(list) = payload { list.calls } else { Vec::new() };
        match answer {
            Answer::Replies { replies, blocked } => {
                let rest = calls.into_iter().skip(replies.len()).collect();
                Ok(Written { replies, rest, waits: blocked })
            }
            Answer::Touched => Ok(Written { replies: vec![Reply::NilArray], rest: Vec::new(), waits: None }),
            Answer::Swept(_) => Err(ProposeError::Uncertain("the replicas answer something else".into())),
        }
    }

    async fn exec(&self, session: &mut Session) -> Reply {
        let Some(queue) = session.queue.take() else { return Reply::error("ERR EXEC without MULTI") };
        session.note_queue();
        let guards = std::mem::take(&mut session.guards);
        if queue.has_failed {
            return Reply::error("EXECABORT Transaction discarded because of previous errors.");
        }
        let before = session.database;
        let writes = queue.commands.iter().any(|(command, _)| command.has(WRITE));
        if writes
            && let Some(error) = queue.commands.iter().find_map(|(_, arguments)| self.elsewhere(session, arguments))
        {
            return error;
        }
        let (parts, calls) = split(session, queue);
        let executed = if writes || !guards.is_empty() {
            let list = CommandList { guards, ..list(&self.node, calls, true) };
            match self.node.write(&Payload::Commands(list), &mut session.doubt).await {
                Ok((index, Answer::Replies { replies, .. })) => {
                    session.written_index = session.written_index.max(index);
                    Ok(replies)
                }
                Ok(_) => {
                    session.select(before);
                    return Reply::NilArray;
                }
                Err(error) => Err(error),
            }
        } else {
            // Of a transaction all is as of one moment.
            self.read(session, calls, usize::MAX).await.map(|(replies, _)| replies)
        };
        match executed {
            Ok(executed) => {
                let mut executed = executed.into_iter();
                let reply = |part| match part {
                    Part::Done(reply) => reply,
                    Part::Data => executed.next().unwrap_or(Reply::Nil),
                    Part::Connection(command, arguments) => self.on_connection(session, command, &arguments),
                };
                Reply::Array(parts.into_iter().map(reply).collect())
            }
            Err(error) => {
                session.select(before);
                error.reply()
            }
        }
    }

    async fn watch(&self, session: &mut Session, keys: &[Bytes]) -> Reply {
        if session.queue.is_some() {
            return Reply::error("ERR WATCH inside MULTI is not allowed");
        }
        let is_new = |key: &&Bytes| {
            let is_same = |place: (u32, &Bytes)| place == (session.database as u32, *key);
            !session.guards.iter().any(|guard| is_same((guard.database, &guard.key)))
        };
        // The keys outlive the buffer that they came in.
        let keys: Vec<Bytes> = keys.iter().filter(is_new).map(|key| Bytes::copy_from_slice(key)).collect();
        if let Err(error) = session.settle(&self.node).await {
            return error.reply();
        }
        match guards(&self.shared, &self.node, session.database, keys).await {
            Ok(guards) => {
                session.guards.extend(guards);
                Reply::OK
            }
            Err(error) => error.reply(),
        }
    }

    /// Executes a command that waits for a key, as often as one of its keys is filled. No reply if
    /// the connection is to go.
    async fn wait(
        &self,
        session: &mut Session,
        endings: &mut Endings,
        command: &Command,
        arguments: Vec<Bytes>,
    ) -> Option<Reply> {
        let keys = command.keys_of(&arguments).into_iter();
        let places: Vec<Place> = keys.map(|key| (session.database, Bytes::copy_from_slice(key))).collect();
        // What is filled between two attempts is noticed.
        let waiter = self.node.notices.wait_for(places);
        // A reply was for a command before, which has ended by itself. Who is gone stays so.
        let is_gone = std::iter::from_fn(|| endings.try_recv().ok()).any(|ending| matches!(ending, Ending::Gone));
        let call = Call { database: session.database as u32, arguments };
        let mut deadline = None;
        let reply = loop {
            if session.client.is_killed() {
                break None;
            }
            waiter.begin();
            let waits = match self.write(session, list(&self.node, vec![call.clone()], false)).await {
                Err(error) => break Some(error.reply()),
                Ok(Written { mut replies, waits: None, .. }) => break replies.pop(),
                Ok(_) if is_gone => break None,
                Ok(Written { waits: Some(waits), .. }) => waits,
            };
            let until = *deadline.get_or_insert_with(|| {
                let timeout = Duration::from_millis(waits.timeout_ms);
                (waits.timeout_ms > 0).then(|| Instant::now().checked_add(timeout)).flatten()
            });
            let late = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            session.client.is_blocked.store(true, Ordering::Relaxed);
            let ending = tokio::select! {
                biased;
                ending = endings.recv() => Some(ending.unwrap_or(Ending::Gone)),
                () = waiter.filled() => None,
                () = late => Some(Ending::Reply(Reply::NilArray)),
            };
            match ending {
                None => {}
                Some(Ending::Gone) => break None,
                Some(Ending::Reply(reply)) => break Some(reply),
            }
        };
        session.client.is_blocked.store(false, Ordering::Relaxed);
        reply
    }

    /// Has the job of a connection wait no more, if there is one.
    fn end(&self, id: u64, ending: Ending) {
        if let Some(sender) = self.endings.lock().get(&id) {
            // One that has ended meanwhile needs none.
            let _ = sender.send(ending);
        }
    }
}

fn list(node: &Node, calls: Vec<Call>, is_transaction: bool) -> CommandList {
    let databases = u32::try_from(node.databases).unwrap_or(u32::MAX);
    CommandList { databases, seed: node.seed(), is_transaction, guards: Vec::new(), calls }
}

/// A command of a transaction.
enum Part {
    /// One that has its reply.
    Done(Reply),
    /// The next one on data.
    Data,
    /// One about the connection or the server, which is executed only if those on data are.
    Connection(&'static Command, Vec<Bytes>),
}

/// The commands of a transaction, and those on data, in the logical databases that SELECT among
/// them has chosen.
fn split(session: &mut Session, queue: Queue) -> (Vec<Part>, Vec<Call>) {
    let (mut parts, mut calls) = (Vec::with_capacity(queue.commands.len()), Vec::new());
    for (command, arguments) in queue.commands {
        session.shared.statistics.commands.add(1);
        parts.push(if matches!(command.handler, Handler::Data(_)) {
            calls.push(Call { database: session.database as u32, arguments });
            Part::Data
        } else if command.name == "unwatch" {
            Part::Done(Reply::OK)
        } else if command.name == "select"
            && let Some(reply) = connection_commands::run_without_data(session, command.name, &arguments)
        {
            Part::Done(reply)
        } else {
            Part::Connection(command, arguments)
        });
    }
    (parts, calls)
}

/// A command that is not executed, and no transaction that it belongs to.
fn refuse(session: &mut Session, error: &Reply) {
    session.shared.statistics.commands.add(1);
    session.client.active_ms.store(now_ms(), Ordering::Relaxed);
    if let Some(queue) = &mut session.queue {
        queue.has_failed = true;
    }
    session.reply(error);
}

fn command_of(arguments: &[Bytes]) -> Option<&'static Command> {
    arguments.first().and_then(|name| crate::commands::find(name))
}

/// Whether the command is one that waits.
fn is_blocking(session: &Session, arguments: &[Bytes]) -> bool {
    session.queue.is_none() && command_of(arguments).is_some_and(|command| command.has(BLOCKING))
}

/// Whether the command is executed with those before it. All others come behind their replies, and
/// so does the error of one that is not admitted.
fn joins(session: &Session, arguments: &[Bytes]) -> bool {
    session.queue.is_none()
        && session.is_authenticated
        && command_of(arguments).is_some_and(|command| {
            matches!(command.handler, Handler::Data(_))
                && !command.has(BLOCKING)
                && command.accepts(arguments.len())
                && check_subcommand(command.name, arguments).is_ok()
        })
}
