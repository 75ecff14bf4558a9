//! `esker stats`: sizes, shape and health of a database.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::{keyspaces, open};
use esker::{Health, MemoryStats, Stats};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  esker stats --db data
  esker stats --db data --json | jq .table_bytes

The database is opened read-only for this: counters of work (flushes, stalls, cache hits) are those of this opening.";

/// Show sizes, shape and health of a database; opens read-only
#[derive(clap::Args)]
#[command(name = "stats", after_help = EXAMPLES)]
pub struct StatsCommand {
    #[command(flatten)]
    database: DatabaseArguments,
}

impl StatsCommand {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let db = open::read_only(&self.database.db)?;
        let (stats, health) = (db.stats(), db.health());
        let mut output = Output::standard();
        if self.database.json {
            output.line(&stats_json(&stats, &health).to_string())?;
        } else {
            output.line(stats.to_string().trim_end())?;
            if let Some(problem) = &health.problem {
                output.line(&format!("problem: {problem}"))?;
            }
            if health.failed_merges > 0 {
                output.line(&format!("failed merges: {}", health.failed_merges))?;
            }
        }
        output.finish()
    }
}

fn memory_json(memory: &MemoryStats) -> Value {
    json!({
        "budget_bytes": memory.budget_bytes,
        "memtable_bytes": memory.memtable_bytes,
        "immutable_memtable_bytes": memory.immutable_memtable_bytes,
        "cache_bytes": memory.cache_bytes,
        "cache_capacity_bytes": memory.cache_capacity_bytes,
        "index_bytes": memory.index_bytes,
        "filter_bytes": memory.filter_bytes,
        "pinned_bytes": memory.pinned_bytes,
        "unused_pool_bytes": memory.unused_pool_bytes,
    })
}

fn stats_json(stats: &Stats, health: &Health) -> Value {
    json!({
        "wal_bytes": stats.wal_bytes,
        "flush_bytes": stats.flush_bytes,
        "compaction_bytes": stats.compaction_bytes,
        "flushes": stats.flushes,
        "compactions": stats.compactions,
        "memtable_bytes": stats.memtable_bytes,
        "table_bytes": stats.table_bytes,
        "table_files": stats.table_files,
        "cache_bytes": stats.cache_bytes,
        "cache_hits": stats.cache_hits,
        "cache_misses": stats.cache_misses,
        "tables_searched": stats.tables_searched,
        "filter_and_index_bytes": stats.filter_and_index_bytes,
        "memory": memory_json(&stats.memory),
        "delay_micros": stats.delay_micros,
        "delays": stats.delays,
        "stall_micros": stats.stall_micros,
        "stalls": stats.stalls,
        "live_snapshots": stats.live_snapshots,
        "last_sequence": stats.last_sequence,
        "keyspaces": stats.keyspaces.iter().map(keyspaces::keyspace_json).collect::<Vec<_>>(),
        "health": {
            "problem": health.problem,
            "stall_reason": health.stall_reason,
            "failed_merges": health.failed_merges,
        },
    })
}
