//! The options that several commands share, and what their values mean.

use crate::failure::Failure;
use crate::text::Form;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use esker::{KeyspaceOptions, WriteOptions};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The names of the merge operators that every build knows.
const MERGE_OPERATORS: [&str; 5] = ["uint64add", "max", "min", "put", "stringappend"];

/// Where the database is and how results are printed.
#[derive(Args)]
pub struct DatabaseArguments {
    /// The directory of the database
    #[arg(long, env = "ESKER_DB", value_name = "DIR")]
    pub db: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Which keyspace, and how keys and values are written.
#[derive(Args)]
pub struct KeyArguments {
    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub keyspace: String,
    /// Keys and values are hexadecimal, in and out
    #[arg(long)]
    pub hex: bool,
}

impl KeyArguments {
    /// How keys and values are written.
    pub fn form(&self) -> Form {
        Form::from_flag(self.hex)
    }

    /// The bytes of a key, value or bound given on the command line.
    pub fn decode(&self, what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
        self.form().decode(text.as_encoded_bytes()).map_err(|problem| {
            Failure::Usage(format!("{what} {:?}: {problem}; see `esker --help`", text.to_string_lossy()))
        })
    }
}

/// How a write is made, and how its keyspace is created if it is not there.
#[derive(Args)]
pub struct WriteArguments {
    /// Return only when the write is on the device
    #[arg(long)]
    pub sync: bool,
    /// The merge operator, if the keyspace is created now
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(MERGE_OPERATORS))]
    pub merge_operator: Option<String>,
}

impl WriteArguments {
    /// The engine's options for each write.
    pub fn options(&self) -> WriteOptions {
        WriteOptions::new().sync(self.sync)
    }
}

/// Options of a keyspace with the built-in operator of that name, or with none.
pub fn keyspace_options(operator: Option<&str>) -> Result<KeyspaceOptions, Failure> {
    let options = KeyspaceOptions::default();
    match operator {
        None => Ok(options),
        Some(name) => match esker::merge::built_in(name) {
            Some(operator) => Ok(options.shared_merge_operator(operator)),
            None => Err(Failure::Operation(format!(
                "merge operator {name:?} is not built in; use one of {}",
                MERGE_OPERATORS.join(", ")
            ))),
        },
    }
}

/// Another meaning of values than plain bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValueType {
    /// An unsigned number in 8 bytes, little-endian, as uint64add keeps it
    U64,
}

/// The 8 bytes of a decimal number. A negative one is taken modulo 2^64: adding it subtracts.
pub fn number_bytes(what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
    let shown = text.to_string_lossy();
    let number = match shown.parse::<u64>() {
        Ok(number) => Some(number),
        Err(_) => shown.parse::<i64>().ok().map(i64::cast_unsigned),
    };
    match number {
        Some(number) => Ok(number.to_le_bytes().to_vec()),
        None => Err(Failure::Usage(format!(
            "{what} {shown:?} is not a whole number of 64 bits; give a decimal number, or bytes with --hex"
        ))),
    }
}

/// The number that an 8-byte value holds.
pub fn number_of(key: &[u8], value: &[u8]) -> Result<u64, Failure> {
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
        Err(_) => Err(Failure::Operation(format!(
            "the value of {} has {} bytes, not the 8 of a number; leave out --as u64",
            esker::escape_key(key),
            value.len()
        ))),
    }
}
