//! Work on tables: what to keep (`retain`), what to do next (`pick`, and `task` for a tree at hand), what to drop unread (`covered`), and doing it (`flush`, `compact`, writing through
//! `output`, with tables cut as `cuts` says). Nothing in here knows the database's locks or its manifest.

pub mod blob_compression;
pub mod blob_garbage;
pub mod compact;
pub mod covered;
pub mod cuts;
pub mod flush;
pub mod large;
pub mod output;
pub mod pace;
pub mod parallel;
pub mod pick;
pub mod retain;
pub mod task;
