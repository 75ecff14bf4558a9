//! Rotation: a full memtable becomes immutable and waits for its flush.

use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory::new_memtable;
use crate::db::state::merge_settings::MergeEpoch;
use crate::db::write_controller::delay;

/// Rotates a keyspace's active memtable: it becomes immutable and waits for its flush, and an empty
/// one with room for `bytes` takes its place. Does nothing if the active memtable is empty and has
/// that room.
pub fn rotate(inner: &Inner, writer: &mut Writer, keyspace: u64, bytes: usize) {
    let Some(Some(target)) = writer.keyspaces.get(keyspace as usize) else { return };
    let empty = target.memtable.memtable().is_empty();
    if !(empty && target.memtable.has_room(bytes)) {
        rotate_to(inner, writer, keyspace, bytes, None);
    }
}

/// Rotates the active memtable even if it is empty. Later writes are combined by the merge settings
/// of `epoch`.
pub fn rotate_in_epoch(inner: &Inner, writer: &mut Writer, keyspace: u64, epoch: MergeEpoch) {
    rotate_to(inner, writer, keyspace, 0, Some(epoch));
}

fn rotate_to(inner: &Inner, writer: &mut Writer, keyspace: u64, bytes: usize, epoch: Option<MergeEpoch>) {
    let Some(Some(target)) = writer.keyspaces.get_mut(keyspace as usize) else { return };
    // The next memtable will hold about as many keys.
    let (active, memtable_writer) =
        new_memtable(&target.keyspace.order, &inner.options, bytes, target.memtable.keys(), &inner.memory);
    target.keyspace.read_state.rotate_in_epoch(&mut target.memtable, (active, memtable_writer), epoch);
    delay::begin(inner, target);
    // Others may wait for the same.
    inner.tell_waiting();
}
