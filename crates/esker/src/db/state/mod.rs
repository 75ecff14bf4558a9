//! What all of an open database share: its locks, what a read searches, who reads at which time,
//! what is counted.
//!
//! | file | what it holds |
//! |---|---|
//! | `inner` | the database and its keyspaces, and their locks |
//! | `read_state` | what a read searches, and how it is replaced as a whole |
//! | `snapshots` | which sequence numbers and times are still read at |
//! | `compaction_state` | what compaction remembers of a keyspace |
//! | `counters` | work done since the database was opened |
//! | `events` | telling a listener what happens |
//! | `error_state` | whether the database can be written, and what is wrong if not |
//! | `memory` | memory by part, and memory made ready ahead of the writer |
//! | `write_buffer_manager` | the bytes that memtables hold of the memory budget |
//! | `obsolete_tables` | tables that readers still hold after a compaction replaced them |
//! | `read_stats` | tables probed in probe_misses, and searches of scans |
//! | `thread_gate` | which threads write in place at the moment |
//! | `tombstone_skip_cache` | ranges of deleted entries that a scan has passed once |
//! | `write_throttle` | how fast flushes are, and how fast a memtable may fill |

pub mod compaction_state;
pub mod counters;
pub mod error_state;
pub mod events;
pub mod inner;
pub mod memory;
pub mod obsolete_tables;
pub mod read_state;
pub mod read_stats;
pub mod snapshots;
pub mod thread_gate;
pub mod tombstone_skip_cache;
pub mod write_buffer_manager;
pub mod write_throttle;
