//! What the check of a directory reads of a damaged log, and each place that it tells of.

use super::format::{HEADER_BYTES, RecordType};
use super::reader::Record;
use super::replay_test::{
    FIRST, FULL, append, changed, check_place, flipped, forged, link, maker, path, payload_of, start,
};
use super::segment::{Position, file_name};
use super::verify::{Checked, Expected, Visitor, verify};
use super::writer::{Inherited, LogWriter};
use crate::env::Env;
use crate::env::fault::{Action, Class, FaultEnv, Rule};
use crate::env::mem::MemEnv;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Of a segment that is forged.
const SEGMENT_BYTES: usize = 1 << 10;
/// How far records are apart.
const STEP: usize = 64;
/// Where the first batch of a segment ends.
const FIRST_END: u64 = (FIRST + STEP) as u64;
const UNVERIFIED: &str = "a log record that was synced does not verify";
const LINK: &str = "the segment's link does not verify";
const GONE: &str = "a large value is not there";

/// The sequence numbers that are read, and the places that are told of.
type Found = (Vec<u64>, Vec<(PathBuf, u64, String)>);

/// Where the record of write `at` of a segment begins, from 1.
fn record(at: usize) -> usize {
    FIRST + (at - 1) * STEP
}

fn told(file: u64, offset: usize, what: &str) -> (PathBuf, u64, String) {
    (path(file), offset as u64, what.to_owned())
}

/// What is told of the log as a whole.
fn lost(what: &str) -> (PathBuf, u64, String) {
    (PathBuf::from("/db"), 0, what.to_owned())
}

fn needed(floor: u64) -> Expected {
    Expected { floor: Some(floor), ..Expected::default() }
}

struct Reading<'a> {
    env: &'a MemEnv,
    /// The large values of these writes are not there.
    missing: &'a [u64],
    /// What the file becomes when its first record has been read.
    becomes: Option<Vec<u8>>,
    found: Found,
}

impl Visitor for Reading<'_> {
    fn check(&mut self, record: &Record<'_>) -> Result<Checked> {
        if let Some(bytes) = self.becomes.take() {
            self.env.set_file_bytes(record.path, bytes);
        }
        check_place(self.env, record);
        self.found.0.push(record.sequence);
        let is_missing = self.missing.contains(&record.sequence);
        let missing = is_missing.then(|| Error::corruption(record.path, record.offset, GONE));
        Ok(Checked { last: record.sequence, missing: missing.into_iter().collect() })
    }

    fn damage(&mut self, error: Error) {
        match error {
            Error::Corruption { path, offset, what } => self.found.1.push((path, offset, what)),
            Error::Io { path, operation, .. } => self.found.1.push((path, 0, operation.to_owned())),
            other => panic!("{other:?}"),
        }
    }

    fn bytes(&mut self, _: u64) {}
}

impl<'a> Reading<'a> {
    fn of(env: &'a MemEnv) -> Reading<'a> {
        Reading { env, missing: &[], becomes: None, found: Found::default() }
    }

    fn check(self, expected: Expected) -> Found {
        let env = Arc::new(self.env.clone());
        self.check_in(env, expected)
    }

    fn check_in(mut self, env: Arc<dyn Env>, expected: Expected) -> Found {
        verify(&maker(env), &expected, &mut self).expect("damage is told");
        self.found
    }
}

/// The check of a log that is needed from that segment on.
fn checked(env: &MemEnv, floor: u64) -> Found {
    Reading::of(env).check(needed(floor))
}

/// A log of so many writes, each of which says that those before it in its segment were synced.
fn synced(writes: u64) -> (MemEnv, LogWriter) {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    for sequence in 1..=writes {
        append(&mut log, sequence..=sequence);
        log.shared().sync_all().expect("no fault is set");
    }
    (env, log)
}

/// Forges a segment of these writes, whose link leads to that place.
fn forge(env: &MemEnv, number: u64, (previous, end): (u64, u64), sequences: &[u64]) {
    let first = (RecordType::Link, 0, link(previous, end));
    let batches = sequences.iter().map(|&sequence| (RecordType::Batch, sequence, vec![1; 40]));
    let records: Vec<_> = std::iter::once(first).chain(batches).collect();
    env.set_file_bytes(&path(number), forged(number, SEGMENT_BYTES, &records));
}

#[test]
fn each_place_that_was_synced_is_told_and_what_is_around_it_is_read() {
    let (env, _) = synced(7);
    assert_eq!(checked(&env, 1), ((1..=7).collect(), vec![]));
    let damaged = flipped(&flipped(&env, 1, payload_of(2)), 1, payload_of(4));
    let expected = vec![told(1, record(2), UNVERIFIED), told(1, record(4), UNVERIFIED)];
    assert_eq!(checked(&damaged, 1), (vec![1, 3, 5, 6, 7], expected));
    let expected = vec![told(1, HEADER_BYTES, LINK)];
    assert_eq!(checked(&flipped(&env, 1, HEADER_BYTES), 1), ((1..=7).collect(), expected));
    // Nothing says that the last one was.
    assert_eq!(checked(&flipped(&env, 1, payload_of(7)), 1), ((1..=6).collect(), vec![]));
}

/// Trap: the place is read before the writer fills it, and what comes behind it afterwards.
#[test]
fn a_place_that_a_writer_has_filled_meanwhile_is_read_again() {
    let (env, _) = synced(4);
    let becomes = env.file_bytes(&path(1));
    let stale = changed(&env, 1, |bytes| bytes[record(2)..record(3)].fill(0));
    let reading = Reading { becomes, ..Reading::of(&stale) };
    assert_eq!(reading.check(needed(1)), (vec![1, 2, 3, 4], vec![]));
}

#[test]
fn what_a_record_refers_to_is_missed_if_the_record_was_synced() {
    let (env, _) = synced(4);
    for (missing, is_told) in [(&[2][..], true), (&[2, 3][..], true), (&[4][..], false)] {
        let told_of = |&at: &u64| told(1, payload_of(at as usize), GONE);
        let expected = if is_told { missing.iter().map(told_of).collect() } else { vec![] };
        let reading = Reading { missing, ..Reading::of(&env) };
        assert_eq!(reading.check(needed(1)), (vec![1, 2, 3, 4], expected), "{missing:?}");
    }
}

#[test]
fn the_end_of_a_segment_is_missed_only_if_something_behind_it_was_synced() {
    let full = FULL as u64;
    // Some of the first segment was, as the link behind it says.
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=3);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, 4..=full + 1);
    assert_eq!(log.position().segment, 2);
    assert_eq!(checked(&flipped(&env, 1, payload_of(FULL)), 1), ((1..full).collect(), vec![]));
    // Some of the second one was, and with it all of the first one.
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=full + 2);
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, full + 3..=2 * full + 1);
    assert_eq!(log.position().segment, 3);
    let damaged = flipped(&flipped(&env, 1, payload_of(FULL)), 2, payload_of(FULL));
    let read = (1..full).chain(full + 1..2 * full).collect();
    assert_eq!(checked(&damaged, 1), (read, vec![told(1, record(FULL), UNVERIFIED)]));
}

#[test]
fn a_damaged_link_hides_no_damage_before_it() {
    let last = 3 * FULL as u64 + 1;
    let (env, log) = synced(last);
    assert_eq!(log.position().segment, 4);
    let damaged = flipped(&flipped(&flipped(&env, 1, payload_of(3)), 2, payload_of(5)), 3, HEADER_BYTES);
    let expected = vec![told(1, record(3), UNVERIFIED), told(2, record(5), UNVERIFIED), told(3, HEADER_BYTES, LINK)];
    let is_damaged = |sequence: &u64| [3, FULL as u64 + 5].contains(sequence);
    let read = (1..=last).filter(|sequence| !is_damaged(sequence)).collect();
    assert_eq!(checked(&damaged, 1), (read, expected));
}

#[test]
fn a_segment_with_a_broken_header_is_told_and_read() {
    let broken = |file: u64, number: u64| told(file, 0, &format!("the header of log segment {number} is broken"));
    let (env, _) = synced(3);
    assert_eq!(checked(&flipped(&env, 1, 0), 1), (vec![1, 2, 3], vec![broken(1, 1)]), "the only one");
    let (two, three) = (2 * FULL as u64, 3 * FULL as u64);
    let (env, mut log) = synced(two + 1);
    for number in 1..=3 {
        let expected: Found = ((1..=two + 1).collect(), vec![broken(number, number)]);
        assert_eq!(checked(&flipped(&env, number, 0), 1), expected);
    }
    // In a file of another name.
    log.shared().sync_link(3).expect("no fault is set");
    assert!(log.shared().release(3, usize::MAX).is_empty());
    append(&mut log, two + 2..=three + 1);
    let holds = |file: u64| env.file_bytes(&path(file)).is_some_and(|bytes| bytes[16..24] == 4u64.to_le_bytes());
    let file = (1..=2).find(|&file| holds(file)).expect("a file is used again");
    let expected: Found = ((two + 1..=three + 1).collect(), vec![broken(file, 4)]);
    assert_eq!(checked(&flipped(&env, file, 0), 3), expected);
    // One before the first that is needed is none of the log.
    let env = MemEnv::new();
    forge(&env, 2, (1, FIRST_END), &[1]);
    let expected = vec![lost("log segment 3, which the manifest needs, is missing or damaged")];
    assert_eq!(checked(&flipped(&env, 2, 0), 3), (vec![], expected));
}

#[test]
fn links_are_followed_as_a_start_follows_them() {
    let env = MemEnv::new();
    // Wherever that of the first segment leads that is needed.
    forge(&env, 1, (1, FIRST as u64), &[1]);
    assert_eq!(checked(&env, 1), (vec![1], vec![]));
    // Below that one: an earlier start has given up what was between.
    forge(&env, 3, (1, FIRST_END), &[2]);
    assert_eq!(checked(&env, 2), (vec![2], vec![]));
    // An intact record behind the end that a link tells was left out.
    let env = MemEnv::new();
    forge(&env, 1, (0, 0), &[1, 2]);
    forge(&env, 2, (1, FIRST_END), &[2]);
    assert_eq!(checked(&env, 1), (vec![1, 2], vec![]));
    // Where no end is told, all counts that is intact.
    let (env, _) = synced(4);
    forge(&env, 2, (1, 0), &[5]);
    let expected = vec![told(1, record(2), UNVERIFIED)];
    assert_eq!(checked(&flipped(&env, 1, payload_of(2)), 1), (vec![1, 3, 4, 5], expected));
    // Numbers ascend.
    let env = MemEnv::new();
    forge(&env, 1, (0, 0), &[2, 1]);
    assert_eq!(checked(&env, 1), (vec![2, 1], vec![told(1, record(2), "sequence number 1 follows 2")]));
}

#[test]
fn a_log_that_was_closed_ends_where_the_manifest_says() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=3);
    log.close().expect("no fault is set");
    let Position { segment, offset } = log.position();
    let found = |env: &MemEnv, segment: u64, offset: u64| {
        Reading::of(env).check(Expected { closed: Some(Position { segment, offset }), ..needed(1) })
    };
    let what = |segment: u64, offset: u64| {
        format!("the database was closed with its log ending at offset {offset} of segment {segment}")
    };
    let end = offset as usize;
    assert_eq!(found(&env, segment, offset), (vec![1, 2, 3], vec![]));
    let expected = (vec![1, 2, 3], vec![told(1, end, &what(1, offset + 24))]);
    assert_eq!(found(&env, segment, offset + 24), expected, "it ends before that");
    assert_eq!(found(&env, 2, offset), (vec![1, 2, 3], vec![lost(&what(2, offset))]), "it ends in another segment");
    // The closing record says that all before it was synced; nothing more is said then.
    let expected = (vec![1, 3], vec![told(1, record(2), UNVERIFIED)]);
    assert_eq!(found(&flipped(&env, 1, payload_of(2)), segment, offset), expected);
    // An open that was cut short has begun a segment, and written nothing.
    forge(&env, 2, (1, offset), &[]);
    assert_eq!(found(&env, segment, offset), (vec![1, 2, 3], vec![]));
    forge(&env, 2, (1, offset), &[4]);
    let expected = (vec![1, 2, 3, 4], vec![told(1, end, &what(1, offset))]);
    assert_eq!(found(&env, segment, offset), expected, "a manifest would say that it was opened");
}

#[test]
fn a_file_too_short_for_a_segment_is_told_only_where_one_is_missing() {
    let last = FULL as u64 + 1;
    let (env, _) = synced(last);
    for bytes in [0, 50, FIRST - 1] {
        let env = changed(&env, 9, |short| short.resize(bytes, 1));
        assert_eq!(checked(&env, 1), ((1..=last).collect(), vec![]), "{bytes} bytes");
        env.remove(&path(1)).expect("it is there");
        let expected =
            vec![told(9, bytes, "the file is too short for a log segment"), lost("log segment 1 is missing")];
        assert_eq!(checked(&env, 1), (vec![last], expected), "{bytes} bytes");
    }
    // No longer than its link.
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), forged(1, FIRST, &[(RecordType::Link, 0, link(0, 0))]));
    assert_eq!(checked(&env, 1), (vec![], vec![]));
    // A name that leads to nothing.
    env.set_file_bytes(&path(9), Vec::new());
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    faulty.add(Rule::new(Class::Open, 0, Action::Fail(ErrorKind::NotFound)).on_names_with(file_name(9)));
    let expected = vec![told(9, 0, "open")];
    assert_eq!(Reading::of(&env).check_in(Arc::new(faulty), needed(1)), (vec![], expected));
}
