//! Zstandard: compressing and decompressing with the feature `zstd`, which compiles C; in every
//! build, where a frame ends.
//!
//! ```text
//! frame := magic:u32 descriptor:u8 window:u8? dictionary:u8[0-4] size:u8[0-8] block* checksum:u32?
//! block := last:1 kind:2 length:21 content        little-endian, 3 bytes and the content
//! ```

use super::lz4::End;

/// The level that frames are made with: zstd's default.
#[cfg(feature = "zstd")]
const LEVEL: i32 = 3;

/// A block of a frame has at most so many bytes, and at least [`LEAST_BLOCK_BYTES`] of the frame.
const MOST_BLOCK_BYTES: u64 = 128 << 10;
const LEAST_BLOCK_BYTES: u64 = 4;

const MAGIC: u32 = 0xfd2f_b528;
/// The kind of a block that is one byte, repeated.
const REPEATED: usize = 1;
const RESERVED: usize = 3;

/// The most bytes that a frame of this length can stand for.
pub fn most_bytes(packed: usize) -> u64 {
    packed as u64 / LEAST_BLOCK_BYTES * MOST_BLOCK_BYTES
}

/// The state that compressing one block after another reuses. Without the feature, nothing is ever
/// compressed.
pub struct ZstdCompressor {
    /// None if there is no memory for it.
    #[cfg(feature = "zstd")]
    inner: Option<zstd::bulk::Compressor<'static>>,
}

impl ZstdCompressor {
    pub fn new() -> ZstdCompressor {
        ZstdCompressor {
            #[cfg(feature = "zstd")]
            inner: zstd::bulk::Compressor::new(LEVEL).ok(),
        }
    }

    /// Compresses `raw` to the beginning of `output`; the length. `None` if it does not fit.
    #[cfg(feature = "zstd")]
    pub fn compress(&mut self, raw: &[u8], output: &mut [u8]) -> Option<usize> {
        self.inner.as_mut()?.compress_to_buffer(raw, output).ok()
    }

    #[cfg(not(feature = "zstd"))]
    pub fn compress(&mut self, _raw: &[u8], _output: &mut [u8]) -> Option<usize> {
        None
    }
}

#[cfg(feature = "zstd")]
thread_local! {
    /// It is large and made of many parts: each thread that decompresses keeps one.
    static DECOMPRESSOR: std::cell::Cell<Option<zstd::bulk::Decompressor<'static>>> = const { std::cell::Cell::new(None) };
}

/// Decompresses a frame, which has at most as many bytes as `output`; the length.
#[cfg(feature = "zstd")]
pub fn decompress(packed: &[u8], output: &mut [u8]) -> Option<usize> {
    let kept = DECOMPRESSOR.try_with(std::cell::Cell::take).ok().flatten();
    let mut decompressor = kept.or_else(|| zstd::bulk::Decompressor::new().ok())?;
    let length = decompressor.decompress_to_buffer(packed, output).ok();
    let _ = DECOMPRESSOR.try_with(|kept| kept.set(Some(decompressor)));
    length
}

#[cfg(not(feature = "zstd"))]
pub fn decompress(_packed: &[u8], _output: &mut [u8]) -> Option<usize> {
    None
}

/// Where the frame at the beginning of `packed` ends. `from` is where the walk came to with fewer
/// bytes of it, at first 0. Nothing is decompressed.
pub fn find_end(packed: &[u8], from: &mut usize) -> End {
    if *from == 0 {
        match header_bytes(packed) {
            Some(Some(length)) => *from = length,
            Some(None) => return End::Nowhere,
            None => return End::Behind,
        }
    }
    loop {
        let Some(&[a, b, c]) = packed.get(*from..).and_then(|rest| rest.first_chunk::<3>()) else {
            return End::Behind;
        };
        let header = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let (is_last, kind, length) = (header & 1 == 1, header >> 1 & 3, header >> 3);
        if kind == RESERVED || length as u64 > MOST_BLOCK_BYTES {
            return End::Nowhere;
        }
        let end = *from + 3 + if kind == REPEATED { 1 } else { length };
        if is_last {
            // The descriptor was read with the header.
            let checksum = if packed.get(4).is_some_and(|descriptor| descriptor & 4 != 0) { 4 } else { 0 };
            return End::At(end + checksum);
        }
        if end > packed.len() {
            return End::Behind;
        }
        *from = end;
    }
}

/// The length of a frame's header; `None` if there are too few bytes to say, and `Some(None)` if
/// they are none.
fn header_bytes(packed: &[u8]) -> Option<Option<usize>> {
    let (magic, rest) = packed.split_first_chunk::<4>()?;
    let descriptor = *rest.first()?;
    if u32::from_le_bytes(*magic) != MAGIC || descriptor & 8 != 0 {
        return Some(None);
    }
    let is_single_segment = descriptor & 32 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    Some(Some(5 + usize::from(!is_single_segment) + dictionary + size))
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn compress(raw: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; zstd::zstd_safe::compress_bound(raw.len())];
        let length = ZstdCompressor::new().compress(raw, &mut packed).expect("there is room for it");
        packed.truncate(length);
        packed
    }

    /// With anything behind it, and when the bytes come little by little.
    #[test]
    fn the_end_of_a_frame_is_found_in_what_follows() {
        for round in 0..600 {
            let mut random = Random::new(round);
            let bytes = random.below([20, 300, 5000, 400_000][(round % 40 / 13) as usize]);
            let raw = if round % 3 == 0 { vec![7; bytes as usize] } else { random.text(bytes) };
            let mut packed = compress(&raw);
            let end = packed.len();
            assert!(most_bytes(end) >= bytes, "seed {round}: {end} bytes of {bytes}");
            packed.extend((0..random.below(100)).map(|_| random.below(256) as u8));
            let (mut from, mut length) = (0, 0);
            loop {
                let found = find_end(&packed[..length], &mut from);
                if let End::At(at) = found {
                    assert_eq!(at, end, "seed {round}");
                    break;
                }
                assert!(length < end && found == End::Behind, "seed {round}: {length} of {end} bytes");
                length = (length + 1 + random.below(1 + end as u64 / 4) as usize).min(packed.len());
            }
        }
    }

    #[test]
    fn what_is_no_frame_has_no_end_or_is_not_decompressed() {
        for seed in 0..20_000 {
            let mut random = Random::new(seed);
            let mut packed = compress(&random.text(seed % 300));
            let at = random.index(packed.len());
            packed[at] ^= 1 << random.below(8);
            let _ = find_end(&packed, &mut 0);
            // Never more than there is room for, and no panic.
            let mut output = [0; 300];
            assert!(decompress(&packed, &mut output).is_none_or(|length| length <= 300), "seed {seed}");
        }
        assert_eq!(find_end(&[0x28, 0xb5, 0x2f, 0xfe, 0x20, 0], &mut 0), End::Nowhere);
    }
}
