//! The write-ahead log: writes that were acknowledged and are not in tables yet.
//!
//! `format.rs` draws the bytes, `segment.rs` keeps the segment files (prepared, active, retired,
//! free), `writer.rs` appends and syncs, `prefault.rs` says which of its pages are in memory,
//! `reader.rs` replays after a start.

pub mod format;
pub mod prefault;
pub mod reader;
pub mod salvage;
pub mod segment;
pub mod writer;

#[cfg(test)]
mod example_test;
#[cfg(test)]
mod hostile_test;
#[cfg(test)]
mod range_test;
