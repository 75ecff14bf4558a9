//! A plan as it is written: the file of a sweep, or one of the studies in
//! `crates/esker-bench/studies`. What the names in it mean is looked up when it is expanded.
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
//!
//! Instead of `[axes]` and `[[process]]` there may be several `[[experiment]]`s, each with
//! `[[experiment.axis]]` and `[[experiment.process]]`. Every number may be an expression
//! (`expression.rs`) of the names in `[numbers]`, which `[[option]]`s, axes and experiments
//! replace.

use super::problem::Problem;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;

/// Flags with their values, both with their places in the file.
pub type Flags = BTreeMap<Spanned<String>, Spanned<Scalar>>;

/// A value of an axis, with its place in the file.
pub type AxisEntry = Spanned<Short<AxisValue>>;

/// Names with what they stand for.
pub type Numbers = BTreeMap<String, Scalar>;

/// The whole file.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The title of the report.
    pub title: Option<String>,
    /// Engines by name.
    pub engines: Vec<Spanned<Short<Conditional>>>,
    /// Repetitions.
    #[serde(default = "one")]
    pub repeat: Spanned<u32>,
    /// Flags of every process.
    #[serde(default)]
    pub flags: Flags,
    /// What varies.
    #[serde(default)]
    pub axes: BTreeMap<Spanned<String>, Spanned<Vec<AxisEntry>>>,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// The processes, in order.
    #[serde(rename = "process", default)]
    pub processes: Vec<ProcessTable>,
    /// What makes it a study of its own.
    pub study: Option<StudyTable>,
    /// What its command line may ask for.
    #[serde(rename = "option", default)]
    pub options: Vec<OptionTable>,
    /// Numbers by name.
    #[serde(default)]
    pub numbers: Numbers,
    /// What every cell says of itself.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// What holds for some engines only. Each entry is a cell of its own.
    #[serde(default)]
    pub of_engines: Vec<EngineTable>,
    /// Processes for others to be like.
    #[serde(rename = "template", default)]
    pub templates: BTreeMap<String, ProcessTable>,
    /// Axes that several experiments have, for these to name.
    #[serde(rename = "axis", default)]
    pub shared_axes: Vec<AxisTable>,
    /// The questions of a study.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<ExperimentTable>,
}

/// Limits of a sweep.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The longest time of one benchmark.
    pub benchmark_seconds: Option<Spanned<f64>>,
}

/// A study.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTable {
    /// Its name.
    pub name: String,
    /// What it is about, in one line.
    pub about: String,
    /// Shown below its options.
    pub examples: String,
    /// The title of the report of one that is scaled.
    pub title_scaled: Option<String>,
    /// Whether an experiment is repeated before the next one begins.
    #[serde(default)]
    pub repeats_experiments: bool,
    /// Whether each repetition begins with another engine, so that none always runs on a machine
    /// just idle or just busy.
    #[serde(default)]
    pub takes_turns: bool,
    /// Whether everything is read once more at the end of a database.
    #[serde(default = "yes")]
    pub verifies: bool,
}

/// An option of a study. It gives its name, with `_` for `-`, a value.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionTable {
    /// The option without dashes.
    pub name: String,
    /// What it takes.
    pub kind: OptionKind,
    /// Shown in the help.
    pub help: String,
    /// What its value is called there.
    #[serde(default)]
    pub value_name: String,
    /// The value if it is not given.
    pub default: Option<String>,
    /// Values with what is said about them, of a choice.
    #[serde(default)]
    pub choices: Vec<(String, String)>,
    /// The least and the largest number.
    pub range: Option<(f64, f64)>,
    /// Numbers that a switch replaces.
    #[serde(default)]
    pub numbers: Numbers,
}

impl OptionTable {
    /// Its name in expressions.
    pub fn number_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptionKind {
    /// A whole number.
    Count,
    /// A number.
    Fraction,
    /// One of several words.
    Choice,
    /// Nothing.
    Switch,
    /// Names of experiments.
    Experiments,
}

/// Flags, and variants, of some engines.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineTable {
    /// The engines.
    pub names: Vec<String>,
    /// Their flags.
    #[serde(default)]
    pub flags: Flags,
    /// The name of a configuration of which there are several, each measured.
    #[serde(default)]
    pub variant: String,
}

/// An experiment.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentTable {
    /// Its name in cells.
    pub name: String,
    /// What it is about, for the help.
    #[serde(default)]
    pub about: String,
    /// Whether it is done unless others are requested; done if nothing is said.
    pub default: Option<String>,
    /// Repetitions, if not those of the study.
    pub repeat: Option<String>,
    /// Which combinations of its axes there are.
    pub when: Option<String>,
    /// Engines that stand in it whatever is requested.
    #[serde(default)]
    pub fixed_engines: Vec<String>,
    /// Engines that have no part in it.
    #[serde(default)]
    pub without: Vec<String>,
    /// Names that it replaces.
    #[serde(default)]
    pub numbers: Numbers,
    /// Flags of its processes.
    #[serde(default)]
    pub flags: Flags,
    /// Memory of each engine.
    pub memory: Option<String>,
    /// What varies, the slowest first.
    #[serde(rename = "axis", default)]
    pub axes: Vec<AxisTable>,
    /// Processes.
    #[serde(rename = "process", default)]
    pub processes: Vec<ProcessTable>,
}

/// Something that varies.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisTable {
    /// The variable; a name in expressions too.
    pub name: String,
    /// Its values.
    #[serde(default)]
    pub values: Vec<AxisEntry>,
    /// The name that has the values, joined by commas, where they are not listed.
    pub values_of: Option<String>,
    /// Whether cells do not say it.
    #[serde(default)]
    pub unsaid: bool,
}

/// A value of an axis; a plain one stands for itself.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// How it is shown, and what the axis' name stands for.
    pub shown: String,
    /// Names that it replaces.
    #[serde(default)]
    pub numbers: Numbers,
    /// Flags.
    #[serde(default)]
    pub flags: Flags,
    /// The engines that have it; all if none are named.
    #[serde(default)]
    pub engines: Vec<String>,
}

/// One process.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTable {
    /// Benchmarks in order: `NAME`, `NAME as ROW`, or a table.
    #[serde(default = "nothing")]
    pub benchmarks: Spanned<Vec<Spanned<Short<StepTable>>>>,
    /// Flags of this process.
    #[serde(default)]
    pub flags: Flags,
    /// Templates whose flags it has, and their benchmarks if it names none.
    #[serde(default)]
    pub like: Vec<String>,
    /// Whether it is there at all.
    pub when: Option<String>,
}

/// A benchmark of a process. What it says for itself, it says instead of the flags.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    /// `NAME` or `NAME as ROW`.
    pub run: String,
    /// Whether it makes a row.
    pub shown: Option<Scalar>,
    /// Engines that leave it out.
    #[serde(default)]
    pub without: Vec<String>,
    /// Client threads.
    pub threads: Option<Scalar>,
    /// Writes per thread.
    pub writes: Option<Scalar>,
    /// Reads per thread.
    pub reads: Option<Scalar>,
    /// Whether all latencies are taken.
    pub every_latency: Option<Scalar>,
    /// The longest time in seconds.
    pub most_seconds: Option<Scalar>,
    /// Whether the bytes on the device count once it has settled.
    pub settle: Option<Scalar>,
    /// Rate of the writer beside readers.
    pub writes_per_second: Option<Scalar>,
    /// Rate of all operations.
    pub rate: Option<Scalar>,
}

/// An engine, and when it is one of the study's own.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditional {
    /// Its name.
    pub name: String,
    /// The condition.
    pub when: Option<String>,
}

/// The value of a flag, as a command line would have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scalar(pub String);

fn yes() -> bool {
    true
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn nothing() -> Spanned<Vec<Spanned<Short<StepTable>>>> {
    Spanned::new(0..0, Vec::new())
}

/// What may be written as a plain value instead of a table.
#[derive(Debug, Clone, Default)]
pub struct Short<T>(pub T);

/// What a plain value, of whatever kind, is to a visitor.
macro_rules! visit_plain {
    ($value:ty, $from:expr) => {
        fn visit_bool<E: Error>(self, value: bool) -> Result<$value, E> {
            Ok($from(u8::from(value).to_string()))
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<$value, E> {
            Ok($from(value.to_string()))
        }
        fn visit_u64<E: Error>(self, value: u64) -> Result<$value, E> {
            Ok($from(value.to_string()))
        }
        fn visit_f64<E: Error>(self, value: f64) -> Result<$value, E> {
            Ok($from(value.to_string()))
        }
        fn visit_str<E: Error>(self, value: &str) -> Result<$value, E> {
            Ok($from(value.to_owned()))
        }
    };
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true or false")
            }
            visit_plain!(Scalar, Scalar);
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de, T: Deserialize<'de> + From<String>> Deserialize<'de> for Short<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Short<T>, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + From<String>> Visitor<'de> for Any<T> {
            type Value = Short<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true or false, or a table")
            }
            visit_plain!(Short<T>, |text: String| Short(T::from(text)));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Short<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Short)
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl From<String> for AxisValue {
    fn from(text: String) -> AxisValue {
        AxisValue { shown: text, ..AxisValue::default() }
    }
}

impl From<String> for StepTable {
    fn from(text: String) -> StepTable {
        StepTable { run: text, ..StepTable::default() }
    }
}

impl From<String> for Conditional {
    fn from(text: String) -> Conditional {
        Conditional { name: text, when: None }
    }
}

/// Reads a file's text.
pub fn parse(text: &str) -> Result<PlanFile, Problem> {
    toml::from_str(text).map_err(|error| Problem::at(error.span().unwrap_or(0..0), clarify(error.message())))
}

/// Adds to a message about an unknown key which known one is nearest to it. The message lists them
/// all in backquotes.
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
