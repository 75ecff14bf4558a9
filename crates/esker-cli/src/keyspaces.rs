//! `esker keyspaces`: lists what is in a database.

use crate::arguments::DatabaseArguments;
use crate::failure::{Failure, one_line};
use crate::open;
use crate::output::{Output, bytes_text};
use esker::KeyspaceStats;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  esker keyspaces --db data
  esker keyspaces --db data --json

Entries count overwritten and deleted keys until compaction drops them; bytes are those of tables on disk.";

/// List the keyspaces with operator, entries and bytes; opens read-only
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Keyspaces {
    #[command(flatten)]
    database: DatabaseArguments,
}

impl Keyspaces {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let db = open::read_only(&self.database.db)?;
        let stats = db.stats();
        let mut output = Output::standard();
        if self.database.json {
            let list: Vec<_> = stats.keyspaces.iter().map(keyspace_json).collect();
            output.line(&json!({ "keyspaces": list }).to_string())?;
        } else {
            let width = stats.keyspaces.iter().map(|keyspace| one_line(&keyspace.name).len()).max().unwrap_or(0).max(8);
            let operators = stats.keyspaces.iter().map(operator_name);
            let operator_width = operators.map(|name| name.chars().count()).max().unwrap_or(0).max(12);
            output.line(&format!(
                "{:width$}  {:operator_width$}  {:>12}  {:>9}",
                "keyspace", "operator", "entries", "bytes"
            ))?;
            for keyspace in &stats.keyspaces {
                output.line(&format!(
                    "{:width$}  {:operator_width$}  {:>12}  {:>9}",
                    one_line(&keyspace.name),
                    operator_name(keyspace),
                    entries(keyspace),
                    bytes_text(keyspace.table_bytes)
                ))?;
            }
        }
        output.finish()
    }
}

fn operator_name(keyspace: &KeyspaceStats) -> String {
    one_line(keyspace.merge_operator.as_deref().unwrap_or("-"))
}

/// Entries in tables and memory. An upper bound of the keys: overwritten and deleted ones count until they are dropped.
pub fn entries(keyspace: &KeyspaceStats) -> u64 {
    keyspace.runs.iter().map(|run| run.entries).sum::<u64>() + keyspace.memtable_entries
}

/// What `esker keyspaces` and `esker stats` tell about a keyspace.
pub fn keyspace_json(keyspace: &KeyspaceStats) -> serde_json::Value {
    let runs: Vec<_> = keyspace
        .runs
        .iter()
        .map(|run| json!({ "tables": run.tables, "entries": run.entries, "bytes": run.bytes }))
        .collect();
    json!({
        "name": keyspace.name,
        "merge_operator": keyspace.merge_operator,
        "entries": entries(keyspace),
        "memtable_entries": keyspace.memtable_entries,
        "bytes": keyspace.table_bytes,
        "runs": runs,
    })
}
