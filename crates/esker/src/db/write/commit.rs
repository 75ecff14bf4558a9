//! The write path.
//!
//! 1. The operations are encoded into one record, outside any lock.
//! 2. Under the writer lock: make room in the memtables (`make_room.rs`, or `lock_within.rs` for a
//!    write that is not to wait), append the record to the log, apply it to the memtables, and move
//!    the last sequence number.
//! 3. After the lock: wait for the device, if the write is synced.
//!
//! A sync write is visible to readers from step 2 on, before it is durable; if the sync then fails,
//! or a panic interrupts it, the handle takes no more writes (`ErrorState::new`).

use crate::base::batch::{AnyOperation, Operation, Operations, RangeDelete};
use crate::base::key::{Entry, Kind, Sequence, hash};
use crate::db::state::between_writes::begin_changes;
use crate::db::state::inner::{Inner, KeyspaceWriter, Writer};
use crate::db::state::latencies::Timed;
use crate::db::state::memory;
use crate::db::write::batch_size::{ArenaReservation, range_reservation_bytes, reservation_bytes};
use crate::db::write::collapse_operands::{LongChain, collapse};
use crate::db::write::lock_within::{Room, lock_within};
use crate::db::write::make_room::lock_with_room;
use crate::db::write::merge_expiry;
use crate::db::write_controller::wait_limit::WaitLimit;
use crate::error::{Error, Result};
use crate::memtable::{MAX_ARENA_BYTES, WriteContext};
use crate::options::{StallPolicy, WriteOptions};
use crate::wal::format::RECORD_HEADER_BYTES;
use crate::wal::segment::Position;
use crate::wal::writer::AppendError;
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Operations of a batch whose memory is prefetched.
const LOOK_AHEAD: usize = 8;

/// What a write does.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// This one operation, which is also what the record holds.
    One(Operation<'a>),
    /// As many operations as this, read from the record.
    Encoded(u64),
}

/// What becomes of a write with a precondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go ahead.
    Holds,
    /// The lock is released, and the attempt repeated from `catch_up` on.
    Repeat,
    /// Nothing is written.
    Declined,
}

/// What a write demands of the state that it is made in. Ordinary writes demand nothing, and pay
/// nothing for it. An error ends the write.
pub trait Precondition {
    /// Called before the writer lock is taken. `Declined` ends the write without the lock.
    fn catch_up(&mut self) -> Result<Verdict>;

    /// Called under the lock.
    fn holds(&mut self, writer: &Writer) -> Result<Verdict>;

    /// Called once the write is applied, before it is synced.
    #[inline]
    fn applied(&mut self) {}

    /// Called under the lock, once it is decided what merges meet: whether that is what it has
    /// looked at.
    fn still_holds(&self) -> bool {
        true
    }

    /// The time as of which it holds, if it looked at the clock.
    fn now_ms(&self) -> Option<u64> {
        None
    }
}

/// No precondition.
pub struct Unconditional;

impl Precondition for Unconditional {
    #[inline]
    fn catch_up(&mut self) -> Result<Verdict> {
        Ok(Verdict::Holds)
    }

    #[inline]
    fn holds(&mut self, _: &Writer) -> Result<Verdict> {
        Ok(Verdict::Holds)
    }
}

/// Performs one atomic write. `record` has space for the log's record header in front of the
/// encoded operations; `needs` says what each keyspace concerned has to have room for.
pub fn commit(
    inner: &Inner,
    record: &mut [u8],
    content: Content<'_>,
    needs: &[ArenaReservation],
    options: &WriteOptions,
) -> Result<()> {
    commit_if(inner, record, content, needs, options, &mut Unconditional).map(|_| ())
}

/// As [`commit`], if `precondition` holds at the place in the order of writes that the write gets:
/// nothing comes between. False if the precondition declined.
pub fn commit_if(
    inner: &Inner,
    record: &mut [u8],
    content: Content<'_>,
    needs: &[ArenaReservation],
    options: &WriteOptions,
    precondition: &mut impl Precondition,
) -> Result<bool> {
    check(inner, record.len(), needs, options)?;
    let limit = WaitLimit::begin(options.stall);
    let room = Room { needs, record_bytes: record.len(), is_logged: !options.disable_wal };
    let Some(writer) = lock_if(inner, room, limit.as_ref(), precondition)? else { return Ok(false) };
    if merge_expiry::are_altered(&writer, needs)
        && merge_expiry::check_altered(&writer, &record[RECORD_HEADER_BYTES..])?
    {
        // It may be prepared before the setting was made, and is resolved like any other by now.
        drop(writer);
        let now_ms = inner.options.clock.now_ms();
        // Both are waits of one call.
        let options = limit.map_or(*options, |limit| options.stall(limit.policy()));
        return commit_merges_if(inner, record, now_ms, needs, &options, precondition);
    }
    commit_locked(inner, writer, record, content, needs, options, precondition)?;
    Ok(true)
}

/// As [`commit_if`], with merges among the operations in `record` whose expiry is to be decided, as
/// of `now_ms`, or with changes of expiries (`merge_expiry.rs`). False also if nothing is left to
/// be written, which is then not synced either.
pub fn commit_merges_if(
    inner: &Inner,
    record: &[u8],
    now_ms: u64,
    needs: &[ArenaReservation],
    options: &WriteOptions,
    precondition: &mut impl Precondition,
) -> Result<bool> {
    let limit = WaitLimit::begin(options.stall);
    let (mut needs, mut record_bytes) = (needs.to_vec(), record.len());
    loop {
        check(inner, record.len(), &needs, options)?;
        let room = Room { needs: &needs, record_bytes, is_logged: !options.disable_wal };
        let Some(writer) = lock_if(inner, room, limit.as_ref(), precondition)? else { return Ok(false) };
        if merge_expiry::are_altered(&writer, &needs) {
            merge_expiry::check_altered(&writer, &record[RECORD_HEADER_BYTES..])?;
        }
        // What a reader has seen expired while this write was delayed stays expired.
        let now_ms = precondition.now_ms().unwrap_or_else(|| now_ms.max(inner.options.clock.now_ms()));
        let mut resolved = merge_expiry::resolve(inner, &writer, &record[RECORD_HEADER_BYTES..], now_ms)?;
        if !precondition.still_holds() {
            continue;
        }
        if resolved.count == 0 {
            return Ok(false);
        }
        let has_room =
            |need: &ArenaReservation| needs.iter().any(|(keyspace, bytes)| *keyspace == need.0 && *bytes >= need.1);
        let fits = limit.is_none() || resolved.record.len() <= record_bytes;
        if fits && resolved.needs.iter().all(has_room) {
            check(inner, resolved.record.len(), &resolved.needs, options)?;
            let content = Content::Encoded(resolved.count);
            commit_resolved(inner, writer, &mut resolved.record, content, &resolved.needs, options, precondition)?;
            return Ok(true);
        }
        // Chains have to be copied. Without other writes they only get shorter; another write makes
        // them longer.
        needs = resolved.needs;
        record_bytes = record_bytes.max(resolved.record.len());
    }
}

/// As [`commit_locked`], where a call does not matter.
#[inline(never)]
fn commit_resolved(
    inner: &Inner,
    writer: MutexGuard<'_, Writer>,
    record: &mut [u8],
    content: Content<'_>,
    needs: &[ArenaReservation],
    options: &WriteOptions,
    precondition: &mut impl Precondition,
) -> Result<()> {
    commit_locked(inner, writer, record, content, needs, options, precondition)
}

#[inline]
fn check(inner: &Inner, record_bytes: usize, needs: &[ArenaReservation], options: &WriteOptions) -> Result<()> {
    inner.refuse_in_callback()?;
    check_options(options)?;
    check_size(record_bytes, needs)
}

/// Refuses options that contradict each other.
#[inline]
pub fn check_options(options: &WriteOptions) -> Result<()> {
    if options.sync && options.disable_wal {
        return Err(Error::invalid("a write cannot be synced without the log; leave out `sync` or `disable_wal`"));
    }
    Ok(())
}

/// The log has 32 bits for a record's length, and no memtable has more than its arena.
#[inline]
fn check_size(record_bytes: usize, needs: &[ArenaReservation]) -> Result<()> {
    if u32::try_from(record_bytes).is_err() || needs.iter().any(|(_, bytes)| *bytes > MAX_ARENA_BYTES / 2) {
        return Err(Error::invalid("the batch is longer than 4 GiB; commit it in parts"));
    }
    Ok(())
}

/// Appends and applies, with the room made, and then waits for the device. Inlined: every write
/// goes through here, and a call with so many arguments is a few per cent of one.
#[inline(always)]
fn commit_locked(
    inner: &Inner,
    mut writer: MutexGuard<'_, Writer>,
    record: &mut [u8],
    content: Content<'_>,
    needs: &[ArenaReservation],
    options: &WriteOptions,
    precondition: &mut impl Precondition,
) -> Result<()> {
    let count = match content {
        Content::One(_) => 1,
        Content::Encoded(count) => count,
    };
    let first = writer.first_of(count)?;
    if let Content::One(operation) = &content {
        // The index is in memory far away; by the time the log is written it is near.
        prefetch(&writer, operation, hash(operation.key));
    }
    let mut position = None;
    let unfinished = inner.error_state.unfinished();
    if options.disable_wal {
        for (keyspace, _) in needs {
            if let Some(Some(target)) = writer.keyspaces.get(*keyspace as usize) {
                target.memtable.set_unlogged();
            }
        }
    } else {
        match append(inner, &mut writer, record, first, options.sync) {
            Ok(end) => position = Some(end),
            Err(error) => {
                unfinished.finish();
                return Err(error);
            }
        }
    }
    let newest_snapshot = inner.snapshots.newest();
    let mut long = Vec::new();
    begin_changes();
    match content {
        Content::One(operation) => {
            apply(&mut writer, operation, hash(operation.key), first, newest_snapshot, 0, &mut long);
        }
        Content::Encoded(_) => {
            apply_batch(inner, &mut writer, &record[RECORD_HEADER_BYTES..], first, newest_snapshot, needs, &mut long);
        }
    }
    writer.last_sequence = first + count - 1;
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    unfinished.finish();
    let wants_memory = std::mem::take(&mut writer.wants_memory);
    // Under the lock: see `state/watchers.rs`.
    let is_watched = inner.watchers.are_any();
    drop(writer);
    if is_watched {
        tell_watchers(inner, content, record);
    }
    precondition.applied();
    if wants_memory {
        memory::want_touched(inner);
    }
    if !long.is_empty() {
        collapse(inner, &long, options.stall == StallPolicy::Wait);
    }
    match (position, &inner.log) {
        (Some(position), Some(log)) if options.sync => {
            let synced = inner.timed(Timed::Sync, || log.sync_to(position));
            inner.note_sync(synced)
        }
        _ => Ok(()),
    }
}

#[cold]
fn tell_watchers(inner: &Inner, content: Content<'_>, record: &[u8]) {
    match content {
        Content::One(operation) => inner.watchers.note(&AnyOperation::Key(operation)),
        Content::Encoded(_) => {
            let operations = Operations::new(&record[RECORD_HEADER_BYTES..]);
            operations.flatten().for_each(|operation| inner.watchers.note(&operation));
        }
    }
}

#[inline]
fn append(inner: &Inner, writer: &mut Writer, record: &mut [u8], first: u64, sync: bool) -> Result<Position> {
    let last = writer.last_sequence;
    let Some(log) = &mut writer.log else {
        return Err(Error::ReadOnly { why: "it was opened read-only".into() });
    };
    let appended = log.append(record, first, last, sync);
    if log.take_notice() {
        // The next segment should be ready before this one is full.
        inner.wake();
    }
    appended.map_err(|error| match error {
        AppendError::NoSegment(error) => inner.error_state.note_failure(error),
        AppendError::Failed(error) => inner.error_state.poison(error),
    })
}

#[inline]
fn prefetch(writer: &Writer, operation: &Operation<'_>, hash: u64) {
    if let Some(Some(target)) = writer.keyspaces.get(operation.keyspace as usize) {
        target.memtable.prefetch(hash);
    }
}

/// Applies one operation. `reserved`: the arena bytes that later operations of the batch were
/// promised. `long`: where to add a key whose operands became many.
#[inline]
fn apply(
    writer: &mut Writer,
    operation: Operation<'_>,
    hash: u64,
    sequence: Sequence,
    newest_snapshot: Sequence,
    reserved: usize,
    long: &mut Vec<LongChain>,
) {
    // A keyspace that is not there was refused when room was made.
    let Some(Some(target)) = writer.keyspaces.get_mut(operation.keyspace as usize) else { return };
    let KeyspaceWriter { keyspace, memtable, operator, adds_uint64, .. } = &mut **target;
    let context = WriteContext { newest_snapshot, operator: operator.as_deref(), adds_uint64: *adds_uint64, reserved };
    let Operation { kind, expiry_ms, key, value, .. } = operation;
    if kind != Kind::Delete {
        keyspace.tombstone_skip_cache.note_shown(key);
    }
    if memtable.apply(hash, Entry { key, sequence, kind, expiry_ms, value }, context) {
        long.push(LongChain { keyspace: Arc::clone(keyspace), key: key.to_vec() });
    }
    writer.wants_memory |= memtable.wants_memory();
}

/// Applies the operations of a record's payload.
fn apply_batch(
    inner: &Inner,
    writer: &mut Writer,
    payload: &[u8],
    first: Sequence,
    newest_snapshot: Sequence,
    needs: &[ArenaReservation],
    long: &mut Vec<LongChain>,
) {
    // With several keyspaces in a batch the promise is kept a little too well, which only means
    // less folding.
    let mut reserved: usize = needs.iter().map(|(_, bytes)| bytes).sum();
    // The engine encoded them itself: none can fail to decode.
    let mut operations = Operations::new(payload).map_while(std::result::Result::ok).fuse();
    // A few operations ahead are known, so that the memory they need is on its way in the meantime.
    let mut ahead = VecDeque::with_capacity(LOOK_AHEAD);
    for sequence in first.. {
        while ahead.len() < LOOK_AHEAD
            && let Some(operation) = operations.next()
        {
            let hash = match &operation {
                AnyOperation::Key(operation) => {
                    let hash = hash(operation.key);
                    prefetch(writer, operation, hash);
                    hash
                }
                AnyOperation::Range(_) => 0,
            };
            ahead.push_back((operation, hash));
        }
        match ahead.pop_front() {
            None => return,
            Some((AnyOperation::Key(operation), hash)) => {
                reserved = reserved.saturating_sub(reservation_bytes(&operation));
                apply(writer, operation, hash, sequence, newest_snapshot, reserved, long);
            }
            Some((AnyOperation::Range(range), _)) => {
                reserved = reserved.saturating_sub(range_reservation_bytes(&range));
                delete_range(inner, writer, &range, sequence, newest_snapshot, first - 1);
            }
        }
    }
}

/// Applies one range delete. `finished`: the last write of the batches before this one.
fn delete_range(
    inner: &Inner,
    writer: &mut Writer,
    range: &RangeDelete<'_>,
    sequence: Sequence,
    newest_snapshot: Sequence,
    finished: Sequence,
) {
    let Some(Some(target)) = writer.keyspaces.get_mut(range.keyspace as usize) else { return };
    let before = target.memtable.memtable().range_tombstone_bytes();
    target.memtable.delete_range(range.start, range.end, sequence, newest_snapshot, finished);
    let taken = target.memtable.memtable().range_tombstone_bytes().saturating_sub(before);
    inner.write_buffer_manager.charge(taken.saturating_sub(range_reservation_bytes(range)));
}

/// The writer lock, with room for the write, and with `precondition` true; none if it declined.
/// Inlined for the reason of `commit_locked`: apart, it costs 4 % of the instructions of a merge.
#[inline(always)]
fn lock_if<'a>(
    inner: &'a Inner,
    room: Room<'_>,
    limit: Option<&WaitLimit>,
    precondition: &mut impl Precondition,
) -> Result<Option<MutexGuard<'a, Writer>>> {
    loop {
        if precondition.catch_up()? == Verdict::Declined {
            return Ok(None);
        }
        let writer = match limit {
            None => lock_with_room(inner, room.needs)?,
            Some(limit) => lock_within(inner, room, limit)?,
        };
        match precondition.holds(&writer)? {
            Verdict::Holds => return Ok(Some(writer)),
            Verdict::Declined => return Ok(None),
            Verdict::Repeat => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_length_is_cut_to_32_bits() {
        let most = u32::MAX as usize;
        let need = MAX_ARENA_BYTES / 2;
        assert!(check_size(most, &[(1, need)]).is_ok());
        for (record_bytes, needs) in [
            (most + 1, vec![(1, 100)]),
            (most + 100, vec![(1, 100)]),
            (usize::MAX, vec![]),
            (100, vec![(1, need + 1)]),
            (100, vec![(1, 100), (2, 2 * need)]),
            (100, vec![(1, usize::MAX)]),
        ] {
            let refused = check_size(record_bytes, &needs);
            assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{record_bytes} {needs:?}: {refused:?}");
        }
    }
}
