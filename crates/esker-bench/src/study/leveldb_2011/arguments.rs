//! What the command line of the study says.

use crate::study::grid::GridArguments;
use clap::ValueEnum;

/// A part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Small buffers.
    Baseline,
    /// Values of 100,000 bytes.
    LargeValues,
    /// Batches of 1000.
    Batches,
    /// Writes that wait for the device.
    Sync,
    /// Loads without compression.
    NoCompression,
    /// Loads with 128 MB.
    MoreMemory,
    /// Reads with 128 MB.
    LargerCaches,
    /// Reads without compression.
    NoCompressionReads,
    /// What is left of the puts of a killed process.
    Kill,
}

impl Experiment {
    /// In the order of the page.
    pub const ALL: [Experiment; 9] = [
        Experiment::Baseline,
        Experiment::LargeValues,
        Experiment::Batches,
        Experiment::Sync,
        Experiment::NoCompression,
        Experiment::MoreMemory,
        Experiment::LargerCaches,
        Experiment::NoCompressionReads,
        Experiment::Kill,
    ];

    /// The name in cells.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Baseline => "baseline",
            Experiment::LargeValues => "large values",
            Experiment::Batches => "batches",
            Experiment::Sync => "sync",
            Experiment::NoCompression => "no compression",
            Experiment::MoreMemory => "more memory",
            Experiment::LargerCaches => "larger caches",
            Experiment::NoCompressionReads => "no compression reads",
            Experiment::Kill => "kill",
        }
    }
}

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// What all grids of cells have in common.
    #[command(flatten)]
    pub grid: GridArguments,
    /// What of the study is run.
    #[command(flatten)]
    pub part: Part,
}

/// What of the study is run.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct Part {
    /// What to measure, joined by commas [default: everything]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub experiments: Vec<Experiment>,
    /// Multiplies the million of entries and all buffers; below 0.1 the cost of making files is measured more than anything else
    #[arg(long, value_name = "FRACTION", default_value_t = 1.0)]
    pub scale: f64,
    /// Writes that wait for the device (the page: 10,000)
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub sync_ops: u64,
    /// Puts before the process that makes them is killed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub kill_ops: u64,
}
