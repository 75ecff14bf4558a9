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

    /// Bytes that the value takes in its file, with its header and padding.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(u64::from(self.length))
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
}
