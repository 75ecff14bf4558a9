//! Statistics and health as pairs of a name and a text, so that an exporter needs no code for each
//! figure.
//!
//! Names do not change once they are here. Those of a keyspace are `esker.keyspace.`, its name, a
//! dot and a word without dots.

use crate::db::maintenance::stats::{KeyspaceStats, Stats};
use crate::db::state::error_state::Health;
use crate::db::state::memory::MemoryStats;

/// Every property, the most useful first.
pub fn properties(stats: &Stats, health: &Health) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: String| all.push((format!("esker.{name}"), value));
    add("health.writable", health.writable.to_string());
    add("health.problem", health.problem.clone().unwrap_or_default());
    add("health.stall_reason", health.stall_reason.clone().unwrap_or_default());
    add("health.failed_merges", health.failed_merges.to_string());
    for (name, value) in numbers(stats) {
        add(name, value.to_string());
    }
    for keyspace in &stats.keyspaces {
        for (name, value) in keyspace_numbers(keyspace) {
            add(&format!("keyspace.{}.{name}", keyspace.name), value.to_string());
        }
        let operator = keyspace.merge_operator.clone().unwrap_or_default();
        add(&format!("keyspace.{}.merge_operator", keyspace.name), operator);
    }
    all
}

// Both take their argument apart as a whole, so that a new figure cannot be forgotten here.

fn numbers(stats: &Stats) -> Vec<(&'static str, u64)> {
    let Stats {
        wal_bytes,
        flush_bytes,
        compaction_bytes,
        compaction_read_bytes,
        tables_dropped,
        skipped_entries,
        expired_entries,
        flushes,
        compactions,
        memtable_bytes,
        table_bytes,
        table_files,
        cache_bytes,
        cache_hits,
        cache_misses,
        tables_searched,
        filter_and_index_bytes,
        delays,
        delay_micros,
        stall_micros,
        stalls,
        refused_writes,
        live_snapshots,
        last_sequence,
        wal_segments,
        memory,
        longest_merge_chain,
        blob_files,
        blob_bytes,
        live_blob_bytes,
        blob_written_bytes,
        keyspaces,
    } = stats;
    let mut numbers = vec![
        ("memtable.bytes", *memtable_bytes),
        ("table.bytes", *table_bytes),
        ("table.files", *table_files),
        ("blob.files", *blob_files),
        ("blob.bytes", *blob_bytes),
        ("blob.live_bytes", *live_blob_bytes),
        ("blob.written_bytes", *blob_written_bytes),
        ("table.filter_and_index_bytes", *filter_and_index_bytes),
        ("cache.bytes", *cache_bytes),
        ("cache.hits", *cache_hits),
        ("cache.misses", *cache_misses),
        ("get.tables_searched", *tables_searched),
        ("wal.bytes", *wal_bytes),
        ("wal.segments", *wal_segments),
        ("flush.count", *flushes),
        ("flush.bytes", *flush_bytes),
        ("compaction.count", *compactions),
        ("compaction.bytes", *compaction_bytes),
        ("compaction.read_bytes", *compaction_read_bytes),
        ("compaction.tables_dropped", *tables_dropped),
        ("compaction.expired_entries", *expired_entries),
        ("scan.skipped_entries", *skipped_entries),
        ("delay.count", *delays),
        ("delay.micros", *delay_micros),
        ("stall.count", *stalls),
        ("stall.micros", *stall_micros),
        ("stall.refused_writes", *refused_writes),
        ("snapshot.count", *live_snapshots),
        ("sequence.last", *last_sequence),
        ("merge.longest_chain", *longest_merge_chain),
        ("keyspace.count", keyspaces.len() as u64),
    ];
    numbers.extend(memory_numbers(memory));
    numbers
}

fn memory_numbers(memory: &MemoryStats) -> [(&'static str, u64); 9] {
    let MemoryStats {
        budget_bytes,
        memtable_bytes,
        immutable_memtable_bytes,
        cache_bytes,
        cache_capacity_bytes,
        index_bytes,
        filter_bytes,
        pinned_bytes,
        unused_pool_bytes,
    } = memory;
    [
        ("memory.budget_bytes", *budget_bytes),
        ("memory.memtable_bytes", *memtable_bytes),
        ("memory.immutable_memtable_bytes", *immutable_memtable_bytes),
        ("memory.cache_bytes", *cache_bytes),
        ("memory.cache_capacity_bytes", *cache_capacity_bytes),
        ("memory.index_bytes", *index_bytes),
        ("memory.filter_bytes", *filter_bytes),
        ("memory.pinned_bytes", *pinned_bytes),
        ("memory.unused_pool_bytes", *unused_pool_bytes),
    ]
}

fn keyspace_numbers(keyspace: &KeyspaceStats) -> [(&'static str, u64); 6] {
    let KeyspaceStats {
        name: _,
        merge_operator: _,
        ttl: _,
        runs,
        entries,
        table_bytes,
        memtable_entries,
        longest_merge_chain,
    } = keyspace;
    [
        ("runs", runs.len() as u64),
        ("tables", runs.iter().map(|run| run.tables).sum()),
        ("entries", *entries),
        ("bytes", *table_bytes),
        ("memtable_entries", *memtable_entries),
        ("longest_merge_chain", *longest_merge_chain),
    ]
}
