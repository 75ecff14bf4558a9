//! Recovery: the tables of a database, and the log replayed into memtables on top of them.

use crate::base::batch::{AnyOperation, Operation, Operations};
use crate::base::blob_reference::{BlobReference, DistinctValues};
use crate::base::comparator::BYTEWISE;
use crate::base::expiry::Ttl;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::blob::BlobStore;
use crate::db::lifecycle::directory::segments_to_read;
use crate::db::lifecycle::keyspaces;
use crate::db::read::blob_value::MAX_MEMTABLE_BLOB_BYTES;
use crate::db::state::memory::new_memtable;
use crate::error::{Error, Result};
use crate::memtable::{Memtable, MemtableWriter, WriteContext};
use crate::merge_operator::{MergeOperator, UINT64_ADD};
use crate::options::Options;
use crate::table::{BlockCache, Table};
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::version::file_name::{self};
use crate::version::runs::Version;
use crate::wal::reader::{Record, Visited, replay};
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::Inherited;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A keyspace while the log is replayed into it.
pub struct Recovering {
    pub record: KeyspaceRecord,
    pub version: Arc<Version>,
    pub memtable: Arc<Memtable>,
    pub writer: MemtableWriter,
    /// Newest first.
    pub immutable: VecDeque<Arc<Memtable>>,
    /// The built-in operator. A custom one is not known yet: its operands are kept apart until a
    /// flush that knows it.
    pub operator: Option<Arc<dyn MergeOperator>>,
    adds_uint64: bool,
    pub expires: bool,
    pub order: KeyOrder,
    /// Not of a keyspace that only the log has, and that a repair takes for a bytewise one.
    pub knows_order: bool,
}

impl Recovering {
    /// A keyspace with nothing replayed yet.
    ///
    /// # Errors
    /// `MissingComparator`.
    pub fn new(
        record: KeyspaceRecord,
        version: Version,
        options: &Options,
        memory: &Arc<MemoryPool>,
    ) -> Result<Recovering> {
        let order = options.key_order(&record.name, &record.comparator)?;
        let (memtable, writer) = new_memtable(&order, options, 0, 0, memory);
        Ok(Recovering {
            operator: keyspaces::stored_operator(&record),
            order,
            adds_uint64: record.operator.as_deref() == Some(UINT64_ADD),
            expires: Ttl::from_stored(record.ttl).is_enabled(),
            record,
            version: Arc::new(version),
            memtable,
            writer,
            immutable: VecDeque::new(),
            knows_order: true,
        })
    }

    /// A keyspace of which only the log says anything, taken for a bytewise one.
    ///
    /// # Errors
    /// As [`Recovering::new`].
    pub fn unknown(id: u64, options: &Options, memory: &Arc<MemoryPool>) -> Result<Recovering> {
        let (name, comparator) = (format!("recovered-{id}"), BYTEWISE.to_owned());
        let record = KeyspaceRecord { name, comparator, ..KeyspaceRecord::default() };
        let new = Recovering::new(record, Version::default(), options, memory)?;
        Ok(Recovering { knows_order: false, ..new })
    }
}

/// Opens the tables of every keyspace. `beside_writer`: which may be appending to blob files.
pub fn open_versions(
    directory: &Path,
    options: &Options,
    state: &ManifestState,
    cache: &Arc<BlockCache>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
    beside_writer: bool,
) -> Result<BTreeMap<u64, Recovering>> {
    let mut recovering = BTreeMap::new();
    for (&id, record) in &state.keyspaces {
        let known = beside_writer.then(Version::default);
        let version = open_tables(directory, options, record, cache, blobs, known.as_ref())?;
        recovering.insert(id, Recovering::new(record.clone(), version, options, memory)?);
    }
    Ok(recovering)
}

/// Opens the tables of a keyspace, but for those that a reader beside a writer has open in `known`.
/// The blob files that such a reader knows may have grown.
pub fn open_tables(
    directory: &Path,
    options: &Options,
    record: &KeyspaceRecord,
    cache: &Arc<BlockCache>,
    blobs: &BlobStore,
    known: Option<&Version>,
) -> Result<Version> {
    let at_least = if known.is_some() { u64::MAX } else { 0 };
    let known = known.into_iter().flat_map(Version::tables);
    let known: BTreeMap<u64, Arc<Table>> = known.map(|(_, table)| (table.summary().file_number, table)).collect();
    let order = options.key_order(&record.name, &record.comparator)?;
    let mut tables = Vec::with_capacity(record.tables.len());
    for (&number, place) in &record.tables {
        if let Some(table) = known.get(&number) {
            tables.push((place.run, Arc::clone(table)));
            continue;
        }
        let path = directory.join(file_name::table(number));
        if !options.env.exists(&path)? {
            return Err(Error::corruption(path, 0, "the table is missing"));
        }
        let file = options.env.open(&path)?;
        if file.len() != place.bytes {
            let what = format!("the table should have {} bytes, it has {}", place.bytes, file.len());
            return Err(Error::corruption(path, file.len(), what));
        }
        let table = Table::open_in(&order, file, path, number, Arc::clone(cache), options.read_mode)?;
        table.ask_policy(options.filter_policy.as_ref());
        for &blob in table.summary().blobs.keys() {
            blobs.open_file(blob, at_least)?;
        }
        tables.push((place.run, table));
    }
    let version = Version::from_tables(tables);
    if let Some((left, right)) = version.overlap() {
        let path = directory.join(file_name::table(left));
        return Err(Error::corruption(path, 0, format!("the table overlaps table {right} of its run")));
    }
    Ok(version)
}

/// The keyspaces, the state with the last write in the log, and the log.
pub fn read_state(
    directory: &Path,
    options: &Options,
    state: &ManifestState,
    cache: &Arc<BlockCache>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
) -> Result<(BTreeMap<u64, Recovering>, ManifestState, Inherited)> {
    let mut recovering = open_versions(directory, options, state, cache, memory, blobs, true)?;
    let maker = segments_to_read(directory, options);
    let mut state = state.clone();
    let inherited = replay_log(&maker, options, &mut state, &mut recovering, memory, blobs)?;
    Ok((recovering, state, inherited))
}

pub fn replay_log(
    maker: &SegmentMaker,
    options: &Options,
    state: &mut ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    memory: &Arc<MemoryPool>,
    blobs: &BlobStore,
) -> Result<Inherited> {
    let mut last_sequence = state.last_sequence;
    let next_keyspace = state.next_keyspace;
    let mut checked = DistinctValues::default();
    let mut inherited = replay(maker, state.log_floor, state.log_synced.into(), &mut |record| {
        let operations = decode(&record)?;
        if let Some(error) = missing_value(recovering, &record, &operations, blobs, &mut checked)? {
            return Ok(Visited::Missing(error));
        }
        let last = apply_record(options, recovering, next_keyspace, &record, operations, memory)?;
        last_sequence = last_sequence.max(last);
        Ok(Visited::Last(last))
    })?;
    // Numbers are not given again, whatever became of the names of files.
    let referred = blobs_in_use(recovering).last().map_or(0, |last| last.saturating_add(1));
    state.next_file = state.next_file.max(referred);
    if let Some((number, offset)) = state.closed {
        // Behind the segment that was closed there may be others without writes, from openings that
        // were cut short.
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

/// The blob files with large values that the replayed records refer to, as far as they are not in
/// tables.
pub fn blobs_of_replayed(recovering: &BTreeMap<u64, Recovering>) -> BTreeSet<u64> {
    let memtables = recovering.values().flat_map(|target| target.immutable.iter().chain([&target.memtable]));
    memtables.flat_map(|memtable| memtable.blob_files()).collect()
}

/// The operations of a record.
pub fn decode<'a>(record: &Record<'a>) -> Result<Vec<AnyOperation<'a>>> {
    let operations = Operations::new(record.payload).collect::<std::result::Result<Vec<_>, _>>();
    operations.map_err(|error| error.at(record.path, record.offset))
}

/// Why a large value that the record refers to, and that is in no table yet, is not there as it was
/// written; `None` if all are. `checked`: the values that this log was found to refer to, which are
/// not read again.
///
/// # Errors
/// `Corruption` if the record says what no engine writes, or its blob file is not there at all:
/// that is no end of a log that a crash cut short. The name of a file is durable before a record
/// refers to it, and the file goes once the manifest says that the record is in tables: so the
/// manifest says less than it did.
pub fn missing_value(
    recovering: &BTreeMap<u64, Recovering>,
    record: &Record<'_>,
    operations: &[AnyOperation<'_>],
    blobs: &BlobStore,
    checked: &mut DistinctValues,
) -> Result<Option<Error>> {
    for (operation, sequence) in operations.iter().zip(record.sequence..) {
        let AnyOperation::Key(operation) = operation else { continue };
        if operation.kind != Kind::PutBlob {
            continue;
        }
        // Of a keyspace that was dropped nothing is needed.
        let Some(target) = recovering.get(&operation.keyspace) else { continue };
        if sequence <= target.record.flushed {
            continue;
        }
        let impossible = |what: &str| Error::corruption(record.path, record.offset, what);
        let reference = BlobReference::decode(operation.value)
            .ok_or_else(|| impossible("a reference to a large value is malformed"))?;
        if !checked.insert(reference).map_err(impossible)? {
            continue;
        }
        let end = reference.end().unwrap_or(u64::MAX);
        match blobs.open_file(reference.file, end).and_then(|file| file.read(&reference)) {
            Ok(_) => {}
            Err(error @ Error::Corruption { .. }) => {
                return if blobs.is_missing(reference.file)? { Err(error) } else { Ok(Some(error)) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Applies what is not in tables yet; returns the record's last sequence number. A keyspace below
/// `next_keyspace` that is not there was dropped, and what was written to it goes with it.
pub fn apply_record(
    options: &Options,
    recovering: &mut BTreeMap<u64, Recovering>,
    next_keyspace: u64,
    record: &Record<'_>,
    operations: Vec<AnyOperation<'_>>,
    memory: &Arc<MemoryPool>,
) -> Result<Sequence> {
    refuse_impossible_ranges(recovering, record, &operations)?;
    let mut sequence = record.sequence;
    for operation in operations {
        let id = operation.keyspace();
        let Some(target) = recovering.get_mut(&id) else {
            if id < next_keyspace && sequence <= MAX_SEQUENCE {
                sequence += 1;
                continue;
            }
            let what = format!("an operation on keyspace {id}, which does not exist");
            return Err(Error::corruption(record.path, record.offset, what));
        };
        if sequence > MAX_SEQUENCE {
            return Err(Error::corruption(record.path, record.offset, "an impossible sequence number"));
        }
        if sequence > target.record.flushed {
            let bytes = match &operation {
                AnyOperation::Key(operation) => crate::db::write::batch_size::reservation_bytes(operation),
                AnyOperation::Range(_) => 0,
            };
            let roomy = target.memtable.is_empty()
                || (target.memtable.bytes() < options.write_buffer_bytes
                    && target.memtable.blob_bytes() < MAX_MEMTABLE_BLOB_BYTES);
            if !target.writer.has_room(bytes) || !roomy {
                let (memtable, writer) = new_memtable(&target.order, options, bytes, target.writer.keys(), memory);
                let full = std::mem::replace(&mut target.memtable, memtable);
                target.writer = writer;
                if !full.is_empty() {
                    target.immutable.push_front(full);
                }
            }
            match operation {
                AnyOperation::Key(operation) => apply_operation(target, &operation, sequence),
                // One that ends before it begins deletes nothing.
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

/// Before any operation of the record is applied: a batch is there as a whole, or not at all.
fn refuse_impossible_ranges(
    recovering: &BTreeMap<u64, Recovering>,
    record: &Record<'_>,
    operations: &[AnyOperation<'_>],
) -> Result<()> {
    for operation in operations {
        let AnyOperation::Range(range) = operation else { continue };
        let is_impossible =
            |target: &Recovering| target.knows_order && target.order.is_trusted() && !range.is_possible(&target.order);
        if recovering.get(&range.keyspace).is_some_and(is_impossible) {
            let what = "a range delete that ends before it begins";
            return Err(Error::corruption(record.path, record.offset, what));
        }
    }
    Ok(())
}

fn apply_operation(target: &mut Recovering, operation: &Operation<'_>, sequence: Sequence) {
    let (operator, adds_uint64) = (target.operator.as_deref(), target.adds_uint64);
    let context = WriteContext { newest_snapshot: 0, operator, adds_uint64, reserved: 0 };
    let entry = Entry {
        key: operation.key,
        sequence,
        kind: operation.kind,
        expiry_ms: operation.expiry_ms,
        value: operation.value,
    };
    let grew_long = target.writer.apply(hash(operation.key), entry, context);
    // Where entries expire, what an operand has below it may be older than the log.
    if let (true, false, Some(operator)) = (grew_long, target.expires, operator) {
        let bottom = target.immutable.is_empty() && target.version.runs.is_empty();
        target.writer.combine_chain(hash(operation.key), operation.key, operator, bottom);
    }
}

/// The blob files that tables and what was replayed refer to.
pub fn blobs_in_use(recovering: &BTreeMap<u64, Recovering>) -> BTreeSet<u64> {
    let mut used = blobs_of_replayed(recovering);
    for recovered in recovering.values() {
        recovered.version.tables().for_each(|(_, table)| used.extend(table.summary().blobs.keys()));
    }
    used
}
