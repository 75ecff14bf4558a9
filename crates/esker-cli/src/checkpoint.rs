//! `esker checkpoint`: a copy that opens as a database.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::open::Beside;
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
While a program has the database open, it is read beside that program, which goes on: the copy has what the program
had written when the command began, and files of large values are copied, not linked.";

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
        let copied = open::for_copying(&self.database.db)?;
        let progress = Progress::waiting("copying");
        let mode = if self.copy { CheckpointMode::Copy } else { CheckpointMode::Link };
        copied.db().checkpoint_with(&self.directory, mode)?;
        let beside = copied.beside();
        copied.close()?;
        drop(progress);
        let directory = self.directory.display().to_string();
        output::print_line(&if self.database.json {
            let mut line = json!({ "checkpoint": directory });
            beside.inspect(|beside| beside.put_into(&mut line));
            line.to_string()
        } else {
            let beside = beside.map(Beside::text).unwrap_or_default();
            format!("checkpoint of {} in {directory}{beside}", self.database.db.display())
        })
    }
}
