//! Values that look like log records do not make a recovery slow. Counted are the bytes under
//! checksums, not time.

use super::format::{HEADER_BYTES, RECORD_HEADER_BYTES, RecordType, encode_header, record_bytes};
use super::reader::{SegmentFile, SegmentReader};
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::error::Error;
use std::path::Path;

const SEGMENT_BYTES: u64 = 1 << 20;
const NUMBER: u64 = 9;
/// What is searched behind is a record that was cut short.
const TORN_AT: u64 = HEADER_BYTES as u64 + 48;

/// Headers of records that claim to reach to the end of the segment, one behind the other and each
/// inside of all before it: as values can hold them, whose writer knows the format and where in the
/// log they come to lie.
fn headers_within_headers(kind: RecordType) -> Vec<u8> {
    let mut bytes = encode_header(NUMBER, SEGMENT_BYTES, 0x5a17).to_vec();
    bytes.resize(TORN_AT as usize + 8, 0);
    while bytes.len() + RECORD_HEADER_BYTES <= SEGMENT_BYTES as usize {
        let payload_bytes = SEGMENT_BYTES - (bytes.len() + RECORD_HEADER_BYTES) as u64;
        bytes.extend_from_slice(&(payload_bytes << 32).to_le_bytes());
        bytes.extend_from_slice(&(u64::from(u32::MAX) << 8 | kind as u64).to_le_bytes());
        bytes.extend_from_slice(&(TORN_AT + 8).to_le_bytes());
    }
    bytes.resize(SEGMENT_BYTES as usize, 0);
    bytes
}

/// Searches such a segment. Returns what was found and the bytes under checksums.
fn search(kind: RecordType, salt: Option<u64>) -> (Result<bool, Error>, u64) {
    let env = MemEnv::new();
    let path = Path::new("1.wal");
    let file = env.open_log(path, Some(SEGMENT_BYTES), false).expect("no fault is set");
    file.write(0, &headers_within_headers(kind)).expect("no fault is set");
    let found = SegmentFile { salt, ..SegmentFile::new(path.to_path_buf(), file) };
    let mut reader = SegmentReader::new(NUMBER, &found);
    (reader.synced_beyond(TORN_AT, 0), reader.checked_bytes)
}

#[test]
fn what_looks_like_records_is_refused_by_its_header_checks() {
    for kind in [RecordType::Batch, RecordType::Close, RecordType::Link] {
        let (vouched, checked_bytes) = search(kind, Some(0x5a17));
        assert!(!vouched.expect("a torn tail"), "{kind:?}");
        assert!(checked_bytes <= SEGMENT_BYTES, "{checked_bytes} bytes for a segment of {SEGMENT_BYTES}: {kind:?}");
    }
}

/// Without header checks, as in version 1, records cannot be told from values: the search gives up.
#[test]
fn a_search_that_would_take_too_long_gives_up() {
    let (vouched, checked_bytes) = search(RecordType::Batch, None);
    assert!(matches!(vouched, Err(Error::Corruption { offset: TORN_AT, .. })), "{vouched:?}");
    assert!(checked_bytes <= 17 * SEGMENT_BYTES + record_bytes(SEGMENT_BYTES as usize), "{checked_bytes}");
}
