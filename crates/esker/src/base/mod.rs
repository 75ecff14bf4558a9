//! The base layer of every other module: keys and their order, byte coding, checksums, values
//! handed out, time.

pub mod batch;
pub mod blob_reference;
pub mod callback;
pub mod checksum;
pub mod clock;
pub mod coding;
pub mod comparator;
pub mod compare_and_swap;
pub mod compression;
pub mod counter;
pub mod expiry;
pub mod file_number;
pub mod key;
pub mod key_order;
pub mod key_range;
pub mod latency;
pub mod lz4;
pub mod memory;
pub mod ordered_bounds;
pub mod prefetch;
pub mod random;
pub mod range_tombstone;
pub mod slice;
pub mod stall_stats;
pub mod sync;
pub mod zstd;
