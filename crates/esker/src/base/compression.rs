//! Compression of blocks and large values: LZ4 where it pays, and the sizes it may claim.
//!
//! ```text
//! compressed := raw_bytes:u32 lz4_block       little-endian; the block as `lz4.rs` draws it
//! ```

use super::coding::DecodeError;
use super::key::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use super::lz4::{End, Progress, SLACK_BYTES, decode, decode_until, find_end};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// No block is larger than this: one entry of the largest key and value, with room for its header.
pub const MAX_BLOCK_BYTES: usize = MAX_VALUE_BYTES + 2 * MAX_KEY_BYTES + 4096;

/// Larger outputs are not kept between blocks.
const KEPT_BYTES: usize = 4 << 20;

/// The state that compressing one block after another reuses.
pub struct Compressor {
    table: CompressTable,
    output: Vec<u8>,
}

impl Compressor {
    pub fn new() -> Compressor {
        Compressor { table: CompressTable::small(), output: Vec::new() }
    }

    /// `raw` compressed, if that saves at least an eighth.
    pub fn compress(&mut self, raw: &[u8]) -> Option<&[u8]> {
        let raw_bytes = u32::try_from(raw.len()).ok()?;
        if self.output.len() > KEPT_BYTES {
            // The last block was unusually large; so is the table that was made for it.
            *self = Compressor::new();
        }
        let most = 4 + get_maximum_output_size(raw.len());
        if self.output.len() < most {
            self.output.resize(most, 0);
        }
        self.output[..4].copy_from_slice(&raw_bytes.to_le_bytes());
        let length = 4 + compress_into_with_table(raw, &mut self.output[4..], &mut self.table).ok()?;
        if length <= raw.len() - raw.len() / 8 { self.output.get(..length) } else { None }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// The size of the block that `stored` was compressed from, and its LZ4 block. A size that LZ4
/// cannot reach is refused before memory is taken for it.
pub fn split_size(stored: &[u8]) -> Result<(usize, &[u8]), DecodeError> {
    let wrong = |expected| DecodeError { offset: 0, expected };
    let (size, packed) = stored.split_first_chunk::<4>().ok_or(wrong("a decompressed size"))?;
    let raw_bytes = u32::from_le_bytes(*size) as usize;
    if raw_bytes > MAX_BLOCK_BYTES || raw_bytes / 255 > packed.len() {
        return Err(wrong("a possible decompressed size"));
    }
    Ok((raw_bytes, packed))
}

/// The block that `stored` was compressed from, in the memory of `spare` if there is enough.
pub fn decompress(stored: &[u8], spare: Vec<u8>) -> Result<Vec<u8>, DecodeError> {
    let (raw_bytes, packed) = split_size(stored)?;
    let room = raw_bytes + SLACK_BYTES;
    let mut raw = if spare.capacity() < room { vec![0u8; room] } else { spare };
    // Writes only what the last block in the same memory did not reach.
    raw.resize(room, 0);
    match decode(packed, &mut raw) {
        Some(length) if length == raw_bytes => {
            raw.truncate(raw_bytes);
            Ok(raw)
        }
        _ => Err(NO_BLOCK),
    }
}

/// Where something compressed ends that other bytes follow.
#[derive(Debug, Default)]
pub struct Walk(Progress);

impl Walk {
    /// Where what was compressed to the beginning of `stored` ends; called again with more bytes,
    /// it goes on where it came to. Nothing is decoded.
    pub fn end(&mut self, stored: &[u8]) -> End {
        let Some((size, packed)) = stored.split_first_chunk::<4>() else { return End::Behind };
        let raw_bytes = u32::from_le_bytes(*size) as usize;
        if raw_bytes > MAX_BLOCK_BYTES {
            return End::Nowhere;
        }
        match find_end(packed, raw_bytes, &mut self.0) {
            End::At(end) => End::At(4 + end),
            other => other,
        }
    }
}

const NO_BLOCK: DecodeError = DecodeError { offset: 4, expected: "an LZ4 block of the size given" };

/// The first bytes of memory that is used again and again, made longer if there are not so many.
pub fn room_in(memory: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if memory.len() < bytes {
        memory.reserve_exact(bytes - memory.len());
        memory.resize(bytes, 0);
    }
    memory.get_mut(..bytes).unwrap_or_default()
}

/// A block that is decompressed as far as it is read.
pub struct Partly<'a> {
    packed: &'a [u8],
    /// For the block, with room behind its end.
    raw: &'a mut [u8],
    progress: Progress,
}

impl<'a> Partly<'a> {
    /// The block that `stored` was compressed from, in `memory`.
    pub fn new(stored: &'a [u8], memory: &'a mut Vec<u8>) -> Result<Partly<'a>, DecodeError> {
        let (raw_bytes, packed) = split_size(stored)?;
        let raw = room_in(memory, raw_bytes + SLACK_BYTES);
        Ok(Partly { packed, raw, progress: Progress::default() })
    }

    /// The block's first bytes, at least `bytes` of them.
    pub fn up_to(&mut self, bytes: usize) -> Result<&[u8], DecodeError> {
        if self.progress.to < bytes {
            decode_until(self.packed, self.raw, &mut self.progress, bytes).ok_or(NO_BLOCK)?;
            if self.progress.to < bytes {
                return Err(NO_BLOCK);
            }
        }
        Ok(self.raw.get(..self.progress.to).unwrap_or_default())
    }
}
