//! Whether it would pay to compress the values of a blob file: a look at a few of them.

use super::file::BlobFile;
use super::format::{HEADER_BYTES, decode_record_length};
use crate::base::blob_reference::{BLOB_RECORD_HEADER_BYTES, stored_bytes};
use crate::base::compression::Compressor;
use crate::error::{Error, Result};

/// So many values are looked at, spread over the file.
const SAMPLES: usize = 16;
/// And so much of each.
const SAMPLE_BYTES: usize = 64 << 10;
/// Of so many values the places are looked for.
const MOST_PLACES: usize = 1 << 14;

impl BlobFile {
    /// Whether its values, compressed, would take at least a quarter less, as far as a few of them tell. Reads eight bytes for each value, and 1 MiB at most of
    /// the values.
    pub(super) fn would_shrink(&self) -> Result<bool> {
        let places = self.places()?;
        let step = places.len().div_ceil(SAMPLES).max(1);
        let mut compressor = Compressor::new();
        let (mut before, mut after) = (0, 0);
        for &(offset, length) in places.iter().step_by(step) {
            let mut sample = vec![0; (length as usize).min(SAMPLE_BYTES)];
            self.read_at(offset, &mut sample)?;
            before += sample.len();
            after += compressor.compress(&sample).map_or(sample.len(), <[u8]>::len);
        }
        Ok(before > 0 && after <= before - before / 4)
    }

    /// Where values lie, and their lengths, as far as one record follows another: one that was never written, or is being written, ends the walk. Good enough for
    /// a sample: nothing vouches for a length.
    fn places(&self) -> Result<Vec<(u64, u32)>> {
        let end = self.bytes();
        let mut places = Vec::new();
        let mut at = HEADER_BYTES;
        while places.len() < MOST_PLACES && at + BLOB_RECORD_HEADER_BYTES < end {
            let mut header = [0; BLOB_RECORD_HEADER_BYTES as usize];
            match self.read_at(at, &mut header) {
                // The end of what is written.
                Err(Error::Corruption { .. }) => break,
                result => result?,
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
}
