//! Jobs on tables: which entries are kept (`version_gc`), which compaction is next (`pick`, and
//! `compaction_inputs` for a version at hand), which tables are dropped unread (`range_del_drop`),
//! and running it (`flush`, `compact`, writing through `output`, with tables split by
//! `output_splitter`). Nothing in here knows the database's locks or its manifest.

pub mod blob_compression;
pub mod blob_gc;
pub mod blob_values;
pub mod compact;
pub mod compaction_inputs;
pub mod flush;
pub mod output;
pub mod output_splitter;
pub mod parallel;
pub mod pick;
pub mod range_del_drop;
pub mod rate_limiter;
pub mod version_gc;
