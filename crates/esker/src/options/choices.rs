//! Options that are a choice among a few: how logs are written, tables read, blocks compressed, and
//! runs compacted.

use crate::base::compression::Codec;

/// How log records reach the operating system. Both ways survive the death of the process; neither,
/// without [`crate::WriteOptions::sync`], that of the machine.
///
/// ```
/// let options = esker::Options::default().wal_mode(esker::WalMode::Plain);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WalMode {
    /// Stores into a memory mapping of the segment: about twenty times cheaper than a system call
    /// per write. Installs a handler for SIGBUS, so that a store that the disk cannot take is an
    /// error: see [`crate::env::os::OsEnv`].
    Mapped,
    /// A system call per write: for network and copy-on-write file systems, where shared mappings
    /// misbehave.
    Plain,
}

/// How tables are read.
///
/// ```
/// let options = esker::Options::default().read_mode(esker::ReadMode::Pread);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadMode {
    /// Mapped where the environment can map; compressed blocks go through the block cache either
    /// way. Installs a handler for SIGBUS, so that a page that the disk cannot bring is an error:
    /// see [`crate::env::os::OsEnv`].
    Auto,
    /// As `Auto`.
    Mmap,
    /// System calls into the block cache only: bounded memory, no page faults.
    Pread,
    /// As `Auto`, and gets and scans verify a block of the mapping on every read, not only on the
    /// first one after the open. Bits that change in the file while the database is open become an
    /// error. A get computes the checksum of one block in each table that it searches, and checks
    /// every entry of that block: several times the work of the search itself with blocks of 4 KiB
    /// in memory, and more with larger blocks. A scan does so once for each block. Flushes and
    /// compactions verify every block in any mode. Blocks in the block cache are not verified
    /// again. With [`crate::Options::block_cache_bytes`] of 0, compressed blocks also come from the
    /// file on every read.
    ///
    /// ```
    /// use esker::{Db, Options, ReadMode};
    /// # let env = std::sync::Arc::new(esker::env::mem::MemEnv::new());
    /// let options = Options::default().read_mode(ReadMode::MmapChecked);
    /// # let options = options.env(env);
    /// let db = Db::open("ledger", options)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    MmapChecked,
}

/// How data blocks are compressed.
///
/// ```
/// let options = esker::Options::default().compression(esker::Compression::Lz4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all: read in place where the file is mapped.
    #[default]
    None,
    /// LZ4; blocks that it does not make an eighth smaller are stored as they are.
    Lz4,
    /// zstd, level 3, with the cargo feature `zstd`, which needs a C compiler: without it no
    /// database opens with it, and one that was written with it is
    /// [`crate::Error::UnsupportedCompression`]. Smaller than LZ4, and slower to compress and to
    /// decompress; a get that misses the cache decompresses the whole block. Meant for the last
    /// run: [`crate::Options::upper_compression`] is LZ4 beside it, if it is not set.
    Zstd,
}

impl Compression {
    /// Whether this build has it: all but [`Compression::Zstd`] without the cargo feature `zstd`.
    ///
    /// ```
    /// assert!(esker::Compression::Lz4.is_available());
    /// ```
    pub fn is_available(self) -> bool {
        self != Compression::Zstd || cfg!(feature = "zstd")
    }

    /// How it is done, if at all.
    pub(crate) fn codec(self) -> Option<Codec> {
        match self {
            Compression::None => None,
            Compression::Lz4 => Some(Codec::Lz4),
            Compression::Zstd => Some(Codec::Zstd),
        }
    }
}

/// How the tables of a keyspace are compacted: write amplification against read and space
/// amplification.
///
/// ```
/// use esker::{CompactionStyle, KeyspaceOptions};
/// let options = KeyspaceOptions::default().compaction_style(CompactionStyle::Leveled);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactionStyle {
    /// A few runs that may overlap above one large sorted run. Each byte is rewritten a logarithm
    /// of times; a point read probes up to about a dozen runs, and one in an idle database. The
    /// default.
    #[default]
    LazyLeveling,
    /// Levels, each ten times the one above it, compacted table by table. Reads probe few runs and
    /// space amplification is low, but each byte is rewritten several times a level: for data that
    /// is read much more than written.
    Leveled,
    /// Runs of similar size are compacted with each other ("universal"). The fewest rewrites; up to
    /// a dozen runs to read, and up to three times the space.
    Tiered,
    /// Nothing is compacted. While the tables have more than `max_bytes`, the oldest is dropped,
    /// with everything in it, live snapshots or not; the newest table always stays. Tables of which
    /// every entry has expired are dropped too. For time series and logs: the cheapest writes, but
    /// reads probe every run, so keys should grow with time.
    Fifo {
        /// Bytes of tables, after compression; at least 1.
        max_bytes: u64,
    },
}
