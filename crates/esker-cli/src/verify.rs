//! `esker verify`: reads everything and checks it.

use crate::arguments::DatabaseArguments;
use crate::failure::{Failure, one_line};
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::{open, output};
use esker::{Error, VerifyEvent};
use serde_json::json;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker verify --db data
  esker verify --db backup --json

All damage is shown, a line each, with file and offset; with --json it is in the list damage. Damage without which the
database does not open is shown alone. Exit code 1 if anything is wrong. Nothing is changed.";

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
        let mut damage = Vec::new();
        let result = db.verify_with(&mut |event| match event {
            VerifyEvent::Progress { done, total } => progress.set_of(done, total),
            VerifyEvent::Damage(error) => damage.push((self.shown(error), error.to_string())),
            _ => {}
        });
        drop(progress);
        if !damage.is_empty() {
            return Err(self.report_damage(&damage)?);
        }
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

    /// The damage as one item of the output.
    fn shown(&self, error: &Error) -> String {
        let (path, offset, what) = match error {
            Error::Corruption { path, offset, what } => (path, Some(*offset), what.clone()),
            Error::Io { path, source, .. } => (path, None, format!("cannot be read: {source}")),
            other => {
                return if self.database.json {
                    json!({ "what": other.to_string() }).to_string()
                } else {
                    other.to_string()
                };
            }
        };
        match (self.database.json, offset) {
            (true, _) => json!({ "path": path.display().to_string(), "offset": offset, "what": what }).to_string(),
            (false, Some(offset)) => format!("{} at offset {offset}: {what}", path.display()),
            (false, None) => format!("{}: {what}", path.display()),
        }
    }

    /// Prints all of it, and returns what is said of it on standard error.
    fn report_damage(&self, damage: &[(String, String)]) -> Result<Failure, Failure> {
        let mut output = Output::standard();
        if self.database.json {
            let list: Vec<&str> = damage.iter().map(|(shown, _)| shown.as_str()).collect();
            output.line(&format!(r#"{{"ok":false,"damage":[{}]}}"#, list.join(",")))?;
        } else {
            for (shown, _) in damage {
                output.line(&one_line(shown))?;
            }
        }
        output.finish()?;
        Ok(Failure::Operation(match damage {
            [(_, text)] => text.clone(),
            _ => format!(
                "{} places are damaged; restore the files from a checkpoint, or try `esker repair`",
                damage.len()
            ),
        }))
    }
}
