//! `esker merge`: combines an operand with a value, without reading it.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType, WriteArguments};
use crate::failure::Failure;
use crate::{open, output, settings};
use std::ffi::{OsStr, OsString};

const EXAMPLES: &str = "\
Examples:
  esker merge --db data --keyspace hits --merge-operator uint64add page:/ 1
  esker merge --db data --keyspace hits page:/ -1
  esker merge --db data --keyspace log --merge-operator 'stringappend:\\n' today 'a line'
  esker get   --db data --keyspace hits --as u64 page:/

The operator is chosen when the keyspace is created: later merges need not name it.
`esker keyspaces set --merge-operator` gives the keyspace another one.";

/// Merge an operand into one key; creates database and keyspace if missing
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Merge {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    #[command(flatten)]
    write: WriteArguments,
    /// Take the operand of uint64add and int64add as bytes too, not as a decimal number
    #[arg(long)]
    raw: bool,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The operand: for uint64add and int64add a decimal number, otherwise bytes
    #[arg(allow_negative_numbers = true)]
    operand: OsString,
}

impl Merge {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key_arguments.decode("key", &self.key)?;
        // What can be refused is refused before a database or keyspace is created.
        if let Some(operator) = &self.write.merge_operator {
            self.operand_bytes(operator, &self.operand)?;
        }
        let name = &self.key_arguments.keyspace;
        if self.write.merge_operator.is_none() && !self.database.db.exists() {
            return Err(self.operator_needed());
        }
        let db = open::or_create(&self.database.db)?;
        if self.write.merge_operator.is_none() && !db.keyspaces().contains(name) {
            return Err(self.operator_needed());
        }
        let keyspace = self.write.open(&db, name)?;
        settings::require_merge_operator(&keyspace)?;
        let operator = keyspace.merge_operator().unwrap_or_default();
        let operand = self.operand_bytes(&operator, &self.operand)?;
        keyspace.merge_with(key, operand, &self.write.options())?;
        drop(keyspace);
        db.close()?;
        if self.database.json { output::print_line(r#"{"merged":1}"#) } else { Ok(()) }
    }

    fn operand_bytes(&self, operator: &str, operand: &OsStr) -> Result<Vec<u8>, Failure> {
        let number = match operator {
            "uint64add" => Some(ValueType::U64),
            "int64add" => Some(ValueType::I64),
            _ => None,
        };
        match number {
            Some(number) if !self.raw && !self.key_arguments.hex => number.operand_of("operand", operand),
            _ => self.key_arguments.decode("operand", operand),
        }
    }

    fn operator_needed(&self) -> Failure {
        let name = &self.key_arguments.keyspace;
        Failure::Usage(format!("keyspace {name:?} does not exist yet; choose its operator with --merge-operator"))
    }
}
