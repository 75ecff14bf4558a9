//! Finding the data blocks of a table whose index is lost, one after the other from the front.
//!
//! A block's own lengths say where it ends: the header of one that is stored as it is, the tokens
//! or the frame of one that is compressed. At most one place for each comes into question, and the
//! checksum there decides. The search reads as many bytes as the next block has, twice as many each
//! time until it is found, so that the work is in proportion to the file whatever is in it: each
//! byte is read, walked over and summed a few times (`tests/unindexed.rs` counts).

use super::block::{Block, Layout};
use super::format::{LZ4, STORED, TRAILER_BYTES, ZSTD, codec_of, unseal};
use crate::base::compression::{Codec, Walk, decompress};
use crate::base::lz4::End;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use std::path::Path;

/// No block that is searched for is longer.
pub(super) const LONGEST: usize = 128 << 10;
/// So many bytes are read first. More than a block's header.
const FIRST_LOOK: usize = 256;

/// A file, and what was read of it ahead of the search.
pub(super) struct Unindexed<'a> {
    file: &'a dyn ReadFile,
    path: &'a Path,
    file_number: u64,
    ahead: Vec<u8>,
    /// Where in the file that is.
    start: u64,
    /// Bytes read, walked over and summed.
    #[cfg(test)]
    pub(super) work: u64,
}

/// Whether a block of one kind may begin here.
enum Candidate {
    /// If so, it is longer than the bytes read.
    Open,
    /// If so, it has so many bytes with its trailer.
    Ends(usize),
    Impossible,
}

impl<'a> Unindexed<'a> {
    pub(super) fn new(file: &'a dyn ReadFile, path: &'a Path, file_number: u64) -> Unindexed<'a> {
        Unindexed {
            file,
            path,
            file_number,
            ahead: Vec::new(),
            start: 0,
            #[cfg(test)]
            work: 0,
        }
    }

    /// The block at `offset`, at or behind that of the last call, and its length with the trailer.
    pub(super) fn block_at(&mut self, offset: u64) -> Result<Option<(Block, usize)>> {
        let longest = self.file.len().saturating_sub(offset).min(LONGEST as u64) as usize;
        let mut stored = Candidate::Open;
        let mut packed = [Codec::Lz4, Codec::Zstd].map(|codec| (Candidate::Open, Walk::new(codec)));
        let mut length = FIRST_LOOK.min(longest);
        loop {
            self.read_ahead(offset, length)?;
            let bytes = self.bytes(offset, length);
            if matches!(stored, Candidate::Open) {
                stored = stored_at(bytes);
            }
            let mut walked = 0;
            for (candidate, walk) in packed.iter_mut().filter(|(candidate, _)| matches!(candidate, Candidate::Open)) {
                *candidate = packed_at(bytes, walk);
                walked += length;
            }
            self.count(walked);
            let [(lz4, _), (zstd, _)] = &mut packed;
            for (candidate, kind) in [(&mut stored, STORED), (lz4, LZ4), (zstd, ZSTD)] {
                if let Candidate::Ends(end) = *candidate
                    && end <= length
                {
                    *candidate = Candidate::Impossible;
                    if let Some(block) = self.unsealed(offset, end, kind)? {
                        return Ok(Some((block, end)));
                    }
                }
            }
            let is_possible = |candidate: &Candidate| match candidate {
                Candidate::Open => true,
                Candidate::Ends(end) => *end <= longest,
                Candidate::Impossible => false,
            };
            if length == longest || !(is_possible(&stored) || packed.iter().any(|(packed, _)| is_possible(packed))) {
                return Ok(None);
            }
            length = (length * 2).min(longest);
        }
    }

    /// Reads so far ahead that the next few blocks need no read.
    fn read_ahead(&mut self, offset: u64, length: usize) -> Result<()> {
        if offset >= self.start && offset - self.start + length as u64 <= self.ahead.len() as u64 {
            return Ok(());
        }
        let most = self.file.len().saturating_sub(offset).min(2 * LONGEST as u64) as usize;
        self.ahead.resize(most, 0);
        self.start = offset;
        self.count(most);
        self.file.read_at(offset, &mut self.ahead).inspect_err(|_| self.ahead.clear())
    }

    fn bytes(&self, offset: u64, length: usize) -> &[u8] {
        let start = offset.saturating_sub(self.start) as usize;
        self.ahead.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default()
    }

    /// The block of this kind with so many bytes, if its checksum says that it is one.
    ///
    /// # Errors
    /// `UnsupportedCompression` if it is one that this build cannot read: it is not lost.
    fn unsealed(&mut self, offset: u64, length: usize, kind: u8) -> Result<Option<Block>> {
        self.count(length);
        let (content, found) = match unseal(self.bytes(offset, length), self.path, self.file_number, offset) {
            Ok(unsealed) => unsealed,
            Err(error @ Error::UnsupportedCompression { .. }) => return Err(error),
            Err(_) => return Ok(None),
        };
        let raw = match codec_of(kind) {
            _ if found != kind => return Ok(None),
            None => Some(content.to_vec()),
            Some(codec) => decompress(codec, content, Vec::new()).ok(),
        };
        Ok(raw.and_then(|raw| Block::new(raw).ok()))
    }

    #[cfg(test)]
    fn count(&mut self, bytes: usize) {
        self.work += bytes as u64;
    }

    /// For tests only.
    #[cfg(not(test))]
    #[inline(always)]
    fn count(&mut self, _: usize) {}
}

/// A block that is stored as it is.
fn stored_at(bytes: &[u8]) -> Candidate {
    match Layout::length_of(bytes).and_then(|length| usize::try_from(length).ok()?.checked_add(TRAILER_BYTES)) {
        Some(end) => Candidate::Ends(end),
        None => Candidate::Impossible,
    }
}

/// A compressed block. `walk` goes on where it came to with fewer of the bytes.
fn packed_at(bytes: &[u8], walk: &mut Walk) -> Candidate {
    match walk.end(bytes) {
        End::At(end) => Candidate::Ends(end + TRAILER_BYTES),
        End::Behind => Candidate::Open,
        End::Nowhere => Candidate::Impossible,
    }
}
