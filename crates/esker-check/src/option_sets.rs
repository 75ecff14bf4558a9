//! Option sets, sensible and absurd ones. The same operations must return the same results under
//! each of them.

use crate::orders::with_comparators;
use esker::{Compression, Options, ReadMode, WalMode};

/// Options under a name, and whether to run them on a real directory.
#[derive(Clone, Copy, Debug)]
pub struct OptionSet {
    /// The name for messages and commands.
    pub name: &'static str,
    /// On a real directory instead of the simulated environment.
    pub on_disk: bool,
    /// How many operations a run has relative to the usual, in percent: less where each one is
    /// expensive. Such runs are rarer, too.
    pub length_percent: usize,
    build: fn(Options) -> Options,
}

impl OptionSet {
    /// The options.
    pub fn options(&self) -> Options {
        with_comparators((self.build)(Options::default()))
    }
}

/// zstd, or LZ4 in a build without it.
fn zstd_if_available() -> Compression {
    if Compression::Zstd.is_available() { Compression::Zstd } else { Compression::Lz4 }
}

fn small(options: Options) -> Options {
    options
        .write_buffer_bytes(4 << 10)
        .block_bytes(256)
        .target_file_bytes(2 << 10)
        .wal_segment_bytes(32 << 10)
        .block_cache_bytes(16 << 10)
}

const fn memory(name: &'static str, length_percent: usize, build: fn(Options) -> Options) -> OptionSet {
    OptionSet { name, on_disk: false, length_percent, build }
}

const fn disk(name: &'static str, length_percent: usize, build: fn(Options) -> Options) -> OptionSet {
    OptionSet { name, on_disk: true, length_percent, build }
}

/// All of them.
pub const OPTION_SETS: &[OptionSet] = &[
    memory("default-blocks-inline", 100, |o| {
        o.background_threads(0).write_buffer_bytes(1 << 20).wal_segment_bytes(1 << 20)
    }),
    memory("small-inline", 100, |o| small(o).background_threads(0)),
    memory("small-background", 100, |o| small(o).background_threads(1)),
    memory("tiny-everything", 50, |o| {
        o.write_buffer_bytes(1)
            .block_bytes(1)
            .target_file_bytes(1)
            .wal_segment_bytes(1)
            .block_cache_bytes(0)
            .background_threads(0)
    }),
    memory("tiny-buffer-background", 50, |o| {
        o.write_buffer_bytes(1).wal_segment_bytes(4 << 10).target_file_bytes(4 << 10).background_threads(1)
    }),
    memory("tiny-blocks", 100, |o| small(o).block_bytes(1).background_threads(0)),
    memory("tiny-files", 100, |o| small(o).target_file_bytes(1).background_threads(0)),
    memory("tiny-segments", 50, |o| small(o).wal_segment_bytes(1).background_threads(0)),
    memory("no-filter-no-compression", 100, |o| {
        small(o).filter_bits_per_key(0).compression(Compression::None).background_threads(0)
    }),
    memory("plain-log", 100, |o| small(o).wal_mode(WalMode::Plain).background_threads(0)),
    memory("pread-no-cache", 100, |o| {
        small(o).read_mode(ReadMode::Pread).block_cache_bytes(0).filter_bits_per_key(1).background_threads(0)
    }),
    memory("buffer-never-full", 100, |o| {
        small(o).write_buffer_bytes(4 << 20).wal_segment_bytes(1 << 20).background_threads(1)
    }),
    memory("two-background-threads", 100, |o| small(o).background_threads(2)),
    memory("two-threads-tiny-files", 50, |o| small(o).target_file_bytes(1).background_threads(2)),
    memory("blobs-inline", 100, |o| small(o).min_blob_size(16).background_threads(0)),
    memory("blobs-background", 100, |o| small(o).min_blob_size(16).background_threads(1)),
    memory("blobs-of-one-byte", 50, |o| {
        small(o).min_blob_size(1).target_file_bytes(1).wal_segment_bytes(1).background_threads(0)
    }),
    memory("blobs-compressed-plain-log", 100, |o| {
        small(o)
            .min_blob_size(100)
            .compression(Compression::Lz4)
            .wal_mode(WalMode::Plain)
            .read_mode(ReadMode::Pread)
            .background_threads(0)
    }),
    // The least that is taken.
    memory("little-memory", 100, |o| o.memory_budget_bytes(1 << 20).block_bytes(256).background_threads(0)),
    memory("little-memory-background", 100, |o| small(o).memory_budget_bytes(1 << 20).background_threads(1)),
    memory("upper-compression", 100, |o| {
        small(o).compression(Compression::Lz4).upper_compression(Compression::Lz4).background_threads(0)
    }),
    memory("zstd", 100, |o| small(o).compression(zstd_if_available()).background_threads(0)),
    memory("everything-tiny-and-threaded", 50, |o| {
        o.write_buffer_bytes(1)
            .block_bytes(1)
            .target_file_bytes(1)
            .wal_segment_bytes(1)
            .block_cache_bytes(0)
            .min_blob_size(1)
            .memory_budget_bytes(1 << 20)
            .background_threads(2)
    }),
    disk("disk-blobs-two-threads", 50, |o| small(o).min_blob_size(16).background_threads(2)),
    disk("disk-mmap-background", 50, |o| small(o).read_mode(ReadMode::Mmap).background_threads(1)),
    disk("disk-pread-inline", 50, |o| small(o).read_mode(ReadMode::Pread).background_threads(0)),
    disk("disk-plain-log-uncompressed", 50, |o| {
        small(o)
            .wal_mode(WalMode::Plain)
            .compression(Compression::None)
            .read_mode(ReadMode::Auto)
            .filter_bits_per_key(0)
            .background_threads(1)
    }),
];
