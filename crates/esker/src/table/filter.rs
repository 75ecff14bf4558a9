//! The filter: a Bloom filter in which all the bits of a key lie in one cache line, so that a probe
//! is one miss.
//!
//! ```text
//! filter := line{64 bytes}* probes:u8
//! ```
//! A key's line is chosen by the upper half of its hash ([`crate::base::key::hash`]), its bits by
//! [`bits`], nine of the product's bits a probe.

use super::format::{Handle, STORED, metadata_bytes, unseal};
use crate::base::prefetch::{LINE_BYTES, prefetch};
use crate::env::ReadFile;
use crate::error::{Error, Result};
use std::path::Path;

/// Seven times nine bits are what a 64-bit product holds.
const MOST_PROBES: u8 = 7;

/// Which bits of its line a key sets: nine bits of this for each probe, lowest first. Part of the
/// format.
#[inline]
fn bits(hash: u64) -> u64 {
    (hash ^ (hash >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Which of `lines` a key's bits are in. Part of the format.
#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    // Below 2^32 lines the product fits, and the result is below `lines`.
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Appends the filter of the keys with these hashes. Nothing is written for 0 bits per key or no
/// keys.
pub(super) fn write(out: &mut Vec<u8>, hashes: &[u64], bits_per_key: u32) {
    if bits_per_key == 0 || hashes.is_empty() {
        return;
    }
    let bits_wanted = hashes.len() as u64 * u64::from(bits_per_key.min(64));
    let lines = bits_wanted.div_ceil(8 * LINE_BYTES as u64).min(u64::from(u32::MAX)) as usize;
    let probes = probes_for(bits_per_key);
    let start = out.len();
    out.resize(start + lines * LINE_BYTES, 0);
    let table = &mut out[start..];
    for &hash in hashes {
        let first = line_of(hash, lines) * LINE_BYTES;
        let mut bits = bits(hash);
        for _ in 0..probes {
            let bit = (bits & 511) as usize;
            table[first + bit / 8] |= 1 << (bit % 8);
            bits >>= 9;
        }
    }
    out.push(probes);
}

/// The number of probes with the fewest false positives: bits per key times ln 2.
fn probes_for(bits_per_key: u32) -> u8 {
    (bits_per_key * 69 / 100).clamp(1, u32::from(MOST_PROBES)) as u8
}

/// The size of the filter block's content for `keys` keys.
pub(super) fn estimated_bytes(keys: usize, bits_per_key: u32) -> u64 {
    keys as u64 * u64::from(bits_per_key) / 8
}

/// The filter of an open table.
#[derive(Debug)]
pub(super) struct Filter {
    buffer: Vec<u8>,
    /// Where the lines begin: where the memory is aligned to them.
    start: usize,
    lines: usize,
    probes: u8,
}

impl Filter {
    /// Reads the filter block. The handle lies within the file.
    pub(super) fn read(file: &dyn ReadFile, path: &Path, file_number: u64, handle: Handle) -> Result<Filter> {
        let wrong = |what| Error::corruption(path, handle.offset, what);
        let length = metadata_bytes(path, handle)?;
        let mut buffer = vec![0u8; length + LINE_BYTES - 1];
        let start = buffer.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES - 1);
        let stored = &mut buffer[start..start + length];
        file.read_at(handle.offset, stored)?;
        let (content, compression) = unseal(stored, path, file_number, handle.offset)?;
        let Some((&probes, table)) = content.split_last() else {
            return Err(wrong("the filter is empty"));
        };
        let lines = table.len() / LINE_BYTES;
        let good = lines > 0 && lines <= u32::MAX as usize && table.len() % LINE_BYTES == 0;
        if compression != STORED || !good || probes == 0 || probes > MOST_PROBES {
            return Err(wrong("the filter is not a whole number of lines, or has an impossible number of probes"));
        }
        Ok(Filter { buffer, start, lines, probes })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    #[inline]
    fn line(&self, hash: u64) -> &[u8; LINE_BYTES] {
        const NONE: &[u8; LINE_BYTES] = &[0xff; LINE_BYTES];
        let at = self.start + line_of(hash, self.lines) * LINE_BYTES;
        self.buffer.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(NONE)
    }

    /// Whether the table may hold a key with this hash: always true for its own keys.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        let mut bits = bits(hash);
        let mut all = 1u8;
        for _ in 0..self.probes {
            let bit = (bits & 511) as usize;
            all &= line[bit / 8] >> (bit % 8);
            bits >>= 9;
        }
        all & 1 != 0
    }

    /// Prefetches the line that [`Filter::may_contain`] reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.line(hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key;

    fn filter(hashes: &[u64], bits_per_key: u32) -> Filter {
        let mut buffer = Vec::new();
        write(&mut buffer, hashes, bits_per_key);
        let probes = buffer.pop().expect("a filter");
        let lines = buffer.len() / LINE_BYTES;
        Filter { buffer, start: 0, lines, probes }
    }

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        let hash = |i: u64| key::hash(format!("{i:016}").as_bytes());
        for (bits, most) in [(1, 9_000), (5, 2_000), (10, 150), (16, 60), (64, 5)] {
            let filter = filter(&(0..5_000).map(hash).collect::<Vec<_>>(), bits);
            assert!((0..5_000).all(|i| filter.may_contain(hash(i))));
            let wrong = (10_000..20_000).filter(|&i| filter.may_contain(hash(i))).count();
            assert!(wrong <= most, "{wrong} of 10000 false positives with {bits} bits per key");
        }
    }
}
