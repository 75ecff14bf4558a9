//! The bytes of the log. `doc/format/wal.md` has a drawing, a worked example and the reasons.
//!
//! ```text
//! segment := header record*            records begin at multiples of 8; the file has a fixed length
//! header  := magic[8] version u32, zero u32, number u64, length u64, salt u64, zero[20], checksum u32          64 bytes
//! record  := checksum u32, payload_length u32, sequence<<8|type u64, header_check<<40|synced u64, payload
//! type    := 1 batch (payload: base/batch.rs), 2 link, 3 close (empty)
//! link    := previous_number u64, previous_end u64, previous_synced u64
//! ```
//! All integers are little-endian. The checksum of a record covers everything behind it and is
//! seeded with the segment's number and the record's offset, so that bytes left over from a
//! segment's earlier life never verify. `synced` is the offset up to which this segment was known
//! to be on the device when the record was written: damage below it is corruption, damage above it
//! may be a torn tail. `header_check` is seeded with the segment's salt, which a program that
//! stores values cannot know: a search for records decides by it alone, without reading the
//! payload, whether bytes are a header. Segments of version 1 have neither salt nor header checks.
//! The first record of a segment is its link: where the log ended before it.

use crate::base::checksum::checksum;
use crate::base::coding::Cursor;
use crate::base::file_number::MAX_NUMBER;
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use std::path::Path;

pub const HEADER_BYTES: usize = 64;
pub const RECORD_HEADER_BYTES: usize = 24;
/// The newest version of the log's format that this build reads, and the one it writes.
pub const VERSION: u32 = 2;
/// The first version whose records have header checks.
const FIRST_WITH_HEADER_CHECKS: u32 = 2;
const MAGIC: [u8; 8] = *b"ESKERWAL";
/// The checksum of a segment's header is seeded with this instead of the number it vouches for.
const HEADER_SEED: u64 = 0;
/// The bits of a record header's last word that hold `synced`; the others hold the header check.
const SYNCED_BITS: u32 = 40;
const CHECK_BITS: u32 = u64::BITS - SYNCED_BITS;
/// What `synced` can say.
const SYNCED_MASK: u64 = (1 << SYNCED_BITS) - 1;
/// The longest segment: the longest record, which has up to 4 GiB, and all that belongs to it. A
/// file that is longer is none, and not searched for records.
pub const MAX_SEGMENT_BYTES: u64 = 8 << 30;

/// The numbers are part of the format and must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordType {
    Batch = 1,
    Link = 2,
    Close = 3,
}

impl RecordType {
    fn from_byte(byte: u8) -> Option<RecordType> {
        match byte {
            1 => Some(RecordType::Batch),
            2 => Some(RecordType::Link),
            3 => Some(RecordType::Close),
            _ => None,
        }
    }
}

/// What the header of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub number: u64,
    /// Of the file.
    pub length: u64,
    /// What its records' header checks are seeded with; none in version 1.
    pub salt: Option<u64>,
}

/// The header of a segment with this number, file length and salt.
pub fn encode_header(number: u64, length: u64, salt: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0u8; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    bytes[32..40].copy_from_slice(&salt.to_le_bytes());
    let sum = checksum(HEADER_SEED, 0, &bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What the header says; `None` if the bytes are no intact header (a segment whose preparation was
/// cut short, or damage: the reader decides which).
///
/// # Errors
/// `Unsupported` for an intact header of a newer version; `Corruption` for a number that no segment
/// has.
pub fn decode_header(path: &Path, bytes: &[u8; HEADER_BYTES]) -> Result<Option<SegmentHeader>> {
    let (body, sum) = bytes.split_at(HEADER_BYTES - 4);
    if body[..8] != MAGIC || checksum(HEADER_SEED, 0, body).to_le_bytes() != sum {
        return Ok(None);
    }
    let mut cursor = Cursor::new(&body[8..]);
    let version = cursor.u32("a version").map_err(|e| e.at(path, 8))?;
    if version > VERSION {
        return Err(Error::Unsupported { path: path.to_path_buf(), version, supported: VERSION });
    }
    cursor.u32("zero").map_err(|e| e.at(path, 8))?;
    let number = cursor.u64("a segment number").map_err(|e| e.at(path, 8))?;
    let length = cursor.u64("a length").map_err(|e| e.at(path, 8))?;
    let salt = cursor.u64("a salt").map_err(|e| e.at(path, 8))?;
    if number >= MAX_NUMBER {
        return Err(Error::corruption(path, 16, format!("segment number {number} is impossible")));
    }
    Ok(Some(SegmentHeader { number, length, salt: (version >= FIRST_WITH_HEADER_CHECKS).then_some(salt) }))
}

/// A record's header, without its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub kind: RecordType,
    pub payload_bytes: usize,
    pub sequence: Sequence,
    pub synced: u64,
}

/// How far the next record is from the start of one with this payload.
pub fn record_bytes(payload_bytes: usize) -> u64 {
    (RECORD_HEADER_BYTES as u64 + payload_bytes as u64).next_multiple_of(8)
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of the segment, and its salt.
    pub segment: u64,
    pub salt: u64,
    pub offset: u64,
}

/// Fills the header in front of the payload in `record` (header space and payload).
pub fn seal_record(record: &mut [u8], kind: RecordType, sequence: Sequence, synced: u64, place: Place) {
    let payload_bytes = (record.len() - RECORD_HEADER_BYTES) as u32;
    record[4..8].copy_from_slice(&payload_bytes.to_le_bytes());
    record[8..16].copy_from_slice(&(sequence << 8 | kind as u64).to_le_bytes());
    record[16..24].copy_from_slice(&synced.to_le_bytes());
    let check = header_check(&record[4..RECORD_HEADER_BYTES], place.salt, place.offset);
    record[16..24].copy_from_slice(&(check << SYNCED_BITS | synced).to_le_bytes());
    let sum = checksum(place.segment, place.offset, &record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
}

/// The check of a header without its checksum, and with `synced` alone in its last word.
fn header_check(header: &[u8], salt: u64, offset: u64) -> u64 {
    u64::from(checksum(salt, offset, header) >> (u32::BITS - CHECK_BITS))
}

/// Whether `bytes` begin with a header that was written at `offset` of a segment with this salt.
/// Says nothing about the payload, and costs the same whatever it claims to be.
pub fn verify_header(bytes: &[u8], salt: u64, offset: u64) -> bool {
    let Some(mut header) = bytes.get(4..RECORD_HEADER_BYTES).and_then(|header| <[u8; 20]>::try_from(header).ok())
    else {
        return false;
    };
    let Some((_, word)) = header.split_last_chunk_mut::<8>() else { return false };
    let last = u64::from_le_bytes(*word);
    *word = (last & SYNCED_MASK).to_le_bytes();
    header_check(&header, salt, offset) == last >> SYNCED_BITS
}

/// The header at the front of `bytes`, with its checksum, if it can be one at `offset` of a segment
/// of `segment_length` bytes. Says nothing about the payload: see [`verify_record`].
pub fn decode_record_header(bytes: &[u8], offset: u64, segment_length: u64) -> Option<(u32, RecordHeader)> {
    let mut cursor = Cursor::new(bytes);
    let sum = cursor.u32("").ok()?;
    let payload_bytes = cursor.u32("").ok()?;
    let word = cursor.u64("").ok()?;
    let synced = cursor.u64("").ok()? & SYNCED_MASK;
    let kind = RecordType::from_byte(word as u8)?;
    let end = offset.checked_add(RECORD_HEADER_BYTES as u64)?.checked_add(u64::from(payload_bytes))?;
    // A closing record has no payload. The check keeps stale bytes from passing as a long one.
    let is_possible = kind != RecordType::Close || payload_bytes == 0;
    if !is_possible || end > segment_length || synced > offset || !synced.is_multiple_of(8) {
        return None;
    }
    Some((sum, RecordHeader { kind, payload_bytes: payload_bytes as usize, sequence: word >> 8, synced }))
}

/// Whether `record` (header and payload) is what was written at `offset` of segment `segment`.
pub fn verify_record(record: &[u8], sum: u32, segment: u64, offset: u64) -> bool {
    checksum(segment, offset, &record[4..]) == sum
}

/// What a segment says about the log before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The segment before; 0 if this is the first of the database.
    pub previous_number: u64,
    /// Where its records end; 0 if that is not known: then they end where they stop being intact.
    pub previous_end: u64,
    /// Up to where it was known to be on the device.
    pub previous_synced: u64,
}

impl Link {
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        for word in [self.previous_number, self.previous_end, self.previous_synced] {
            buffer.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub fn decode(payload: &[u8]) -> Option<Link> {
        let mut cursor = Cursor::new(payload);
        let mut word = || cursor.u64("").ok();
        Some(Link { previous_number: word()?, previous_end: word()?, previous_synced: word()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u64 = 0x5a17;

    #[test]
    fn headers_round_trip_and_no_flipped_bit_survives() {
        let path = Path::new("x");
        let header = encode_header(7, 4096, SALT);
        let expected = SegmentHeader { number: 7, length: 4096, salt: Some(SALT) };
        assert_eq!(decode_header(path, &header).expect("known version"), Some(expected));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_header(path, &bytes).expect("no version without its checksum"), None);
        }
    }

    /// A header of the first version, which had zeroes where the salt is.
    #[test]
    fn segments_of_version_1_have_no_salt() {
        let mut header = encode_header(7, 4096, 0);
        header[8] = 1;
        let sum = checksum(HEADER_SEED, 0, &header[..HEADER_BYTES - 4]);
        header[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        let found = decode_header(Path::new("x"), &header).expect("a version that is read");
        assert_eq!(found, Some(SegmentHeader { number: 7, length: 4096, salt: None }));
    }

    #[test]
    fn records_verify_only_where_they_were_written() {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(b"payload");
        seal_record(&mut record, RecordType::Batch, 42, 64, Place { segment: 3, salt: SALT, offset: 128 });
        let (sum, header) = decode_record_header(&record, 128, 4096).expect("a header");
        assert_eq!(header, RecordHeader { kind: RecordType::Batch, payload_bytes: 7, sequence: 42, synced: 64 });
        assert!(verify_record(&record, sum, 3, 128));
        assert!(!verify_record(&record, sum, 3, 136));
        assert!(!verify_record(&record, sum, 4, 128));
        assert!(decode_record_header(&record, 128, 140).is_none());
        assert!(verify_header(&record, SALT, 128));
        assert!(!verify_header(&record, SALT, 136));
        assert!(!verify_header(&record, SALT + 1, 128));
        for bit in 32..RECORD_HEADER_BYTES * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify_header(&damaged, SALT, 128), "bit {bit}");
        }
    }
}
