//! What a repair reads of a damaged log, and what it reports.

use super::format::{HEADER_BYTES, Link, RECORD_HEADER_BYTES, RecordType};
use super::replay_test::{
    FIRST, FULL, append, changed, check_place, damage, flipped, forged, link, maker, path, payload_of, start,
};
use super::salvage::{Known, SalvagedLog, salvage};
use super::segment::Position;
use super::writer::Inherited;
use crate::env::Env;
use crate::env::mem::MemEnv;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of a segment that is forged.
const SEGMENT_BYTES: usize = 1 << 10;
/// Where its first batch ends.
const FIRST_END: u64 = FIRST as u64 + 64;

/// A record of a forged segment.
type Forged = (RecordType, u64, Vec<u8>);

fn batch(sequence: u64) -> Forged {
    (RecordType::Batch, sequence, vec![sequence as u8; 40])
}

fn link_to(previous_number: u64, previous_end: u64) -> Forged {
    (RecordType::Link, 0, link(previous_number, previous_end))
}

/// Forges a segment, in the file of its number.
fn forge(env: &MemEnv, number: u64, records: &[Forged]) {
    env.set_file_bytes(&path(number), forged(number, SEGMENT_BYTES, records));
}

/// The sequence numbers that are read, and the rest.
fn salvaged(env: &MemEnv, floor: u64) -> (Vec<u64>, SalvagedLog) {
    salvaged_up_to(env, floor, Position::default())
}

fn salvaged_up_to(env: &MemEnv, floor: u64, vouched: Position) -> (Vec<u64>, SalvagedLog) {
    salvaged_by(env, Known { floor, vouched, in_tables: 0 })
}

fn salvaged_by(env: &MemEnv, known: Known) -> (Vec<u64>, SalvagedLog) {
    let mut found = Vec::new();
    let log = salvage(&maker(Arc::new(env.clone())), known, &mut |record| {
        check_place(env, &record);
        found.push(record.sequence);
        Ok(record.sequence)
    });
    (found, log.expect("no fault is set"))
}

/// Where problems are, and what they are.
fn problems(log: &SalvagedLog) -> Vec<(PathBuf, &str)> {
    log.problems.iter().map(|problem| (problem.path.clone(), problem.what.as_str())).collect()
}

#[test]
fn a_log_of_no_segments_is_lost_only_if_one_is_needed() {
    let env = MemEnv::new();
    env.create_dir_all(Path::new("/db")).expect("no fault is set");
    let (_, log) = salvaged(&env, 0);
    assert!(!log.beginning_lost && log.problems.is_empty());
    let (_, log) = salvaged(&env, 1);
    assert!(log.beginning_lost);
    assert_eq!(problems(&log), [(PathBuf::from("/db"), "log segment 1 is missing, and there is no later one")]);
}

#[test]
fn a_file_of_a_wrong_length_is_reported() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=2);
    let (found, log) = salvaged(&env, 1);
    assert_eq!((found, problems(&log), log.newest, log.highest_number), (vec![1, 2], vec![], 1, 1));
    let (_, log) = salvaged(&changed(&env, 9, Vec::clear), 1);
    assert_eq!((problems(&log), log.highest_number), (vec![], 9));
    let (found, log) = salvaged(&changed(&env, 9, |short| short.resize(50, 1)), 1);
    assert_eq!((found, problems(&log)), (vec![1, 2], vec![(path(9), "the file is too short for a log segment")]));
    let (found, log) = salvaged(&changed(&env, 1, |bytes| bytes.resize(2000, 1)), 1);
    let what = "the segment should have 1024 bytes, the file has 2000";
    assert_eq!((found, problems(&log)), (vec![1, 2], vec![(path(1), what)]));
    // No longer than its link.
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), forged(1, FIRST, &[(RecordType::Link, 0, link(0, 0))]));
    let (_, log) = salvaged(&env, 1);
    assert_eq!((problems(&log), log.newest), (vec![], 1));
}

#[test]
fn a_damaged_link_is_reported_if_it_was_synced() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=FULL as u64 + 1);
    let (found, salvaged_log) = salvaged(&flipped(&env, 2, HEADER_BYTES), 1);
    assert_eq!((found, problems(&salvaged_log)), ((1..=FULL as u64).collect(), vec![]));
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, FULL as u64 + 2..=FULL as u64 + 2);
    let (found, log) = salvaged(&flipped(&env, 2, HEADER_BYTES), 1);
    let expected = vec![(path(2), "the segment's link does not verify")];
    assert_eq!((found, problems(&log)), ((1..=FULL as u64).collect(), expected));
}

#[test]
fn a_segment_with_a_damaged_header_is_reported_and_read() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let (two, three) = (2 * FULL as u64, 3 * FULL as u64);
    append(&mut log, 1..=two + 1);
    let (found, salvaged_log) = salvaged(&flipped(&env, 3, 0), 1);
    let expected = vec![(path(3), "the header of log segment 3 is broken")];
    assert_eq!((found, problems(&salvaged_log)), ((1..=two + 1).collect(), expected));
    // In a file of another name.
    log.shared().sync_link(3).expect("no fault is set");
    assert!(log.shared().release(3, usize::MAX).is_empty());
    append(&mut log, two + 2..=three + 1);
    let holds = |file: u64| env.file_bytes(&path(file)).is_some_and(|bytes| bytes[16..24] == 4u64.to_le_bytes());
    let file = (1..=2).find(|&file| holds(file)).expect("a file is used again");
    let (found, log) = salvaged(&flipped(&env, file, 0), 3);
    let expected = vec![(path(file), "the header of log segment 4 is broken")];
    assert_eq!((found, problems(&log), log.newest), ((two + 1..=three + 1).collect(), expected, 4));
}

/// Found in a review. Trigger: a lost manifest and a broken header, in a database that had been
/// through 65,536 segments. Cost: the repair said nothing of the segment, and lost its writes.
#[test]
fn a_damaged_header_of_a_segment_with_a_large_number_is_found_without_a_floor() {
    let number = 1 << 20;
    let first = [link_to(0, 0), batch(1)];
    let env = MemEnv::new();
    forge(&env, number, &first);
    forge(&env, number + 1, &[link_to(number, FIRST_END), batch(2)]);
    let (found, log) = salvaged(&flipped(&env, number + 1, 0), 0);
    let what = "the header of log segment 1048577 is broken";
    assert_eq!((found, problems(&log)), (vec![1, 2], vec![(path(number + 1), what)]));
    // Nor does a name far above hide one of a young log.
    let young = MemEnv::new();
    forge(&young, 1, &first);
    let (found, log) = salvaged(&flipped(&changed(&young, number << 20, Vec::clear), 1, 0), 0);
    assert_eq!((found, problems(&log)), (vec![1], vec![(path(1), "the header of log segment 1 is broken")]));
}

#[test]
fn of_two_files_of_one_segment_the_longer_is_read() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=3);
    let copy = env.file_bytes(&path(1)).expect("it was made");
    let both = changed(&env, 8, |bytes| *bytes = copy);
    let read = |env: &MemEnv| {
        let (found, log) = salvaged(env, 1);
        (found, log.problems.into_iter().map(|problem| problem.path).collect::<Vec<_>>())
    };
    assert_eq!(read(&both), (vec![1, 2, 3], vec![path(8)]), "the first of equal ones stays");
    assert_eq!(read(&flipped(&both, 8, payload_of(3))), (vec![1, 2, 3], vec![path(8)]));
    assert_eq!(read(&flipped(&both, 1, payload_of(3))), (vec![1, 2, 3], vec![path(1)]));
}

#[test]
fn a_log_is_read_up_to_the_damage_which_is_reported() {
    const UNVERIFIED: &str = "a log record does not verify; it and what follows is not replayed";
    const HOLE: &str = "not replayed: the log before it has a hole";
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=3);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, 4..=4);
    let read = |env: &MemEnv, floor| {
        let (found, log) = salvaged(env, floor);
        (found, log.problems.into_iter().map(|problem| (problem.path, problem.what)).collect::<Vec<_>>())
    };
    let problem = |file, what: &str| (path(file), what.to_owned());
    assert_eq!(read(&flipped(&env, 1, payload_of(2)), 1), (vec![1], vec![problem(1, UNVERIFIED)]));
    assert_eq!(read(&flipped(&env, 1, payload_of(4)), 1), (vec![1, 2, 3], vec![]), "a torn end");
    let (two, all) = (2 * FULL as u64, 2 * FULL as u64 + 1);
    append(&mut log, 5..=all);
    let expected = vec![problem(1, UNVERIFIED), problem(2, HOLE), problem(3, HOLE)];
    assert_eq!(read(&flipped(&env, 1, payload_of(FULL)), 1), ((1..FULL as u64).collect(), expected));
    log.close().expect("no fault is set");
    assert_eq!(read(&env, 1), ((1..=all).collect(), vec![]));
    // Without a segment, what comes before it is read; where the first one that is needed is not
    // known, what comes behind it.
    env.remove(&path(2)).expect("it is there");
    let missing = (PathBuf::from("/db"), "log segment 2 is missing".to_owned());
    assert_eq!(read(&env, 1), ((1..=FULL as u64).collect(), vec![missing, problem(3, HOLE)]));
    assert_eq!(read(&env, 0), ((two + 1..=all).collect(), vec![]));
}

#[test]
fn a_hole_of_which_tables_have_all_is_not_the_end() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let (full, two, all) = (FULL as u64, 2 * FULL as u64, 2 * FULL as u64 + 2);
    append(&mut log, 1..=two + 1);
    log.shared().sync_all().expect("no fault is set");
    // Says that what is before it was synced.
    append(&mut log, all..=all);
    let read = |env: &MemEnv, floor, in_tables| {
        let (found, log) = salvaged_by(env, Known { floor, in_tables, ..Known::default() });
        (found, log.problems.iter().map(|problem| problem.is_in_tables).collect::<Vec<_>>())
    };
    let hole = flipped(&env, 1, payload_of(FULL - 1));
    for floor in 0..=1 {
        assert_eq!(read(&hole, floor, full - 1), ((1..full - 1).collect(), vec![false; 3]));
        assert_eq!(read(&hole, floor, full), ((1..full - 1).chain(full + 1..=all).collect(), vec![true]));
    }
    // Another one begins the segment behind it.
    let first_gone = flipped(&hole, 2, payload_of(1));
    assert_eq!(read(&first_gone, 1, two - 1), ((1..full - 1).collect(), vec![true, false, false]));
    assert_eq!(read(&first_gone, 1, two), ((1..full - 1).chain(two + 1..=all).collect(), vec![true; 2]));
    // Behind the last write nothing says how far it goes.
    let last = flipped(&env, 3, payload_of(1));
    assert_eq!(read(&last, 1, u64::MAX), ((1..=two).collect(), vec![false]));
}

/// Seen: a repair reported success, and the open behind it "says to be log segment 1 too". Trigger:
/// a write of the device that went to another segment's file. Cost: a second repair did not help.
#[test]
fn a_file_that_says_to_be_another_segment_is_reported() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=2);
    let whole = env.file_bytes(&path(1)).expect("a segment");
    let with_header_alone = |env: &MemEnv, file| {
        changed(env, file, |bytes| {
            *bytes = whole.clone();
            bytes[HEADER_BYTES..].fill(0);
        })
    };
    let env = with_header_alone(&env, 7);
    let (found, log) = salvaged(&env, 1);
    let what = "another file says to be log segment 1 too";
    assert_eq!((found, problems(&log)), (vec![1, 2], vec![(path(7), what)]));
    // Of two that were never used one stays.
    let (found, log) = salvaged(&with_header_alone(&env, 1), 1);
    assert_eq!((found, problems(&log)[..1].to_vec()), (vec![], vec![(path(7), what)]));
}

/// As a start leaves it that has given up every segment from the floor on, until the manifest names
/// its own.
#[test]
fn a_link_that_leads_below_the_floor_is_not_followed() {
    let env = MemEnv::new();
    forge(&env, 1, &[link_to(0, 0), batch(1)]);
    forge(&env, 3, &[link_to(1, FIRST_END), batch(2)]);
    let (found, log) = salvaged(&env, 2);
    assert_eq!((found, problems(&log), log.newest), (vec![2], vec![], 3));
}

/// As when the large value behind it was not there: a recovery has ended the log before it.
#[test]
fn an_intact_record_behind_the_end_that_the_next_link_tells_stays_out() {
    let env = MemEnv::new();
    forge(&env, 1, &[link_to(0, 0), batch(1), batch(2)]);
    forge(&env, 2, &[link_to(1, FIRST_END), batch(2)]);
    let (found, log) = salvaged(&env, 1);
    assert_eq!((found, problems(&log)), (vec![1, 2], vec![]));
}

/// As behind a repair whose manifest is not current yet, and behind an open with nothing to replay.
#[test]
fn a_segment_whose_end_no_link_tells_is_read_as_far_as_it_is_intact() {
    let env = MemEnv::new();
    forge(&env, 1, &[link_to(0, 0), batch(1)]);
    forge(&env, 2, &[link_to(1, 0), batch(2)]);
    for floor in [0, 1] {
        let (found, log) = salvaged(&env, floor);
        assert_eq!((found, problems(&log)), (vec![1, 2], vec![]), "floor {floor}");
    }
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=3);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, 4..=4);
    forge(&env, 2, &[link_to(1, 0), batch(5)]);
    let damaged = flipped(&env, 1, payload_of(2));
    // Where the manifest is lost it may be in tables: damage in it does not end the log.
    let (found, log) = salvaged(&damaged, 0);
    assert_eq!((found, problems(&log)), (vec![1, 5], vec![]));
    // Where it is needed, it ends it.
    let (found, log) = salvaged(&damaged, 1);
    let expected = vec![
        (path(1), "a log record does not verify; it and what follows is not replayed"),
        (path(2), "not replayed: the log before it has a hole"),
    ];
    assert_eq!((found, problems(&log)), (vec![1], expected));
}

/// As behind an open or a repair that was cut short, which took the end of the log into its own
/// segment: what was said of the end of the one before did not fit any more.
#[test]
fn segments_without_batches_at_the_end_are_left_out() {
    let env = MemEnv::new();
    forge(&env, 1, &[link_to(0, 0), batch(1)]);
    forge(&env, 2, &[link_to(1, 0)]);
    forge(&env, 3, &[link_to(2, 0)]);
    for floor in [0, 1] {
        let (found, log) = salvaged(&env, floor);
        assert_eq!((found, problems(&log)), (vec![1], vec![]), "floor {floor}");
        assert_eq!((log.end.0, log.newest, log.highest_number), (1, 3, 3), "floor {floor}");
    }
    // But for one that is known to be on the device.
    let (_, log) = salvaged_up_to(&env, 1, Position { segment: 2, offset: FIRST as u64 });
    assert_eq!((problems(&log), log.end), (vec![], (2, FIRST as u64)));
    // Nor one before it: a start that was cut short has given that up.
    env.set_file_bytes(&path(3), forged(3, SEGMENT_BYTES, &[link_to(1, FIRST_END)]));
    let (_, log) = salvaged_up_to(&env, 1, Position { segment: 2, offset: FIRST as u64 });
    assert_eq!((problems(&log), log.end), (vec![], (3, FIRST as u64)));
    // And for one whose only batch is damaged.
    let mut log = start(&env, Inherited { highest_number: 3, below_floor: 3, ..Inherited::default() });
    append(&mut log, 5..=6);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, 7..=7);
    let (found, log) = salvaged(&flipped(&env, 4, payload_of(1)), 1);
    let expected = vec![(path(4), "a log record does not verify; it and what follows is not replayed")];
    assert_eq!((found, problems(&log)), (vec![1], expected));
}

/// Nothing in the log tells that there was a record.
#[test]
fn damage_before_the_place_that_the_manifest_vouches_for_is_told() {
    let env = MemEnv::new();
    forge(&env, 1, &[link_to(0, 0), batch(1)]);
    forge(&env, 2, &[link_to(1, 0)]);
    let damaged = flipped(&env, 1, payload_of(1));
    for (offset, is_told) in [(FIRST as u64, false), (FIRST as u64 + 8, true)] {
        let (found, log) = salvaged_up_to(&damaged, 1, Position { segment: 1, offset });
        let told = (path(1), "a log record does not verify; it and what follows is not replayed");
        assert_eq!((found, problems(&log)), (vec![], if is_told { vec![told] } else { vec![] }), "{offset}");
    }
}

/// The batch for which a segment was begun is lost, and the link alone tells that the one before
/// was synced.
#[test]
fn what_the_link_of_a_segment_without_a_batch_vouches_for_is_missed() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=FULL as u64);
    log.shared().sync_all().expect("no fault is set");
    let next = FULL as u64 + 1;
    append(&mut log, next..=next);
    let damaged = flipped(&flipped(&env, 1, payload_of(1)), 2, payload_of(1));
    let (found, log) = salvaged(&damaged, 1);
    let expected = vec![(path(1), "a log record does not verify; it and what follows is not replayed")];
    assert_eq!((found, problems(&log)), (vec![], expected));
}

/// The segment between has no intact batch either, and did have.
#[test]
fn a_damaged_segment_before_a_segment_without_a_batch_is_not_left_out() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let last = 2 * FULL as u64;
    append(&mut log, 1..=last);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, last + 1..=last + 1);
    let damaged = flipped(&flipped(&env, 2, payload_of(1)), 3, payload_of(1));
    let (found, log) = salvaged(&damaged, 1);
    let expected = vec![(path(2), "a log record does not verify; it and what follows is not replayed")];
    assert_eq!((found, problems(&log)), ((1..=FULL as u64).collect(), expected));
}

/// Found in a review. Trigger: a lost manifest, and damage at the end of a segment behind which two
/// have nothing but their links. Cost: an open told of the loss, and the repair did not.
#[test]
fn what_the_link_behind_a_segment_without_a_batch_vouches_for_is_missed() {
    for (synced, is_told) in [(HEADER_BYTES as u64, false), (FIRST as u64, true)] {
        let env = MemEnv::new();
        let mut link = Vec::new();
        Link { previous_number: 2, previous_end: FIRST as u64, previous_synced: synced }.encode(&mut link);
        forge(&env, 1, &[link_to(0, 0), batch(1)]);
        forge(&env, 2, &[link_to(1, FIRST_END)]);
        forge(&env, 3, &[(RecordType::Link, 0, link)]);
        let damaged = flipped(&env, 1, payload_of(1));
        for floor in [0, 1] {
            let (found, log) = salvaged(&damaged, floor);
            let told = (path(1), "a log record does not verify; it and what follows is not replayed");
            let not_replayed = (path(2), "not replayed: the log before it has a hole");
            let expected = if is_told { vec![told, not_replayed] } else { vec![] };
            assert_eq!((found, problems(&log)), (vec![], expected), "{synced}, floor {floor}");
        }
    }
}

#[test]
fn a_segment_before_the_one_that_is_needed_does_not_stand_for_it() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=FULL as u64 + 1);
    log.shared().sync_link(2).expect("no fault is set");
    let (found, log) = salvaged(&flipped(&env, 2, HEADER_BYTES), 2);
    assert!(found.is_empty() && log.beginning_lost, "{found:?}");
    let last = problems(&log).pop();
    assert_eq!(last, Some((PathBuf::from("/db"), "log segment 2 is missing, and there is no later one")));
}

#[test]
fn a_batch_that_does_not_come_after_the_one_before_ends_what_is_read() {
    for sequence in [1, 2] {
        let env = MemEnv::new();
        forge(&env, 1, &[link_to(0, 0), batch(2), batch(sequence), batch(3)]);
        let (found, log) = salvaged(&env, 1);
        let expected = vec![(path(1), "writes out of order")];
        assert_eq!((found, problems(&log)), (vec![2], expected), "{sequence} behind 2");
    }
}

/// Records begin at multiples of 8. What is missing of the file is no part of the last one.
#[test]
fn a_file_that_was_cut_off_right_behind_a_payload_is_read_to_its_end() {
    let payload = vec![1; 41];
    let end = FIRST + RECORD_HEADER_BYTES + payload.len();
    let whole = forged(1, SEGMENT_BYTES, &[link_to(0, 0), (RecordType::Batch, 1, payload)]);
    for length in end..=end.next_multiple_of(8) {
        let env = MemEnv::new();
        env.set_file_bytes(&path(1), whole[..length].to_vec());
        let (found, log) = salvaged(&env, 1);
        let what = format!("the segment should have 1024 bytes, the file has {length}");
        assert_eq!((found, problems(&log)), (vec![1], vec![(path(1), what.as_str())]));
        assert_eq!(damage(&env, Position::default()).len(), 1, "{length} bytes");
    }
}
