//! The write path.
//!
//! 1. The operations are encoded into one record, outside any lock.
//! 2. Under the writer lock: make room in the memtables (`write_controller/stop.rs` if that has to
//!    wait), append the record to the log, apply it to the memtables, and move the last sequence
//!    number.
//! 3. After the lock: wait for the device, if the write is synced.
//!
//! A sync write is visible to readers from step 2 on, before it is durable; if the sync then fails,
//! the handle takes no more writes.

use crate::base::batch::{AnyOperation, Operation, Operations};
use crate::base::key::{Entry, Kind, Sequence, hash};
use crate::db::background::rotate::rotate;
use crate::db::background::run;
use crate::db::read::blob_value::MAX_MEMTABLE_BLOB_BYTES;
use crate::db::state::inner::{Inner, KeyspaceWriter, Writer};
use crate::db::state::memory;
use crate::db::state::memory::Step;
use crate::db::write::batch_size::{ArenaReservation, reservation_bytes};
use crate::db::write::collapse_operands::{LongChain, collapse};
use crate::db::write::merge_expiry;
use crate::db::write_controller::condition::{StopCause, stop_cause};
use crate::db::write_controller::{delay, stop};
use crate::error::{Error, Result};
use crate::memtable::{MAX_ARENA_BYTES, Memtable, WriteContext};
use crate::options::WriteOptions;
use crate::wal::format::RECORD_HEADER_BYTES;
use crate::wal::writer::{AppendError, Position};
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

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
    let Some(writer) = lock_if(inner, needs, precondition)? else { return Ok(false) };
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
    let mut needs = needs.to_vec();
    loop {
        check(inner, record.len(), &needs, options)?;
        let Some(writer) = lock_if(inner, &needs, precondition)? else { return Ok(false) };
        // What a reader has seen expired while this write was delayed stays expired.
        let now_ms = precondition.now_ms().unwrap_or_else(|| now_ms.max(inner.options.clock.now_ms()));
        let mut resolved = merge_expiry::resolve(inner, &writer, &record[RECORD_HEADER_BYTES..], now_ms)?;
        if resolved.count == 0 {
            return Ok(false);
        }
        let has_room =
            |need: &ArenaReservation| needs.iter().any(|(keyspace, bytes)| *keyspace == need.0 && *bytes >= need.1);
        if resolved.needs.iter().all(has_room) {
            check(inner, resolved.record.len(), &resolved.needs, options)?;
            let content = Content::Encoded(resolved.count);
            commit_resolved(inner, writer, &mut resolved.record, content, &resolved.needs, options, precondition)?;
            return Ok(true);
        }
        // Chains have to be copied. Without other writes they only get shorter; another write makes
        // them longer.
        needs = resolved.needs;
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
    let first = writer.last_sequence + 1;
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
    let count = match content {
        Content::One(operation) => {
            apply(&mut writer, operation, hash(operation.key), first, newest_snapshot, 0, &mut long);
            1
        }
        Content::Encoded(count) => {
            apply_batch(&mut writer, &record[RECORD_HEADER_BYTES..], first, newest_snapshot, needs, &mut long);
            count
        }
    };
    writer.last_sequence = first + count - 1;
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    unfinished.finish();
    let wants_memory = std::mem::take(&mut writer.wants_memory);
    drop(writer);
    precondition.applied();
    if wants_memory {
        memory::want_touched(inner);
    }
    if !long.is_empty() {
        collapse(inner, &long);
    }
    match (position, &inner.log) {
        (Some(position), Some(log)) if options.sync => {
            log.sync_to(position).map_err(|error| inner.error_state.poison(error))
        }
        _ => Ok(()),
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
        AppendError::NoSegment(error) => error,
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
            Some((AnyOperation::Range(operation), _)) => {
                let Some(Some(target)) = writer.keyspaces.get_mut(operation.keyspace as usize) else { continue };
                target.memtable.delete_range(operation.start, operation.end, sequence, newest_snapshot, first - 1);
            }
        }
    }
}

/// The writer lock, with room for `needs` in the memtables, and with `precondition` true; none if
/// it declined.
#[inline]
fn lock_if<'a>(
    inner: &'a Inner,
    needs: &[ArenaReservation],
    precondition: &mut impl Precondition,
) -> Result<Option<MutexGuard<'a, Writer>>> {
    loop {
        if precondition.catch_up()? == Verdict::Declined {
            return Ok(None);
        }
        let writer = lock_with_room(inner, needs)?;
        match precondition.holds(&writer)? {
            Verdict::Holds => return Ok(Some(writer)),
            Verdict::Declined => return Ok(None),
            Verdict::Repeat => {}
        }
    }
}

/// The writer lock, with room for `needs` in the memtables.
#[inline(always)]
fn lock_with_room<'a>(inner: &'a Inner, needs: &[ArenaReservation]) -> Result<MutexGuard<'a, Writer>> {
    loop {
        inner.error_state.check()?;
        let mut writer = inner.lock_writer();
        // Again under the lock: a write that failed may just have released it.
        inner.error_state.check()?;
        if !inner.write_buffer_manager.has_credit(needs) && make_memory_room(inner, &mut writer, needs)? {
            continue;
        }
        let mut full = None;
        for &(keyspace, bytes) in needs {
            let Some(Some(target)) = writer.keyspaces.get(keyspace as usize) else {
                return Err(inner.no_keyspace(keyspace));
            };
            let memtable = target.memtable.memtable();
            // One that is empty is not immutable, whatever its index takes.
            let is_small = memtable.is_empty()
                || (memtable.bytes() < target.throttle.limit_bytes && memtable.blob_bytes() < MAX_MEMTABLE_BLOB_BYTES);
            if !is_small || !target.memtable.has_room(bytes) {
                full = Some((keyspace, bytes));
                break;
            }
        }
        let Some((keyspace, bytes)) = full else { return Ok(writer) };
        if let Some(left) = delay::wait(inner, &mut writer, keyspace) {
            drop(writer);
            delay::sleep(inner, left);
            continue;
        }
        if stop_cause_of(inner, &writer, keyspace).is_none() {
            rotate(inner, &mut writer, keyspace, bytes);
            drop(writer);
            run::work_was_added(inner)?;
        } else {
            let full = active(&writer, keyspace);
            drop(writer);
            stop::wait_for_room(inner, keyspace, &full)?;
        }
    }
}

#[cold]
fn stop_cause_of(inner: &Inner, writer: &Writer, keyspace: u64) -> Option<StopCause> {
    let target = writer.keyspaces.get(keyspace as usize)?.as_ref()?;
    stop_cause(inner, &target.keyspace)
}

/// The keyspace's active memtable, to know it by. Held on to, it would keep its memory.
#[cold]
fn active(writer: &Writer, keyspace: u64) -> Weak<Memtable> {
    let target = writer.keyspaces.get(keyspace as usize).and_then(Option::as_ref);
    target.map_or_else(Weak::new, |target| Arc::downgrade(target.memtable.memtable()))
}

/// Brings the memtables of all keyspaces within their share of the memory budget, if they are not.
/// True if the lock was released for that.
#[cold]
fn make_memory_room(inner: &Inner, writer: &mut MutexGuard<'_, Writer>, needs: &[ArenaReservation]) -> Result<bool> {
    let needed = needs.iter().map(|(_, bytes)| bytes).sum();
    let Some(step) = memory::next_step(inner, needed) else { return Ok(false) };
    match step {
        // A memtable that cannot be rotated for another reason is waited for all the same: every
        // writer lacks the memory.
        Step::Rotate(keyspace) if stop_cause_of(inner, writer, keyspace).is_some() => {
            let full = active(writer, keyspace);
            MutexGuard::unlocked(writer, || stop::wait_for_room(inner, keyspace, &full))?;
        }
        Step::Rotate(keyspace) => {
            rotate(inner, writer, keyspace, 0);
            MutexGuard::unlocked(writer, || run::work_was_added(inner))?;
        }
        // A flush at work is waited for by its lock.
        Step::Wait if inner.inline_jobs() => MutexGuard::unlocked(writer, || run::work_was_added(inner))?,
        Step::Wait => MutexGuard::unlocked(writer, || stop::wait_for_memory(inner, needed))?,
    }
    Ok(true)
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
