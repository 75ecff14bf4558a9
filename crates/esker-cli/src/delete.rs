//! `esker delete`: removes keys.

use crate::arguments::{DatabaseArguments, KeyArguments};
use crate::failure::Failure;
use crate::{open, output};
use esker::WriteOptions;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  esker delete --db data user:1
  esker delete --db data --keyspace hits page:/a page:/b
  esker delete --db data --hex 00ff

Nothing is read: deleting a key that is absent succeeds. Several keys are deleted together or not at all.";

/// Delete keys of an existing keyspace
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Delete {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    /// Return only when the delete is on the device
    #[arg(long)]
    sync: bool,
    /// The keys
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,
}

impl Delete {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let keys = self.keys.iter().map(|key| self.key_arguments.decode("key", key));
        let keys = keys.collect::<Result<Vec<_>, Failure>>()?;
        let db = open::existing(&self.database.db)?;
        let keyspace = db.existing_keyspace(&self.key_arguments.keyspace)?;
        let mut batch = db.batch();
        for key in &keys {
            batch.delete(&keyspace, key)?;
        }
        batch.commit_with(&WriteOptions::new().sync(self.sync))?;
        drop(keyspace);
        db.close()?;
        if self.database.json { output::print_line(&format!(r#"{{"deleted":{}}}"#, keys.len())) } else { Ok(()) }
    }
}
