//! The handle of one keyspace: what it is, its writes and its upkeep. Its reads are in `read.rs`.

use super::shared::Shared;
use crate::base::batch::{Operation, encode};
use crate::base::blob_reference::REFERENCE_BYTES;
use crate::base::expiry::{Life, Ttl, expiry_at, life_ms};
use crate::base::key::{Kind, MAX_KEY_BYTES, MAX_VALUE_BYTES, NEVER, hash};
use crate::base::key_range::KeyRange;
use crate::db::background::compaction;
use crate::db::maintenance::ingest::IngestReport;
use crate::db::maintenance::{ingest, sizes};
use crate::db::read::blob_value;
use crate::db::state::inner::KeyspaceInner;
use crate::db::state::latencies::Timed;
use crate::db::write::batch_size::{reservation_bytes, start_record};
use crate::db::write::commit::{
    Content, Precondition, Unconditional, Verdict, check_options, commit, commit_if, commit_merges_if,
};
use crate::db::write::in_place_write;
use crate::db::write::lock_within::{Room, before_large_value};
use crate::db::write::merge_expiry;
use crate::error::{Error, Result};
use crate::options::{CompactionStyle, WriteOptions};
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A named, ordered map from byte strings to byte strings, part of one [`crate::Db`]. Cheap to
/// clone, usable from any thread.
///
/// Keys have 0 to 1 MiB and are ordered as unsigned bytes, unless the keyspace has a comparator
/// ([`crate::KeyspaceOptions::comparator`]); values have 0 to 1 GiB.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let names = db.keyspace("names", Default::default())?;
/// names.put("ada", "1815")?;
/// assert_eq!(names.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inner: Arc<KeyspaceInner>,
}

thread_local! {
    /// The record of the write at hand: kept, so that a write allocates nothing.
    static RECORD: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Records longer than this give their memory back after the write.
const KEEP_RECORD_BYTES: usize = 1 << 20;

/// Performs a write of one operation with this thread's memory for records.
#[inline]
fn with_record<T>(operation: &Operation<'_>, write: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    // Taken out: a merge operator that is called meanwhile may write to another database. A thread
    // that is ending has none any more.
    let mut record = RECORD.try_with(Cell::take).unwrap_or_default();
    start_record(&mut record);
    encode(&mut record, operation);
    let result = write(&mut record);
    if record.capacity() <= KEEP_RECORD_BYTES {
        let _ = RECORD.try_with(|kept| kept.set(record));
    }
    result
}

/// Refuses an operation on a stored key that is visibly wrong before anything is written.
pub(super) fn check(keyspace: &KeyspaceInner, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        let (bytes, most) = (keyspace.order.key_of(key).len(), keyspace.order.most_key_bytes());
        return Err(Error::invalid(format!("the key has {bytes} bytes, at most {most} are possible")));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::invalid(format!(
            "the value has {} bytes, at most {MAX_VALUE_BYTES} are possible",
            value.len()
        )));
    }
    if kind != Kind::Merge {
        return Ok(());
    }
    if !keyspace.has_operator() {
        let what = format!("keyspace {:?} was created without a merge operator", keyspace.name());
        return Err(Error::invalid(what));
    }
    merge_expiry::check_operand(keyspace, key, value)
}

/// Refuses a time to live where nothing expires.
pub(super) fn check_life(keyspace: &KeyspaceInner, life: Life) -> Result<()> {
    if life == Life::Default || keyspace.ttl().is_enabled() {
        return Ok(());
    }
    let what = format!(
        "keyspace {:?} is without time to live; create it with `KeyspaceOptions::ttl`, or call `set_ttl`",
        keyspace.name()
    );
    Err(Error::invalid(what))
}

/// The requested lifetime of a write with this time to live.
pub(super) fn life_of(ttl: Option<Duration>) -> Result<Life> {
    ttl.map_or(Ok(Life::Default), |ttl| Ok(Life::ForMs(life_ms(ttl)?)))
}

/// What the latency of a write counts as.
pub(super) fn timed(kind: Kind) -> Timed {
    match kind {
        Kind::Merge | Kind::MergeFirst => Timed::Merge,
        Kind::Delete => Timed::Delete,
        Kind::Put | Kind::PutBlob => Timed::Put,
    }
}

impl Keyspace {
    /// Its name, which [`Keyspace::rename`] changes.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// assert_eq!(&*names.name(), "names");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn name(&self) -> Arc<str> {
        self.inner.name()
    }

    /// Its number, which no other keyspace of this database has or will have, and which a rename
    /// does not change. Checkpoints and backups have the same: see
    /// [`Change::keyspace_id`](crate::Change::keyspace_id).
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// assert_ne!(names.id(), db.keyspace("emails", Default::default())?.id());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The name of its merge operator, as stored.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, merge::Max};
    /// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max))?;
    /// assert_eq!(best.merge_operator().as_deref(), Some("max"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_operator(&self) -> Option<String> {
        self.inner.operator_name().as_deref().map(str::to_owned)
    }

    /// The name of the order of its keys, as stored when it was created: `"bytewise"` without a
    /// comparator.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, ReverseBytewise};
    /// let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise))?;
    /// assert_eq!(latest.comparator(), "reverse-bytewise");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn comparator(&self) -> &str {
        self.inner.order.name()
    }

    /// How two keys are ordered in this keyspace, whether they have values or not. Reads nothing.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, ReverseBytewise};
    /// let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise))?;
    /// assert!(latest.compare_keys("2026-11-25", "2026-11-24").is_lt());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_keys(&self, a: impl AsRef<[u8]>, b: impl AsRef<[u8]>) -> Ordering {
        self.inner.order.compare_keys(a.as_ref(), b.as_ref())
    }

    /// Whether its entries can expire, and after what time by default, as stored.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl};
    /// let sessions = db.keyspace("sessions", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }))?;
    /// assert_eq!(sessions.ttl(), Ttl::Enabled { default: None });
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn ttl(&self) -> Ttl {
        self.inner.ttl()
    }

    /// How its tables are compacted, as stored.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// assert_eq!(names.compaction_style(), esker::CompactionStyle::LazyLeveling);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compaction_style(&self) -> CompactionStyle {
        self.inner.compaction.style()
    }

    /// The form in which the keyspace stores `key`.
    #[inline]
    pub(super) fn stored<'k>(&self, key: &'k (impl AsRef<[u8]> + ?Sized)) -> Cow<'k, [u8]> {
        self.inner.order.stored(key.as_ref())
    }

    /// The bounds, as the keyspace stores keys.
    pub(super) fn stored_bounds(&self, range: &impl KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        self.inner.order.stored_bounds(range.bounds())
    }

    #[inline]
    fn write(&self, kind: Kind, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        if self.inner.order.is_bytewise() {
            self.write_stored(kind, key, value, options)
        } else {
            self.write_marked(kind, key, value, options)
        }
    }

    /// Apart from the write of a key as it is, which this would slow down.
    #[cold]
    fn write_marked(&self, kind: Kind, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_stored(kind, &self.stored(key), value, options)
    }

    fn write_stored(&self, kind: Kind, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        // As `Inner::timed`, with a call of what it measures: inlined twice it was slower.
        match self.shared.inner.latencies.of_call(timed(kind)) {
            None => self.write_now(kind, key, value, options),
            Some(latencies) => latencies.measure(timed(kind), || self.write_now(kind, key, value, options)),
        }
    }

    #[inline(never)]
    fn write_now(&self, kind: Kind, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        // Before the time to live is looked at: a keyspace that gets both gets its operator last.
        check(&self.inner, kind, key, value)?;
        if self.inner.ttl().is_enabled() || options.ttl.is_some() {
            return self.write_with_life(kind, key, value, life_of(options.ttl)?, options);
        }
        if options.disable_wal && in_place_write::write(&self.shared.inner, &self.inner, kind, key, value, options)? {
            return Ok(());
        }
        let operation = Operation { keyspace: self.inner.id, kind, expiry_ms: NEVER, key, value };
        if blob_value::is_large(&self.shared.inner, kind, value) {
            return self.write_with_life(kind, key, value, Life::Default, options);
        }
        if self.shared.inner.writer.is_locked() {
            // Cache misses are better taken before the lock, while another thread writes.
            self.inner.read_state.load().active.warm(key, hash(key));
        }
        self.commit_one(operation, options)
    }

    /// A write to a keyspace in which entries can expire, one with a time to live, or one of a
    /// large value.
    fn write_with_life(&self, kind: Kind, key: &[u8], value: &[u8], life: Life, options: &WriteOptions) -> Result<()> {
        self.write_if(kind, key, value, life, options, &mut Unconditional).map(|_| ())
    }

    /// A write under a precondition; false if that declined.
    pub(super) fn write_if(
        &self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        life: Life,
        options: &WriteOptions,
        precondition: &mut impl Precondition,
    ) -> Result<bool> {
        check(&self.inner, kind, key, value)?;
        check_life(&self.inner, life)?;
        check_options(options)?;
        if kind == Kind::Delete && life != Life::Default {
            return Err(Error::invalid("a delete has no time to live; leave it out"));
        }
        let inner = &self.shared.inner;
        // The setting first: where it says that there are expiries, the time is the clock's.
        let ttl = self.inner.ttl();
        let now_ms = inner.now_ms(&self.inner);
        let expiry_ms = match (kind, life) {
            // The default of the keyspace is for keys without a value.
            (Kind::Delete, _) | (Kind::Merge, Life::Default) => NEVER,
            _ => ttl.expiry_ms(life, now_ms),
        };
        let operation = Operation { keyspace: self.inner.id, kind, expiry_ms, key, value };
        if kind == Kind::Merge && ttl.is_enabled() {
            // Room for an expiry, whether it will have one or not.
            let needs = [(self.inner.id, reservation_bytes(&Operation { expiry_ms: u64::MAX, ..operation }))];
            return with_record(&operation, |record| {
                commit_merges_if(inner, record, now_ms, &needs, options, precondition)
            });
        }
        if blob_value::is_large(inner, kind, value) {
            if precondition.catch_up()? == Verdict::Declined {
                return Ok(false);
            }
            return self.commit_large_if(operation, options, precondition);
        }
        self.commit_one_if(operation, options, precondition)
    }

    /// A put of a large value, which goes to a blob file first.
    #[cold]
    fn commit_large_if(
        &self,
        operation: Operation<'_>,
        options: &WriteOptions,
        precondition: &mut impl Precondition,
    ) -> Result<bool> {
        let inner = &self.shared.inner;
        let smaller = Operation { kind: Kind::PutBlob, value: &[0; REFERENCE_BYTES], ..operation };
        let needs = [(self.inner.id, reservation_bytes(&smaller))];
        // The record is hardly longer than its entry.
        let room = Room { needs: &needs, record_bytes: 2 * needs[0].1, is_logged: !options.disable_wal };
        let options = before_large_value(inner, room, options)?;
        let value = blob_value::put_blob(inner, operation.value)?;
        let put = Operation { kind: Kind::PutBlob, value: &value.reference.encode(), ..operation };
        self.commit_one_if(put, &options, precondition)
    }

    fn commit_one_if(
        &self,
        operation: Operation<'_>,
        options: &WriteOptions,
        precondition: &mut impl Precondition,
    ) -> Result<bool> {
        let needs = [(self.inner.id, reservation_bytes(&operation))];
        let content = Content::One(operation);
        with_record(&operation, |record| commit_if(&self.shared.inner, record, content, &needs, options, precondition))
    }

    #[inline]
    fn commit_one(&self, operation: Operation<'_>, options: &WriteOptions) -> Result<()> {
        let needs = [(self.inner.id, reservation_bytes(&operation))];
        with_record(&operation, |record| commit(&self.shared.inner, record, Content::One(operation), &needs, options))
    }

    /// Sets the value of `key`. The write survives the death of the process from here on, and that
    /// of the machine once a later sync returned.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value that is too long; `ReadOnly` after a failure of the
    /// log; `Io`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.put([1, 2, 3], vec![0; 1000])?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new())
    }

    /// As [`Keyspace::put`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::WriteOptions;
    /// names.put_with("ada", "1815", &WriteOptions::new().sync(true))?; // survives a power loss from here on
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Put, key.as_ref(), value.as_ref(), options)
    }

    /// Sets the value of `key` until the time `expires_at`, from which on the key has none; a time
    /// that has passed hides the key at once. Only in a keyspace created with
    /// [`crate::KeyspaceOptions::ttl`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-put-until-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// use esker::{Expiry, KeyspaceOptions, Ttl};
    /// use std::time::{Duration, SystemTime};
    /// let sessions = db.keyspace("sessions", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }))?;
    /// let soon = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    /// sessions.put_until("7", "ada", soon)?;
    /// assert_eq!(sessions.expires_at("7")?, Some(Expiry::At(soon)));
    /// # drop((sessions, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also in a keyspace without time to live.
    pub fn put_until(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expires_at: SystemTime) -> Result<()> {
        let life = Life::UntilMs(expiry_at(expires_at));
        let key = self.stored(&key);
        let put = || self.write_with_life(Kind::Put, &key, value.as_ref(), life, &WriteOptions::new());
        self.shared.inner.timed(Timed::Put, put)
    }

    /// Removes `key`. It need not exist.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.delete("ada")?;
    /// names.delete("never there")?;
    /// assert!(names.get("ada")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, &WriteOptions::new())
    }

    /// As [`Keyspace::delete`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.delete_with("ada", &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Delete, key.as_ref(), &[], options)
    }

    /// Combines `operand` with whatever `key` holds, by the keyspace's merge operator. Reads
    /// nothing: costs what a put costs, or less where the key is in memory already.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the keyspace has no merge operator or the
    /// operator refuses the operand.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits = db.keyspace("hits", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// hits.merge("/index.html", 2u64.to_le_bytes())?;
    /// hits.merge("/index.html", 3u64.to_le_bytes())?;
    /// assert_eq!(hits.get("/index.html")?.as_deref(), Some(&5u64.to_le_bytes()[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::new())
    }

    /// As [`Keyspace::merge`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let hits = db.keyspace("hits", esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add))?;
    /// hits.merge_with("/index.html", 1u64.to_le_bytes(), &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(Kind::Merge, key.as_ref(), operand.as_ref(), options)
    }

    /// Loads pairs with strictly ascending keys straight into tables, without log and memtable: the
    /// fastest way for a lot of data. All of them become visible and durable at once when this
    /// returns, or none. They replace what the keys had; snapshots and iterators made before do not
    /// see them.
    ///
    /// Other writes go on while `pairs` are taken, and count as older than all of them. Costs one
    /// write of the data, a flush if memory holds keys in the same range, and a sync during which
    /// other writes wait. Values are stored in the tables, whatever their size.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-ingest-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let squares = db.keyspace("squares", Default::default())?;
    /// let report = squares.ingest((0..1000u32).map(|n| (n.to_be_bytes(), (n * n).to_le_bytes())))?;
    /// assert_eq!(report.entries, 1000);
    /// assert_eq!(squares.get(30u32.to_be_bytes())?.as_deref(), Some(&900u32.to_le_bytes()[..]));
    /// assert!(squares.ingest([("b", ""), ("a", "")]).is_err());
    /// # drop((squares, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` names the first key that does not come after the one before it, or is too
    /// long; `ReadOnly`; `Io`. Nothing is loaded then, and no file is left.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<IngestReport> {
        ingest::ingest(&self.shared.inner, &self.inner, pairs.into_iter())
    }

    /// About how many bytes the keys in `range` take, with everything that is kept of them: on
    /// disk, as compressed, and in memory. Reads no file; costs a search in the index of each
    /// table and a sample of some thousand keys of each memtable. Asked several times about the
    /// same memtable, in the bytewise order, it sorts that sample once, and then costs a search in
    /// it.
    ///
    /// What is on disk is counted in whole blocks: up to two for each run too many. What is in
    /// memory is estimated from a sample of its keys: a range with less than a thousandth of them
    /// may count as nothing there. Overwritten and deleted versions count until compaction drops
    /// them.
    ///
    /// # Errors
    /// `KeyspaceDropped`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// assert!(names.approximate_size("a".."b")? > 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_size(&self, range: impl KeyRange) -> Result<u64> {
        let (lower, upper) = self.stored_bounds(&range);
        self.inner.check_exists()?;
        Ok(sizes::approximate(&self.inner, lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice)))
    }

    /// Flushes, then compacts this keyspace into one sorted run. With
    /// [`crate::CompactionStyle::Fifo`] nothing is compacted.
    ///
    /// # Errors
    /// As [`crate::Db::compact`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// names.compact()?;
    /// assert_eq!(db.stats().keyspaces[0].runs.len(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.inner.check_exists()?;
        compaction::compact_now(&self.shared.inner, Some(self.inner.id))
    }

    /// Flushes, then compacts `range` into the keyspace's oldest run, dropping there what no reader
    /// can see. Rewrites whole tables: all that overlap the range, and older ones that overlap
    /// those. With [`crate::CompactionStyle::Fifo`] nothing is compacted.
    ///
    /// # Errors
    /// As [`crate::Db::compact`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-compact-range-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// let names = db.keyspace("names", Default::default())?;
    /// for name in ["ada", "bob", "eve"] {
    ///     names.put(name, "")?;
    /// }
    /// names.delete("bob")?;
    /// names.compact_range("b".."c")?;
    /// assert_eq!(names.iter().count(), 2);
    /// # drop((names, db));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact_range(&self, range: impl KeyRange) -> Result<()> {
        self.inner.check_exists()?;
        let (lower, upper) = self.stored_bounds(&range);
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        compaction::compact_range(&self.shared.inner, &self.inner, bounds)
    }
}
