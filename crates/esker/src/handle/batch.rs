//! Several operations as one.

use super::keyspace::{Keyspace, check, check_life};
use super::shared::Shared;
use crate::base::batch::{
    ExpiryChange, Operation, RangeDelete, encode, encode_expiry_change, encode_range, set_expiry,
};
use crate::base::expiry::{Life, expiry_after, expiry_at, life_ms};
use crate::base::key::{Kind, MAX_KEY_BYTES, NEVER};
use crate::base::key_range::KeyRange;
use crate::blob::Appended;
use crate::db::read::blob_value;
use crate::db::state::latencies::Timed;
use crate::db::write::batch_size::{
    ArenaReservation, add_range_reservation, add_reservation, add_reservation_bytes, start_record,
};
use crate::db::write::commit::{Content, Precondition, Unconditional, commit_if, commit_merges_if};
use crate::db::write::merge_expiry::bytes_to_copy;
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Operations, on any keyspaces of one database, that take effect together or not at all: for
/// readers, for snapshots, and across a crash.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-batch-{}", std::process::id()));
/// # let db = esker::Db::open(&directory, Default::default())?;
/// let users = db.keyspace("users", Default::default())?;
/// let emails = db.keyspace("emails", Default::default())?;
/// let mut batch = db.batch();
/// batch.put(&users, "7", "ada")?;
/// batch.put(&emails, "ada@example.org", "7")?;
/// batch.commit()?;
/// # assert_eq!(emails.get("ada@example.org")?.as_deref(), Some(&b"7"[..]));
/// # drop((users, emails, db));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    shared: Arc<Shared>,
    record: Vec<u8>,
    needs: Vec<ArenaReservation>,
    count: u64,
    /// Where in the record expiries are that count from the commit, and how many milliseconds after
    /// it they are.
    relative: Vec<(usize, u64)>,
    /// Among the operations are merges and changes of expiries, whose effect depends on what they
    /// meet.
    is_unresolved: bool,
    /// The large values, which are in blob files already: kept there by this.
    large: Vec<Appended>,
}

/// Without keys and values, which may be large or secret.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, bytes) = (self.count, self.record.len());
        f.debug_struct("Batch").field("operations", &operations).field("bytes", &bytes).finish_non_exhaustive()
    }
}

/// Where a delete of the range starts and ends, as the keyspace stores keys; `None` if no key is in
/// it.
pub(super) fn tombstone_bounds(keyspace: &Keyspace, range: &impl KeyRange) -> Option<(Vec<u8>, Vec<u8>)> {
    let (lower, upper) = keyspace.stored_bounds(range);
    keyspace.inner.order.tombstone_bounds(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
}

impl Batch {
    pub(super) fn new(shared: Arc<Shared>) -> Batch {
        let mut record = Vec::new();
        start_record(&mut record);
        let (needs, relative, large) = (Vec::new(), Vec::new(), Vec::new());
        Batch { shared, record, needs, count: 0, relative, is_unresolved: false, large }
    }

    fn add(&mut self, keyspace: &Keyspace, kind: Kind, key: &[u8], value: &[u8], life: Life) -> Result<()> {
        self.check_keyspace(keyspace)?;
        let key = &*keyspace.stored(key);
        check(&keyspace.inner, kind, key, value)?;
        check_life(&keyspace.inner, life)?;
        let ttl = keyspace.inner.ttl();
        // As if written at the beginning of time: then the expiry is what is to be added to the
        // time of the commit.
        let expiry_ms = match (kind, life) {
            (Kind::Delete, _) | (Kind::Merge, Life::Default) => NEVER,
            _ => ttl.expiry_ms(life, 0),
        };
        if blob_value::is_large(&self.shared.inner, kind, value) {
            let value = blob_value::put_blob(&self.shared.inner, value)?;
            self.add_checked(keyspace, Kind::PutBlob, expiry_ms, key, &value.reference.encode(), life);
            self.large.push(value);
        } else {
            self.add_checked(keyspace, kind, expiry_ms, key, value, life);
        }
        Ok(())
    }

    #[inline]
    fn add_checked(&mut self, keyspace: &Keyspace, kind: Kind, expiry_ms: u64, key: &[u8], value: &[u8], life: Life) {
        let operation = Operation { keyspace: keyspace.inner.id, kind, expiry_ms, key, value };
        let place = encode(&mut self.record, &operation);
        if expiry_ms != NEVER && !matches!(life, Life::UntilMs(_)) {
            self.relative.push((place, expiry_ms));
        }
        if kind == Kind::Merge && keyspace.inner.ttl().is_enabled() {
            self.is_unresolved = true;
            // Room for an expiry, whether it will have one or not.
            add_reservation(&mut self.needs, &Operation { expiry_ms: u64::MAX, ..operation });
        } else {
            add_reservation(&mut self.needs, &operation);
        }
        self.count += 1;
    }

    /// Adds a put whose value lives for `ttl` from the commit on.
    ///
    /// # Errors
    /// As [`Batch::put`]; `InvalidArgument` also for a time of zero, or in a keyspace without time
    /// to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut batch = db.batch();
    /// batch.put_with_ttl(&sessions, "ada", "", std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// assert!(matches!(sessions.expires_at("ada")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.add(keyspace, Kind::Put, key.as_ref(), value.as_ref(), Life::ForMs(life_ms(ttl)?))
    }

    /// Adds a put whose value lives until `expires_at`, as [`Keyspace::put_until`].
    ///
    /// # Errors
    /// As [`Batch::put`]; `InvalidArgument` also in a keyspace without time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut batch = db.batch();
    /// batch.put_until(&sessions, "ada", "", std::time::SystemTime::UNIX_EPOCH)?; // long ago
    /// batch.commit()?;
    /// assert_eq!(sessions.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at: SystemTime,
    ) -> Result<()> {
        self.add(keyspace, Kind::Put, key.as_ref(), value.as_ref(), Life::UntilMs(expiry_at(expires_at)))
    }

    /// Adds a merge after which the value lives for `ttl` from the commit on.
    ///
    /// # Errors
    /// As [`Batch::merge`]; `InvalidArgument` also for a time of zero, or in a keyspace without
    /// time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, merge::Max};
    /// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max).ttl(Ttl::Enabled { default: None }))?;
    /// let mut batch = db.batch();
    /// batch.merge_with_ttl(&best, "ada", "7", std::time::Duration::from_secs(60))?;
    /// batch.commit()?;
    /// assert!(best.get("ada")?.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.add(keyspace, Kind::Merge, key.as_ref(), operand.as_ref(), Life::ForMs(life_ms(ttl)?))
    }

    /// Adds a put.
    ///
    /// # Errors
    /// For a large value also `Io` and `ReadOnly`. `InvalidArgument` as for [`Keyspace::put`], or
    /// if the keyspace belongs to another database.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Put, key.as_ref(), value.as_ref(), Life::Default)
    }

    /// Adds a delete.
    ///
    /// # Errors
    /// As [`Batch::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// batch.delete(&names, "ada")?; // later operations win
    /// batch.commit()?;
    /// assert!(names.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Delete, key.as_ref(), &[], Life::Default)
    }

    /// Adds a merge.
    ///
    /// # Errors
    /// As [`Batch::put`], and as [`Keyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits = db.keyspace("hits", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// let mut batch = db.batch();
    /// batch.merge(&hits, "/index.html", 1u64.to_le_bytes())?;
    /// batch.merge(&hits, "/about.html", 1u64.to_le_bytes())?;
    /// batch.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Merge, key.as_ref(), operand.as_ref(), Life::Default)
    }

    /// Adds a delete of every key in `range`, as [`Keyspace::delete_range`]. It hides what is
    /// older, also what was added to this batch before it; what is added after it is newer. A range
    /// without keys adds nothing.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-batch-range-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let index = db.keyspace("index", Default::default())?;
    /// index.put("day/1", "stale")?;
    /// // Replaces everything below `day/` in one step.
    /// let mut batch = db.batch();
    /// batch.delete_range(&index, "day/".."day0")?;
    /// batch.put(&index, "day/2", "fresh")?;
    /// batch.commit()?;
    /// assert_eq!(index.iter().count(), 1);
    /// # drop((index, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Batch::delete`].
    pub fn delete_range(&mut self, keyspace: &Keyspace, range: impl KeyRange) -> Result<()> {
        self.check_keyspace(keyspace)?;
        let Some((start, end)) = tombstone_bounds(keyspace, &range) else { return Ok(()) };
        // A bound may be a key with a byte more.
        if start.len().max(end.len()) > MAX_KEY_BYTES + 1 {
            return Err(Error::invalid(format!("a bound of the range is longer than a key, {MAX_KEY_BYTES} bytes")));
        }
        let range = RangeDelete { keyspace: keyspace.inner.id, start: &start, end: &end };
        add_range_reservation(&mut self.needs, &range);
        encode_range(&mut self.record, &range);
        self.count += 1;
        Ok(())
    }

    /// Adds a change of the expiry of `key`.
    pub(super) fn change_expiry(&mut self, keyspace: &Keyspace, key: &[u8], life: Life) -> Result<()> {
        self.check_keyspace(keyspace)?;
        let key = &*keyspace.stored(key);
        check(&keyspace.inner, Kind::Delete, key, &[])?;
        check_life(&keyspace.inner, life)?;
        let id = keyspace.inner.id;
        // As in `add`: what is to be added to the time of the commit.
        let expiry_ms = keyspace.inner.ttl().expiry_ms(life, 0);
        let place = encode_expiry_change(&mut self.record, &ExpiryChange { keyspace: id, expiry_ms, key });
        if let Life::ForMs(_) = life {
            self.relative.push((place, expiry_ms));
        }
        // What it copies is known at the commit; a read that fails now may fail then.
        let bytes = bytes_to_copy(&self.shared.inner, &keyspace.inner, key).ok().flatten();
        add_reservation_bytes(&mut self.needs, id, bytes.unwrap_or(0));
        self.is_unresolved = true;
        self.count += 1;
        Ok(())
    }

    fn check_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Ok(());
        }
        Err(Error::invalid(format!("keyspace {:?} belongs to another database", keyspace.name())))
    }

    /// The number of operations added.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether no operation was added.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// assert!(db.batch().is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all operations, and keeps the memory.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// assert_eq!(batch.len(), 1);
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn clear(&mut self) {
        start_record(&mut self.record);
        self.needs.clear();
        self.count = 0;
        self.relative.clear();
        self.is_unresolved = false;
        self.large.clear();
    }

    /// Performs the operations, in the order in which they were added.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the batch is longer than 4 GiB. Nothing took
    /// effect then, except after a failed sync.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// batch.put(&names, "bob", "1923")?;
    /// batch.commit()?; // both or none
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::new())
    }

    /// As [`Batch::commit`], with options.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&names, "ada", "1815")?;
    /// batch.commit_with(&esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit_with(mut self, options: &WriteOptions) -> Result<()> {
        self.commit_and_clear(options)
    }

    /// As [`Batch::commit_with`], but keeps the batch, empty, for reuse. After an error it still
    /// holds its operations.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// let mut batch = db.batch();
    /// for chunk in [["ada", "bob"], ["eve", "zoe"]] {
    ///     for name in chunk {
    ///         batch.put(&names, name, "")?;
    ///     }
    ///     batch.commit_and_clear(&esker::WriteOptions::new())?;
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit_and_clear(&mut self, options: &WriteOptions) -> Result<()> {
        // A write that changes nothing is a write; a transaction that has only read is none.
        if self.is_empty() {
            self.shared.inner.error_state.check()?;
        }
        self.commit_and_clear_if(options, &mut Unconditional)
    }

    /// As [`Batch::commit_and_clear`], if `precondition` holds when the operations take effect. It
    /// is not evaluated if there are none.
    pub(super) fn commit_and_clear_if(
        &mut self,
        options: &WriteOptions,
        precondition: &mut impl Precondition,
    ) -> Result<()> {
        if options.ttl.is_some() {
            return Err(Error::invalid("a batch has no time to live; its operations have: see `Batch::put_with_ttl`"));
        }
        let is_written = self.count > 0
            && match self.shared.inner.latencies.of_call(Timed::Commit) {
                None => self.perform(options, precondition)?,
                Some(_) => self.perform_measured(options, precondition)?,
            };
        if !is_written && options.sync {
            // The promise of a sync covers everything acknowledged before it.
            self.shared.inner.error_state.check()?;
            self.shared.inner.sync_log()?;
        }
        self.clear();
        Ok(())
    }

    #[cold]
    fn perform_measured(&mut self, options: &WriteOptions, precondition: &mut impl Precondition) -> Result<bool> {
        let shared = Arc::clone(&self.shared);
        match shared.inner.latencies.get() {
            None => self.perform(options, precondition),
            Some(latencies) => latencies.measure(Timed::Commit, || self.perform(options, precondition)),
        }
    }

    fn perform(&mut self, options: &WriteOptions, precondition: &mut impl Precondition) -> Result<bool> {
        let inner = &self.shared.inner;
        let expires = !self.relative.is_empty() || self.is_unresolved;
        let now_ms = if expires { inner.options.clock.now_ms() } else { 0 };
        for &(place, life_ms) in &self.relative {
            set_expiry(&mut self.record, place, expiry_after(now_ms, life_ms));
        }
        if self.is_unresolved {
            return commit_merges_if(inner, &self.record, now_ms, &self.needs, options, precondition);
        }
        commit_if(inner, &mut self.record, Content::Encoded(self.count), &self.needs, options, precondition)
    }
}
