//! The database: what the public handles delegate to.
//!
//! Modules, each of which imports only from those above it in this table:
//!
//! | module | what it does |
//! |---|---|
//! | `state` | the shared state of an open database, and its locks |
//! | `files` | the only remover of files |
//! | `write_controller` | whether writes go on, are delayed, or stop |
//! | `read` | the read path |
//! | `background` | flush, compaction, and the work of an idle database |
//! | `write` | the write path |
//! | `transaction` | the read set and write set of a transaction, and conflicts |
//! | `lifecycle` | open, recovery, close, keyspaces |
//! | `changes` | what was written, in order, read from the log |
//! | `maintenance` | ingest, checkpoint, verify, repair, statistics |

pub mod background;
pub mod changes;
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
