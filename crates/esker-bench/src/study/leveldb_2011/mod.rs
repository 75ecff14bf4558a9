//! `esker study leveldb-2011`: the benchmark page that came with LevelDB in July 2011, which put it beside SQLite and Kyoto Cabinet's TreeDB, with
//! every engine of today.
//!
//! The page's own settings are kept: 2 MiB of write buffer and 2 MiB of cache, pages of 1 KiB, no filters, values that shrink to half. SQLite
//! is measured twice, with the row ids that its table had then and without, as LevelDB's comparison has it since 2019. What synced writes cost is
//! the device's doing, so its own time for an append and an fdatasync stands beside them (engine `device`, row `device sync`).

mod arguments;
mod engines;
mod plan;

use super::grid::run_study;

pub use arguments::{Arguments, Experiment, Part};
pub use plan::plan;

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study leveldb-2011                             the whole page on every engine found here
  esker study leveldb-2011 --experiments baseline,sync --engines leveldb,sqlite
  esker study leveldb-2011 --scale 0.01 --repeat 1     a quick look

Interrupt it at any time: the same command goes on where it ended.

Experiments:
  baseline              loads and reads with the page's small buffers, also after a random load and after a compaction
  large-values          values of 100,000 bytes
  batches               1000 entries a batch
  sync                  every write waits for the device; and what the device takes by itself
  no-compression        loads, on engines that compress
  more-memory           loads with 120 MiB of write buffer, or a cache of 128 MiB
  larger-caches         reads with a cache of 120 or 128 MiB
  no-compression-reads  reads, on engines that compress
  kill                  are puts that a killed process had acknowledged all there?

Left out, because there is nothing to vary: compression of SQLite, LMDB and redb; memory of LMDB, which
maps its file. Left out of `kill`: Kyoto Cabinet, whose writes stay in the process by design.";

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    let repeat = arguments.grid.repeat.unwrap_or(3);
    run_study("study leveldb-2011", &arguments.grid, "all", |engines| plan(&arguments.part, engines, repeat))
}
