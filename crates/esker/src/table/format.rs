//! The file around the blocks: trailers, footer, and reading whole blocks with their checksum
//! verified.
//!
//! ```text
//! table   := data_block* filter_block? index_block properties_block footer
//! *_block := content compression:u8 checksum:u32       checksum over content and compression
//! footer  := index:handle filter:handle properties:handle version:u32 checksum:u32 magic:u64    (64 bytes)
//! handle  := offset:u64 bytes:u64                      bytes with the trailer; 0 where there is no such block
//! ```
//! The checksum of a block is seeded with the file number and the block's offset
//! ([`crate::base::checksum`]); that of the footer covers the bytes before it. Every later version
//! keeps the last 16 bytes and the meaning of the footer's checksum.

use crate::base::checksum::checksum;
use crate::base::coding::{Cursor, DecodeError};
use crate::base::compression::Codec;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use std::path::Path;

/// The format version written, and the newest that is read.
pub(super) const FORMAT_VERSION: u32 = 1;
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"eskerSST");
/// Index, filter and properties each have at most so many bytes: tables are ended long before
/// (`db/background/commit_version_edit.rs`).
const MAX_METADATA_BYTES: u64 = 4 << 30;
pub(super) const TRAILER_BYTES: usize = 5;
pub(super) const FOOTER_BYTES: usize = 64;
pub(super) const FOOTER_SUMMED_BYTES: usize = 52;

/// The compression kind of a block stored as it is.
pub(super) const STORED: u8 = 0;
/// The compression kinds of what `base/compression.rs` made.
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;

/// The compression kind of what was compressed so.
pub(super) fn kind_of(codec: Codec) -> u8 {
    match codec {
        Codec::Lz4 => LZ4,
        Codec::Zstd => ZSTD,
    }
}

/// How a block of this kind, which is a known one, was compressed, if it was.
#[inline]
pub(super) fn codec_of(kind: u8) -> Option<Codec> {
    match kind {
        STORED => None,
        ZSTD => Some(Codec::Zstd),
        _ => Some(Codec::Lz4),
    }
}

/// Where a block is, trailer included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Handle {
    /// The offset behind the block, if there is such a number.
    fn end(self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

/// Where everything that is not a data block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Footer {
    pub(super) index: Handle,
    pub(super) filter: Handle,
    pub(super) properties: Handle,
}

impl Footer {
    /// The bytes of a footer at `offset` of file `file_number`.
    pub(super) fn encode(&self, file_number: u64, offset: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for handle in [self.index, self.filter, self.properties] {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&handle.bytes.to_le_bytes());
        }
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let sum = checksum(file_number, offset, &out);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out
    }

    /// Reads and checks the footer of a table; every handle lies before it.
    pub(super) fn read(file: &dyn ReadFile, path: &Path, file_number: u64) -> Result<Footer> {
        let Some(offset) = file.len().checked_sub(FOOTER_BYTES as u64) else {
            return Err(Error::corruption(path, 0, format!("a table of {} bytes has no footer", file.len())));
        };
        let mut bytes = [0u8; FOOTER_BYTES];
        file.read_at(offset, &mut bytes)?;
        Footer::check(&bytes, path, file_number, offset)
    }

    /// Whether the file ends as a finished table does. A damaged table may have lost the magic
    /// number or the checksum, not both; an unfinished one has neither.
    pub(super) fn is_there(file: &dyn ReadFile, file_number: u64) -> Result<bool> {
        let Some(offset) = file.len().checked_sub(FOOTER_BYTES as u64) else { return Ok(false) };
        let mut bytes = [0u8; FOOTER_BYTES];
        file.read_at(offset, &mut bytes)?;
        let sum = checksum(file_number, offset, &bytes[..FOOTER_SUMMED_BYTES]);
        let found = Footer::decode(&bytes).ok();
        Ok(found.is_some_and(|(_, _, said, magic)| magic == MAGIC || said == sum))
    }

    /// Reads the footer without its checksum, if every handle lies before it. The blocks that the
    /// handles name have checksums of their own.
    pub(super) fn read_unverified(file: &dyn ReadFile) -> Result<Option<Footer>> {
        let Some(offset) = file.len().checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let mut bytes = [0u8; FOOTER_BYTES];
        file.read_at(offset, &mut bytes)?;
        let found = Footer::decode(&bytes).ok().map(|(footer, ..)| footer);
        let lies_before = |handle: &Handle| handle.end().is_some_and(|end| end <= offset);
        Ok(found.filter(|footer| [footer.index, footer.filter, footer.properties].iter().all(lies_before)))
    }

    /// The footer that these bytes at `offset` are; every handle lies before it.
    pub(super) fn check(bytes: &[u8; FOOTER_BYTES], path: &Path, file_number: u64, offset: u64) -> Result<Footer> {
        let (footer, version, sum, magic) = Footer::decode(bytes).map_err(|error| error.at(path, offset))?;
        if magic != MAGIC {
            return Err(Error::corruption(path, offset + 56, "this is not a table: the magic number is missing"));
        }
        if sum != checksum(file_number, offset, &bytes[..FOOTER_SUMMED_BYTES]) {
            return Err(Error::corruption(path, offset, "the footer's checksum does not match"));
        }
        if version > FORMAT_VERSION {
            return Err(Error::Unsupported { path: path.to_path_buf(), version, supported: FORMAT_VERSION });
        }
        if version == 0 {
            return Err(Error::corruption(path, offset + 48, "format version 0 does not exist"));
        }
        for handle in [footer.index, footer.filter, footer.properties] {
            if handle.end().is_none_or(|end| end > offset) {
                return Err(Error::corruption(path, offset, "a block handle points outside the file"));
            }
        }
        Ok(footer)
    }

    fn decode(bytes: &[u8]) -> std::result::Result<(Footer, u32, u32, u64), DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let mut handle =
            || Ok::<_, DecodeError>(Handle { offset: cursor.u64("an offset")?, bytes: cursor.u64("a length")? });
        let footer = Footer { index: handle()?, filter: handle()?, properties: handle()? };
        Ok((footer, cursor.u32("a version")?, cursor.u32("a checksum")?, cursor.u64("a magic number")?))
    }
}

/// Appends the trailer to the block that began at `start` of `out`, `offset` of the file.
pub(super) fn seal(out: &mut Vec<u8>, start: usize, compression: u8, file_number: u64, offset: u64) {
    out.push(compression);
    let sum = checksum(file_number, offset, &out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Splits a stored block into content and compression kind, without checking the checksum.
pub(super) fn split(stored: &[u8]) -> Option<(&[u8], u8, u32)> {
    let (covered, sum) = stored.split_last_chunk::<4>()?;
    let (&compression, content) = covered.split_last()?;
    Some((content, compression, u32::from_le_bytes(*sum)))
}

/// The content and compression kind of the stored block, if its checksum matches.
pub(super) fn unseal<'a>(stored: &'a [u8], path: &Path, file_number: u64, offset: u64) -> Result<(&'a [u8], u8)> {
    let (content, compression, sum) =
        split(stored).ok_or_else(|| Error::corruption(path, offset, "a block is shorter than its trailer"))?;
    if checksum(file_number, offset, &stored[..content.len() + 1]) != sum {
        return Err(Error::corruption(path, offset, "a block's checksum does not match"));
    }
    match compression {
        STORED | LZ4 => Ok((content, compression)),
        ZSTD => Codec::Zstd.check(path).map(|()| (content, compression)),
        _ => Err(Error::corruption(path, offset, format!("a block has unknown compression {compression}"))),
    }
}

/// The length of a block that is kept in memory as long as its table is open. Checked before memory
/// is taken for it: the file may have holes.
pub(super) fn metadata_bytes(path: &Path, handle: Handle) -> Result<usize> {
    if handle.bytes > MAX_METADATA_BYTES {
        return Err(Error::corruption(path, handle.offset, "a block is longer than any that is written"));
    }
    usize::try_from(handle.bytes)
        .map_err(|_| Error::corruption(path, handle.offset, "a block does not fit into memory"))
}

/// Reads a block that is never compressed and returns its content. The handle lies within the file.
pub(super) fn read_plain(file: &dyn ReadFile, path: &Path, file_number: u64, handle: Handle) -> Result<Vec<u8>> {
    let mut bytes = vec![0u8; metadata_bytes(path, handle)?];
    file.read_at(handle.offset, &mut bytes)?;
    let (content, compression) = unseal(&bytes, path, file_number, handle.offset)?;
    if compression != STORED {
        return Err(Error::corruption(path, handle.offset, "a block is compressed that never is"));
    }
    let length = content.len();
    bytes.truncate(length);
    Ok(bytes)
}
