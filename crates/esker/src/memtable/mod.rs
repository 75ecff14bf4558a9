//! The memtable: recent writes of one keyspace in memory.
//!
//! An arena holds the entries in the order of writing, a hash index finds the newest one of a key,
//! and entries are sorted when a scan or a flush needs order (`sorted_runs.rs`). Writes go through
//! the one [`MemtableWriter`], but for changes of values of eight bytes (`in_place.rs`); reads need
//! no lock.
//!
//! A write whose key's newest entry no snapshot can see supersedes that entry: it is marked dead
//! and never flushed, or, where both values have eight bytes, changed in place. Otherwise the new
//! entry points to the older one.
//!
//! Deletes of ranges are kept apart from the entries (`tombstones.rs`). Nothing is folded across
//! one.

mod arena;
mod chain;
mod cursor;
mod in_place;
mod index;
mod run;
mod size;
mod sorted_runs;
mod store;
mod tombstones;
mod writer;

pub use arena::{MAX_ARENA_BYTES, entry_bytes};
pub use cursor::RunCursor;
pub use in_place::Change;
pub use store::Memtable;
pub use writer::{MemtableWriter, WriteContext};

#[cfg(test)]
mod tests;
