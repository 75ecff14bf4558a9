//! `esker repair`: makes a damaged database open again.

use crate::failure::{Failure, one_line};
use crate::open;
use crate::output::Output;
use crate::progress::Progress;
use esker::{Db, LostRange, Options, RepairReport, RepairedFile, escape_key};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker repair --db data
  esker repair --db data --json

Restoring a checkpoint is better: what was lost may have been newer than what is kept, so that an older value or a
deleted key shows again. Deletes nothing: what is not used any more is moved to the sub-directory `lost`. A database
without damage is left as it is. The report says what was lost. Exit code 0 if nothing was and no value can be wrong;
1 if entries were lost, or may have been, or if values may be wrong, and the database can be opened all the same;
1 without a report if it could not be repaired.";

/// Make a damaged database open again with everything that can be read, and say what could not be
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Repair {
    /// The directory of the database
    #[arg(long, env = "ESKER_DB", value_name = "DIR", required_unless_present = "directory")]
    db: Option<PathBuf>,
    /// The same, as it was given at first
    #[arg(value_name = "DIR", hide = true)]
    directory: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Repair {
    /// The one directory that was named. A name on the command line goes before that in the
    /// environment.
    fn directory(&self) -> Result<PathBuf, Failure> {
        let is_from_environment =
            |db: &PathBuf| std::env::var_os("ESKER_DB").is_some_and(|value| value == db.as_os_str());
        match (&self.directory, &self.db) {
            (Some(directory), Some(db)) if directory != db && !is_from_environment(db) => {
                Err(Failure::Usage("two directories are named; name one with --db".into()))
            }
            (Some(directory), _) | (None, Some(directory)) => Ok(directory.clone()),
            (None, None) => Err(Failure::Usage("no directory is named; name one with --db".into())),
        }
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let directory = self.directory()?;
        open::require_directory(&directory)?;
        let progress = Progress::waiting("repairing");
        let report = Db::repair(&directory, Options::default())?;
        drop(progress);
        let mut output = Output::standard();
        if self.json {
            output.line(&as_json(&report).to_string())?;
        } else {
            for line in report.to_string().lines() {
                output.line(&one_line(line))?;
            }
        }
        output.finish()?;
        if report.lost_entries() {
            let what = "entries are lost, or may be, as the report says; the database can be opened with the rest";
            return Err(Failure::Operation(what.into()));
        }
        if report.may_be_wrong {
            let what = "values may be wrong, as the report says; the database can be opened: \
                        compare it with a checkpoint or a backup, or restore one";
            return Err(Failure::Operation(what.into()));
        }
        Ok(())
    }
}

fn as_json(report: &RepairReport) -> Value {
    let files: Vec<Value> = report.files.iter().map(file_json).collect();
    json!({
        "healthy": report.healthy,
        "lost_entries": report.lost_entries(),
        "may_be_wrong": report.may_be_wrong,
        "entries": report.entries,
        "keyspaces": report.keyspaces,
        "files": files,
        "warnings": report.warnings,
        "lost_directory": report.lost_directory.as_ref().map(|path| path.display().to_string()),
    })
}

fn file_json(file: &RepairedFile) -> Value {
    let key = |key: &Option<Vec<u8>>| key.as_deref().map(escape_key);
    let range = |range: &LostRange| json!({ "after": key(&range.after), "through": key(&range.through) });
    json!({
        "path": file.path.display().to_string(),
        "keyspace": file.keyspace,
        "problem": file.problem,
        "entries_kept": file.entries_kept,
        "entries_lost": file.entries_lost,
        "lost_ranges": file.lost_ranges.iter().map(range).collect::<Vec<Value>>(),
    })
}
