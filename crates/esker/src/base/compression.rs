//! Compression of blocks and large values where it pays, and the sizes it may claim.
//!
//! ```text
//! compressed := raw_bytes:u32 packed       little-endian
//! packed     := lz4_block | zstd_frame     as `lz4.rs` and `zstd.rs` draw them; which, the place says
//! ```

use super::coding::DecodeError;
use super::key::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use super::lz4::{End, Progress, SLACK_BYTES, decode, decode_until, find_end};
use super::zstd::{self, ZstdCompressor};
use crate::error::{Error, Result as EngineResult};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use std::path::Path;

/// No block is larger than this: one entry of the largest key and value, with room for its header.
pub const MAX_BLOCK_BYTES: usize = MAX_VALUE_BYTES + 2 * MAX_KEY_BYTES + 4096;

/// Larger outputs are not kept between blocks.
const KEPT_BYTES: usize = 4 << 20;

/// How something compressed was compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    Lz4,
    Zstd,
}

impl Codec {
    /// Refuses a codec that this build has not. `path`: the file that it was found in.
    pub fn check(self, path: &Path) -> EngineResult<()> {
        match self {
            Codec::Zstd if !cfg!(feature = "zstd") => {
                Err(Error::UnsupportedCompression { path: path.to_path_buf(), compression: "zstd", feature: "zstd" })
            }
            _ => Ok(()),
        }
    }

    /// The most bytes that so many can have been compressed from.
    fn most_bytes(self, packed: usize) -> u64 {
        match self {
            Codec::Lz4 => (packed as u64 + 1) * 255 - 1,
            Codec::Zstd => zstd::most_bytes(packed),
        }
    }
}

enum State {
    Lz4(CompressTable),
    Zstd(ZstdCompressor),
}

/// The state that compressing one block after another reuses.
pub struct Compressor {
    codec: Codec,
    state: State,
    output: Vec<u8>,
}

impl Compressor {
    pub fn new(codec: Codec) -> Compressor {
        let state = match codec {
            Codec::Lz4 => State::Lz4(CompressTable::small()),
            Codec::Zstd => State::Zstd(ZstdCompressor::new()),
        };
        Compressor { codec, state, output: Vec::new() }
    }

    /// What it compresses with.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// `raw` compressed, if that saves at least an eighth.
    pub fn compress(&mut self, raw: &[u8]) -> Option<&[u8]> {
        let raw_bytes = u32::try_from(raw.len()).ok()?;
        if self.output.len() > KEPT_BYTES {
            // The last block was unusually large; so is the table that was made for it.
            *self = Compressor::new(self.codec);
        }
        let most = 4 + get_maximum_output_size(raw.len());
        if self.output.len() < most {
            self.output.resize(most, 0);
        }
        self.output[..4].copy_from_slice(&raw_bytes.to_le_bytes());
        let output = &mut self.output[4..];
        let length = 4 + match &mut self.state {
            State::Lz4(table) => compress_into_with_table(raw, output, table).ok()?,
            State::Zstd(compressor) => compressor.compress(raw, output)?,
        };
        if length <= raw.len() - raw.len() / 8 { self.output.get(..length) } else { None }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// The size of the block that `stored` was compressed from, and what it was compressed to. A size
/// that the codec cannot reach is refused before memory is taken for it.
pub fn split_size(codec: Codec, stored: &[u8]) -> Result<(usize, &[u8]), DecodeError> {
    let wrong = |expected| DecodeError { offset: 0, expected };
    let (size, packed) = stored.split_first_chunk::<4>().ok_or(wrong("a decompressed size"))?;
    let raw_bytes = u32::from_le_bytes(*size) as usize;
    if raw_bytes > MAX_BLOCK_BYTES || raw_bytes as u64 > codec.most_bytes(packed.len()) {
        return Err(wrong("a possible decompressed size"));
    }
    Ok((raw_bytes, packed))
}

/// The block that `stored` was compressed from, in the memory of `spare` if there is enough.
pub fn decompress(codec: Codec, stored: &[u8], spare: Vec<u8>) -> Result<Vec<u8>, DecodeError> {
    let (raw_bytes, packed) = split_size(codec, stored)?;
    let room = raw_bytes + SLACK_BYTES;
    let mut raw = if spare.capacity() < room { vec![0u8; room] } else { spare };
    // Writes only what the last block in the same memory did not reach.
    raw.resize(room, 0);
    let length = match codec {
        Codec::Lz4 => decode(packed, &mut raw),
        Codec::Zstd => zstd::decompress(packed, raw.get_mut(..raw_bytes).unwrap_or_default()),
    };
    if length == Some(raw_bytes) {
        raw.truncate(raw_bytes);
        return Ok(raw);
    }
    Err(no_block(codec))
}

/// Where something compressed ends that other bytes follow.
#[derive(Debug)]
pub struct Walk {
    codec: Codec,
    lz4: Progress,
    zstd: usize,
}

impl Walk {
    /// One over something that may have been compressed so.
    pub fn new(codec: Codec) -> Walk {
        Walk { codec, lz4: Progress::default(), zstd: 0 }
    }

    /// Where what was compressed to the beginning of `stored` ends; called again with more bytes,
    /// it goes on where it came to. Nothing is decoded.
    pub fn end(&mut self, stored: &[u8]) -> End {
        let Some((size, packed)) = stored.split_first_chunk::<4>() else { return End::Behind };
        let raw_bytes = u32::from_le_bytes(*size) as usize;
        if raw_bytes > MAX_BLOCK_BYTES {
            return End::Nowhere;
        }
        let found = match self.codec {
            Codec::Lz4 => find_end(packed, raw_bytes, &mut self.lz4),
            Codec::Zstd => zstd::find_end(packed, &mut self.zstd),
        };
        match found {
            End::At(end) => End::At(4 + end),
            other => other,
        }
    }
}

const NO_LZ4_BLOCK: DecodeError = DecodeError { offset: 4, expected: "an LZ4 block of the size given" };

fn no_block(codec: Codec) -> DecodeError {
    match codec {
        Codec::Lz4 => NO_LZ4_BLOCK,
        Codec::Zstd => DecodeError { offset: 4, expected: "a zstd frame of the size given" },
    }
}

/// The first bytes of memory that is used again and again, made longer if there are not so many.
pub fn room_in(memory: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if memory.len() < bytes {
        memory.reserve_exact(bytes - memory.len());
        memory.resize(bytes, 0);
    }
    memory.get_mut(..bytes).unwrap_or_default()
}

/// A block that is decompressed only as far as it is read. With zstd it is decompressed as a whole.
pub struct Partly<'a> {
    packed: &'a [u8],
    /// For the block, with room behind its end.
    raw: &'a mut [u8],
    progress: Progress,
}

impl<'a> Partly<'a> {
    /// The block that `stored` was compressed from, in `memory`.
    pub fn new(codec: Codec, stored: &'a [u8], memory: &'a mut Vec<u8>) -> Result<Partly<'a>, DecodeError> {
        let (raw_bytes, packed) = split_size(codec, stored)?;
        let raw = room_in(memory, raw_bytes + SLACK_BYTES);
        let mut progress = Progress::default();
        if codec == Codec::Lz4 {
            return Ok(Partly { packed, raw, progress });
        }
        if zstd::decompress(packed, raw.get_mut(..raw_bytes).unwrap_or_default()) != Some(raw_bytes) {
            return Err(no_block(codec));
        }
        progress.to = raw_bytes;
        Ok(Partly { packed: &[], raw, progress })
    }

    /// The block's first bytes, at least `bytes` of them.
    pub fn up_to(&mut self, bytes: usize) -> Result<&[u8], DecodeError> {
        if self.progress.to < bytes {
            decode_until(self.packed, self.raw, &mut self.progress, bytes).ok_or(NO_LZ4_BLOCK)?;
            if self.progress.to < bytes {
                return Err(NO_LZ4_BLOCK);
            }
        }
        Ok(self.raw.get(..self.progress.to).unwrap_or_default())
    }
}
