//! What each engine is set to, and which experiments it takes part in.

use super::arguments::Experiment;

/// How memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The page's small buffers.
    Small,
    /// 128 MB, for writing.
    ForWrites,
    /// 128 MB, for reading.
    ForReads,
}

const MIB: u64 = 1 << 20;

/// The configurations of an engine, by name; one without a name where there is only one.
pub fn variants(engine: &str) -> &'static [&'static str] {
    if engine == "sqlite" { &["rowid", "without rowid"] } else { &[""] }
}

/// The flags of an engine in one of its configurations. `scaled` scales bytes.
pub fn flags(engine: &str, variant: &str, memory: Memory, scaled: impl Fn(u64) -> u64) -> Vec<(&'static str, String)> {
    const PAGE: u64 = 1024;
    let text = |bytes: u64| scaled(bytes).to_string();
    match engine {
        "sqlite" => {
            let cache = if memory == Memory::Small { 4096 * PAGE } else { 131_072 * PAGE };
            vec![
                ("page_size", PAGE.to_string()),
                ("num_pages", (scaled(cache) / PAGE).to_string()),
                ("use_rowids", u8::from(variant == "rowid").to_string()),
            ]
        }
        "kyoto" => {
            let cache = if memory == Memory::Small { 4 * MIB } else { 128 * MIB };
            vec![("page_size", PAGE.to_string()), ("cache_size", text(cache))]
        }
        // One cache for reading and writing: what the others have in two.
        "redb" => vec![("cache_size", text(if memory == Memory::Small { 4 * MIB } else { 128 * MIB }))],
        "lmdb" | "device" => Vec::new(),
        // Log-structured trees: LevelDB's flags. It had no filters yet.
        _ => {
            let (buffer, cache) = match memory {
                Memory::Small => (2 * MIB, 2 * MIB),
                Memory::ForWrites => (120 * MIB, 8 * MIB),
                Memory::ForReads => (8 * MIB, 120 * MIB),
            };
            vec![("write_buffer_size", text(buffer)), ("cache_size", text(cache)), ("bloom_bits", "-1".to_string())]
        }
    }
}

/// Whether an engine has what an experiment varies.
pub fn takes_part(engine: &str, experiment: Experiment) -> bool {
    match experiment {
        Experiment::NoCompression | Experiment::NoCompressionReads => !["sqlite", "lmdb", "redb"].contains(&engine),
        Experiment::MoreMemory | Experiment::LargerCaches => engine != "lmdb",
        // What it has not synchronised is in the process, and goes with it.
        Experiment::Kill => engine != "kyoto",
        _ => true,
    }
}

/// Whether there is something to compact or to pack.
pub fn compacts(engine: &str) -> bool {
    !["kyoto", "lmdb"].contains(&engine)
}
