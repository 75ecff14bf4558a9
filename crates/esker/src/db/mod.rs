//! The database: what the public handles delegate to.
//!
//! | file | what it does |
//! |---|---|
//! | `open`, `replayed` | recovery, and creating what is missing |
//! | `record`, `write`, `freeze` | the write path: one lock around log and memtable; full memtables are put aside |
//! | `unlocked`, `at_work` | writes of eight bytes in place, without that lock |
//! | `merge_expiry` | merges into keyspaces with TTL: what they meet is decided when they are written |
//! | `views` | what a read searches, and how it is replaced as a whole |
//! | `read`, `scan` | the read path: a key, and a range |
//! | `shorten` | chains of merge operands are kept short |
//! | `snapshot` | which sequence numbers and times somebody still reads at |
//! | `expiring` | memtables of an idle database in which everything has expired |
//! | `transaction`, `footprint`, `deleted`, `transaction_scan` | what a transaction has read and would write, and how it sees that |
//! | `conflict` | whether a transaction may be committed |
//! | `background` | what is next, and when |
//! | `resting` | what an idle database gives back |
//! | `flushing`, `compacting`, `installing` | flush, compaction, and what both need to make a result durable |
//! | `shares` | how a flush divides the time of its thread |
//! | `reclaim` | dropping tables that range tombstones have made useless |
//! | `large`, `blob_collection` | large values, and which of their files are to be emptied |
//! | `stall`, `pacing`, `pace` | when writers wait or are slowed down, and why |
//! | `files`, `obsolete`, `copying`, `checked_copy` | the remover of files; tables that readers still hold; copies of files; copies of what is checked while it is copied |
//! | `searches` | whether gets search too many tables in vain, and scans too many runs |
//! | `memory`, `account` | memory by part, and keeping it within the budget |
//! | `keyspaces` | creating and opening keyspaces |
//! | `ingest` | sorted pairs straight into tables |
//! | `repair` | making a damaged database open again |
//! | `events` | telling a listener what happens |
//! | `checkpoint`, `verify`, `sizes`, `stats`, `properties`, `health` | what their names say |
//! | `inner`, `compaction_state`, `counters` | the state all of them share, and its locks |

pub mod account;
pub mod at_work;
pub mod background;
pub mod blob_collection;
mod checked_copy;
pub mod checkpoint;
pub mod compacting;
pub mod compaction_state;
pub mod conflict;
mod copying;
pub mod counters;
pub mod deleted;
pub mod events;
mod expiring;
pub mod files;
pub mod flushing;
pub mod footprint;
pub mod freeze;
mod guarded;
mod guarded_env;
pub mod health;
pub mod ingest;
pub mod inner;
pub mod installing;
pub mod keyspaces;
pub mod large;
mod lost_edit;
pub mod memory;
mod merge_expiry;
pub mod obsolete;
pub mod open;
pub mod ordering;
pub mod pace;
pub mod pacing;
pub mod passed;
pub mod properties;
pub mod read;
pub mod reclaim;
pub mod record;
pub mod repair;
mod repair_mark;
pub mod replayed;
mod resting;
pub mod scan;
pub mod searches;
pub mod shares;
pub mod shorten;
pub mod sizes;
pub mod snapshot;
pub mod stall;
pub mod stats;
pub mod transaction;
pub mod transaction_scan;
pub mod unlocked;
pub mod verify;
pub mod views;
pub mod write;

#[cfg(all(test, esker_loom))]
mod interleavings;
