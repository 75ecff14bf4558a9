//! The study's other topics: one setting each, a load and reads in one process.

use super::arguments::Experiment;
use super::sizes::Sizes;
use crate::study::grid::Cell;
use crate::study::process::{Process, cell, step};

/// One setting and its values.
pub struct Topic {
    /// Which one.
    pub experiment: Experiment,
    values: &'static [Value],
    benchmarks: &'static [&'static str],
}

/// One value of a setting.
struct Value {
    shown: &'static str,
    set: Set,
    /// The engines that have it.
    engines: &'static [&'static str],
}

/// How a value is asked for.
enum Set {
    /// As the engine has it by itself.
    Nothing,
    /// A flag, not scaled.
    Flag(&'static str, i64),
    /// The cache, scaled with everything else.
    Cache(u64),
}

const fn value(shown: &'static str, set: Set, engines: &'static [&'static str]) -> Value {
    Value { shown, set, engines }
}

const TREES: &[&str] = &["esker", "leveldb", "rocksdb", "fjall"];
/// Esker takes at most 64 filter bits.
const WITH_MANY_BITS: &[&str] = &["leveldb", "rocksdb", "fjall"];
/// Engines that can leave the log out, or the nearest they have.
const WITHOUT_LOG: &[&str] = &["esker", "rocksdb", "redb", "fjall"];
const WITH_JOBS: &[&str] = &["esker", "rocksdb", "fjall"];
const WITH_STYLES: &[&str] = &["esker", "rocksdb"];
const WITH_CACHE: &[&str] = &["esker", "leveldb", "rocksdb", "sqlite", "kyoto", "redb", "fjall"];
const ALL_ENGINES: &[&str] = &crate::engine::ENGINES;
/// Engines whose page is what blocks are to the others.
const WITH_PAGES: &[&str] = &["sqlite", "kyoto"];

const LOADS: &[&str] = &["fillseq", "fillrandom", "fillseqbatch", "fillrandbatch", "overwrite"];
const SEARCHES: &[&str] = &["fillrandom", "readhot", "readrandom", "readmissing", "seekrandom"];

/// All topics.
pub const ALL: [Topic; 5] = [
    Topic {
        experiment: Experiment::Wal,
        benchmarks: LOADS,
        values: &[
            value("on", Set::Nothing, ALL_ENGINES),
            value("on, written back every MiB", Set::Flag("wal_bytes_per_sync", 1 << 20), &["rocksdb"]),
            value("off", Set::Flag("disable_wal", 1), WITHOUT_LOG),
        ],
    },
    Topic {
        experiment: Experiment::Style,
        benchmarks: &["fillrandom", "overwrite", "readrandom", "readseq"],
        values: &[
            value("default", Set::Nothing, ALL_ENGINES),
            value("leveled", Set::Flag("compaction_style", 0), WITH_STYLES),
            value("tiered", Set::Flag("compaction_style", 1), WITH_STYLES),
            value("default, 1 job", Set::Flag("max_background_jobs", 1), WITH_JOBS),
            value("default, 2 jobs", Set::Flag("max_background_jobs", 2), WITH_JOBS),
            value("default, 4 jobs", Set::Flag("max_background_jobs", 4), WITH_JOBS),
        ],
    },
    Topic {
        experiment: Experiment::BlockSize,
        benchmarks: &["fillrandom", "readhot", "readrandom", "seekrandom", "readseq"],
        values: &[
            value("1 KiB", Set::Flag("block_size", 1 << 10), TREES),
            value("4 KiB", Set::Flag("block_size", 4 << 10), TREES),
            value("16 KiB", Set::Flag("block_size", 16 << 10), TREES),
            value("64 KiB", Set::Flag("block_size", 64 << 10), TREES),
            value("1 KiB", Set::Flag("page_size", 1 << 10), WITH_PAGES),
            value("4 KiB", Set::Flag("page_size", 4 << 10), WITH_PAGES),
            value("16 KiB", Set::Flag("page_size", 16 << 10), WITH_PAGES),
            value("64 KiB", Set::Flag("page_size", 64 << 10), WITH_PAGES),
        ],
    },
    Topic {
        experiment: Experiment::Filter,
        benchmarks: SEARCHES,
        values: &[
            value("-1", Set::Flag("bloom_bits", -1), TREES),
            value("0", Set::Flag("bloom_bits", 0), TREES),
            value("1", Set::Flag("bloom_bits", 1), TREES),
            value("5", Set::Flag("bloom_bits", 5), TREES),
            value("10", Set::Flag("bloom_bits", 10), TREES),
            value("30", Set::Flag("bloom_bits", 30), TREES),
            value("50", Set::Flag("bloom_bits", 50), TREES),
            value("100", Set::Flag("bloom_bits", 100), WITH_MANY_BITS),
        ],
    },
    Topic {
        experiment: Experiment::Cache,
        benchmarks: SEARCHES,
        values: &[
            value("0", Set::Cache(0), WITH_CACHE),
            value("1 MiB", Set::Cache(1 << 20), WITH_CACHE),
            value("8 MiB", Set::Cache(8 << 20), WITH_CACHE),
            value("64 MiB", Set::Cache(64 << 20), WITH_CACHE),
            value("all", Set::Cache(512 << 20), WITH_CACHE),
        ],
    },
];

impl Topic {
    /// The cells of one repetition. An engine without the setting has none.
    pub fn cells(&self, sizes: Sizes, engines: &[String], repetition: u32) -> Vec<Cell> {
        let mut cells = Vec::new();
        for value in self.values {
            for engine in engines.iter().filter(|engine| value.engines.contains(&engine.as_str())) {
                let variables = [(self.experiment.name(), value.shown.to_string())];
                let process = self.process(sizes, value);
                cells.push(cell(self.experiment.name(), engine, "", &variables, repetition, vec![process]));
            }
        }
        cells
    }

    fn process(&self, sizes: Sizes, value: &Value) -> Process {
        let process = Process::fresh(self.benchmarks.iter().map(|benchmark| step(benchmark)).collect())
            .flag("num", sizes.topic())
            .flag("write_buffer_size", sizes.mib(4))
            .flag("cache_size", sizes.mib(8));
        match value.set {
            Set::Nothing => process,
            Set::Flag(name, number) => process.flag(name, number),
            Set::Cache(0) => process.flag("cache_size", 0),
            Set::Cache(bytes) => process.flag("cache_size", sizes.bytes(bytes)),
        }
    }
}
