//! `esker study rmw`: a counter is read, changed and written, or an operand is merged into it. The published run compared the two with
//! 50,000,000 counters and 10 threads of 50,000,000 operations each; this one does the same at three sizes, and varies what the difference
//! may come from.

mod experiments;
mod plan;
mod scale;

use crate::study::grid::{GridArguments, run_study};
use clap::ValueEnum;

pub use experiments::Experiment;
pub use plan::plan;
pub use scale::Scale;

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study rmw --scale 1/100
  esker study rmw --run rmw --repeat 3
  esker study rmw --scale 1
  esker study rmw --experiments seed,deferred --engines esker,rocksdb,leveldb

Experiments: `seed` has the published flags; `unscaled` the same with buffers of full size; `threads` 1 and 2
threads; `small-blocks` blocks of 4 KiB, with the cache as it was and with one that holds everything; `cached`
the latter with the published blocks; `operand` merges the number 1, as the page says, and random bytes, as
its program did; `deferred` reads what was updated and what was merged, and again after a compaction;
`recommended` does the same work, with the same blocks, on each engine as it is recommended today, filters
included, with 64 bytes of memory for each counter.

After each run every counter is compared with the sum that the run's random numbers lead to, and every
updated value with what some thread wrote last. At scale 1 only `recommended` and `seed` are measured unless
others are named, and only Esker. An interrupted run goes on where it ended when the same command is given again.

Exit codes: 0 all went well; 1 an engine failed or lost something; 2 wrong command line; 130 interrupted.";

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// What is common to all grids.
    #[command(flatten)]
    pub grid: GridArguments,
    /// Size, as a fraction of the published run
    #[arg(long, value_enum, value_name = "FRACTION", default_value = "1/10")]
    pub scale: Scale,
    /// What to measure, joined by commas [default: all; at scale 1 `recommended` and `seed`]
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    pub experiments: Vec<Experiment>,
}

impl Arguments {
    /// The engines that are measured unless others are asked for.
    pub fn engines(&self) -> &'static str {
        if self.scale == Scale::Full { "esker" } else { "esker,rocksdb" }
    }

    /// The experiments, each once.
    pub fn experiments(&self) -> Vec<Experiment> {
        let all = Experiment::value_variants();
        let asked = |experiment: &&Experiment| match (self.experiments.is_empty(), self.scale) {
            (false, _) => self.experiments.contains(experiment),
            (true, Scale::Full) => [Experiment::Seed, Experiment::Recommended].contains(experiment),
            (true, _) => true,
        };
        all.iter().filter(asked).copied().collect()
    }
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    run_study("study rmw", &arguments.grid, arguments.engines(), |engines| {
        plan(arguments.scale, &arguments.experiments(), engines, arguments.grid.repeat.unwrap_or(1))
    })
}
