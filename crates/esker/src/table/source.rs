//! Where a table's blocks come from: the mapping, the cache, or the file.

use super::block::{Block, KEY_LINES, Layout};
use super::format::{Handle, LZ4, STORED, TRAILER_BYTES, ZSTD, codec_of, split, unseal};
use super::reader::Table;
use crate::base::coding::DecodeError;
use crate::base::compression::{decompress, split_size};
use crate::base::lz4::SLACK_BYTES;
use crate::base::prefetch::prefetch_lines;
use crate::cache::Hit;
use crate::error::{Error, Result};
use std::sync::Arc;

/// A block in place in the mapping.
pub(super) struct InPlace<'a> {
    /// Where in the file the block begins.
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
    pub(super) layout: Layout,
}

/// A block for one cursor.
pub(super) enum Passing {
    /// Found in the cache.
    Shared(Arc<Block>),
    /// In memory that is used again for the next one.
    Own(Block),
}

/// Bytes of the file read ahead of a cursor that goes forward and keeps nothing in the cache.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    buffer: Vec<u8>,
    offset: u64,
    /// How much the next read fetches; doubles with each.
    window: usize,
}

/// So much of a compressed block is prefetched at once: the processor's own prefetching begins
/// late, and anew in every page.
const PACKED_LINES: usize = 16;

const FIRST_WINDOW: usize = 16 << 10;
const LAST_WINDOW: usize = 256 << 10;

impl ReadAhead {
    /// The bytes of `handle`, which lies before `end`, from the buffer or a read that goes on
    /// behind them.
    fn fetch(&mut self, table: &Table, handle: Handle, length: usize, end: u64) -> Result<&[u8]> {
        let buffered = self.offset + self.buffer.len() as u64;
        if handle.offset < self.offset || handle.offset + handle.bytes > buffered {
            // A read that does not follow the last one is not part of a scan, as far as is known.
            let follows = handle.offset >= self.offset && handle.offset <= buffered && !self.buffer.is_empty();
            self.window = if follows { (self.window * 2).clamp(FIRST_WINDOW, LAST_WINDOW) } else { 0 };
            let left = usize::try_from(end.saturating_sub(handle.offset)).unwrap_or(usize::MAX);
            self.buffer.resize(length.max(self.window.min(left)), 0);
            self.offset = handle.offset;
            if let Err(error) = table.file.0.read_at(handle.offset, &mut self.buffer) {
                self.buffer.clear();
                return Err(error);
            }
        }
        let start = (handle.offset - self.offset) as usize;
        Ok(self.buffer.get(start..start + length).unwrap_or_default())
    }
}

impl Table {
    /// The mapping, if blocks are to be read from it.
    #[inline]
    fn mapping(&self) -> Option<&[u8]> {
        if self.mapped && !self.file.has_lost_mapping() { self.file.0.mapping() } else { None }
    }

    /// The handle of a block, and its length in memory.
    #[inline]
    pub(super) fn located(&self, number: usize) -> Result<(Handle, usize)> {
        self.index
            .handle(number)
            .and_then(|handle| Some((handle, usize::try_from(handle.bytes).ok()?)))
            .ok_or_else(|| Error::corruption(&self.path, 0, "a block does not exist"))
    }

    /// Block `number` in the mapping, if there is one and the block is not compressed.
    #[inline]
    pub(super) fn in_place(&self, number: usize) -> Result<Option<InPlace<'_>>> {
        let Some(mapping) = self.mapping() else { return Ok(None) };
        if self.verified.packed.contains(number) {
            return Ok(None);
        }
        let (handle, length) = self.located(number)?;
        let start = handle.offset as usize;
        let Some(stored) = mapping.get(start..).and_then(|rest| rest.get(..length)) else {
            return Err(Error::corruption(&self.path, handle.offset, "the mapping is shorter than the file was"));
        };
        // The trailer of a block that was found good is not read again: it would be one more cache
        // miss.
        let content = stored.get(..length.saturating_sub(TRAILER_BYTES)).unwrap_or_default();
        if !self.verified.good.contains(number) {
            return self.verify_in_place(number, handle.offset, stored);
        }
        prefetch_lines(content, KEY_LINES);
        let layout = Layout::parse(content).map_err(|error| self.damaged(handle.offset, error))?;
        Ok(Some(InPlace { start, bytes: content, layout }))
    }

    #[cold]
    fn verify_in_place<'a>(&self, number: usize, offset: u64, stored: &'a [u8]) -> Result<Option<InPlace<'a>>> {
        // Any other kind, damaged or not, is checked when the block is decompressed.
        let Some((_, STORED, _)) = split(stored) else {
            self.verified.packed.insert(number);
            return Ok(None);
        };
        let (content, _) = unseal(stored, &self.path, self.file_number, offset)?;
        let damaged = |error| self.damaged(offset, error);
        let layout = Layout::parse(content).map_err(damaged)?;
        layout.validate(content).map_err(damaged)?;
        self.verified.good.insert(number);
        Ok(Some(InPlace { start: offset as usize, bytes: content, layout }))
    }

    /// Starts loading what leads to block `number`: its beginning if it is in place, or its slot in
    /// the cache.
    #[inline]
    pub(super) fn prefetch_block(&self, number: usize) {
        if let Some(mapping) = self.mapping()
            && !self.verified.packed.contains(number)
        {
            if let Some(handle) = self.index.handle(number) {
                prefetch_lines(mapping.get(handle.offset as usize..).unwrap_or_default(), KEY_LINES);
            }
        } else {
            self.slots.prefetch(number);
        }
    }

    /// Starts loading block `number`, which is compressed, from the mapping, if there is one.
    #[inline]
    pub(super) fn prefetch_packed(&self, number: usize) {
        if let (Some(mapping), Some(handle)) = (self.mapping(), self.index.handle(number)) {
            prefetch_lines(mapping.get(handle.offset as usize..).unwrap_or_default(), PACKED_LINES);
        }
    }

    /// Block `number`, if it is in the cache, to be taken from there soon.
    #[inline]
    pub(super) fn cached(&self, number: usize) -> Option<Hit<Block>> {
        if self.mapped && !self.verified.packed.contains(number) { None } else { self.slots.peek(number) }
    }

    /// Block `number` from the cache, or from the file; then the cache may keep it.
    #[inline]
    pub(super) fn owned(&self, number: usize) -> Result<Arc<Block>> {
        match self.slots.lookup(number).and_then(Hit::into_inner) {
            Some(block) => Ok(block),
            None => self.load(number),
        }
    }

    /// Block `number`, which was not found in the cache; then the cache may keep it.
    #[cold]
    pub(super) fn load(&self, number: usize) -> Result<Arc<Block>> {
        let (handle, length) = self.located(number)?;
        let mut read = Vec::new();
        let (stored, is_mapped) = match self.in_mapping(number, handle.offset, length) {
            Some(stored) => (stored, true),
            None => {
                read.resize(length, 0);
                self.file.0.read_at(handle.offset, &mut read)?;
                (&*read, false)
            }
        };
        let is_known = self.verified.unpacked.contains(number);
        let (content, compression) = self.content(stored, handle.offset, is_known)?;
        let (_, room) = self.raw_size(handle.offset, (content, compression))?;
        let block = if self.cache.admits(Block::weight_of(room)) {
            self.keep((number, handle.offset), (content, compression), room)?
        } else if !is_mapped && compression == STORED {
            read.truncate(room);
            let block = Block::new(read).map_err(|error| self.damaged(handle.offset, error))?;
            Arc::new(block.charged(&self.cache))
        } else {
            self.whole(handle.offset, (content, compression))?
        };
        if compression != STORED {
            self.note_unpacked(number, is_known);
        }
        Ok(block)
    }

    /// The length of the block with this content and compression kind, and the memory that it takes
    /// to make it.
    pub(super) fn raw_size(&self, offset: u64, (content, compression): (&[u8], u8)) -> Result<(usize, usize)> {
        let Some(codec) = codec_of(compression) else { return Ok((content.len(), content.len())) };
        match split_size(codec, content) {
            Ok((raw_bytes, _)) => Ok((raw_bytes, raw_bytes + SLACK_BYTES)),
            Err(error) => Err(self.damaged(offset, error)),
        }
    }

    /// Block `number`, at `offset`, for the cache, which has admitted it.
    pub(super) fn keep(&self, (number, offset): (usize, u64), content: (&[u8], u8), room: usize) -> Result<Arc<Block>> {
        let block = self.unpack_content(offset, content, self.cache.memory(room))?;
        if self.file.has_lost_mapping() {
            // It may have been decompressed from zeroes: its reader gets an error, and others would
            // not.
            return Ok(Arc::new(block.charged(&self.cache)));
        }
        Ok(self.cache.insert(&self.slots, number, Arc::new(block.for_cache(&self.cache))))
    }

    /// The block at `offset`, for any reader.
    pub(super) fn whole(&self, offset: u64, content: (&[u8], u8)) -> Result<Arc<Block>> {
        Ok(Arc::new(self.unpack_content(offset, content, Vec::new())?.charged(&self.cache)))
    }

    /// Block `number`, which is compressed, as it lies in the mapping, if there is one.
    #[inline]
    pub(super) fn in_mapping(&self, number: usize, offset: u64, length: usize) -> Option<&[u8]> {
        let mapping = self.mapping()?;
        self.prefetch_packed(number);
        Some(mapping.get(offset as usize..).and_then(|rest| rest.get(..length)).unwrap_or_default())
    }

    /// Content and compression kind of the block that is stored at `offset`. Its checksum is not
    /// checked if it is known to be right, in the mapping.
    pub(super) fn content<'a>(&self, stored: &'a [u8], offset: u64, is_known: bool) -> Result<(&'a [u8], u8)> {
        match split(stored) {
            Some((content, kind @ (LZ4 | ZSTD), _)) if is_known && !self.file.has_lost_mapping() => Ok((content, kind)),
            _ => unseal(stored, &self.path, self.file_number, offset),
        }
    }

    /// Notes that block `number`, which is compressed, was checked; that counts in the mapping
    /// only.
    #[inline]
    pub(super) fn note_unpacked(&self, number: usize, is_known: bool) {
        if !is_known && self.mapped {
            self.verified.unpacked.insert(number);
        }
    }

    /// Block `number` for one cursor that passes many: from the cache, or else from the file into
    /// the memory of `spare`, without being kept in the cache.
    pub(super) fn passing(&self, number: usize, ahead: &mut ReadAhead, spare: Vec<u8>) -> Result<Passing> {
        if let Some(block) = self.slots.lookup(number).and_then(Hit::into_inner) {
            return Ok(Passing::Shared(block));
        }
        let Some(mapping) = self.mapping() else { return self.once(number, ahead, spare).map(Passing::Own) };
        let (handle, length) = self.located(number)?;
        let stored = mapping.get(handle.offset as usize..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        let block = self.unpack_mapped(number, handle.offset, stored, spare)?;
        Ok(Passing::Own(block.charged(&self.cache)))
    }

    /// Block `number` from the file, checked, in the memory of `spare`. Neither the cache nor the
    /// mapping is used: bytes to be written elsewhere are those that the device has now, and pages
    /// that are read for the last time do not become the process's.
    pub(super) fn once(&self, number: usize, ahead: &mut ReadAhead, spare: Vec<u8>) -> Result<Block> {
        let (handle, length) = self.located(number)?;
        let stored = ahead.fetch(self, handle, length, self.index.data_end())?;
        Ok(self.unpack(handle.offset, stored, spare)?.charged(&self.cache))
    }

    /// As `unpack`, for block `number` in the mapping: like one that is read in place, it is
    /// checked once.
    fn unpack_mapped(&self, number: usize, offset: u64, stored: &[u8], spare: Vec<u8>) -> Result<Block> {
        let is_known = self.verified.unpacked.contains(number);
        let block = self.unpack_content(offset, self.content(stored, offset, is_known)?, spare)?;
        self.note_unpacked(number, is_known);
        Ok(block)
    }

    /// The block that `stored` at `offset` holds, in the memory of `spare` if there is enough.
    pub(super) fn unpack(&self, offset: u64, stored: &[u8], spare: Vec<u8>) -> Result<Block> {
        self.unpack_content(offset, self.content(stored, offset, false)?, spare)
    }

    fn unpack_content(&self, offset: u64, (content, compression): (&[u8], u8), mut spare: Vec<u8>) -> Result<Block> {
        let bytes = match codec_of(compression) {
            None => {
                spare.clear();
                spare.extend_from_slice(content);
                spare
            }
            Some(codec) => decompress(codec, content, spare).map_err(|error| self.damaged(offset, error))?,
        };
        Block::new(bytes).map_err(|error| self.damaged(offset, error))
    }

    /// The error that the content of the block at `offset` is malformed. Where in it is only a
    /// place in the file if it is not compressed, so the block's own offset is named.
    #[cold]
    pub(super) fn damaged(&self, offset: u64, error: DecodeError) -> Error {
        let DecodeError { offset: within, expected } = error;
        Error::corruption(&self.path, offset, format!("expected {expected} at byte {within} of the block"))
    }
}
