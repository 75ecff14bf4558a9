//! The file of a sweep, as it is written. What the names in it mean is checked afterwards, in `sweep.rs`.
//!
//! ```toml
//! title = "..."                    # of the report; optional
//! engines = ["esker", "leveldb"]   # or ["all"]
//! repeat = 3                       # optional
//!
//! [flags]                          # flags of `esker bench` for every process; optional
//! num = 1000000
//!
//! [axes]                           # a flag and its values; every combination is a cell
//! write_buffer_size = ["2 MiB", "8 MiB"]
//!
//! [limits]                         # optional
//! benchmark_seconds = 600
//!
//! [[process]]                      # one process after another, on the same database
//! benchmarks = ["fillrandom", "readrandom as reads in the same process"]
//! flags = { threads = 2 }          # for this process alone, instead of [flags] and [axes]; optional
//! ```

use super::problem::Problem;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// Flags with their values, both with their places in the file.
pub type Flags = BTreeMap<Spanned<String>, Spanned<Scalar>>;

/// The whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// The title of the report.
    pub title: Option<String>,
    /// Engines by name.
    pub engines: Vec<Spanned<String>>,
    /// Repetitions.
    #[serde(default = "one")]
    pub repeat: Spanned<u32>,
    /// Flags of every process.
    #[serde(default)]
    pub flags: Flags,
    /// What varies.
    #[serde(default)]
    pub axes: BTreeMap<Spanned<String>, Spanned<Vec<Spanned<Scalar>>>>,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// The processes, in order.
    #[serde(rename = "process")]
    pub processes: Vec<ProcessTable>,
}

/// Limits of a sweep.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The longest time of one benchmark.
    pub benchmark_seconds: Option<Spanned<f64>>,
}

/// One process.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTable {
    /// Benchmarks in order: `NAME` or `NAME as ROW`.
    pub benchmarks: Spanned<Vec<Spanned<String>>>,
    /// Flags of this process.
    #[serde(default)]
    pub flags: Flags,
}

/// The value of a flag, as a command line would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar(pub String);

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true or false")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(u8::from(value).to_string()))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Reads a file's text.
pub fn parse(text: &str) -> Result<SweepFile, Problem> {
    toml::from_str(text).map_err(|error| Problem::at(error.span().unwrap_or(0..0), clarify(error.message())))
}

/// Adds to a message about an unknown key which known one is nearest to it. The message lists them all in backquotes.
fn clarify(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (Some((unknown, known)), true) = (names.split_first(), message.starts_with("unknown field")) else {
        return message;
    };
    let nearest = known.iter().map(|name| (strsim::damerau_levenshtein(name, unknown), *name)).min();
    match nearest.filter(|(distance, name)| *distance <= 1 + name.len() / 3) {
        Some((_, name)) => format!("unknown key `{unknown}`; did you mean `{name}`?"),
        None => format!("unknown key `{unknown}`; known are {}", known.join(", ")),
    }
}
