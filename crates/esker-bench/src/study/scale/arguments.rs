//! What the command line of the study says.

use clap::ValueEnum;
use serde::Serialize;
use std::path::PathBuf;

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
