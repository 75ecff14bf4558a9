//! The state of an open database.
//!
//! Locks, in the order in which a thread may take them:
//! 0. `jobs`: held by the thread that flushes or compacts; there is one such thread at a time.
//! 1. `keyspace_changes`: held while a keyspace is created or dropped, or must not be; in a
//!    follower, while it catches up.
//! 2. `writer`: sequence numbers, the log's end, the memtables' writers. Held for the length of one
//!    write, not over a stall or the sync of a write; over the preparation of a log segment only if
//!    the background thread did not get to it in time. A write that is not to wait
//!    (`write/lock_within.rs`) tries it for a limited time.
//! 3. `manifest`: held while an edit is made durable.
//! 4. a keyspace's, in its `ReadStateCell`: held while a read state is replaced, never over I/O.
//! 5. `keyspaces`: held while a keyspace is looked up or added.
//! 6. `lock`: held by a load while it makes or removes files (`ingest.rs`), and while a new
//!    manifest takes the place of the current one, so that close cannot release the directory
//!    meanwhile.
//! 7. Locks held over calls of the environment that make or sync files, and over none of the above:
//!    in the blob store `current`, while a file is made, and `syncing`.
//! 8. Leaves, under any of the above: of a keyspace its name, that of its operator, and its former
//!    merge settings; `signals`, `merging`, `in_progress`, `last_write`, `obsolete`; the names and
//!    the list of dropped keyspaces, of which the list has the snapshot list under it; the flushed
//!    memtables of `write_buffer_manager`, with the blob files of one after the other under it; the
//!    log's state; the snapshot list; of a keyspace its style, the tables whose rewrite is futile
//!    and its tombstone skip cache; of a memtable its index's tables, its sorted runs and its blob
//!    files; `shrinking`, with the blob store's next ones under it; the blob store's `files`,
//!    `job_file`, `damaged` and `would_shrink`; the caches, the memory pool and the write buffer
//!    manager; the reasons in `error_state`, with the queue of events under them; that queue.
//!
//! The user's code is called with the first three held, and with that of the snapshots for readings
//! of the clock, which comes after them and before the leaves; an environment of the user's with
//! `manifest` and those of 6 and 7 as well. A call that such code makes takes none of these locks,
//! or is refused (`Inner::refuse_in_callback`).
//!
//! The threads of a divided compaction (`job/parallel.rs`) take only locks of the last two kinds.
//! Their coordinator flushes for them, and holds none of these locks while it does. The handles'
//! locks on their threads are taken with none of these held.
//!
//! Point reads take none of them: they load a keyspace's read state and search it. Where the merge
//! settings of the keyspace were changed since the open, they look at the former ones, a leaf.
//! Scans register under `writer`, and consult the tombstone skip cache.

use crate::base::callback;
use crate::base::clock::Clock;
use crate::base::expiry::Ttl;
use crate::base::key::{MAX_SEQUENCE, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::memory::{MemoryPool, PoolUser};
use crate::base::sync::{self, ArcSwapOption};
use crate::blob::BlobStore;
use crate::db::state::between_writes;
use crate::db::state::compaction_state::CompactionState;
use crate::db::state::counted_lock::CountedLock;
use crate::db::state::counters::Counters;
use crate::db::state::dropped_keyspaces::DroppedKeyspaces;
use crate::db::state::error_state::ErrorState;
use crate::db::state::events::Events;
use crate::db::state::kept_blobs::KeptBlobs;
use crate::db::state::latencies::{Measured, Timed};
use crate::db::state::merge_settings::{FormerMergeSettings, FormerSettings, MergeEpoch, MergeSettings};
use crate::db::state::obsolete_tables::ObsoleteTables;
use crate::db::state::read_state::{ReadState, ReadStateCell, oldest_unflushed};
use crate::db::state::read_stats::ReadStats;
use crate::db::state::snapshots::{Pins, ReadPoint, Readers, SnapshotGuard, SnapshotList};
use crate::db::state::thread_gate::ThreadGate;
use crate::db::state::tombstone_skip_cache::TombstoneSkipCache;
use crate::db::state::watchers::Watchers;
use crate::db::state::write_buffer_manager::WriteBufferManager;
use crate::db::state::write_throttle::WriteThrottle;
use crate::env::Lock;
use crate::error::{Error, Result};
use crate::memtable::{Memtable, MemtableWriter};
use crate::merge_operator::chain::LongestChain;
use crate::merge_operator::{MergeError, MergeOperator, UINT64_ADD, contained};
use crate::options::Options;
use crate::table::BlockCache;
use crate::version::edit::Change;
use crate::version::manifest::Manifest;
use crate::wal::log_sync::LogSync;
use crate::wal::segment::Position;
use crate::wal::writer::LogWriter;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// One keyspace.
pub struct KeyspaceInner {
    pub id: u64,
    /// Changed with the lock on all keyspaces held, by which they are found.
    name: RwLock<Arc<str>>,
    /// The order of the keys.
    pub order: KeyOrder,
    operator_name: RwLock<Option<Arc<str>>>,
    /// Whether there is such a name: every merge asks, and goes by a time to live that was set
    /// before. Never taken back.
    has_operator: AtomicBool,
    /// What operands were combined by before the present settings.
    pub former_merges: FormerMergeSettings,
    /// In its stored form. Changed under the writer lock, and never to nothing that expires.
    ttl: AtomicU64,
    /// Values of eight bytes may be replaced, or added to, without the writer lock (rules 2 and 5
    /// of `memtable/in_place.rs`): nothing expires, and there are no merges at all, or none but
    /// additions.
    puts_in_place: AtomicBool,
    adds_in_place: AtomicBool,
    operator: ArcSwapOption<Arc<dyn MergeOperator>>,
    pub read_state: ReadStateCell,
    pub compaction: CompactionState,
    /// The longest chain of operands met by a read, or kept by a flush or compaction.
    pub longest_chain: LongestChain,
    /// The tombstone skip cache.
    pub tombstone_skip_cache: TombstoneSkipCache,
    /// Statistics of point reads.
    pub read_stats: ReadStats,
}

impl KeyspaceInner {
    pub fn new(
        id: u64,
        name: String,
        order: KeyOrder,
        operator_name: Option<String>,
        ttl: u64,
        operator: Option<Arc<dyn MergeOperator>>,
        read_state: ReadState,
    ) -> KeyspaceInner {
        let adds_in_place = operator_name.as_deref() == Some(UINT64_ADD) && ttl == 0;
        KeyspaceInner {
            id,
            name: RwLock::new(name.into()),
            puts_in_place: AtomicBool::new(operator_name.is_none() && ttl == 0),
            adds_in_place: AtomicBool::new(adds_in_place),
            has_operator: AtomicBool::new(operator_name.is_some()),
            operator_name: RwLock::new(operator_name.map(Arc::from)),
            former_merges: FormerMergeSettings::default(),
            ttl: AtomicU64::new(ttl),
            operator: ArcSwapOption::new(operator.map(Arc::new)),
            read_state: ReadStateCell::new(read_state),
            compaction: CompactionState::default(),
            longest_chain: LongestChain::default(),
            tombstone_skip_cache: TombstoneSkipCache::new(&order),
            read_stats: ReadStats::default(),
            order,
        }
    }

    /// Whether its entries can expire, and when by default.
    #[inline]
    pub fn ttl(&self) -> Ttl {
        Ttl::from_stored(self.ttl.load(Ordering::Relaxed))
    }

    /// Its present name.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.read())
    }

    /// The name of its merge operator, if it has one.
    pub fn operator_name(&self) -> Option<Arc<str>> {
        self.operator_name.read().clone()
    }

    /// Whether it has a merge operator, which may not have been supplied.
    #[inline]
    pub fn has_operator(&self) -> bool {
        self.has_operator.load(Ordering::Acquire)
    }

    /// Whether its merge operator has this name.
    pub fn has_operator_named(&self, name: &str) -> bool {
        self.operator_name.read().as_deref() == Some(name)
    }

    /// Whether puts of eight bytes may go without the writer lock. To be asked again behind the
    /// thread gate.
    #[inline]
    pub fn puts_in_place(&self) -> bool {
        self.puts_in_place.load(Ordering::Relaxed)
    }

    /// The same for merges.
    #[inline]
    pub fn adds_in_place(&self) -> bool {
        self.adds_in_place.load(Ordering::Relaxed)
    }

    /// Changes what can expire, to a setting in its stored form that is not 0. Call under the
    /// writer lock, and then wait for all threads at the gate.
    pub fn set_ttl(&self, stored: u64) {
        self.puts_in_place.store(false, Ordering::Relaxed);
        self.adds_in_place.store(false, Ordering::Relaxed);
        self.ttl.store(stored, Ordering::Release);
    }

    /// Gives it a merge operator, in the place of that which it has; the rest as in
    /// [`Self::set_ttl`].
    pub fn set_operator_name(&self, name: &str) {
        self.puts_in_place.store(false, Ordering::Relaxed);
        self.adds_in_place.store(false, Ordering::Relaxed);
        *self.operator_name.write() = Some(name.into());
        self.has_operator.store(true, Ordering::Release);
    }

    /// The merge operator, if the keyspace has one and it is known.
    #[inline]
    pub fn operator(&self) -> Option<Arc<dyn MergeOperator>> {
        self.operator.load().as_deref().cloned()
    }

    /// What operands found in a read state of `merge_epoch` are combined by.
    pub fn merge_settings(&self, merge_epoch: &MergeEpoch) -> MergeSettings {
        // Before the kept ones are looked for.
        let present = self.present_merge_settings();
        self.former_merges.of(merge_epoch).map_or(present, MergeSettings::Former)
    }

    /// What operands that are written now are combined by.
    pub fn present_merge_settings(&self) -> MergeSettings {
        let expires = Ttl::from_stored(self.ttl.load(Ordering::Acquire)).is_enabled();
        MergeSettings::Present { operator: self.operator.load(), expires }
    }

    /// The name of the operator of these settings, for an error.
    #[cold]
    pub fn operator_name_of(&self, settings: &MergeSettings) -> String {
        let name = match settings {
            MergeSettings::Present { .. } => self.operator_name(),
            MergeSettings::Former(former) => former.operator_name.clone(),
        };
        name.as_deref().unwrap_or("(none)").to_owned()
    }

    /// Keeps the present merge settings for those who read what is there now, before they are
    /// changed. Call under the writer lock, and put another read state in the place of the present
    /// one, of the epoch returned, when they are.
    pub fn keep_merge_settings(&self) -> MergeEpoch {
        let expires = self.ttl().is_enabled();
        let present = FormerSettings { operator: self.operator(), operator_name: self.operator_name(), expires };
        self.former_merges.add(&self.read_state.load().stored().merge_epoch, present)
    }

    /// What a read searches, where `read_state` is what there is now.
    ///
    /// # Errors
    /// `KeyspaceDropped`, unless the drop comes after what the reader sees.
    #[inline]
    pub fn visible<'a>(&self, read_state: &'a Arc<ReadState>, point: ReadPoint<'a>) -> Result<&'a Arc<ReadState>> {
        match point.pins {
            Some(pins) => self.pinned(pins, read_state),
            None => read_state.at(point.sequence),
        }
        .ok_or_else(|| self.was_dropped())
    }

    /// What a snapshot of a follower has of the keyspace: nothing, if it was created later.
    #[cold]
    fn pinned<'a>(&self, pins: &'a Pins, now: &ReadState) -> Option<&'a Arc<ReadState>> {
        static NOTHING: LazyLock<Arc<ReadState>> = LazyLock::new(|| {
            let (memtable, _) = Memtable::create(0, 0, &MemoryPool::of_the_process());
            Arc::new(ReadState::of_memtable(memtable))
        });
        pins.get(&self.id).or_else(|| if now.dropped.is_some() { None } else { Some(&NOTHING) })
    }

    /// The error for a call on a keyspace that was dropped.
    #[cold]
    pub fn was_dropped(&self) -> Error {
        Error::KeyspaceDropped { keyspace: self.name().to_string() }
    }

    /// Refuses a call on a keyspace that was dropped.
    pub fn check_exists(&self) -> Result<()> {
        self.visible(&self.read_state.load(), ReadPoint::newest(0)).map(|_| ())
    }

    /// The operator's objection to an operand. Every merge checks it, so no reference is counted:
    /// threads would contend for the counter.
    #[inline]
    pub fn check_operand(&self, operand: &[u8]) -> std::result::Result<(), MergeError> {
        match self.operator.load().as_deref() {
            Some(operator) => contained::check_operand(&**operator, operand),
            None => Ok(()),
        }
    }

    /// Puts another operator in the place of that which it has. Call under the writer lock.
    pub fn replace_operator(&self, operator: Option<Arc<dyn MergeOperator>>) {
        self.operator.store(operator.map(Arc::new));
    }
}

impl std::fmt::Debug for KeyspaceInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace").field("id", &self.id).field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What the writer keeps of a keyspace.
#[derive(Debug)]
pub struct KeyspaceWriter {
    pub keyspace: Arc<KeyspaceInner>,
    pub memtable: MemtableWriter,
    pub operator: Option<Arc<dyn MergeOperator>>,
    /// The operator is the built-in `uint64add`, which the memtable carries out in place.
    pub adds_uint64: bool,
    /// How fast the memtable may fill.
    pub throttle: WriteThrottle,
}

impl std::fmt::Debug for dyn MergeOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What is under the writer lock.
#[derive(Debug)]
pub struct Writer {
    /// None in a database opened read-only.
    pub log: Option<LogWriter>,
    /// By keyspace id, which is not given out again: those of dropped keyspaces have none.
    pub keyspaces: Vec<Option<Box<KeyspaceWriter>>>,
    /// Whether there is, or was, a keyspace in which entries can expire.
    pub entries_may_expire: bool,
    /// Keyspaces with a merge operator that was replaced, or in which entries came to expire: what
    /// was prepared before is checked, and resolved, at its commit (`write/merge_expiry.rs`).
    pub altered_merges: Vec<u64>,
    pub last_sequence: Sequence,
    /// Where there is no log of its own: how far that of the writer was read, but for segments at
    /// its end that hold nothing.
    pub read_to: Position,
    /// A memtable has come near memory that is not prefaulted.
    pub wants_memory: bool,
}

impl Writer {
    /// Of a database in which there is no keyspace yet.
    pub fn new(log: Option<LogWriter>, last_sequence: Sequence) -> Writer {
        Writer {
            log,
            keyspaces: Vec::new(),
            entries_may_expire: false,
            altered_merges: Vec::new(),
            last_sequence,
            read_to: Position::default(),
            wants_memory: false,
        }
    }

    /// The number of the first of the next `count` writes.
    ///
    /// # Errors
    /// `InvalidArgument` if there are not so many numbers left: one behind the last does not fit
    /// into an entry. No database gets there by its writes.
    #[inline(always)]
    pub fn first_of(&self, count: u64) -> Result<Sequence> {
        if self.last_sequence + count > MAX_SEQUENCE {
            return Err(no_numbers_left());
        }
        Ok(self.last_sequence + 1)
    }
}

#[cold]
fn no_numbers_left() -> Error {
    Error::invalid(
        "the database has no sequence numbers left, and nothing was written; its files are damaged or forged: copy \
         what is in it to a new database, as with `esker dump` and `esker load`",
    )
}

/// What threads tell each other.
#[derive(Debug, Default)]
pub struct Signals {
    pub shutting_down: bool,
    /// The background thread does nothing more.
    pub ended: bool,
    /// No thread waits for the background thread to end: it does itself what comes after that.
    pub abandoned: bool,
    /// There may be work for the background thread.
    pub work: bool,
    /// The background thread is at work.
    pub busy: bool,
    /// A caller requested idle work now.
    pub manual: bool,
}

/// See the module's comment.
pub struct Inner {
    pub directory: PathBuf,
    /// What its callbacks know it by.
    pub number: callback::Database,
    pub options: Options,
    /// Held by a checkpoint from its beginning to its end. Before all other locks.
    pub checkpoints: Mutex<()>,
    /// Held while a keyspace is created or dropped, to its end. Behind `jobs`.
    pub keyspace_changes: CountedLock,
    pub jobs: CountedLock,
    pub writer: Mutex<Writer>,
    pub manifest: Mutex<Option<Manifest>>,
    /// The numbers of those that are not in force and could not be removed. Taken behind
    /// `manifest`.
    pub manifests_left: Mutex<Vec<u64>>,
    pub signals: Mutex<Signals>,
    /// Signalled when there is work.
    pub work_arrived: Condvar,
    /// Signalled when work is done.
    pub work_done: Condvar,
    pub keyspaces: RwLock<BTreeMap<String, Arc<KeyspaceInner>>>,
    pub log: Option<Arc<LogSync>>,
    pub last_sequence: sync::AtomicU64,
    pub next_file: AtomicU64,
    pub snapshots: Arc<SnapshotList>,
    /// Threads that write without the writer lock.
    pub thread_gate: ThreadGate,
    pub cache: Arc<BlockCache>,
    pub blobs: Arc<BlobStore>,
    /// The least bytes of a large value.
    pub blob_threshold: usize,
    /// The memory of memtables.
    pub memory: PoolUser,
    /// The background thread should prefault memory ahead of the writer.
    pub memory_wanted: AtomicBool,
    /// The background thread should merge the sorted runs of active memtables.
    pub order_wanted: AtomicBool,
    /// What is known of the memory of all parts.
    pub write_buffer_manager: WriteBufferManager,
    pub error_state: Arc<ErrorState>,
    pub events: Events,
    pub counters: Counters,
    /// How long calls take.
    pub latencies: Measured,
    /// When the last write was seen by the background thread: the last sequence number, and how
    /// many were made without one.
    pub last_write: Mutex<((Sequence, u64), Instant)>,
    /// Tables out of every version, still pinned by readers.
    pub obsolete: ObsoleteTables,
    /// Keyspaces that were dropped and that a snapshot may see.
    pub dropped: DroppedKeyspaces<KeyspaceInner>,
    /// Blob files that only changes refer to.
    pub kept_blobs: KeptBlobs,
    /// Threads that wait for writes.
    pub watchers: Watchers,
    /// The running compaction: its keyspace, and the id of the newest run it reads. Changed with
    /// the job lock held.
    pub merging: Mutex<Option<(u64, u64)>>,
    /// Blob files whose values are being compressed, table by table. Changed with the job lock
    /// held.
    pub shrinking: Mutex<BTreeSet<u64>>,
    /// Tables being written outside the job lock: no manifest names them yet.
    pub in_progress: Mutex<BTreeSet<u64>>,
    /// Another process writes, and this one reads what it has written: see `lifecycle/follow`.
    pub follows: bool,
    /// Log segments read when the database was opened read-only.
    pub replayed_segments: u64,
    /// Reasons against writes without the writer lock: conditional writes under way, and a close,
    /// which stays. Raised under the writer lock, see `in_place_write::Barrier`.
    pub in_place_barriers: sync::AtomicUsize,
    /// Background work should end as soon as it can.
    pub stopping: AtomicBool,
    /// Held from open to drop; none in a database opened read-only.
    pub lock: Mutex<Option<Box<dyn Lock>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Inner {
    /// Refuses a call that takes locks or waits for work, if a callback of this database makes it:
    /// the thread that called the callback holds locks, or does the work.
    #[inline]
    pub fn refuse_in_callback(&self) -> Result<()> {
        if self.number.is_calling() { Err(self.in_callback()) } else { Ok(()) }
    }

    /// The error for such a call.
    #[cold]
    pub fn in_callback(&self) -> Error {
        Error::InCallback { database: self.directory.clone() }
    }

    /// Makes a call, and measures it where that is requested.
    #[inline(always)]
    pub fn timed<T>(&self, timed: Timed, call: impl FnOnce() -> T) -> T {
        match self.latencies.of_call(timed) {
            None => call(),
            Some(latencies) => latencies.measure(timed, call),
        }
    }

    /// A reader's snapshot guard at the last write acknowledged.
    pub fn register_snapshot(&self) -> Result<SnapshotGuard> {
        self.register_reader(false)
    }

    /// The same for a reader that also sees writes of its own, which may expire.
    pub fn register_transaction(&self) -> Result<SnapshotGuard> {
        self.register_reader(true)
    }

    fn register_reader(&self, needs_time: bool) -> Result<SnapshotGuard> {
        self.refuse_in_callback()?;
        if self.follows {
            return Ok(self.register_pins());
        }
        let writer = self.lock_writer();
        let clock = (needs_time || writer.entries_may_expire).then_some(&*self.options.clock as &dyn Clock);
        let snapshot_guard = self.snapshots.register(writer.last_sequence, clock);
        // From here on no write changes what it sees.
        self.thread_gate.wait_for_all();
        Ok(snapshot_guard)
    }

    /// The same of a follower: what all keyspaces have now. Not in the middle of a catching up.
    #[cold]
    fn register_pins(&self) -> SnapshotGuard {
        let _between = self.keyspace_changes.lock();
        let writer = self.lock_writer();
        let snapshot_guard = self.snapshots.register(writer.last_sequence, Some(&*self.options.clock));
        let keyspaces = self.all_keyspaces();
        let pins = keyspaces.iter().map(|keyspace| (keyspace.id, keyspace.read_state.load_full()));
        snapshot_guard.pinning(pins.collect())
    }

    /// What a lookup without snapshot finds, and whether no write was under way meanwhile: then it
    /// met no batch that was applied in part, and what it found was so at one moment.
    pub fn look_between_writes<T>(&self, look: impl FnOnce() -> T) -> (T, bool) {
        between_writes::look_between_writes(|| self.writer.is_locked(), &self.last_sequence, look)
    }

    /// The time of a read that belongs to no snapshot; not read where nothing expires.
    #[inline]
    pub fn now_ms(&self, keyspace: &KeyspaceInner) -> u64 {
        if keyspace.ttl().is_enabled() { self.options.clock.now_ms() } else { 0 }
    }

    /// The writer lock, for a write or a snapshot guard. It is held for a fraction of a
    /// microsecond, and putting a thread to sleep and waking it takes many: the thread spins first.
    /// It does not spin for long, because the holder may have been preempted, and other threads
    /// could use the processor. It pauses between its checks: each check takes the cache line of
    /// the lock away from the holder, and a writer that returns during a pause writes several times
    /// before the lines it writes to move to another processor.
    #[inline]
    pub fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.try_lock_writer().unwrap_or_else(|| self.writer.lock())
    }

    /// As [`Inner::lock_writer`], but gives up where that puts the thread to sleep.
    #[inline]
    pub fn try_lock_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        const LOOKS: u32 = 15;
        const MOST_PAUSES: u32 = 32;
        let mut pauses = 4;
        for _ in 0..LOOKS {
            if !self.writer.is_locked()
                && let Some(writer) = self.writer.try_lock()
            {
                return Some(writer);
            }
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            pauses = MOST_PAUSES.min(pauses * 2);
        }
        None
    }

    /// Releases the directory, and ends events: no write follows.
    pub fn release(&self) {
        // It goes without the lock that it is kept under: it is the environment's.
        let lock = self.lock.lock().take();
        drop(lock);
        self.events.end();
    }

    /// What a job on the keyspace has to respect.
    pub fn readers(&self, keyspace: &KeyspaceInner) -> Readers {
        self.snapshots.readers(keyspace.ttl().is_enabled().then_some(&*self.options.clock as &dyn Clock))
    }

    /// All keyspaces, in the order of their names.
    pub fn all_keyspaces(&self) -> Vec<Arc<KeyspaceInner>> {
        self.keyspaces.read().values().cloned().collect()
    }

    /// All keyspaces, and the tables that gets have searched in those that were dropped.
    pub fn keyspaces_and_searched_before(&self) -> (Vec<Arc<KeyspaceInner>>, u64) {
        let keyspaces = self.keyspaces.read();
        (keyspaces.values().cloned().collect(), self.counters.searched_in_dropped.load(Ordering::Relaxed))
    }

    /// Takes a dropped keyspace out of those that are found by name. Its counters stay.
    pub fn forget_keyspace(&self, keyspace: &KeyspaceInner) {
        let mut keyspaces = self.keyspaces.write();
        let name = keyspace.name();
        if keyspaces.get(&*name).is_some_and(|other| other.id == keyspace.id) {
            keyspaces.remove(&*name);
            self.counters.searched_in_dropped.fetch_add(keyspace.read_stats.tables(), Ordering::Relaxed);
        }
    }

    /// Gives keyspaces other names, all at once. No other keyspace has one of those.
    pub fn rename_keyspaces(&self, renamed: &[(Arc<KeyspaceInner>, Arc<str>)]) {
        let mut keyspaces = self.keyspaces.write();
        for (keyspace, _) in renamed {
            keyspaces.remove(&*keyspace.name());
        }
        for (keyspace, name) in renamed {
            keyspaces.insert(name.to_string(), Arc::clone(keyspace));
            *keyspace.name.write() = Arc::clone(name);
        }
    }

    /// Whether changes are kept for their readers.
    pub fn keeps_changes(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.keeps_changes())
    }

    /// Log segments that may still be needed.
    pub fn log_segments(&self) -> u64 {
        self.log.as_ref().map_or(self.replayed_segments, |log| log.segments())
    }

    /// The error for a write to a keyspace that is not there. Of the last thousand that were
    /// dropped the names are known.
    #[cold]
    pub fn no_keyspace(&self, id: u64) -> Error {
        let keyspace = self.dropped.name(id).unwrap_or_else(|| format!("number {id}"));
        Error::KeyspaceDropped { keyspace }
    }

    /// A number for a new file.
    pub fn next_file_number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether flush and compaction run inside the calls that need them.
    pub fn inline_jobs(&self) -> bool {
        self.options.background_threads == 0
    }

    /// Tells the background thread that there may be work.
    pub fn wake(&self) {
        let mut signals = self.signals.lock();
        signals.work = true;
        drop(signals);
        self.work_arrived.notify_one();
    }

    /// Wakes the threads that wait for background work; called once the change is visible. It takes
    /// the lock: otherwise a thread that has checked and does not sleep yet would miss the signal.
    pub fn tell_waiting(&self) {
        let _signals = self.signals.lock();
        self.work_done.notify_all();
    }

    /// The oldest write that is in no table yet, or the next one to come: what the log must still
    /// hold. Memtables in `except` count as flushed.
    pub fn oldest_unflushed(&self, except: &[Arc<Memtable>]) -> Sequence {
        let read_states =
            std::iter::once_with(|| self.all_keyspaces()).flatten().map(|keyspace| keyspace.read_state.load_full());
        oldest_unflushed(&self.last_sequence, read_states, except)
    }

    /// How far the log is on the device, for the next edit of the manifest. A log that is found to
    /// end before it is damaged: with part of it, writes would be missing that are older than those
    /// in tables.
    pub fn log_synced(&self) -> Option<Change> {
        let Position { segment, offset } = self.log.as_ref()?.durable();
        Some(Change::LogSynced { segment, offset })
    }

    /// Makes the log durable as far as it goes. If that fails, the log itself has made the handle
    /// read-only ([`ErrorState::new`]).
    pub fn sync_log(&self) -> Result<()> {
        self.refuse_in_callback()?;
        let Some(log) = &self.log else { return Ok(()) };
        let synced = self.timed(Timed::Sync, || log.sync_all());
        self.note_sync(synced)
    }

    /// Tells those who wait for syncs of the log that one has succeeded, if it has.
    pub fn note_sync(&self, synced: Result<()>) -> Result<()> {
        synced?;
        self.watchers.note_sync();
        Ok(())
    }
}
