//! `esker checkpoint`: a copy that opens as a database.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{open, output};
use esker::CheckpointMode;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker checkpoint --db data backup/monday
  esker verify --db backup/monday
  esker checkpoint --db data --copy /mnt/backup/monday

The directory must be empty or not exist, and not be in that of the database. Where both are on one file system the tables are linked, not copied:
never change or truncate files of the copy in place, they are the database's own. With --copy it has its own;
everything is checked while it is copied, and damage found ends the command: there is no copy then.
A database that a program has open is locked: the program makes its checkpoints itself, with Db::checkpoint.";

/// Make a consistent copy in another directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Checkpoint {
    #[command(flatten)]
    database: DatabaseArguments,
    /// The directory of the copy
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Copy and check every file; link none
    #[arg(long)]
    copy: bool,
}

impl Checkpoint {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let db = open::existing(&self.database.db)?;
        let progress = Progress::waiting("copying");
        let mode = if self.copy { CheckpointMode::Copy } else { CheckpointMode::Link };
        db.checkpoint_with(&self.directory, mode)?;
        db.close()?;
        drop(progress);
        let directory = self.directory.display().to_string();
        output::print_line(&if self.database.json {
            json!({ "checkpoint": directory }).to_string()
        } else {
            format!("checkpoint of {} in {directory}", self.database.db.display())
        })
    }
}
