//! What a reader behind the writer knows of later segments: it opens each a few times, and is not
//! led by what has changed since.

use super::format::RecordType;
use super::replay_test::{FIRST, FULL, append, check_place, forged, link, maker, path, start};
use super::segment::{Position, SegmentMaker, file_name};
use super::tail::{End, LogTail, Taken};
use super::writer::Inherited;
use crate::base::key::Sequence;
use crate::env::Env;
use crate::env::fault::{Action, Class, FaultEnv, Rule};
use crate::env::mem::MemEnv;
use std::io::ErrorKind;
use std::sync::Arc;

const SEGMENT_BYTES: usize = 1 << 10;
const PAYLOAD_BYTES: usize = 40;
/// How far records of this payload are apart.
const STEP: usize = 64;

/// A segment of these writes behind `previous`, whose records end behind so many.
fn segment(number: u64, (previous, writes): (u64, usize), sequences: &[Sequence]) -> Vec<u8> {
    let first = (RecordType::Link, 0, link(previous, (FIRST + writes * STEP) as u64));
    let batches = sequences.iter().map(|&sequence| (RecordType::Batch, sequence, vec![1; PAYLOAD_BYTES]));
    let records: Vec<_> = std::iter::once(first).chain(batches).collect();
    forged(number, SEGMENT_BYTES, &records)
}

/// A reader at the beginning of segment 1.
fn tail(env: Arc<dyn Env>) -> LogTail {
    let maker = SegmentMaker { read_only: true, ..maker(env) };
    let begun = LogTail::at(maker, Position { segment: 1, offset: 0 });
    begun.expect("no fault is set").expect("segment 1 is there")
}

/// The next writes, `until` the last, and where reading has ended.
fn read_on(tail: &mut LogTail, newest: Option<u64>, until: Sequence) -> (Vec<Sequence>, End) {
    let mut taken = Vec::new();
    let end = tail.read(newest, &mut |record, _| {
        if record.sequence > until {
            return Ok(Taken::NotYet);
        }
        taken.push(record.sequence);
        Ok(Taken::Yes)
    });
    (taken, end.expect("no fault is set"))
}

/// How often a file is opened until a log of so many segments is read, some writes at a time.
fn opens(segments: u64, newest: Option<u64>) -> u64 {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let writes = segments * FULL as u64;
    append(&mut log, 1..=writes);
    assert_eq!(log.position().segment, segments);
    let counted = FaultEnv::new(Arc::new(env.clone()));
    let mut tail = tail(Arc::new(counted.clone()));
    for first in (1..=writes).step_by(FULL) {
        let last = first + FULL as u64 - 1;
        let end = if last == writes { End::Reached } else { End::NotYet };
        assert_eq!(read_on(&mut tail, newest, last), ((first..=last).collect::<Vec<_>>(), end));
    }
    counted.calls(Class::Open)
}

/// Every later segment was opened at each step.
#[test]
fn a_log_is_read_with_opens_in_proportion_to_its_segments() {
    const SEGMENTS: u64 = 64;
    // Of another process, and of this one.
    for newest in [None, Some(SEGMENTS)] {
        let opens = opens(SEGMENTS, newest);
        assert!(opens <= 8 * SEGMENTS, "{opens} opens of {SEGMENTS} segments, newest: {newest:?}");
    }
}

#[test]
fn a_segment_that_is_known_is_passed_over_once_a_recovery_has_given_it_up() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1, 2]));
    env.set_file_bytes(&path(2), segment(2, (1, 2), &[3]));
    env.set_file_bytes(&path(3), segment(3, (2, 1), &[]));
    let mut tail = tail(Arc::new(env.clone()));
    let mut taken = Vec::new();
    let end = tail.read(None, &mut |record, _| {
        if record.sequence == 2 {
            env.set_file_bytes(&path(4), segment(4, (2, 1), &[4]));
        }
        taken.push(record.sequence);
        Ok(Taken::Yes)
    });
    assert_eq!((taken, end.expect("no fault is set")), (vec![1, 2, 3, 4], End::Reached));
}

#[test]
fn a_file_that_is_known_is_found_when_it_is_used_again() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1]));
    env.set_file_bytes(&path(2), segment(2, (1, 1), &[2]));
    let mut tail = tail(Arc::new(env.clone()));
    assert_eq!(read_on(&mut tail, None, 9), (vec![1, 2], End::Reached));
    env.set_file_bytes(&path(1), segment(3, (2, 1), &[3]));
    assert_eq!(read_on(&mut tail, None, 9), (vec![3], End::Reached));
    assert_eq!(read_on(&mut tail, None, 9), (vec![], End::Reached));
    // That of the segment that is read.
    env.set_file_bytes(&path(1), segment(5, (4, 1), &[5]));
    assert_eq!(read_on(&mut tail, None, 9), (vec![], End::Lost));
}

#[test]
fn a_log_whose_next_segment_is_known_and_gone_does_not_go_on() {
    for (newest, used_again) in [(None, false), (None, true), (Some(4), false), (Some(4), true)] {
        let env = MemEnv::new();
        env.set_file_bytes(&path(1), segment(1, (0, 0), &[1, 2]));
        env.set_file_bytes(&path(2), segment(2, (1, 2), &[3]));
        env.set_file_bytes(&path(3), segment(3, (2, 1), &[4]));
        env.set_file_bytes(&path(4), segment(4, (3, 1), &[5]));
        let mut tail = tail(Arc::new(env.clone()));
        assert_eq!(read_on(&mut tail, newest, 1), (vec![1], End::NotYet));
        if used_again {
            env.set_file_bytes(&path(3), segment(5, (4, 1), &[6]));
        } else {
            env.remove(&path(3)).expect("it is there");
        }
        let found = read_on(&mut tail, newest, 9);
        assert_eq!(found, (vec![2], End::Lost), "newest: {newest:?}, used again: {used_again}");
    }
}

#[test]
fn a_record_says_where_it_is() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1, 2]));
    let (mut tail, mut offsets) = (tail(Arc::new(env.clone())), Vec::new());
    let end = tail.read(None, &mut |record, position| {
        check_place(&env, &record);
        offsets.push(position.offset as usize);
        Ok(Taken::Yes)
    });
    assert_eq!((offsets, end.expect("no fault is set")), (vec![FIRST, FIRST + STEP], End::Reached));
}

/// Trap: its end may be where a recovery has cut off what is there.
#[test]
fn what_is_read_ends_before_a_segment_whose_successor_is_missing() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1, 2]));
    assert_eq!(read_on(&mut tail(Arc::new(env.clone())), Some(2), 9), (vec![], End::Lost));
    // Its own file has another number, and no record yet. The salt is the same, as where none is.
    let mut tail = tail(Arc::new(env.clone()));
    env.set_file_bytes(&path(1), forged(3, SEGMENT_BYTES, &[]));
    assert_eq!(read_on(&mut tail, None, 9), (vec![], End::Lost));
}

#[test]
fn a_file_that_does_not_open_is_looked_for_again_or_an_error() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1]));
    env.set_file_bytes(&path(2), segment(2, (1, 1), &[2]));
    env.set_file_bytes(&path(3), segment(3, (2, 1), &[3]));
    let read = |kind: ErrorKind, stays: bool| {
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        let mut tail = tail(Arc::new(faulty.clone()));
        let rule = Rule::new(Class::Open, 0, Action::Fail(kind)).on_names_with(file_name(2));
        faulty.add(if stays { rule.from_then_on() } else { rule });
        let mut taken = Vec::new();
        let end = tail.read(None, &mut |record, _| {
            taken.push(record.sequence);
            Ok(Taken::Yes)
        });
        (taken, end.ok())
    };
    assert_eq!(read(ErrorKind::NotFound, false), (vec![1, 2, 3], Some(End::Reached)), "another one has the name now");
    assert_eq!(read(ErrorKind::NotFound, true), (vec![], Some(End::Lost)), "a later one tells that there was one");
    assert_eq!(read(ErrorKind::Other, false), (vec![], None), "it may be there");
}

#[test]
fn a_file_too_short_for_a_segment_is_none_and_one_with_a_link_alone_is() {
    let env = MemEnv::new();
    let end = (FIRST + STEP) as u64;
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1]));
    env.set_file_bytes(&path(2), forged(2, FIRST, &[(RecordType::Link, 0, link(1, end))]));
    env.set_file_bytes(&path(3), segment(3, (2, 0), &[2]));
    env.set_file_bytes(&path(8), vec![1; 50]);
    env.set_file_bytes(&path(9), Vec::new());
    assert_eq!(read_on(&mut tail(Arc::new(env)), None, 9), (vec![1, 2], End::Reached));
}

/// No engine writes such links.
#[test]
fn links_that_lead_in_a_circle_end() {
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), segment(1, (0, 0), &[1]));
    env.set_file_bytes(&path(2), segment(2, (2, 1), &[2]));
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    // A search that goes round fails.
    faulty.add(Rule::new(Class::Open, 100, Action::Fail(ErrorKind::Other)));
    let maker = SegmentMaker { read_only: true, ..maker(Arc::new(faulty)) };
    assert!(LogTail::from(maker, 1, 1, 1).expect("few files are opened").is_none());
    // Two files say to be segment 2: one leads back to segment 1, and one to itself.
    env.set_file_bytes(&path(2), segment(2, (1, 1), &[2]));
    env.set_file_bytes(&path(3), segment(2, (2, 1), &[2]));
    assert_eq!(read_on(&mut tail(Arc::new(env)), None, 9), (vec![1, 2], End::Reached));
}
