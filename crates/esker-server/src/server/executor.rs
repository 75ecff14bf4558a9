//! The task that executes commands: those of all connections, one after the other.
//!
//! What has come together is a batch: one transaction of the engine, one sync where the policy asks
//! for one, and the replies go out after it. So every command and every EXEC is atomic, all of them
//! have one order, and a reply that was sent was committed.

use super::config::SyncPolicy;
use super::dispatch::{self, Waiting, execute};
use super::execution::Execution;
use super::session::Session;
use super::shared::Shared;
use crate::commands::find;
use crate::protocol::Reply;
use crate::store::Blocked;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Commands of a connection, which goes along with its session and gets it back.
#[derive(Debug)]
pub struct Job {
    /// The connection's session.
    pub session: Box<Session>,
    /// Its commands. Those that are left when it comes back are to be sent again, after the output.
    pub requests: VecDeque<Vec<Bytes>>,
    /// Where the job goes when it is done.
    pub done: oneshot::Sender<Finished>,
}

/// A job that is done.
#[derive(Debug)]
pub struct Finished {
    /// The session.
    pub session: Box<Session>,
    /// Commands that were not executed yet, as there is output to be sent first.
    pub requests: VecDeque<Vec<Bytes>>,
}

/// What the executor is told.
#[derive(Debug)]
pub enum Message {
    /// Commands to execute.
    Run(Job),
    /// The connection of that number is gone, or is to go: it waits for nothing any more.
    Release(u64),
    /// A connection has ended: what its session holds is to be forgotten.
    Forget(Box<Session>),
    /// Nothing comes any more.
    Stop,
}

/// The output that a job may have before it goes back to be sent.
pub(super) const OUTPUT_BYTES: usize = 1 << 20;
/// The commands of a batch, about.
const BATCH_COMMANDS: usize = 4096;
/// The bytes that a batch writes, about.
const BATCH_BYTES: usize = 8 << 20;
/// How often what is left of expired collections is looked for.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How many collections a sweep removes.
const SWEPT: usize = 100;
/// The time between sweeps that find more is so many times that of a sweep.
const SWEEP_SHARE: u32 = 3;
/// When a sweep is tried again that the engine has refused.
const SWEEP_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The reply to a command that CLIENT UNBLOCK ends with an error.
pub(super) const UNBLOCKED: Reply = Reply::Error(Cow::Borrowed("UNBLOCKED client unblocked via CLIENT UNBLOCK"));

/// Jobs that wait for keys to be filled.
#[derive(Debug, Default)]
struct WaitingJobs {
    jobs: HashMap<u64, (Job, Waiting, Blocked, Option<u64>)>,
    /// The jobs that wait for a key, in the order in which they came.
    by_key: HashMap<(usize, Bytes), VecDeque<u64>>,
    /// Until when they wait, in milliseconds since the epoch.
    by_deadline: BTreeMap<(u64, u64), ()>,
}

impl WaitingJobs {
    fn add(&mut self, job: Job, (waiting, blocked): (Waiting, Blocked), now_ms: u64) {
        let id = job.session.client.id;
        job.session.client.is_blocked.store(true, Ordering::Relaxed);
        for key in &blocked.keys {
            let queue = self.by_key.entry((waiting.database, key.clone())).or_default();
            if !queue.contains(&id) {
                queue.push_back(id);
            }
        }
        let deadline = (blocked.timeout_ms > 0).then(|| now_ms.saturating_add(blocked.timeout_ms));
        if let Some(deadline) = deadline {
            self.by_deadline.insert((deadline, id), ());
        }
        self.jobs.insert(id, (job, waiting, blocked, deadline));
    }

    fn remove(&mut self, id: u64) -> Option<(Job, Waiting, Blocked)> {
        let (job, waiting, blocked, deadline) = self.jobs.remove(&id)?;
        for key in &blocked.keys {
            let place = (waiting.database, key.clone());
            if let Some(queue) = self.by_key.get_mut(&place) {
                queue.retain(|other| *other != id);
                if queue.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
        if let Some(deadline) = deadline {
            self.by_deadline.remove(&(deadline, id));
        }
        job.session.client.is_blocked.store(false, Ordering::Relaxed);
        Some((job, waiting, blocked))
    }

    /// Those whose time is over.
    fn overdue(&self, now_ms: u64) -> Vec<u64> {
        self.by_deadline.keys().take_while(|(deadline, _)| *deadline <= now_ms).map(|(_, id)| *id).collect()
    }
}

/// Removes what is left of expired collections, and returns when to look again. The sweep commits
/// by itself: where the engine takes no writes, commands that only read are not to fail with it.
fn sweep(execution: &mut Execution, shared: &Shared) -> Duration {
    let begin = Instant::now();
    let swept = execution.sweep(SWEPT);
    // One that is lost in a power failure is repeated.
    match execution.commit(false) {
        Ok(()) => {
            shared.statistics.expired_collections.add(swept as u64);
            sweep_pause(swept, begin.elapsed())
        }
        Err(_) => SWEEP_AFTER_FAILURE,
    }
}

/// The time until the next sweep: a share of the executor's time as long as there is more.
fn sweep_pause(swept: usize, took: Duration) -> Duration {
    if swept < SWEPT { SWEEP_EVERY } else { SWEEP_EVERY.min(took * SWEEP_SHARE) }
}

/// A job that was held up, and whose connection goes: its commands are not executed.
fn dropped(mut job: Job) -> Job {
    job.session.client.hold(false);
    job.requests.clear();
    closed(job)
}

/// A job that goes back without the reply to a command: what else has come at its connection is
/// not executed, as its replies would be taken for that one.
fn closed(mut job: Job) -> Job {
    job.session.closes = true;
    job
}

/// The task's state.
#[derive(Debug)]
pub struct Executor {
    execution: Execution,
    shared: Arc<Shared>,
    waiting: WaitingJobs,
    /// Jobs that CLIENT PAUSE holds up, in the order in which they came.
    held: VecDeque<Job>,
    /// Jobs of the batch that are done, once it is committed.
    finished: Vec<Job>,
    /// Commands of the batch.
    commands: usize,
    /// When to look for expired collections again, in milliseconds since the epoch.
    sweep_at_ms: u64,
}

impl Executor {
    /// An executor on the database.
    pub fn new(execution: Execution, shared: Arc<Shared>) -> Executor {
        Executor {
            execution,
            shared,
            waiting: WaitingJobs::default(),
            held: VecDeque::new(),
            finished: Vec::new(),
            commands: 0,
            sweep_at_ms: 0,
        }
    }

    /// Executes what comes until it is told to stop, and returns the database.
    pub async fn run(mut self, mut messages: UnboundedReceiver<Message>) -> Execution {
        loop {
            // Without a sender nothing comes any more.
            let received = timeout(self.patience(), messages.recv()).await;
            let mut next = received.map_or(None, |message| Some(message.unwrap_or(Message::Stop)));
            self.gather().await;
            self.execution.begin();
            let mut is_stopped = false;
            if self.execution.now_ms() >= self.sweep_at_ms {
                self.shared.statistics.rate.note(self.execution.now_ms(), self.shared.statistics.commands.get());
                let pause = sweep(&mut self.execution, &self.shared);
                self.sweep_at_ms = self.execution.now_ms().saturating_add(pause.as_millis() as u64);
            }
            while let Some(message) = next.take() {
                is_stopped |= matches!(message, Message::Stop);
                self.handle(message);
                if self.commands < BATCH_COMMANDS && self.execution.written_bytes() < BATCH_BYTES {
                    next = messages.try_recv().ok();
                }
            }
            self.release_overdue();
            self.resume();
            self.commit();
            if is_stopped {
                return self.execution;
            }
        }
    }

    /// Has connections that have requests join the batch: tokio asks the system which do. On one
    /// thread it runs their tasks before this one; of many threads one runs this task first.
    async fn gather(&self) {
        let turns = if self.shared.config.io_threads == 1 { 1 } else { 2 };
        for _ in 0..turns {
            yield_now().await;
        }
    }

    /// How long to wait for a message: until a job's time is over, or something may have expired.
    fn patience(&self) -> Duration {
        let now = super::shared::now_ms();
        let deadline = self.waiting.by_deadline.keys().next().map_or(u64::MAX, |(deadline, _)| *deadline);
        let resumption = if self.held.is_empty() { u64::MAX } else { self.shared.pause.until_ms() };
        let next = deadline.min(self.sweep_at_ms).min(resumption);
        SWEEP_EVERY.min(Duration::from_millis(next.saturating_sub(now)))
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Run(mut job) => {
                job.session.begin();
                self.execute(job);
            }
            Message::Release(id) => {
                if let Some((job, _, _)) = self.waiting.remove(id) {
                    self.finished.push(closed(job));
                }
                if let Some(place) = self.held.iter().position(|job| job.session.client.id == id) {
                    self.finished.extend(self.held.remove(place).map(dropped));
                }
            }
            Message::Forget(mut session) => session.unwatch(&mut self.execution.watches),
            Message::Stop => {
                for id in self.waiting.jobs.keys().copied().collect::<Vec<_>>() {
                    self.give_up(id, &Reply::NilArray);
                }
                self.finished.extend(self.held.drain(..).map(dropped));
            }
        }
    }

    /// Goes on with the jobs that were held up, once they are no more.
    fn resume(&mut self) {
        if self.held.is_empty() || self.shared.pause.kind(self.execution.now_ms()).is_some() {
            return;
        }
        for mut job in std::mem::take(&mut self.held) {
            job.session.client.hold(false);
            job.session.begin();
            self.execute(job);
        }
    }

    /// Executes the commands of a job, until it waits or its output is to be sent.
    fn execute(&mut self, first: Job) {
        let mut jobs = VecDeque::from([first]);
        while let Some(mut job) = jobs.pop_front() {
            let mut blocked = None;
            let mut is_ahead = false;
            let mut is_held = false;
            while blocked.is_none()
                && !is_ahead
                && job.session.output.len() < OUTPUT_BYTES
                && !self.shared.client_memory.holds_execution()
                && !job.session.closes
                // Who has killed it may have been told so.
                && !job.session.client.is_killed()
                && self.execution.written_bytes() < BATCH_BYTES
                && let Some(arguments) = job.requests.pop_front()
            {
                if dispatch::is_held(&job.session, &arguments, self.execution.now_ms()) {
                    job.requests.push_front(arguments);
                    // The replies of before are sent first.
                    is_held = job.session.output.is_empty();
                    break;
                }
                self.commands += 1;
                blocked = execute(&mut job.session, &mut self.execution, arguments);
                job.session.note_output();
                if !job.session.output.is_empty()
                    && let Some((waiting, _)) = blocked.take()
                {
                    // The replies of before are sent first: the client may wait for them.
                    job.requests.push_front(waiting.arguments);
                    is_ahead = true;
                }
                let (mut filled, replaced) = self.execution.take_filled();
                if !replaced.is_empty() {
                    let places = self.waiting.by_key.keys();
                    let mut places: Vec<_> = places.filter(|(database, _)| replaced.contains(database)).collect();
                    places.sort();
                    filled.extend(places.into_iter().cloned());
                }
                self.serve(filled, &mut jobs);
                for (id, is_error) in std::mem::take(&mut self.execution.unblocked) {
                    self.give_up(id, if is_error { &UNBLOCKED } else { &Reply::NilArray });
                }
            }
            match blocked {
                Some(blocked) => self.waiting.add(job, blocked, self.execution.now_ms()),
                None if is_held => {
                    job.session.client.hold(true);
                    self.held.push_back(job);
                }
                None => self.finished.push(job),
            }
        }
    }

    /// Executes what waits for keys that were filled, in the order in which it came. Jobs that are
    /// served go on behind the one that filled the keys.
    fn serve(&mut self, filled: Vec<(usize, Bytes)>, jobs: &mut VecDeque<Job>) {
        let mut filled = VecDeque::from(filled);
        while let Some(place) = filled.pop_front() {
            let ids: Vec<u64> = self.waiting.by_key.get(&place).into_iter().flatten().copied().collect();
            for id in ids {
                let Some((job, waiting, blocked, _)) = self.waiting.jobs.get(&id) else { continue };
                if job.session.client.is_killed() {
                    continue;
                }
                let arguments = waiting.arguments_for(&place.1, blocked.keys.len());
                let outcome = self.execution.call(waiting.database, waiting.function, &arguments);
                // What it has looked for is no read of its own.
                self.execution.take_lookups();
                let reply = match outcome {
                    Err(_) => break,
                    // A value of another type is none that it waits for, unless it is the target's.
                    Ok(reply) if reply.is_error() && !self.execution.holds(&place, waiting.kind()) => continue,
                    Ok(reply) => reply,
                };
                self.count(&arguments, &reply);
                filled.extend(self.execution.take_filled().0);
                if let Some((mut job, _, _)) = self.waiting.remove(id) {
                    job.session.begin();
                    job.session.is_on_data = true;
                    job.session.reply(&reply);
                    jobs.push_back(job);
                }
            }
        }
    }

    /// Counts a command that has waited.
    fn count(&mut self, arguments: &[Bytes], reply: &Reply) {
        let took = self.execution.take_time();
        if let Some(command) = arguments.first().and_then(|name| find(name)) {
            self.shared.statistics.by_command.add(command.name, took, reply.is_error());
        }
    }

    /// Ends the wait of a job with this reply.
    fn give_up(&mut self, id: u64, reply: &Reply) {
        if let Some((mut job, _, _)) = self.waiting.remove(id) {
            job.session.begin();
            job.session.is_on_data = false;
            job.session.reply(reply);
            self.finished.push(job);
        }
    }

    fn release_overdue(&mut self) {
        for id in self.waiting.overdue(self.execution.now_ms()) {
            self.give_up(id, &Reply::NilArray);
        }
    }

    /// Commits the batch, and has its replies sent.
    fn commit(&mut self) {
        let is_synced = self.shared.settings.read().sync == SyncPolicy::Always;
        let outcome = self.execution.commit(is_synced);
        self.commands = 0;
        for mut job in self.finished.drain(..) {
            if let Err(error) = &outcome {
                job.session.fail(error);
            }
            let finished = Finished { session: job.session, requests: job.requests };
            if let Err(mut finished) = job.done.send(finished) {
                // The connection has gone, and cannot have it forgotten.
                finished.session.unwatch(&mut self.execution.watches);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::config::Config;
    use crate::server::session::Session;
    use esker::Options;
    use esker::env::fault::{Action, Class, FaultEnv, Rule};
    use esker::env::mem::MemEnv;
    use std::io::ErrorKind;
    use std::net::SocketAddr;
    use tokio::sync::mpsc;

    const BEGIN_MS: u64 = 1_700_000_000_000;

    /// The longer a sweep takes, the longer is the pause; no other is shorter than the usual one.
    #[test]
    fn sweeps_go_on_while_there_is_more() {
        let milliseconds = Duration::from_millis;
        assert_eq!(sweep_pause(SWEPT - 1, milliseconds(1)), SWEEP_EVERY);
        assert_eq!(sweep_pause(SWEPT, milliseconds(1)), milliseconds(3));
        assert_eq!(sweep_pause(SWEPT, milliseconds(500)), SWEEP_EVERY);
    }

    /// Where the engine takes no writes, what has expired is not removed, and reads go on.
    #[test]
    fn reads_do_not_fail_with_a_sweep() {
        let env = Arc::new(FaultEnv::new(Arc::new(MemEnv::new())));
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).unwrap();
        let options = Options::default().env(Arc::<FaultEnv>::clone(&env));
        // The executor's batches are at the present time, at which the collection has expired.
        let mut execution = Execution::with_options(Arc::clone(&shared), options, (BEGIN_MS, 7)).unwrap();
        let mut session = Box::new(Session::new(client, Arc::clone(&shared)));
        for line in ["SET a 1", "SADD s a", "PEXPIRE s 100"] {
            let arguments = line.split(' ').map(|word| Bytes::from(word.to_string())).collect();
            assert!(execute(&mut session, &mut execution, arguments).is_none(), "{line}");
        }
        execution.commit(true).unwrap();
        session.output.clear();
        env.add(Rule::new(Class::LogWrite, 0, Action::Fail(ErrorKind::Other)).from_then_on());
        assert!(execute(&mut session, &mut execution, vec!["INCR".into(), "a".into()]).is_none());
        execution.commit(true).unwrap_err();
        session.output.clear();
        execution.begin();
        assert_eq!(execution.sweep(usize::MAX), 1);
        execution.commit(false).unwrap_err();
        let (messages, received) = mpsc::unbounded_channel();
        let (done, mut finished) = oneshot::channel();
        let requests = VecDeque::from([vec![Bytes::from("GET"), Bytes::from("a")]]);
        messages.send(Message::Run(Job { session, requests, done })).unwrap();
        drop(messages);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _execution = runtime.block_on(Executor::new(execution, shared).run(received));
        assert_eq!(&finished.try_recv().unwrap().session.output[..], b"$1\r\n1\r\n");
    }
}
