//! Reading what is left of a damaged table, for a repair.
//!
//! With an intact footer and index, every block is tried on its own. Without them, blocks are found
//! one after the other from the front (`unindexed.rs`): a block ends where its checksum says so.
//! What lies behind the first damaged one cannot be found that way.

use super::BlockCache;
use super::block::Block;
use super::format::{FOOTER_BYTES, Footer, read_plain};
use super::index::Index;
use super::keyspace::TableKeyspace;
use super::mapped::{MappedFile, Verified};
use super::reader::Table;
use super::summary::TableSummary;
use super::unindexed::Unindexed;
use crate::base::key::{Entry, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::slice::Pin;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Keys between two that are known, of which versions are lost.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// # esker::Db::open("data", options.clone())?.close()?;
/// for range in esker::Db::repair("data", options)?.files.into_iter().flat_map(|file| file.lost_ranges) {
///     println!("lost between {:?} and {:?}", range.after, range.through);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// All of them are at or after this key; none if that is not known.
    pub after: Option<Vec<u8>>,
    /// All of them are at or before this key; none if that is not known.
    pub through: Option<Vec<u8>>,
}

/// What was read of a damaged table.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Entries handed out.
    pub entries: u64,
    /// What is missing.
    pub lost: Vec<LostRange>,
}

/// Hands entries out that come after all before them: anything else would be damage that no
/// checksum noticed.
struct Taker<'a> {
    order: KeyOrder,
    take: &'a mut dyn FnMut(Entry<'_>) -> Result<()>,
    last: Option<(Vec<u8>, Sequence)>,
    salvaged: Salvaged,
}

impl Taker<'_> {
    fn block(&mut self, block: &Block) -> Result<()> {
        let (bytes, layout) = (block.bytes(), &block.layout);
        let mut key = layout.prefix(bytes).to_vec();
        for index in 0..layout.count {
            key.truncate(layout.prefix_bytes);
            key.extend_from_slice(layout.key_rest(bytes, index));
            let sequence = layout.sequence_of(bytes, index);
            let (start, end) = layout.value_range(bytes, index);
            let Some(value) = bytes.get(start..end) else { continue };
            let comes_after = |(last, at): &(Vec<u8>, Sequence)| {
                self.order.compare_versions((last, *at), (&key, sequence)) == Ordering::Less
            };
            if self.order.is_trusted() && !self.last.as_ref().is_none_or(comes_after) {
                continue;
            }
            let (kind, expiry_ms) = (layout.kind_of(bytes, index), layout.expiry_of(bytes, index));
            (self.take)(Entry { key: &key, sequence, kind, expiry_ms, value })?;
            self.salvaged.entries += 1;
            let (last, at) = self.last.get_or_insert_with(|| (Vec::new(), 0));
            last.clone_from(&key);
            *at = sequence;
        }
        Ok(())
    }

    fn last_key(&self) -> Option<Vec<u8>> {
        self.last.as_ref().map(|(key, _)| key.clone())
    }
}

/// Damage is noted, everything else is an error.
pub(super) fn unless_damaged<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::Corruption { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Table {
    /// What the table says about its keyspace, if that can be read.
    ///
    /// # Errors
    /// `Io`, and `Unsupported`.
    pub fn label(file: &dyn ReadFile, path: &Path, file_number: u64) -> Result<Option<TableKeyspace>> {
        let Some(footer) = unless_damaged(Footer::read(file, path, file_number))? else { return Ok(None) };
        let content = unless_damaged(read_plain(file, path, file_number, footer.properties))?;
        let label = content.map(|content| TableSummary::label_in(&content, path, footer.properties.offset));
        Ok(label.map_or(Ok(None), unless_damaged)?.flatten())
    }

    /// Opens a table of which the footer and the index are intact, whatever became of the rest;
    /// `None` if they are not.
    pub fn open_damaged(
        file: Arc<dyn ReadFile>,
        path: PathBuf,
        file_number: u64,
        cache: Arc<BlockCache>,
        order: &KeyOrder,
    ) -> Result<Option<Arc<Table>>> {
        let Some(footer) = unless_damaged(Footer::read(&*file, &path, file_number))? else { return Ok(None) };
        Table::open_with(footer, file, path, file_number, cache, order)
    }

    /// As [`Table::open_damaged`], with a footer that may not be intact itself: if the index is
    /// where it says, that is right.
    pub(super) fn open_with(
        footer: Footer,
        file: Arc<dyn ReadFile>,
        path: PathBuf,
        file_number: u64,
        cache: Arc<BlockCache>,
        order: &KeyOrder,
    ) -> Result<Option<Arc<Table>>> {
        let Some(content) = unless_damaged(read_plain(&*file, &path, file_number, footer.index))? else {
            return Ok(None);
        };
        let Ok(index) = Index::decode(&content, footer.index.offset, order) else { return Ok(None) };
        let properties = unless_damaged(read_plain(&*file, &path, file_number, footer.properties))?;
        let decoded = properties.map(|content| TableSummary::decode(&content, &path, footer.properties.offset, order));
        let mut summary = decoded.map_or(Ok(None), unless_damaged)?.unwrap_or_default();
        (summary.file_number, summary.file_bytes) = (file_number, file.len());
        summary.order = order.clone();
        let (slots, verified) = (cache.slots(index.len()), Verified::new(0, false));
        let file = Arc::new(MappedFile(file));
        let (filter, mapped) = (None, false);
        let table = Table {
            file,
            path,
            file_number,
            footer,
            index,
            filter,
            summary,
            cache,
            slots,
            mapped,
            verified,
            policy: OnceLock::new(),
        };
        Ok(Some(Arc::new(table)))
    }

    /// Hands every entry of every intact block to `take`, in order.
    pub fn salvage(&self, take: &mut dyn FnMut(Entry<'_>) -> Result<()>) -> Result<Salvaged> {
        let order = self.order().clone();
        let mut taker = Taker { order, take, last: None, salvaged: Salvaged::default() };
        for number in 0..self.index.len() {
            let handle = self.index.handle(number).unwrap_or_default();
            let mut stored = vec![0u8; usize::try_from(handle.bytes).unwrap_or_default()];
            let read = unless_damaged(self.file.0.read_at(handle.offset, &mut stored))?;
            let block = read.map(|()| self.unpack(handle.offset, &stored, Vec::new()));
            match block.map_or(Ok(None), unless_damaged)? {
                Some(block) => taker.block(&block)?,
                None => {
                    let after = number.checked_sub(1).map(|before| self.index.last_key(before));
                    let lost = LostRange { after, through: Some(self.index.last_key(number)) };
                    taker.salvaged.lost.push(lost);
                }
            }
        }
        Ok(taker.salvaged)
    }
}

/// As [`Table::salvage`], of a file without a usable footer or index.
pub fn salvage_unindexed(
    file: &dyn ReadFile,
    path: &Path,
    file_number: u64,
    order: &KeyOrder,
    take: &mut dyn FnMut(Entry<'_>) -> Result<()>,
) -> Result<Salvaged> {
    let order = order.clone();
    let mut taker = Taker { order, take, last: None, salvaged: Salvaged::default() };
    let mut search = Unindexed::new(file, path, file_number);
    let mut offset = 0;
    while let Some((block, length)) = search.block_at(offset)? {
        taker.block(&block)?;
        offset += length as u64;
    }
    // Where the data blocks should have ended is not known.
    if offset + (FOOTER_BYTES as u64) < file.len() || offset == 0 {
        let after = taker.last_key();
        taker.salvaged.lost.push(LostRange { after, through: None });
    }
    Ok(taker.salvaged)
}
