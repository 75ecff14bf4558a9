//! Write buffer by table size: four processes a cell, with the flags of the published study.

use super::arguments::{Experiment, Part};
use super::sizes::Sizes;
use crate::study::grid::Cell;
use crate::study::process::{Process, cell, step};
use crate::study::task::Step;

/// Sizes of write buffer and table, in MiB.
pub const SIZES_MIB: [u64; 5] = [2, 4, 8, 16, 32];

/// A load with the flags of the published study, and what must be said since its defaults differ here: its LevelDB was built without a
/// codec, and a cache of 8 MiB is LevelDB's own.
pub fn filling(part: &Part, sizes: Sizes, benchmark: Step, write_buffer_mib: u64, max_file_mib: u64) -> Process {
    Process::fresh(vec![benchmark])
        .flag("num", sizes.fill())
        .flag("reads", sizes.read())
        .flag("value_size", 100)
        .flag("compression_ratio", 1)
        .flag("compression", 0)
        .flag("comparisons", u8::from(!part.no_comparisons))
        .flag("bloom_bits", 0)
        .flag("write_buffer_size", sizes.mib(write_buffer_mib))
        .flag("max_file_size", sizes.mib(max_file_mib))
        .flag("cache_size", sizes.mib(8))
        .flag("open_files", 1024)
}

/// The reader of the published study: it knows nothing of the load's flags, so it has default buffers, no filter, and a fifth of the keys.
pub fn reading(sizes: Sizes, benchmark: Step) -> Process {
    Process::continued(vec![benchmark])
        .flag("num", sizes.read())
        .flag("reads", sizes.read())
        .flag("compression", 0)
        .flag("bloom_bits", -1)
        .flag("write_buffer_size", sizes.mib(4))
        .flag("cache_size", sizes.mib(8))
        .flag("open_files", 1024)
}

/// The cells of one repetition: all of them, or beyond `repeat` those that are measured more often.
pub fn cells(part: &Part, sizes: Sizes, engines: &[String], repetition: u32, repeat: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (row, buffer) in SIZES_MIB.into_iter().enumerate() {
        for (column, file) in SIZES_MIB.into_iter().enumerate() {
            if repetition > repeat && !is_spot(row, column) {
                continue;
            }
            for engine in engines {
                let variables = [("write_buffer_mib", buffer.to_string()), ("max_file_mib", file.to_string())];
                let processes = processes(part, sizes, buffer, file);
                cells.push(cell(Experiment::Grid.name(), engine, "", &variables, repetition, processes));
            }
        }
    }
    cells
}

fn processes(part: &Part, sizes: Sizes, buffer: u64, file: u64) -> Vec<Process> {
    let pair = |fill: &str| {
        let row = format!("readrandom after {fill}");
        [filling(part, sizes, step(fill), buffer, file), reading(sizes, Step::new("readrandom", Some(&row)))]
    };
    ["fillseq", "fillrandom"].into_iter().flat_map(pair).collect()
}

/// The corners and the diagonal.
fn is_spot(row: usize, column: usize) -> bool {
    let last = SIZES_MIB.len() - 1;
    row == column || ([0, last].contains(&row) && [0, last].contains(&column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_cells_are_spots() {
        let spots = (0..25).filter(|index| is_spot(index / 5, index % 5)).count();
        assert_eq!(spots, 7);
    }
}
