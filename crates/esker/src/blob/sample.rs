//! An estimate of whether compressing the values of a blob file pays, from a sample of them.

use super::file::BlobFile;
use super::format::{HEADER_BYTES, decode_record_length};
use super::writer::MOST_COMPRESSED_BYTES;
use crate::base::blob_reference::{BLOB_RECORD_HEADER_BYTES, stored_bytes};
use crate::base::compression::{Codec, Compressor};
use crate::error::{Error, Result};

/// So many values are sampled, spread over the file.
const SAMPLES: usize = 16;
/// And so much of each.
const SAMPLE_BYTES: usize = 64 << 10;
/// The places of so many values are searched for.
const MOST_PLACES: usize = 512;

impl BlobFile {
    /// Whether its values, compressed, would take at least a quarter less, as far as a few of them
    /// tell. Reads the first few hundred places, and 1 MiB at most of the values there.
    pub(super) fn would_shrink(&self, codec: Codec) -> Result<bool> {
        let places = self.places()?;
        let (short, long): (Vec<_>, Vec<_>) =
            places.into_iter().partition(|&(_, length)| length as usize <= MOST_COMPRESSED_BYTES);
        let mut compressor = Compressor::new(codec);
        let (mut looked_at, mut compressed) = (0u64, 0u64);
        for &(offset, length) in short.iter().step_by(short.len().div_ceil(SAMPLES).max(1)) {
            let mut sample = vec![0; (length as usize).min(SAMPLE_BYTES)];
            if self.read_written(offset, &mut sample)? {
                looked_at += sample.len() as u64;
                compressed += compressor.compress(&sample).map_or(sample.len(), <[u8]>::len) as u64;
            }
        }
        let sum = |places: &[(u64, u32)]| places.iter().map(|&(_, length)| u64::from(length)).sum::<u64>();
        let saved = u128::from(sum(&short)) * u128::from(looked_at - compressed) / u128::from(looked_at.max(1));
        Ok(looked_at > 0 && saved >= u128::from(sum(&short) + sum(&long)) / 4)
    }

    /// Where values lie, and their lengths, as far as one record follows another: one that was
    /// never written, or is being written, ends the walk. Good enough for a sample: nothing vouches
    /// for a length.
    fn places(&self) -> Result<Vec<(u64, u32)>> {
        let end = self.bytes();
        let mut places = Vec::new();
        let mut at = HEADER_BYTES;
        while places.len() < MOST_PLACES && at + BLOB_RECORD_HEADER_BYTES < end {
            let mut header = [0; BLOB_RECORD_HEADER_BYTES as usize];
            if !self.read_written(at, &mut header)? {
                break;
            }
            let length = decode_record_length(header);
            let offset = at + BLOB_RECORD_HEADER_BYTES;
            if length == 0 || offset + u64::from(length) > end {
                break;
            }
            places.push((offset, length));
            at += stored_bytes(u64::from(length));
        }
        Ok(places)
    }

    /// Reads what is at `offset`, if it was written: a place is given out before.
    fn read_written(&self, offset: u64, buffer: &mut [u8]) -> Result<bool> {
        match self.read_at(offset, buffer) {
            Ok(()) => Ok(true),
            Err(Error::Corruption { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::format::{Values, encode_header, file_name};
    use crate::env::mem::MemEnv;
    use std::path::Path;

    /// Lengths that nothing vouches for lead to a few hundred places, each behind the last, and
    /// none outside of the file; of what lies there 1 MiB is read.
    #[test]
    fn hostile_lengths_cost_no_more_than_others() {
        let number = 3;
        for length in [0, 1, 2, 7, 8, 4000, (1 << 20) - 50, (1 << 20) - 40, 1 << 30, (1 << 31) - 1, u32::MAX] {
            let mut bytes = encode_header(number, Values::AsWritten).to_vec();
            let unit = [0u32.to_le_bytes(), length.to_le_bytes()].concat();
            bytes.extend(unit.iter().cycle().take((1 << 20) - bytes.len()));
            let env = MemEnv::new();
            env.set_file_bytes(&Path::new("/db").join(file_name(number)), bytes.clone());
            let file = BlobFile::open(&env, Path::new("/db"), number).expect("a good header");
            let places = file.places().expect("no fault is set");
            assert!(places.len() <= MOST_PLACES, "{length}: {}", places.len());
            let mut end = HEADER_BYTES;
            for (offset, bytes_there) in places {
                assert!(offset >= end + BLOB_RECORD_HEADER_BYTES && bytes_there > 0, "{length}");
                end = offset + u64::from(bytes_there);
                assert!(end <= bytes.len() as u64, "{length}");
            }
            file.would_shrink(Codec::Lz4).expect("no fault is set");
        }
    }
}
