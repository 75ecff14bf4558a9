//! Where a large value is: what an entry of kind `PutBlob` has instead of its bytes, in the log, in
//! memory and in tables.
//!
//! ```text
//! reference := file:u64 offset:u64 stored:u32 checksum:u32       24 bytes, little-endian
//! ```
//! `offset` is where in blob file `file` the value is stored; `stored` is in how many bytes, and
//! its highest bit says that they are the value compressed (`compression.rs`). The checksum is that
//! of these bytes, seeded as `blob/format.rs` says.

use super::coding::Cursor;
use std::collections::BTreeSet;

/// Bytes of an encoded reference. Not eight: the memtable changes values of eight bytes in place.
pub const REFERENCE_BYTES: usize = 24;

/// Bytes in front of each value in a blob file.
pub const BLOB_RECORD_HEADER_BYTES: u64 = 8;

/// The bit of `stored` that marks a compressed value. No value has so many bytes.
const COMPRESSED: u32 = 1 << 31;

/// Where a value is in which blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobReference {
    /// The number of the blob file.
    pub file: u64,
    /// Where in it the value begins.
    pub offset: u64,
    /// Bytes that are stored there.
    pub length: u32,
    /// They are the value compressed, not the value itself.
    pub compressed: bool,
    /// The checksum of what is stored.
    pub checksum: u32,
}

impl BlobReference {
    /// The bytes of the reference.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.stored().to_le_bytes());
        bytes[20..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The reference with these bytes; `None` if they cannot be one.
    pub fn decode(bytes: &[u8]) -> Option<BlobReference> {
        let mut cursor = Cursor::new(bytes);
        let (file, offset) = (cursor.u64("").ok()?, cursor.u64("").ok()?);
        let (stored, checksum) = (cursor.u32("").ok()?, cursor.u32("").ok()?);
        let (length, compressed) = split_stored(stored);
        cursor.is_empty().then_some(BlobReference { file, offset, length, compressed, checksum })
    }

    /// The length, and whether the value is compressed, in one number.
    pub fn stored(&self) -> u32 {
        self.length | if self.compressed { COMPRESSED } else { 0 }
    }

    /// The offset behind what is stored, if there is such a number.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.length))
    }

    /// Whether it ends behind where the record of `next` begins, which comes after it in order.
    fn reaches_into(&self, next: &BlobReference) -> bool {
        let begin = next.offset.saturating_sub(BLOB_RECORD_HEADER_BYTES);
        self.file == next.file && self.end().is_none_or(|end| end > begin)
    }

    /// Bytes that the value takes in its file, with its header and padding.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(u64::from(self.length))
    }
}

/// Large values that something refers to, each once. Those that the engine writes do not overlap:
/// each has its own place in its file, however many refer to it.
#[derive(Debug, Default)]
pub struct DistinctValues(BTreeSet<BlobReference>);

impl DistinctValues {
    /// Adds a value; whether it is new. Since none overlaps another, reading all of them is no more
    /// than reading their files.
    ///
    /// # Errors
    /// What is wrong, if it overlaps another.
    pub fn insert(&mut self, reference: BlobReference) -> Result<bool, &'static str> {
        if self.0.contains(&reference) {
            return Ok(false);
        }
        let before = self.0.range(..reference).next_back();
        let behind = self.0.range(reference..).next();
        if before.is_some_and(|before| before.reaches_into(&reference))
            || behind.is_some_and(|behind| reference.reaches_into(behind))
        {
            return Err("a large value overlaps another in its file");
        }
        Ok(self.0.insert(reference))
    }
}

/// The length that is stored, and whether it is that of a compressed value.
pub fn split_stored(stored: u32) -> (u32, bool) {
    (stored & !COMPRESSED, stored & COMPRESSED != 0)
}

/// Bytes that a value stored in `length` bytes takes in a blob file.
pub fn stored_bytes(length: u64) -> u64 {
    (BLOB_RECORD_HEADER_BYTES + length).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_round_trip_and_other_lengths_are_refused() {
        let checksum = 0xdead_beef;
        let reference = BlobReference { file: 7, offset: 1 << 40, length: 1 << 30, compressed: false, checksum };
        let bytes = reference.encode();
        assert_eq!(BlobReference::decode(&bytes), Some(reference));
        let compressed = BlobReference { compressed: true, ..reference };
        assert_eq!(BlobReference::decode(&compressed.encode()), Some(compressed));
        assert_eq!(compressed.stored_bytes(), reference.stored_bytes());
        assert_eq!(
            (reference.end(), BlobReference { offset: u64::MAX, ..reference }.end()),
            (Some((1 << 40) + (1 << 30)), None)
        );
        assert_eq!(BlobReference::decode(&bytes[1..]), None);
        assert_eq!(BlobReference::decode(&[bytes.as_slice(), &[0]].concat()), None);
        assert_eq!(BlobReference { length: 1, ..reference }.stored_bytes(), 16);
        assert_eq!(BlobReference { length: 8, ..reference }.stored_bytes(), 16);
    }

    #[test]
    fn values_that_overlap_another_are_refused() {
        let at = |offset, length| BlobReference { file: 7, offset, length, compressed: false, checksum: 1 };
        let mut values = DistinctValues::default();
        // As they stand in a file: 40 to 60, nothing at 72, and 80 to 90.
        for reference in [at(80, 10), at(40, 20), at(72, 0)] {
            assert_eq!(values.insert(reference), Ok(true), "{reference:?}");
        }
        assert_eq!(values.insert(at(40, 20)), Ok(false), "another reference to the same");
        let overlapping = [
            at(40, 19),
            at(40, 21),
            at(48, 8),
            at(32, 100),
            at(32, 1),
            at(67, 0),
            at(88, 100),
            at(97, 1),
            at(80, u32::MAX),
            BlobReference { checksum: 2, ..at(40, 20) },
            BlobReference { compressed: true, ..at(72, 0) },
        ];
        for reference in overlapping {
            assert!(values.insert(reference).is_err(), "{reference:?}");
        }
        assert_eq!(values.insert(at(98, 1)), Ok(true), "what was refused is not there");
        for file in [6, 8] {
            assert_eq!(values.insert(BlobReference { file, ..at(40, 20) }), Ok(true), "file {file}");
        }
        let endless = BlobReference { offset: u64::MAX, length: 9, ..at(0, 0) };
        assert_eq!(values.insert(endless), Ok(true), "only its file shows that it is none");
    }
}
