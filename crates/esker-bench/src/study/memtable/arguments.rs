//! What the command line of the study says.

use crate::study::grid::GridArguments;
use clap::ValueEnum;

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Write buffer and table size.
    Grid,
    /// Why reads after a random load are slow.
    Why,
    /// The log.
    Wal,
    /// Compaction styles and background jobs.
    Style,
    /// Block sizes.
    BlockSize,
    /// Filter sizes.
    Filter,
    /// Cache sizes.
    Cache,
}

impl Experiment {
    /// The name in cells, which for the topics is also that of their variable.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Grid => "grid",
            Experiment::Why => "why",
            Experiment::Wal => "wal",
            Experiment::Style => "style",
            Experiment::BlockSize => "block size",
            Experiment::Filter => "filter",
            Experiment::Cache => "cache",
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
    /// Multiplies entries, reads, and all buffers; below 0.1 the cost of making files is measured more than anything else
    #[arg(long, value_name = "FRACTION", default_value_t = 1.0)]
    pub scale: f64,
    /// Repetitions of the corners and the diagonal of the grid, if more than --repeat, which is 1 unless given
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub spot_repeat: u32,
    /// Do not count key comparisons: LevelDB and RocksDB then compare with their own functions
    #[arg(long)]
    pub no_comparisons: bool,
}
