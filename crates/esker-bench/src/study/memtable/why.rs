//! Why random reads are slower after a random load: because keys are missing, or because of how the tables lie?
//!
//! Each variant changes one thing about the load, the time between, or the reader. Lookups that find something and lookups that do not are
//! also measured apart, each on a database of its own: a reader changes what the next one finds, since the work that the load left behind
//! goes on while it reads. Only where nothing is left to do, after waiting or compacting, one database serves all readers.

use super::arguments::{Experiment, Part};
use super::grid::{filling, reading};
use super::sizes::Sizes;
use crate::study::grid::Cell;
use crate::study::process::{Process, cell, silent};
use crate::study::task::Step;

const WRITE_BUFFERS_MIB: [u64; 2] = [2, 32];
const MAX_FILE_MIB: u64 = 2;

/// What is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Plain,
    WaitIdle,
    Compact,
    UniqueKeys,
    Bloom10,
    AllKeys,
    OtherSeed,
}

impl Variant {
    const ALL: [Variant; 7] = [
        Variant::Plain,
        Variant::WaitIdle,
        Variant::Compact,
        Variant::UniqueKeys,
        Variant::Bloom10,
        Variant::AllKeys,
        Variant::OtherSeed,
    ];

    fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::WaitIdle => "wait idle",
            Variant::Compact => "compact",
            Variant::UniqueKeys => "unique keys",
            Variant::Bloom10 => "bloom 10",
            Variant::AllKeys => "all keys",
            Variant::OtherSeed => "other seed",
        }
    }

    /// Whether a reader leaves the database as it was.
    fn settles(self) -> bool {
        matches!(self, Variant::WaitIdle | Variant::Compact)
    }
}

/// The cells of one repetition.
pub fn cells(part: &Part, sizes: Sizes, engines: &[String], repetition: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for buffer in WRITE_BUFFERS_MIB {
        for variant in Variant::ALL {
            for engine in engines {
                let variables = [("write_buffer_mib", buffer.to_string()), ("variant", variant.name().to_string())];
                let processes = processes(part, sizes, buffer, variant);
                cells.push(cell(Experiment::Why.name(), engine, "", &variables, repetition, processes));
            }
        }
    }
    cells
}

fn processes(part: &Part, sizes: Sizes, buffer: u64, variant: Variant) -> Vec<Process> {
    let mut processes = load(part, sizes, buffer, variant, Some("fill"));
    processes.push(reader(part, sizes, variant, "readrandom", "readrandom"));
    if variant == Variant::UniqueKeys {
        // Every lookup finds something.
        return processes;
    }
    for (benchmark, row) in [("readpresent", "readrandom hits"), ("readabsent", "readrandom misses")] {
        if !variant.settles() {
            processes.extend(load(part, sizes, buffer, variant, None));
        }
        processes.push(reader(part, sizes, variant, benchmark, row));
    }
    processes
}

fn load(part: &Part, sizes: Sizes, buffer: u64, variant: Variant, row: Option<&str>) -> Vec<Process> {
    let benchmark = if variant == Variant::UniqueKeys { "filluniquerandom" } else { "fillrandom" };
    let mut fill = filling(part, sizes, Step::new(benchmark, row), buffer, MAX_FILE_MIB).flag("statistics", 1);
    if variant == Variant::Bloom10 {
        fill = fill.flag("bloom_bits", 10);
    }
    let mut processes = vec![fill];
    if variant == Variant::Compact {
        // In a process of its own, so that the reader's random numbers are the same as always.
        processes.push(reading(sizes, silent("compact")));
    }
    processes
}

fn reader(part: &Part, sizes: Sizes, variant: Variant, benchmark: &str, row: &str) -> Process {
    let reader = reading(sizes, Step::new(benchmark, Some(row)))
        .flag("fill_num", sizes.fill())
        .flag("statistics", 1)
        .flag("comparisons", u8::from(!part.no_comparisons));
    match variant {
        Variant::WaitIdle => reader.flag("wait_idle_before_read", 1),
        Variant::Bloom10 => reader.flag("bloom_bits", 10),
        Variant::AllKeys => reader.flag("num", sizes.fill()),
        Variant::OtherSeed => reader.flag("seed", 2000),
        Variant::Plain | Variant::Compact | Variant::UniqueKeys => reader,
    }
}
