//! Room for a write: takes the writer lock once the memtables have room.
//!
//! This module waits without a limit; `lock_within.rs` takes the same steps for writes with one.

use crate::db::background::rotate::rotate;
use crate::db::background::run;
use crate::db::read::blob_value::MAX_MEMTABLE_BLOB_BYTES;
use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory;
use crate::db::state::memory::Step;
use crate::db::write::batch_size::ArenaReservation;
use crate::db::write_controller::condition::{StopCause, stop_cause};
use crate::db::write_controller::{delay, stop};
use crate::error::Result;
use crate::memtable::Memtable;
use parking_lot::MutexGuard;
use std::sync::{Arc, Weak};

/// The writer lock, with room for `needs` in the memtables.
#[inline(always)]
pub fn lock_with_room<'a>(inner: &'a Inner, needs: &[ArenaReservation]) -> Result<MutexGuard<'a, Writer>> {
    loop {
        inner.error_state.check()?;
        let mut writer = inner.lock_writer();
        // Again under the lock: a write that failed may just have released it.
        inner.error_state.check()?;
        if !inner.write_buffer_manager.has_credit(needs) && make_memory_room(inner, &mut writer, needs)? {
            continue;
        }
        let full = full_memtable(inner, &writer, needs)?;
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
            stop::wait_for_room(inner, keyspace, &full, None)?;
        }
    }
}

/// The first memtable without room for what it needs, and how much that is.
#[inline(always)]
pub fn full_memtable(inner: &Inner, writer: &Writer, needs: &[ArenaReservation]) -> Result<Option<ArenaReservation>> {
    for &(keyspace, bytes) in needs {
        let Some(Some(target)) = writer.keyspaces.get(keyspace as usize) else {
            return Err(inner.no_keyspace(keyspace));
        };
        let memtable = target.memtable.memtable();
        // One that is empty is not immutable, whatever its index takes.
        let is_small = memtable.is_empty()
            || (memtable.bytes() < target.throttle.limit_bytes && memtable.blob_bytes() < MAX_MEMTABLE_BLOB_BYTES);
        if !is_small || !target.memtable.has_room(bytes) {
            return Ok(Some((keyspace, bytes)));
        }
    }
    Ok(None)
}

/// Why a full memtable of the keyspace cannot be rotated at the moment.
#[cold]
pub fn stop_cause_of(inner: &Inner, writer: &Writer, keyspace: u64) -> Option<StopCause> {
    let target = writer.keyspaces.get(keyspace as usize)?.as_ref()?;
    stop_cause(inner, &target.keyspace)
}

/// The keyspace's active memtable, to know it by. Held on to, it would keep its memory.
#[cold]
pub fn active(writer: &Writer, keyspace: u64) -> Weak<Memtable> {
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
            MutexGuard::unlocked(writer, || stop::wait_for_room(inner, keyspace, &full, None))?;
        }
        Step::Rotate(keyspace) => {
            rotate(inner, writer, keyspace, 0);
            MutexGuard::unlocked(writer, || run::work_was_added(inner))?;
        }
        // A flush at work is waited for by its lock.
        Step::Wait if inner.inline_jobs() => MutexGuard::unlocked(writer, || run::work_was_added(inner))?,
        Step::Wait => MutexGuard::unlocked(writer, || stop::wait_for_memory(inner, needed, None))?,
    }
    Ok(true)
}
