//! The thread that executes commands: those of all connections, one after the other.
//!
//! What has come together is a batch: one transaction of the engine, one sync where the policy asks
//! for one, and the replies go out after it. So every command and every EXEC is atomic, all of them
//! have one order, and a reply that was sent was committed.

use super::config::SyncPolicy;
use super::dispatch::{Waiting, execute};
use super::execution::Execution;
use super::session::Session;
use super::shared::Shared;
use crate::protocol::Reply;
use crate::store::Blocked;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

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
const OUTPUT_BYTES: usize = 1 << 20;
/// The commands of a batch, about.
const BATCH_COMMANDS: usize = 4096;
/// The bytes that a batch writes, about.
const BATCH_BYTES: usize = 8 << 20;
/// How often what is left of expired collections is looked for.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How many collections a sweep removes.
const SWEPT: usize = 100;

/// The reply to a command that CLIENT UNBLOCK ends with an error.
const UNBLOCKED: Reply = Reply::Error(Cow::Borrowed("UNBLOCKED client unblocked via CLIENT UNBLOCK"));

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

/// The thread's state.
#[derive(Debug)]
pub struct Executor {
    execution: Execution,
    shared: Arc<Shared>,
    waiting: WaitingJobs,
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
            finished: Vec::new(),
            commands: 0,
            sweep_at_ms: 0,
        }
    }

    /// Executes what comes until it is told to stop, and returns the database.
    pub fn run(mut self, messages: &Receiver<Message>) -> Execution {
        loop {
            let mut next = match messages.recv_timeout(self.patience()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            };
            self.execution.begin();
            let mut is_stopped = false;
            if self.execution.now_ms() >= self.sweep_at_ms {
                self.execution.sweep(SWEPT);
                self.sweep_at_ms = self.execution.now_ms() + SWEEP_EVERY.as_millis() as u64;
            }
            while let Some(message) = next.take() {
                is_stopped |= matches!(message, Message::Stop);
                self.handle(message);
                if self.commands < BATCH_COMMANDS && self.execution.written_bytes() < BATCH_BYTES {
                    next = messages.try_recv().ok();
                }
            }
            self.release_overdue();
            self.commit();
            if is_stopped {
                return self.execution;
            }
        }
    }

    /// How long to wait for a message: until a job's time is over, or something may have expired.
    fn patience(&self) -> Duration {
        let now = super::shared::now_ms();
        match self.waiting.by_deadline.keys().next() {
            Some((deadline, _)) => SWEEP_EVERY.min(Duration::from_millis(deadline.saturating_sub(now))),
            None => SWEEP_EVERY,
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Run(mut job) => {
                job.session.begin();
                self.execute(job);
            }
            Message::Release(id) => {
                if let Some((job, _, _)) = self.waiting.remove(id) {
                    self.finished.push(job);
                }
            }
            Message::Forget(mut session) => session.unwatch(&mut self.execution),
            Message::Stop => {
                for id in self.waiting.jobs.keys().copied().collect::<Vec<_>>() {
                    self.give_up(id, &Reply::NilArray);
                }
            }
        }
    }

    /// Executes the commands of a job, until it waits or its output is to be sent.
    fn execute(&mut self, first: Job) {
        let mut jobs = VecDeque::from([first]);
        while let Some(mut job) = jobs.pop_front() {
            let mut blocked = None;
            let mut is_ahead = false;
            while blocked.is_none()
                && !is_ahead
                && job.session.output.len() < OUTPUT_BYTES
                && !job.session.closes
                && self.execution.written_bytes() < BATCH_BYTES
                && let Some(arguments) = job.requests.pop_front()
            {
                self.commands += 1;
                blocked = execute(&mut job.session, &mut self.execution, arguments);
                if !job.session.output.is_empty()
                    && let Some((waiting, _)) = blocked.take()
                {
                    // The replies of before are sent first: the client may wait for them.
                    job.requests.push_front(waiting.arguments);
                    is_ahead = true;
                }
                let filled = self.execution.take_filled();
                self.serve(filled, &mut jobs);
                for (id, is_error) in std::mem::take(&mut self.execution.unblocked) {
                    self.give_up(id, if is_error { &UNBLOCKED } else { &Reply::NilArray });
                }
            }
            match blocked {
                Some(blocked) => self.waiting.add(job, blocked, self.execution.now_ms()),
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
                let Some((_, waiting, _, _)) = self.waiting.jobs.get(&id) else { continue };
                let outcome = self.execution.call(waiting.database, waiting.function, &waiting.arguments);
                let reply = match outcome {
                    Err(_) => break,
                    // A value of another type is none that it waits for, unless it is the target's.
                    Ok(reply) if reply.is_error() && !self.execution.holds(&place, waiting.kind()) => continue,
                    Ok(reply) => reply,
                };
                filled.extend(self.execution.take_filled());
                if let Some((mut job, _, _)) = self.waiting.remove(id) {
                    job.session.begin();
                    job.session.is_on_data = true;
                    job.session.reply(&reply);
                    jobs.push_back(job);
                }
            }
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
                finished.session.unwatch(&mut self.execution);
            }
        }
    }
}
