//! `esker checkpoint`: a copy that opens as a database.

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{open, output};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker checkpoint --db data backup/monday
  esker verify --db backup/monday

The directory must be empty or not exist. Where both are on one file system the tables are linked, not copied:
never change or truncate files of the copy in place, they are the database's own.";

/// Make a consistent copy in another directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Checkpoint {
    #[command(flatten)]
    database: DatabaseArguments,
    /// The directory of the copy
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Checkpoint {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let db = open::existing(&self.database.db)?;
        let progress = Progress::waiting("copying");
        db.checkpoint(&self.directory)?;
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
