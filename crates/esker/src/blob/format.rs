//! The bytes of a blob file. `doc/format/blob.md` has the picture and the reasons.
//!
//! ```text
//! blob   := header record*                                                        records begin at multiples of 8
//! header := magic[8] version:u32 zero:u32 number:u64 zero:u32 checksum:u32        32 bytes
//! record := checksum:u32 stored:u32 value zero*
//! ```
//! All integers are little-endian. `stored` is as in a reference. A record's checksum covers its
//! value as stored and is seeded with the file's number and the offset of the value, plus 1 if it
//! is compressed; the header's covers its first 28 bytes and is seeded with the number and 0.
//! Between records there may be bytes of writes that failed: what refers to a value knows its
//! place, length and checksum (`base/blob_reference.rs`).

use crate::base::blob_reference::{BLOB_RECORD_HEADER_BYTES, BlobReference, split_stored};
use crate::base::checksum::checksum;
use crate::base::coding::Cursor;
use crate::base::compression::Codec;
use crate::base::file_number::{of_digits, to_digits};
use crate::error::{Error, Result};
use std::path::Path;

pub const HEADER_BYTES: u64 = 32;
const MAGIC: [u8; 8] = *b"eskerBLB";
const SUMMED_BYTES: usize = HEADER_BYTES as usize - 4;

/// How the values of a file came into it. The number is the format version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// As they were written; compression was not tried.
    AsWritten = 1,
    /// Compressed with LZ4, where that pays.
    Lz4 = 2,
    /// Compressed with zstd, where that pays.
    Zstd = 3,
}

impl Values {
    /// As they are stored by what compresses so.
    pub fn of(codec: Option<Codec>) -> Values {
        match codec {
            None => Values::AsWritten,
            Some(Codec::Lz4) => Values::Lz4,
            Some(Codec::Zstd) => Values::Zstd,
        }
    }

    /// How a compressed one was compressed.
    pub fn codec(self) -> Codec {
        match self {
            // The first has none.
            Values::AsWritten | Values::Lz4 => Codec::Lz4,
            Values::Zstd => Codec::Zstd,
        }
    }
}

/// The newest format version that is read.
const NEWEST: u32 = Values::Zstd as u32;

/// The name of blob file `number`.
pub fn file_name(number: u64) -> String {
    format!("{}.blob", to_digits(number))
}

/// The number of the blob file with this name.
pub fn file_number(name: &str) -> Option<u64> {
    of_digits(name.strip_suffix(".blob")?)
}

/// The header of blob file `number`.
pub fn encode_header(number: u64, values: Values) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&(values as u32).to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    let sum = checksum(number, 0, &bytes[..SUMMED_BYTES]);
    bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Checks that `bytes` are the header of blob file `number`, and says how its values are stored.
///
/// # Errors
/// `Corruption`; for an intact header `Unsupported` if the version is newer, and
/// `UnsupportedCompression`.
pub fn check_header(path: &Path, number: u64, bytes: &[u8; HEADER_BYTES as usize]) -> Result<Values> {
    let (body, sum) = bytes.split_at(SUMMED_BYTES);
    if body[..8] != MAGIC {
        return Err(Error::corruption(path, 0, "this is not a blob file: the magic number is missing"));
    }
    if checksum(number, 0, body).to_le_bytes() != sum {
        return Err(Error::corruption(path, 0, "the header's checksum does not match"));
    }
    let version = Cursor::new(&body[8..]).u32("a version").map_err(|e| e.at(path, 8))?;
    match version {
        1 => Ok(Values::AsWritten),
        2 => Ok(Values::Lz4),
        NEWEST => Codec::Zstd.check(path).map(|()| Values::Zstd),
        _ => Err(Error::Unsupported { path: path.to_path_buf(), version, supported: NEWEST }),
    }
}

/// The reference to a value, `stored` in a record that begins at `record_offset` of file `number`.
/// A value has at most 1 GiB, and is compressed only if that makes it smaller.
pub fn reference_to(number: u64, record_offset: u64, stored: &[u8], compressed: bool) -> BlobReference {
    let offset = record_offset + BLOB_RECORD_HEADER_BYTES;
    let checksum = sum(number, offset, stored, compressed);
    BlobReference { file: number, offset, length: stored.len() as u32, compressed, checksum }
}

/// What stands in front of a value in its file.
pub fn encode_record_header(reference: &BlobReference) -> [u8; BLOB_RECORD_HEADER_BYTES as usize] {
    let mut bytes = [0; BLOB_RECORD_HEADER_BYTES as usize];
    bytes[..4].copy_from_slice(&reference.checksum.to_le_bytes());
    bytes[4..].copy_from_slice(&reference.stored().to_le_bytes());
    bytes
}

/// The length of the value as stored behind this record header. Nothing vouches for it.
pub fn decode_record_length(header: [u8; BLOB_RECORD_HEADER_BYTES as usize]) -> u32 {
    let [.., a, b, c, d] = header;
    split_stored(u32::from_le_bytes([a, b, c, d])).0
}

/// Whether `stored` is what the reference was made for.
pub fn verify(reference: &BlobReference, stored: &[u8]) -> bool {
    sum(reference.file, reference.offset, stored, reference.compressed) == reference.checksum
}

/// Values begin at multiples of 8: a compressed one counts as one byte further, so that neither is
/// ever taken for the other.
fn sum(number: u64, offset: u64, stored: &[u8], compressed: bool) -> u32 {
    checksum(number, offset | u64::from(compressed), stored)
}
