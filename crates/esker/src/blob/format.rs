//! The bytes of a blob file. `doc/format/blob.md` has the picture and the reasons.
//!
//! ```text
//! blob   := header record*                                                        records begin at multiples of 8
//! header := magic[8] version:u32 zero:u32 number:u64 zero:u32 checksum:u32        32 bytes
//! record := checksum:u32 length:u32 value zero*
//! ```
//! All integers are little-endian. A record's checksum covers its value and is seeded with the file's number and the offset of the value; the
//! header's covers its first 28 bytes and is seeded with the number and 0. Between records there may be bytes of writes that failed: what refers to
//! a value knows its place, length and checksum (`base/blob_reference.rs`).

use crate::base::blob_reference::{BLOB_RECORD_HEADER_BYTES, BlobReference};
use crate::base::checksum::checksum;
use crate::base::coding::Cursor;
use crate::error::{Error, Result};
use std::path::Path;

pub const HEADER_BYTES: u64 = 32;
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"eskerBLB";
const SUMMED_BYTES: usize = HEADER_BYTES as usize - 4;

/// The name of blob file `number`.
pub fn file_name(number: u64) -> String {
    format!("{number:06}.blob")
}

/// The number of the blob file with this name.
pub fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".blob")?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The header of blob file `number`.
pub fn encode_header(number: u64) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    let sum = checksum(number, 0, &bytes[..SUMMED_BYTES]);
    bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Checks that `bytes` are the header of blob file `number`.
///
/// # Errors
/// `Corruption`, and `Unsupported` for an intact header of a newer version.
pub fn check_header(path: &Path, number: u64, bytes: &[u8; HEADER_BYTES as usize]) -> Result<()> {
    let (body, sum) = bytes.split_at(SUMMED_BYTES);
    if body[..8] != MAGIC {
        return Err(Error::corruption(path, 0, "this is not a blob file: the magic number is missing"));
    }
    if checksum(number, 0, body).to_le_bytes() != sum {
        return Err(Error::corruption(path, 0, "the header's checksum does not match"));
    }
    let version = Cursor::new(&body[8..]).u32("a version").map_err(|e| e.at(path, 8))?;
    if version != VERSION {
        return Err(Error::Unsupported { path: path.to_path_buf(), version, supported: VERSION });
    }
    Ok(())
}

/// The reference to `value` in a record that begins at `record_offset` of file `number`. A value has at most 1 GiB.
pub fn reference_to(number: u64, record_offset: u64, value: &[u8]) -> BlobReference {
    let offset = record_offset + BLOB_RECORD_HEADER_BYTES;
    BlobReference { file: number, offset, length: value.len() as u32, checksum: checksum(number, offset, value) }
}

/// What stands in front of a value in its file.
pub fn encode_record_header(reference: &BlobReference) -> [u8; BLOB_RECORD_HEADER_BYTES as usize] {
    let mut bytes = [0; BLOB_RECORD_HEADER_BYTES as usize];
    bytes[..4].copy_from_slice(&reference.checksum.to_le_bytes());
    bytes[4..].copy_from_slice(&reference.length.to_le_bytes());
    bytes
}

/// Whether `value` is what the reference was made for.
pub fn verify(reference: &BlobReference, value: &[u8]) -> bool {
    checksum(reference.file, reference.offset, value) == reference.checksum
}
