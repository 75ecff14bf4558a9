//! Snapshots: sent piece by piece over a line that breaks, and installed in one step.

use super::history::{Expected, hash, key_value, options};
use super::world::{images, random, seed, small};
use crate::{Error, KeyValue, Place, SnapshotFiles, SnapshotManifest, StateMachine, TransferReply, TransferRequest};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use rand::RngExt;
use std::io::ErrorKind;
use std::sync::Arc;

const PIECE: usize = 100;

fn open(env: &MemEnv) -> crate::Result<StateMachine<KeyValue>> {
    open_on(Arc::new(env.clone()))
}

fn open_on(env: Arc<dyn Env>) -> crate::Result<StateMachine<KeyValue>> {
    StateMachine::open("state", key_value(), options(env, small()))
}

/// A machine that has applied so many entries, durably.
fn machine(env: &MemEnv, expected: &Expected, entries: usize) -> StateMachine<KeyValue> {
    let machine = open(env).unwrap();
    for entry in &expected.entries[..entries] {
        machine.apply(entry).unwrap();
    }
    machine.database().db().sync().unwrap();
    machine
}

/// Sends until the other side has everything; the bytes that were sent.
fn send(from: &SnapshotFiles, to: &StateMachine<KeyValue>) -> crate::Result<u64> {
    let mut sent = 0;
    let mut reply = to.receive(from.begin())?;
    while let TransferReply::Wanted(place) = reply {
        let piece = from.piece(place, PIECE)?;
        if let TransferRequest::Piece { bytes, .. } = &piece {
            sent += bytes.len() as u64;
        }
        reply = to.receive(piece)?;
    }
    assert_eq!(reply, TransferReply::Complete);
    Ok(sent)
}

#[test]
fn a_snapshot_is_received_over_a_line_that_breaks_and_a_replica_that_restarts() {
    let seed = seed(21);
    let expected = Expected::of(seed, 200);
    let (leader_disk, disk) = (MemEnv::new(), MemEnv::new());
    let files = machine(&leader_disk, &expected, 150).build().unwrap();
    let mut random = random(seed);
    let mut follower = machine(&disk, &expected, 20);
    let (mut sent, mut last) = (0, None);
    let mut reply = follower.receive(files.begin()).unwrap();
    let mut restarts = 0;
    while let TransferReply::Wanted(place) = reply {
        let piece = files.piece(place, PIECE).unwrap();
        match random.random_range(0..10) {
            // Lost.
            0 => {}
            // Comes twice, and one from before comes again.
            1 => {
                follower.receive(piece.clone()).unwrap();
                follower.receive(piece.clone()).unwrap();
                follower.receive(last.clone().unwrap_or_else(|| piece.clone())).unwrap();
            }
            _ => {
                follower.receive(piece.clone()).unwrap();
            }
        }
        sent += PIECE as u64;
        last = Some(piece);
        if sent > (restarts + 1) * files.manifest().bytes() / 5 && restarts < 4 {
            restarts += 1;
            drop(follower);
            follower = open(&disk).unwrap();
        }
        // The connection is made anew each time.
        reply = follower.receive(files.begin()).unwrap();
    }
    // Each restart costs at most the file that was on its way.
    let largest = files.manifest().files().iter().map(|file| file.bytes).max().unwrap();
    let most = 2 * files.manifest().bytes() + restarts * largest;
    assert!(restarts == 4 && sent < most, "{restarts} restarts, {sent} bytes, at most {most}");
    let received = follower.received().unwrap();
    assert_eq!(received.manifest(), files.manifest());
    follower.install(&received).unwrap();
    expected.check(&follower.database(), 150, 150).unwrap();
    expected.go_on(&follower, 150).unwrap();
    // It can be sent on.
    let third = open(&MemEnv::new()).unwrap();
    assert_eq!(send(&follower.snapshot().unwrap(), &third).unwrap(), files.manifest().bytes());
    third.install(&third.received().unwrap()).unwrap();
    expected.go_on(&third, 150).unwrap();
}

#[test]
fn a_restart_keeps_the_files_that_were_whole() {
    let expected = Expected::of(seed(22), 150);
    let files = machine(&MemEnv::new(), &expected, 150).build().unwrap();
    let count = files.manifest().files().len() as u32;
    assert!(count > 4, "{count} files");
    let disk = MemEnv::new();
    let follower = open(&disk).unwrap();
    let mut reply = follower.receive(files.begin()).unwrap();
    while let TransferReply::Wanted(place) = reply
        && (place.file, place.offset) < (count / 2, 1)
    {
        reply = follower.receive(files.piece(place, PIECE).unwrap()).unwrap();
    }
    drop(follower);
    let follower = open(&disk).unwrap();
    let begun = follower.receive(files.begin()).unwrap();
    assert_eq!(begun, TransferReply::Wanted(Place { file: count / 2, offset: 0 }));
    // A newer snapshot that has the same file need not send it again.
    let before: u64 = files.manifest().files()[..(count / 2) as usize].iter().map(|file| file.bytes).sum();
    assert_eq!(send(&files, &follower).unwrap() + before, files.manifest().bytes());
}

/// A file of a snapshot of which a part has arrived, and which cannot be read, comes again; no
/// other does.
#[test]
fn a_file_that_has_arrived_and_cannot_be_read_is_received_again() {
    let expected = Expected::of(seed(29), 150);
    let files = machine(&MemEnv::new(), &expected, 150).build().unwrap();
    let sent = files.manifest().files();
    let half = sent.len() / 2;
    // The state of the receiver has none of that name.
    let unreadable = sent[..half].iter().rposition(|file| file.name.ends_with(".table")).unwrap();
    for class in [Class::Open, Class::Read] {
        let disk = MemEnv::new();
        let follower = open(&disk).unwrap();
        let mut reply = follower.receive(files.begin()).unwrap();
        while let TransferReply::Wanted(place) = reply
            && (place.file as usize) < half
        {
            reply = follower.receive(files.piece(place, PIECE).unwrap()).unwrap();
        }
        drop(follower);
        let faulty = FaultEnv::new(Arc::new(disk));
        let fails = Action::Fail(ErrorKind::Other);
        faulty.add(Rule::new(class, 0, fails).on_names_with(&sent[unreadable].name).from_then_on());
        let follower = open_on(Arc::new(faulty.clone())).unwrap();
        assert_eq!(faulty.fired(), 1, "{class:?}");
        faulty.clear();
        let wanted = TransferReply::Wanted(Place { file: unreadable as u32, offset: 0 });
        assert_eq!(follower.receive(files.begin()).unwrap(), wanted, "{class:?}");
        let missing = sent[unreadable].bytes + sent[half..].iter().map(|file| file.bytes).sum::<u64>();
        assert_eq!(send(&files, &follower).unwrap(), missing, "{class:?}");
        follower.install(&follower.received().unwrap()).unwrap();
        expected.check(&follower.database(), 150, 150).unwrap();
    }
}

/// Seen: a copy of a state that was receiving a snapshot, of which no file had arrived, did not
/// open where the copy has no empty directories: "cannot list state/slot-1" (seed 12303).
#[test]
fn a_copy_without_the_empty_directory_of_a_snapshot_that_was_to_come_opens() {
    let expected = Expected::of(seed(24), 150);
    let files = machine(&MemEnv::new(), &expected, 150).build().unwrap();
    let disk = MemEnv::new();
    let follower = open(&disk).unwrap();
    follower.receive(files.begin()).unwrap();
    let coming: Vec<_> = disk.files().into_iter().filter(|path| path.starts_with("state/slot-1")).collect();
    assert!(!coming.is_empty(), "{:?}", disk.files());
    let copy = MemEnv::new();
    for path in disk.files().into_iter().filter(|path| !coming.contains(path) && !path.ends_with("LOCK")) {
        copy.set_file_bytes(&path, disk.file_bytes(&path).unwrap());
    }
    let copied = open(&copy).unwrap();
    send(&files, &copied).unwrap();
    copied.install(&copied.received().unwrap()).unwrap();
    expected.check(&copied.database(), 150, 150).unwrap();
}

#[test]
fn a_damaged_piece_is_noticed_and_sent_again() {
    let expected = Expected::of(seed(23), 120);
    let files = machine(&MemEnv::new(), &expected, 120).build().unwrap();
    let follower = open(&MemEnv::new()).unwrap();
    let (mut reply, mut noticed, mut pieces) = (follower.receive(files.begin()).unwrap(), 0, 0);
    while let TransferReply::Wanted(place) = reply {
        let mut piece = files.piece(place, PIECE).unwrap();
        pieces += 1;
        if let TransferRequest::Piece { bytes, .. } = &mut piece
            && pieces % 40 == 0
            && noticed < 5
        {
            bytes[0] ^= 1;
        }
        reply = match follower.receive(piece) {
            Ok(reply) => reply,
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                noticed += 1;
                follower.receive(files.begin()).unwrap()
            }
        };
        assert!(pieces < 100_000, "it never ends");
    }
    assert!(noticed > 0);
    follower.install(&follower.received().unwrap()).unwrap();
    expected.check(&follower.database(), 120, 120).unwrap();
}

#[test]
fn a_manifest_that_names_other_directories_is_refused() {
    let expected = Expected::of(1, 30);
    let files = machine(&MemEnv::new(), &expected, 30).build().unwrap();
    let encoded = postcard::to_stdvec(files.manifest()).unwrap();
    let follower = open(&MemEnv::new()).unwrap();
    for name in ["../evil", "/CURRENT", "..RRENT", "LOCK\0NT", "CURRE/T"] {
        let at = encoded.windows(7).position(|window| window == b"CURRENT").unwrap();
        let mut changed = encoded.clone();
        changed[at..at + 7].copy_from_slice(&name.as_bytes()[..7]);
        let manifest: SnapshotManifest = postcard::from_bytes(&changed).unwrap();
        let error = follower.receive(TransferRequest::Begin { manifest }).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{name}: {error}");
    }
    assert_eq!(
        follower.receive(files.piece(Place { file: 0, offset: 0 }, 10).unwrap()).unwrap(),
        TransferReply::Unknown
    );
}

#[test]
fn readers_of_the_old_state_and_the_old_snapshot_read_on() {
    let expected = Expected::of(seed(24), 160);
    let leader = machine(&MemEnv::new(), &expected, 160);
    let files = leader.build().unwrap();
    let follower = machine(&MemEnv::new(), &expected, 60);
    let old_snapshot = follower.build().unwrap();
    let old_state = follower.database();
    // Handles of the engine that outlive what they came from.
    let (db, names) = (old_state.db().clone(), old_state.keyspaces()["names"].clone());
    send(&files, &follower).unwrap();
    follower.install(&follower.received().unwrap()).unwrap();
    follower.build().unwrap();
    assert_eq!(hash(&old_state), expected.hashes[60]);
    let other = open(&MemEnv::new()).unwrap();
    send(&old_snapshot, &other).unwrap();
    other.install(&other.received().unwrap()).unwrap();
    expected.check(&other.database(), 60, 60).unwrap();
    expected.check(&follower.database(), 160, 160).unwrap();
    let before: Vec<_> = names.iter().map(|pair| pair.unwrap()).collect();
    drop(old_state);
    for _ in 0..3 {
        follower.install(&follower.snapshot().unwrap()).unwrap();
    }
    assert_eq!(names.iter().map(|pair| pair.unwrap()).collect::<Vec<_>>(), before);
    db.verify().unwrap();
}

/// Receives and installs a snapshot of 70 entries on a machine that has 20, until something fails.
fn receive_until_it_fails(files: &SnapshotFiles, machine: crate::Result<StateMachine<KeyValue>>) -> crate::Result<()> {
    let machine = machine?;
    send(files, &machine)?;
    let received = machine.received().ok_or(Error::Interrupted)?;
    machine.install(&received)
}

/// What is left is the old state or the new one, whole; the snapshot is then received to its end.
fn check_and_receive(expected: &Expected, files: &SnapshotFiles, image: &MemEnv) -> Result<usize, String> {
    let machine = open(image).map_err(|error| format!("it does not open: {error}"))?;
    let applied = expected.check(&machine.database(), 20, 70)?;
    if applied != 20 && applied != 70 {
        return Err(format!("{applied} entries are applied"));
    }
    receive_until_it_fails(files, Ok(machine.clone())).map_err(|error| error.to_string())?;
    expected.check(&machine.database(), 70, 70)?;
    expected.go_on(&machine, 70).map(|()| applied)
}

#[test]
fn a_power_loss_at_any_call_of_an_installation_leaves_the_old_state_or_the_new_one() {
    let seed = seed(25);
    let expected = Expected::of(seed, 90);
    let files = machine(&MemEnv::new(), &expected, 70).build().unwrap();
    let prepared = MemEnv::new();
    drop(machine(&prepared, &expected, 20));
    let whole = prepared.kill();
    receive_until_it_fails(&files, open(&whole)).unwrap();
    let (calls, mut found) = (whole.mutations(), [0, 0]);
    for call in 0..calls {
        let disk = prepared.kill();
        disk.crash_after(call);
        assert!(receive_until_it_fails(&files, open(&disk)).is_err() || call + 1 >= calls);
        for image in images(&disk, seed ^ call) {
            let applied = check_and_receive(&expected, &files, &image);
            let applied = applied.unwrap_or_else(|what| panic!("power loss at call {call} of {calls}: {what}"));
            found[usize::from(applied == 70)] += 1;
        }
    }
    println!("{} images with the old state, {} with the new one", found[0], found[1]);
    assert!(found[0] > 100 && found[1] > 0, "{found:?}");
}

#[test]
fn an_error_of_any_call_of_an_installation_leaves_the_old_state_or_the_new_one() {
    let expected = Expected::of(seed(26), 90);
    let files = machine(&MemEnv::new(), &expected, 70).build().unwrap();
    let prepared = MemEnv::new();
    drop(machine(&prepared, &expected, 20));
    let mut runs = 0;
    for action in [Action::Fail(ErrorKind::Other), Action::FailAfter(ErrorKind::Other)] {
        for call in 0.. {
            let disk = prepared.kill();
            let faulty = FaultEnv::new(Arc::new(disk.clone()));
            faulty.add(Rule::new(Class::Any, call, action));
            // Whether it fails, or did without the call, what it leaves is whole.
            let _ = receive_until_it_fails(&files, open_on(Arc::new(faulty.clone())));
            if faulty.fired() == 0 {
                break;
            }
            runs += 1;
            for image in [disk.kill(), disk.crash(&CrashMode::LoseAll, 0)] {
                let applied = check_and_receive(&expected, &files, &image);
                applied.unwrap_or_else(|what| panic!("{action:?} at call {call}: {what}"));
            }
        }
    }
    println!("{runs} runs with an error");
    assert!(runs > 200, "{runs} runs");
}

/// Goes on in the process in which something failed. It may refuse what would change the slots, but
/// what it leaves after each step is whole. Whether it refuses nothing.
fn go_on_after_an_error(
    machine: &StateMachine<KeyValue>,
    disk: &MemEnv,
    expected: &Expected,
    files: &SnapshotFiles,
) -> Result<bool, String> {
    let check = |step: &str| {
        for image in [disk.kill(), disk.crash(&CrashMode::LoseAll, 0)] {
            let opened = open(&image).map_err(|error| format!("after {step} it does not open: {error}"))?;
            expected.check(&opened.database(), 20, 70).map_err(|what| format!("after {step}: {what}"))?;
        }
        expected.check(&machine.database(), 20, 70).map_err(|what| format!("after {step}, still open: {what}"))
    };
    check("the error")?;
    let built = machine.build();
    check("building")?;
    let received = receive_until_it_fails(files, Ok(machine.clone()));
    let applied = check("receiving")?;
    if received.is_ok() && applied != 70 {
        return Err(format!("{applied} entries are applied"));
    }
    Ok(built.is_ok() && received.is_ok())
}

#[test]
fn a_machine_goes_on_after_an_error_of_any_call() {
    let expected = Expected::of(seed(28), 90);
    let files = machine(&MemEnv::new(), &expected, 70).build().unwrap();
    // It shares files with the next one, so that the slot of what has arrived is used again.
    let earlier = machine(&MemEnv::new(), &expected, 50).build().unwrap();
    let prepared = MemEnv::new();
    drop(machine(&prepared, &expected, 20));
    let (mut runs, mut went_on) = (0, 0);
    for (action, is_second) in [Action::Fail(ErrorKind::StorageFull), Action::FailAfter(ErrorKind::Other)]
        .into_iter()
        .flat_map(|action| [(action, false), (action, true)])
    {
        for call in 0.. {
            let disk = prepared.kill();
            let faulty = FaultEnv::new(Arc::new(disk.clone()));
            let machine = open_on(Arc::new(faulty.clone())).unwrap();
            if is_second {
                machine.receive(earlier.begin()).unwrap();
            }
            faulty.add(Rule::new(Class::Any, call, action));
            let _ = receive_until_it_fails(&files, Ok(machine.clone()));
            if faulty.fired() == 0 {
                break;
            }
            runs += 1;
            let ended = go_on_after_an_error(&machine, &disk, &expected, &files);
            went_on += u64::from(ended.unwrap_or_else(|what| panic!("{action:?} at call {call}, {is_second}: {what}")));
        }
    }
    println!("{runs} runs with an error, {went_on} went on");
    assert!(runs > 200 && went_on > 100, "{runs} runs, {went_on} went on");
}

#[test]
fn a_snapshot_that_did_not_arrive_is_not_said_to_be_complete() {
    let expected = Expected::of(seed(29), 90);
    let files = machine(&MemEnv::new(), &expected, 70).build().unwrap();
    let prepared = MemEnv::new();
    drop(machine(&prepared, &expected, 20));
    let (mut runs, mut went_on) = (0, 0);
    for class in [Class::Append, Class::Create, Class::Sync, Class::SyncDir] {
        for call in 0.. {
            let faulty = FaultEnv::new(Arc::new(prepared.kill()));
            let machine = open_on(Arc::new(faulty.clone())).unwrap();
            // The device fails, and then takes no more files, either.
            let failure = Action::Fail(ErrorKind::StorageFull);
            faulty.add(Rule::new(class, call, failure).from_then_on());
            let is_begun = machine.receive(files.begin()).is_ok();
            if is_begun && matches!(class, Class::Append | Class::Sync) {
                faulty.add(Rule::new(Class::Create, 0, failure).from_then_on());
            }
            let sent = send(&files, &machine);
            let again = machine.receive(files.begin());
            let is_complete = matches!(again, Ok(TransferReply::Complete));
            assert_eq!(is_complete, machine.received().is_some(), "{class:?} {call}: {sent:?}, {again:?}");
            let fired = faulty.fired();
            faulty.clear();
            runs += 1;
            if is_begun {
                send(&files, &machine).unwrap();
                machine.install(&machine.received().unwrap()).unwrap();
                expected.check(&machine.database(), 70, 70).unwrap();
                went_on += 1;
            }
            if fired == 0 || call > 40 {
                break;
            }
        }
    }
    println!("{runs} runs with an error, {went_on} went on");
    assert!(runs > 40 && went_on > 30, "{runs} runs, {went_on} went on");
}

#[test]
fn what_a_killed_process_had_written_is_durable_when_it_counts() {
    let seed = seed(30);
    let expected = Expected::of(seed, 90);
    let files = machine(&MemEnv::new(), &expected, 70).build().unwrap();
    let prepared = MemEnv::new();
    drop(machine(&prepared, &expected, 20));
    let whole = prepared.kill();
    receive_until_it_fails(&files, open(&whole)).unwrap();
    let calls = whole.mutations();
    for call in 0..calls {
        let disk = prepared.kill();
        disk.crash_after(call);
        let _ = receive_until_it_fails(&files, open(&disk));
        // What the process wrote is there; none of it has to be durable.
        let next = disk.kill();
        receive_until_it_fails(&files, open(&next)).unwrap();
        for image in images(&next, seed ^ call) {
            let what = format!("killed at call {call} of {calls}");
            let machine = open(&image).unwrap_or_else(|error| panic!("{what}: {error}"));
            expected.check(&machine.database(), 70, 70).unwrap_or_else(|error| panic!("{what}: {error}"));
            // The files of the snapshot, too.
            let third = open(&MemEnv::new()).unwrap();
            let sent = send(&machine.snapshot().unwrap(), &third);
            sent.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

#[test]
fn a_name_that_is_too_long_for_a_file_is_refused() {
    let expected = Expected::of(1, 30);
    let files = machine(&MemEnv::new(), &expected, 30).build().unwrap();
    let manifest = |name: &str| -> SnapshotManifest {
        let encoded = postcard::to_stdvec(files.manifest()).unwrap();
        let at = encoded.windows(7).position(|window| window == b"CURRENT").unwrap();
        // The length stands before the name.
        let length = postcard::to_stdvec(&(name.len() as u64)).unwrap();
        let changed = [&encoded[..at - 1], &length, name.as_bytes(), &encoded[at + 7..]].concat();
        postcard::from_bytes(&changed).unwrap()
    };
    for length in [1, 7, 255, 256, 300, 4096] {
        // In its place, which is before other names.
        let checked = manifest(&"C".repeat(length)).check();
        assert_eq!(checked.is_ok(), length <= 255, "{length}: {checked:?}");
    }
}

#[test]
fn a_snapshot_reads_only_what_the_one_before_did_not_have() {
    let expected = Expected::of(seed(27), 400);
    let disk = MemEnv::new();
    let counting = FaultEnv::new(Arc::new(disk));
    let machine = open_on(Arc::new(counting.clone())).unwrap();
    for entry in &expected.entries[..390] {
        machine.apply(entry).unwrap();
    }
    let first = machine.build().unwrap();
    for entry in &expected.entries[390..] {
        machine.apply(entry).unwrap();
    }
    let second = machine.build().unwrap();
    let same = second.manifest().files().iter().filter(|file| first.manifest().files().contains(file));
    let tables = same.filter(|file| file.name.ends_with(".table") || file.name.ends_with(".blob")).count();
    assert!(tables > 0, "{:?}", second.manifest());
    // What was taken from the manifest before is what the bytes hash to.
    for file in second.manifest().files() {
        let path = second.slot().path().join(&file.name);
        assert_eq!(crate::manifest::hash_of(&counting, &path).unwrap(), file.hash, "{}", file.name);
    }
}

#[test]
fn a_snapshot_that_is_older_than_the_state_is_not_installed() {
    let expected = Expected::of(seed(41), 90);
    let leader = machine(&MemEnv::new(), &expected, 40);
    let files = leader.build().unwrap();
    let disk = MemEnv::new();
    let follower = machine(&disk, &expected, 41);
    send(&files, &follower).unwrap();
    let refused = follower.install(&follower.received().unwrap());
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    expected.check(&follower.database(), 41, 41).unwrap();
    // One of the same entry may be.
    leader.apply(&expected.entries[40]).unwrap();
    send(&leader.build().unwrap(), &follower).unwrap();
    follower.install(&follower.received().unwrap()).unwrap();
    expected.go_on(&follower, 41).unwrap();
}

#[test]
fn a_state_whose_database_is_gone_is_damaged_and_not_begun_anew() {
    let expected = Expected::of(seed(42), 30);
    let disk = MemEnv::new();
    drop(machine(&disk, &expected, 30));
    let slot = std::path::Path::new("state/slot-0");
    for name in disk.list(slot).unwrap() {
        disk.remove(&slot.join(name)).unwrap();
    }
    let opened = open(&disk);
    assert!(opened.is_err(), "it has {:?}", opened.map(|machine| machine.database().applied().0).ok());
    assert!(!disk.exists(&slot.join("CURRENT")).unwrap());
}
