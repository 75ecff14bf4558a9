//! The log of a replica: entries, vote, and how far it is committed and purged.
//!
//! Everything is in two keyspaces of one database. `raft.log` has an entry for each index, and
//! `raft.meta` the records `vote`, `committed`, `purged` and `node`. Since one log of the database
//! has all of these writes in their order, what a power loss leaves is what the replica had at some
//! moment: no record is newer than one that was written before it.
//!
//! A leader that restarts must not go on as the leader of its term. After a power loss its
//! committed position may be older than what it has told clients, and it could answer a read from a
//! state without their writes, until an entry of a new term is committed. So a vote for the replica
//! itself that an open finds is shown as not committed, until the replica votes again. It is then
//! elected anew. What is stored stays as it is.

use crate::encoding::{
    decode_entry, decode_node, decode_position, decode_vote, encode_entry, encode_node, encode_position, encode_vote,
    log_index, log_key,
};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::shared_sync::SharedSync;
use crate::types::{Entry, LeaderId, LogId, TypeConfig, Vote};
use esker::{Batch, Db, Keyspace, KeyspaceOptions, StallPolicy, WriteOptions};
use futures_util::{Stream, stream};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The keyspace of the entries.
const LOG: &str = "raft.log";
/// The keyspace of the records beside them.
const META: &str = "raft.meta";
const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";
const NODE: &str = "node";

/// The most bytes of entries that are read at a time, for replication and to be applied, but for a
/// single longer entry.
pub(crate) const READ_BYTES: usize = 4 << 20;

/// Entries are written in batches of about so many bytes: the engine takes no batch of more than
/// 4 GiB, and a batch is in memory a second time.
const BATCH_BYTES: usize = 64 << 20;

/// The log of a replica, in a database of its own. Clones are the same log.
///
/// An append is acknowledged when it is durable; one sync acknowledges all appends that wait for
/// it. A vote is durable when [`RaftLogStorage::save_vote`] returns. The committed position is
/// durable with the next sync of either, never ahead of the entries that it covers. A purge is one
/// delete of a range of keys.
///
/// ```
/// use esker_raft::{Executor, LogStore};
/// let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// let log = LogStore::open(&esker::Db::open("log", options)?, 1, Executor::BlockingThreads)?;
/// assert_eq!(log.stats().entries_appended, 0);
/// # Ok::<(), esker_raft::Error>(())
/// ```
#[derive(Clone)]
pub struct LogStore {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    log: Keyspace,
    meta: Keyspace,
    executor: Executor,
    sync: Arc<SharedSync>,
    node: u64,
    batch_bytes: usize,
    /// Whether the replica has voted since the log was opened.
    has_voted: AtomicBool,
    appends: AtomicU64,
    entries: AtomicU64,
}

/// What a log has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Calls that appended.
    pub appends: u64,
    /// Entries that they appended.
    pub entries_appended: u64,
    /// Syncs that acknowledged them.
    pub syncs: u64,
}

impl LogStore {
    /// Opens the log of that node in `db`, or begins one. No other log may be in the same database.
    ///
    /// # Errors
    /// `InvalidArgument` if it is the log of another node; `Database`, as when a keyspace cannot be
    /// made on a full disk.
    pub fn open(db: &Db, node: u64, executor: Executor) -> Result<LogStore> {
        LogStore::open_with(db, node, executor, BATCH_BYTES)
    }

    /// The same, with another limit of batches.
    pub(crate) fn open_with(db: &Db, node: u64, executor: Executor, batch_bytes: usize) -> Result<LogStore> {
        let log = db.keyspace(LOG, KeyspaceOptions::default())?;
        let meta = db.keyspace(META, KeyspaceOptions::default())?;
        match meta.get(NODE)? {
            None => meta.put(NODE, encode_node(node))?,
            Some(bytes) => {
                let owner = decode_node(&bytes)?;
                if owner != node {
                    return Err(Error::invalid(format!("this is the log of node {owner}, not of node {node}")));
                }
            }
        }
        let sync = Arc::new(SharedSync::new(db.clone(), executor));
        let (appends, entries, has_voted) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let db = db.clone();
        let inner = Inner { db, log, meta, executor, sync, node, batch_bytes, has_voted, appends, entries };
        Ok(LogStore { inner: Arc::new(inner) })
    }

    /// Whether the log lacks an entry that was applied: it ends before it, or has another entry in
    /// its place, which no majority ever had. A log that was purged from there on lacks nothing.
    ///
    /// The order of positions does not tell: a leader has entries of earlier terms than its own,
    /// and they may replace an entry of a later one.
    pub(crate) fn contradicts(&self, applied: LogId) -> Result<bool> {
        let found = self.inner.log.get(log_key(applied.index()))?;
        if let Some(bytes) = found {
            return Ok(decode_entry(&bytes)?.log_id() != applied);
        }
        Ok(self.inner.state()?.last_log_id.is_none_or(|last| last.index() < applied.index()))
    }

    /// Drops the entries from that position on if the log lacks the one there, and those before it
    /// if one of them has a later term: the state has what a majority has instead. Whether the log
    /// lacks that entry.
    pub(crate) fn give_way_to(&self, applied: LogId) -> Result<bool> {
        if !self.contradicts(applied)? {
            return Ok(false);
        }
        let inner = &*self.inner;
        let mut batch = inner.db.batch();
        batch.delete_range(&inner.log, log_key(applied.index())..)?;
        let before = inner.db.snapshot().range(&inner.log, ..log_key(applied.index())).next_back();
        let before = before.transpose()?.map(|(_, bytes)| decode_entry(&bytes)).transpose()?;
        if before.is_some_and(|entry| entry.log_id() > applied) {
            batch.delete_range(&inner.log, ..)?;
            batch.put(&inner.meta, PURGED, encode_position(&applied))?;
        }
        batch.commit_with(&WriteOptions::new().sync(true))?;
        Ok(true)
    }

    /// The log with faults planted in it.
    #[cfg(test)]
    pub(crate) fn planted(&self) -> &crate::planted::Planted {
        &self.inner.sync.planted
    }

    /// Makes an empty log one that has let the entries go up to `last`, which the state has: see
    /// [`StateMachine::import`](crate::StateMachine::import).
    ///
    /// # Errors
    /// `InvalidArgument` if the log has entries or a vote; `Database`.
    pub fn begin_behind(&self, last: LogId) -> Result<()> {
        let inner = &*self.inner;
        if inner.state()?.last_log_id.is_some() || inner.vote()?.is_some() {
            return Err(Error::invalid("the log is not empty; import into a new directory"));
        }
        let LeaderId { term, node_id } = *last.committed_leader_id();
        let mut batch = inner.db.batch();
        batch.put(&inner.meta, PURGED, encode_position(&last))?;
        batch.put(&inner.meta, VOTE, encode_vote(&Vote::new(term, node_id)))?;
        Ok(batch.commit_with(&WriteOptions::new().sync(true))?)
    }

    /// What it has done since it was opened.
    pub fn stats(&self) -> LogStats {
        LogStats {
            appends: self.inner.appends.load(Ordering::Relaxed),
            entries_appended: self.inner.entries.load(Ordering::Relaxed),
            syncs: self.inner.sync.syncs(),
        }
    }
}

impl Inner {
    fn state(&self) -> Result<LogState<TypeConfig>> {
        let snapshot = self.db.snapshot();
        let purged = snapshot.get(&self.meta, PURGED)?.map(|bytes| decode_position(&bytes)).transpose()?;
        let last = snapshot.last(&self.log)?.map(|(_, bytes)| decode_entry(&bytes)).transpose()?;
        let last_log_id = last.map(|entry| entry.log_id()).or(purged);
        Ok(LogState { last_purged_log_id: purged, last_log_id })
    }

    /// The entries of the range, as of one moment, up to `most_bytes`, and at least one.
    fn entries(&self, range: (Bound<u64>, Bound<u64>), most_bytes: usize) -> Result<Vec<Entry>> {
        let Some((start, end)) = inclusive(range) else { return Ok(Vec::new()) };
        let snapshot = self.db.snapshot();
        let purged = snapshot.get(&self.meta, PURGED)?.map(|bytes| decode_position(&bytes)).transpose()?;
        let mut next = purged.map_or(start, |purged| start.max(purged.index().saturating_add(1)));
        let mut entries = Vec::new();
        let mut bytes = 0;
        for pair in snapshot.range(&self.log, log_key(start)..=log_key(end)) {
            let (key, value) = pair?;
            let index = log_index(&key)?;
            if index != next {
                // A log that was never purged may begin at any index, and so behind the range's.
                let first = if purged.is_none() { snapshot.first(&self.log)? } else { None };
                if first.is_none_or(|(first, _)| first != key) {
                    return Err(Error::Hole { missing: next });
                }
            }
            let entry = decode_entry(&value)?;
            if entry.index() != index {
                let what = format!("the record of entry {index} holds entry {}", entry.index());
                return Err(Error::damaged("the log", what));
            }
            bytes += value.len();
            if bytes > most_bytes && !entries.is_empty() {
                break;
            }
            entries.push(entry);
            next = index.saturating_add(1);
        }
        Ok(entries)
    }

    fn vote(&self) -> Result<Option<Vote>> {
        let stored = self.meta.get(VOTE)?.map(|bytes| decode_vote(&bytes)).transpose()?;
        Ok(stored.map(|vote| {
            let LeaderId { term, node_id } = *vote.leader_id();
            let is_of_before = node_id == self.node && !self.has_voted.load(Ordering::Relaxed);
            #[cfg(test)]
            let is_of_before = is_of_before && !self.sync.planted.restores_leaders();
            if is_of_before { Vote::new(term, node_id) } else { vote }
        }))
    }

    fn position(&self, name: &str) -> Result<Option<LogId>> {
        self.meta.get(name)?.map(|bytes| decode_position(&bytes)).transpose()
    }
}

/// Reads a range piece by piece: after a start most of the log may be applied in one go.
struct Pieces {
    log: Arc<Inner>,
    /// What is left of the range behind the piece.
    left: Option<(u64, u64)>,
    /// The piece; nothing before the first one.
    piece: Option<std::vec::IntoIter<Entry>>,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Entry>> {
        if let Some(entry) = self.piece.as_mut().and_then(Iterator::next) {
            return Ok(Some(entry));
        }
        let Some((start, end)) = self.left.take() else { return Ok(None) };
        let is_first = self.piece.is_none();
        if !is_first {
            // Who collects what is ready goes on with the piece before, and releases it.
            tokio::task::yield_now().await;
        }
        let entries = self.log.entries((Bound::Included(start), Bound::Included(end)), READ_BYTES)?;
        // Only the beginning of the range may have been purged.
        if !is_first && entries.first().is_some_and(|entry| entry.index() != start) {
            return Err(Error::Hole { missing: start });
        }
        let behind = entries.last().and_then(|last| last.index().checked_add(1));
        self.left = behind.filter(|behind| *behind <= end).map(|behind| (behind, end));
        Ok(self.piece.insert(entries.into_iter()).next())
    }
}

/// The first and the last index of a range that has one.
fn inclusive((start, end): (Bound<u64>, Bound<u64>)) -> Option<(u64, u64)> {
    let start = match start {
        Bound::Included(start) => start,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(end) => end,
        Bound::Excluded(behind) => behind.checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (start <= end).then_some((start, end))
}

/// Commits without a sync: at once where the engine takes the write at once, and otherwise where
/// waiting holds up nobody.
async fn commit(executor: Executor, mut batch: Batch) -> Result<()> {
    match batch.commit_and_clear(&WriteOptions::new().stall(StallPolicy::Fail)) {
        Err(esker::Error::WriteStalled { .. }) => executor.run(move || Ok(batch.commit()?)).await,
        other => Ok(other?),
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        Ok(self.inner.entries((range.start_bound().cloned(), range.end_bound().cloned()), usize::MAX)?)
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let left = inclusive((range.start_bound().cloned(), range.end_bound().cloned()));
        let pieces = Pieces { log: Arc::clone(&self.inner), left, piece: None };
        stream::try_unfold(pieces, |mut pieces| async move {
            let entry = pieces.next().await?;
            Ok::<_, io::Error>(entry.map(|entry| (entry, pieces)))
        })
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.inner.vote()?)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        Ok(self.inner.entries((Bound::Included(start), Bound::Excluded(end)), READ_BYTES)?)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        Ok(self.inner.state()?)
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let (inner, bytes) = (Arc::clone(&self.inner), encode_vote(vote));
        #[cfg(test)]
        let synced = !self.planted().drops_the_sync_of_votes();
        #[cfg(not(test))]
        let synced = true;
        let write = move || Ok(inner.meta.put_with(VOTE, bytes, &WriteOptions::new().sync(synced))?);
        self.inner.executor.run(write).await?;
        self.inner.has_voted.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let mut batch = self.inner.db.batch();
        let added = match committed {
            Some(id) => batch.put(&self.inner.meta, COMMITTED, encode_position(&id)),
            None => batch.delete(&self.inner.meta, COMMITTED),
        };
        added.map_err(Error::from)?;
        Ok(commit(self.inner.executor, batch).await?)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.inner.position(COMMITTED)?)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let inner = &*self.inner;
        let (mut batch, mut bytes, mut count) = (inner.db.batch(), 0, 0);
        // In the order of the indexes: what a power loss leaves of an append is its beginning.
        for entry in entries {
            let encoded = encode_entry(&entry)?;
            if bytes > 0 && encoded.len() > inner.batch_bytes.saturating_sub(bytes) {
                commit(inner.executor, std::mem::replace(&mut batch, inner.db.batch())).await?;
                bytes = 0;
            }
            bytes += encoded.len();
            count += 1;
            batch.put(&inner.log, log_key(entry.index()), encoded).map_err(Error::from)?;
        }
        commit(inner.executor, batch).await?;
        self.inner.appends.fetch_add(1, Ordering::Relaxed);
        self.inner.entries.fetch_add(count, Ordering::Relaxed);
        self.inner.sync.then(callback);
        Ok(())
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> io::Result<()> {
        let mut batch = self.inner.db.batch();
        let deleted = match last_log_id {
            Some(last) => {
                let behind = (Bound::Excluded(log_key(last.index())), Bound::Unbounded);
                batch.delete_range(&self.inner.log, behind)
            }
            None => batch.delete_range(&self.inner.log, ..),
        };
        deleted.map_err(Error::from)?;
        Ok(commit(self.inner.executor, batch).await?)
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let mut batch = self.inner.db.batch();
        let deleted = batch.delete_range(&self.inner.log, ..=log_key(log_id.index()));
        let marked = deleted.and_then(|()| batch.put(&self.inner.meta, PURGED, encode_position(&log_id)));
        marked.map_err(Error::from)?;
        Ok(commit(self.inner.executor, batch).await?)
    }
}
