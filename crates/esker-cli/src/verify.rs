//! `esker verify`: reads everything and checks it.

use crate::arguments::DatabaseArguments;
use crate::failure::{Failure, one_line};
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::{open, output};
use esker::{Db, Error, Options, VerifyEvent};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker verify --db data
  esker verify --db backup --json

All damage is shown, a line each, with file and offset, also that of a database that does not open. With --json it is
in the list damage: {\"ok\":false,\"damage\":[{\"file\":...,\"offset\":...,\"problem\":...}]}, where a file that
cannot be read has no offset. Exit code 1 if anything is wrong. Nothing is changed.";

/// Read everything and check it; takes no lock, and the database need not open
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    #[command(flatten)]
    database: DatabaseArguments,
}

/// One damaged place.
struct Damage {
    file: PathBuf,
    /// None of a file that cannot be read.
    offset: Option<u64>,
    problem: String,
    /// What is said of it alone.
    alone: Failure,
}

impl Damage {
    /// Whether it is the same place.
    fn is(&self, other: &Damage) -> bool {
        (&self.file, self.offset, &self.problem) == (&other.file, other.offset, &other.problem)
    }

    fn of(error: &Error) -> Damage {
        let (file, offset, problem) = match error {
            Error::Corruption { path, offset, what } => (path.clone(), Some(*offset), what.clone()),
            Error::Io { path, source, .. } => (path.clone(), None, format!("cannot be read: {source}")),
            Error::Unsupported { path, .. } | Error::UnsupportedCompression { path, .. } => {
                (path.clone(), None, format!("cannot be read: {error}"))
            }
            other => (PathBuf::new(), None, other.to_string()),
        };
        let alone = match offset {
            Some(offset) => {
                Failure::Operation(format!("{} is damaged at offset {offset}: {problem}; {REMEDY}", file.display()))
            }
            None => Failure::of(error),
        };
        Damage { file, offset, problem, alone }
    }

    fn line(&self) -> String {
        match self.offset {
            Some(offset) => format!("{} at offset {offset}: {}", self.file.display(), self.problem),
            None => format!("{}: {}", self.file.display(), self.problem),
        }
    }

    fn json(&self) -> Value {
        json!({ "file": self.file.display().to_string(), "offset": self.offset, "problem": self.problem })
    }
}

const REMEDY: &str = "restore the file from a checkpoint or a backup, or try `esker repair`";

impl Verify {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let directory = &self.database.db;
        open::require_directory(directory)?;
        let mut progress = Progress::new("verifying", Unit::Bytes, Some(0));
        let mut damage = Vec::new();
        let options = Options::default().create_if_missing(false);
        let result = Db::verify_directory(directory, options, &mut |event| match event {
            VerifyEvent::Progress { done, total } => progress.set_of(done, total),
            VerifyEvent::Damage(error) => damage.push(Damage::of(error)),
            _ => {}
        });
        drop(progress);
        if !damage.is_empty() {
            // What ended the walk before it was at its end, if that is none of these.
            let ended = result.as_ref().err().map(Damage::of).filter(|ended| !damage.iter().any(|one| one.is(ended)));
            damage.extend(ended);
            return Err(self.report_damage(damage)?);
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

    /// Prints all of it, and returns what is said of it on standard error.
    fn report_damage(&self, mut damage: Vec<Damage>) -> Result<Failure, Failure> {
        let mut output = Output::standard();
        if self.database.json {
            let list: Vec<Value> = damage.iter().map(Damage::json).collect();
            output.line(&json!({ "ok": false, "damage": list }).to_string())?;
        } else {
            for place in &damage {
                output.line(&one_line(&place.line()))?;
            }
        }
        output.finish()?;
        let text = format!(
            "{} places are damaged; restore the files from a checkpoint or a backup, or try `esker repair`",
            damage.len()
        );
        Ok(if damage.len() == 1 { damage.remove(0).alone } else { Failure::Operation(text) })
    }
}
