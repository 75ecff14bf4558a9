//! The database: what the public handles delegate to.
//!
//! Rooms, each of which imports only from those above it in this table:
//!
//! | room | what it does |
//! |---|---|
//! | `state` | what all share, and its locks |
//! | `files` | the only remover of files |
//! | `write_controller` | whether writes go on, are delayed, or stop |
//! | `read` | the read path |
//! | `background` | flushes, compactions, what is done at rest |
//! | `write` | the write path |
//! | `transaction` | what a transaction has read and would write, and conflicts |
//! | `lifecycle` | open, recovery, close, keyspaces |
//! | `maintenance` | ingest, checkpoint, verify, repair, statistics |

pub mod background;
pub mod files;
pub mod lifecycle;
pub mod maintenance;
pub mod read;
pub mod state;
pub mod transaction;
pub mod write;
pub mod write_controller;

#[cfg(all(test, esker_loom))]
mod interleavings;
