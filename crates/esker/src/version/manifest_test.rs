//! What a manifest is refused for, and what is counted of it.

use super::edit::{Change, ManifestState, encode};
use super::file_name::{CURRENT, manifest};
use super::manifest::{InForce, Manifest, VERSION, file_with, intact_records, point_current, read_current};
use super::salvage::{Missing, salvage};
use crate::base::checksum::checksum;
use crate::base::comparator::BYTEWISE;
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::error::Error;
use std::path::Path;

const NUMBER: u64 = 7;
const DIRECTORY: &str = "db";

/// The current manifest is this file.
fn env_with(bytes: Vec<u8>) -> MemEnv {
    let (env, directory) = (MemEnv::new(), Path::new(DIRECTORY));
    env.set_file_bytes(&directory.join(manifest(NUMBER)), bytes);
    point_current(&env, directory, NUMBER).expect("no fault is set");
    env
}

/// Its last sequence number and whether it is torn, or the offset at which it is damaged.
fn read(bytes: Vec<u8>) -> Result<(u64, bool), u64> {
    match read_current(&env_with(bytes), Path::new(DIRECTORY)) {
        Ok(found) => {
            let InForce { state, is_torn, .. } = found.expect("CURRENT is there");
            Ok((state.last_sequence, is_torn))
        }
        Err(Error::Corruption { offset, .. }) => Err(offset),
        Err(other) => panic!("{other:?}"),
    }
}

fn payload(changes: &[Change]) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(changes, &mut payload);
    payload
}

/// A manifest with a record for each of these changes, and the offset of each.
fn records(changes: &[Change]) -> (Vec<u8>, Vec<usize>) {
    let payloads: Vec<Vec<u8>> = changes.iter().map(|change| payload(std::slice::from_ref(change))).collect();
    let bytes = file_with(NUMBER, &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut offsets = vec![24];
    for payload in &payloads {
        offsets.push(offsets[offsets.len() - 1] + 8 + payload.len());
    }
    assert_eq!(offsets.pop(), Some(bytes.len()));
    (bytes, offsets)
}

/// An edit that is as long as a voucher.
fn edit(sequence: u64) -> Change {
    Change::LastSequence(sequence)
}

const VOUCHER: Change = Change::NextFile(9);

#[test]
fn a_header_that_is_not_its_own_is_refused() {
    let (bytes, _) = records(&[edit(1)]);
    assert_eq!(read(bytes.clone()), Ok((1, false)));
    assert_eq!(read(bytes[..23].to_vec()), Err(0), "too short");
    for at in [0, 8, 12, 20] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(read(changed), Err(0), "byte {at} does not verify");
    }
    let with_field = |at: usize, field: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + field.len()].copy_from_slice(field);
        let sum = checksum(0, 0, &changed[..20]).to_le_bytes();
        changed[20..24].copy_from_slice(&sum);
        changed
    };
    assert_eq!(read(with_field(0, b"ESKERLOG")), Err(0), "another file");
    assert_eq!(read(with_field(12, &(NUMBER + 1).to_le_bytes())), Err(12), "another manifest");
    // A version that is older says nothing that this build does not know.
    assert_eq!(read(with_field(8, &(VERSION - 1).to_le_bytes())), Ok((1, false)));
    let newer = env_with(with_field(8, &(VERSION + 1).to_le_bytes()));
    let is_newer =
        |error| matches!(error, Error::Unsupported { version, supported: VERSION, .. } if version == VERSION + 1);
    assert!(is_newer(read_current(&newer, Path::new(DIRECTORY)).expect_err("a newer version")));
    assert!(is_newer(salvage(&newer, Path::new(DIRECTORY), NUMBER).expect_err("a newer version")));
}

#[test]
fn an_edit_that_makes_no_sense_is_reported_where_it_is() {
    let first = payload(&[edit(1)]);
    let offset = (24 + 8 + first.len()) as u64;
    // An unknown field behind a known one; and a table of no keyspace, which is known as a whole.
    let unknown = [payload(&[edit(2)]), vec![99]].concat();
    assert_eq!(read(file_with(NUMBER, &[&first, &unknown])), Err(offset + 8 + unknown.len() as u64));
    let impossible = payload(&[Change::RemoveTable { keyspace: 1, number: 2 }]);
    assert_eq!(read(file_with(NUMBER, &[&first, &impossible])), Err(offset + 8));
    // A repair takes either for what is left of more.
    for senseless in [&unknown, &impossible] {
        let env = env_with(file_with(NUMBER, &[&first, senseless]));
        let found = salvage(&env, Path::new(DIRECTORY), NUMBER).expect("no fault is set").expect("the first is intact");
        assert_eq!((found.missing, found.damaged.first().copied()), (Missing::Any, Some(offset)));
    }
}

/// Only one voucher may be missing, and only between two edits of which the second is the last
/// record. Whatever else is as long is an edit that was synced.
#[test]
fn only_a_voucher_between_two_edits_may_be_missing() {
    let damaged = |changes: &[Change], record: usize| {
        let (mut bytes, offsets) = records(changes);
        bytes[offsets[record]] ^= 1;
        (read(bytes), offsets[record] as u64)
    };
    let (missing, _) = damaged(&[edit(1), edit(2), VOUCHER, edit(3)], 2);
    assert_eq!(missing, Ok((3, false)));
    // An edit behind the first record, or behind a voucher.
    let (missing, at) = damaged(&[edit(1), edit(2), edit(3)], 1);
    assert_eq!(missing, Err(at));
    let (missing, at) = damaged(&[edit(1), edit(2), VOUCHER, edit(3), edit(4)], 3);
    assert_eq!(missing, Err(at));
    // A voucher with another behind it.
    let (missing, at) = damaged(&[edit(1), edit(2), VOUCHER, VOUCHER], 2);
    assert_eq!(missing, Err(at));
}

#[test]
fn a_lost_edit_that_is_shorter_than_a_voucher_is_missing() {
    let long_voucher = || Change::NextFile(300);
    let (mut bytes, offsets) = records(&[long_voucher(), edit(1), long_voucher(), edit(2), long_voucher()]);
    bytes[offsets[3]] ^= 1;
    let env = env_with(bytes);
    let found = salvage(&env, Path::new(DIRECTORY), NUMBER).expect("no fault is set").expect("the first is intact");
    assert_eq!((found.missing, found.damaged.first().copied()), (Missing::Any, Some(offsets[3] as u64)));
}

/// Each of the two would take the table from the other. What else they have stays theirs.
#[test]
fn a_repair_takes_a_table_of_two_keyspaces_from_both_and_no_other() {
    let keyspace = |id: u64| {
        let (name, comparator) = (format!("k{id}"), BYTEWISE.to_owned());
        Change::Keyspace { id, name, comparator, operator: None, ttl: 0 }
    };
    let add = |id: u64, number: u64| Change::AddTable { keyspace: id, run: number, number, bytes: 100 };
    let (bytes, _) = records(&[keyspace(1), keyspace(2), add(1, 5), add(1, 6), add(2, 6), add(2, 7)]);
    assert_eq!(read(bytes.clone()), Err(24));
    let env = env_with(bytes);
    let found = salvage(&env, Path::new(DIRECTORY), NUMBER).expect("no fault is set").expect("the first is intact");
    let tables = |id: u64| found.state.keyspaces[&id].tables.keys().copied().collect::<Vec<_>>();
    assert_eq!((tables(1), tables(2)), (vec![5], vec![7]));
    assert_eq!((found.missing, found.damaged), (Missing::Any, vec![24]));
}

/// Behind damage, an end that is cut short is what a power loss leaves, and is not listed with it.
#[test]
fn a_repair_lists_each_damaged_edit_and_no_end_that_is_cut_short_behind_them() {
    // The damaged edits are longer than a voucher.
    let (mut bytes, offsets) = records(&[edit(1), edit(300), VOUCHER, edit(400), VOUCHER, edit(500), VOUCHER]);
    bytes[offsets[1]] ^= 1;
    bytes[offsets[3]] ^= 1;
    bytes.pop();
    let env = env_with(bytes);
    let found = salvage(&env, Path::new(DIRECTORY), NUMBER).expect("no fault is set").expect("the first is intact");
    assert_eq!((found.missing, found.state.last_sequence), (Missing::Any, 500));
    assert_eq!(found.damaged, [offsets[1] as u64, offsets[3] as u64]);
}

#[test]
fn the_records_of_a_manifest_are_found_and_counted() {
    let (env, directory) = (MemEnv::new(), Path::new(DIRECTORY));
    env.create_dir_all(directory).expect("no fault is set");
    let path = directory.join(manifest(NUMBER));
    let length = || env.file_bytes(&path).map_or(0, |bytes| bytes.len());
    let state = ManifestState { next_file: 9, ..ManifestState::default() };
    let mut made = Manifest::create(&env, directory, NUMBER, state.clone()).expect("no fault is set");
    let first = length();
    assert_eq!(made.appended_bytes(), 0, "the first record is not counted");
    made.commit(&[edit(1)]).expect("no fault is set");
    assert_eq!(made.appended_bytes(), (length() - first) as u64);
    let bytes = env.file_bytes(&path).expect("it was made");
    let voucher = length() - 10;
    assert_eq!(intact_records(&bytes), [(24..first, false), (first..voucher, false), (voucher..length(), true)]);
    // What the tests make is what the engine makes.
    let payloads = [payload(&state.snapshot()), payload(&[edit(1)]), payload(&[VOUCHER])];
    assert_eq!(file_with(NUMBER, &payloads.each_ref().map(Vec::as_slice)), bytes);
    assert!(env.exists(&directory.join(CURRENT)).expect("no fault is set"));
}
