//! `esker verify`: reads everything and checks it.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use crate::{open, output};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker verify --db data
  esker verify --db backup --json

Exit code 1 and the damaged file and offset on standard error if anything is wrong. Nothing is changed.";

/// Read everything and check it; opens read-only
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    #[command(flatten)]
    database: DatabaseArguments,
}

impl Verify {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let db = open::read_only(&self.database.db)?;
        let mut progress = Progress::new("verifying", Unit::Bytes, Some(0));
        let result = db.verify(&mut |done, total| progress.set_of(done, total));
        drop(progress);
        let report = result?;
        let seconds = started.elapsed().as_secs_f64();
        let (tables, entries, bytes, logs) = (report.tables, report.entries, report.bytes, report.wal_segments);
        output::print_line(&if self.database.json {
            format!(
                r#"{{"ok":true,"tables":{tables},"entries":{entries},"bytes":{bytes},"wal_segments":{logs},"seconds":{seconds:.3}}}"#
            )
        } else {
            let size = output::bytes_text(bytes);
            format!(
                "no damage: {entries} entries in {tables} tables and {logs} log segments, {size}, in {seconds:.2} s"
            )
        })
    }
}
