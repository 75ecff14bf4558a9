//! Real directories: what a simulated disk does not show.

use super::history::{Expected, hash, key_value};
use super::world::seed;
use crate::{Executor, KeyValue, StateMachine, StateOptions, TransferReply};
use esker::Options;
use std::fs;
use std::path::Path;

fn open(directory: &Path) -> StateMachine<KeyValue> {
    // Small memtables, so that there are tables to link.
    let database = Options::default().write_buffer_bytes(64 << 10).min_blob_size(600);
    let options = StateOptions::default().database(database).executor(Executor::InPlace);
    StateMachine::open(directory, key_value(), options).unwrap()
}

/// The names below a directory with the number of links of each file.
#[cfg(unix)]
fn links(directory: &Path) -> Vec<(String, u64)> {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().nlink())).collect()
}

#[test]
fn snapshots_are_built_sent_and_installed_in_real_directories() {
    let expected = Expected::of(seed(31), 300);
    let scratch = tempfile::tempdir().unwrap();
    let (leader_directory, directory) = (scratch.path().join("leader/state"), scratch.path().join("follower/state"));
    let leader = open(&leader_directory);
    for entry in &expected.entries[..200] {
        leader.apply(entry).unwrap();
    }
    let files = leader.build().unwrap();
    #[cfg(unix)]
    {
        let tables = links(files.slot().path()).into_iter().filter(|(name, _)| name.ends_with(".table"));
        let linked = tables.map(|(_, links)| links).collect::<Vec<_>>();
        assert!(!linked.is_empty() && linked.iter().all(|links| *links == 2), "{linked:?}");
    }
    let mut follower = open(&directory);
    for entry in &expected.entries[..20] {
        follower.apply(entry).unwrap();
    }
    let (mut reply, mut pieces) = (follower.receive(files.begin()).unwrap(), 0);
    while let TransferReply::Wanted(place) = reply {
        pieces += 1;
        if pieces == 10 {
            drop(follower);
            follower = open(&directory);
            reply = follower.receive(files.begin()).unwrap();
            continue;
        }
        reply = follower.receive(files.piece(place, 1 << 10).unwrap()).unwrap();
    }
    follower.install(&follower.received().unwrap()).unwrap();
    expected.go_on(&follower, 200).unwrap();
    // The slots of the state and the snapshot of before have given their space back.
    let used = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let used = used.filter(|path| path.is_dir() && fs::read_dir(path).unwrap().next().is_some()).count();
    assert_eq!(used, 2, "the slots of the state and of its snapshot");
    drop(follower);
    let follower = open(&directory);
    assert_eq!(hash(&follower.database()), *expected.hashes.last().unwrap());
    assert_eq!(follower.snapshot().unwrap().manifest(), files.manifest());
    // A machine that is open is not opened again.
    let again = StateMachine::open(&directory, key_value(), StateOptions::default()).err();
    assert!(matches!(again, Some(crate::Error::Database(esker::Error::Locked { .. }))), "{again:?}");
    leader.database().db().verify().unwrap();
}
