//! Opening a database: creating what is missing, recovering what is there.
//!
//! 1. Take the lock.
//! 2. Read the current manifest. If nothing was ever written, make `CURRENT` durable anew.
//! 3. Open its tables.
//! 4. Replay the log into memtables: of each keyspace what is not in tables.
//! 5. If the log had not been closed, write them to tables (`recovery_flush.rs`). If it had, and is
//!    long, as well, unless the disk is full.
//! 6. Start a new log segment.
//! 7. Write a new manifest and point `CURRENT` at it.
//! 8. Remove what no manifest names.
//!
//! On a full disk, steps 2 and 5 to 7 have what the database holds back for that
//! (`wal/reserve.rs`).
//!
//! Steps 1 to 7 change nothing that a later attempt would need: recovery can be interrupted any
//! number of times. A recovery that fails removes the tables and blob files it has written: on a
//! full disk they would pile up with each attempt.

use crate::base::key::Sequence;
use crate::base::memory::{MemoryPool, PoolUser};
use crate::base::{callback, sync};
use crate::blob::BlobStore;
use crate::blob::format::file_number as blob_number;
use crate::db::background::forget_changes;
use crate::db::files::lost_edit::{self, Lost};
use crate::db::files::remover;
use crate::db::lifecycle::directory::{
    blob_store, create_directory, first_free_number, refuse_foreign_directory, refuse_missing_current,
    refuse_unfinished_checkpoint, segment_maker,
};
use crate::db::lifecycle::other_engine::refuse_other_engine;
use crate::db::lifecycle::recovery::{
    Recovering, blobs_in_use, blobs_of_replayed, open_versions, read_state, replay_log,
};
use crate::db::lifecycle::recovery_flush::write_replayed;
use crate::db::lifecycle::{guarded_callbacks, guarded_env, keep_changes, keyspaces};
use crate::db::state::counted_lock::CountedLock;
use crate::db::state::counters::Counters;
use crate::db::state::dropped_keyspaces::DroppedKeyspaces;
use crate::db::state::error_state::ErrorState;
use crate::db::state::events::Events;
use crate::db::state::inner::{Inner, KeyspaceInner, Signals, Writer};
use crate::db::state::kept_blobs::KeptBlobs;
use crate::db::state::latencies::Measured;
use crate::db::state::memory;
use crate::db::state::obsolete_tables::ObsoleteTables;
use crate::db::state::read_state::ReadState;
use crate::db::state::snapshots::SnapshotList;
use crate::db::state::thread_gate::ThreadGate;
use crate::db::state::watchers::Watchers;
use crate::db::state::write_buffer_manager::WriteBufferManager;
use crate::env::{Lock, directory_syncs};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::table::BlockCache;
use crate::version::edit::ManifestState;
use crate::version::file_name::{CURRENT, LOCK};
use crate::version::manifest::{
    InForce, Manifest, point_current, prepare_current, read_current, stamp, switch_current,
};
use crate::wal::reader::highest_number;
use crate::wal::reserve::RESERVE_BYTES;
use crate::wal::segment::{Position, SegmentMaker};
use crate::wal::writer::{Inherited, LogWriter};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Log segments at open above which what they hold is written to tables: many short openings leave
/// one each.
const MANY_SEGMENTS: usize = 4;

/// Opens for reading and writing.
pub fn open(directory: &Path, options: Options) -> Result<Inner> {
    options.validate()?;
    let (number, options) = called_by_a_database(directory, options.resolved());
    let env = Arc::clone(&options.env);
    refuse_other_engine(&*env, directory)?;
    if !options.create_if_missing && !env.exists(&directory.join(CURRENT))? {
        return Err(Error::NotFound { what: format!("database in {}", directory.display()) });
    }
    refuse_foreign_directory(&options, directory)?;
    refuse_unfinished_checkpoint(&options, directory)?;
    create_directory(&*env, directory)?;
    let lock = env.lock(&directory.join(LOCK))?;
    if options.error_if_exists && env.exists(&directory.join(CURRENT))? {
        return Err(Error::AlreadyExists { what: format!("database in {}", directory.display()) });
    }
    // First: where no manifest can be read, the open has failed, and takes nothing away.
    let found = read_current(&*env, directory)?;
    if found.is_none() {
        refuse_missing_current(&options, directory)?;
    }
    remover::remove_unfinished_repair(&*env, directory)?;
    // After the death of a process `CURRENT` may be visible without being durable; what follows
    // relies on it.
    env.sync_dir(directory)?;
    let InForce { number: old_manifest, mut state, is_torn, .. } = found.unwrap_or_else(|| InForce {
        state: ManifestState { next_file: 1, log_floor: 1, ..ManifestState::default() },
        ..InForce::default()
    });
    let cache = memory::cache(&options);
    let memory = memory::pool(&options);
    let blobs = blob_store(directory, &options);
    let maker = segment_maker(directory, &options);
    if old_manifest != 0 && state.keyspaces.is_empty() && state.last_sequence == 0 {
        // This may be the manifest of the creation, a failed sync of which may have given up the
        // name of `CURRENT`: no other sync would miss that. A log that goes on without one would
        // say that a database is lost.
        with_reserve(&maker, || point_current(&*env, directory, old_manifest))?;
    }
    let mut recovering = open_versions(directory, &options, &state, &cache, &memory, &blobs, false)?;
    let inherited = match old_manifest {
        0 => beside_interrupted_creation(directory, &options)?,
        _ => replay_log(&maker, &options, &mut state, &mut recovering, &memory, &blobs)?,
    };
    let lost = if is_torn { Lost::Torn } else { Lost::Unseen(state.last_sequence) };
    with_reserve(&maker, || {
        lost_edit::keep_tables(directory, &options, (&state, lost), &cache, &blobs_in_use(&recovering))
    })?;
    state.next_file = first_free_number(&*env, directory, state.next_file)?;
    let (first_made, resources) = (state.next_file, (&cache, &memory, &blobs));
    let begun = begin(directory, &options, state, &mut recovering, resources, (maker, inherited, old_manifest));
    let (log, manifest) = begun.inspect_err(|_| {
        recovering.clear();
        remover::remove_made_by_failed_open(&*env, directory, old_manifest, first_made);
        if old_manifest != 0 {
            segment_maker(directory, &options).reserve().hold();
        }
    })?;
    let last_sequence = manifest.state().last_sequence;
    remover::remove_orphans(&*env, directory, manifest.number(), manifest.state())?;
    let used = blobs_in_use(&recovering);
    let (keeps_changes, segment) = (log.shared().keeps_changes(), log.position().segment);
    let held = remover::remove_orphan_blobs(&*env, directory, &blobs, &used, keeps_changes)?;
    let writing = Writing { log: Some(log), manifest: Some(manifest), lock: Some(lock) };
    let inner = assemble(directory, (number, options), recovering, last_sequence, writing, (cache, memory, blobs));
    held.into_iter().for_each(|path| inner.kept_blobs.add(path, segment));
    let floor = inner.manifest.lock().as_ref().map_or(0, |manifest| manifest.state().log_floor);
    remover::release_segments(&inner, floor, true)?;
    forget_changes::forget(&inner, true)?;
    inner.log.iter().for_each(|log| log.reserve().hold());
    Ok(inner)
}

/// Does what may need more room than a full disk has with what the database holds back for that,
/// which it holds back again then: what comes next spends it by itself.
fn with_reserve(maker: &SegmentMaker, work: impl Fn() -> Result<()>) -> Result<()> {
    match work() {
        Err(error) if error.is_disk_full() && maker.reserve().spend() => {
            let done = work();
            maker.reserve().hold();
            done
        }
        other => other,
    }
}

/// An empty log. What an interrupted creation has left stays there for now, under numbers of its
/// own.
fn beside_interrupted_creation(directory: &Path, options: &Options) -> Result<Inherited> {
    let left = SegmentMaker { read_only: true, ..segment_maker(directory, options) };
    Ok(Inherited { highest_number: highest_number(&left)?, ..Inherited::default() })
}

/// Steps 5 to 7.
fn begin(
    directory: &Path,
    options: &Options,
    mut state: ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    (cache, memory, blobs): (&Arc<BlockCache>, &Arc<MemoryPool>, &Arc<BlobStore>),
    (maker, mut inherited, old_manifest): (SegmentMaker, Inherited, u64),
) -> Result<(LogWriter, Manifest)> {
    let referred_to = blobs_of_replayed(recovering);
    let is_closed = inherited.closed.is_some();
    if !is_closed || inherited.retired.len() > MANY_SEGMENTS {
        let first_made = state.next_file;
        loop {
            let written =
                write_replayed(directory, options, &mut state, recovering, (cache, memory), (blobs, is_closed));
            let Err(error) = written else { break };
            if !error.is_disk_full() {
                return Err(error);
            }
            let error = take_back(directory, options, blobs, (old_manifest, first_made), error)?;
            state.next_file = first_free_number(&*options.env, directory, first_made)?;
            // What is held back is for a segment and a manifest first.
            let is_little = recovering.values().map(replayed_bytes).sum::<u64>() < RESERVE_BYTES / 4;
            if (is_little || !is_closed) && maker.reserve().spend() {
                continue;
            }
            // The log that was closed has it all, and on a full disk deletes may be what makes
            // room: they need the database open, and no table.
            if is_closed {
                maker.reserve().hold();
                break;
            }
            return Err(error);
        }
    }
    keep_changes::decide(options, &mut state, &maker, &mut inherited);
    let log = LogWriter::start(maker, inherited)?;
    let referred = Arc::clone(blobs);
    log.shared().sync_before(Box::new(move || referred.sync()));
    if log.shared().keeps_changes() {
        if !is_closed {
            keep_changes::make_durable(options, directory, &log, &mut state, &referred_to)?;
        }
        state.changes_segment = log.shared().oldest_segment();
        state.note_given_up(log.shared().segment_before_active(), log.position().segment);
    }
    // What the log must still hold: everything replayed into memtables.
    let oldest = recovering.values().flat_map(|r| r.immutable.iter().chain([&r.memtable]));
    let oldest = oldest.filter(|m| !m.is_empty()).map(|m| m.first_sequence()).min().unwrap_or(state.last_sequence + 1);
    state.log_floor = log.shared().floor(oldest);
    // Its link is, and what comes before is in tables or was when the database was closed.
    state.log_synced = log.position().into();
    let manifest = match prepare_manifest(directory, options, state.clone()) {
        Err(error) if error.is_disk_full() && log.shared().reserve().spend() => {
            remover::remove_made_by_failed_open(&*options.env, directory, old_manifest, state.next_file);
            state.next_file += 1;
            prepare_manifest(directory, options, state)
        }
        other => other,
    };
    // Otherwise each attempt would leave one.
    let manifest = manifest.inspect_err(|_| remover::remove_unused_segment(&*options.env, directory, &log))?;
    switch_current(&*options.env, directory)?;
    Ok((log, manifest))
}

/// Bytes of what was replayed into memory.
fn replayed_bytes(recovered: &Recovering) -> u64 {
    recovered.immutable.iter().chain([&recovered.memtable]).map(|memtable| memtable.bytes() as u64).sum()
}

/// A manifest that `CURRENT` does not name yet, of the next number.
fn prepare_manifest(directory: &Path, options: &Options, mut state: ManifestState) -> Result<Manifest> {
    let number = state.next_file;
    state.next_file += 1;
    let manifest = Manifest::prepare(&*options.env, directory, number, state)?;
    prepare_current(&*options.env, directory, number)?;
    Ok(manifest)
}

/// Removes the tables and blob files of a recovery that found no room, so that the open can go on
/// without them, or try again, and returns the error.
fn take_back(
    directory: &Path,
    options: &Options,
    blobs: &BlobStore,
    (old_manifest, first_made): (u64, u64),
    error: Error,
) -> Result<Error> {
    blobs.end_job_file_unless(|_| false);
    // What was replayed refers to none of them.
    let numbers = options.env.list(directory)?.into_iter().filter_map(|name| blob_number(&name));
    numbers.filter(|&number| number >= first_made).for_each(|number| drop(blobs.forget(number)));
    remover::remove_made_by_failed_open(&*options.env, directory, old_manifest, first_made);
    Ok(error)
}

/// Opens for reading only: takes no lock and writes nothing. Sees what was in the files at this
/// moment.
pub fn open_read_only(directory: &Path, options: Options) -> Result<Inner> {
    read_beside_writer(directory, options).map(|(inner, _)| inner)
}

/// As [`open_read_only`], with what was read.
pub fn read_beside_writer(directory: &Path, options: Options) -> Result<(Inner, FoundState)> {
    options.validate()?;
    let (number, options) = called_by_a_database(directory, options.resolved());
    let (cache, memory, blobs) = (memory::cache(&options), memory::pool(&options), blob_store(directory, &options));
    let (recovering, found) = read_everything(directory, &options, (&cache, &memory, &blobs))?;
    let (writing, resources) = (Writing::default(), (cache, memory, blobs));
    let last_sequence = found.state.last_sequence;
    let mut inner = assemble(directory, (number, options), recovering, last_sequence, writing, resources);
    inner.replayed_segments = found.segments;
    inner.writer.get_mut().read_to = found.needed_end;
    inner.error_state.refuse_writes("it was opened read-only");
    Ok((inner, found))
}

/// What a reader beside a writer has found.
pub struct FoundState {
    /// With the last write in the log.
    pub state: ManifestState,
    /// The number of the manifest that it was read from, and what is to be the same as long as that
    /// is in force.
    pub manifest: u64,
    pub stamp: Option<(u64, u64)>,
    /// Log segments read, and where the last of them ended.
    pub segments: u64,
    pub log_end: Position,
    /// The same without segments at the end that nothing needs.
    pub needed_end: Position,
}

/// Reads everything, beside a writer if there is one.
pub fn read_everything(
    directory: &Path,
    options: &Options,
    (cache, memory, blobs): (&Arc<BlockCache>, &Arc<MemoryPool>, &Arc<BlobStore>),
) -> Result<(BTreeMap<u64, Recovering>, FoundState)> {
    // A writer may remove compacted tables and recycle log segments while they are read here, but
    // only after an edit of the manifest. So what is read between two reads of the same manifest is
    // one state, and a failed read may be due to a change in progress.
    const ATTEMPTS: usize = 50;
    const PATIENCE: Duration = Duration::from_millis(10);
    // Damage does not go away.
    const MOST_FAILURES: usize = 5;
    let (mut failures_unchanged, mut last) = (0, String::new());
    for _ in 0..ATTEMPTS {
        let stamp = stamp(&*options.env, directory).unwrap_or_default();
        let (result, unchanged) = match read_current(&*options.env, directory) {
            Ok(Some(before)) => {
                let result = read_state(directory, options, &before.state, cache, memory, blobs);
                let after = read_current(&*options.env, directory);
                // What vouches for an edit changes nothing else.
                let is_same = |after| InForce { vouched: before.vouched, ..after } == before;
                let unchanged = after.is_ok_and(|after| after.is_some_and(is_same));
                (result.map(|read| (before.number, read)), unchanged)
            }
            Ok(None) => return Err(Error::NotFound { what: format!("database in {}", directory.display()) }),
            // The manifest that `CURRENT` named may have been replaced, and removed before it was
            // opened.
            Err(error) => {
                refuse_other_engine(&*options.env, directory)?;
                (Err(error), true)
            }
        };
        match result {
            Ok((manifest, (recovering, state, inherited))) if unchanged => {
                let last = inherited.retired.last().map(|retired| &retired.segment);
                let end = last.map(|segment| (segment.number, segment.written.load(Ordering::Relaxed)));
                let (segments, log_end) = (inherited.retired.len() as u64, end.unwrap_or_default().into());
                let needed_end = inherited.needed_end();
                return Ok((recovering, FoundState { state, manifest, stamp, segments, log_end, needed_end }));
            }
            Err(error) if unchanged && failures_unchanged + 1 >= MOST_FAILURES => return Err(error),
            // Of failures in a row: one may be due to a writer at work.
            result => {
                failures_unchanged = if unchanged && result.is_err() { failures_unchanged + 1 } else { 0 };
                last = result.err().map_or(String::new(), |error| format!(" (the last attempt: {error})"));
            }
        }
        std::thread::sleep(PATIENCE);
    }
    let what = "the database changes too fast to be read beside its writer; try again, or read through the writer";
    Err(Error::Stalled { reason: format!("{what}{last}") })
}

/// What only a database open for writing has: all parts or none.
#[derive(Default)]
struct Writing {
    log: Option<LogWriter>,
    manifest: Option<Manifest>,
    lock: Option<Box<dyn Lock>>,
}

/// The number of a new database, and the options with what its callbacks are to know it by.
fn called_by_a_database(directory: &Path, mut options: Options) -> (callback::Database, Options) {
    let number = callback::Database::new();
    let env = directory_syncs::environment(directory, options.env);
    options.env = guarded_env::environment(number, directory, env);
    options.comparators.called_by(number);
    options.filter_policy = options.filter_policy.map(|policy| guarded_callbacks::filter_policy(number, policy));
    if !options.is_free("clock") {
        options.clock = guarded_callbacks::clock(number, options.clock);
    }
    (number, options)
}

fn assemble(
    directory: &Path,
    (number, options): (callback::Database, Options),
    recovering: BTreeMap<u64, Recovering>,
    last_sequence: Sequence,
    writing: Writing,
    (cache, memory, blobs): (Arc<BlockCache>, Arc<MemoryPool>, Arc<BlobStore>),
) -> Inner {
    let Writing { log, manifest, lock } = writing;
    let next_file = manifest.as_ref().map_or(1, |manifest| manifest.state().next_file);
    let events = Events::new(options.event_listener.clone());
    let error_state = ErrorState::new(events.clone(), log.as_ref().map(LogWriter::shared));
    let latencies = Measured::new(options.latency_histograms);
    let inner = Inner {
        directory: directory.to_path_buf(),
        number,
        write_buffer_manager: WriteBufferManager::new(&options),
        blob_threshold: options.blob_threshold(),
        options,
        checkpoints: Mutex::new(()),
        keyspace_changes: CountedLock::default(),
        jobs: CountedLock::default(),
        log: log.as_ref().map(|log| Arc::clone(log.shared())),
        writer: Mutex::new(Writer::new(log, last_sequence)),
        manifest: Mutex::new(manifest),
        manifests_left: Mutex::default(),
        signals: Mutex::new(Signals::default()),
        work_arrived: Condvar::new(),
        work_done: Condvar::new(),
        keyspaces: RwLock::new(BTreeMap::new()),
        last_sequence: sync::AtomicU64::new(last_sequence),
        next_file: AtomicU64::new(next_file),
        snapshots: Arc::new(SnapshotList::default()),
        thread_gate: ThreadGate::default(),
        cache,
        blobs,
        memory: PoolUser::new(&memory),
        memory_wanted: AtomicBool::new(false),
        order_wanted: AtomicBool::new(false),
        error_state,
        events,
        counters: Counters::default(),
        latencies,
        last_write: Mutex::new(((last_sequence, 0), Instant::now())),
        obsolete: ObsoleteTables::default(),
        dropped: DroppedKeyspaces::default(),
        kept_blobs: KeptBlobs::default(),
        watchers: Watchers::default(),
        merging: Mutex::new(None),
        shrinking: Mutex::default(),
        in_progress: Mutex::default(),
        follows: false,
        replayed_segments: 0,
        in_place_barriers: sync::AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
        lock: Mutex::new(lock),
    };
    for (id, recovered) in recovering {
        let Recovering { record, version, memtable, writer, immutable, operator, order, .. } = recovered;
        let ttl = record.ttl;
        let read_state = ReadState { immutable: immutable.into(), version, ..ReadState::of_memtable(memtable) };
        let keyspace =
            Arc::new(KeyspaceInner::new(id, record.name, order, record.operator, ttl, operator.clone(), read_state));
        keyspace.compaction.set_style(record.style);
        // What jobs of earlier processes took from under replayed operands is not known.
        keyspace.compaction.note_lost_bases(last_sequence);
        keyspaces::add(&inner, &keyspace, writer, operator);
    }
    memory::rebalance(&inner);
    inner
}
