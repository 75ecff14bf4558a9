//! The memory that each engine of a study gets: the same for all, divided as its documentation recommends.

use crate::engine::EngineOptions;

/// How one engine's share of memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySplit {
    /// The engine.
    pub engine: &'static str,
    /// Percent of the memory for the write buffer; the rest is the cache.
    pub write_buffer_percent: u64,
    /// The same where counters are merged: small values, written again and again.
    pub counters_percent: u64,
    /// Why so.
    pub reason: &'static str,
}

const fn split(engine: &'static str, percent: u64, counters_percent: u64, reason: &'static str) -> MemorySplit {
    MemorySplit { engine, write_buffer_percent: percent, counters_percent, reason }
}

/// Why engines that write in memory first get a quarter for that: under load a second buffer is full, on its way to a table, so half of the
/// memory is theirs then. All of them were measured with half and half as well, which was slower in most rows of each (decision 16).
const QUARTER: &str =
    "a quarter write buffer, of which there are two under load; half for counters; the rest is block cache";

/// RocksDB was measured both ways and merges counters faster with the smaller buffer.
const ALWAYS_QUARTER: &str =
    "a quarter write buffer, of which there are two under load, for counters too; the rest is block cache";

/// The division for every engine, for each kind of work the one with which it was fastest, and in favour of the peers where their
/// documentation recommends another.
pub const MEMORY: &[MemorySplit] = &[
    split("esker", 25, 50, QUARTER),
    split("leveldb", 25, 50, QUARTER),
    split("rocksdb", 25, 25, ALWAYS_QUARTER),
    split("sqlite", 0, 0, "no write buffer: all is page cache"),
    split("kyoto", 0, 0, "no write buffer: all is page cache"),
    split("lmdb", 0, 0, "no cache of its own: it maps the file, and the system's page cache comes on top"),
    split("redb", 0, 0, "one cache for reading and writing: all of it"),
    split("fjall", 25, 50, QUARTER),
];

/// Sets an engine's share of `total` bytes. With a merge operator the work is about counters.
pub fn set_memory(options: &mut EngineOptions, engine: &str, total: u64) {
    let split = MEMORY.iter().find(|split| split.engine == engine);
    let percent = split.map_or(25, |split| match options.merge_operator {
        Some(_) => split.counters_percent,
        None => split.write_buffer_percent,
    });
    let buffer = total / 100 * percent;
    options.write_buffer_bytes = buffer.max(64 << 10);
    options.cache_bytes = Some(total - buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ENGINES;

    #[test]
    fn every_engine_gets_the_same_memory() {
        let kinds = [None, Some("uint64add".to_string())];
        for (engine, operator) in ENGINES.iter().flat_map(|engine| kinds.iter().map(move |kind| (*engine, kind))) {
            let mut options = EngineOptions { merge_operator: operator.clone(), ..EngineOptions::default() };
            assert!(MEMORY.iter().any(|split| split.engine == engine));
            set_memory(&mut options, engine, 1000 << 20);
            let buffer = if options.cache_bytes == Some(1000 << 20) { 0 } else { options.write_buffer_bytes };
            assert_eq!(buffer + options.cache_bytes.unwrap_or(0), 1000 << 20);
        }
    }
}
