//! Maintenance: ingest, checkpoint, verify, repair, statistics.
//!
//! | file | what it holds |
//! |---|---|
//! | `ingest` | sorted pairs straight into tables |
//! | `checkpoint` | a copy that can be opened |
//! | `checked_copy` | copies of tables and blob files that are checked while they are copied |
//! | `follower_checkpoint` | a copy of what another process writes |
//! | `verify` | everything is read and checked |
//! | `verify_directory` | the same of a directory, which need not open |
//! | `repair` | a damaged database opens again |
//! | `stats` | statistics |
//! | `metrics` | the table of metrics, and what takes their values |
//! | `properties` | the same as text |
//! | `prometheus` | the same in the format of Prometheus |
//! | `sizes` | how large ranges are |

pub mod checked_copy;
pub mod checkpoint;
pub mod follower_checkpoint;
pub mod ingest;
pub mod metrics;
pub mod prometheus;
pub mod properties;
pub mod repair;
pub mod sizes;
pub mod stats;
pub mod verify;
pub mod verify_directory;
