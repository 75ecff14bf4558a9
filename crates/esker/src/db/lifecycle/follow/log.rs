//! Reading on in the log that is followed, and applying what was read to memtables.

use crate::base::batch::{AnyOperation, Operation, Operations};
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::db::lifecycle::follower_progress::FollowerProgress;
use crate::db::lifecycle::recovery::decode;
use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory::new_memtable;
use crate::db::write::batch_size::{add_reservation_bytes, reservation_bytes};
use crate::error::{Error, Result};
use crate::memtable::WriteContext;
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::wal::format::record_bytes;
use crate::wal::reader::Record;
use crate::wal::segment::Position;
use crate::wal::tail::{End, LogTail, Taken};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// A memtable of a follower is this part of a write buffer: of one that tables hold in part, so
/// much of the log is read again.
const MEMTABLE_PART: usize = 8;

/// A follower that is more log segments than this behind the first that the writer needs reads
/// everything anew: tables instead of log.
const MOST_BEHIND: u64 = 4;

/// What was read of the log and is to be applied. Under a newer manifest it is so still, but for
/// what that has in tables or has dropped.
pub struct News {
    /// The batches of which something is in no table, in their order.
    batches: Vec<NewBatch>,
    /// Where reading began.
    begin: Position,
    progress: FollowerProgress,
    /// The last write, and where its batch ends.
    end: Option<(Sequence, Position)>,
    /// Behind all of it.
    tail: LogTail,
}

/// A batch that was found to be possible.
struct NewBatch {
    first: Sequence,
    payload: Vec<u8>,
    position: Position,
    /// Where it ends.
    end: Position,
}

impl News {
    /// Nothing yet.
    pub fn behind(tail: &LogTail) -> News {
        News {
            batches: Vec::new(),
            begin: tail.position(),
            progress: FollowerProgress::default(),
            end: None,
            tail: tail.clone(),
        }
    }

    /// Where reading has ended.
    pub fn position(&self) -> Position {
        self.tail.position()
    }

    pub fn into_tail(self) -> LogTail {
        self.tail
    }
}

/// Step 2: reads on to the end of the log, and changes nothing else. `newest`: the manifest as it
/// was read last, and the orders of the keyspaces that are new in it; one that it does not know has
/// been created since.
pub fn read_log(
    inner: &Inner,
    news: &mut News,
    newest: &ManifestState,
    orders: &BTreeMap<u64, KeyOrder>,
) -> Result<End> {
    // All of that is in tables, also where the log is kept for readers of changes. It bounds too
    // what is kept of attempts that fail.
    if news.begin.segment + MOST_BEHIND < newest.log_floor {
        return Ok(End::Lost);
    }
    let News { batches, progress, end, tail, .. } = news;
    tail.read(None, &mut |record, position| {
        let operations = decode(&record)?;
        refuse_impossible(inner, orders, &record, &operations)?;
        let first = record.sequence;
        let needed = operations.iter().zip(first..).filter(|(it, sequence)| is_needed(newest, it, *sequence));
        let needed: Vec<&AnyOperation<'_>> = needed.map(|(it, _)| it).collect();
        let is_known =
            |it: &&AnyOperation<'_>| newest.keyspaces.get(&it.keyspace()).is_some_and(|keyspace| suits(keyspace, it));
        if !needed.iter().all(is_known) {
            return Ok(Taken::NotYet);
        }
        if !values_are_there(inner, &needed)? {
            return Ok(Taken::Lost);
        }
        let bytes = record_bytes(record.payload.len());
        let behind = Position { offset: position.offset + bytes, ..position };
        *end = Some((first - 1 + operations.len() as u64, behind));
        progress.batches += 1;
        progress.log_bytes += bytes;
        if !needed.is_empty() {
            batches.push(NewBatch { first, payload: record.payload.to_vec(), position, end: behind });
        }
        Ok(Taken::Yes)
    })
}

/// Whether an operation of a log that goes on behind the manifest `newest` is in none of its
/// tables, and its keyspace was not dropped by then: whatever settings it was written with, it is
/// not applied otherwise.
fn is_needed(newest: &ManifestState, operation: &AnyOperation<'_>, sequence: Sequence) -> bool {
    let id = operation.keyspace();
    !newest.was_dropped(id) && newest.keyspaces.get(&id).is_none_or(|keyspace| sequence > keyspace.flushed)
}

/// Step 4: applies what was read. `state`: what is installed; `begins`: see `following.rs`.
pub fn apply_news(
    inner: &Inner,
    state: &ManifestState,
    begins: &mut BTreeMap<u64, VecDeque<Position>>,
    news: &mut News,
) -> FollowerProgress {
    for batch in std::mem::take(&mut news.batches) {
        // All of it was decoded when it was read.
        let operations: Vec<_> = Operations::new(&batch.payload).map_while(std::result::Result::ok).collect();
        apply_batch(inner, state, begins, &batch, &operations);
        operations.iter().for_each(|operation| inner.watchers.note(operation));
    }
    let mut writer = inner.writer.lock();
    let (last, read_to) = news.end.unwrap_or((0, writer.read_to));
    writer.last_sequence = writer.last_sequence.max(last).max(state.last_sequence);
    writer.read_to = read_to;
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    news.progress
}

/// Refuses what no engine writes, as a recovery does.
///
/// # Errors
/// `Corruption`.
fn refuse_impossible(
    inner: &Inner,
    orders: &BTreeMap<u64, KeyOrder>,
    record: &Record<'_>,
    operations: &[AnyOperation<'_>],
) -> Result<()> {
    let impossible = |what: &str| Error::corruption(record.path, record.offset, what);
    if record.sequence.checked_add(operations.len() as u64).is_none_or(|next| next > MAX_SEQUENCE + 1) {
        return Err(impossible("an impossible sequence number"));
    }
    let ranges = operations.iter().filter_map(|operation| match operation {
        AnyOperation::Range(range) => Some(range),
        AnyOperation::Key(_) => None,
    });
    for range in ranges {
        let writer = inner.writer.lock();
        let target = writer.keyspaces.get(range.keyspace as usize).and_then(Option::as_ref);
        let order = target.map(|target| &target.keyspace.order).or_else(|| orders.get(&range.keyspace));
        if order.is_some_and(|order| order.is_trusted() && !range.is_possible(order)) {
            return Err(impossible("a range delete that ends before it begins"));
        }
    }
    Ok(())
}

/// Applies what of a batch is in no table.
fn apply_batch(
    inner: &Inner,
    state: &ManifestState,
    begins: &mut BTreeMap<u64, VecDeque<Position>>,
    batch: &NewBatch,
    operations: &[AnyOperation<'_>],
) {
    let &NewBatch { first, position, end, .. } = batch;
    let new = || operations.iter().zip(first..).filter(|(it, sequence)| is_needed(state, it, *sequence));
    let mut needs = Vec::new();
    new().for_each(|(it, _)| add_reservation_bytes(&mut needs, it.keyspace(), bytes_in_memory(it)));
    let mut writer = inner.writer.lock();
    // For all of it: in two memtables, a range that it replaces would be empty for a moment.
    for &(id, bytes) in &needs {
        let begins = begins.entry(id).or_default();
        make_room(inner, &mut writer, id, bytes, || begins.push_front(position));
        let target = writer.keyspaces.get(id as usize).and_then(Option::as_ref);
        if let Some(begin) = begins.front_mut().filter(|_| target.is_some_and(|it| it.memtable.memtable().is_empty())) {
            *begin = position;
        }
    }
    let (newest_snapshot, finished) = (inner.snapshots.newest(), first - 1);
    let mut reserved: usize = needs.iter().map(|(_, bytes)| bytes).sum();
    for (operation, sequence) in new() {
        reserved -= bytes_in_memory(operation);
        apply(&mut writer, operation, sequence, (newest_snapshot, finished), reserved);
    }
    writer.last_sequence = writer.last_sequence.max(finished + operations.len() as u64);
    writer.read_to = end;
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
}

/// Whether a keyspace with these settings can have such an operation; otherwise they have been
/// changed since.
fn suits(record: &KeyspaceRecord, operation: &AnyOperation<'_>) -> bool {
    let has_expiry = matches!(operation, AnyOperation::Key(operation) if operation.expiry_ms != NEVER);
    (!has_expiry || record.ttl != 0) && (!is_merge(operation) || record.operator.is_some())
}

fn is_merge(operation: &AnyOperation<'_>) -> bool {
    matches!(operation, AnyOperation::Key(operation) if matches!(operation.kind, Kind::Merge | Kind::MergeFirst))
}

/// Whether the large values that the operations refer to are there. Opened, they can be read from
/// here on.
fn values_are_there(inner: &Inner, operations: &[&AnyOperation<'_>]) -> Result<bool> {
    for operation in operations {
        let AnyOperation::Key(operation) = operation else { continue };
        if operation.kind != Kind::PutBlob {
            continue;
        }
        let Some(reference) = BlobReference::decode(operation.value) else { return Ok(false) };
        // As a recovery does, the log ends before a value that is not there as it was written. A
        // file that is missing the writer has removed: its manifest tells more.
        let opened = inner.blobs.open_file(reference.file, reference.end().unwrap_or(u64::MAX));
        match opened.and_then(|file| file.read(&reference)) {
            Ok(_) => {}
            Err(Error::Corruption { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The bytes that an operation takes in the arena of a memtable, at most.
fn bytes_in_memory(operation: &AnyOperation<'_>) -> usize {
    match operation {
        AnyOperation::Key(operation) => reservation_bytes(operation),
        AnyOperation::Range(_) => 0,
    }
}

/// Rotates the memtable of the keyspace, if it is full or lacks room for so many bytes.
fn make_room(inner: &Inner, writer: &mut Writer, id: u64, bytes: usize, rotated: impl FnOnce()) {
    let Some(Some(target)) = writer.keyspaces.get_mut(id as usize) else { return };
    let is_small = target.memtable.memtable().bytes() < inner.options.write_buffer_bytes / MEMTABLE_PART;
    if target.memtable.has_room(bytes) && (is_small || target.memtable.memtable().is_empty()) {
        return;
    }
    let was_empty = target.memtable.memtable().is_empty();
    let next = new_memtable(&target.keyspace.order, &inner.options, bytes, target.memtable.keys(), &inner.memory);
    target.keyspace.read_state.rotate_memtable(&mut target.memtable, next);
    if !was_empty {
        rotated();
    }
}

/// `reserved`: arena bytes of later operations of the batch.
fn apply(
    writer: &mut Writer,
    operation: &AnyOperation<'_>,
    sequence: Sequence,
    (newest_snapshot, finished): (Sequence, Sequence),
    reserved: usize,
) {
    let Some(Some(target)) = writer.keyspaces.get_mut(operation.keyspace() as usize) else { return };
    match operation {
        AnyOperation::Key(operation) => {
            if operation.kind != Kind::Delete {
                target.keyspace.tombstone_skip_cache.note_shown(operation.key);
            }
            let operator = target.operator.as_deref();
            let context = WriteContext { newest_snapshot, operator, adds_uint64: target.adds_uint64, reserved };
            target.memtable.apply(hash(operation.key), entry(operation, sequence), context);
        }
        AnyOperation::Range(range) => {
            target.memtable.delete_range(range.start, range.end, sequence, newest_snapshot, finished);
        }
    }
}

pub fn entry<'a>(operation: &Operation<'a>, sequence: Sequence) -> Entry<'a> {
    let Operation { key, kind, expiry_ms, value, .. } = *operation;
    Entry { key, sequence, kind, expiry_ms, value }
}
