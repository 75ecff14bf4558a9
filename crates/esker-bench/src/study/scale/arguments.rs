//! What the command line of the study says, and asks of the plan in `studies/scale.toml`.

use crate::sweep::grid::Plan;
use crate::sweep::plan::{PlanText, Wanted};
use clap::ValueEnum;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// More and more entries.
    Grow,
    /// More and more threads.
    Threads,
    /// Creating and opening.
    Open,
    /// More data than memory.
    Dataset,
}

impl Part {
    /// Its name in the plan.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Engines, by name, joined by commas
    #[arg(long, value_name = "NAMES", default_value = "esker")]
    pub engines: String,
    /// What to measure, joined by commas; `dataset` needs --dataset-gb [default: grow,threads,open,
    /// and dataset with --dataset-gb]
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub parts: Vec<Part>,
    /// Numbers of entries of `grow`
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1_000_000, 10_000_000, 50_000_000])]
    pub nums: Vec<u64>,
    /// Random reads of `grow` and `dataset`
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub reads: u64,
    /// Numbers of client threads of `threads`
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
    pub threads: Vec<u32>,
    /// Entries of `threads`
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub threads_num: u64,
    /// Entries of the database that `open` opens
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub open_entries: u64,
    /// Keys and values of `dataset` together, in units of 10^9 bytes
    #[arg(long, value_name = "GB")]
    pub dataset_gb: Option<f64>,
    /// Bytes of a value of `dataset`
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub dataset_value_size: u64,
    /// Memory of each engine, write buffer and cache together, in bytes [default: 134 bytes an
    /// entry, at least 8 MiB, at most a quarter of the machine's; for `grow` 200 and a half, so
    /// that all is in memory; for `dataset` a sixteenth of the machine's, at most 1 GiB]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Repetitions; medians are shown
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub repeat: u32,
    /// File for one JSON object per measured row and per figure, written as they are known
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Directory for the databases
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Shared library of an engine; may be given several times
    #[arg(long = "lib", value_name = "NAME=PATH")]
    pub libraries: Vec<String>,
}

/// Bytes of a key.
const KEY_BYTES: u64 = 16;

/// What the command line asks for.
pub fn chosen(arguments: &Arguments) -> Vec<Part> {
    if !arguments.parts.is_empty() {
        return arguments.parts.clone();
    }
    let mut parts = vec![Part::Grow, Part::Threads, Part::Open];
    parts.extend(arguments.dataset_gb.map(|_| Part::Dataset));
    parts
}

/// The error is one line.
pub fn check(arguments: &Arguments) -> Result<(), String> {
    let few = |number: &u64| *number < 1000;
    let Arguments { nums, threads, threads_num, open_entries, dataset_gb, .. } = arguments;
    if nums.is_empty() || nums.iter().chain([threads_num, open_entries, &arguments.reads]).any(few) {
        return Err("--nums, --reads, --threads-num and --open-entries must be at least 1000".into());
    }
    if threads.is_empty() || threads.contains(&0) || arguments.repeat == 0 {
        return Err("--threads and --repeat must be at least 1".into());
    }
    if chosen(arguments).contains(&Part::Dataset) && !dataset_gb.is_some_and(|gb| gb > 0.0 && gb <= 1e6) {
        return Err("the part `dataset` needs --dataset-gb, above 0".into());
    }
    let sizes = match dataset_gb {
        Some(gb) if *gb * 1e9 < 1000.0 * (KEY_BYTES + arguments.dataset_value_size) as f64 => "fewer than 1000 entries",
        Some(_) if arguments.dataset_value_size > 1_000_000 => "a value of at most 1000000 bytes is needed",
        _ => return Ok(()),
    };
    Err(format!("--dataset-gb, --dataset-value-size: {sizes}"))
}

/// The cells of the parts that were requested, for these engines on a machine with so much memory.
/// The error is one line.
pub fn plan(arguments: &Arguments, engines: &[String], machine_bytes: u64) -> Result<Plan, String> {
    let text = PlanText::parse(Path::new("studies/scale.toml"), include_str!("../../../studies/scale.toml"))?;
    let list = |numbers: Vec<String>| numbers.join(",");
    let numbers = [
        ("nums", list(arguments.nums.iter().map(u64::to_string).collect())),
        ("reads", arguments.reads.to_string()),
        ("thread_counts", list(arguments.threads.iter().map(u32::to_string).collect())),
        ("threads_num", arguments.threads_num.to_string()),
        ("open_entries", arguments.open_entries.to_string()),
        ("dataset_bytes", (arguments.dataset_gb.unwrap_or(0.0) * 1e9).to_string()),
        ("dataset_value_size", arguments.dataset_value_size.to_string()),
        ("memory", arguments.memory.unwrap_or(0).to_string()),
        ("machine", machine_bytes.to_string()),
    ];
    text.plan(&Wanted {
        engines: engines.to_vec(),
        repeat: arguments.repeat,
        experiments: chosen(arguments).into_iter().map(Part::name).collect(),
        numbers: numbers.map(|(name, value)| (name.to_string(), value)).into(),
    })
}
