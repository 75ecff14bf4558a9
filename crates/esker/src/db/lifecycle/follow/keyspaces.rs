//! Keyspaces that come, go, and get other names and settings by the manifest that is followed.

use crate::base::key_order::KeyOrder;
use crate::db::lifecycle::follow::following::Following;
use crate::db::lifecycle::{keyspaces, settings};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::memory::new_memtable;
use crate::db::state::read_state::ReadState;
use crate::error::Result;
use crate::memtable::MemtableWriter;
use crate::version::edit::{KeyspaceRecord, ManifestState};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The orders of the keys of the keyspaces that are new in `next`.
///
/// # Errors
/// A comparator is missing.
pub fn new_orders(inner: &Inner, installed: &ManifestState, next: &ManifestState) -> Result<BTreeMap<u64, KeyOrder>> {
    let new = next.keyspaces.iter().filter(|(id, _)| !installed.keyspaces.contains_key(id));
    new.map(|(&id, record)| Ok((id, inner.options.key_order(&record.name, &record.comparator)?))).collect()
}

/// Takes over names and settings, and makes the new keyspaces, which have these `orders`, empty.
pub fn create_keyspaces(
    inner: &Inner,
    following: &mut Following,
    next: &ManifestState,
    orders: BTreeMap<u64, KeyOrder>,
) {
    take_over_names(inner, following, next);
    take_over_settings(inner, &mut following.state, next);
    for (id, order) in orders {
        let Some(record) = next.keyspaces.get(&id) else { continue };
        // One of the same name was dropped before.
        if let Some(old) = keyspaces::find(inner, &record.name) {
            drop_keyspace(inner, &mut inner.writer.lock(), &mut following.replaced, old.id);
        }
        let (active, writer) = new_memtable(&order, &inner.options, 0, 0, &inner.memory);
        add_keyspace(inner, id, (record, order), ReadState::of_memtable(active), writer);
    }
}

/// Takes over what was changed of keyspaces that are known.
fn take_over_settings(inner: &Inner, state: &mut ManifestState, next: &ManifestState) {
    for (id, record) in &next.keyspaces {
        if let Some(known) = state.keyspaces.get_mut(id)
            && let Some(keyspace) = keyspaces::find(inner, &record.name).filter(|found| found.id == *id)
        {
            settings::take_over(inner, &mut inner.writer.lock(), &keyspace, known, record);
            (known.ttl, known.operator) = (record.ttl, record.operator.clone());
        }
    }
}

/// Takes over the names of keyspaces that are known.
pub fn take_over_names(inner: &Inner, following: &mut Following, next: &ManifestState) {
    let mut renamed: Vec<(Arc<KeyspaceInner>, Arc<str>)> = Vec::new();
    for (id, record) in &next.keyspaces {
        if let Some(known) = following.state.keyspaces.get_mut(id).filter(|known| known.name != record.name)
            && let Some(keyspace) = keyspaces::find(inner, &known.name).filter(|found| found.id == *id)
        {
            known.name.clone_from(&record.name);
            renamed.push((keyspace, record.name.as_str().into()));
        }
    }
    for (_, name) in &renamed {
        // One of the same name was dropped before.
        if let Some(old) = keyspaces::find(inner, name).filter(|old| !next.keyspaces.contains_key(&old.id)) {
            drop_keyspace(inner, &mut inner.writer.lock(), &mut following.replaced, old.id);
        }
    }
    inner.rename_keyspaces(&renamed);
}

pub fn add_keyspace(
    inner: &Inner,
    id: u64,
    (record, order): (&KeyspaceRecord, KeyOrder),
    read_state: ReadState,
    writer: MemtableWriter,
) {
    let (operator, ttl) = (keyspaces::stored_operator(record), record.ttl);
    let (name, operator_name) = (record.name.clone(), record.operator.clone());
    let keyspace = Arc::new(KeyspaceInner::new(id, name, order, operator_name, ttl, operator.clone(), read_state));
    keyspace.compaction.set_style(record.style);
    keyspaces::add(inner, &keyspace, writer, operator);
}

/// Ends a keyspace that the writer has dropped. Snapshots hold what they see of it. `replaced`: as
/// in [`Following`].
pub fn drop_keyspace(inner: &Inner, writer: &mut Writer, replaced: &mut Vec<Weak<ReadState>>, id: u64) {
    let Some(taken) = writer.keyspaces.get_mut(id as usize).and_then(Option::take) else { return };
    replaced.push(Arc::downgrade(&taken.keyspace.read_state.load()));
    let (empty, _) = new_memtable(&taken.keyspace.order, &inner.options, 0, 0, &inner.memory);
    inner.dropped.note_name(id, &taken.keyspace.name());
    taken.keyspace.read_state.begin_drop(writer.last_sequence, empty);
    taken.keyspace.read_state.finish_drop();
    taken.keyspace.read_state.release_dropped();
    inner.forget_keyspace(&taken.keyspace);
}
