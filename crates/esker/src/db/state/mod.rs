//! The shared state of an open database: its locks, the read states, the snapshots, the counters.
//!
//! | file | what it holds |
//! |---|---|
//! | `inner` | the database and its keyspaces, and their locks |
//! | `read_state` | what a read searches, and how it is replaced as a whole |
//! | `between_writes` | lookups without a lock that know whether a write was under way |
//! | `snapshots` | which sequence numbers and times are still read at |
//! | `compaction_state` | what compaction remembers of a keyspace |
//! | `counted_lock` | a lock that counts the threads that wait for it |
//! | `counters` | work done since the database was opened |
//! | `events` | telling a listener what happens |
//! | `error_state` | whether the database can be written, and what is wrong if not |
//! | `dropped_keyspaces` | keyspaces that were dropped and that a snapshot still sees |
//! | `kept_blobs` | blob files that only changes refer to, kept for their readers |
//! | `latencies` | how long calls take, if that is measured |
//! | `memory` | memory by part, and memory prefaulted ahead of the writer |
//! | `write_buffer_manager` | the bytes that memtables hold of the memory budget |
//! | `merge_settings` | what operands are combined by, now and before |
//! | `obsolete_tables` | tables that readers still hold after a compaction replaced them |
//! | `read_stats` | tables that point reads probe, and probe misses among them |
//! | `thread_gate` | which threads write in place at the moment |
//! | `tombstone_skip_cache` | ranges of deleted entries that a scan has skipped once |
//! | `watchers` | threads that wait for writes to some keys |
//! | `write_throttle` | how fast flushes are, and how fast a memtable may fill |

pub mod between_writes;
pub mod compaction_state;
pub mod counted_lock;
pub mod counters;
pub mod dropped_keyspaces;
pub mod error_state;
pub mod events;
pub mod inner;
pub mod kept_blobs;
pub mod latencies;
pub mod memory;
pub mod merge_settings;
pub mod obsolete_tables;
pub mod read_state;
pub mod read_stats;
pub mod snapshots;
pub mod thread_gate;
pub mod tombstone_skip_cache;
pub mod watchers;
pub mod write_buffer_manager;
pub mod write_throttle;
