//! The memory that each engine of a study gets: the same for all, divided as its documentation recommends.

use crate::engine::EngineOptions;

/// What a task writes, as far as the division of memory is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Keys and values of some hundred bytes.
    Entries,
    /// Small values, merged or written again and again.
    Counters,
    /// Values of [`LARGE_VALUE_BYTES`] and more.
    LargeValues,
}

/// From here on the division for large values is used.
pub const LARGE_VALUE_BYTES: usize = 10_000;

/// How one engine's share of memory is divided: percent of it for the write buffer; the rest is the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySplit {
    /// The engine.
    pub engine: &'static str,
    /// For [`Work::Entries`].
    pub entries_percent: u64,
    /// For [`Work::Counters`].
    pub counters_percent: u64,
    /// For [`Work::LargeValues`].
    pub large_values_percent: u64,
    /// Why so, or how it is to be read.
    pub note: &'static str,
}

impl MemorySplit {
    /// One line for readers.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { engine, entries_percent: entries, counters_percent: counters, large_values_percent: large, note } =
            self;
        match entries + counters + large {
            0 => format!("{engine}: {note}"),
            _ => format!(
                "{engine}: {entries} % write buffer, {counters} % for counters, {large} % for large values; {note}"
            ),
        }
    }

    /// Percent of the memory for the write buffer.
    #[must_use]
    pub fn write_buffer_percent(&self, work: Work) -> u64 {
        match work {
            Work::Entries => self.entries_percent,
            Work::Counters => self.counters_percent,
            Work::LargeValues => self.large_values_percent,
        }
    }
}

const fn split(engine: &'static str, [entries, counters, large]: [u64; 3], note: &'static str) -> MemorySplit {
    MemorySplit { engine, entries_percent: entries, counters_percent: counters, large_values_percent: large, note }
}

/// Under load two or three write buffers are in use, and all of them were measured with half, a quarter and an eighth of the memory (decision 28).
const FASTEST: &str = "of an eighth, a quarter and a half, the part for the write buffer with which it was fastest; the rest is block cache";

/// The division for every engine, for each kind of work the one with which it was fastest, and in favour of the peers where their
/// documentation recommends another.
pub const MEMORY: &[MemorySplit] = &[
    split("esker", [12, 50, 12], FASTEST),
    split("leveldb", [12, 25, 25], FASTEST),
    split("rocksdb", [12, 12, 25], FASTEST),
    split("sqlite", [0; 3], "no write buffer: all is page cache"),
    split("kyoto", [0; 3], "no write buffer: all is page cache"),
    split("lmdb", [0; 3], "no cache of its own: it maps the file, and the system's page cache comes on top"),
    split("redb", [0; 3], "one cache for reading and writing: all of it"),
    split("fjall", [25, 50, 25], FASTEST),
];

/// Sets an engine's share of `total` bytes.
pub fn set_memory(options: &mut EngineOptions, engine: &str, work: Work, total: u64) {
    let split = MEMORY.iter().find(|split| split.engine == engine);
    let buffer = total / 100 * split.map_or(25, |split| split.write_buffer_percent(work));
    options.write_buffer_bytes = buffer.max(64 << 10);
    options.cache_bytes = Some(total - buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ENGINES;

    const WORK: [Work; 3] = [Work::Entries, Work::Counters, Work::LargeValues];

    #[test]
    fn every_engine_gets_the_same_memory() {
        for (engine, work) in ENGINES.iter().flat_map(|engine| WORK.map(|work| (*engine, work))) {
            let mut options = EngineOptions::default();
            assert!(MEMORY.iter().any(|split| split.engine == engine));
            set_memory(&mut options, engine, work, 1000 << 20);
            let buffer = if options.cache_bytes == Some(1000 << 20) { 0 } else { options.write_buffer_bytes };
            assert_eq!(buffer + options.cache_bytes.unwrap_or(0), 1000 << 20);
        }
    }

    #[test]
    fn each_kind_of_work_has_its_own_division() {
        let buffer = |engine, work| {
            let mut options = EngineOptions::default();
            set_memory(&mut options, engine, work, 100 << 20);
            options.write_buffer_bytes >> 20
        };
        assert_eq!(WORK.map(|work| buffer("esker", work)), [12, 50, 12]);
        assert_eq!(WORK.map(|work| buffer("leveldb", work)), [12, 25, 25]);
    }
}
