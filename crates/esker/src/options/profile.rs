//! Options that belong together, by the kind of load.

use crate::error::{Error, Result};
use std::str::FromStr;

/// A kind of load. [`crate::Options::profile`] sets for each of them the same six options, so that
/// a second profile leaves nothing of the first.
///
/// | option | `Balanced` | `Counters` | `ReadHeavy` | `LargeValues` |
/// |---|---|---|---|---|
/// | `write_buffer_bytes` | 64 MiB | 128 MiB | 32 MiB | 128 MiB |
/// | `block_cache_bytes` | 64 MiB | 32 MiB | 256 MiB | 64 MiB |
/// | `block_bytes` | 8 KiB | 8 KiB | 8 KiB | 32 KiB |
/// | `filter_bits_per_key` | 10 | 10 | 14 | 10 |
/// | `target_file_bytes` | 64 MiB | 64 MiB | 64 MiB | 256 MiB |
/// | `wal_segment_bytes` | 16 MiB | 16 MiB | 16 MiB | 64 MiB |
///
/// With a memory budget the sizes are also bounded by their shares of it.
///
/// [`crate::Options::min_blob_size`] is not among them: whether a value of a few kilobytes
/// gains by being written once, uncompressed and apart, depends on how well it compresses and how
/// often it is scanned, not on its length alone. Values from 32 KiB on are apart with every
/// profile.
///
/// ```
/// use esker::{Options, Profile};
/// let options = Options::default().profile("counters".parse::<Profile>().expect("a name of a profile"));
/// assert!(options.explain().to_string().contains("profile counters"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Many small updates of the same keys, mostly merges. A larger write buffer combines more of
    /// them before a flush; the cache, which blind writes do not use, is smaller.
    Counters,
    /// The defaults: some of everything.
    Balanced,
    /// Mostly reads, many of them of absent keys. A larger cache, and filters that let one absent
    /// key in about a thousand through; the memory of the write buffer goes to the cache instead.
    ReadHeavy,
    /// Values of kilobytes. Blocks that hold several values each, and larger buffers, tables and
    /// log segments, so that the number of files stays small.
    LargeValues,
}

/// What a profile sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) write_buffer_bytes: usize,
    pub(super) block_cache_bytes: usize,
    pub(super) block_bytes: usize,
    pub(super) filter_bits_per_key: u32,
    pub(super) target_file_bytes: u64,
    pub(super) wal_segment_bytes: u64,
}

/// The names of what a profile sets.
pub(super) const SETS: [&str; 6] = [
    "write_buffer_bytes",
    "block_cache_bytes",
    "block_bytes",
    "filter_bits_per_key",
    "target_file_bytes",
    "wal_segment_bytes",
];

/// The values of [`Profile::Balanced`], which are the defaults.
const BALANCED: Values = Values {
    write_buffer_bytes: 64 << 20,
    block_cache_bytes: 64 << 20,
    block_bytes: 8 << 10,
    filter_bits_per_key: 10,
    target_file_bytes: 64 << 20,
    wal_segment_bytes: 16 << 20,
};

impl Profile {
    /// All of them.
    ///
    /// ```
    /// let names: Vec<_> = esker::Profile::ALL.iter().map(|profile| profile.name()).collect();
    /// println!("--profile {}", names.join(" | "));
    /// ```
    pub const ALL: &'static [Profile] =
        &[Profile::Counters, Profile::Balanced, Profile::ReadHeavy, Profile::LargeValues];

    /// Its name on command lines and in explanations.
    ///
    /// ```
    /// assert_eq!(esker::Profile::ReadHeavy.name(), "read-heavy");
    /// assert_eq!("read-heavy".parse::<esker::Profile>()?, esker::Profile::ReadHeavy);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Profile::Counters => "counters",
            Profile::Balanced => "balanced",
            Profile::ReadHeavy => "read-heavy",
            Profile::LargeValues => "large-values",
        }
    }

    pub(super) fn values(self) -> Values {
        match self {
            Profile::Counters => Values { write_buffer_bytes: 128 << 20, block_cache_bytes: 32 << 20, ..BALANCED },
            Profile::Balanced => BALANCED,
            Profile::ReadHeavy => Values {
                write_buffer_bytes: 32 << 20,
                block_cache_bytes: 256 << 20,
                filter_bits_per_key: 14,
                ..BALANCED
            },
            Profile::LargeValues => Values {
                write_buffer_bytes: 128 << 20,
                block_bytes: 32 << 10,
                target_file_bytes: 256 << 20,
                wal_segment_bytes: 64 << 20,
                ..BALANCED
            },
        }
    }
}

impl FromStr for Profile {
    type Err = Error;

    /// The profile of that [`Profile::name`].
    fn from_str(text: &str) -> Result<Profile> {
        let names = || Profile::ALL.iter().map(|profile| profile.name()).collect::<Vec<_>>().join(", ");
        let unknown = || Error::invalid(format!("there is no profile {text:?}; use {}", names()));
        Profile::ALL.iter().copied().find(|profile| profile.name() == text).ok_or_else(unknown)
    }
}
