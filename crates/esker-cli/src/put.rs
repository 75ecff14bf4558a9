//! `esker put`: writes one key.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType, WriteArguments};
use crate::failure::Failure;
use crate::{open, output};
use std::ffi::OsString;
use std::io::{self, Read};

const EXAMPLES: &str = "\
Examples:
  esker put --db data user:1 Ada
  esker put --db data --hex 00ff 0102
  esker put --db data --keyspace hits --merge-operator uint64add --as u64 page:/ 100
  esker put --db data --keyspace sessions --ttl 30m session:1 Ada
  esker put --db data photo - < photo.jpg
  esker put --db data --sync -- -key-with-hyphen value

A value - is read from standard input, byte by byte as it is; write \\x2d for the value -.";

/// The longest value that the engine takes, and one more, so that it says that it is too long.
const MOST_READ_BYTES: u64 = (1 << 30) + 1;

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
    /// The value, or - for what comes on standard input
    #[arg(allow_negative_numbers = true)]
    value: OsString,
}

impl Put {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key_arguments.decode("key", &self.key)?;
        let value = match self.value_type {
            _ if self.value == "-" => read_value()?,
            Some(number) => number.value_of(&self.value)?,
            None => self.key_arguments.decode("value", &self.value)?,
        };
        let db = open::or_create(&self.database.db)?;
        let keyspace = self.write.open(&db, &self.key_arguments.keyspace)?;
        keyspace.put_with(key, value, &self.write.options())?;
        drop(keyspace);
        db.close()?;
        if self.database.json { output::print_line(r#"{"written":1}"#) } else { Ok(()) }
    }
}

fn read_value() -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let read = io::stdin().lock().take(MOST_READ_BYTES).read_to_end(&mut value);
    read.map_err(|error| Failure::io("cannot read standard input", &error))?;
    Ok(value)
}
