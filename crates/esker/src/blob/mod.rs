//! Blob files: the large values of a database, each written once. Tables, memtables and the log
//! hold references to them.
//!
//! `format.rs` draws the bytes, `file.rs` is one file, `store.rs` all files of a database and the
//! appends of its writers, `writer.rs` the appends of a background job, which compresses them,
//! `sample.rs` an estimate of whether that pays.

mod file;
pub mod format;
mod sample;
mod store;
mod writer;

pub use file::BlobFile;
pub use store::{Appended, BlobStore};
pub use writer::BlobWriter;

#[cfg(test)]
mod tests;
