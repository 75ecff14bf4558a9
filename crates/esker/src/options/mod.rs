//! The engine's options: few, checked once at open, each with its default and its trade-off.
//!
//! To add one: a field, its default, a setter that notes its own name, and a line in `explain.rs`;
//! a test there finds what is forgotten.

mod budget;
mod change_retention;
mod choices;
mod comparators;
mod explain;
mod keyspace;
mod origin;
mod profile;
mod write;

pub use budget::{memtable_reservation, working_memory};
pub use change_retention::ChangeRetention;
pub use choices::{CompactionStyle, Compression, ReadMode, WalMode};
pub use explain::{ExplainedOption, Explanation};
pub use keyspace::KeyspaceOptions;
pub use origin::Origin;
pub use profile::Profile;
pub use write::{StallPolicy, WriteOptions};

use crate::base::clock::{Clock, SystemClock};
use crate::base::comparator::Comparator;
use crate::base::key_order::KeyOrder;
use crate::env::Env;
use crate::env::os::OsEnv;
use crate::error::{Error, Result};
use crate::event_listener::EventListener;
use crate::filter_policy::FilterPolicy;
use comparators::Comparators;
use origin::Origins;
use std::fmt;
use std::sync::Arc;

/// The smallest memory budget: below this, threads and buffers of fixed size take more than what is
/// limited.
const LEAST_BUDGET_BYTES: usize = 1 << 20;

/// Options of a database. Every setter takes and returns the options, so that calls chain.
///
/// ```
/// use esker::{Compression, Options};
/// let options = Options::default().write_buffer_bytes(16 << 20).compression(Compression::None);
/// println!("{}", options.explain());
/// ```
#[derive(Clone)]
#[must_use = "each setting returns the changed options"]
pub struct Options {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) block_cache_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) compression: Compression,
    pub(crate) filter_bits_per_key: u32,
    pub(crate) target_file_bytes: u64,
    pub(crate) min_blob_size: usize,
    pub(crate) wal_segment_bytes: u64,
    pub(crate) wal_mode: WalMode,
    pub(crate) read_mode: ReadMode,
    pub(crate) background_threads: usize,
    pub(crate) upper_compression: Option<Compression>,
    pub(crate) compaction_bytes_per_second: u64,
    pub(crate) memory_budget_bytes: usize,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) event_listener: Option<Arc<dyn EventListener>>,
    pub(crate) filter_policy: Option<Arc<dyn FilterPolicy>>,
    pub(crate) latency_histograms: bool,
    pub(crate) keep_changes: Option<ChangeRetention>,
    pub(crate) comparators: Comparators,
    /// The origins of the values, for [`Options::explain`].
    origins: Origins,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create_if_missing", &self.create_if_missing)
            .field("error_if_exists", &self.error_if_exists)
            .field("write_buffer_bytes", &self.write_buffer_bytes)
            .field("block_cache_bytes", &self.block_cache_bytes)
            .field("block_bytes", &self.block_bytes)
            .field("compression", &self.compression)
            .field("filter_bits_per_key", &self.filter_bits_per_key)
            .field("target_file_bytes", &self.target_file_bytes)
            .field("min_blob_size", &self.min_blob_size)
            .field("wal_segment_bytes", &self.wal_segment_bytes)
            .field("wal_mode", &self.wal_mode)
            .field("read_mode", &self.read_mode)
            .field("background_threads", &self.background_threads)
            .field("upper_compression", &self.upper_compression)
            .field("compaction_bytes_per_second", &self.compaction_bytes_per_second)
            .field("memory_budget_bytes", &self.memory_budget_bytes)
            .field("latency_histograms", &self.latency_histograms)
            .field("keep_changes", &self.keep_changes)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create_if_missing: true,
            error_if_exists: false,
            write_buffer_bytes: 64 << 20,
            block_cache_bytes: 64 << 20,
            block_bytes: 8 << 10,
            compression: Compression::Lz4,
            filter_bits_per_key: 10,
            target_file_bytes: 64 << 20,
            min_blob_size: 32 << 10,
            wal_segment_bytes: 16 << 20,
            wal_mode: WalMode::Mapped,
            read_mode: ReadMode::Auto,
            background_threads: 1,
            upper_compression: None,
            compaction_bytes_per_second: 0,
            memory_budget_bytes: 0,
            env: Arc::new(OsEnv),
            clock: Arc::new(SystemClock),
            event_listener: None,
            filter_policy: None,
            latency_histograms: false,
            keep_changes: None,
            comparators: Comparators::default(),
            origins: Origins::default(),
        }
    }
}

impl Options {
    /// Whether a directory without a database becomes one. With `false` a missing one is
    /// [`Error::NotFound`].
    ///
    /// Default: true. Trade-off: true turns a mistyped path into an empty database; false needs a
    /// step that creates.
    ///
    /// ```
    /// use esker::{Db, Error, Options, env::mem::MemEnv};
    /// let options = Options::default().env(std::sync::Arc::new(MemEnv::new())).create_if_missing(false);
    /// assert!(matches!(Db::open("data", options), Err(Error::NotFound { .. })));
    /// ```
    pub fn create_if_missing(mut self, yes: bool) -> Options {
        self.create_if_missing = yes;
        self.note("create_if_missing");
        self
    }

    /// Whether an existing database is refused by [`crate::Db::open`], with
    /// [`Error::AlreadyExists`]. Of several that open at once one creates the database; the others
    /// get that, or [`Error::Locked`].
    ///
    /// Default: false. Trade-off: true never mixes new data with old data, and opens each database
    /// once; false needs no other step to open it again.
    ///
    /// ```
    /// use esker::{Db, Error, Options, env::mem::MemEnv};
    /// let options = Options::default().env(std::sync::Arc::new(MemEnv::new())).error_if_exists(true);
    /// Db::open("data", options.clone())?.close()?;
    /// assert!(matches!(Db::open("data", options), Err(Error::AlreadyExists { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn error_if_exists(mut self, yes: bool) -> Options {
        self.error_if_exists = yes;
        self.note("error_if_exists");
        self
    }

    /// Bytes of one memtable, the write buffer of one keyspace.
    ///
    /// Default: 64 MiB; with a memory budget at most a quarter of it. Trade-off: larger means fewer
    /// flushes, less compaction, and more writes to the same keys combined in memory; smaller means
    /// less memory and faster recovery. Up to three are in memory at once while one is flushed, and
    /// without a budget two of up to 128 MiB stay with the process for reuse, also when the
    /// database is closed, until no open database has been written to for a second: see
    /// [`crate::release_unused_memory`].
    ///
    /// ```
    /// let options = esker::Options::default().write_buffer_bytes(32 << 20);
    /// ```
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Options {
        self.write_buffer_bytes = bytes;
        self.note("write_buffer_bytes");
        self
    }

    /// Bytes of decoded blocks kept in memory. Zero keeps none.
    ///
    /// Default: 64 MiB; with a memory budget what the other parts leave of it, and never more than
    /// is set here. Trade-off: larger means fewer reads and decompressions; smaller means less
    /// memory.
    ///
    /// ```
    /// let options = esker::Options::default().block_cache_bytes(512 << 20);
    /// ```
    pub fn block_cache_bytes(mut self, bytes: usize) -> Options {
        self.block_cache_bytes = bytes;
        self.note("block_cache_bytes");
        self
    }

    /// Bytes of a table block before compression.
    ///
    /// Default: 8 KiB. Trade-off: larger means better compression, faster scans and a smaller
    /// index; smaller means cheaper point reads that miss the cache.
    ///
    /// ```
    /// let options = esker::Options::default().block_bytes(16 << 10);
    /// ```
    pub fn block_bytes(mut self, bytes: usize) -> Options {
        self.block_bytes = bytes;
        self.note("block_bytes");
        self
    }

    /// Compression of table blocks, and of large values ([`Options::min_blob_size`]) of up to
    /// 16 MiB: a write stores them uncompressed, and an idle database compresses them, where that
    /// pays.
    ///
    /// Default: LZ4. Trade-off: LZ4 takes less space and fewer reads of the device, and a
    /// decompression at each miss of the block cache; without it, blocks are read in place where
    /// the file is mapped. [`Compression::Zstd`] takes still less space, for slower compactions and
    /// reads.
    ///
    /// ```
    /// let options = esker::Options::default().compression(esker::Compression::None);
    /// ```
    pub fn compression(mut self, compression: Compression) -> Options {
        self.compression = compression;
        self.note("compression");
        self
    }

    /// Filter bits for each key. Zero: no filter.
    ///
    /// Default: 10, which lets about one absent key in a hundred through. Trade-off: more means
    /// fewer useless block reads; fewer means less memory, which filters take for as long as the
    /// table is open.
    ///
    /// ```
    /// let options = esker::Options::default().filter_bits_per_key(14);
    /// ```
    pub fn filter_bits_per_key(mut self, bits: u32) -> Options {
        self.filter_bits_per_key = bits;
        self.note("filter_bits_per_key");
        self
    }

    /// Bytes at which compaction begins another table.
    ///
    /// Default: 64 MiB; with a memory budget at most an eighth of it. Trade-off: larger means fewer
    /// files; smaller means that compaction holds less memory and gives space back in smaller
    /// steps.
    ///
    /// Each table, and so at least one for each keyspace with data, is an open file of the process:
    /// its limit (`ulimit -n`) must be above their number.
    ///
    /// ```
    /// let options = esker::Options::default().target_file_bytes(256 << 20);
    /// ```
    pub fn target_file_bytes(mut self, bytes: u64) -> Options {
        self.target_file_bytes = bytes;
        self.note("target_file_bytes");
        self
    }

    /// Bytes from which on a value is large: it is written once, to a blob file, and log, memory
    /// and tables hold 24 bytes that say where. 0 or `usize::MAX`: no value is large. Concerns
    /// values written from now on, and those that a compaction comes across.
    ///
    /// Default: 32 KiB. Trade-off: smaller means that less is rewritten by flushes and compactions;
    /// larger means fewer reads of another file by reads and scans, fewer system calls by writes,
    /// and that more values are compressed.
    ///
    /// ```
    /// let options = esker::Options::default().min_blob_size(4 << 10);
    /// ```
    pub fn min_blob_size(mut self, bytes: usize) -> Options {
        self.min_blob_size = bytes;
        self.note("min_blob_size");
        self
    }

    /// Bytes of a full-grown segment of the write-ahead log. The first segments of a database are
    /// smaller, so that small databases stay small. A record longer than this gets a segment of its
    /// own.
    ///
    /// Default: 16 MiB; with a memory budget at most a sixteenth of it, and then only two are in
    /// mapped memory at a time. Trade-off: larger means fewer files to prepare; smaller means less
    /// disk space, and less mapped memory.
    ///
    /// ```
    /// let options = esker::Options::default().wal_segment_bytes(64 << 20);
    /// ```
    pub fn wal_segment_bytes(mut self, bytes: u64) -> Options {
        self.wal_segment_bytes = bytes;
        self.note("wal_segment_bytes");
        self
    }

    /// How log records reach the operating system.
    ///
    /// Default: [`WalMode::Mapped`]. Trade-off: mapped is cheaper for each write; plain works on
    /// network and copy-on-write file systems.
    ///
    /// ```
    /// let options = esker::Options::default().wal_mode(esker::WalMode::Plain);
    /// ```
    pub fn wal_mode(mut self, mode: WalMode) -> Options {
        self.wal_mode = mode;
        self.note("wal_mode");
        self
    }

    /// How tables are read.
    ///
    /// Default: [`ReadMode::Auto`]. Trade-off: mapped reads copy nothing, and the pages are counted
    /// to the process by the system; reads by system call keep to the memory set here. Mapped
    /// blocks are checked when they are first read; [`ReadMode::MmapChecked`] checks them at every
    /// read.
    ///
    /// ```
    /// let options = esker::Options::default().read_mode(esker::ReadMode::Mmap);
    /// ```
    pub fn read_mode(mut self, mode: ReadMode) -> Options {
        self.read_mode = mode;
        self.note("read_mode");
        self
    }

    /// Threads for flush and compaction. With 0 that work is done inside the writing calls: slower,
    /// and deterministic. With more than 1, a compaction of several tables' worth is divided by key
    /// among up to so many threads (subcompactions), which exist only while it lasts; one more goes
    /// on flushing. At most 64.
    ///
    /// Default: 1, and 2 for compactions that begin while writers are delayed for compaction, on
    /// machines with several processors. Trade-off: none means that writers do the work; one leaves
    /// the other processors to the caller; more end compactions sooner.
    ///
    /// ```
    /// let options = esker::Options::default().background_threads(4);
    /// ```
    pub fn background_threads(mut self, threads: usize) -> Options {
        self.background_threads = threads;
        self.note("background_threads");
        self
    }

    /// Compression of the blocks of all runs but the last, which holds most of a compacted
    /// database.
    ///
    /// ```
    /// use esker::{Compression, Options};
    /// let options = Options::default().compression(Compression::Lz4).upper_compression(Compression::None);
    /// ```
    ///
    /// Default: as `compression`, and LZ4 beside [`Compression::Zstd`]. Trade-off: none makes
    /// flushes and first compactions cheaper, for more space there.
    pub fn upper_compression(mut self, compression: Compression) -> Options {
        self.upper_compression = Some(compression);
        self.note("upper_compression");
        self
    }

    /// Bytes of tables that compaction may read in a second, all its threads together. Flushes are
    /// not limited. With `background_threads(0)` the writing calls wait for it.
    ///
    /// Default: 0, no limit. Trade-off: a limit keeps the device free for others; one below the
    /// write rate leads to stalls.
    ///
    /// ```
    /// let options = esker::Options::default().compaction_bytes_per_second(20 << 20);
    /// ```
    pub fn compaction_bytes_per_second(mut self, bytes: u64) -> Options {
        self.compaction_bytes_per_second = bytes;
        self.note("compaction_bytes_per_second");
        self
    }

    /// The files and locks of the operating system, or a simulation of them.
    ///
    /// Default: [`OsEnv`]. Trade-off: a simulation can lose power and fail calls, for tests;
    /// nothing in it is durable.
    ///
    /// ```
    /// let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// ```
    pub fn env(mut self, env: Arc<dyn Env>) -> Options {
        self.env = env;
        self.note("env");
        self
    }

    /// Where the time comes from.
    ///
    /// Default: the system's clock. Trade-off: a clock set by hand makes tests of expiry
    /// repeatable; it is no good for anything else.
    ///
    /// ```
    /// let options = esker::Options::default().clock(std::sync::Arc::new(esker::ManualClock::new(0)));
    /// ```
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Options {
        self.clock = clock;
        self.note("clock");
        self
    }

    /// One limit, in bytes, for the memory of the whole database: the memtables of all keyspaces,
    /// the block cache, the indexes and filters of open tables, what readers pin, and the working
    /// memory of flush and compaction. Zero: no common limit, each part has its own.
    ///
    /// Half of it is at most for memtables: where all active ones together reach a quarter, the
    /// largest becomes immutable and is flushed, and where all reach the half, writers stop until a
    /// flush ends, with a reason. An eighth is for the work of flush and compaction. The block
    /// cache has what memtables, indexes, filters and pinned memory leave. Sizes that were not set
    /// with their own option follow from the budget: [`Options::explain`] shows them.
    /// [`crate::Stats::memory`] reports every part.
    ///
    /// Indexes and filters are in memory while a table is open: if they take more than the budget
    /// leaves, the cache has nothing and the budget is exceeded. Not counted are mapped files (two
    /// segments of the log; tables, unless [`ReadMode::Pread`]), which the system can take back,
    /// and the program's own batches and values. What the system counts to the process stays within
    /// 1.15 times the budget, for the allocator, and 24 MiB for code, stacks, log and buffers of
    /// fixed size.
    ///
    /// Where the system limits addresses (`ulimit -v`) rather than memory, set [`ReadMode::Pread`]
    /// too: mapped tables take as many addresses as there is data, and a process that gets no more
    /// memory for that reason ends.
    ///
    /// Default: 0. Trade-off: a limit that holds whatever the number of keyspaces, for earlier
    /// flushes and a smaller cache; memory of flushed memtables goes back to the system instead of
    /// being kept for the next one.
    ///
    /// ```
    /// use esker::Options;
    /// let options = Options::default().memory_budget_bytes(256 << 20);
    /// println!("{}", options.explain());
    /// ```
    pub fn memory_budget_bytes(mut self, bytes: usize) -> Options {
        self.memory_budget_bytes = bytes;
        self.note("memory_budget_bytes");
        self
    }

    /// Sets the options that suit one kind of load: see [`Profile`] for which and why. Setters
    /// called later override.
    ///
    /// ```
    /// use esker::{Options, Profile};
    /// let options = Options::default().profile(Profile::Counters).write_buffer_bytes(32 << 20);
    /// ```
    pub fn profile(mut self, profile: Profile) -> Options {
        let values = profile.values();
        self.write_buffer_bytes = values.write_buffer_bytes;
        self.block_cache_bytes = values.block_cache_bytes;
        self.block_bytes = values.block_bytes;
        self.filter_bits_per_key = values.filter_bits_per_key;
        self.target_file_bytes = values.target_file_bytes;
        self.wal_segment_bytes = values.wal_segment_bytes;
        for name in profile::SETS {
            self.origins.set(name, Origin::Profile(profile));
        }
        self
    }

    /// Notes that the program has set the option of this name.
    fn note(&mut self, name: &'static str) {
        self.origins.set(name, Origin::Set);
    }

    /// The listener for flushes, compactions, stalls and failures.
    ///
    /// Default: none, at no cost. Trade-off: a thread of its own that calls the listener.
    ///
    /// ```
    /// struct Silent;
    /// impl esker::EventListener for Silent {}
    /// let options = esker::Options::default().event_listener(std::sync::Arc::new(Silent));
    /// ```
    pub fn event_listener(mut self, listener: Arc<dyn EventListener>) -> Options {
        self.event_listener = Some(listener);
        self.note("event_listener");
        self
    }

    /// Asks a filter of the program, beside the engine's own, whether a get has to search a table:
    /// see [`FilterPolicy`]. Not stored: give it at every open.
    ///
    /// Default: none. Trade-off: a policy knows what the engine's filter cannot, as parts of keys
    /// that many gets have in common; it costs a call for each table of a get, and the keys of a
    /// table in memory while that is written.
    ///
    /// ```
    /// use esker::{FilterPolicy, Options};
    /// struct Nothing;
    /// impl FilterPolicy for Nothing {
    ///     fn name(&self) -> &str { "nothing" }
    ///     fn create_filter(&self, _keys: &[&[u8]]) -> Option<Vec<u8>> { None }
    ///     fn key_may_match(&self, _key: &[u8], _filter: &[u8]) -> bool { true }
    /// }
    /// let options = Options::default().filter_policy(std::sync::Arc::new(Nothing));
    /// ```
    pub fn filter_policy(mut self, policy: Arc<dyn FilterPolicy>) -> Options {
        self.filter_policy = Some(policy);
        self.note("filter_policy");
        self
    }

    /// Whether it is measured how long calls take: gets, writes, commits, syncs, flushes and
    /// compactions, each in a histogram of its own ([`METRICS`](crate::METRICS)) that
    /// [`Db::record`](crate::Db::record) and [`Db::properties`](crate::Db::properties) show. Of
    /// gets, writes and commits one in about 64 is measured, at random distances in each thread; of
    /// the others each.
    ///
    /// Default: false. Trade-off: true costs a nanosecond or two for each call, two looks at the
    /// clock for each that is measured, and 180 KiB of memory; false costs nothing.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// let db = esker::Db::open("data", options.latency_histograms(true))?;
    /// db.flush()?;
    /// assert!(db.property("esker.get.latency.p99_nanos").is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn latency_histograms(mut self, yes: bool) -> Options {
        self.latency_histograms = yes;
        self.note("latency_histograms");
        self
    }

    /// Keeps the changes that are made from now on, for [`Db::changes`](crate::Db::changes): the
    /// log that holds them, and blob files that it refers to, after they are in tables.
    ///
    /// Default: none. An open without it gives up the changes that earlier ones have kept.
    /// Trade-off: takes the space, a sync of the log with each flush, and keeps what compaction
    /// would give back of large values; none costs nothing.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// use esker::{ChangeRetention, Db};
    /// let db = Db::open("data", options.keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    /// let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// assert_eq!(db.changes(0)?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keep_changes(mut self, retention: ChangeRetention) -> Options {
        self.keep_changes = Some(retention);
        self.note("keep_changes");
        self
    }

    /// Supplies a comparator for the keyspaces that were created with one of its name
    /// ([`crate::KeyspaceOptions::comparator`]). Call it once for each comparator: an open without
    /// one that a keyspace needs is [`Error::MissingComparator`], as the log cannot be replayed nor
    /// a table read without the order of its keys. [`crate::ReverseBytewise`] is known anyway.
    ///
    /// Default: none. Trade-off: none for other keyspaces.
    ///
    /// ```
    /// struct ByLength;
    /// impl esker::Comparator for ByLength {
    ///     fn name(&self) -> &str { "example.by-length" }
    ///     fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    ///         a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    ///     }
    /// }
    /// let options = esker::Options::default().comparator(std::sync::Arc::new(ByLength));
    /// ```
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Options {
        self.comparators.add(comparator);
        self.note("comparator");
        self
    }

    /// The order of the keys of a keyspace by its stored name.
    ///
    /// # Errors
    /// `MissingComparator`.
    pub(crate) fn key_order(&self, keyspace: &str, comparator: &str) -> Result<KeyOrder> {
        let missing = || Error::MissingComparator { keyspace: keyspace.to_owned(), comparator: comparator.to_owned() };
        self.comparators.find(comparator).ok_or_else(missing)
    }

    /// Refuses what cannot work, saying what would. Every open begins with this.
    ///
    /// # Errors
    /// `InvalidArgument` names the option, its value and its limits.
    ///
    /// ```
    /// assert!(esker::Options::default().memory_budget_bytes(10).validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<()> {
        const LARGEST: u64 = 8 << 30;
        if (1..LEAST_BUDGET_BYTES).contains(&self.memory_budget_bytes) {
            let (given, least) = (self.memory_budget_bytes, LEAST_BUDGET_BYTES);
            return Err(Error::invalid(format!("memory_budget_bytes is {given}; use 0 for none, or at least {least}")));
        }
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
        self.comparators.check()?;
        if ![self.compression, self.upper()].into_iter().all(Compression::is_available) {
            return Err(Error::invalid(
                "compression is zstd, which this build has not; build esker with the feature `zstd`",
            ));
        }
        Ok(())
    }

    /// Compression of the blocks of all runs but the last.
    pub(crate) fn upper(&self) -> Compression {
        match (self.upper_compression, self.compression) {
            (Some(upper), _) => upper,
            (None, Compression::Zstd) => Compression::Lz4,
            (None, other) => other,
        }
    }

    /// The least bytes of a large value.
    pub(crate) fn blob_threshold(&self) -> usize {
        if self.min_blob_size == 0 { usize::MAX } else { self.min_blob_size }
    }

    /// Bytes at which another blob file begins.
    pub(crate) fn blob_file_bytes(&self) -> u64 {
        self.target_file_bytes.saturating_mul(4)
    }
}
