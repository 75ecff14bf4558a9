//! Writes a table from entries in order.

use super::block_builder::BlockBuilder;
use super::filter;
use super::format::{FOOTER_BYTES, Footer, Handle, STORED, kind_of, seal};
use super::index::IndexBuilder;
use super::keyspace::TableKeyspace;
use super::summary::TableSummary;
use crate::base::compression::{Codec, Compressor};
use crate::base::key::{self, Entry, MAX_KEY_BYTES, MAX_SEQUENCE, MAX_VALUE_BYTES, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::env::WriteFile;
use crate::error::{Error, Result, escape_key};
use crate::options::Compression;
use std::cmp::Ordering;
use std::path::PathBuf;

/// How a table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// Data blocks are cut at about this size before compression. Larger ones compress and scan
    /// better, smaller ones read less for one key.
    pub block_bytes: usize,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Bits of filter for each distinct user key; 0 for no filter. Ten let about one probe in a
    /// hundred through.
    pub filter_bits_per_key: u32,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions { block_bytes: 8 << 10, compression: Compression::None, filter_bits_per_key: 10 }
    }
}

const SMALLEST_BLOCK_BYTES: usize = 64;
const LARGEST_BLOCK_BYTES: usize = 16 << 20;

/// Finished blocks are handed to the file in pieces of about this size.
const WRITE_BYTES: usize = 256 << 10;

/// Memory that one builder leaves to the next: faulting in fresh memory costs more than filling it.
#[derive(Debug, Default)]
pub struct Buffers {
    block: BlockBuilder,
    hashes: Vec<u64>,
    out: Vec<u8>,
    compressor: Option<Compressor>,
}

/// Writes one table. Dropped before [`TableBuilder::finish_reusably`], it leaves a file that is not
/// a table; the caller removes it.
#[derive(Debug)]
pub struct TableBuilder {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    options: TableOptions,
    /// The block being filled.
    block: BlockBuilder,
    /// The last key and sequence of the last finished block.
    last_key: Vec<u8>,
    last_sequence: Sequence,
    index: IndexBuilder,
    /// The hashes of all distinct keys, if there is to be a filter.
    hashes: Vec<u64>,
    compressor: Option<Compressor>,
    /// Finished blocks not yet given to the file, which begin at `written` of it.
    out: Vec<u8>,
    written: u64,
    /// The facts so far, without the block being filled.
    summary: TableSummary,
    /// What goes into the properties at the end.
    tombstones: RangeTombstones,
    /// A write failed: what the file holds is unknown.
    failed: bool,
}

impl TableBuilder {
    /// A builder that appends to the empty `file`. The path is for messages only.
    pub fn new(file: Box<dyn WriteFile>, path: PathBuf, file_number: u64, options: TableOptions) -> TableBuilder {
        let block_bytes = options.block_bytes.clamp(SMALLEST_BLOCK_BYTES, LARGEST_BLOCK_BYTES);
        TableBuilder {
            file,
            path,
            options: TableOptions { block_bytes, ..options },
            block: BlockBuilder::default(),
            last_key: Vec::new(),
            last_sequence: 0,
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            compressor: options.compression.codec().map(Compressor::new),
            out: Vec::new(),
            written: 0,
            summary: TableSummary { file_number, ..TableSummary::default() },
            tombstones: RangeTombstones::default(),
            failed: false,
        }
    }

    /// This builder, to which nothing was added yet, with the memory of a finished one.
    pub fn reusing(self, buffers: Buffers) -> TableBuilder {
        let Buffers { block, hashes, out, compressor } = buffers;
        let same = |fresh: &Compressor| compressor.filter(|kept| kept.codec() == fresh.codec());
        let compressor = self.compressor.map(|fresh| same(&fresh).unwrap_or(fresh));
        TableBuilder { block, hashes, out, compressor, ..self }
    }

    /// Adds the next entry, which must come after all others in internal key order.
    #[inline]
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        let (last_key, last_sequence) = match self.block.last() {
            Some(last) => last,
            None => (self.last_key.as_slice(), self.last_sequence),
        };
        let same_key = match self.summary.order.compare(entry.key, last_key) {
            Ordering::Greater => false,
            _ if self.is_first() => false,
            Ordering::Equal if entry.sequence < last_sequence => true,
            order => self.out_of_order(&entry, order)?,
        };
        if entry.key.len() > MAX_KEY_BYTES
            || entry.value.len() > MAX_VALUE_BYTES
            || entry.sequence > MAX_SEQUENCE
            || self.failed
        {
            return Err(self.refusal(&entry));
        }
        if self.block.estimated_bytes() + BlockBuilder::estimated_increase(&entry) > self.options.block_bytes
            && !self.block.is_empty()
        {
            self.finish_block()?;
        }
        if !same_key && self.options.filter_bits_per_key > 0 {
            self.hashes.push(key::hash(entry.key));
        }
        if entry.kind == key::Kind::PutBlob {
            self.summary.add_blob(entry.value);
        }
        self.block.add(&entry);
        Ok(())
    }

    /// Sets the table's range tombstones. It may have no entries then.
    pub fn set_range_tombstones(&mut self, tombstones: RangeTombstones) {
        self.tombstones = tombstones;
    }

    /// What becomes of an entry that does not come after the one before it. Where the order is a
    /// program's own, that may be the comparator's fault: refused, the keyspace could not be
    /// flushed for ever. Whether it is of the same key.
    #[cold]
    fn out_of_order(&self, entry: &Entry<'_>, order: Ordering) -> Result<bool> {
        if self.summary.order.is_trusted() {
            return Err(out_of_order(entry, &self.summary.order));
        }
        self.summary.order.note_fault();
        Ok(order == Ordering::Equal)
    }

    #[inline]
    fn is_first(&self) -> bool {
        self.block.is_empty() && self.summary.entries == 0
    }

    #[cold]
    fn refusal(&self, entry: &Entry<'_>) -> Error {
        if self.failed {
            return Error::invalid(format!(
                "an earlier write of table {} failed; start a new one",
                self.path.display()
            ));
        }
        Error::invalid(format!(
            "an entry has a key of {} bytes, a value of {} and sequence {}; the most are {MAX_KEY_BYTES}, \
             {MAX_VALUE_BYTES} and {MAX_SEQUENCE}",
            entry.key.len(),
            entry.value.len(),
            entry.sequence
        ))
    }

    /// The key of the last entry; empty if there is none.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        self.block.last().map_or(&self.last_key, |(key, _)| key)
    }

    /// Roughly how long the file would be if it were finished now.
    #[inline]
    pub fn estimated_file_bytes(&self) -> u64 {
        self.offset()
            + self.block.estimated_bytes() as u64
            + filter::estimated_bytes(self.hashes.len(), self.options.filter_bits_per_key)
            + self.index.estimated_bytes()
            + FOOTER_BYTES as u64
    }

    /// This builder, to which nothing was added yet, for keys in another order.
    pub fn in_order(mut self, order: &KeyOrder) -> TableBuilder {
        self.summary.order = order.clone();
        self
    }

    /// Says whose table it is.
    pub fn set_keyspace(&mut self, keyspace: TableKeyspace) {
        self.summary.keyspace = Some(keyspace);
    }

    /// Makes the entries added so far durable, before the table says what the caller infers from
    /// them.
    pub fn sync_entries(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.finish_block()?;
        }
        self.flush()?;
        self.file.sync()
    }

    /// As [`TableBuilder::finish_reusably`], for a caller that makes one table.
    #[cfg(test)]
    pub fn finish(self) -> Result<TableSummary> {
        self.finish_reusably().map(|(summary, _)| summary)
    }

    /// Writes what is missing, makes the file durable (not its name) and returns the facts about
    /// it, and memory for the next builder.
    pub fn finish_reusably(mut self) -> Result<(TableSummary, Buffers)> {
        if self.failed {
            return Err(self.refusal(&Entry { key: b"", sequence: 0, kind: key::Kind::Put, expiry_ms: 0, value: b"" }));
        }
        if !self.block.is_empty() {
            self.finish_block()?;
        }
        self.summary.largest_key = std::mem::take(&mut self.last_key);
        let (mut hashes, bits) = (std::mem::take(&mut self.hashes), self.options.filter_bits_per_key);
        let filter = self.write_block(|out| filter::write(out, &hashes, bits));
        let index = std::mem::take(&mut self.index);
        let order = self.summary.order.clone();
        let index = self.write_block(|out| index.write(out, &order));
        let properties = self.summary.encode_with(&self.tombstones);
        let properties = self.write_block(|out| out.extend_from_slice(&properties));
        let offset = self.offset();
        let footer = Footer { index, filter, properties }.encode(self.summary.file_number, offset);
        self.out.extend_from_slice(&footer);
        self.flush()?;
        self.file.sync()?;
        self.summary.file_bytes = self.written;
        self.summary.add_range_tombstones(self.tombstones);
        hashes.clear();
        let TableBuilder { summary, block, out, compressor, .. } = self;
        Ok((summary, Buffers { block, hashes, out, compressor }))
    }

    /// Where in the file the next block begins.
    fn offset(&self) -> u64 {
        self.written + self.out.len() as u64
    }

    /// Appends a block that is never compressed; an empty one is left out and has an empty handle.
    fn write_block(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Handle {
        let (start, offset) = (self.out.len(), self.offset());
        write(&mut self.out);
        if self.out.len() == start {
            return Handle::default();
        }
        seal(&mut self.out, start, STORED, self.summary.file_number, offset);
        Handle { offset, bytes: (self.out.len() - start) as u64 }
    }

    /// Appends the block being filled, which has an entry, and starts the next.
    fn finish_block(&mut self) -> Result<()> {
        let (start, offset) = (self.out.len(), self.offset());
        self.block.write(&mut self.out, &self.summary.order);
        let mut kind = STORED;
        if let Some(compressor) = &mut self.compressor {
            let codec = compressor.codec();
            if let Some(packed) = compressor.compress(&self.out[start..]) {
                self.out.truncate(start);
                self.out.extend_from_slice(packed);
                kind = kind_of(codec);
                self.summary.has_zstd |= codec == Codec::Zstd;
            }
        }
        seal(&mut self.out, start, kind, self.summary.file_number, offset);
        if self.summary.entries == 0 {
            self.summary.smallest_key = self.block.first_key().unwrap_or_default().to_vec();
        }
        self.summary.add_columns(&self.block.sequences, &self.block.kinds, &self.block.expiries);
        self.summary.raw_key_bytes += self.block.key_bytes();
        self.summary.raw_value_bytes += self.block.value_bytes();
        if let Some((key, sequence)) = self.block.last() {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            self.last_sequence = sequence;
        }
        self.index.add(&self.last_key, self.last_sequence, (self.out.len() - start) as u64);
        self.block.clear();
        if self.out.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let result = self.file.append(&self.out);
        self.failed = result.is_err();
        self.written += self.out.len() as u64;
        self.out.clear();
        if self.out.capacity() > 16 * WRITE_BYTES {
            self.out = Vec::new();
        }
        result
    }
}

#[cold]
fn out_of_order(entry: &Entry<'_>, order: &KeyOrder) -> Error {
    Error::invalid(format!(
        "entries of a table must ascend, but key {} with sequence {} does not come after the one before it",
        escape_key(order.key_of(entry.key)),
        entry.sequence
    ))
}
