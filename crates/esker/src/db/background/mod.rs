//! Flushes, compactions, and what an idle database gives back.
//!
//! | file | what it holds |
//! |---|---|
//! | `run` | what is due next, and the thread that does it |
//! | `rotate` | a full memtable becomes immutable |
//! | `flush` | immutable memtables to tables |
//! | `compaction` | compactions |
//! | `yield_point` | what a compaction leaves off for |
//! | `range_del_drop` | tables that range tombstones cover are dropped unread |
//! | `blob_gc` | blob garbage collection: which files and tables are rewritten |
//! | `expired_memtables` | memtables of an idle database in which everything has expired |
//! | `forget_changes` | changes that were kept for long enough are given up |
//! | `idle` | what an idle database gives back |
//! | `commit_version_edit` | what makes the result of a job durable, and then visible |

pub mod blob_gc;
pub mod commit_version_edit;
pub mod compaction;
pub mod expired_memtables;
pub mod flush;
pub mod forget_changes;
pub mod idle;
pub mod range_del_drop;
pub mod rotate;
pub mod run;
pub mod yield_point;
