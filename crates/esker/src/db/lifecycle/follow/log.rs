//! Reading on in the log that is followed, into memtables.

use crate::base::batch::{AnyOperation, Operation};
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::db::lifecycle::follow::following::Following;
use crate::db::lifecycle::follower_progress::FollowerProgress;
use crate::db::lifecycle::recovery::decode;
use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory::new_memtable;
use crate::db::write::batch_size::{add_reservation_bytes, reservation_bytes};
use crate::error::{Error, Result};
use crate::memtable::WriteContext;
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::version::manifest::{InForce, stamp};
use crate::wal::format::record_bytes;
use crate::wal::reader::Record;
use crate::wal::segment::Position;
use crate::wal::tail::{End, Taken};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// A memtable of a follower is this part of a write buffer: of one that tables hold in part, so
/// much of the log is read again.
const MEMTABLE_PART: usize = 8;

/// A follower that is more log segments than this behind the first that the writer needs reads
/// everything anew: tables instead of log.
const MOST_BEHIND: u64 = 4;

/// Step 2. `next`: the manifest as it was read before, if it has changed; a keyspace that it does
/// not know has been created since.
pub fn read_log(
    inner: &Inner,
    following: &mut Following,
    next: Option<&InForce>,
    progress: &mut FollowerProgress,
) -> Result<End> {
    let mut looked_behind = None;
    let Following { manifest, state, tail, begins, .. } = following;
    let (number, newest) = next.map_or((*manifest, &*state), |next| (next.number, &next.state));
    // All of that is in tables, also where the log is kept for readers of changes.
    if tail.position().segment + MOST_BEHIND < newest.log_floor {
        return Ok(End::Lost);
    }
    tail.read(None, &mut |record, position| {
        let operations = decode(&record)?;
        let is_known = |id: u64| state.keyspaces.contains_key(&id) || newest.was_dropped(id) || state.was_dropped(id);
        let fits = |operation: &AnyOperation<'_>| {
            state.keyspaces.get(&operation.keyspace()).is_none_or(|known| suits(known, operation))
        };
        let awaited = || operations.iter().filter(|it| !is_known(it.keyspace()) || !fits(it));
        if awaited().next().is_some() {
            // Of a keyspace that was dropped since, no manifest tells the settings any more.
            let is_over = awaited().all(|operation| newest.was_dropped(operation.keyspace()));
            return Ok(if is_over { Taken::Lost } else { Taken::NotYet });
        }
        // Merges of other settings look the same. Those that were there before the manifest was
        // looked at are of its settings, unless tables had them before that was made. Once for each
        // read of the file.
        let read = Some((record.segment, record.read_at));
        if looked_behind != read && operations.iter().any(is_merge) {
            if !is_in_force(inner, number) {
                return Ok(Taken::NotYet);
            }
            looked_behind = read;
        }
        let mut numbered = operations.iter().zip(record.sequence..);
        if number != *manifest && numbered.any(|(operation, sequence)| is_of_others(state, newest, operation, sequence))
        {
            return Ok(Taken::Lost);
        }
        refuse_impossible(inner, &record, &operations)?;
        if !values_are_there(inner, state, &operations, record.sequence)? {
            return Ok(Taken::Lost);
        }
        let bytes = record_bytes(record.payload.len());
        apply_record(inner, state, begins, (record.sequence, &operations), (position, bytes));
        operations.iter().for_each(|operation| inner.watchers.note(operation));
        progress.batches += 1;
        progress.log_bytes += bytes;
        Ok(Taken::Yes)
    })
}

/// Refuses what no engine writes, as a recovery does.
///
/// # Errors
/// `Corruption`.
fn refuse_impossible(inner: &Inner, record: &Record<'_>, operations: &[AnyOperation<'_>]) -> Result<()> {
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
        let order = target.map(|target| &target.keyspace.order);
        if order.is_some_and(|order| order.is_trusted() && !range.is_possible(order)) {
            return Err(impossible("a range delete that ends before it begins"));
        }
    }
    Ok(())
}

/// Applies what of a record is in no table. `first`: the number of its first operation; `bytes`: of
/// the record.
fn apply_record(
    inner: &Inner,
    state: &ManifestState,
    begins: &mut BTreeMap<u64, VecDeque<Position>>,
    (first, operations): (Sequence, &[AnyOperation<'_>]),
    (position, bytes): (Position, u64),
) {
    let is_new = |(operation, sequence): &(&AnyOperation<'_>, Sequence)| {
        state.keyspaces.get(&operation.keyspace()).is_some_and(|known| *sequence > known.flushed)
    };
    let new = || operations.iter().zip(first..).filter(is_new);
    let mut needs = Vec::new();
    new().for_each(|(it, _)| add_reservation_bytes(&mut needs, it.keyspace(), bytes_in_memory(it)));
    let mut writer = inner.writer.lock();
    // For all of it: in two memtables, a range that it replaces would be empty for a moment.
    for &(id, bytes) in &needs {
        make_room(inner, &mut writer, id, bytes, || begins.entry(id).or_default().push_front(position));
    }
    let (newest_snapshot, finished) = (inner.snapshots.newest(), first - 1);
    let mut reserved: usize = needs.iter().map(|(_, bytes)| bytes).sum();
    for (operation, sequence) in new() {
        reserved -= bytes_in_memory(operation);
        apply(&mut writer, operation, sequence, (newest_snapshot, finished), reserved);
    }
    writer.last_sequence = writer.last_sequence.max(finished + operations.len() as u64);
    writer.read_to = Position { offset: position.offset + bytes, ..position };
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

/// Whether the manifest of that number is in force: as long as it is, all settings are the same.
fn is_in_force(inner: &Inner, number: u64) -> bool {
    stamp(&*inner.options.env, &inner.directory).is_ok_and(|now| now.is_some_and(|(now, _)| now == number))
}

/// Whether it may be a merge of settings that came and went: operands are in tables, combined,
/// before their settings are changed. `state`: what is installed. `next`: the manifest that has
/// taken the place of that, or of several.
fn is_of_others(state: &ManifestState, next: &ManifestState, operation: &AnyOperation<'_>, sequence: Sequence) -> bool {
    let id = operation.keyspace();
    let is_flushed = |state: &ManifestState| state.keyspaces.get(&id).is_some_and(|known| sequence <= known.flushed);
    is_merge(operation) && !is_flushed(state) && (is_flushed(next) || next.was_dropped(id))
}

/// Whether the large values that the operations refer to are there; those that are in tables
/// already need not be. Opened, they can be read from here on.
fn values_are_there(
    inner: &Inner,
    state: &ManifestState,
    operations: &[AnyOperation<'_>],
    first: Sequence,
) -> Result<bool> {
    for (operation, sequence) in operations.iter().zip(first..) {
        let AnyOperation::Key(operation) = operation else { continue };
        let is_needed = state.keyspaces.get(&operation.keyspace).is_some_and(|keyspace| sequence > keyspace.flushed);
        if operation.kind != Kind::PutBlob || !is_needed {
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
