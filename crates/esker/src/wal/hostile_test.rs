//! Values that look like log records do not make a recovery slow, nor do files that look like log
//! segments. Counted are the bytes under checksums, not time.

use super::format::{HEADER_BYTES, RECORD_HEADER_BYTES, RecordType, encode_header, record_bytes};
use super::reader::{
    FirstRecord, IDENTIFY_BYTES, LinkSearch, SegmentFile, SegmentReader, TRIED_NUMBERS, Visited, replay,
};
use super::replay_test::{FIRST, damage, forged, link, maker, path};
use super::salvage::{Known, salvage};
use super::segment::Position;
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::error::Error;
use std::path::Path;
use std::sync::Arc;

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

/// Far above all segments of the log.
const FAR: u64 = 1 << 40;
/// So many files may be tried with as many numbers as one may be.
const MOST_FILES: u64 = 16;
const LINK_BYTES: u64 = RECORD_HEADER_BYTES as u64 + 24;

/// A file that begins, behind a broken header, with the link of a segment that is not tried.
fn forged_without_header() -> Vec<u8> {
    let mut bytes = forged(2 * FAR, FIRST, &[(RecordType::Link, 0, link(0, 0))]);
    bytes[0] ^= 1;
    bytes
}

/// What such a file, or another, begins with.
fn first_record(bytes: Vec<u8>) -> FirstRecord {
    let (env, path) = (MemEnv::new(), path(1));
    env.set_file_bytes(&path, bytes);
    let file = env.open_log(&path, None, false).expect("no fault is set");
    FirstRecord::read(&SegmentFile::new(path, file)).expect("no fault is set")
}

#[test]
fn the_checksums_of_links_are_counted_and_bounded_over_all_files() {
    let first = first_record(forged_without_header());
    let path = Path::new("1.wal");
    // The bytes under checksums, and how many of so many files are refused.
    let counted = |greatest: u64, files: u64| {
        let mut search = LinkSearch::new(1..=greatest, |number| number == 3);
        let refused = (0..files).filter(|_| search.identify(&first, path).is_err()).count() as u64;
        (search.checked_bytes, refused)
    };
    let most = TRIED_NUMBERS as u64 * LINK_BYTES;
    assert_eq!(counted(5, 2), (2 * 4 * LINK_BYTES, 0));
    assert_eq!(counted(FAR, 1), (most, 0));
    assert_eq!(counted(FAR, MOST_FILES), (IDENTIFY_BYTES, 0));
    assert_eq!(IDENTIFY_BYTES, MOST_FILES * most);
    // Each of the others costs no more than to say so.
    let others = 10_000 - MOST_FILES;
    assert_eq!(counted(FAR, 10_000), (IDENTIFY_BYTES + others * LINK_BYTES, others));
    // One number at a time.
    let mut search = LinkSearch::default();
    let refused = (0..2 * IDENTIFY_BYTES / LINK_BYTES).find(|&number| search.link_of(number, &first, path).is_err());
    assert_eq!(refused, Some(IDENTIFY_BYTES / LINK_BYTES));
    // What does not look like a link costs nothing.
    let plain = first_record(vec![0; 4 * FIRST]);
    let mut search = LinkSearch::new(1..=FAR, |_| false);
    assert!(matches!(search.identify(&plain, path), Ok(None)));
    assert_eq!(search.checked_bytes, 0);
}

/// A log of one segment, and such files, whose names make it seem that many numbers are missing.
fn log_beside(files: u64) -> MemEnv {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), forged(1, FIRST, &[(RecordType::Link, 0, link(0, 0))]));
    for file in 0..files {
        env.set_file_bytes(&path(FAR + file), forged_without_header());
    }
    env
}

#[test]
fn more_files_that_look_like_segments_than_an_accident_leaves_are_refused() {
    for (files, is_forged) in [(MOST_FILES, false), (MOST_FILES + 1, true)] {
        let env = log_beside(files);
        let maker = maker(Arc::new(env.clone()));
        let opened = replay(&maker, 1, Position::default(), &mut |record| Ok(Visited::Last(record.sequence)));
        match opened {
            Ok(inherited) => assert!(!is_forged && inherited.free.len() as u64 == files, "{files} files"),
            Err(error) => assert!(is_forged && matches!(error, Error::Corruption { .. }), "{files} files: {error}"),
        }
        let salvaged = salvage(&maker, Known { floor: 1, ..Known::default() }, &mut |record| Ok(record.sequence))
            .expect("no fault is set");
        assert_eq!((salvaged.newest, salvaged.problems.len()), (1, usize::from(is_forged)), "{files} files");
        assert_eq!(damage(&env, Position::default()).len(), usize::from(is_forged), "{files} files");
    }
}
