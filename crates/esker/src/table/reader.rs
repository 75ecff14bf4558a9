//! An open table: its metadata in memory, and point reads.

use super::BlockCache;
use super::block::Block;
use super::filter::Filter;
use super::format::{Footer, read_plain};
use super::found_entry::{FoundEntry, Place};
use super::index::Index;
use super::mapped::{MappedFile, Verified};
use super::summary::TableSummary;
use super::visit::{INCONSISTENT, Visited, visit_block};
use crate::base::key::Sequence;
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::base::slice::Pin;
use crate::cache::Slots;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use crate::options::ReadMode;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An immutable sorted table, open for reading from any thread.
#[derive(Debug)]
pub struct Table {
    pub(super) file: Arc<MappedFile>,
    pub(super) path: PathBuf,
    pub(super) file_number: u64,
    pub(super) footer: Footer,
    pub(super) index: Index,
    pub(super) filter: Option<Filter>,
    pub(super) summary: TableSummary,
    pub(super) cache: Arc<BlockCache>,
    pub(super) slots: Arc<Slots<Block>>,
    /// Blocks are read from the file's mapping.
    pub(super) mapped: bool,
    pub(super) verified: Verified,
}

impl Table {
    /// Whether the file has the end of a table, so that its writer had finished, whatever has
    /// become of it since.
    ///
    /// # Errors
    /// `Io`.
    pub fn has_an_end(file: &dyn ReadFile, file_number: u64) -> Result<bool> {
        Footer::is_there(file, file_number)
    }

    /// Opens a table and checks everything but its data blocks. Unless `read_mode` excludes it, and
    /// if the environment maps the file, blocks that are not compressed are read in place; all
    /// others go through `cache`.
    ///
    /// Its keys are in the bytewise order.
    #[cfg(any(test, feature = "internals"))]
    pub fn open(
        file: Arc<dyn ReadFile>,
        path: PathBuf,
        file_number: u64,
        cache: Arc<BlockCache>,
        read_mode: ReadMode,
    ) -> Result<Arc<Table>> {
        Table::open_in(&KeyOrder::Bytewise, file, path, file_number, cache, read_mode)
    }

    /// As [`Table::open`], with keys in any order.
    pub fn open_in(
        order: &KeyOrder,
        file: Arc<dyn ReadFile>,
        path: PathBuf,
        file_number: u64,
        cache: Arc<BlockCache>,
        read_mode: ReadMode,
    ) -> Result<Arc<Table>> {
        let footer = Footer::read(&*file, &path, file_number)?;
        let content = read_plain(&*file, &path, file_number, footer.properties)?;
        let mut summary = TableSummary::decode(&content, &path, footer.properties.offset, order)?;
        summary.file_number = file_number;
        summary.file_bytes = file.len();
        let content = read_plain(&*file, &path, file_number, footer.index)?;
        let index = Index::decode(&content, footer.index.offset, order)
            .map_err(|error| error.at(&path, footer.index.offset))?;
        drop(content);
        let filter = match footer.filter.bytes {
            0 => None,
            _ => Some(Filter::read(&*file, &path, file_number, footer.filter)?),
        };
        let mapped = read_mode != ReadMode::Pread && file.mapping().is_some();
        let slots = cache.slots(index.len());
        let verified = Verified::new(if mapped { index.len() } else { 0 }, read_mode != ReadMode::MmapChecked);
        let file = Arc::new(MappedFile(file));
        Ok(Arc::new(Table { file, path, file_number, footer, index, filter, summary, cache, slots, mapped, verified }))
    }

    /// The order of its keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.summary.order
    }

    /// The facts about the table.
    pub fn summary(&self) -> &TableSummary {
        &self.summary
    }

    /// The range tombstones. They hide older entries of their keys in this table and in all older
    /// ones.
    #[inline]
    pub fn range_tombstones(&self) -> &RangeTombstones {
        &self.summary.range_tombstones
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of memory that the filter and the index take.
    pub fn memory_bytes(&self) -> usize {
        self.filter_bytes() + self.index_bytes()
    }

    /// Bytes of memory that the filter takes.
    pub fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, Filter::memory_bytes)
    }

    /// Bytes of memory that the index takes, with the places of the blocks in the cache.
    pub fn index_bytes(&self) -> usize {
        self.index.memory_bytes() + self.slots.memory_bytes()
    }

    /// Prefetches what [`Table::may_contain`] reads for this hash. Call it for all tables before
    /// probing the first.
    #[inline]
    pub fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// Whether the table may hold a key with this hash ([`crate::base::key::hash`]): true for all
    /// of its own keys.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Hands the versions of `key` with a sequence of at most `max_sequence` to `visit`, newest
    /// first, until it returns false: then the result is false as well. Probes the filter itself;
    /// `hash` is [`crate::base::key::hash`] of the key.
    pub fn get(
        &self,
        key: &[u8],
        hash: u64,
        max_sequence: Sequence,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        if self.may_contain(hash) { self.search(key, max_sequence, visit) } else { Ok(true) }
    }

    /// As [`Table::get`], for a caller that has probed the filter.
    pub fn search(
        &self,
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        self.file.guarded(|| self.search_blocks(key, max_sequence, visit))
    }

    fn search_blocks(
        &self,
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        let mut number = self.index.find(key, max_sequence);
        while number < self.index.len() {
            let damaged = |error| self.damaged(self.index.handle(number).unwrap_or_default().offset, error);
            let visited = if let Some(found) = self.in_place(number)? {
                // What is handed out is copied: a slice in the mapping could read as zeroes after a
                // fault, without an error.
                visit_block(found.bytes, &found.layout, key, max_sequence, self.order(), Place::Passing, visit)
                    .map_err(damaged)?
            } else {
                let hit = self.slots.lookup(number);
                match hit.as_ref().and_then(|hit| hit.as_ref()) {
                    Some(block) => {
                        let place = Place::Block(block);
                        visit_block(block.bytes(), &block.layout, key, max_sequence, self.order(), place, visit)
                            .map_err(damaged)?
                    }
                    None => self.visit_missed(number, key, max_sequence, visit)?,
                }
            };
            match visited {
                Visited::Stopped => return Ok(false),
                Visited::Complete => return Ok(true),
                Visited::GoOn => number += 1,
            }
        }
        Ok(true)
    }

    /// The error that block `number` and the index contradict each other.
    #[cold]
    pub(super) fn inconsistent(&self, number: usize) -> Error {
        let offset = self.index.handle(number).unwrap_or_default().offset;
        self.damaged(offset, INCONSISTENT)
    }
}
