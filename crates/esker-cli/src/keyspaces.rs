//! `esker keyspaces`: lists what is in a database, and makes, changes and removes keyspaces.

mod change;

use crate::duration;
use crate::failure::{Failure, one_line};
use crate::open;
use crate::output::{self, Output, bytes_text};
pub use change::Change;
use esker::{KeyspaceStats, Stats, Ttl};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker keyspaces --db data
  esker keyspaces create --db data hits --merge-operator uint64add
  esker keyspaces create --db data sessions --default-ttl 30m
  esker keyspaces set    --db data sessions --default-ttl 2h
  esker keyspaces rename --db data hits visits
  esker keyspaces clear  --db data visits --yes
  esker keyspaces drop   --db data visits --yes

Without one of these commands all keyspaces are listed; that opens read-only.
Entries count overwritten and deleted keys until compaction drops them; bytes are those of tables
on disk. The time to live is that of writes that bring none; with --json it is in milliseconds.
It is `on` where only writes that bring one expire.";

/// List keyspaces with order, operator, time to live, entries and bytes; create, change and drop
/// them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Keyspaces {
    /// The directory of the database
    #[arg(long, env = "ESKER_DB", value_name = "DIR", global = true)]
    db: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    change: Option<Change>,
}

impl Keyspaces {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let Some(directory) = self.db else {
            return Err(Failure::Usage("no directory is named; name one with --db".into()));
        };
        let Some(change) = self.change else {
            let mut output = Output::standard();
            list(&open::read_only(&directory)?.stats(), self.json, &mut output)?;
            return output.finish();
        };
        change.check()?;
        let db = if change.creates() { open::or_create(&directory)? } else { open::existing(&directory)? };
        let done = change.apply(&db);
        let closed = db.close();
        let done = done?;
        closed?;
        if self.json { output::print_line(&done.to_string()) } else { Ok(()) }
    }
}

fn list(stats: &Stats, json: bool, output: &mut Output) -> Result<(), Failure> {
    if json {
        let list: Vec<_> = stats.keyspaces.iter().map(keyspace_json).collect();
        return output.line(&json!({ "keyspaces": list }).to_string());
    }
    let width = stats.keyspaces.iter().map(|keyspace| one_line(&keyspace.name).len()).max().unwrap_or(0).max(8);
    let orders = stats.keyspaces.iter().map(|keyspace| one_line(&keyspace.comparator).chars().count());
    let order_width = orders.max().unwrap_or(0).max(8);
    let operators = stats.keyspaces.iter().map(operator_name);
    let operator_width = operators.map(|name| name.chars().count()).max().unwrap_or(0).max(12);
    output.line(&format!(
        "{:width$}  {:order_width$}  {:operator_width$}  {:>12}  {:>12}  {:>9}",
        "keyspace", "order", "operator", "time to live", "entries", "bytes"
    ))?;
    for keyspace in &stats.keyspaces {
        output.line(&format!(
            "{:width$}  {:order_width$}  {:operator_width$}  {:>12}  {:>12}  {:>9}",
            one_line(&keyspace.name),
            one_line(&keyspace.comparator),
            operator_name(keyspace),
            ttl_text(keyspace),
            entries(keyspace),
            bytes_text(keyspace.table_bytes)
        ))?;
    }
    Ok(())
}

fn operator_name(keyspace: &KeyspaceStats) -> String {
    one_line(keyspace.merge_operator.as_deref().unwrap_or("-"))
}

/// `-` where nothing expires, `on` where a write may bring a time, else the usual time.
fn ttl_text(keyspace: &KeyspaceStats) -> String {
    match keyspace.ttl {
        Ttl::Disabled => "-".into(),
        Ttl::Enabled { default: None } => "on".into(),
        Ttl::Enabled { default: Some(default) } => duration::text(default),
    }
}

/// Entries in tables and memory. An upper bound of the keys: overwritten and deleted ones count
/// until they are dropped.
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
        "comparator": keyspace.comparator,
        "ttl": match keyspace.ttl {
            Ttl::Disabled => json!(null),
            Ttl::Enabled { default: None } => json!("on"),
            Ttl::Enabled { default: Some(default) } => json!(u64::try_from(default.as_millis()).unwrap_or(u64::MAX)),
        },
        "entries": entries(keyspace),
        "memtable_entries": keyspace.memtable_entries,
        "bytes": keyspace.table_bytes,
        "runs": runs,
    })
}
