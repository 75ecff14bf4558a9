//! The write-ahead log: writes that were acknowledged and are not in tables yet.
//!
//! `format.rs` draws the bytes, `segment.rs` keeps the segment files (prepared, active, retired,
//! free), `writer.rs` appends, `log_sync.rs` syncs and prepares what is appended to, `prefault.rs`
//! says which of its pages are in memory, `reader.rs` replays after a start, `tail.rs` reads behind
//! a writer, `archive.rs` and `retention.rs` keep segments for readers of changes, and `reserve.rs`
//! holds back what an open on a full disk needs. Of a damaged log, `salvage.rs` replays what comes
//! before the damage, or behind it if tables have the rest, and `verify.rs` lists all of it.

pub mod archive;
pub mod format;
pub mod log_sync;
pub mod prefault;
pub mod reader;
pub mod reserve;
pub mod retention;
pub mod salvage;
pub mod segment;
pub mod tail;
pub mod verify;
pub mod writer;

#[cfg(test)]
mod example_test;
#[cfg(test)]
mod hostile_test;
#[cfg(test)]
mod log_sync_test;
#[cfg(test)]
mod range_test;
#[cfg(test)]
mod replay_test;
#[cfg(test)]
mod salvage_test;
#[cfg(test)]
mod segment_test;
#[cfg(test)]
mod tail_test;
#[cfg(test)]
mod verify_test;
