//! What a start takes of a log that is damaged, torn or forged, and what it refuses.

use super::format::{
    HEADER_BYTES, Link, MAX_SEGMENT_BYTES, Place, RECORD_HEADER_BYTES, RecordType, encode_header, seal_record,
};
use super::reader::{Record, Visited, holds_history, replay};
use super::segment::{Plan, Position, SegmentMaker, file_name};
use super::verify::{Checked, Expected, Visitor, verify};
use super::writer::{Inherited, LogWriter};
use crate::env::Env;
use crate::env::fault::{Class, FaultEnv};
use crate::env::mem::MemEnv;
use crate::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SEGMENT_BYTES: u64 = 1 << 10;
const PAYLOAD_BYTES: usize = 40;
/// Where the records of writes begin, how far they are apart, and how many a segment holds.
pub(super) const FIRST: usize = 112;
const STEP: usize = 64;
pub(super) const FULL: usize = 14;

pub(super) fn maker(env: Arc<dyn Env>) -> SegmentMaker {
    SegmentMaker {
        env,
        directory: PathBuf::from("/db"),
        mapped: true,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes: SEGMENT_BYTES,
        largest_bytes: SEGMENT_BYTES,
    }
}

pub(super) fn start(env: &MemEnv, inherited: Inherited) -> LogWriter {
    env.create_dir_all(Path::new("/db")).expect("no fault is set");
    LogWriter::start(maker(Arc::new(env.clone())), inherited).expect("no fault is set")
}

pub(super) fn append(log: &mut LogWriter, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(&[sequence as u8; PAYLOAD_BYTES]);
        log.append(&mut record, sequence, sequence - 1, false).expect("no fault is set");
    }
}

/// Where the payload of the record of write `at` of a segment begins, from 1.
pub(super) fn payload_of(at: usize) -> usize {
    FIRST + (at - 1) * STEP + RECORD_HEADER_BYTES
}

pub(super) fn path(file: u64) -> PathBuf {
    Path::new("/db").join(file_name(file))
}

/// Another machine with the same files, but for changes to one of them.
pub(super) fn changed(env: &MemEnv, file: u64, change: impl FnOnce(&mut Vec<u8>)) -> MemEnv {
    let changed = MemEnv::new();
    for path in env.files() {
        changed.set_file_bytes(&path, env.file_bytes(&path).unwrap_or_default());
    }
    let mut bytes = changed.file_bytes(&path(file)).unwrap_or_default();
    change(&mut bytes);
    changed.set_file_bytes(&path(file), bytes);
    changed
}

pub(super) fn flipped(env: &MemEnv, file: u64, offset: usize) -> MemEnv {
    changed(env, file, |bytes| bytes[offset] ^= 1)
}

/// Another machine with the same files but one.
fn without(env: &MemEnv, file: u64) -> MemEnv {
    let copy = changed(env, file, |_| {});
    copy.remove(&path(file)).expect("it is there");
    copy
}

/// Fails unless the record says where its payload is.
pub(super) fn check_place(env: &MemEnv, record: &Record<'_>) {
    let bytes = env.file_bytes(record.path).expect("it is read");
    assert!(bytes[record.offset as usize..].starts_with(record.payload), "the offset is the payload's");
}

/// The sequence numbers that a start finds, or where the log is damaged, and why.
type Found = Result<Vec<u64>, (u64, String)>;

fn found(env: &MemEnv, floor: u64) -> Found {
    found_synced(env, floor, Position::default())
}

/// As `found`, where the manifest says that the log was synced up to there.
fn found_synced(env: &MemEnv, floor: u64, synced: Position) -> Found {
    let mut found = Vec::new();
    let mut visit = |record: Record<'_>| {
        check_place(env, &record);
        found.push(record.sequence);
        Ok(Visited::Last(record.sequence))
    };
    match replay(&maker(Arc::new(env.clone())), floor, synced, &mut visit) {
        Ok(_) => Ok(found),
        Err(Error::Corruption { offset, what, .. }) => Err((offset, what)),
        Err(other) => panic!("{other:?}"),
    }
}

fn is_damage_at(found: &Found, at: usize) -> bool {
    matches!(found, Err((offset, _)) if *offset == at as u64)
}

/// The damage that the check of a directory tells of.
#[derive(Default)]
struct Told(Vec<Error>);

impl Visitor for Told {
    fn check(&mut self, record: &Record<'_>) -> crate::error::Result<Checked> {
        Ok(Checked { last: record.sequence, missing: Vec::new() })
    }

    fn damage(&mut self, error: Error) {
        self.0.push(error);
    }

    fn bytes(&mut self, _: u64) {}
}

/// What the check of a log tells of that is needed from the first segment on.
pub(super) fn damage(env: &MemEnv, synced: Position) -> Vec<Error> {
    let expected = Expected { floor: Some(1), synced, closed: None };
    let mut told = Told::default();
    verify(&maker(Arc::new(env.clone())), &expected, &mut told).expect("damage is told");
    told.0
}

#[test]
fn damage_below_what_was_synced_is_told_from_a_torn_end() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=3);
    log.shared().sync_all().expect("no fault is set");
    // It says that those before it are on the device.
    append(&mut log, 4..=4);
    assert_eq!(found(&env, 1), Ok(vec![1, 2, 3, 4]));
    assert_eq!(found(&flipped(&env, 1, payload_of(4)), 1), Ok(vec![1, 2, 3]));
    let second = FIRST + STEP;
    let damaged = flipped(&env, 1, payload_of(2));
    assert!(is_damage_at(&found(&damaged, 1), second));
    let zeroed = changed(&env, 1, |bytes| bytes[second..second + 2 * STEP].fill(0));
    assert!(is_damage_at(&found(&zeroed, 1), second), "the first record behind a hole says so");
    assert_eq!(found(&flipped(&damaged, 1, payload_of(4)), 1), Ok(vec![1]), "nothing intact says so");
}

#[test]
fn a_closing_record_says_that_what_is_before_it_was_synced() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    append(&mut log, 1..=2);
    log.close().expect("no fault is set");
    assert_eq!(found(&env, 1), Ok(vec![1, 2]));
    assert!(is_damage_at(&found(&flipped(&env, 1, payload_of(2)), 1), FIRST + STEP));
}

#[test]
fn a_segment_that_ends_too_early_is_damaged_if_a_later_one_was_synced() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let all = 2 * FULL as u64 + 1;
    append(&mut log, 1..=all);
    assert_eq!(log.position().segment, 3);
    let last = FIRST + (FULL - 1) * STEP;
    assert_eq!(found(&flipped(&env, 1, payload_of(FULL)), 1), Ok((1..FULL as u64).collect()));
    log.shared().sync_all().expect("no fault is set");
    append(&mut log, all + 1..=all + 1);
    assert_eq!(found(&env, 1), Ok((1..=all + 1).collect()));
    assert!(is_damage_at(&found(&flipped(&env, 1, payload_of(FULL)), 1), last));
    // Of a segment that was synced before the next one began, the link has to be intact too.
    append(&mut log, all + 2..=3 * FULL as u64 + 1);
    assert_eq!(log.position().segment, 4);
    let (offset, what) = found(&flipped(&env, 3, HEADER_BYTES), 1).expect_err("a link that was synced");
    assert_eq!((offset, what.as_str()), (HEADER_BYTES as u64, "the segment's link does not verify"));
}

/// Seen: synced writes were gone without an error after one bit of the log had flipped. Trigger:
/// the damaged record was synced with the last one of the next segment, so that only the link
/// behind that one says so. Cost: all writes from the damaged one on.
#[test]
fn the_link_behind_a_later_segment_says_that_all_before_it_was_synced() {
    let full = FULL as u64;
    let last = FIRST + (FULL - 1) * STEP;
    for is_synced in [false, true] {
        let env = MemEnv::new();
        let mut log = start(&env, Inherited::default());
        append(&mut log, 1..=2 * full);
        assert_eq!(log.position().segment, 2);
        if is_synced {
            log.shared().sync_all().expect("no fault is set");
        }
        append(&mut log, 2 * full + 1..=2 * full + 1);
        assert_eq!((log.position().segment, found(&env, 1)), (3, Ok((1..=2 * full + 1).collect())));
        let damaged = flipped(&env, 1, payload_of(FULL));
        // Also if the link is all that is intact there.
        for damaged in [flipped(&damaged, 3, payload_of(1)), damaged] {
            let found = found(&damaged, 1);
            assert_eq!(is_damage_at(&found, last), is_synced, "{found:?}");
            assert_eq!(!damage(&damaged, Position::default()).is_empty(), is_synced);
            assert!(is_synced || found == Ok((1..full).collect()));
        }
    }
}

/// Found in a review. Trigger: the record in front of the one that tells is damaged too. Cost:
/// synced writes, without an error.
#[test]
fn a_record_behind_damage_in_a_later_segment_says_that_all_before_it_was_synced() {
    let full = FULL as u64;
    for is_synced in [false, true] {
        let env = MemEnv::new();
        let mut log = start(&env, Inherited::default());
        append(&mut log, 1..=full + 1);
        assert_eq!(log.position().segment, 2);
        if is_synced {
            log.shared().sync_all().expect("no fault is set");
        }
        append(&mut log, full + 2..=full + 2);
        let damaged = flipped(&flipped(&env, 1, payload_of(FULL)), 2, payload_of(1));
        let found = found(&damaged, 1);
        assert_eq!(is_damage_at(&found, FIRST + (FULL - 1) * STEP), is_synced, "{found:?}");
        assert_eq!(!damage(&damaged, Position::default()).is_empty(), is_synced);
        assert!(is_synced || found == Ok((1..full).collect()));
    }
}

/// Nothing in the log itself says that any of it was on the device: only the manifest does.
#[test]
fn a_log_of_several_segments_that_is_shorter_than_what_was_synced_is_refused() {
    const UNVERIFIED: &str = "a log record that was synced does not verify";
    const MISSING: &str = "log segment 3, which was synced, is missing or damaged";
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let full = FULL as u64;
    append(&mut log, 1..=2 * full);
    let before = log.position();
    append(&mut log, 2 * full + 1..=2 * full + 1);
    let synced = log.position();
    assert_eq!((before.segment, synced.segment), (2, 3));
    let up_to = |last: u64| -> Found { Ok((1..=last).collect()) };
    let refused = |offset: usize, what: &str| -> Found { Err((offset as u64, what.to_owned())) };
    let torn = flipped(&env, 3, payload_of(1));
    // Damaged; what a start finds if nothing was synced, and with what was synced.
    let cases = [
        ("nothing", changed(&env, 1, |_| {}), up_to(2 * full + 1), up_to(2 * full + 1)),
        ("the last record", changed(&torn, 1, |_| {}), up_to(2 * full), refused(FIRST, UNVERIFIED)),
        ("the last segment", without(&env, 3), up_to(2 * full), refused(0, MISSING)),
        ("its link", flipped(&env, 3, HEADER_BYTES), up_to(2 * full), refused(0, MISSING)),
        ("the link between", flipped(&env, 2, HEADER_BYTES), up_to(full), refused(HEADER_BYTES, UNVERIFIED)),
        (
            "the end of the first segment",
            flipped(&env, 1, payload_of(FULL)),
            up_to(full - 1),
            refused(FIRST + (FULL - 1) * STEP, UNVERIFIED),
        ),
        (
            "the segment between",
            without(&env, 2),
            refused(0, "log segment 2 is missing"),
            refused(0, "log segment 2 is missing"),
        ),
        (
            "the first segment",
            without(&env, 1),
            refused(0, "log segment 1 is missing"),
            refused(0, "log segment 1 is missing"),
        ),
    ];
    for (what, env, unsynced, expected) in cases {
        assert_eq!(found(&env, 1), unsynced, "{what}");
        assert_eq!(found_synced(&env, 1, synced), expected, "{what}");
        // The check of the directory is of the same opinion.
        assert_eq!(damage(&env, Position::default()).is_empty(), unsynced.is_ok(), "{what}");
        assert_eq!(damage(&env, synced).is_empty(), expected.is_ok(), "{what}");
    }
    // Behind what was synced, the log may end anywhere.
    for env in [&torn, &without(&env, 3)] {
        assert_eq!(found_synced(env, 1, before), up_to(2 * full));
        assert!(damage(env, before).is_empty());
    }
}

#[test]
fn a_damaged_header_of_the_newest_segment_is_refused() {
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    let all = 2 * FULL as u64 + 1;
    append(&mut log, 1..=all);
    let broken = |env: &MemEnv, file, floor| found(&flipped(env, file, 0), floor).expect_err("a damaged header").1;
    assert_eq!(broken(&env, 3, 1), "the header of log segment 3 is broken");
    // In a file of another name, of which only what is inside says which segment it is.
    log.shared().sync_link(3).expect("no fault is set");
    assert!(log.shared().release(3, usize::MAX).is_empty());
    append(&mut log, all + 1..=3 * FULL as u64 + 1);
    assert_eq!(log.position().segment, 4);
    let holds = |file: u64| env.file_bytes(&path(file)).is_some_and(|bytes| bytes[16..24] == 4u64.to_le_bytes());
    let file = (1..=2).find(|&file| holds(file)).expect("a file is used again");
    assert_eq!(broken(&env, file, 3), "the header of log segment 4 is broken");
}

/// Its preparation was cut short.
#[test]
fn a_file_too_short_for_a_segment_is_free() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=1);
    for bytes in [0, 50, FIRST - 1] {
        let env = changed(&env, 9, |short| short.resize(bytes, 1));
        let taken = |record: Record<'_>| Ok(Visited::Last(record.sequence));
        let inherited = replay(&maker(Arc::new(env)), 1, Position::default(), &mut { taken }).expect("a torn log");
        assert_eq!((inherited.free.len(), inherited.highest_number), (1, 9));
    }
}

/// As when the large value behind it is not there. Its bytes stay; the log goes on without it.
#[test]
fn a_record_that_was_left_out_stays_out() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=3);
    let inherited = replay(&maker(Arc::new(env.clone())), 1, Position::default(), &mut |record| {
        Ok(match record.sequence {
            3 => Visited::Missing(Error::invalid("not there")),
            sequence => Visited::Last(sequence),
        })
    });
    let mut log = start(&env, inherited.expect("nothing says that it was synced"));
    append(&mut log, 3..=4);
    assert_eq!(found(&env, 1), Ok(vec![1, 2, 3, 4]));
}

#[test]
fn a_segment_is_read_in_few_pieces() {
    let env = MemEnv::new();
    append(&mut start(&env, Inherited::default()), 1..=FULL as u64);
    let counting = FaultEnv::new(Arc::new(env));
    let mut count = 0;
    replay(&maker(Arc::new(counting.clone())), 1, Position::default(), &mut |record| {
        count += 1;
        Ok(Visited::Last(record.sequence))
    })
    .expect("no fault is set");
    assert_eq!(count, FULL);
    assert!(counting.calls(Class::Read) < FULL as u64 / 2, "{} reads", counting.calls(Class::Read));
}

/// The payload of a link.
pub(super) fn link(previous_number: u64, previous_end: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    Link { previous_number, previous_end, previous_synced: 0 }.encode(&mut payload);
    payload
}

/// A segment with these records.
pub(super) fn forged(number: u64, bytes: usize, records: &[(RecordType, u64, Vec<u8>)]) -> Vec<u8> {
    let salt = 7;
    let mut segment = encode_header(number, bytes as u64, salt).to_vec();
    for (kind, sequence, payload) in records {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(payload);
        seal_record(&mut record, *kind, *sequence, 0, Place { segment: number, salt, offset: segment.len() as u64 });
        segment.extend_from_slice(&record);
    }
    segment.resize(bytes, 0);
    segment
}

#[test]
fn links_are_links_of_their_kind_and_lead_back() {
    let first = [(RecordType::Link, 0, link(0, 0)), (RecordType::Batch, 1, vec![1; PAYLOAD_BYTES])];
    let env_with = |second: &[(RecordType, u64, Vec<u8>)]| {
        let env = MemEnv::new();
        env.set_file_bytes(&path(1), forged(1, SEGMENT_BYTES as usize, &first));
        env.set_file_bytes(&path(2), forged(2, SEGMENT_BYTES as usize, second));
        env
    };
    let end = (FIRST + STEP) as u64;
    let batch = (RecordType::Batch, 2, vec![2; PAYLOAD_BYTES]);
    assert_eq!(found(&env_with(&[(RecordType::Link, 0, link(1, end)), batch.clone()]), 1), Ok(vec![1, 2]));
    // A link that does not know where the segment before ends: all that is intact in it counts.
    assert_eq!(found(&env_with(&[(RecordType::Link, 0, link(1, 0)), batch.clone()]), 1), Ok(vec![1, 2]));
    // A write whose value looks like a link.
    assert_eq!(found(&env_with(&[(RecordType::Batch, 2, link(1, end)), batch.clone()]), 1), Ok(vec![1]));
    // A segment behind itself.
    let what = found(&env_with(&[(RecordType::Link, 0, link(2, end)), batch]), 1).expect_err("a forged link").1;
    assert_eq!(what, "log segment 2 is missing");
    // No longer than its link.
    let env = MemEnv::new();
    env.set_file_bytes(&path(1), forged(1, FIRST, &first[..1]));
    assert_eq!(found(&env, 1), Ok(vec![]));
}

/// Neither file takes memory behind what is written into it. Nor is either searched for records:
/// its header says that the segment is short.
#[test]
fn a_file_longer_than_a_segment_can_be_is_refused_as_such() {
    let cases = [
        (MAX_SEGMENT_BYTES, MAX_SEGMENT_BYTES, "the segment should have 1024 bytes, the file has 8589934592"),
        (MAX_SEGMENT_BYTES + 8, 0, "the file is longer than a log segment can be"),
    ];
    for (bytes, offset, what) in cases {
        let env = MemEnv::new();
        env.create_dir_all(Path::new("/db")).expect("no fault is set");
        let file = env.open_log(&path(1), Some(bytes), false).expect("no fault is set");
        let segment = forged(1, SEGMENT_BYTES as usize, &[(RecordType::Link, 0, link(0, 0))]);
        file.write(0, &segment).expect("the file is longer");
        assert_eq!(found(&env, 1), Err((offset, what.to_owned())));
        // The check of the directory says the same.
        let told = damage(&env, Position::default());
        assert!(matches!(&told[..], [Error::Corruption { what: first, .. }, ..] if first == what), "{told:?}");
    }
}

#[test]
fn a_log_of_more_than_its_first_link_has_a_history() {
    let has_one = |env: &MemEnv| holds_history(&maker(Arc::new(env.clone()))).expect("no fault is set");
    let env = MemEnv::new();
    let mut log = start(&env, Inherited::default());
    assert!(!has_one(&env), "an interrupted creation leaves no more");
    append(&mut log, 1..=1);
    assert!(has_one(&env));
    // A second start, whose segment is what is left.
    let env = MemEnv::new();
    env.set_file_bytes(&path(2), forged(2, FIRST, &[(RecordType::Link, 0, link(1, FIRST as u64))]));
    assert!(has_one(&env));
}

/// Seen: "... says to be log segment 3 too". Trigger: an open where a creation, or a repair without
/// writes, had been cut short behind the preparation of a segment in a file that was used before.
/// Cost: the new database could not be opened again.
#[test]
fn a_creation_goes_on_above_the_number_of_a_segment_in_a_file_of_another_name() {
    let env = MemEnv::new();
    let options = || crate::Options::default().env(Arc::new(env.clone())).wal_segment_bytes(SEGMENT_BYTES);
    env.create_dir_all(Path::new("/db")).unwrap();
    let plan = |number, free| Plan {
        number,
        free,
        new_bytes: SEGMENT_BYTES,
        least_bytes: 0,
        for_syncs: true,
        for_stores: false,
    };
    let maker = maker(Arc::new(env.clone()));
    let first = maker.prepare(plan(1, None)).unwrap();
    maker.prepare(plan(2, Some(first.to_free()))).unwrap();
    for opens in 0..3u8 {
        let db = crate::Db::open("/db", options()).unwrap_or_else(|error| panic!("open {opens}: {error}"));
        let keyspace = db.keyspace("k", crate::KeyspaceOptions::default()).unwrap();
        assert_eq!(keyspace.iter().count(), usize::from(opens));
        keyspace.put([opens], "").unwrap();
    }
}
