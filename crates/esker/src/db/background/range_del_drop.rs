//! Delete-only compaction: tables that range tombstones cover are dropped without being read.

use crate::db::background::commit_version_edit::commit;
use crate::db::files::remover;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::error::Result;
use crate::job::range_del_drop::removable;
use crate::table::Table;
use std::sync::Arc;

/// Drops all covered tables of any keyspace. The caller holds the job lock and no compaction runs.
pub fn reclaim_all(inner: &Inner) -> Result<()> {
    inner.all_keyspaces().iter().try_for_each(|keyspace| reclaim(inner, keyspace))
}

/// Removes what `job/range_del_drop.rs` finds, until it finds nothing.
fn reclaim(inner: &Inner, keyspace: &KeyspaceInner) -> Result<()> {
    loop {
        let version = Arc::clone(&keyspace.read_state.load().version);
        // A reader that registers later sees every range tombstone that is in a table.
        let numbers = removable(&version, &inner.snapshots.all());
        if numbers.is_empty() {
            return Ok(());
        }
        if !commit(inner, keyspace, Vec::new(), 0, &[], &numbers)?
            || !keyspace.read_state.replace_tables(&numbers, 0, &[])
        {
            return Ok(());
        }
        let removed = version.tables().map(|(_, table)| table);
        let removed: Vec<Arc<Table>> = removed.filter(|table| numbers.contains(&table.summary().file_number)).collect();
        drop(version);
        remover::retire_tables(inner, removed);
        inner.tell_waiting();
    }
}
