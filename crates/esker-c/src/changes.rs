//! The change feed: what was written, in order.

use crate::caller::Caller;
use crate::change_batch::{LentBatch, LentSettings, esker_change, esker_keyspace_settings};
use crate::codes::esker_code;
use crate::failure::call;
use crate::objects::{ChangesObject, Exclusive, Feed, Handle, esker_changes, esker_db};
use esker_ffi::memory;
use std::ptr;
use std::time::Duration;

const NAME: &str = "an esker_changes";

/// Begins to read what was written from the write with the number `from` on; 0 is all that is kept.
/// The database must be one that keeps changes: `esker_options_set_keep_changes_bytes` or
/// `..._time`. With `only_durable`, only what a power failure cannot take back is read. To keep
/// something in step with the database, take over a snapshot, and go on from its sequence number
/// plus 1. ESKER_GONE if the changes are not kept any more: `esker_last_error_oldest_write`.
/// Destroy it with `esker_changes_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_changes(
    db: *mut esker_db,
    from: u64,
    only_durable: bool,
    changes: *mut *mut esker_changes,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(changes, ptr::null_mut())?;
        let changes = esker_db::get(db)?.0.changes(from)?;
        let changes = if only_durable { changes.only_durable() } else { changes };
        esker_changes::give(&output, ChangesObject(Exclusive::new(Feed { changes, batch: None, settings: None })))
    })
}

/// Destroys a reader of changes. A wait under way goes on to its end.
#[unsafe(no_mangle)]
pub extern "C" fn esker_changes_destroy(changes: *mut esker_changes) -> esker_code {
    call(|| esker_changes::close(changes).map(drop))
}

/// The next committed batch: `*count` operations, in their order, which took effect together. They
/// are lent, with all that they refer to, until the next `esker_changes_next` for this reader or
/// its end. `*count` is 0 if there is no more for now; a later call may find more. After a failure
/// the next call tries again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_changes_next(
    changes: *mut esker_changes,
    batch: *mut *const esker_change,
    count: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (start, count) = (caller.output(batch, ptr::null())?, caller.output(count, 0)?);
        let object = esker_changes::get(changes)?;
        let mut feed = object.0.lock(NAME)?;
        feed.batch = None;
        feed.batch = feed.changes.next().transpose()?.map(LentBatch::new);
        if let Some(batch) = &feed.batch {
            start.set(memory::start_of_array(&batch.changes));
            count.set(batch.changes.len());
        }
        Ok(())
    })
}

/// Waits for a write, for at most so many milliseconds; UINT64_MAX waits for as long as it takes.
/// `*more` says whether there may be more to read, also without a wait if something was written
/// since the last one. Syncs end the wait of a reader of durable changes too.
/// ESKER_READ_ONLY once the database is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_changes_wait(
    changes: *mut esker_changes,
    timeout_ms: u64,
    more: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let more = caller.output(more, false)?;
        let object = esker_changes::get(changes)?;
        more.set(object.0.lock(NAME)?.changes.wait(Duration::from_millis(timeout_ms))?);
        Ok(())
    })
}

/// The number to go on from with `esker_db_changes`: that of the next change, or a smaller one
/// above all that were read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_changes_position(changes: *mut esker_changes, sequence: *mut u64) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(sequence, 0)?;
        output.set(esker_changes::get(changes)?.0.lock(NAME)?.changes.position());
        Ok(())
    })
}

/// What the keyspace with that number, the `keyspace_id` of a change, was behind the write
/// `sequence`. `*settings` is NULL if it is not known: the keyspace was dropped before the changes
/// that are kept, or there never was one. What it was when it was created is taken for what it was
/// before that. The settings are lent until the next such call for this reader or its end; a batch
/// that is lent stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_changes_keyspace_settings(
    changes: *mut esker_changes,
    keyspace_id: u64,
    sequence: u64,
    settings: *mut *const esker_keyspace_settings,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(settings, ptr::null())?;
        let object = esker_changes::get(changes)?;
        let mut feed = object.0.lock(NAME)?;
        feed.settings = None;
        feed.settings = feed.changes.keyspace_settings(keyspace_id, sequence)?.as_ref().map(LentSettings::new);
        if let Some(lent) = &feed.settings {
            output.set(ptr::from_ref(lent.settings.as_ref()));
        }
        Ok(())
    })
}
