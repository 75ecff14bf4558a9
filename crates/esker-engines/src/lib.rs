//! The interface between workloads and engines, and sources of imports ([`import`]). One file per
//! engine; a workload knows only these traits.
//!
//! Threads: an [`Engine`] is shared, every client thread asks it for a [`Session`] of its own and
//! keeps it to itself. An engine with a single-threaded connection (SQLite) may serialise its
//! sessions with a lock: that is what its users have.

mod counting;
pub mod device;
mod dynamic;
pub mod esker;
mod fjall;
pub mod import;
mod kyoto;
mod leveldb;
mod lmdb;
mod locked;
mod merge;
mod redb;
pub mod registry;
mod rocksdb;
mod settings;
mod sqlite;
mod two_way;

use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use registry::ENGINES;

/// What an adapter reports when its engine refuses something: one line, ready for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError(pub String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// The result of every adapter call.
pub type Result<T> = std::result::Result<T, EngineError>;

/// Why an engine without [`Capabilities::ttl`] is left out where entries expire.
pub const NO_TTL: &str = "engine has no time to live of its own";

/// When an acknowledged write is safe, in the classes that reports compare within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the process only: lost if the process dies (write-ahead log off).
    Process,
    /// Handed to the operating system: survives the death of the process, not of the machine.
    OperatingSystem,
    /// On the device before the call returns.
    Device,
}

impl Durability {
    /// Its name in settings and files.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Process => "process",
            Durability::OperatingSystem => "operating_system",
            Durability::Device => "device",
        }
    }
}

/// Compression of stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// None.
    None,
    /// The engine's LZ-class codec (LZ4, Snappy, LZO), where it has one.
    Lz,
    /// zstd, at the engine's default level, for what is in the last level or run, and the LZ-class
    /// codec above. Engines that compress, but not so, refuse it.
    Zstd,
}

/// What a run asks of an engine. Each adapter maps it to its engine's own settings in one place,
/// `effective_settings`, which every report prints.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EngineOptions {
    /// Bytes of the write buffer (memtable).
    pub write_buffer_bytes: u64,
    /// Bytes of the block or page cache. `None`: the engine's default.
    pub cache_bytes: Option<u64>,
    /// Uncompressed bytes of a block.
    pub block_bytes: u64,
    /// Bytes of an output file of compaction. `None`: the engine's default.
    pub max_file_bytes: Option<u64>,
    /// Filter bits per key; 0 or negative: no filter. `None`: the engine's recommended setting.
    pub bloom_bits: Option<i32>,
    /// Compression of stored data.
    pub compression: Compression,
    /// Open files kept; 0 for the engine's default.
    pub open_files: u32,
    /// The merge operator: `uint64add`, `put`, `max`, `stringappend`.
    pub merge_operator: Option<String>,
    /// The largest batch or value to expect, a hint for engines that map a fixed size (LMDB).
    pub expected_data_bytes: u64,
    /// Whether the log is off for the whole run (Process durability), as far as the engine has
    /// that.
    pub disable_wal: bool,
    /// Whether this run uses synced writes; an engine that fixes durability at open (Kyoto, SQLite)
    /// follows it.
    pub sync: bool,
    /// Whether entries may be put with a time to live, for engines that have to be told before.
    #[serde(default)]
    pub ttl: bool,
    /// Further flags as the user gave them, by db_bench name: `num_levels`,
    /// `level0_file_num_compaction_trigger`, `page_size`, `num_pages`, `use_rowids`, `WAL_enabled`,
    /// `mmap_read`, `min_level_to_compress`, `max_background_jobs`, `compaction_style` ...;
    /// adapters pick what they know.
    pub extra: std::collections::BTreeMap<String, String>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            write_buffer_bytes: 4 << 20,
            cache_bytes: None,
            block_bytes: 4096,
            max_file_bytes: None,
            bloom_bits: None,
            compression: Compression::Lz,
            open_files: 0,
            merge_operator: None,
            expected_data_bytes: 1 << 30,
            disable_wal: false,
            sync: false,
            ttl: false,
            extra: Default::default(),
        }
    }
}

impl EngineOptions {
    /// How writes are done, if a benchmark says nothing else. A synced one means nothing without
    /// the log.
    pub fn write_mode(&self) -> WriteMode {
        WriteMode { sync: self.sync, disable_wal: self.disable_wal && !self.sync }
    }
}

/// How one write is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteMode {
    /// Wait for the device.
    pub sync: bool,
    /// Leave the log out, where the engine can.
    pub disable_wal: bool,
}

/// One operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Set a key.
    Put(&'a [u8], &'a [u8]),
    /// Remove a key.
    Delete(&'a [u8]),
    /// Merge an operand into a key.
    Merge(&'a [u8], &'a [u8]),
}

/// What an engine can do beyond put, get, delete, batch and iterate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Capabilities {
    /// A merge of its own. Without it `Session::merge` does the read-modify-write that the engine's
    /// users would write.
    pub merge: bool,
    /// Batches that are atomic.
    pub batch: bool,
    /// Iteration backwards.
    pub reverse: bool,
    /// Writes that leave the log out.
    pub disable_wal: bool,
    /// Manual compaction.
    pub compact: bool,
    /// LZ-class compression.
    pub compression: bool,
    /// More than one thread may write at once without an outer lock.
    pub concurrent_writers: bool,
    /// Entries that expire by themselves, each at a time of its own, and are hidden from then on.
    pub ttl: bool,
}

impl Capabilities {
    /// Nothing beyond.
    pub const NONE: Capabilities = Capabilities {
        merge: false,
        batch: false,
        reverse: false,
        disable_wal: false,
        compact: false,
        compression: false,
        concurrent_writers: false,
        ttl: false,
    };

    /// Atomic batches and iteration both ways, which every engine here has.
    pub const ORDERED: Capabilities = Capabilities { batch: true, reverse: true, ..Capabilities::NONE };
}

/// What an adapter says of a database once it is open.
#[derive(Debug, Clone)]
pub struct Description {
    /// The engine's name, one of [`ENGINES`].
    pub name: &'static str,
    /// Its version and build, as it reports it: `1.23 (libleveldb.so.1d)`.
    pub version: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What its writes are worth as it is open.
    pub durability: Durability,
    /// Name and value of every setting in force, for the report; includes `durability`, `memory`,
    /// `compression`.
    pub settings: Vec<(String, String)>,
}

/// Work an engine reports of itself; zero or `None` where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Comparisons of user keys by all threads, background work included. `None`: not counted.
    #[serde(default, deserialize_with = "zero_is_not_counted")]
    pub comparisons: Option<u64>,
    /// Flushes: each writes one file, or one run of files.
    #[serde(default)]
    pub flushes: Option<u64>,
    /// Compactions that rewrote something.
    #[serde(default)]
    pub compactions: Option<u64>,
    /// Tables that lookups and seeks of the clients searched, past their filters.
    #[serde(default)]
    pub files_probed: Option<u64>,
    /// Bytes written to the log.
    pub wal_bytes: u64,
    /// Bytes written by flushes, and of large values that are written to files of their own.
    pub flush_bytes: u64,
    /// Bytes written by compactions.
    pub compaction_bytes: u64,
    /// Bytes read from tables.
    pub read_bytes: u64,
    /// Block cache hits.
    pub cache_hits: u64,
    /// Block cache misses.
    pub cache_misses: u64,
    /// Microseconds that writers were held back.
    pub stall_micros: u64,
}

impl Counters {
    /// What was counted since then.
    pub fn since(self, before: Counters) -> Counters {
        let counted = |after: Option<u64>, before: Option<u64>| after.map(|a| a.saturating_sub(before.unwrap_or(0)));
        Counters {
            comparisons: counted(self.comparisons, before.comparisons),
            flushes: counted(self.flushes, before.flushes),
            compactions: counted(self.compactions, before.compactions),
            files_probed: counted(self.files_probed, before.files_probed),
            wal_bytes: self.wal_bytes.saturating_sub(before.wal_bytes),
            flush_bytes: self.flush_bytes.saturating_sub(before.flush_bytes),
            compaction_bytes: self.compaction_bytes.saturating_sub(before.compaction_bytes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            cache_hits: self.cache_hits.saturating_sub(before.cache_hits),
            cache_misses: self.cache_misses.saturating_sub(before.cache_misses),
            stall_micros: self.stall_micros.saturating_sub(before.stall_micros),
        }
    }
}

/// Records of before comparisons were counted have 0 there, which no counted run with keys has.
fn zero_is_not_counted<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Option<u64>, D::Error> {
    let number: Option<u64> = serde::Deserialize::deserialize(from)?;
    Ok(number.filter(|number| *number > 0))
}

/// How the tables of a log-structured tree lie at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Tree {
    /// Table files.
    pub files: u64,
    /// Files of level 0, where levels exist: each may have to be searched by every lookup.
    pub level0_files: Option<u64>,
    /// Sorted runs, the most tables that one lookup may have to search: the files of level 0, and
    /// each further level that has files.
    pub runs: u64,
}

impl Tree {
    /// From the number of files on each level, level 0 first.
    pub fn of_levels(files: &[u64]) -> Tree {
        let (level0, deeper) = files.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        Tree {
            files: files.iter().sum(),
            level0_files: Some(level0),
            runs: level0 + deeper.iter().filter(|files| **files > 0).count() as u64,
        }
    }
}

/// An open database.
pub trait Engine: Send + Sync {
    /// A handle for one client thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
    /// What the original benchmark does inside the timed part after a write benchmark (SQLite's
    /// checkpoint, Kyoto's synchronize); nothing elsewhere.
    fn finish_writes(&self) -> Result<()> {
        Ok(())
    }
    /// Flushes and compacts everything; nothing where there is nothing to merge.
    fn compact_all(&self) -> Result<()> {
        Ok(())
    }
    /// Waits until no background work is left, as far as the engine can tell; nothing where no
    /// thread works in the background.
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }
    /// A property such as `stats`, as text.
    fn property(&self, _name: &str) -> Option<String> {
        None
    }
    /// Work done since open.
    fn counters(&self) -> Counters {
        Counters::default()
    }
    /// How its tables lie now, where it has such and tells.
    fn tree(&self) -> Option<Tree> {
        None
    }
    /// Closes the database and reports what closing reports; nothing where dropping it does.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// An open database with what its adapter says of it.
pub struct Opened {
    /// The database.
    pub engine: Box<dyn Engine>,
    /// What is said of it.
    pub description: Description,
}

impl Opened {
    /// Of an engine of whatever kind.
    pub fn new(engine: impl Engine + 'static, description: Description) -> Opened {
        Opened { engine: Box::new(engine), description }
    }

    /// See [`Engine::close`].
    pub fn close(self) -> Result<()> {
        self.engine.close()
    }
}

impl std::ops::Deref for Opened {
    type Target = dyn Engine;

    fn deref(&self) -> &(dyn Engine + 'static) {
        self.engine.as_ref()
    }
}

/// One thread's handle on an [`Engine`].
pub trait Session {
    /// Sets a key.
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()>;
    /// Sets a key that expires after `ttl`, on a database opened with [`EngineOptions::ttl`]; an
    /// error without [`Capabilities::ttl`].
    fn put_ttl(&mut self, _key: &[u8], _value: &[u8], _ttl: Duration, _mode: WriteMode) -> Result<()> {
        Err(EngineError(NO_TTL.into()))
    }
    /// Removes a key; no error if it is absent.
    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()>;
    /// Applies a batch: atomically where the engine has that, else one transaction or one by one
    /// (see `Capabilities::batch`).
    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        batch.iter().try_for_each(|operation| match *operation {
            Operation::Put(key, value) => self.put(key, value, mode),
            Operation::Delete(key) => self.delete(key, mode),
            Operation::Merge(key, operand) => self.merge(key, operand, mode),
        })
    }
    /// Merges an operand: the engine's own merge, or get + combine + put inside one transaction
    /// where it has transactions.
    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()>;
    /// Looks a key up; `value` is cleared and filled when it is there.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
    /// An iterator over everything, not yet positioned, seeing the state at this moment where the
    /// engine has snapshots.
    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>>;
}

/// A position in a scan. Created unpositioned.
pub trait Iteration {
    /// Moves to the first entry; whether there is one.
    fn seek_to_first(&mut self) -> Result<bool>;
    /// Moves to the last entry; whether there is one.
    fn seek_to_last(&mut self) -> Result<bool>;
    /// Moves to the first entry at or after `key`; whether there is one.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Moves on; whether there is another entry. Only on a positioned iterator.
    fn next(&mut self) -> Result<bool>;
    /// Moves back; whether there is another entry. Only on a positioned iterator.
    fn prev(&mut self) -> Result<bool>;
    /// The key at the position. The bytes must really be produced, as for a user who reads them.
    fn key(&self) -> &[u8];
    /// The value at the position. The bytes must really be produced.
    fn value(&self) -> &[u8];
}

/// Opens or creates the database in a directory, with the library at the path given with `--lib`,
/// if there was one.
pub type Opener = fn(directory: &Path, options: &EngineOptions, library: Option<&Path>) -> Result<Opened>;

/// How one engine's share of memory is divided: percent of it for the write buffer; the rest is the
/// cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySplit {
    /// For keys and values of some hundred bytes, for small values that are merged or written again
    /// and again, and for large values.
    pub percent: [u64; 3],
    /// Why so, or how it is to be read.
    pub note: &'static str,
}

impl MemorySplit {
    /// That with which the engine was fastest. Under load two or three write buffers are in use,
    /// and all were measured with half, a quarter and an eighth of the memory (decision 28).
    pub const fn fastest(percent: [u64; 3]) -> MemorySplit {
        let note = "of an eighth, a quarter and a half, the part for the write buffer with which it was fastest; \
                    the rest is block cache";
        MemorySplit { percent, note }
    }

    /// That of an engine without a write buffer.
    pub const fn cache_only(note: &'static str) -> MemorySplit {
        MemorySplit { percent: [0; 3], note }
    }
}

/// All that is known of an engine before it is opened, and how to open it: the registry row.
#[derive(Clone, Copy)]
pub struct EngineKind {
    /// One of [`ENGINES`].
    pub name: &'static str,
    /// Its name as its authors write it.
    pub title: &'static str,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How its memory is divided.
    pub memory: MemorySplit,
    /// Opens or creates a database in `directory` (created if missing). `library`: the path given
    /// with `--lib NAME=PATH`. The error of a missing library is one line that says what to
    /// install.
    pub open: Opener,
    /// Whether the engine can be used here, without creating anything: its version, or the line
    /// that says what to install.
    pub probe: fn(library: Option<&Path>) -> Result<String>,
}
