//! The database of a state machine: it applies entries, one after the other.
//!
//! The keyspace `raft.state` has the records `applied` (the last entry that was applied, and its
//! time), `membership`, and `stopped` with the reason why this replica applies nothing more.
//!
//! The time of the database is that of its entries. After a power loss the newest entries may have
//! to be applied again, from a state in which earlier times hold; what had expired by the later
//! time, and not by the earlier one, must still be there. So nothing may be dropped for its age
//! that a durable entry has not seen expired. [`Horizon`] sees to it.

use crate::apply::{Apply, Context, Rejection};
use crate::encoding::{Reader, decode_membership, encode_membership, put_optional_log_id, record};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::marks::Marks;
use crate::range_hash::{Difference, RangeHash};
use crate::sessions::{Limits, Seen, Sessions};
use crate::slots::Slot;
use crate::state_hash;
use crate::types::{Command, Entry, LogId, Reply, Request, StoredMembership};
use esker::{Db, Keyspace, KeyspaceOptions, ManualClock, Options, Snapshot, Transaction, WriteOptions};
use openraft::EntryPayload;
use openraft::entry::RaftEntry;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

const STATE: &str = "raft.state";
const APPLIED: &str = "applied";
const MEMBERSHIP: &str = "membership";
const STOPPED: &str = "stopped";

/// How many entries may be applied until the state is made durable, so that what has expired can
/// go. That costs a sync, and no entry waits for it but the next one.
const HORIZON_ENTRIES: u64 = 4096;

/// The state as of some entry, and the handles to read it.
///
/// Reads through it see the time of the last entry that was applied: a key has its value until an
/// entry is applied whose time is that of its expiry or later.
pub struct StateDatabase<A: Apply> {
    db: Db,
    clock: Arc<ManualClock>,
    keyspaces: A::Keyspaces,
    state: Keyspace,
    sessions: Sessions,
    progress: Mutex<Progress>,
    marks: Marks,
    executor: Executor,
    /// Behind the database: its directory is in use until that is closed.
    slot: Arc<Slot>,
}

struct Progress {
    applied: Option<LogId>,
    membership: StoredMembership,
    time_ms: u64,
    horizon: Horizon,
    stopped: Option<String>,
}

/// Holds back what has expired since the state was made durable: the engine drops nothing for its
/// age that some snapshot may see, and this keeps a snapshot with the time of a durable entry.
#[derive(Default)]
struct Horizon {
    _held: Option<Snapshot>,
    entries: u64,
}

impl Horizon {
    /// Makes the state durable and goes on to its time. A snapshot that is made while no keyspace
    /// with a time to live is open has no time, and holds nothing back in those that are opened
    /// later. The sessions are such a keyspace, so it takes those that are open.
    fn move_to_now(&mut self, db: &Db, _open: &Sessions) -> Result<()> {
        let now = db.snapshot();
        db.sync()?;
        #[cfg(test)]
        let now = Some(now).filter(|_| !crate::planted::nothing_holds_expiry());
        #[cfg(not(test))]
        let now = Some(now);
        *self = Horizon { _held: now, entries: 0 };
        Ok(())
    }

    /// Counts an entry.
    fn count(&mut self, db: &Db, sessions: &Sessions) -> Result<()> {
        self.entries += 1;
        if self.entries >= HORIZON_ENTRIES { self.move_to_now(db, sessions) } else { Ok(()) }
    }
}

/// How a state machine opens its databases.
#[derive(Clone)]
pub(crate) struct DatabaseOptions {
    pub options: Options,
    pub sessions: Limits,
    pub executor: Executor,
}

impl DatabaseOptions {
    /// The same; with `yes` a database that is not there is not begun.
    pub(crate) fn only_existing(&self, yes: bool) -> DatabaseOptions {
        match yes {
            true => DatabaseOptions { options: self.options.clone().create_if_missing(false), ..self.clone() },
            false => self.clone(),
        }
    }
}

impl<A: Apply> StateDatabase<A> {
    /// Opens the database in `slot`, or begins one.
    pub(crate) fn open(apply: &A, slot: Arc<Slot>, how: &DatabaseOptions) -> Result<Arc<StateDatabase<A>>> {
        // Until the stored time is known nothing has expired.
        let clock = Arc::new(ManualClock::new(0));
        let db = Db::open(slot.path(), how.options.clone().clock(clock.clone()))?;
        let state = db.keyspace(STATE, KeyspaceOptions::default())?;
        if let Some(why) = state.get(STOPPED)? {
            return Err(Error::Stopped { why: String::from_utf8_lossy(&why).into_owned() });
        }
        let (time_ms, applied) = state.get(APPLIED)?.map_or(Ok((0, None)), |bytes| decode_applied(&bytes))?;
        let membership = state.get(MEMBERSHIP)?.map(|bytes| decode_membership(&bytes)).transpose()?;
        clock.set(time_ms);
        let sessions = Sessions::open(&db, how.sessions)?;
        let keyspaces = apply.open(&db)?;
        let mut horizon = Horizon::default();
        horizon.move_to_now(&db, &sessions)?;
        let membership = membership.unwrap_or_default();
        let progress = Mutex::new(Progress { applied, membership, time_ms, horizon, stopped: None });
        let (marks, executor) = (Marks::default(), how.executor);
        Ok(Arc::new(StateDatabase { db, clock, keyspaces, state, sessions, progress, marks, executor, slot }))
    }

    /// The database. It is only to be read: a write by anybody but the state machine makes this
    /// replica another one than the others.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The directory of the database. That of another one has another name.
    pub fn directory(&self) -> &Path {
        self.slot.path()
    }

    /// The handles that [`Apply::open`] returned.
    pub fn keyspaces(&self) -> &A::Keyspaces {
        &self.keyspaces
    }

    /// The last entry that was applied, and the membership as of it.
    pub fn applied(&self) -> (Option<LogId>, StoredMembership) {
        let progress = self.progress.lock();
        (progress.applied, progress.membership.clone())
    }

    /// The time of the state in milliseconds since the Unix epoch: that of the newest command.
    pub fn time_ms(&self) -> u64 {
        self.progress.lock().time_ms
    }

    /// A transaction that reads the state after some entry, and the time of that state in
    /// milliseconds since the Unix epoch. It waits while an entry is applied. It is not to be
    /// committed.
    pub fn view(&self) -> (Transaction, u64) {
        let progress = self.progress.lock();
        (self.db.transaction(), progress.time_ms)
    }

    /// Fails if it applies nothing more: its state is not to be passed on.
    pub(crate) fn refuse_if_stopped(&self) -> Result<()> {
        self.progress.lock().stopped.as_ref().map_or(Ok(()), |why| Err(Error::Stopped { why: why.clone() }))
    }

    /// Whether its state was found to be another one than that of the others.
    pub(crate) fn has_diverged(&self) -> Result<bool> {
        Ok(self.state.get(STOPPED)?.is_some())
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// The hashes of the state after the entry of that index, which carried [`Request::Hash`].
    pub(crate) fn hashes(&self, index: u64) -> Result<Option<Vec<RangeHash>>> {
        self.marks.get(index)
    }

    /// Applies the entry, and makes what it wrote visible in one step.
    pub(crate) fn apply(self: &Arc<Self>, apply: &A, entry: &Entry) -> Result<Reply> {
        let mut progress = self.progress.lock();
        if let Some(why) = &progress.stopped {
            return Err(Error::Stopped { why: why.clone() });
        }
        let applied = self.apply_next(apply, &mut progress, entry);
        applied.inspect_err(|error| progress.stopped = Some(error.to_string()))
    }

    fn apply_next(self: &Arc<Self>, apply: &A, progress: &mut Progress, entry: &Entry) -> Result<Reply> {
        if progress.applied.is_some_and(|applied| applied.index() >= entry.index()) {
            return Err(Error::invalid(format!("entry {} was applied before", entry.index())));
        }
        let index = entry.index();
        let reply = match &entry.payload {
            EntryPayload::Blank => {
                self.commit(progress, entry, self.db.transaction())?;
                Reply::None
            }
            EntryPayload::Membership(membership) => {
                progress.membership = StoredMembership::new(Some(entry.log_id()), membership.clone());
                let mut transaction = self.db.transaction();
                transaction.put(&self.state, MEMBERSHIP, encode_membership(&progress.membership)?)?;
                self.commit(progress, entry, transaction)?;
                Reply::None
            }
            EntryPayload::Normal(command) => {
                self.set_time(progress, command.time_ms);
                let (transaction, reply) = self.apply_command(apply, command, progress.time_ms, index)?;
                match refusal(self.commit(progress, entry, transaction))? {
                    Ok(()) => reply,
                    // What the engine refuses at the commit it refuses on every replica.
                    Err(why) => {
                        let (transaction, reply) = self.refuse(command, why, progress.time_ms)?;
                        self.commit(progress, entry, transaction)?;
                        reply
                    }
                }
            }
        };
        progress.applied = Some(entry.log_id());
        if let EntryPayload::Normal(Command { request: Request::Hash, .. }) = &entry.payload {
            self.mark(index);
        }
        progress.horizon.count(&self.db, &self.sessions)?;
        Ok(reply)
    }

    /// Commits what the entry writes, with the position that the state has then.
    fn commit(&self, progress: &Progress, entry: &Entry, mut transaction: Transaction) -> esker::Result<()> {
        let mut applied = record();
        applied.extend_from_slice(&progress.time_ms.to_le_bytes());
        put_optional_log_id(&mut applied, Some(&entry.log_id()));
        transaction.put(&self.state, APPLIED, applied)?;
        #[cfg(test)]
        crate::planted::commit()?;
        transaction.commit()
    }

    /// Moves the time of the database; never back.
    fn set_time(&self, progress: &mut Progress, time_ms: u64) {
        if time_ms > progress.time_ms {
            progress.time_ms = time_ms;
            self.clock.set(time_ms);
        }
    }

    /// What the command writes, and the reply.
    fn apply_command(&self, apply: &A, command: &Command, time_ms: u64, index: u64) -> Result<(Transaction, Reply)> {
        match &command.request {
            Request::Apply(payload) => self.apply_payload(apply, payload, time_ms, index),
            Request::OpenSession => {
                let mut transaction = self.db.transaction();
                let reply = self.sessions.begin(&mut transaction, index, time_ms)?;
                Ok((transaction, reply))
            }
            Request::ApplyOnce { session, number, payload } => {
                let mut transaction = self.db.transaction();
                if let Seen::Reply(reply) = self.sessions.seen(&mut transaction, *session, *number)? {
                    return Ok((transaction, reply));
                }
                drop(transaction);
                let (mut transaction, reply) = self.apply_payload(apply, payload, time_ms, index)?;
                if self.sessions.keep(&mut transaction, (*session, *number), &reply, time_ms)? {
                    return Ok((transaction, reply));
                }
                drop(transaction);
                self.refuse(command, self.sessions.too_long(), time_ms)
            }
            Request::Hash => Ok((self.db.transaction(), Reply::None)),
            Request::Compare { index, hashes } => {
                self.compare(*index, hashes)?;
                Ok((self.db.transaction(), Reply::None))
            }
        }
    }

    /// What is written instead of a command that was refused, and the reply.
    fn refuse(&self, command: &Command, why: String, time_ms: u64) -> Result<(Transaction, Reply)> {
        let (mut transaction, mut reply) = (self.db.transaction(), Reply::Rejected(why));
        if let Request::ApplyOnce { session, number, .. } = &command.request {
            let request = (*session, *number);
            if !self.sessions.keep(&mut transaction, request, &reply, time_ms)? {
                // Merge operators write reasons, too, of any length.
                reply = Reply::Rejected(self.sessions.too_long());
                self.sessions.keep(&mut transaction, request, &reply, time_ms)?;
            }
        }
        Ok((transaction, reply))
    }

    fn apply_payload(&self, apply: &A, payload: &[u8], time_ms: u64, index: u64) -> Result<(Transaction, Reply)> {
        let mut transaction = self.db.transaction();
        let keyspaces = &self.keyspaces;
        match apply.apply(&mut Context { keyspaces, transaction: &mut transaction, time_ms, index }, payload) {
            Ok(answer) => Ok((transaction, Reply::Applied(answer))),
            // Another transaction, without what the payload wrote before it was refused.
            Err(Rejection::Refused(why)) => Ok((self.db.transaction(), Reply::Rejected(why))),
            Err(Rejection::Failed(error)) => Err(error.into()),
        }
    }

    /// Begins to hash the state as it is now.
    fn mark(self: &Arc<Self>, index: u64) {
        let (this, snapshot, sender) = (Arc::clone(self), self.db.snapshot(), self.marks.expect(index));
        let work = move || {
            let hashes = state_hash::hash(&this.db, &snapshot, STATE);
            // Nobody may want them any more.
            drop(sender.send(hashes));
        };
        match self.executor {
            Executor::InPlace => work(),
            executor => executor.start(work),
        }
    }

    /// Stops for good if the state after that entry was another one than it should be.
    fn compare(&self, index: u64, hashes: &[RangeHash]) -> Result<()> {
        let Some(here) = self.marks.get(index)? else { return Ok(()) };
        let Some(difference) = Difference::first(index, &here, hashes) else { return Ok(()) };
        let why = difference.to_string();
        self.state.put_with(STOPPED, why, &WriteOptions::new().sync(true))?;
        Err(Error::Diverged(Box::new(difference)))
    }
}

/// Tells a commit that was refused for what it holds, with the reason, from a database that failed.
fn refusal(result: esker::Result<()>) -> Result<std::result::Result<(), String>> {
    match result.map_err(Rejection::from) {
        Ok(()) => Ok(Ok(())),
        Err(Rejection::Refused(why)) => Ok(Err(why)),
        Err(Rejection::Failed(error)) => Err(error.into()),
    }
}

/// Makes the contents of a database the state as of that entry, durably.
pub(crate) fn begin_with(db: &Db, last: &LogId, membership: &StoredMembership) -> Result<()> {
    let state = db.keyspace(STATE, KeyspaceOptions::default())?;
    if let Some(why) = state.get(STOPPED)? {
        return Err(Error::Stopped { why: String::from_utf8_lossy(&why).into_owned() });
    }
    // The time of an earlier cluster: what has expired stays so.
    let (time_ms, _) = state.get(APPLIED)?.map_or(Ok((0, None)), |bytes| decode_applied(&bytes))?;
    let mut batch = db.batch();
    let mut applied = record();
    applied.extend_from_slice(&time_ms.to_le_bytes());
    put_optional_log_id(&mut applied, Some(last));
    batch.put(&state, APPLIED, applied)?;
    batch.put(&state, MEMBERSHIP, encode_membership(membership)?)?;
    if db.keyspaces().iter().any(|name| name == crate::sessions::KEYSPACE) {
        batch.delete_range(&db.existing_keyspace(crate::sessions::KEYSPACE)?, ..)?;
    }
    Ok(batch.commit_with(&WriteOptions::new().sync(true))?)
}

/// The position in a database that is only looked at, as a snapshot is.
pub(crate) fn position(db: &Db) -> Result<(Option<LogId>, StoredMembership)> {
    let state = db.existing_keyspace(STATE)?;
    let applied = state.get(APPLIED)?.map(|bytes| decode_applied(&bytes)).transpose()?;
    let membership = state.get(MEMBERSHIP)?.map(|bytes| decode_membership(&bytes)).transpose()?;
    Ok((applied.and_then(|(_, applied)| applied), membership.unwrap_or_default()))
}

fn decode_applied(bytes: &[u8]) -> Result<(u64, Option<LogId>)> {
    let mut reader = Reader::new("the applied position", bytes)?;
    let applied = (reader.u64()?, reader.optional_log_id()?);
    reader.end()?;
    Ok(applied)
}
