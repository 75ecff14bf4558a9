//! The state machine of a replica: the database in force, its snapshot, and what arrives of one.

use crate::apply::Apply;
use crate::database::{DatabaseOptions, StateDatabase, position};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::incoming::Incoming;
use crate::log_store::LogStore;
use crate::manifest::{SnapshotManifest, is_immutable};
use crate::range_hash::RangeHash;
use crate::sessions::{Limits, MOST_RECORD_BYTES};
use crate::slots::{Slots, copy, create_directory, link_or_copy};
use crate::snapshot_files::SnapshotFiles;
use crate::state_file::{self, Contents};
use crate::transfer::{TransferReply, TransferRequest};
use crate::types::{Entry, Reply};
use esker::env::{Env, Lock, os::OsEnv};
use esker::{Db, Options};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a state machine is opened.
///
/// ```
/// let options = esker_raft::StateOptions::default().executor(esker_raft::Executor::InPlace);
/// ```
#[derive(Clone)]
pub struct StateOptions {
    env: Arc<dyn Env>,
    database: DatabaseOptions,
}

impl Default for StateOptions {
    fn default() -> StateOptions {
        let executor = Executor::default();
        let kept_for = Duration::from_secs(3600);
        let sessions = Limits { kept_for, most: 100_000, most_record_bytes: MOST_RECORD_BYTES };
        let database = DatabaseOptions { options: Options::default(), sessions, executor };
        StateOptions { env: Arc::new(OsEnv::new()), database }
    }
}

impl StateOptions {
    /// The options of the databases. Their clock and their environment are replaced.
    ///
    /// Default: those of the engine. Trade-off: while a snapshot is installed two databases are
    /// open, with a memory budget each.
    pub fn database(mut self, options: Options) -> StateOptions {
        self.database.options = options;
        self
    }

    /// The environment of the databases, and of everything beside them.
    ///
    /// Default: the operating system. Trade-off: a simulated one loses power where a test says so.
    pub fn env(mut self, env: Arc<dyn Env>) -> StateOptions {
        self.env = env;
        self
    }

    /// How long a session is kept after its newest request, by the time of entries; the same on
    /// every replica. A repeat of a request renews nothing.
    ///
    /// Default: an hour. Trade-off: a request can be repeated for as long; each session takes the
    /// space of its last reply.
    pub fn sessions_kept_for(mut self, duration: Duration) -> StateOptions {
        self.database.sessions.kept_for = duration;
        self
    }

    /// How many sessions are kept, at least 1; the same on every replica. One more than that ends
    /// those whose newest requests are the oldest, until seven eighths are left.
    ///
    /// Default: 100,000. Trade-off: each takes the space of its last reply, and a client whose
    /// session has ended does not learn what came of a request that it repeats.
    pub fn sessions_at_most(mut self, count: u64) -> StateOptions {
        self.database.sessions.most = count.max(1);
        self
    }

    /// The longest record of a session, in bytes.
    #[cfg(test)]
    pub(crate) fn most_session_bytes(mut self, bytes: usize) -> StateOptions {
        self.database.sessions.most_record_bytes = bytes;
        self
    }

    /// The environment, and how databases are opened.
    pub(crate) fn parts(self) -> (Arc<dyn Env>, DatabaseOptions) {
        (self.env, self.database)
    }

    /// Of these parts.
    pub(crate) fn of(env: Arc<dyn Env>, database: DatabaseOptions) -> StateOptions {
        StateOptions { env, database }
    }

    /// Where the database is called from; see [`Executor`].
    pub fn executor(mut self, executor: Executor) -> StateOptions {
        self.database.executor = executor;
        self
    }
}

/// The state machine of a replica, in a directory of its own. Clones are the same one.
///
/// ```
/// use esker_raft::{KeyValue, StateMachine, StateOptions};
/// let env = std::sync::Arc::new(esker::env::mem::MemEnv::new());
/// let apply = KeyValue::new().keyspace("names", Default::default());
/// let machine = StateMachine::open("state", apply, StateOptions::default().env(env))?;
/// assert!(machine.database().applied().0.is_none());
/// # Ok::<(), esker_raft::Error>(())
/// ```
pub struct StateMachine<A: Apply> {
    inner: Arc<Inner<A>>,
}

impl<A: Apply> Clone for StateMachine<A> {
    fn clone(&self) -> StateMachine<A> {
        StateMachine { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<A: Apply> {
    apply: A,
    how: DatabaseOptions,
    slots: Arc<Slots>,
    parts: Mutex<Parts<A>>,
    incoming: Mutex<Option<Incoming>>,
    /// One snapshot is built or installed at a time.
    changing: Mutex<()>,
    _lock: Box<dyn Lock>,
}

/// What is in force, as `STATE` says.
struct Parts<A: Apply> {
    database: Arc<StateDatabase<A>>,
    snapshot: Option<SnapshotFiles>,
    contents: Contents,
    /// Set when it is unknown which `STATE` is in force.
    broken: Option<String>,
}

impl<A: Apply> StateMachine<A> {
    /// Opens the state machine in `directory`, or begins one. A snapshot of which a part had
    /// arrived is received on from there.
    ///
    /// # Errors
    /// `Database` with `Locked` if it is open already, and as [`Db::open`]; `Damaged`; `Stopped` if
    /// the replica had diverged from the others.
    pub fn open(directory: impl AsRef<Path>, apply: A, options: StateOptions) -> Result<StateMachine<A>> {
        let (directory, env) = (directory.as_ref(), options.env);
        create_directory(&*env, directory)?;
        let lock = env.lock(&directory.join("LOCK"))?;
        let mut how = options.database;
        how.options = how.options.env(Arc::clone(&env));
        let slots = Slots::new(Arc::clone(&env), directory);
        let found = state_file::read(&*env, directory)?;
        let is_new = found.is_none();
        let mut contents = found.unwrap_or_default();
        let slot = if is_new { slots.allocate()? } else { slots.claim(contents.database)? };
        contents.database = slot.number();
        // An empty database in the place of one that is gone would be a state without its entries.
        let database = StateDatabase::open(&apply, slot, &how.only_existing(!is_new))?;
        if is_new {
            state_file::write(&*env, directory, &contents)?;
        }
        let claimed = |part: &Option<(u32, SnapshotManifest)>| match part {
            None => Ok(None),
            Some((number, manifest)) => slots.claim(*number).map(|slot| Some((slot, manifest.clone()))),
        };
        let snapshot = claimed(&contents.snapshot)?;
        let snapshot = snapshot.map(|(slot, manifest)| SnapshotFiles::new(Arc::clone(&env), slot, manifest));
        let incoming = claimed(&contents.incoming)?;
        let incoming =
            incoming.map(|(slot, manifest)| Incoming::begin(Arc::clone(&env), slot, manifest)).transpose()?;
        slots.empty_free()?;
        let parts = Mutex::new(Parts { database, snapshot, contents, broken: None });
        let (incoming, changing) = (Mutex::new(incoming), Mutex::default());
        Ok(StateMachine { inner: Arc::new(Inner { apply, how, slots, parts, incoming, changing, _lock: lock }) })
    }

    /// Makes the log go on where the state is. A program calls this when it has opened both, before
    /// it gives them to `openraft::Raft::new`, which refuses to start without where it matters.
    ///
    /// A power loss may leave a state that is ahead of the log: a replica applies what a majority
    /// of the others has, before its own log is durable. Then the state gets a snapshot, as the log
    /// is purged up to it, and the log gives up entries that were never committed and are still
    /// where the state has other ones.
    ///
    /// # Errors
    /// `Database`, where the log cannot be read or written, or the snapshot cannot be made.
    pub fn reconcile(&self, log: &LogStore) -> Result<()> {
        let Some(applied) = self.database().applied().0 else { return Ok(()) };
        if !log.contradicts(applied)? {
            return Ok(());
        }
        // Before the log gives anything up: what it lacks then has to be in a snapshot.
        let snapshot = self.snapshot().map(|snapshot| snapshot.manifest().meta()).transpose()?;
        if snapshot.and_then(|meta| meta.last_log_id) < Some(applied) {
            self.build()?;
        }
        log.give_way_to(applied).map(drop)
    }

    /// The database in force. The installation of a snapshot puts another one in its place; who
    /// holds this one reads on in it.
    pub fn database(&self) -> Arc<StateDatabase<A>> {
        Arc::clone(&self.inner.parts.lock().database)
    }

    /// The newest snapshot, if there is one.
    pub fn snapshot(&self) -> Option<SnapshotFiles> {
        self.inner.parts.lock().snapshot.clone()
    }

    /// The hashes of the state after the entry of that index, which carried
    /// [`Request::Hash`](crate::Request::Hash); waits until they are computed. Nothing if this
    /// replica did not apply that entry since it was opened, or has hashed four states since.
    ///
    /// # Errors
    /// `Database`, where the state cannot be read.
    pub fn hashes(&self, index: u64) -> Result<Option<Vec<RangeHash>>> {
        self.database().hashes(index)
    }

    /// Whether the state was found to be another one than that of the other replicas: this replica
    /// has stopped for good, and does not open again.
    ///
    /// # Errors
    /// `Database`, where that cannot be read.
    pub fn has_diverged(&self) -> Result<bool> {
        self.database().has_diverged()
    }

    pub(crate) fn executor(&self) -> Executor {
        self.inner.how.executor
    }

    /// Applies the entry.
    pub(crate) fn apply(&self, entry: &Entry) -> Result<Reply> {
        self.database().apply(&self.inner.apply, entry)
    }

    /// Makes a snapshot of the state, and the newest one of it. Its effort is that of a flush, and
    /// of reading the files that the snapshot before it did not have, for their hashes.
    pub(crate) fn build(&self) -> Result<SnapshotFiles> {
        let inner = &*self.inner;
        let _alone = inner.changing.lock();
        let (database, before) = {
            let parts = inner.parts.lock();
            (Arc::clone(&parts.database), parts.snapshot.clone())
        };
        database.refuse_if_stopped()?;
        let slot = inner.slots.allocate()?;
        // The log is purged up to the snapshot: an older state could not be brought up to date.
        database.db().sync()?;
        database.db().checkpoint(slot.path())?;
        let at = {
            let db = Db::open_read_only(slot.path(), inner.how.options.clone())?;
            position(&db)?
        };
        let known = before.as_ref().map_or(&[][..], |before| before.manifest().files());
        let env = inner.slots.env();
        let manifest = SnapshotManifest::of(&**env, slot.path(), (at.0, &at.1), known)?;
        env.sync_dir(slot.path())?;
        // It may have found meanwhile that the state is not that of the others.
        database.refuse_if_stopped()?;
        let files = SnapshotFiles::new(Arc::clone(env), slot, manifest);
        let mut parts = inner.parts.lock();
        let mut contents = parts.contents.clone();
        contents.snapshot = Some((files.slot().number(), files.manifest().clone()));
        inner.switch(&mut parts, contents)?;
        parts.snapshot = Some(files.clone());
        drop(parts);
        drop(before);
        inner.slots.empty_free()?;
        Ok(files)
    }

    /// Puts the state of the snapshot in the place of the database, in one step: a crash leaves the
    /// one or the other, whole.
    pub(crate) fn install(&self, files: &SnapshotFiles) -> Result<()> {
        let inner = &*self.inner;
        let _alone = inner.changing.lock();
        self.database().refuse_if_stopped()?;
        let (env, last) = (inner.slots.env(), files.manifest().last_log_id());
        if last < self.database().applied().0 {
            return Err(Error::invalid("the snapshot is older than the state; send a newer one"));
        }
        let files = if files.slot().is_of(&inner.slots) { files.clone() } else { inner.import(files)? };
        let slot = inner.slots.allocate()?;
        for file in files.manifest().files() {
            let (from, to) = (files.slot().path().join(&file.name), slot.path().join(&file.name));
            if is_immutable(&file.name) {
                link_or_copy(&**env, &from, &to)?;
            } else {
                copy(&**env, &from, &**env, &to)?;
            }
        }
        env.sync_dir(slot.path())?;
        let database = StateDatabase::open(&inner.apply, slot, &inner.how.only_existing(true))?;
        if database.applied().0 != last {
            return Err(Error::damaged("the snapshot", "its database has another position than its manifest"));
        }
        let mut incoming = inner.incoming.lock();
        let mut parts = inner.parts.lock();
        let mut contents = parts.contents.clone();
        contents.database = database.slot().number();
        contents.snapshot = Some((files.slot().number(), files.manifest().clone()));
        if contents.incoming.as_ref().is_some_and(|(number, _)| *number == files.slot().number()) {
            contents.incoming = None;
            *incoming = None;
        }
        inner.switch(&mut parts, contents)?;
        let old = (std::mem::replace(&mut parts.database, database), parts.snapshot.replace(files));
        drop((parts, incoming));
        drop(old);
        inner.slots.empty_free()
    }

    /// Takes a message of a snapshot that another replica sends, and answers it. It writes to the
    /// device: in an asynchronous program it belongs where that holds up nothing else.
    ///
    /// # Errors
    /// `Damaged` for a manifest that is none, and for a file that has not arrived as it was sent:
    /// it is to be sent again; `Database` where the device fails.
    pub fn receive(&self, request: TransferRequest) -> Result<TransferReply> {
        let inner = &*self.inner;
        let mut incoming = inner.incoming.lock();
        match request {
            TransferRequest::Begin { manifest } => {
                match &mut *incoming {
                    Some(same) if *same.manifest() == manifest => same.go_on()?,
                    _ => inner.begin_incoming(&mut incoming, manifest)?,
                }
                Ok(incoming.as_ref().map_or(TransferReply::Unknown, Incoming::state))
            }
            TransferRequest::Piece { snapshot, place, bytes } => match &mut *incoming {
                Some(incoming) if incoming.identity() == snapshot => {
                    incoming.take(place, &bytes)?;
                    Ok(incoming.state())
                }
                _ => Ok(TransferReply::Unknown),
            },
        }
    }

    /// The snapshot that has arrived whole, to be given to openraft; nothing if none has.
    pub fn received(&self) -> Option<SnapshotFiles> {
        let incoming = self.inner.incoming.lock();
        let incoming = incoming.as_ref().filter(|incoming| incoming.is_complete())?;
        let (env, slot) = (Arc::clone(self.inner.slots.env()), Arc::clone(incoming.slot()));
        Some(SnapshotFiles::new(env, slot, incoming.manifest().clone()))
    }
}

impl<A: Apply> Inner<A> {
    /// Writes `STATE` anew. After a failure it is unknown which one is in force, and every slot of
    /// both has to stay as it is: nothing more is changed until the next open.
    fn switch(&self, parts: &mut Parts<A>, mut contents: Contents) -> Result<()> {
        // The slot of what had arrived is free after an error of receiving, and may be used again.
        let is_used = |slot| slot == contents.database || contents.snapshot.as_ref().is_some_and(|at| at.0 == slot);
        contents.incoming = contents.incoming.take().filter(|(slot, _)| !is_used(*slot));
        if let Some(why) = &parts.broken {
            return Err(Error::Stopped { why: why.clone() });
        }
        let written = state_file::write(&**self.slots.env(), self.slots.root(), &contents);
        if let Err(error) = &written {
            parts.broken = Some(error.to_string());
            self.slots.keep_all();
        }
        written?;
        parts.contents = contents;
        Ok(())
    }

    /// Begins to receive that snapshot, in the place of the one before.
    fn begin_incoming(&self, incoming: &mut Option<Incoming>, manifest: SnapshotManifest) -> Result<()> {
        manifest.check()?;
        let slot = match &*incoming {
            // Files that both snapshots have need not come again.
            Some(before) if Arc::strong_count(before.slot()) == 1 => Arc::clone(before.slot()),
            // The files of one that is being installed stay as they are.
            _ => self.slots.allocate()?,
        };
        // Some of its files go now.
        *incoming = None;
        // `STATE` names the slot with the manifest after that: a failure before leaves a free slot,
        // or one with a part of the snapshot that `STATE` says.
        let begun = Incoming::begin(Arc::clone(self.slots.env()), slot, manifest)?;
        let mut parts = self.parts.lock();
        let mut contents = parts.contents.clone();
        contents.incoming = Some((begun.slot().number(), begun.manifest().clone()));
        self.switch(&mut parts, contents)?;
        *incoming = Some(begun);
        Ok(())
    }

    /// Copies a snapshot of another directory, as one that was received.
    fn import(&self, files: &SnapshotFiles) -> Result<SnapshotFiles> {
        let (env, slot) = (self.slots.env(), self.slots.allocate()?);
        for file in files.manifest().files() {
            let (from, to) = (files.slot().path().join(&file.name), slot.path().join(&file.name));
            copy(files.env(), &from, &**env, &to)?;
            let found = crate::manifest::hash_of(&**env, &to)?;
            if found != file.hash {
                return Err(Error::damaged(file.name.clone(), "the copy has another hash than the manifest says"));
            }
        }
        env.sync_dir(slot.path())?;
        Ok(SnapshotFiles::new(Arc::clone(env), slot, files.manifest().clone()))
    }
}
