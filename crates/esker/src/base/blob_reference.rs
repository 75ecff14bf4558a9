//! Where a large value is: what an entry of kind `PutLarge` has instead of its bytes, in the log, in memory and in tables.
//!
//! ```text
//! reference := file:u64 offset:u64 length:u32 checksum:u32       24 bytes, little-endian
//! ```
//! `offset` is that of the value in blob file `file`; the checksum is that of the value, seeded with both.

use super::coding::Cursor;

/// Bytes of an encoded reference. Not eight: the memtable changes values of eight bytes in place.
pub const REFERENCE_BYTES: usize = 24;

/// Bytes in front of each value in a blob file.
pub const BLOB_RECORD_HEADER_BYTES: u64 = 8;

/// Where a value is in which blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobReference {
    /// The number of the blob file.
    pub file: u64,
    /// Where in it the value begins.
    pub offset: u64,
    /// Bytes of the value.
    pub length: u32,
    /// The checksum of the value.
    pub checksum: u32,
}

impl BlobReference {
    /// The bytes of the reference.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        bytes[20..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The reference with these bytes; `None` if they cannot be one.
    pub fn decode(bytes: &[u8]) -> Option<BlobReference> {
        let mut cursor = Cursor::new(bytes);
        let reference = BlobReference {
            file: cursor.u64("").ok()?,
            offset: cursor.u64("").ok()?,
            length: cursor.u32("").ok()?,
            checksum: cursor.u32("").ok()?,
        };
        cursor.is_empty().then_some(reference)
    }

    /// Bytes that the value takes in its file, with its header and padding.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(u64::from(self.length))
    }
}

/// Bytes that a value of `length` bytes takes in a blob file.
pub fn stored_bytes(length: u64) -> u64 {
    (BLOB_RECORD_HEADER_BYTES + length).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_round_trip_and_other_lengths_are_refused() {
        let reference = BlobReference { file: 7, offset: 1 << 40, length: 1 << 30, checksum: 0xdead_beef };
        let bytes = reference.encode();
        assert_eq!(BlobReference::decode(&bytes), Some(reference));
        assert_eq!(BlobReference::decode(&bytes[1..]), None);
        assert_eq!(BlobReference::decode(&[bytes.as_slice(), &[0]].concat()), None);
        assert_eq!(BlobReference { length: 1, ..reference }.stored_bytes(), 16);
        assert_eq!(BlobReference { length: 8, ..reference }.stored_bytes(), 16);
    }
}
