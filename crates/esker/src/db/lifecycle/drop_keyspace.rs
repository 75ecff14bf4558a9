//! Dropping a keyspace.
//!
//! 1. Under the writer lock: the keyspace takes no more writes, and an empty read state takes the
//!    place of its own, at a number of its own in the order of writes. From here on only snapshots
//!    registered before see it.
//! 2. The log is synced up to there, and then a new manifest is made current that is without the
//!    keyspace. The drop is durable, and so is every write before it: none is missing below it. If
//!    the disk is full, nothing has happened on it, and step 1 is taken back.
//!    Where changes are kept, the writer lock is held until then, and the number is in use from
//!    then on: a reader of changes knows of the drop before it meets a later write, and of no drop
//!    that was taken back.
//! 3. The name is free. What the keyspace held is given up: the log may forget its writes, and its
//!    files are removed once no snapshot sees it.
//!
//! Until step 2 is done the keyspace stays in `Inner::keyspaces`, and its memtables hold the log: a
//! crash must find all of it, or nothing. Flushes and compactions go on meanwhile, and install what
//! they make in what was there before; from then on they find that there is no such keyspace.

use crate::base::key::Sequence;
use crate::db::background::commit_version_edit::{self, try_renew_manifest};
use crate::db::background::run;
use crate::db::lifecycle::keyspaces::find;
use crate::db::state::inner::{Inner, KeyspaceInner, KeyspaceWriter, Writer};
use crate::db::state::memory;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::version::edit::Change;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Drops the keyspace of that name. Costs a sync of the log and a new manifest, which has all other
/// keyspaces and their tables, whatever this one holds.
pub fn drop_keyspace(inner: &Inner, name: &str) -> Result<()> {
    inner.refuse_in_callback()?;
    let changes = inner.keyspace_changes.lock();
    inner.error_state.check()?;
    if inner.log.is_none() {
        return Err(Error::ReadOnly { why: "it was opened read-only".into() });
    }
    let keyspace = find(inner, name).ok_or_else(|| Error::NotFound { what: format!("keyspace {name:?}") })?;
    inner.dropped.note_name(keyspace.id, name);
    let (empty, _) = memory::new_memtable(&keyspace.order, &inner.options, 0, 0, &inner.memory);
    let mut writer = inner.lock_writer();
    inner.error_state.check()?;
    let (sequence, taken) = take_away(&mut writer, &keyspace, empty)?;
    if !inner.keeps_changes() {
        advance(inner, &mut writer, sequence);
    }
    let mut held = inner.keeps_changes().then_some(writer);
    let done = catch_unwind(AssertUnwindSafe(|| make_durable(inner, &keyspace, sequence)));
    if !matches!(done, Ok(Ok(()))) {
        put_back(&mut held.unwrap_or_else(|| inner.lock_writer()), &keyspace, taken);
        // What was due for the keyspace is due again.
        inner.wake();
        // After a panic the handle is read-only, whatever the device has.
        return done.unwrap_or_else(|panic| resume_unwind(panic));
    }
    if let Some(mut writer) = held.take() {
        advance(inner, &mut writer, sequence);
    }
    let before = keyspace.read_state.finish_drop();
    // In this order: a sweep that does not find the keyspace any more finds what it held among what
    // only readers have.
    if let Some(before) = before {
        inner.obsolete.add(before.version.tables().map(|(_, table)| table));
        before.memtables().for_each(|memtable| inner.write_buffer_manager.note_flushed(memtable));
    }
    inner.dropped.add(sequence, Arc::clone(&keyspace));
    inner.forget_keyspace(&keyspace);
    drop(changes);
    inner.watchers.note_keyspace(keyspace.id);
    memory::rebalance(inner);
    // Writers may wait for what is not there any more.
    inner.tell_waiting();
    // The keyspace is dropped, whatever becomes of the work that is due now.
    let _ = run::work_was_added(inner);
    Ok(())
}

/// Step 1. The keyspace's place in the order of writes, and its writer.
fn take_away(
    writer: &mut Writer,
    keyspace: &KeyspaceInner,
    empty: Arc<Memtable>,
) -> Result<(Sequence, Option<Box<KeyspaceWriter>>)> {
    let sequence = writer.first_of(1)?;
    let taken = writer.keyspaces.get_mut(keyspace.id as usize).and_then(Option::take);
    keyspace.read_state.begin_drop(sequence, empty);
    Ok((sequence, taken))
}

/// Later writes come behind the drop.
fn advance(inner: &Inner, writer: &mut Writer, sequence: Sequence) {
    writer.last_sequence = sequence;
    inner.last_sequence.store(sequence, Ordering::Release);
}

/// Step 2.
fn make_durable(inner: &Inner, keyspace: &KeyspaceInner, sequence: Sequence) -> Result<()> {
    inner.sync_log()?;
    let id = keyspace.id;
    let mut changes = vec![Change::DropKeyspace { id }, Change::LastSequence(sequence)];
    if inner.keeps_changes() {
        let settings = commit_version_edit::settings(inner, id).unwrap_or_default();
        let comparator = keyspace.order.name().to_owned();
        changes.push(Change::Dropped { sequence, keyspace: id, comparator, settings });
    }
    try_renew_manifest(inner, &changes)
}

/// Takes step 1 back.
fn put_back(writer: &mut Writer, keyspace: &KeyspaceInner, mut taken: Option<Box<KeyspaceWriter>>) {
    if let Some(taken) = &mut taken {
        // It may have been supplied meanwhile.
        taken.operator = keyspace.operator();
    }
    if let Some(place) = writer.keyspaces.get_mut(keyspace.id as usize) {
        *place = taken;
    }
    keyspace.read_state.take_back_drop();
}
