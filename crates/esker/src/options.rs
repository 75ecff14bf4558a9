//! The engine's options: few, checked once at open, each with its default and its trade-off.

use crate::base::clock::{Clock, SystemClock};
use crate::base::expiry::Ttl;
use crate::compaction_filter::CompactionFilter;
use crate::env::Env;
use crate::env::os::OsEnv;
use crate::error::{Error, Result};
use crate::merge_operator::MergeOperator;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How log records reach the operating system. Both ways survive the death of the process; neither, without
/// [`WriteOptions::sync`], that of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalMode {
    /// Stores into a memory mapping of the segment: about twenty times cheaper than a system call per write.
    Mapped,
    /// A system call per write: for network and copy-on-write file systems, where shared mappings misbehave.
    Plain,
}

/// How tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Mapped where the environment can map; compressed blocks go through the block cache either way.
    Auto,
    /// As `Auto`.
    Mmap,
    /// System calls into the block cache only: bounded memory, no page faults.
    Pread,
}

/// How data blocks are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Not at all: read in place where the file is mapped.
    #[default]
    None,
    /// LZ4; blocks that it does not make an eighth smaller are stored as they are.
    Lz4,
}

/// How the tables of a keyspace are merged: what a write costs later against what a read and the space cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionStyle {
    /// A few runs that may overlap above one large sorted run. Each byte is rewritten a logarithm of times; a point read asks up to about eight runs, and
    /// one after a pause in writing. The default.
    #[default]
    LazyLeveling,
    /// Levels, each ten times the one above it, merged table by table. Reads ask few runs and little space is taken twice, but each byte is rewritten
    /// several times a level: for data that is read much more than written.
    Leveled,
    /// Runs of similar size are merged with each other ("universal"). The fewest rewrites; up to a dozen runs to read, and up to three times the space.
    Tiered,
    /// Nothing is merged. While the tables have more than `max_bytes`, the oldest is dropped, with whatever it holds, live snapshots or not; the newest table
    /// always stays. Tables of which every entry has expired are dropped too. For time series and logs: the cheapest writes, but reads
    /// ask every run there is, so keys should grow with time.
    Fifo {
        /// Bytes of tables, after compression; at least 1.
        max_bytes: u64,
    },
}

/// Options of a database. Every setter takes and returns the options, so that calls chain.
///
/// ```
/// use esker::{Compression, Options};
/// let options = Options::default().write_buffer_bytes(16 << 20).compression(Compression::None);
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) create_if_missing: bool,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) block_cache_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) compression: Compression,
    pub(crate) filter_bits_per_key: u32,
    pub(crate) target_file_bytes: u64,
    pub(crate) wal_segment_bytes: u64,
    pub(crate) wal_mode: WalMode,
    pub(crate) read_mode: ReadMode,
    pub(crate) background_threads: usize,
    pub(crate) upper_compression: Option<Compression>,
    pub(crate) compaction_bytes_per_second: u64,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create_if_missing", &self.create_if_missing)
            .field("write_buffer_bytes", &self.write_buffer_bytes)
            .field("block_cache_bytes", &self.block_cache_bytes)
            .field("block_bytes", &self.block_bytes)
            .field("compression", &self.compression)
            .field("filter_bits_per_key", &self.filter_bits_per_key)
            .field("target_file_bytes", &self.target_file_bytes)
            .field("wal_segment_bytes", &self.wal_segment_bytes)
            .field("wal_mode", &self.wal_mode)
            .field("read_mode", &self.read_mode)
            .field("background_threads", &self.background_threads)
            .field("upper_compression", &self.upper_compression)
            .field("compaction_bytes_per_second", &self.compaction_bytes_per_second)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create_if_missing: true,
            write_buffer_bytes: 64 << 20,
            block_cache_bytes: 64 << 20,
            block_bytes: 8 << 10,
            compression: Compression::Lz4,
            filter_bits_per_key: 10,
            target_file_bytes: 64 << 20,
            wal_segment_bytes: 16 << 20,
            wal_mode: WalMode::Mapped,
            read_mode: ReadMode::Auto,
            background_threads: 1,
            upper_compression: None,
            compaction_bytes_per_second: 0,
            env: Arc::new(OsEnv),
            clock: Arc::new(SystemClock),
        }
    }
}

impl Options {
    /// Create the database if the directory holds none. Default: true. With `false` a missing one is
    /// [`Error::NotFound`].
    pub fn create_if_missing(mut self, yes: bool) -> Options {
        self.create_if_missing = yes;
        self
    }

    /// Bytes of one memtable, the write buffer of one keyspace. Default: 64 MiB. Larger: fewer flushes and less
    /// compaction; smaller: less memory and faster recovery. Up to three are in memory at once while one is flushed.
    /// Two stay with the process for reuse when the database is closed: see [`crate::release_unused_memory`].
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Options {
        self.write_buffer_bytes = bytes;
        self
    }

    /// Bytes of decoded blocks kept in memory. Default: 64 MiB. Zero keeps none.
    pub fn block_cache_bytes(mut self, bytes: usize) -> Options {
        self.block_cache_bytes = bytes;
        self
    }

    /// Uncompressed bytes of a table block. Default: 8 KiB. Larger: better compression and scans; smaller: cheaper point
    /// reads that miss the cache.
    pub fn block_bytes(mut self, bytes: usize) -> Options {
        self.block_bytes = bytes;
        self
    }

    /// Compression of table blocks. Default: LZ4.
    pub fn compression(mut self, compression: Compression) -> Options {
        self.compression = compression;
        self
    }

    /// Filter bits per key. Default: 10, which lets about one absent key in a hundred through. Zero: no filter.
    pub fn filter_bits_per_key(mut self, bits: u32) -> Options {
        self.filter_bits_per_key = bits;
        self
    }

    /// Bytes at which compaction begins another table. Default: 64 MiB.
    pub fn target_file_bytes(mut self, bytes: u64) -> Options {
        self.target_file_bytes = bytes;
        self
    }

    /// Bytes of a full-grown segment of the write-ahead log. Default: 16 MiB. The first segments of a database are smaller, so
    /// that small databases stay small. A record longer than this gets a segment of its own.
    pub fn wal_segment_bytes(mut self, bytes: u64) -> Options {
        self.wal_segment_bytes = bytes;
        self
    }

    /// How log records reach the operating system. Default: [`WalMode::Mapped`].
    pub fn wal_mode(mut self, mode: WalMode) -> Options {
        self.wal_mode = mode;
        self
    }

    /// How tables are read. Default: [`ReadMode::Auto`].
    pub fn read_mode(mut self, mode: ReadMode) -> Options {
        self.read_mode = mode;
        self
    }

    /// Threads for flush and compaction. Default: 1. With 0 that work is done inside the writing calls: slower, and
    /// deterministic. With more, a merge of several tables' worth is divided by key among up to so many threads, which exist only while it lasts; one
    /// more goes on flushing. More threads take processors from the callers. At most 64.
    pub fn background_threads(mut self, threads: usize) -> Options {
        self.background_threads = threads;
        self
    }

    /// Compression of the blocks of all runs but the last, which holds most of a settled database. Default: as [`Options::compression`]. `None` above makes
    /// flushes and the first merges cheaper, for more space there. What is recovered from the log is written with `compression`.
    ///
    /// ```
    /// use esker::{Compression, Options};
    /// let options = Options::default().compression(Compression::Lz4).upper_compression(Compression::None);
    /// ```
    pub fn upper_compression(mut self, compression: Compression) -> Options {
        self.upper_compression = Some(compression);
        self
    }

    /// Bytes of tables that compaction may read in a second, all its threads together. Default: 0, no limit. Flushes are not limited. A limit keeps the
    /// device free for others; one below what is written leads to stalls. With `background_threads(0)` the writing calls wait for it.
    pub fn compaction_bytes_per_second(mut self, bytes: u64) -> Options {
        self.compaction_bytes_per_second = bytes;
        self
    }

    /// The files and locks of the operating system, or a simulation of them. Default: [`OsEnv`].
    pub fn env(mut self, env: Arc<dyn Env>) -> Options {
        self.env = env;
        self
    }

    /// Where the time comes from. Default: the system's clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Options {
        self.clock = clock;
        self
    }

    /// Whether tables may be read through a mapping.
    pub(crate) fn use_mapping(&self) -> bool {
        self.read_mode != ReadMode::Pread
    }

    /// Refuses what cannot work, saying what would.
    pub(crate) fn validate(&self) -> Result<()> {
        const LARGEST: u64 = 8 << 30;
        let sizes = [
            ("write_buffer_bytes", self.write_buffer_bytes as u64, 1, LARGEST),
            ("block_bytes", self.block_bytes as u64, 1, 1 << 30),
            ("target_file_bytes", self.target_file_bytes, 1, u64::MAX),
            ("wal_segment_bytes", self.wal_segment_bytes, 1, LARGEST),
            ("filter_bits_per_key", u64::from(self.filter_bits_per_key), 0, 64),
            ("background_threads", self.background_threads as u64, 0, 64),
        ];
        for (name, value, least, most) in sizes {
            if value < least || value > most {
                return Err(Error::invalid(format!("{name} is {value}; use {least} to {most}")));
            }
        }
        Ok(())
    }
}

/// Options of a keyspace. What they set is stored when the keyspace is created, and checked at every later open.
#[derive(Clone, Default)]
pub struct KeyspaceOptions {
    pub(crate) merge_operator: Option<Arc<dyn MergeOperator>>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) compaction_style: Option<CompactionStyle>,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilter>>,
}

impl fmt::Debug for KeyspaceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.merge_operator.as_ref().map(|operator| operator.name().to_owned());
        let filter = self.compaction_filter.as_ref().map(|filter| filter.name().to_owned());
        f.debug_struct("KeyspaceOptions")
            .field("merge_operator", &name)
            .field("ttl", &self.ttl)
            .field("compaction_style", &self.compaction_style)
            .field("compaction_filter", &filter)
            .finish()
    }
}

impl KeyspaceOptions {
    /// The merge operator of the keyspace. Default: none, so that merges are refused.
    pub fn merge_operator(self, operator: impl MergeOperator) -> KeyspaceOptions {
        self.shared_merge_operator(Arc::new(operator))
    }

    /// As [`KeyspaceOptions::merge_operator`], with an operator that is shared already.
    pub fn shared_merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> KeyspaceOptions {
        self.merge_operator = Some(operator);
        self
    }

    /// Whether entries can expire, and after what time by default. Default: they cannot, and nothing is paid for it; an existing keyspace keeps
    /// what it was created with. Costs nine bytes for each entry that expires, and a look at the clock for each read.
    pub fn ttl(mut self, ttl: Ttl) -> KeyspaceOptions {
        self.ttl = Some(ttl);
        self
    }

    /// How the keyspace's tables are merged. Default: as stored; [`CompactionStyle::LazyLeveling`] for a new keyspace. Stored, and changed when it is
    /// given at a later open: what is there is then merged as the new style has it.
    ///
    /// ```
    /// use esker::{CompactionStyle, KeyspaceOptions};
    /// let week = KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: 10 << 30 });
    /// ```
    pub fn compaction_style(mut self, style: CompactionStyle) -> KeyspaceOptions {
        self.compaction_style = Some(style);
        self
    }

    /// Asked about values while they are merged: see [`CompactionFilter`]. Default: none. Not stored: give it at every open. Given again while the keyspace
    /// is open, it replaces the one before.
    pub fn compaction_filter(mut self, filter: impl CompactionFilter) -> KeyspaceOptions {
        self.compaction_filter = Some(Arc::new(filter));
        self
    }
}

/// Options of one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub(crate) sync: bool,
    pub(crate) disable_wal: bool,
    pub(crate) ttl: Option<Duration>,
}

impl WriteOptions {
    /// The defaults: logged, not synced. An acknowledged write then survives the death of the process, not of the machine.
    pub fn new() -> WriteOptions {
        WriteOptions::default()
    }

    /// Return only when the write, and everything acknowledged before it, is on the device: it survives power loss. Default:
    /// false. Costs one device flush, shared by all threads that wait at the same time.
    pub fn sync(mut self, yes: bool) -> WriteOptions {
        self.sync = yes;
        self
    }

    /// Leave the write-ahead log out: everything since the last flush is lost if the process dies. Default: false.
    /// Together with `sync` it is refused.
    pub fn disable_wal(mut self, yes: bool) -> WriteOptions {
        self.disable_wal = yes;
        self
    }

    /// How long the value lives, from this write on, in a keyspace created with [`KeyspaceOptions::ttl`]; anywhere else, and with a delete, it
    /// is refused, as is zero. Default: the keyspace's default for a put; a merge keeps what the key has. Rounded up to whole
    /// milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> WriteOptions {
        self.ttl = Some(ttl);
        self
    }
}
