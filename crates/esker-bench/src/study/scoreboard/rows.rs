//! What the scoreboard measures: groups of rows that share a database, and the memory each engine gets.
//!
//! The rows of a group follow each other at once, so that a load and the reads of it are close in time; engines take turns group by group.

use crate::engine::EngineOptions;

/// How many operations a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operations {
    /// As the benchmark defines it from the number of entries.
    Defined,
    /// The number of synced writes of the study.
    Synced,
    /// The number of entries, divided among the threads: the same work for any number of threads.
    Shared,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its name; `None`: it is run for its effect and shown nowhere.
    pub name: Option<&'static str>,
    /// The benchmark.
    pub benchmark: &'static str,
    /// Client threads.
    pub threads: u32,
    /// Whether the name is completed by the number of threads.
    pub names_threads: bool,
    /// Its operations.
    pub operations: Operations,
}

/// Rows that share a database.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Its name, for progress.
    pub name: &'static str,
    /// The rows, in order.
    pub rows: &'static [Row],
    /// Whether this is about counters: values of 8 bytes, merged by addition.
    pub counters: bool,
    /// Whether the log is off.
    pub disable_wal: bool,
}

const fn row(name: &'static str) -> Row {
    named(name, name)
}

const fn named(name: &'static str, benchmark: &'static str) -> Row {
    Row { name: Some(name), benchmark, threads: 1, names_threads: false, operations: Operations::Defined }
}

const fn synced(name: &'static str) -> Row {
    Row { operations: Operations::Synced, ..row(name) }
}

const fn counter(name: &'static str, benchmark: &'static str, threads: u32) -> Row {
    Row { name: Some(name), benchmark, threads, names_threads: true, operations: Operations::Shared }
}

const WAIT: Row = Row { name: None, ..row("waitidle") };

const fn group(name: &'static str, rows: &'static [Row]) -> Group {
    Group { name, rows, counters: false, disable_wal: false }
}

/// All groups, in the order in which they are measured.
pub const GROUPS: &[Group] = &[
    group("sequential load", &[row("fillseq"), row("readseq"), row("readreverse")]),
    group(
        "random load",
        &[
            row("fillrandom"),
            row("readrandom"),
            row("readhot"),
            row("readmissing"),
            row("seekrandom"),
            named("readseq after fillrandom", "readseq"),
            WAIT,
            named("readrandom settled", "readrandom"),
            row("overwrite"),
            row("readwhilewriting"),
            row("deleterandom"),
        ],
    ),
    group("batches", &[row("fillbatch"), row("fillrandbatch")]),
    group("100,000-byte values", &[row("fill100K"), row("fillseq100K"), row("fillrand100K")]),
    group("synced writes", &[synced("fillsync"), synced("fillseqsync"), synced("fillrandsync")]),
    Group {
        name: "counters by read and write",
        rows: &[
            counter("updaterandom", "updaterandom", 1),
            counter("updaterandom", "updaterandom", 2),
            counter("updaterandom", "updaterandom", 10),
        ],
        counters: true,
        disable_wal: true,
    },
    Group {
        name: "counters by merge",
        rows: &[
            counter("mergerandom", "mergerandom", 1),
            counter("mergerandom", "mergerandom", 2),
            counter("mergerandom", "mergerandom", 10),
        ],
        counters: true,
        disable_wal: true,
    },
    Group {
        name: "counters by merge, with log",
        rows: &[counter("mergerandom with log", "mergerandom", 1)],
        counters: true,
        disable_wal: false,
    },
];

impl Row {
    /// What the row is called in tables.
    pub fn label(&self) -> String {
        let name = self.name.unwrap_or(self.benchmark);
        match (self.names_threads, self.threads) {
            (false, _) => name.to_string(),
            (true, 1) => format!("{name}, 1 thread"),
            (true, threads) => format!("{name}, {threads} threads"),
        }
    }
}

/// How one engine's share of memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySplit {
    /// The engine.
    pub engine: &'static str,
    /// Percent of the memory for the write buffer; the rest is the cache.
    pub write_buffer_percent: u64,
    /// Why so.
    pub reason: &'static str,
}

const fn split(engine: &'static str, write_buffer_percent: u64, reason: &'static str) -> MemorySplit {
    MemorySplit { engine, write_buffer_percent, reason }
}

/// The division for every engine, chosen in favour of the peers where their documentation recommends another than half and half.
pub const MEMORY: &[MemorySplit] = &[
    split("esker", 50, "half write buffer, half block cache"),
    split("leveldb", 50, "half write buffer, half block cache"),
    split("rocksdb", 50, "half write buffer, half block cache"),
    split("sqlite", 0, "no write buffer: all is page cache"),
    split("kyoto", 0, "no write buffer: all is page cache"),
    split("lmdb", 0, "no cache of its own: it maps the file, and the system's page cache comes on top"),
    split("redb", 0, "one cache for reading and writing: all of it"),
    split("fjall", 50, "half write buffer, half block cache"),
];

/// Sets an engine's share of `total` bytes.
pub fn set_memory(options: &mut EngineOptions, engine: &str, total: u64) {
    let percent = MEMORY.iter().find(|split| split.engine == engine).map_or(50, |split| split.write_buffer_percent);
    let buffer = total / 100 * percent;
    options.write_buffer_bytes = buffer.max(64 << 10);
    options.cache_bytes = Some(total - buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ENGINES;

    #[test]
    fn every_row_is_a_benchmark_and_labels_are_unique() {
        let mut labels = Vec::new();
        for row in GROUPS.iter().flat_map(|group| group.rows) {
            assert!(crate::workload::find(row.benchmark).is_some(), "{}", row.benchmark);
            if row.name.is_some() {
                labels.push(row.label());
            }
        }
        let count = labels.len();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), count);
        assert!(labels.contains(&"mergerandom, 10 threads".to_string()));
    }

    #[test]
    fn every_engine_gets_the_same_memory() {
        for engine in ENGINES {
            let mut options = EngineOptions::default();
            assert!(MEMORY.iter().any(|split| split.engine == engine));
            set_memory(&mut options, engine, 1000 << 20);
            let buffer = if options.cache_bytes == Some(1000 << 20) { 0 } else { options.write_buffer_bytes };
            assert_eq!(buffer + options.cache_bytes.unwrap_or(0), 1000 << 20);
        }
    }
}
