//! Esker: an embedded, ordered, crash-safe key-value engine for data that is written far more often
//! than it is read back: counters, aggregates, sessions, event state.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let directory = std::env::temp_dir().join(format!("esker-doc-lib-{}", std::process::id()));
//! use esker::{Counters, Db, Options, WriteOptions};
//!
//! let db = Db::open(&directory, Options::default())?;
//! let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
//! hits.add("/index.html", 1)?;                                             // blind: reads nothing
//! let titles = db.keyspace("titles", Default::default())?;
//! titles.put_with("/index.html", "Welcome", &WriteOptions::new().sync(true))?;
//!
//! let snapshot = db.snapshot();                                            // of all keyspaces
//! hits.add("/index.html", 1)?;
//! titles.delete("/index.html")?;
//! assert_eq!((hits.get("/index.html")?, hits.get_at(&snapshot, "/index.html")?), (2, 1));
//! assert!(titles.get("/index.html")?.is_none());
//! assert!(snapshot.get(&titles, "/index.html")?.is_some());
//!
//! for pair in hits.prefix("/").rev() {
//!     let (page, views) = pair?;
//!     println!("{page} {views}");
//! }
//! # drop((snapshot, hits, titles));
//! db.close()?;
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! What a write promises: an acknowledged write survives the death of the process; one with
//! [`WriteOptions::sync`] that of the machine.
//!
//! The [guide] goes through the calls by subject; `doc/book` in the repository is a
//! book for first readers.
//!
//! Modules, each importing only from those above it: `base`, `error`; `env`, `iter`, `cache`,
//! `merge_operator`, `compaction_filter`, `event_listener`, `filter_policy`; `options`; `memtable`,
//! `wal`, `table`; `version`; `job`; `db`; `handle`; `typed`.

mod base;
mod blob;
mod cache;
mod compaction_filter;
mod db;
pub mod env;
mod error;
mod event_listener;
mod filter_policy;
pub mod guide;
mod handle;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod iter;
mod job;
mod memtable;
mod merge_operator;
mod options;
mod table;
pub mod typed;
mod version;
mod wal;

/// The built-in merge operators, and a test for those of your own.
pub mod merge {
    pub use crate::merge_operator::{
        BitOr, BytesXor, Int64Add, LawViolation, Max, Min, Outcome, Put, StringAppend, UInt64Add, built_in, check_laws,
    };
}

pub use base::clock::{Clock, ManualClock, SystemClock};
pub use base::comparator::{Comparator, ReverseBytewise};
pub use base::compare_and_swap::CompareAndSwap;
pub use base::expiry::{Expiry, Ttl};
pub use base::key_range::KeyRange;
pub use base::latency::LatencyHistogram;
pub use base::memory::{release_unused_memory, unused_memory_bytes};
pub use base::slice::Slice;
pub use compaction_filter::{CompactionFilter, Decision};
pub use db::changes::{Change, ChangeBatch, ChangeOperation, KeyspaceSettings};
pub use db::lifecycle::follower_progress::{FollowerLag, FollowerProgress};
pub use db::maintenance::checkpoint::CheckpointMode;
pub use db::maintenance::ingest::IngestReport;
pub use db::maintenance::metrics::{METRICS, Metric, MetricKind, MetricUnit, Recorder, metric};
pub use db::maintenance::prometheus::PrometheusText;
pub use db::maintenance::repair::{RepairReport, RepairedFile};
pub use db::maintenance::stats::{KeyspaceStats, RunStats, Stats};
pub use db::maintenance::verify::{VerifyEvent, VerifyReport};
pub use db::state::error_state::Health;
pub use db::state::memory::MemoryStats;
pub use error::{Error, Result, StallCause, escape_key};
pub use event_listener::{CompactionCompleted, EventListener, FlushCompleted, IngestCompleted, TableCreated};
pub use filter_policy::FilterPolicy;
pub use handle::{
    Batch, Changes, Cursor, Db, Follower, Iter, Keys, Keyspace, Snapshot, Transaction, TransactionIter, Watch,
};
pub use merge_operator::{MergeError, MergeOperator};
pub use options::{
    ChangeRetention, CompactionStyle, Compression, ExplainedOption, Explanation, KeyspaceOptions, Options, Origin,
    Profile, ReadMode, StallPolicy, WalMode, WriteOptions,
};
pub use table::LostRange;
pub use typed::{Counters, TypedKeyspace};
