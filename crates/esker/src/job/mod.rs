//! Work on tables: what to keep (`version_gc`), what to do next (`pick`, and `task` for a version
//! at hand), what to drop unread (`covered`), and doing it (`flush`, `compact`, writing through
//! `output`, with tables cut as `cuts` says). Nothing in here knows the database's locks or its
//! manifest.

pub mod blob_compression;
pub mod blob_garbage;
pub mod compact;
pub mod compaction_inputs;
pub mod flush;
pub mod large;
pub mod output;
pub mod output_splitter;
pub mod parallel;
pub mod pick;
pub mod range_del_drop;
pub mod rate_limiter;
pub mod version_gc;
