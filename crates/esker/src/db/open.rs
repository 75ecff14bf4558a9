//! Opening a database: creating what is missing, recovering what is there.
//!
//! 1. Take the lock.
//! 2. Read the manifest in force.
//! 3. Open its tables.
//! 4. Replay the log into memtables: of each keyspace what is not in tables.
//! 5. If the log had not been closed, write them to tables (`replayed.rs`).
//! 6. Start a new log segment.
//! 7. Write a new manifest and point `CURRENT` at it.
//! 8. Remove what no manifest names.
//!
//! Steps 1 to 7 change nothing that a later attempt would need: recovery can be interrupted any number of times. One that fails takes away the tables it has written:
//! on a full disk they would pile up with each attempt.

use super::account::MemoryAccount;
use super::at_work::ThreadsAtWork;
use super::counters::Counters;
use super::events::Events;
use super::inner::{Inner, KeyspaceInner, Signals, Writer};
use super::large::MAX_MEMTABLE_BLOB_BYTES;
use super::memory::new_memtable;
use super::obsolete::Obsolete;
use super::snapshot::SnapshotList;
use super::views::View;
use super::{files, flushing, guarded, guarded_env, keyspaces, lost_edit, memory, replayed};
use crate::base::batch::{AnyOperation, Operation, Operations};
use crate::base::blob_reference::BlobReference;
use crate::base::callback;
use crate::base::expiry::Ttl;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, Sequence, hash};
use crate::base::memory::{MemoryPool, PoolUser};
use crate::base::sync;
use crate::blob::BlobStore;
use crate::blob::format::file_number as blob_number;
use crate::env::Lock;
use crate::error::{Error, Result};
use crate::job::large::{Copy, LargeValues};
use crate::job::output::{OutputOptions, table_options};
use crate::job::retain::Rules;
use crate::memtable::{Memtable, MemtableWriter, WriteContext};
use crate::merge_operator::UINT64_ADD;
use crate::options::{Options, WalMode};
use crate::table::{BlockCache, Table, TableKeyspace};
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::version::file_name::{
    self, CURRENT, CURRENT_TEMPORARY, LOCK, LOST, REPAIR, UNFINISHED, manifest_number, table_number,
};
use crate::version::manifest::{InForce, Manifest, read_current};
use crate::version::tree::Tree;
use crate::wal::format::MAX_SEGMENT_BYTES;
use crate::wal::reader::{Record, Visited, holds_history, replay};
use crate::wal::segment::{SegmentMaker, file_number};
use crate::wal::writer::{Inherited, LogWriter};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first log segment of a database: small, so that opening an empty one is quick.
const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// Log segments at open above which what they hold is written to tables: many short openings leave one each.
const MANY_SEGMENTS: usize = 4;

/// A keyspace while the log is replayed into it.
pub struct Recovering {
    record: KeyspaceRecord,
    pub tree: Arc<Tree>,
    memtable: Arc<Memtable>,
    writer: MemtableWriter,
    /// Newest first.
    frozen: VecDeque<Arc<Memtable>>,
    /// Large values that were found as they were written: many records may refer to one.
    checked_values: BTreeSet<BlobReference>,
}

impl Recovering {
    /// A keyspace with nothing replayed yet.
    pub fn new(record: KeyspaceRecord, tree: Tree, options: &Options, memory: &Arc<MemoryPool>) -> Recovering {
        let (memtable, writer) = new_memtable(options, 0, 0, memory);
        Recovering {
            record,
            tree: Arc::new(tree),
            memtable,
            writer,
            frozen: VecDeque::new(),
            checked_values: BTreeSet::new(),
        }
    }
}

/// Opens for reading and writing.
pub fn open(directory: &Path, options: Options) -> Result<Inner> {
    options.validate()?;
    let (number, options) = called_by_a_database(directory, options.resolved());
    let env = Arc::clone(&options.env);
    if !options.create_if_missing && !env.exists(&directory.join(CURRENT))? {
        return Err(Error::NotFound { what: format!("a database in {}", directory.display()) });
    }
    refuse_foreign_directory(&options, directory)?;
    refuse_unfinished_checkpoint(&options, directory)?;
    create_directory(&*env, directory)?;
    let lock = env.lock(&directory.join(LOCK))?;
    files::remove_unfinished_repair(&*env, directory)?;
    let found = read_current(&*env, directory)?;
    // After the death of a process `CURRENT` may be visible without being durable; what follows relies on it.
    env.sync_dir(directory)?;
    if found.is_none() {
        refuse_missing_current(&options, directory)?;
    }
    let InForce { number: old_manifest, mut state, is_torn } = found.unwrap_or_else(|| InForce {
        number: 0,
        state: ManifestState { next_file: 1, log_floor: 1, ..ManifestState::default() },
        is_torn: false,
    });
    let cache = memory::cache(&options);
    let memory = memory::pool(&options);
    let blobs = blob_store(directory, &options);
    let maker = segment_maker(directory, &options);
    let mut recovering = open_trees(directory, &options, &state, &cache, &memory, &blobs)?;
    let inherited = if old_manifest == 0 {
        Inherited { highest_number: highest_segment(&*env, directory)?, ..Inherited::default() }
    } else {
        replay_log(&maker, &options, &mut state, &mut recovering, &memory, &blobs)?
    };
    if is_torn {
        lost_edit::keep_tables(directory, &options, &state, &cache, &blobs_in_use(&recovering))?;
    }
    state.next_file = first_free_number(&*env, directory, state.next_file)?;
    let (first_made, resources) = (state.next_file, (&cache, &memory, &blobs));
    let begun = begin(directory, &options, state, &mut recovering, resources, (maker, inherited));
    let (log, manifest) = begun.inspect_err(|_| {
        recovering.clear();
        files::remove_made_by_failed_open(&*env, directory, old_manifest, first_made);
    })?;
    let last_sequence = manifest.state().last_sequence;
    files::remove_orphans(&*env, directory, manifest.number(), manifest.state(), &BTreeSet::new())?;
    files::remove_orphan_blobs(&*env, directory, &blobs, &blobs_in_use(&recovering))?;
    let writing = Writing { log: Some(log), manifest: Some(manifest), lock: Some(lock) };
    let inner = assemble(directory, (number, options), recovering, last_sequence, writing, (cache, memory, blobs));
    let floor = inner.manifest.lock().as_ref().map_or(0, |manifest| manifest.state().log_floor);
    files::release_segments(&inner, floor, true);
    Ok(inner)
}

/// Steps 5 to 7.
fn begin(
    directory: &Path,
    options: &Options,
    mut state: ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    (cache, memory, blobs): (&Arc<BlockCache>, &Arc<MemoryPool>, &Arc<BlobStore>),
    (maker, inherited): (SegmentMaker, Inherited),
) -> Result<(LogWriter, Manifest)> {
    if inherited.closed.is_none() || inherited.retired.len() > MANY_SEGMENTS {
        let is_closed = inherited.closed.is_some();
        write_replayed(directory, options, &mut state, recovering, (cache, memory), (blobs, is_closed))?;
    }
    let log = LogWriter::start(maker, inherited)?;
    let referred = Arc::clone(blobs);
    log.shared().sync_before(Box::new(move || referred.sync()));
    let number = state.next_file;
    state.next_file += 1;
    // What the log must still hold: everything replayed into memtables.
    let oldest = recovering.values().flat_map(|r| r.frozen.iter().chain([&r.memtable]));
    let oldest = oldest.filter(|m| !m.is_empty()).map(|m| m.first_sequence()).min().unwrap_or(state.last_sequence + 1);
    state.log_floor = log.shared().floor(oldest);
    // Its link is, and what comes before is in tables or was when the database was closed.
    state.log_synced = log.position().into();
    let manifest = Manifest::create(&*options.env, directory, number, state)?;
    Ok((log, manifest))
}

/// Opens for reading only: takes no lock and writes nothing. Sees what was in the files at this moment.
pub fn open_read_only(directory: &Path, options: Options) -> Result<Inner> {
    options.validate()?;
    let (number, options) = called_by_a_database(directory, options.resolved());
    let cache = memory::cache(&options);
    let memory = memory::pool(&options);
    // A writer may remove merged tables and recycle log segments while they are read here, but only after an edit of the manifest. So what was read between two
    // looks at the same manifest is one state; what failed to be read may just have been in motion.
    const ATTEMPTS: usize = 50;
    const PATIENCE: Duration = Duration::from_millis(10);
    for attempt in 1.. {
        let (result, unchanged) = match read_current(&*options.env, directory) {
            Ok(Some(before)) => {
                let blobs = blob_store(directory, &options);
                let result = read_state(directory, &options, &before.state, &cache, &memory, &blobs);
                let result = result.map(|state| (state, blobs));
                let after = read_current(&*options.env, directory);
                (result, matches!(after, Ok(Some(after)) if after == before))
            }
            Ok(None) => return Err(Error::NotFound { what: format!("a database in {}", directory.display()) }),
            // The manifest that `CURRENT` named may have been replaced, and removed before it was opened.
            Err(error) => (Err(error), true),
        };
        match result {
            Ok(((recovering, last_sequence, segments), blobs)) if unchanged => {
                let (writing, resources) = (Writing::default(), (cache, memory, blobs));
                let mut inner = assemble(directory, (number, options), recovering, last_sequence, writing, resources);
                inner.replayed_segments = segments;
                inner.condition.refuse_writes("it was opened read-only");
                return Ok(inner);
            }
            // Damage does not go away; a writer at work is not likely to be met so often.
            Err(error) if attempt >= if unchanged { 5 } else { ATTEMPTS } => return Err(error),
            Ok(_) if attempt >= ATTEMPTS => break,
            _ => std::thread::sleep(PATIENCE),
        }
    }
    let what = "the database changes too fast to be read beside its writer; try again, or read through the writer";
    Err(Error::Stalled { reason: what.into() })
}

/// The keyspaces, the last write in them, and the number of log segments read.
pub fn read_state(
    directory: &Path,
    options: &Options,
    state: &ManifestState,
    cache: &Arc<BlockCache>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
) -> Result<(BTreeMap<u64, Recovering>, Sequence, u64)> {
    let mut recovering = open_trees(directory, options, state, cache, memory, blobs)?;
    let maker = SegmentMaker { read_only: true, ..segment_maker(directory, options) };
    let mut state = state.clone();
    let inherited = replay_log(&maker, options, &mut state, &mut recovering, memory, blobs)?;
    Ok((recovering, state.last_sequence, inherited.retired.len() as u64))
}

/// The blob files in the directory.
pub fn blob_store(directory: &Path, options: &Options) -> Arc<BlobStore> {
    let (env, directory) = (Arc::clone(&options.env), directory.to_path_buf());
    Arc::new(BlobStore::new(env, directory, options.blob_file_bytes(), options.compression))
}

/// The blob files that tables and what was replayed refer to.
fn blobs_in_use(recovering: &BTreeMap<u64, Recovering>) -> BTreeSet<u64> {
    let mut used = BTreeSet::new();
    for recovered in recovering.values() {
        recovered.tree.tables().for_each(|(_, table)| used.extend(table.summary().blobs.keys()));
        let memtables = recovered.frozen.iter().chain([&recovered.memtable]);
        memtables.for_each(|memtable| used.extend(memtable.blob_files()));
    }
    used
}

pub fn segment_maker(directory: &Path, options: &Options) -> SegmentMaker {
    // Room for the header, the link and a small record, whatever was asked for.
    let largest_bytes = options.wal_segment_bytes.clamp(256, MAX_SEGMENT_BYTES);
    SegmentMaker {
        env: Arc::clone(&options.env),
        directory: directory.to_path_buf(),
        mapped: options.wal_mode == WalMode::Mapped,
        in_foreground: options.background_threads == 0,
        read_only: false,
        smallest_bytes: FIRST_SEGMENT_BYTES.min(largest_bytes),
        largest_bytes,
    }
}

/// Whether the engine makes files of that name.
pub fn is_ours(name: &str) -> bool {
    matches!(name, CURRENT | CURRENT_TEMPORARY | LOCK | LOST | REPAIR | UNFINISHED)
        || file_number(name).is_some()
        || table_number(name).is_some()
        || blob_number(name).is_some()
        || manifest_number(name).is_some()
}

/// A directory that holds something else is not made a database.
fn refuse_foreign_directory(options: &Options, directory: &Path) -> Result<()> {
    if !options.env.exists(directory)? || options.env.exists(&directory.join(CURRENT))? {
        return Ok(());
    }
    match options.env.list(directory)?.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "{} holds files of something else ({name}); choose an empty directory",
            directory.display()
        ))),
    }
}

/// A copy of a database that was not finished is neither one nor an empty directory.
pub fn refuse_unfinished_checkpoint(options: &Options, directory: &Path) -> Result<()> {
    let exists = |name: &str| options.env.exists(&directory.join(name));
    if !exists(UNFINISHED)? || exists(CURRENT)? {
        return Ok(());
    }
    Err(Error::invalid(format!("{} is an unfinished checkpoint; make another one", directory.display())))
}

/// Without `CURRENT`, only what creating a database leaves when it is interrupted may be there.
pub fn refuse_missing_current(options: &Options, directory: &Path) -> Result<()> {
    let missing =
        |what: String| Err(Error::corruption(directory.join(CURRENT), 0, format!("the file is missing, but {what}")));
    for name in options.env.list(directory)? {
        if table_number(&name).is_some() {
            return missing(format!("there is a table, {name}"));
        }
        if blob_number(&name).is_some() {
            return missing(format!("there is a blob file, {name}"));
        }
    }
    // A log that was written to, or goes on from an earlier one, belongs to a database whose `CURRENT` got lost.
    let maker = SegmentMaker { read_only: true, ..segment_maker(directory, options) };
    if holds_history(&maker)? { missing("the log holds writes".into()) } else { Ok(()) }
}

fn highest_segment(env: &dyn crate::env::Env, directory: &Path) -> Result<u64> {
    Ok(env.list(directory)?.iter().filter_map(|name| file_number(name)).max().unwrap_or(0))
}

/// Creates the directory and its parents, and makes all their names durable.
///
/// One at a time, outermost first, each durable before the next is made: so all that contains a directory that exists is durable, and after an
/// attempt that was cut short only the innermost may not be.
pub fn create_directory(env: &dyn crate::env::Env, directory: &Path) -> Result<()> {
    let named = |path: &Path| !path.as_os_str().is_empty();
    let mut unsure = Vec::new();
    for ancestor in directory.ancestors().filter(|path| named(path)) {
        unsure.push(ancestor);
        if env.exists(ancestor)? {
            break;
        }
    }
    for path in unsure.iter().rev() {
        env.create_dir_all(path)?;
        let parent = path.parent().filter(|path| named(path)).unwrap_or(Path::new("."));
        env.sync_dir(parent)?;
    }
    Ok(())
}

/// A number above that of every file there is, named by the manifest or not.
pub fn first_free_number(env: &dyn crate::env::Env, directory: &Path, at_least: u64) -> Result<u64> {
    let names = env.list(directory)?;
    let number_in = |name: &String| table_number(name).or_else(|| manifest_number(name)).or_else(|| blob_number(name));
    let numbers = names.iter().filter_map(number_in);
    Ok(numbers.map(|number| number + 1).chain([at_least]).max().unwrap_or(at_least))
}

/// Opens the tables of every keyspace.
pub fn open_trees(
    directory: &Path,
    options: &Options,
    state: &ManifestState,
    cache: &Arc<BlockCache>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
) -> Result<BTreeMap<u64, Recovering>> {
    let mut recovering = BTreeMap::new();
    for (&id, record) in &state.keyspaces {
        let mut tables = Vec::with_capacity(record.tables.len());
        for (&number, place) in &record.tables {
            let path = directory.join(file_name::table(number));
            if !options.env.exists(&path)? {
                return Err(Error::corruption(path, 0, "the table is missing"));
            }
            let file = options.env.open(&path)?;
            if file.len() != place.bytes {
                let what = format!("the table should have {} bytes, it has {}", place.bytes, file.len());
                return Err(Error::corruption(path, file.len(), what));
            }
            let table = Table::open(file, path, number, Arc::clone(cache), options.read_mode)?;
            for &blob in table.summary().blobs.keys() {
                blobs.open_file(blob, 0)?;
            }
            tables.push((place.run, table));
        }
        let tree = Tree::from_tables(tables);
        if let Some((left, right)) = tree.overlap() {
            let path = directory.join(file_name::table(left));
            return Err(Error::corruption(path, 0, format!("the table overlaps table {right} of its run")));
        }
        recovering.insert(id, Recovering::new(record.clone(), tree, options, memory));
    }
    Ok(recovering)
}

/// Writes every memtable to tables (`replayed.rs` says why), and notes that in `state`, which is in no manifest yet. Large values are copied, unless they are known
/// to be on the device, because the log was closed.
pub fn write_replayed(
    directory: &Path,
    options: &Options,
    state: &mut ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    (cache, memory): (&Arc<BlockCache>, &Arc<MemoryPool>),
    (blobs, is_closed): (&BlobStore, bool),
) -> Result<()> {
    let next = AtomicU64::new(state.next_file);
    let next_file = || next.fetch_add(1, Relaxed);
    let mut output = OutputOptions {
        env: &*options.env,
        directory: directory.to_path_buf(),
        table: table_options(options, true),
        keyspace: TableKeyspace::default(),
        flushed: 0,
        target_file_bytes: options.target_file_bytes,
        cache: Arc::clone(cache),
        read_mode: options.read_mode,
        next_file: &next_file,
        large: LargeValues {
            store: blobs,
            threshold: options.large_threshold(),
            copy: if is_closed { Copy::From(&|_| false) } else { Copy::All },
            one_by_one: true,
        },
    };
    for (&id, recovered) in recovering.iter_mut() {
        output.keyspace = recovered.record.label(id);
        let newest = Some(Arc::clone(&recovered.memtable)).filter(|memtable| !memtable.is_empty());
        let memtables: Vec<Arc<Memtable>> = recovered.frozen.drain(..).rev().chain(newest).collect();
        let operator = keyspaces::stored_operator(&recovered.record);
        let expires = Ttl::from_stored(recovered.record.ttl).is_enabled();
        // Nothing goes here because it has expired: the clock may have been wrong since the machine started. Reads hide it, and later merges drop it.
        let rules = Rules { expires, operator: operator.as_deref(), ..Rules::default() };
        let (tree, changes) = replayed::write(&memtables, &recovered.tree, rules, &mut output)?;
        for change in &changes {
            state.apply(change).map_err(|what| Error::corruption(directory.join(CURRENT), 0, what))?;
        }
        recovered.tree = Arc::new(tree);
        (recovered.memtable, recovered.writer) = new_memtable(options, 0, 0, memory);
    }
    state.next_file = next.into_inner();
    Ok(())
}

fn replay_log(
    maker: &SegmentMaker,
    options: &Options,
    state: &mut ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
) -> Result<Inherited> {
    let mut last_sequence = state.last_sequence;
    let mut inherited = replay(maker, state.log_floor, state.log_synced.into(), &mut |record| {
        if let Some(error) = missing_value(recovering, &record, blobs)? {
            return Ok(Visited::Missing(error));
        }
        let last = apply_record(options, recovering, &record, memory)?;
        last_sequence = last_sequence.max(last);
        Ok(Visited::Last(last))
    })?;
    // Numbers are not given again, whatever became of the names of files.
    let referred = blobs_in_use(recovering).last().map_or(0, |last| last.saturating_add(1));
    state.next_file = state.next_file.max(referred);
    if let Some((number, offset)) = state.closed {
        // Behind the segment that was closed there may be others without writes, from openings that were cut short.
        let closed = inherited.retired.iter().find(|retired| retired.segment.number == number);
        let end = closed.map(|retired| retired.segment.written.load(Relaxed));
        if end != Some(offset) || inherited.last_with_batches > number {
            let path = closed.map_or_else(|| maker.directory.clone(), |retired| retired.segment.path.clone());
            let what = format!("the database was closed with its log ending at offset {offset} of segment {number}");
            return Err(Error::corruption(path, end.unwrap_or(0), what));
        }
        inherited.closed = Some(number);
    }
    state.last_sequence = last_sequence;
    Ok(inherited)
}

/// Why a large value that the record refers to, and that is in no table yet, is not there as it was written; `None` if all are.
pub fn missing_value(
    recovering: &mut BTreeMap<u64, Recovering>,
    record: &Record<'_>,
    blobs: &BlobStore,
) -> Result<Option<Error>> {
    // What cannot be decoded is for whoever applies the record.
    let operations = Operations::new(record.payload).map_while(std::result::Result::ok);
    for (operation, sequence) in operations.zip(record.sequence..) {
        let AnyOperation::Key(operation) = operation else { continue };
        let mut target = recovering.get_mut(&operation.keyspace);
        let flushed = target.as_ref().map_or(0, |target| target.record.flushed);
        if operation.kind != Kind::PutLarge || sequence <= flushed {
            continue;
        }
        let Some(reference) = BlobReference::decode(operation.value) else {
            let what = "a reference to a large value is malformed";
            return Err(Error::corruption(record.path, record.offset, what));
        };
        let end = reference.end().unwrap_or(u64::MAX);
        if target.as_mut().is_some_and(|target| !target.checked_values.insert(reference)) {
            continue;
        }
        match blobs.open_file(reference.file, end).and_then(|file| file.read(&reference)) {
            Ok(_) => {}
            Err(error @ Error::Corruption { .. }) => return Ok(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Applies what is not in tables yet; returns the record's last sequence number.
pub fn apply_record(
    options: &Options,
    recovering: &mut BTreeMap<u64, Recovering>,
    record: &Record<'_>,
    memory: &Arc<MemoryPool>,
) -> Result<Sequence> {
    let mut sequence = record.sequence;
    for operation in Operations::new(record.payload) {
        let operation = operation.map_err(|error| error.at(record.path, record.offset))?;
        let Some(target) = recovering.get_mut(&operation.keyspace()) else {
            let what = format!("an operation on keyspace {}, which does not exist", operation.keyspace());
            return Err(Error::corruption(record.path, record.offset, what));
        };
        if sequence > MAX_SEQUENCE {
            return Err(Error::corruption(record.path, record.offset, "an impossible sequence number"));
        }
        if sequence > target.record.flushed {
            let bytes = match &operation {
                AnyOperation::Key(operation) => super::record::need_of(operation),
                AnyOperation::Range(_) => 0,
            };
            let roomy = target.memtable.is_empty()
                || (target.memtable.bytes() < options.write_buffer_bytes
                    && target.memtable.blob_bytes() < MAX_MEMTABLE_BLOB_BYTES);
            if !target.writer.has_room(bytes) || !roomy {
                let (memtable, writer) = new_memtable(options, bytes, target.writer.keys(), memory);
                let full = std::mem::replace(&mut target.memtable, memtable);
                target.writer = writer;
                if !full.is_empty() {
                    target.frozen.push_front(full);
                }
            }
            match operation {
                AnyOperation::Key(operation) => apply_operation(target, &operation, sequence),
                AnyOperation::Range(range) => {
                    target.writer.delete_range(range.start, range.end, sequence, 0, sequence - 1);
                }
            }
        }
        sequence += 1;
    }
    if sequence == record.sequence {
        return Err(Error::corruption(record.path, record.offset, "an empty batch"));
    }
    Ok(sequence - 1)
}

fn apply_operation(target: &mut Recovering, operation: &Operation<'_>, sequence: Sequence) {
    // A custom operator is not known yet: its operands are kept apart until a flush that knows it.
    let operator = keyspaces::stored_operator(&target.record);
    let adds_uint64 = target.record.operator.as_deref() == Some(UINT64_ADD);
    let context = WriteContext { newest_snapshot: 0, operator: operator.as_deref(), adds_uint64, reserved: 0 };
    let entry = Entry {
        key: operation.key,
        sequence,
        kind: operation.kind,
        expiry_ms: operation.expiry_ms,
        value: operation.value,
    };
    let grew_long = target.writer.apply(hash(operation.key), entry, context);
    // Where entries expire, what an operand has below it may be older than the log.
    if let (true, false, Some(operator)) = (grew_long, Ttl::from_stored(target.record.ttl).is_enabled(), operator) {
        let bottom = target.frozen.is_empty() && target.tree.runs.is_empty();
        target.writer.combine_chain(hash(operation.key), operation.key, &*operator, bottom);
    }
}

/// What only a database open for writing has: all of it or nothing.
#[derive(Default)]
struct Writing {
    log: Option<LogWriter>,
    manifest: Option<Manifest>,
    lock: Option<Box<dyn Lock>>,
}

/// The number of a new database, and the options with what its callbacks are to know it by.
fn called_by_a_database(directory: &Path, mut options: Options) -> (callback::Database, Options) {
    let number = callback::Database::new();
    options.env = guarded_env::environment(number, directory, options.env);
    if !options.is_free("clock") {
        options.clock = guarded::clock(number, options.clock);
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
    let inner = Inner {
        directory: directory.to_path_buf(),
        number,
        account: MemoryAccount::new(&options),
        large_threshold: options.large_threshold(),
        options,
        checkpoints: Mutex::new(()),
        jobs: Mutex::new(()),
        log: log.as_ref().map(|log| Arc::clone(log.shared())),
        writer: Mutex::new(Writer { log, keyspaces: Vec::new(), last_sequence, wants_memory: false }),
        manifest: Mutex::new(manifest),
        signals: Mutex::new(Signals::default()),
        work_arrived: Condvar::new(),
        work_done: Condvar::new(),
        keyspaces: RwLock::new(BTreeMap::new()),
        last_sequence: sync::AtomicU64::new(last_sequence),
        next_file: AtomicU64::new(next_file),
        snapshots: Arc::new(SnapshotList::default()),
        unlocked: ThreadsAtWork::default(),
        cache,
        blobs,
        flushed: Mutex::new(Vec::new()),
        memory: PoolUser::new(&memory),
        memory_wanted: AtomicBool::new(false),
        order_wanted: AtomicBool::new(false),
        condition: super::health::Condition::new(events.clone()),
        events,
        counters: Counters::default(),
        last_write: Mutex::new(((last_sequence, 0), Instant::now())),
        obsolete: Obsolete::default(),
        merging: Mutex::new(None),
        shrinking: Mutex::default(),
        in_progress: Mutex::default(),
        replayed_segments: 0,
        closing: sync::AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        lock: Mutex::new(lock),
    };
    for (id, recovered) in recovering {
        let Recovering { record, tree, memtable, writer, frozen, .. } = recovered;
        let ttl = Ttl::from_stored(record.ttl);
        let operator = keyspaces::stored_operator(&record);
        let view = View { active: memtable, frozen: frozen.into(), tree };
        let style = record.style;
        let keyspace = Arc::new(KeyspaceInner::new(id, record.name, record.operator, ttl, operator.clone(), view));
        keyspace.compaction.set_style(style);
        keyspaces::add(&inner, &keyspace, writer, operator);
    }
    memory::rebalance(&inner);
    inner
}

/// Stops accepting writes, makes everything durable and marks the end of the log. The handle is unusable for writes afterwards.
pub fn close(inner: &Inner) -> Result<()> {
    if inner.manifest.lock().is_none() {
        return Ok(());
    }
    // Most of the flush before the locks; what comes in meanwhile is flushed under them.
    let flushed = if has_unlogged_writes(inner) { flushing::flush_now(inner) } else { Ok(()) };
    // Now: a merge at work gives up instead of being waited for.
    inner.stopping.store(true, Ordering::Release);
    let _jobs = inner.jobs.lock();
    let mut writer = inner.writer.lock();
    inner.closing.store(true, Ordering::Release);
    inner.unlocked.wait_for_all();
    let result = flushed.and_then(|()| finish(inner, &mut writer));
    // Whatever became of it: the caller releases the lock on the directory, and then somebody else may write there.
    inner.condition.refuse_writes("it was closed");
    result
}

fn finish(inner: &Inner, writer: &mut Writer) -> Result<()> {
    inner.condition.check()?;
    if has_unlogged_writes(inner) {
        flushing::flush_locked(inner, writer)?;
    }
    let Some(log) = &mut writer.log else { return Ok(()) };
    log.close()?;
    let end = log.position();
    let mut manifest = inner.manifest.lock();
    if let Some(manifest) = &mut *manifest {
        manifest.commit(&[
            crate::version::edit::Change::LastSequence(inner.last_sequence.load(Ordering::Acquire)),
            crate::version::edit::Change::Closed { segment: end.segment, offset: end.offset },
        ])?;
    }
    Ok(())
}

fn has_unlogged_writes(inner: &Inner) -> bool {
    inner.all_keyspaces().iter().any(|keyspace| {
        let view = keyspace.view.load();
        view.frozen.iter().chain([&view.active]).any(|memtable| memtable.has_unlogged_writes())
    })
}
