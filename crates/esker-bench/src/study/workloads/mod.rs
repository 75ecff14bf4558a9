//! `esker study workloads`: what the usual benchmarks leave out. The mixes of YCSB, a queue, scans over deleted prefixes, entries that
//! expire while they are scanned, popular counters, opening after the death of a process, and latencies at fixed rates.

pub mod plan;

use super::grid::{GridArguments, run_study};

/// The engines that are measured when none are named.
pub const ENGINES: &str = "all";

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study workloads                            all engines, about half an hour
  esker study workloads --quick                    the same, small, in about three minutes
  esker study workloads --engines esker,rocksdb --only rates,open --repeat 3

Experiments: `mixes` are YCSB's A to F with one and two threads; `queue` puts at one end and takes from the
other; `tombstones` scans prefixes of which most was deleted; `expiry` scans while entries expire (engines
without a time to live of their own are left out); `counters` adds to popular counters; `open` kills the
process that wrote, and opens databases of several sizes then, and once more closed; `log` does so with
nothing but a log of several sizes; `rates` does mix A at fixed rates, with latencies from the intended starts.

A run that was interrupted goes on where it ended when the same command is given again.

Exit codes: 0 all went well; 1 an engine failed; 2 wrong command line; 130 interrupted.";

/// The arguments of the study.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// What all grid studies ask for
    #[command(flatten)]
    pub grid: GridArguments,
    /// A tenth of the size
    #[arg(long)]
    pub quick: bool,
    /// Experiments to do, joined by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<plan::Experiment>,
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    let size = if arguments.quick { plan::QUICK } else { plan::FULL };
    let repeat = arguments.grid.repeat.unwrap_or(1);
    run_study("study workloads", &arguments.grid, ENGINES, |engines| {
        plan::plan(engines, &size, &arguments.only, repeat)
    })
}
