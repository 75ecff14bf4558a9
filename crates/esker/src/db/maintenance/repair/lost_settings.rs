//! What tables and log say of keyspaces whose settings are lost.

use crate::base::batch::AnyOperation;
use crate::base::key::NEVER;
use crate::base::memory::MemoryPool;
use crate::db::lifecycle::recovery::Recovering;
use crate::error::Result;
use crate::options::Options;
use crate::version::edit::{MAX_KEYSPACE_ID, ManifestState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries that expire say that they can, where the setting came after the tables that name the
/// keyspace.
pub fn learn_from_tables(state: &mut ManifestState, recovering: &mut BTreeMap<u64, Recovering>) {
    for (&id, recovering) in recovering {
        if recovering.version.tables().any(|(_, table)| table.summary().expiring_entries > 0) {
            note_expiry(state, id, recovering);
        }
    }
}

/// An operation in the log: of a keyspace that had no table yet, or lost all of them, or of one
/// whose entries can expire.
pub fn learn_from_log(
    state: &mut ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    operation: &AnyOperation<'_>,
    options: &Options,
    memory: &Arc<MemoryPool>,
) -> Result<()> {
    let id = operation.keyspace();
    if id < MAX_KEYSPACE_ID && !state.keyspaces.contains_key(&id) && !state.was_dropped(id) {
        let new = Recovering::unknown(id, options, memory)?;
        state.keyspaces.insert(id, new.record.clone());
        recovering.insert(id, new);
    }
    let expires = matches!(operation, AnyOperation::Key(operation) if operation.expiry_ms != NEVER);
    if expires && let Some(recovering) = recovering.get_mut(&id) {
        note_expiry(state, id, recovering);
    }
    Ok(())
}

fn note_expiry(state: &mut ManifestState, id: u64, recovering: &mut Recovering) {
    if let Some(record) = state.keyspaces.get_mut(&id).filter(|record| record.ttl == 0) {
        record.ttl = 1;
        recovering.record.ttl = 1;
        recovering.expires = true;
    }
}
