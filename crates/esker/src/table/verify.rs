//! The full check of a table against itself.

use super::BlockCache;
use super::block::Block;
use super::filter::Filter;
use super::format::{Footer, read_plain};
use super::index::Index;
use super::reader::Table;
use super::summary::TableSummary;
use super::unindexed::Unindexed;
use crate::base::blob_reference::BlobReference;
use crate::base::key::{self, Kind, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::slice::Pin;
use crate::env::ReadFile;
use crate::error::{Error, Result, escape_key};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// What a full check comes across.
pub enum Checked<'a> {
    /// So many more bytes are done.
    Bytes(u64),
    /// A reference to a large value, in an intact block.
    Large(&'a BlobReference),
    /// Something that cannot be read, or is not what was written.
    Damage(Error),
}

/// As [`Table::verify_all`], for a file that may not open as a table. Without a usable footer or
/// index, each part that is readable is checked on its own.
///
/// # Errors
/// What `visit` returns.
pub fn verify_file(
    file: Arc<dyn ReadFile>,
    path: &Path,
    file_number: u64,
    cache: Arc<BlockCache>,
    order: &KeyOrder,
    visit: &mut dyn FnMut(Checked<'_>) -> Result<()>,
) -> Result<()> {
    let footer = Footer::read(&*file, path, file_number);
    // Of what a newer version has written nothing is known.
    if let Err(error @ Error::Unsupported { .. }) = footer {
        return visit(Checked::Damage(error));
    }
    let is_intact = footer.is_ok();
    let unverified = if is_intact { Ok(None) } else { Footer::read_unverified(&*file) };
    let candidate = footer.as_ref().ok().copied().or(unverified.unwrap_or_default());
    let opened = candidate
        .map(|footer| Table::open_with(footer, Arc::clone(&file), path.to_path_buf(), file_number, cache, order));
    match opened.transpose() {
        // Tells of the footer again.
        Ok(Some(Some(table))) => return table.verify_all(visit),
        Ok(_) => {}
        Err(error) => visit(Checked::Damage(error))?,
    }
    let result = match footer {
        Ok(footer) => verify_unindexed(&*file, path, file_number, footer, order, visit),
        // Where its parts are is not known.
        Err(error) => visit(Checked::Damage(error)),
    };
    result.and_then(|()| visit(Checked::Bytes(file.len())))
}

/// Checks the parts of a table with a footer and without a usable index.
fn verify_unindexed(
    file: &dyn ReadFile,
    path: &Path,
    file_number: u64,
    footer: Footer,
    order: &KeyOrder,
    visit: &mut dyn FnMut(Checked<'_>) -> Result<()>,
) -> Result<()> {
    let mut search = Unindexed::new(file, path, file_number);
    let parts = [footer.index, footer.filter, footer.properties];
    // Data blocks are in front of all of them.
    let end = parts.iter().filter(|part| part.bytes > 0).map(|part| part.offset).min().unwrap_or(0);
    let mut offset = 0;
    let found = loop {
        match search.block_at(offset) {
            Ok(Some((_, length))) if offset < end => offset += length as u64,
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let part = |what: Result<()>, visit: &mut dyn FnMut(Checked<'_>) -> Result<()>| match what {
        Ok(()) => Ok(()),
        Err(error) => visit(Checked::Damage(error)),
    };
    let what = "a block does not verify; without the index, those behind it are not found";
    part(found.and_then(|()| if offset < end { Err(Error::corruption(path, offset, what)) } else { Ok(()) }), visit)?;
    let index = read_plain(file, path, file_number, footer.index).and_then(|content| {
        let decoded = Index::decode(&content, footer.index.offset, order);
        decoded.map(drop).map_err(|error| error.at(path, footer.index.offset))
    });
    part(index, visit)?;
    if footer.filter.bytes > 0 {
        part(Filter::read(file, path, file_number, footer.filter).map(drop), visit)?;
    }
    let properties = read_plain(file, path, file_number, footer.properties);
    let decoded =
        properties.and_then(|content| TableSummary::decode(&content, path, footer.properties.offset, order).map(drop));
    part(decoded, visit)
}

impl Table {
    /// As [`Table::verify_all`], up to the first damage. `progress` is called with the bytes done
    /// after each block.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.verify_all(&mut |checked| match checked {
            Checked::Bytes(bytes) => {
                progress(bytes);
                Ok(())
            }
            Checked::Large(_) => Ok(()),
            Checked::Damage(error) => Err(error),
        })
    }

    /// Reads the whole file again, without the cache and the mapping. Checks every block's
    /// checksum, the order of all entries, the index, the filter, and counts and bounds against the
    /// properties. Continues after damage, since the index has the place of the next block. An
    /// error of `visit` ends the call.
    pub fn verify_all(&self, visit: &mut dyn FnMut(Checked<'_>) -> Result<()>) -> Result<()> {
        let file = &*self.file.0;
        let mut is_whole = true;
        let mut note = |error: Error, visit: &mut dyn FnMut(Checked<'_>) -> Result<()>| {
            is_whole = false;
            match error {
                Error::Corruption { .. } | Error::Io { .. } => visit(Checked::Damage(error)),
                other => Err(other),
            }
        };
        match Footer::read(file, &self.path, self.file_number) {
            Ok(footer) if footer == self.footer => {}
            Ok(_) => {
                let what = "the footer has changed since the table was opened";
                note(Error::corruption(&self.path, file.len(), what), visit)?;
            }
            Err(error) => note(error, visit)?,
        }
        let mut properties = Vec::new();
        match read_plain(file, &self.path, self.file_number, self.footer.properties) {
            Ok(read) => properties = read,
            Err(error) => note(error, visit)?,
        }
        if let Err(error) = read_plain(file, &self.path, self.file_number, self.footer.index) {
            note(error, visit)?;
        }
        let mut filter = None;
        if self.footer.filter.bytes > 0 {
            match Filter::read(file, &self.path, self.file_number, self.footer.filter) {
                Ok(read) => filter = Some(read),
                Err(error) => note(error, visit)?,
            }
        }
        let mut found = TableSummary { order: self.order().clone(), ..TableSummary::default() };
        let mut last: Option<(Vec<u8>, Sequence)> = None;
        for number in 0..self.index.len() {
            match self.verify_block(number, filter.as_ref(), &mut last, &mut found) {
                Ok((block, offset)) => {
                    self.references_in(&block, offset).try_for_each(|reference| match reference {
                        Ok(reference) => visit(Checked::Large(&reference)),
                        Err(error) => visit(Checked::Damage(error)),
                    })?
                }
                Err(error) => note(error, visit)?,
            }
            visit(Checked::Bytes(self.index.handle(number).unwrap_or_default().bytes))?;
        }
        if is_whole && let Err(error) = self.compare_summary(&properties, found, last) {
            visit(Checked::Damage(error))?;
        }
        visit(Checked::Bytes(file.len() - self.index.data_end()))
    }

    /// Compares what all blocks hold with what the properties say.
    fn compare_summary(
        &self,
        properties: &[u8],
        mut found: TableSummary,
        last: Option<(Vec<u8>, Sequence)>,
    ) -> Result<()> {
        found.largest_key = last.map(|(key, _)| key).unwrap_or_default();
        let stored = TableSummary::decode(properties, &self.path, self.footer.properties.offset, self.order())?;
        found.add_range_tombstones(stored.range_tombstones);
        found.keyspace = stored.keyspace;
        found.has_zstd = stored.has_zstd;
        found.policy_filter = stored.policy_filter;
        (found.file_number, found.file_bytes) = (self.file_number, self.file.0.len());
        if found == self.summary {
            return Ok(());
        }
        let what = "the entries do not add up to what the properties say";
        Err(Error::corruption(&self.path, self.footer.properties.offset, what))
    }

    /// Reads a block and checks it. With its offset.
    fn verify_block(
        &self,
        number: usize,
        filter: Option<&Filter>,
        last: &mut Option<(Vec<u8>, Sequence)>,
        found: &mut TableSummary,
    ) -> Result<(Block, u64)> {
        let (block, offset) = self.read_again(number)?;
        self.verify_entries(&block, offset, filter, last, found)?;
        if last.as_ref().is_some_and(|(key, sequence)| self.index.is_last(number, key, *sequence)) {
            Ok((block, offset))
        } else {
            Err(self.inconsistent(number))
        }
    }

    /// Calls `visit` with every reference to a large value in the table, read past the cache and
    /// the mapping.
    pub fn blob_references(&self, visit: &mut dyn FnMut(&BlobReference) -> Result<()>) -> Result<()> {
        if self.summary.blobs.is_empty() {
            return Ok(());
        }
        for number in 0..self.index.len() {
            let (block, offset) = self.read_again(number)?;
            self.references_in(&block, offset).try_for_each(|reference| visit(&reference?))?;
        }
        Ok(())
    }

    /// Reads a block from the file and checks its checksum and its form. With its offset.
    fn read_again(&self, number: usize) -> Result<(Block, u64)> {
        let handle = self.index.handle(number).unwrap_or_default();
        let mut stored = vec![0u8; usize::try_from(handle.bytes).unwrap_or_default()];
        self.file.0.read_at(handle.offset, &mut stored)?;
        Ok((self.unpack(handle.offset, &stored, Vec::new())?, handle.offset))
    }

    /// The references to large values in a block. A block may have some although the properties
    /// name no blob file, if the properties are lost.
    fn references_in<'b>(&'b self, block: &'b Block, offset: u64) -> impl Iterator<Item = Result<BlobReference>> + 'b {
        let (bytes, layout) = (block.bytes(), &block.layout);
        (0..layout.count).filter(move |index| layout.kind_of(bytes, *index) == Kind::PutBlob).map(move |index| {
            let (start, end) = layout.value_range(bytes, index);
            let malformed = || Error::corruption(&self.path, offset, "a reference to a large value is malformed");
            BlobReference::decode(bytes.get(start..end).unwrap_or_default()).ok_or_else(malformed)
        })
    }

    /// Checks the entries of one block and adds them to what was found before.
    fn verify_entries(
        &self,
        block: &Block,
        offset: u64,
        filter: Option<&Filter>,
        last: &mut Option<(Vec<u8>, Sequence)>,
        found: &mut TableSummary,
    ) -> Result<()> {
        let (bytes, layout) = (block.bytes(), &block.layout);
        let mut key = layout.prefix(bytes).to_vec();
        for index in 0..layout.count {
            key.truncate(layout.prefix_bytes);
            key.extend_from_slice(layout.key_rest(bytes, index));
            let sequence = layout.sequence_of(bytes, index);
            let wrong = |what: &str| {
                let what = format!("key {} with sequence {sequence} {what}", escape_key(self.order().key_of(&key)));
                Err(Error::corruption(&self.path, offset, what))
            };
            match last {
                Some((last_key, last_sequence)) => {
                    if self.order().compare_versions((last_key, *last_sequence), (&key, sequence)) != Ordering::Less {
                        return wrong("is out of order");
                    }
                }
                None => found.smallest_key.clone_from(&key),
            }
            if filter.is_some_and(|filter| !filter.may_contain(key::hash(&key))) {
                return wrong("is missing from the filter");
            }
            let kind: Kind = layout.kind_of(bytes, index);
            let (start, end) = layout.value_range(bytes, index);
            found.add_columns(&[sequence], &[kind as u8], &[layout.expiry_of(bytes, index)]);
            if kind == Kind::PutBlob {
                found.add_blob(bytes.get(start..end).unwrap_or_default());
            }
            found.raw_key_bytes += key.len() as u64;
            found.raw_value_bytes += (end - start) as u64;
            let (last_key, last_sequence) = last.get_or_insert_with(|| (Vec::new(), 0));
            last_key.clone_from(&key);
            *last_sequence = sequence;
        }
        Ok(())
    }
}
