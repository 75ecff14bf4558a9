//! Which ends of a manifest are what a power loss leaves, and which are damage.

use super::edit::{Change, ManifestState};
use super::file_name::manifest;
use super::manifest::{Found, InForce, Manifest, RecordSearch, read_current};
use super::salvage::{Missing, salvage};
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::error::Error;
use std::path::{Path, PathBuf};

/// A manifest of two edits, and where its records end: the first one, then each edit and its
/// voucher.
fn two_edits() -> (MemEnv, PathBuf, Vec<usize>) {
    let (env, directory) = (MemEnv::new(), Path::new("db"));
    env.create_dir_all(directory).expect("no fault is set");
    let state = ManifestState { next_file: 9, ..ManifestState::default() };
    let path = directory.join(manifest(8));
    let length = || env.file_bytes(&path).map_or(0, |bytes| bytes.len());
    let mut made = Manifest::create(&env, directory, 8, state).expect("no fault is set");
    let mut ends = vec![length()];
    for sequence in [100, 200] {
        made.commit(&[Change::LastSequence(sequence), Change::LogFloor(sequence / 50)]).expect("no fault is set");
        // Both records are as long each time.
        let voucher_bytes = 10;
        ends.extend([length() - voucher_bytes, length()]);
    }
    (env, path, ends)
}

/// What is read of the manifest after this change to its bytes: its last sequence number, and
/// whether it is torn.
fn read_after(change: impl FnOnce(&mut Vec<u8>, &[usize])) -> Result<(u64, bool), Error> {
    let (env, path, ends) = two_edits();
    let mut bytes = env.file_bytes(&path).expect("it was made");
    change(&mut bytes, &ends);
    env.set_file_bytes(&path, bytes);
    let found = read_current(&env, Path::new("db"))?;
    let InForce { state, is_torn, .. } = found.expect("CURRENT is there");
    Ok((state.last_sequence, is_torn))
}

/// Seen: after a power loss the manifest did not open. Trigger: the voucher of the edit before last
/// and the last edit were both unsynced, and only the second reached the device, in a sector of its
/// own. Cost: a repair.
#[test]
fn a_power_loss_may_take_a_voucher_and_leave_the_edit_behind_it() {
    let read = read_after(|bytes, ends| {
        bytes[ends[1]..ends[2]].fill(0);
        bytes.truncate(ends[3]);
    });
    assert!(matches!(read, Ok((200, false))), "{read:?}");
    let read = read_after(|bytes, ends| {
        bytes[ends[1]..ends[2]].fill(0);
        bytes.truncate(ends[3] - 1);
    });
    assert!(matches!(read, Ok((100, true))), "{read:?}");
}

#[test]
fn what_was_synced_and_does_not_verify_is_damage() {
    // The voucher, with one behind the next edit, which was synced together with it.
    let read = read_after(|bytes, ends| bytes[ends[1]] ^= 1);
    assert!(matches!(read, Err(Error::Corruption { .. })), "{read:?}");
    // An edit, with its voucher or without.
    for end in [3, 4] {
        let read = read_after(|bytes, ends| {
            bytes[ends[0]] ^= 1;
            bytes.truncate(ends[end]);
        });
        assert!(matches!(read, Err(Error::Corruption { .. })), "{read:?}");
    }
    let read = read_after(|bytes, ends| bytes[ends[2]] ^= 1);
    assert!(matches!(read, Err(Error::Corruption { .. })), "{read:?}");
    // The last voucher alone: nothing is missing, but that is unknown.
    let read = read_after(|bytes, ends| bytes[ends[3]] ^= 1);
    assert!(matches!(read, Ok((200, true))), "{read:?}");
}

/// What lies behind an edit was appended once that was on the device, and nothing lies behind the
/// last one.
#[test]
fn a_record_vouches_for_those_before_it() {
    let (env, path, ends) = two_edits();
    let bytes = env.file_bytes(&path).expect("it was made");
    let vouched = ends.iter().map(|&end| {
        env.set_file_bytes(&path, bytes[..end].to_vec());
        read_current(&env, Path::new("db")).expect("intact").expect("CURRENT is there").vouched
    });
    assert_eq!(vouched.collect::<Vec<_>>(), [None, Some(0), Some(100), Some(100), Some(200)]);
}

/// What a repair takes to be missing: nothing where only vouchers are, of which the last may be cut
/// short.
#[test]
fn a_repair_misses_edits_and_not_vouchers() {
    let missing = |change: fn(&mut Vec<u8>, &[usize])| {
        let (env, path, ends) = two_edits();
        let mut bytes = env.file_bytes(&path).expect("it was made");
        change(&mut bytes, &ends);
        env.set_file_bytes(&path, bytes);
        let found = salvage(&env, Path::new("db"), 8).expect("no fault is set").expect("the first record is intact");
        (
            found.missing,
            found.state.last_sequence,
            found.damaged.first().copied().map(|at| ends.iter().position(|&end| end as u64 == at)),
        )
    };
    assert_eq!(missing(|_, _| ()), (Missing::Nothing, 200, None));
    // A voucher, between edits and at the end, whole and cut short.
    assert_eq!(missing(|bytes, ends| bytes[ends[1]] ^= 1), (Missing::Nothing, 200, Some(Some(1))));
    assert_eq!(missing(|bytes, ends| bytes[ends[3]] ^= 1), (Missing::Nothing, 200, Some(Some(3))));
    assert_eq!(missing(|bytes, ends| bytes.truncate(ends[4] - 1)), (Missing::Nothing, 200, Some(Some(3))));
    assert_eq!(missing(|bytes, ends| bytes.truncate(ends[3] + 1)), (Missing::Nothing, 200, Some(Some(3))));
    // An edit at the end, which alone is longer than a voucher, and one with an edit behind it.
    let cut = |bytes: &mut Vec<u8>, ends: &[usize]| {
        bytes[ends[2]] ^= 1;
        bytes.truncate(ends[3]);
    };
    assert_eq!(missing(cut), (Missing::Last, 100, Some(Some(2))));
    assert_eq!(missing(|bytes, ends| bytes[ends[0]] ^= 1), (Missing::Any, 200, Some(Some(0))));
}

/// What looks like records that begin one inside the other would have each checked to its end, a
/// quadratic effort. A search gives up when it has checked 64 times the bytes that there are
/// ([`super::manifest`]): the manifest counts as damaged, and a repair takes what is intact in
/// front.
#[test]
fn what_looks_like_records_within_records_is_given_up() {
    const BYTES: usize = 1 << 20;
    let (env, path, ends) = two_edits();
    let hostile = {
        let mut bytes = env.file_bytes(&path).expect("it was made");
        while bytes.len() < BYTES {
            let payload_bytes = (BYTES - bytes.len()).saturating_sub(8) as u32;
            bytes.extend([0; 4]);
            bytes.extend(payload_bytes.to_le_bytes());
        }
        bytes
    };
    let damaged_at = *ends.last().expect("records") as u64;
    env.set_file_bytes(&path, hostile.clone());
    match read_current(&env, Path::new("db")) {
        Err(Error::Corruption { offset, .. }) => assert_eq!(offset, damaged_at),
        other => panic!("{other:?}"),
    }
    let salvaged = salvage(&env, Path::new("db"), 8).expect("no fault is set").expect("the first record is intact");
    assert_eq!((salvaged.state.last_sequence, salvaged.damaged.first().copied()), (200, Some(damaged_at)));
    // The search alone: it is over before it has come far.
    let mut search = RecordSearch::of(8, &hostile);
    assert!(matches!(search.next_from(damaged_at as usize + 1), Found::TooMuch));
}
