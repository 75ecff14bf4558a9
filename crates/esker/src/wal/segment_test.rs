//! What is in the file of a prepared segment, and what a segment that is only read refuses.

use super::format::HEADER_BYTES;
use super::replay_test::{maker, path};
use super::segment::{FreeFile, Plan, SegmentMaker, Space};
use crate::env::Env;
use crate::env::mem::{CrashMode, MemEnv};
use crate::error::Error;
use std::sync::Arc;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The bytes of the file's earlier life: those on the device, and what was stored later.
const SYNCED: u8 = 1;
const STORED: u8 = 2;

/// Prepares a file that was used before. Returns what is known of its space then, and what every
/// byte behind the header is: before a power loss and after it.
fn prepared(bytes: u64, space: Space, for_syncs: bool) -> (Space, [u8; 2]) {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), vec![SYNCED; bytes as usize]);
    let file = env.open_log(&path(1), None, false).expect("it is there");
    file.write(0, &vec![STORED; bytes as usize]).expect("no fault is set");
    let free = Some(FreeFile { path: path(1), file, space });
    let plan = Plan { number: 7, free, new_bytes: bytes, least_bytes: 0, for_syncs, for_stores: false };
    let segment = maker(Arc::new(env.clone())).prepare(plan).expect("no fault is set");
    let behind_header = |env: &MemEnv| {
        let all = env.file_bytes(&path(1)).expect("it is there");
        let rest = &all[HEADER_BYTES..];
        assert!(rest.iter().all(|byte| *byte == rest[0]), "{bytes} bytes, {space:?}, for syncs: {for_syncs}");
        rest[0]
    };
    let after_loss = env.crash(&CrashMode::LoseAll, 0);
    (segment.to_free().space, [behind_header(&env), behind_header(&after_loss)])
}

/// What is said of the space has to be true of the device: the first sync after a store into a
/// block that is only reserved costs a second write there.
#[test]
fn a_file_gets_zeroes_once_where_writes_are_synced_and_they_are_on_the_device() {
    let cases = [
        (Space::Found, true, (Space::Written, [0, 0])),
        (Space::Reserved, true, (Space::Written, [0, 0])),
        (Space::Written, true, (Space::Written, [STORED, SYNCED])),
        // With its length, which may not be on the device.
        (Space::Found, false, (Space::Reserved, [STORED, STORED])),
        (Space::Reserved, false, (Space::Reserved, [STORED, SYNCED])),
        (Space::Written, false, (Space::Written, [STORED, SYNCED])),
    ];
    for (space, for_syncs, expected) in cases {
        assert_eq!(prepared(KIB, space, for_syncs), expected, "{space:?}, for syncs: {for_syncs}");
    }
}

#[test]
fn a_file_of_any_length_gets_zeroes_to_its_end() {
    for bytes in [KIB, MIB, MIB + KIB, 2 * MIB + 8] {
        assert_eq!(prepared(bytes, Space::Reserved, true), (Space::Written, [0, 0]), "{bytes} bytes");
    }
}

#[test]
fn a_segment_that_is_only_read_refuses_every_change() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), b"four and more".to_vec());
    let maker = SegmentMaker { read_only: true, ..maker(Arc::new(env)) };
    let file = maker.open(&path(1)).expect("it is there");
    let mut bytes = [0; 4];
    file.read_at(0, &mut bytes).expect("it is longer");
    assert_eq!((file.len(), &bytes), (13, b"four"));
    for refused in [file.store(0, b"other"), file.write(0, b"other"), file.sync(), file.sync_range(0, 8)] {
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
}
