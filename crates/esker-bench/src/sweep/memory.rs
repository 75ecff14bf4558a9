//! The memory that each engine of a study gets: the same for all, divided as its documentation
//! recommends.

use esker_engines::{EngineKind, EngineOptions, registry};

/// What a task writes, as far as the division of memory is concerned; in the order in which engines
/// tell theirs.
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

/// How an engine's share of memory is divided, for readers: for each kind of work the division with
/// which it was fastest, and in favour of the peers where their documentation recommends another.
pub fn describe(kind: &EngineKind) -> String {
    let (name, note) = (kind.name, kind.memory.note);
    match kind.memory.percent {
        [0, 0, 0] => format!("{name}: {note}"),
        [entries, counters, large] => {
            format!("{name}: {entries} % write buffer, {counters} % for counters, {large} % for large values; {note}")
        }
    }
}

/// Sets an engine's share of `total` bytes.
pub fn set_memory(options: &mut EngineOptions, engine: &str, work: Work, total: u64) {
    let percent = registry::row(engine).map_or(25, |kind| kind.memory.percent[work as usize]);
    let buffer = total / 100 * percent;
    options.write_buffer_bytes = buffer.max(64 << 10);
    options.cache_bytes = Some(total - buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_engines::ENGINES;

    const WORK: [Work; 3] = [Work::Entries, Work::Counters, Work::LargeValues];

    #[test]
    fn every_engine_gets_the_same_memory() {
        for (engine, work) in ENGINES.iter().flat_map(|engine| WORK.map(|work| (*engine, work))) {
            let mut options = EngineOptions::default();
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
