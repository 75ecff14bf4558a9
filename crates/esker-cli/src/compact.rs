//! `esker compact`: merges everything into one run.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{open, output};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker compact --db data
  esker compact --db data --keyspace hits --json

Needs about as much free space as the largest keyspace has. An interrupted compaction changes nothing.";

/// Merge each keyspace into one run and drop what is overwritten or deleted
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Compact {
    #[command(flatten)]
    database: DatabaseArguments,
    /// Only this keyspace
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
}

impl Compact {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let db = open::existing(&self.database.db)?;
        let progress = Progress::waiting("compacting");
        // What is still in the log counts as data too: in tables before the comparison begins.
        db.flush()?;
        let before = db.stats().table_bytes;
        match &self.keyspace {
            Some(name) => db.existing_keyspace(name)?.compact()?,
            None => db.compact()?,
        }
        let after = db.stats().table_bytes;
        db.close()?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        output::print_line(&if self.database.json {
            format!(r#"{{"table_bytes_before":{before},"table_bytes_after":{after},"seconds":{seconds:.3}}}"#)
        } else {
            let (before, after) = (output::bytes_text(before), output::bytes_text(after));
            format!("compacted {before} to {after} in {seconds:.2} s")
        })
    }
}
