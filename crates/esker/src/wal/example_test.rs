//! The worked example of `doc/format/wal.md` is what the log writes, and the log reads it back.

use super::format::RECORD_HEADER_BYTES;
use super::reader::{Visited, replay};
use super::segment::Position;
use super::segment::{SegmentMaker, file_name};
use super::writer::{Inherited, LogWriter};
use crate::base::batch::{Operation, encode};
use crate::base::key::{Kind, NEVER};
use crate::env::Env;
use crate::env::mem::MemEnv;
use std::path::Path;
use std::sync::Arc;

const PAGE: &str = include_str!("../../../../doc/format/wal.md");
const SEGMENT_BYTES: usize = 256;

/// The bytes of the page's example (hexadecimal up to the bar in each line of the block marked
/// `hex`), and the zeroes behind them.
fn example() -> Vec<u8> {
    let block = PAGE.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let digits = block.lines().filter_map(|line| line.split('|').next()).flat_map(str::split_whitespace);
    let mut bytes: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect();
    bytes.resize(SEGMENT_BYTES, 0);
    bytes
}

fn maker(env: &MemEnv) -> SegmentMaker {
    let bytes = SEGMENT_BYTES as u64;
    let directory = Path::new("/db").to_path_buf();
    SegmentMaker {
        env: Arc::new(env.clone()),
        directory,
        mapped: true,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes: bytes,
        largest_bytes: bytes,
    }
}

fn record(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut record = vec![0; RECORD_HEADER_BYTES];
    for operation in operations {
        encode(&mut record, operation);
    }
    record
}

fn operation<'a>(keyspace: u64, kind: Kind, key: &'a [u8], value: &'a [u8]) -> Operation<'a> {
    Operation { keyspace, kind, expiry_ms: NEVER, key, value }
}

fn records() -> [Vec<u8>; 2] {
    let one = 1u64.to_le_bytes();
    [
        record(&[operation(1, Kind::Put, b"user:1", b"ann")]),
        record(&[operation(1, Kind::Delete, b"user:2", b""), operation(2, Kind::Merge, b"n", &one)]),
    ]
}

fn directory() -> MemEnv {
    let env = MemEnv::new();
    env.create_dir_all(Path::new("/db")).expect("no fault is set");
    env
}

#[test]
fn the_example_is_what_the_log_writes() {
    let env = directory();
    let mut log = LogWriter::start(maker(&env), Inherited::default()).expect("no fault is set");
    let [mut first, mut second] = records();
    let end = log.append(&mut first, 1, 0, true).expect("room for it");
    log.shared().sync_to(end).expect("no fault is set");
    log.append(&mut second, 2, 1, false).expect("room for it");
    log.close().expect("no fault is set");
    let file = env.open(&Path::new("/db").join(file_name(1))).expect("the first segment");
    let mut bytes = vec![0; SEGMENT_BYTES];
    file.read_at(0, &mut bytes).expect("as long as it was made");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
    assert!(example() == bytes, "the page shows other bytes than these:\n{hex}");
}

#[test]
fn the_example_is_a_log() {
    let env = directory();
    let path = Path::new("/db").join(file_name(1));
    env.open_log(&path, Some(SEGMENT_BYTES as u64), false)
        .and_then(|file| file.write(0, &example()))
        .expect("no fault is set");
    let mut read = Vec::new();
    let inherited = replay(&maker(&env), 1, Position::default(), &mut |record| {
        read.push((record.sequence, record.payload.to_vec()));
        Ok(Visited::Last(record.sequence + read.len() as u64 - 1))
    })
    .expect("the example is intact");
    let payloads = records().map(|record| record[RECORD_HEADER_BYTES..].to_vec());
    let [first, second] = payloads;
    assert_eq!(read, [(1, first), (2, second)]);
    let end =
        inherited.retired.last().map(|retired| retired.segment.written.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!((inherited.highest_number, end), (1, Some(224)));
}
