//! `esker put`: writes one key.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType, WriteArguments};
use crate::failure::Failure;
use crate::{open, output};
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  esker put --db data user:1 Ada
  esker put --db data --hex 00ff 0102
  esker put --db data --keyspace hits --merge-operator uint64add --as u64 page:/ 100
  esker put --db data --sync -- -key-with-hyphen value";

/// Write one key, replacing its value; creates database and keyspace if missing
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Put {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    #[command(flatten)]
    write: WriteArguments,
    /// Take the value as a decimal number
    #[arg(long = "as", value_name = "TYPE", conflicts_with = "hex")]
    value_type: Option<ValueType>,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value
    #[arg(allow_negative_numbers = true)]
    value: OsString,
}

impl Put {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key_arguments.decode("key", &self.key)?;
        let value = match self.value_type {
            Some(number) => number.bytes_of("value", &self.value)?,
            None => self.key_arguments.decode("value", &self.value)?,
        };
        let db = open::or_create(&self.database.db)?;
        let operator = self.write.merge_operator.as_deref();
        let keyspace = open::keyspace_or_create(&db, &self.key_arguments.keyspace, operator)?;
        keyspace.put_with(key, value, &self.write.options())?;
        drop(keyspace);
        db.close()?;
        if self.database.json { output::print_line(r#"{"written":1}"#) } else { Ok(()) }
    }
}
