//! `esker study memtable`: how the sizes of write buffer and table files act on loads, and on reads in another process afterwards.
//!
//! The published study ran LevelDB 1.23 over five sizes of each. Its readers looked at the lowest fifth of the keys, with the writer's random
//! numbers, default buffers and no filter: all of that is kept, because its figures depend on it. Two more parts ask why random reads are slower
//! after a random load than after a sequential one, and look at the study's other topics.

mod arguments;
mod grid;
mod plan;
mod sizes;
mod topics;
mod why;

use super::grid::run_study;

pub use arguments::{Arguments, Experiment, Part};
pub use plan::plan;

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study memtable                                 the whole study on Esker, LevelDB and RocksDB
  esker study memtable --scale 0.1 --experiments grid  a tenth of the entries, and of every buffer
  esker study memtable --experiments why,filter --engines esker,leveldb

Interrupt it at any time: the same command goes on where it ended.

Experiments:
  grid         write buffer x table size, 2 to 32 MiB each: load in order and at random, each read by another process
  why          what makes reads after a random load slow: 2 and 32 MiB of write buffer, seven variants,
               and lookups that find something apart from those that do not
  wal          loads with and without a log
  style        compaction styles and numbers of background jobs
  block-size   1 to 64 KiB
  filter       no filter to 100 bits a key
  cache        no cache to one that holds everything

A load is 5,000,000 entries, a read 1,000,000 lookups; the last five experiments have 1,000,000 entries.
Nothing is compressed in `grid` and `why`, as in the published study. Both count key comparisons in LevelDB
and RocksDB, which costs these some time, unless --no-comparisons is given.";

/// Measured unless others are asked for.
const ENGINES: &str = "esker,leveldb,rocksdb";

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    let repeat = arguments.grid.repeat.unwrap_or(1);
    run_study("study memtable", &arguments.grid, ENGINES, |engines| plan(&arguments.part, engines, repeat))
}
