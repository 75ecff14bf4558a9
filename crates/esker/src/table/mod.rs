//! Sorted tables: immutable files of entries in internal key order.
//!
//! [`mod@format`] draws the file, [`block`] a data block, [`index`], [`filter`] and [`summary`] the
//! others. A table is written by [`TableBuilder`] in one pass and read by [`Table`], from its
//! mapping without a copy where it has one and is not compressed, otherwise through the block
//! cache. Whatever is read is checked first: damage is an error that names the file and the offset.

mod block;
mod block_builder;
mod builder;
mod copying;
mod cursor;
mod filter;
mod format;
mod found_entry;
mod index;
mod keyspace;
mod look_ahead;
mod mapped;
mod policy_filter;
mod reader;
#[cfg(feature = "internals")]
mod reseal;
mod salvage;
mod size;
mod source;
mod static_btree;
mod summary;
mod uncached_read;
mod unindexed;
mod verify;
mod visit;

pub use block::Block;
pub use builder::{Buffers, TableBuilder, TableOptions};
pub use cursor::TableCursor;
pub use found_entry::FoundEntry;
pub use keyspace::TableKeyspace;
pub use reader::Table;
#[cfg(feature = "internals")]
pub use reseal::reseal;
pub use salvage::{LostRange, Salvaged, salvage_unindexed};
pub use summary::TableSummary;
pub use verify::{Checked, verify_file};

/// The block cache of all tables.
pub type BlockCache = crate::cache::Cache<Block>;

#[cfg(test)]
mod tests;
