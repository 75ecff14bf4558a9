//! The options that several commands share, and what their values mean.

use crate::duration;
use crate::failure::Failure;
use crate::settings::{self, Settings};
use crate::text::Form;
use clap::{Args, ValueEnum};
use esker::merge::{StringAppend, built_in};
use esker::{Db, Keyspace, MergeOperator, Ttl, WriteOptions};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// The merge operators that every build knows, as a person writes them.
const MERGE_OPERATORS: &str =
    "uint64add, int64add, max, min, put, bytesxor, bitor, stringappend or stringappend:DELIMITER";
/// What `stringappend` puts between operands if nothing else is requested.
const DEFAULT_DELIMITER: &[u8] = b",";

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
    /// The merge operator, if the keyspace is created now (`esker keyspaces set` gives another
    /// one): uint64add, int64add, max, min, put,
    /// bytesxor, bitor, stringappend (joins with a comma) or stringappend:DELIMITER (escapes as in
    /// keys)
    #[arg(long, value_name = "NAME", value_parser = stored_operator_name)]
    pub merge_operator: Option<String>,
    /// How long what is written lives, as in 10m, 1h30m or 7d; a keyspace that is created now gets
    /// times to live, one without them refuses it (`esker keyspaces set --default-ttl` gives them)
    #[arg(long, value_name = "TIME", value_parser = duration::time_to_live)]
    pub ttl: Option<Duration>,
    /// How long a write lives that brings no time, if the keyspace is created now; `none` where
    /// only what is written with a time is to expire
    #[arg(long, value_name = "TIME|none", value_parser = default_ttl)]
    pub default_ttl: Option<Ttl>,
}

impl WriteArguments {
    /// The engine's options for each write.
    pub fn options(&self) -> WriteOptions {
        let options = WriteOptions::new().sync(self.sync);
        match self.ttl {
            Some(ttl) => options.ttl(ttl),
            None => options,
        }
    }

    /// What was requested of a keyspace that is created now.
    pub fn settings(&self) -> Settings {
        Settings {
            merge_operator: self.merge_operator.clone(),
            comparator: None,
            ttl: self.default_ttl,
            compaction_style: None,
        }
    }

    /// Opens the keyspace, or creates it as requested.
    pub fn open(&self, db: &Db, name: &str) -> Result<Keyspace, Failure> {
        let keyspace = self.settings().open(db, name, self.ttl.is_some())?;
        match self.ttl {
            Some(_) => settings::require_ttl(&keyspace).map(|()| keyspace),
            None => Ok(keyspace),
        }
    }
}

/// The time that a write which brings none gets: `none`, or a span of time.
pub fn default_ttl(text: &str) -> Result<Ttl, String> {
    let default = if text == "none" { None } else { Some(duration::time_to_live(text)?) };
    Ok(Ttl::Enabled { default })
}

/// The name under which the engine keeps the operator that a person requested.
pub fn stored_operator_name(text: &str) -> Result<String, String> {
    let delimiter = match text.split_once(':') {
        None if text == "stringappend" => DEFAULT_DELIMITER.to_vec(),
        Some(("stringappend", delimiter)) => Form::Escaped.decode(delimiter.as_bytes())?,
        None if built_in(text).is_some() => return Ok(text.to_owned()),
        _ => return Err(format!("use {MERGE_OPERATORS}")),
    };
    Ok(StringAppend::new(delimiter).name().to_owned())
}

/// Another meaning of values than plain bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValueType {
    /// An unsigned number in 8 bytes, little-endian, as uint64add keeps it
    U64,
    /// A number with a sign in 8 bytes, little-endian, as int64add keeps it
    I64,
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

/// The 8 bytes of a decimal number with a sign, as int64add keeps it.
pub fn signed_number_bytes(what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
    let shown = text.to_string_lossy();
    match shown.parse::<i64>() {
        Ok(number) => Ok(number.to_le_bytes().to_vec()),
        Err(_) => Err(Failure::Usage(format!(
            "{what} {shown:?} is not a whole number of 64 bits with a sign; give a decimal number, or bytes with --hex"
        ))),
    }
}

impl ValueType {
    /// The 8 bytes of a decimal number that becomes the value.
    pub fn value_of(self, text: &OsStr) -> Result<Vec<u8>, Failure> {
        if self == ValueType::U64 && text.to_string_lossy().starts_with('-') {
            return Err(Failure::Usage(format!(
                "value {:?} is below 0, which a number without sign cannot be; use i64, with int64add",
                text.to_string_lossy()
            )));
        }
        self.operand_of("value", text)
    }

    /// The 8 bytes of a decimal number that is added.
    pub fn operand_of(self, what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
        match self {
            ValueType::U64 => number_bytes(what, text),
            ValueType::I64 => signed_number_bytes(what, text),
        }
    }

    /// The number that an 8-byte value holds.
    pub fn number_of(self, key: &[u8], value: &[u8]) -> Result<i128, Failure> {
        let bytes: [u8; 8] = value.try_into().map_err(|_| {
            Failure::Operation(format!(
                "the value of {} has {} bytes, not the 8 of a number; leave out --as {}",
                esker::escape_key(key),
                value.len(),
                if self == ValueType::U64 { "u64" } else { "i64" }
            ))
        })?;
        Ok(match self {
            ValueType::U64 => u64::from_le_bytes(bytes).into(),
            ValueType::I64 => i64::from_le_bytes(bytes).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_kept_under_names_that_tools_can_read() {
        for (given, stored) in [
            ("uint64add", "uint64add"),
            ("min", "min"),
            ("stringappend", "stringappend:2c"),
            ("stringappend:", "stringappend:"),
            ("stringappend:\\n", "stringappend:0a"),
            ("stringappend::", "stringappend:3a"),
            ("stringappend:, ", "stringappend:2c20"),
        ] {
            assert_eq!(stored_operator_name(given).as_deref(), Ok(stored));
            assert!(built_in(stored).is_some(), "{stored}");
        }
        for given in ["", "plus", "max:1", ":", "stringappend:\\q"] {
            assert!(stored_operator_name(given).is_err(), "{given}");
        }
    }
}
