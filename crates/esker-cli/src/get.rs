//! `esker get`: prints one value.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType};
use crate::expiry;
use crate::failure::Failure;
use crate::open;
use crate::output::Output;
use crate::record;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  esker get --db data user:1
  esker get --db data --hex 00ff
  esker get --db data --keyspace hits --as u64 page:/
  esker get --db data --raw photo > photo.jpg
  esker get --db data --keyspace sessions --show-ttl session:1

Exit code 1 and `not found: KEY` on standard error if the key is absent.";

/// Print the value of one key; opens read-only, also beside a running writer
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Get {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    /// Show the value as a number
    #[arg(long = "as", value_name = "TYPE")]
    value_type: Option<ValueType>,
    /// Write the bytes of the value as they are, without line end
    #[arg(long, conflicts_with_all = ["json", "value_type"])]
    raw: bool,
    /// Show how long the value lives, behind a tab: the time that is left, or never
    #[arg(long, conflicts_with = "raw")]
    show_ttl: bool,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
}

impl Get {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key_arguments.decode("key", &self.key)?;
        let form = self.key_arguments.form();
        let db = open::read_only(&self.database.db)?;
        let keyspace = db.existing_keyspace(&self.key_arguments.keyspace)?;
        // Value and expiry of one moment.
        let snapshot = db.snapshot();
        let Some(value) = snapshot.get(&keyspace, &key)? else {
            return Err(Failure::Absent(form.encode(&key)));
        };
        let value: &[u8] = value.as_ref();
        let mut output = Output::standard();
        if self.raw {
            output.bytes(value)?;
        } else {
            let shown = match self.value_type {
                Some(number) => record::Shown::Number(number.number_of(&key, value)?),
                None => record::Shown::Bytes(value),
            };
            let mut line = String::new();
            if self.database.json {
                record::write_json(&mut line, None, &key, Some(shown), form);
            } else {
                record::write_value(&mut line, shown, form);
            }
            if self.show_ttl
                && let Some(expiry) = snapshot.expires_at(&keyspace, &key)?
            {
                expiry::append(&mut line, expiry, self.database.json);
            }
            output.line(&line)?;
        }
        output.finish()
    }
}
