//! What tables and log say of keyspaces whose settings are lost.

use crate::base::batch::AnyOperation;
use crate::base::key::{Kind, NEVER};
use crate::base::memory::MemoryPool;
use crate::db::lifecycle::recovery::Recovering;
use crate::error::Result;
use crate::options::Options;
use crate::table::TableKeyspace;
use crate::version::edit::{KeyspaceRecord, MAX_KEYSPACE_ID, ManifestState};
use crate::wal::reader::Record;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a report says where [`has_merges`].
pub const MERGES_OF_UNKNOWN_OPERATOR: &str = "no manifest says which operator combines the merges that only the log has: \
     it is that of the keyspace's latest table, which is wrong if another was set since";

/// What a report says where [`learn_from_log`] has taken up keyspaces.
pub const KEYSPACES_OF_THE_LOG: &str = "keyspaces that only the log has are named recovered- and their number: no manifest says what they were \
     called, and which of them were dropped";

/// A table of a keyspace that no manifest has. Settings may have been changed between two of its
/// tables: the later one has them. None is ever given up.
pub fn learn_from_table(record: &mut KeyspaceRecord, table: &TableKeyspace) {
    if record.comparator.is_empty() {
        record.comparator.clone_from(&table.comparator);
    }
    if table.flushed >= record.flushed {
        record.ttl = if table.ttl == 0 { record.ttl } else { table.ttl };
        record.operator = table.operator.clone().or(record.operator.take());
        record.name.clone_from(&table.name);
        record.flushed = table.flushed;
    }
}

/// Whether merges are replayed that an operator combines of which only the tables tell.
pub fn has_merges(
    record: &Record<'_>,
    operations: &[AnyOperation<'_>],
    restored: &BTreeSet<u64>,
    recovering: &BTreeMap<u64, Recovering>,
) -> bool {
    operations.iter().zip(record.sequence..).any(|(operation, sequence)| {
        let id = operation.keyspace();
        let kind = if let AnyOperation::Key(operation) = operation { operation.kind } else { Kind::Delete };
        matches!(kind, Kind::Merge | Kind::MergeFirst)
            && restored.contains(&id)
            && recovering.get(&id).is_some_and(|recovering| sequence > recovering.record.flushed)
    })
}

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
