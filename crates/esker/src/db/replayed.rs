//! Writing what was replayed from the log into tables, before the database is opened.
//!
//! A log that was not closed may hold less than it shows: after a failed sync the system can still hand out bytes that the device will never
//! get, and another sync does not miss them. So nothing is promised on top of such a log. What it holds is written to tables, and the manifest that
//! names all of them takes the log's place in one step.

use crate::error::Result;
use crate::job::flush::flush;
use crate::job::output::OutputOptions;
use crate::job::retain::Rules;
use crate::memtable::Memtable;
use crate::version::edit::Change;
use crate::version::tree::Tree;
use std::sync::Arc;

/// Writes the memtables of the keyspace that `output` names, oldest first, and returns its new tree and what the manifest must say.
pub fn write(
    memtables: &[Arc<Memtable>],
    tree: &Tree,
    rules: Rules<'_>,
    output: &mut OutputOptions<'_>,
) -> Result<(Tree, Vec<Change>)> {
    let mut tree = tree.clone();
    let mut changes = Vec::new();
    let keyspace = output.keyspace.id;
    for memtable in memtables {
        let rules = Rules { bottom: tree.runs.is_empty(), ..rules };
        output.flushed = memtable.last_sequence();
        let tables = flush(memtable, rules, output, &mut || ())?.tables;
        let run = tree.deepest_free_run(&tables, None).unwrap_or_else(output.next_file);
        for table in &tables {
            let summary = table.summary();
            let (number, bytes) = (summary.file_number, summary.file_bytes);
            changes.push(Change::AddTable { keyspace, run, number, bytes });
        }
        output.keyspace.flushed = memtable.last_sequence();
        changes.push(Change::Flushed { keyspace, sequence: memtable.last_sequence() });
        tree = tree.edited(&[], tables.into_iter().map(|table| (run, table)));
    }
    Ok((tree, changes))
}
