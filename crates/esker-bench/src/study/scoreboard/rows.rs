//! What the scoreboard measures: groups of rows that share a database.
//!
//! The rows of a group follow each other at once, so that a load and the reads of it are close in time; engines take turns group by group.

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
    /// Rate of the thread that writes beside the readers; `None`: as fast as it can.
    pub writes_per_second: Option<u32>,
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
    Row {
        name: Some(name),
        benchmark,
        threads: 1,
        names_threads: false,
        operations: Operations::Defined,
        writes_per_second: None,
    }
}

const fn synced(name: &'static str) -> Row {
    Row { operations: Operations::Synced, ..row(name) }
}

const fn counter(name: &'static str, benchmark: &'static str, threads: u32) -> Row {
    Row {
        name: Some(name),
        benchmark,
        threads,
        names_threads: true,
        operations: Operations::Shared,
        writes_per_second: None,
    }
}

/// The rate at which every engine's writer works where it is given: one that all but the slowest of the peers keep up with
/// beside a busy reader.
pub const WRITES_PER_SECOND: u32 = 20_000;

const fn paced(name: &'static str, benchmark: &'static str) -> Row {
    Row { writes_per_second: Some(WRITES_PER_SECOND), ..named(name, benchmark) }
}

/// Run for its effect.
const fn unshown(benchmark: &'static str) -> Row {
    Row { name: None, ..row(benchmark) }
}

const WAIT: Row = unshown("waitidle");

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
    group(
        "mixed work",
        &[
            unshown("fillrandom"),
            WAIT,
            row("seekafterwrite"),
            row("zipfian"),
            row("scanwhilewriting"),
            // What an engine still owes for the writes of the row before is not part of these, and a faster writer has left more of it.
            WAIT,
            paced("readwhilewriting, 20000 writes/s", "readwhilewriting"),
            paced("scanwhilewriting, 20000 writes/s", "scanwhilewriting"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_benchmark_and_labels_are_unique() {
        let mut labels = Vec::new();
        for row in GROUPS.iter().flat_map(|group| group.rows) {
            assert!(crate::workload::find(row.benchmark).is_some(), "{}", row.benchmark);
            assert!(row.writes_per_second.is_none_or(|rate| row.label().contains(&rate.to_string())));
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
}
