//! What the log says of itself, and when it asks for segments.

use super::archive::{Archive, Archived};
use super::format::{RECORD_HEADER_BYTES, record_bytes};
use super::log_sync::{LINK_END, MAX_WAITED_FOR_BYTES};
use super::prefault::TEND_EVERY_BYTES;
use super::reserve::{RESERVE, RESERVE_BYTES, SCARCE_BYTES};
use super::segment::{FreeFile, Retired, Segment, SegmentMaker, Space, file_name};
use super::writer::{Inherited, LEFT_BY_WRITER_BYTES, LogWriter};
use crate::env::Env;
use crate::env::fault::{Action, Class, FaultEnv, Rule};
use crate::env::mem::MemEnv;
use crate::options::ChangeRetention;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

const KIB: u64 = 1 << 10;

/// Segments of these lengths, the first one and a full-grown one, on an empty machine.
fn maker(env: &MemEnv, smallest_bytes: u64, largest_bytes: u64) -> SegmentMaker {
    env.create_dir_all(Path::new("/db")).expect("an empty machine");
    env.sync_dir(Path::new("/")).expect("a healthy machine");
    SegmentMaker {
        env: Arc::new(env.clone()),
        directory: Path::new("/db").to_path_buf(),
        mapped: true,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes,
        largest_bytes,
    }
}

fn start(maker: SegmentMaker) -> LogWriter {
    LogWriter::start(maker, Inherited::default()).expect("a healthy machine")
}

/// Appends a record of so many bytes in all.
fn append(log: &mut LogWriter, bytes: u64, soon_synced: bool) {
    let mut record = vec![1; bytes as usize];
    log.append(&mut record, 1, 0, soon_synced).expect("a healthy machine");
}

/// Appends until the log is in that segment, and says how many bytes of records that were.
fn fill_up_to(log: &mut LogWriter, segment: u64) -> u64 {
    let mut appended = 0;
    while log.position().segment < segment {
        append(log, 120, false);
        appended += 120;
    }
    appended
}

/// The length of the file of a segment that was made as this number.
fn length_of(env: &MemEnv, number: u64) -> u64 {
    env.open(&Path::new("/db").join(file_name(number))).expect("it was made").len()
}

#[test]
fn figures_count_segments_of_every_kind() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    let appended = fill_up_to(&mut log, 3);
    let shared = Arc::clone(log.shared());
    let links = 3 * (LINK_END - super::format::HEADER_BYTES as u64);
    assert_eq!(shared.appended_bytes(), appended + links);
    assert_eq!((shared.segments(), shared.retired_bytes(), shared.held_bytes()), (3, 2 * KIB, 3 * KIB));
    // Seven records of 120 bytes fit behind a link.
    assert_eq!(shared.bytes_to_replay(), 2 * (LINK_END + 7 * 120) + log.position().offset);
    shared.prepare_next().expect("a healthy machine");
    assert_eq!((shared.segments(), shared.retired_bytes(), shared.held_bytes()), (4, 2 * KIB, 3 * KIB));
}

#[test]
fn a_log_is_idle_without_unused_files_and_where_nothing_is_needed_without_old_ones() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    let shared = Arc::clone(log.shared());
    assert!(shared.is_idle(true) && shared.is_idle(false));
    fill_up_to(&mut log, 2);
    assert!(!shared.is_idle(true), "an old segment could go");
    assert!(shared.is_idle(false), "it is needed");
    shared.prepare_next().expect("a healthy machine");
    assert!(!shared.is_idle(false), "nobody needs the prepared one");
}

#[test]
fn one_segment_is_prepared_and_no_second_one() {
    let env = MemEnv::new();
    let log = start(maker(&env, KIB, KIB));
    log.shared().prepare_next().expect("a healthy machine");
    let calls = env.mutations();
    log.shared().prepare_next().expect("a healthy machine");
    assert_eq!(env.mutations(), calls);
}

#[test]
fn full_segments_below_the_floor_leave_memory_and_no_others() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    fill_up_to(&mut log, 5);
    let shared = Arc::clone(log.shared());
    let mut state = shared.state.lock();
    state.leaving = state.retired.iter().map(|old| Arc::clone(&old.segment)).collect();
    drop(state);
    shared.release(3, usize::MAX);
    let left: Vec<u64> = shared.state.lock().leaving.iter().map(|segment| segment.number).collect();
    assert_eq!(left, [3, 4]);
}

#[test]
fn a_sync_leaves_out_what_is_synced() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    fill_up_to(&mut log, 3);
    log.shared().sync_all().expect("a healthy machine");
    append(&mut log, 120, false);
    let calls = env.mutations();
    log.shared().sync_all().expect("a healthy machine");
    assert_eq!(env.mutations(), calls + 1, "one range of one segment");
}

#[test]
fn a_file_much_smaller_than_the_next_one_would_be_is_not_used_again() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, 16 * KIB));
    fill_up_to(&mut log, 3);
    let shared = Arc::clone(log.shared());
    assert_eq!([1, 2, 3].map(|number| length_of(&env, number)), [KIB, 4 * KIB, 16 * KIB]);
    shared.release(3, usize::MAX);
    let free = || shared.state.lock().free.iter().map(|free| free.file.len()).collect::<Vec<_>>();
    assert_eq!(free(), [4 * KIB, KIB]);
    shared.prepare_next().expect("a healthy machine");
    assert_eq!(free(), [KIB], "a quarter of the next one is enough");
    fill_up_to(&mut log, 5);
    assert_eq!((free(), length_of(&env, 5)), (vec![KIB], 16 * KIB));
}

/// With zeroes a short file takes one more call, a longer one more of them.
#[test]
fn a_segment_that_a_writer_waits_for_gets_zeroes_where_writes_are_synced() {
    let calls_of_a_roll = |bytes: u64, soon_synced: bool| {
        let env = MemEnv::new();
        let mut log = start(maker(&env, bytes, bytes));
        let record = bytes / 8;
        while log.position().offset + record <= bytes {
            append(&mut log, record, soon_synced);
        }
        let before = env.mutations();
        append(&mut log, record, soon_synced);
        assert_eq!(log.position().segment, 2);
        env.mutations() - before
    };
    assert_eq!(calls_of_a_roll(KIB, true), calls_of_a_roll(KIB, false) + 1);
    let longest = MAX_WAITED_FOR_BYTES;
    assert!(calls_of_a_roll(longest, true) > calls_of_a_roll(longest, false));
    let long = longest + KIB;
    assert_eq!(calls_of_a_roll(long, true), calls_of_a_roll(long, false), "a writer would wait for too long");
}

#[test]
fn a_record_may_fill_a_segment_to_its_end() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    append(&mut log, KIB - LINK_END, false);
    assert_eq!((log.position().segment, log.position().offset), (1, KIB));
    append(&mut log, 120, false);
    assert_eq!(log.position().segment, 2);
}

#[test]
fn the_next_segment_is_asked_for_when_an_eighth_is_written() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, 64 * KIB, 64 * KIB));
    let shared = Arc::clone(log.shared());
    append(&mut log, 4 * KIB, false);
    assert!(!log.take_notice() && !shared.wants_preparation());
    append(&mut log, 4 * KIB, false);
    assert!(log.take_notice() && shared.wants_preparation());
    assert!(!log.take_notice(), "it is said once");
    // Of the next one too.
    while log.position().segment == 1 {
        append(&mut log, 4 * KIB, false);
    }
    assert!(log.take_notice() && !shared.wants_preparation(), "that the first one is full is news");
    append(&mut log, 4 * KIB, false);
    assert!(log.take_notice() && shared.wants_preparation());
}

#[test]
fn a_full_segment_leaves_memory_when_the_one_behind_it_is_full_too() {
    let leaving_of = |bytes: u64, in_foreground: bool| {
        let env = MemEnv::new();
        let mut log = start(SegmentMaker { in_foreground, ..maker(&env, bytes, bytes) });
        let mut leaving = Vec::new();
        for segment in 2..=4 {
            while log.position().segment < segment {
                append(&mut log, bytes / 8, false);
            }
            let state = log.shared().state.lock();
            leaving.push(state.leaving.iter().map(|segment| segment.number).collect::<Vec<_>>());
        }
        leaving
    };
    assert_eq!(leaving_of(KIB, false), [[1], [2], [3]], "the writer itself, which has little to do");
    assert_eq!(leaving_of(KIB, true), [[0; 0]; 3], "waits for nobody without a background thread");
    let long = LEFT_BY_WRITER_BYTES + KIB;
    assert_eq!(leaving_of(long, false), [vec![1], vec![1, 2], vec![1, 2, 3]], "the background thread");
}

#[test]
fn the_background_is_told_of_every_stretch_of_the_log() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, 16 * TEND_EVERY_BYTES, 16 * TEND_EVERY_BYTES));
    let mut notices = 0;
    // Beyond the eighth at which the next segment is to be prepared.
    for _ in 0..40 {
        append(&mut log, TEND_EVERY_BYTES / 4, false);
        notices += u64::from(log.take_notice());
    }
    assert!((8..=11).contains(&notices), "{notices} notices of 10 stretches");
}

#[test]
fn a_log_that_rests_begins_small_again_where_nothing_is_needed() {
    let after_a_rest = |segment: u64, needless: bool| {
        let env = MemEnv::new();
        let mut log = start(maker(&env, KIB, 16 * KIB));
        fill_up_to(&mut log, segment);
        assert!(log.rest(needless, 1).is_ok());
        let length = log.shared().state.lock().active.file.len();
        (log.position().segment, length)
    };
    assert_eq!(after_a_rest(1, true), (1, KIB), "it is small");
    assert_eq!(after_a_rest(2, false), (2, 4 * KIB), "it is needed");
    assert_eq!(after_a_rest(2, true), (3, KIB));
}

#[test]
fn behind_a_rest_the_next_segment_is_asked_for_in_time() {
    // At how many KiB more it is requested, of a rest at so many.
    let asked_after = |kib: u64| {
        let env = MemEnv::new();
        let mut log = start(maker(&env, 64 * KIB, 64 * KIB));
        (0..kib).for_each(|_| append(&mut log, KIB, false));
        assert!(log.rest(false, 1).is_ok());
        let shared = Arc::clone(log.shared());
        assert!(!shared.wants_preparation());
        let more = (1..=64 - kib).find(|_| {
            append(&mut log, KIB, false);
            shared.wants_preparation()
        });
        assert_eq!(log.position().segment, 1, "in time");
        more
    };
    assert_eq!(asked_after(16), Some(8), "an eighth of it");
    assert_eq!(asked_after(57), Some(3), "when a sixteenth is left");
    assert_eq!(asked_after(61), Some(1), "at once");
}

#[test]
fn behind_a_rest_the_background_is_told_of_every_stretch_too() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, 16 * TEND_EVERY_BYTES, 16 * TEND_EVERY_BYTES));
    append(&mut log, TEND_EVERY_BYTES / 2, false);
    assert!(log.rest(false, 1).is_ok());
    append(&mut log, TEND_EVERY_BYTES / 2, false);
    assert!(!log.take_notice());
    append(&mut log, TEND_EVERY_BYTES / 2, false);
    assert!(log.take_notice());
}

#[test]
fn a_record_that_does_not_fit_asks_for_a_segment_of_its_length() {
    let env = MemEnv::new();
    let log = start(maker(&env, KIB, KIB));
    let shared = Arc::clone(log.shared());
    let record = 5000;
    assert!(!log.has_room(record));
    assert!(shared.wants_preparation());
    shared.prepare_next().expect("a healthy machine");
    assert_eq!(length_of(&env, 2), LINK_END + record_bytes(record - RECORD_HEADER_BYTES));
    assert!(log.has_room(record), "in the prepared one");
    assert!(!log.has_room(record + 8));
}

/// Seen: no segment was prepared any more, for short records either. Trigger: a long one, for which
/// there was no room, of a write that is not to wait. Cost: all such writes were refused.
#[test]
fn a_record_for_which_there_is_no_room_leaves_the_others_theirs() {
    for is_prepared in [false, true] {
        let env = MemEnv::new();
        let mut log = start(maker(&env, KIB, KIB));
        let shared = Arc::clone(log.shared());
        append(&mut log, KIB - LINK_END, false);
        if is_prepared {
            shared.prepare_next().expect("a healthy machine");
        }
        env.set_capacity(Some(if is_prepared { 0 } else { 3 * KIB }));
        assert!(!log.has_room(5000));
        assert!(shared.prepare_next().is_err());
        shared.prepare_next().expect("there is one, or room for one");
        assert!(log.has_room(120), "prepared: {is_prepared}");
        append(&mut log, 120, false);
        assert_eq!(log.position().segment, if is_prepared { 2 } else { 3 });
        env.set_capacity(None);
        assert!(!log.has_room(5000));
        shared.prepare_next().expect("there is room");
        assert!(log.has_room(5000));
    }
}

/// Seen: a write waited until its limit. Trigger: another one took the next segment meanwhile.
#[test]
fn a_segment_that_another_record_took_can_be_requested_again() {
    let env = MemEnv::new();
    let mut log = start(maker(&env, KIB, KIB));
    let shared = Arc::clone(log.shared());
    append(&mut log, KIB - LINK_END, false);
    assert!(!log.has_room(5000));
    append(&mut log, 120, false);
    assert_eq!(log.position().segment, 2);
    shared.prepare_next().expect("a healthy machine");
    assert!(!shared.wait_until_prepared(5000, Instant::now()));
    shared.request(5000);
    assert!(shared.wants_preparation());
    shared.prepare_next().expect("a healthy machine");
    assert!(shared.wait_until_prepared(5000, Instant::now()));
}

#[test]
fn a_record_that_fits_asks_for_nothing() {
    let env = MemEnv::new();
    let log = start(maker(&env, KIB, KIB));
    assert!(log.has_room((KIB - LINK_END) as usize));
    assert!(!log.shared().wants_preparation());
    assert!(!log.has_room((KIB - LINK_END) as usize + 8));
}

/// Another error than a full disk has nothing to do with the reserve, and is the caller's to hear.
#[test]
fn the_reserve_is_for_a_full_disk() {
    let begun = |is_full: bool, reserved: bool| {
        let env = MemEnv::new();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        let maker = SegmentMaker { env: Arc::new(faulty.clone()), ..maker(&env, RESERVE_BYTES, RESERVE_BYTES) };
        if reserved {
            maker.reserve().hold();
        }
        match is_full {
            true => env.set_capacity(Some(if reserved { RESERVE_BYTES } else { 0 })),
            false => faulty.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::Other))),
        }
        let first_segment = LogWriter::start(maker, Inherited::default()).ok().map(|_| length_of(&env, 1));
        (first_segment, env.exists(&Path::new("/db").join(RESERVE)).expect("a healthy machine"))
    };
    assert_eq!(begun(true, true), (Some(SCARCE_BYTES), false));
    assert_eq!(begun(true, false), (None, false));
    assert_eq!(begun(false, true), (None, true));
}

#[test]
fn a_full_segment_was_mostly_stored_if_more_than_half_of_it_was() {
    // Of the records up to the end of the first segment, how many and whether they are synced.
    let mostly_stored = |records: &[(u64, u64, bool)]| {
        let env = MemEnv::new();
        let mut log = start(maker(&env, 64 * KIB, 64 * KIB));
        for &(count, bytes, soon_synced) in records {
            (0..count).for_each(|_| append(&mut log, bytes, soon_synced));
        }
        assert_eq!(log.position().segment, 1);
        append(&mut log, 32 * KIB, true);
        assert_eq!(log.position().segment, 2);
        log.shared().mostly_stored.load(Ordering::Relaxed)
    };
    assert!(mostly_stored(&[(60, KIB, false)]));
    assert!(!mostly_stored(&[(60, KIB, true)]));
    assert!(!mostly_stored(&[(6, 10 * KIB, false)]), "large records are written through");
    assert!(mostly_stored(&[(35, KIB, false), (25, KIB, true)]));
    assert!(!mostly_stored(&[(25, KIB, false), (35, KIB, true)]));
}

/// Segments 1 to 3, of which the first has writes.
fn inherited(maker: &SegmentMaker, closed: Option<u64>) -> Inherited {
    let found = |number: u64| {
        let path = maker.directory.join(file_name(number));
        let file = maker.env.open_log(&path, Some(KIB), true).expect("a healthy machine");
        let segment = Segment::found(number, FreeFile { path, file, space: Space::Found }, LINK_END);
        Retired { segment, last_sequence: 1 }
    };
    Inherited {
        retired: (1..=3).map(found).collect(),
        highest_number: 3,
        last_with_batches: 1,
        closed,
        ..Inherited::default()
    }
}

#[test]
fn segments_at_the_end_without_writes_are_free_unless_the_database_was_closed_with_them() {
    for (closed, kept, synced) in [(None, 1, 0), (Some(2), 2, 2), (Some(3), 3, 3)] {
        let env = MemEnv::new();
        let maker = maker(&env, KIB, KIB);
        let inherited = inherited(&maker, closed);
        let log = LogWriter::start(maker, inherited).expect("a healthy machine");
        let state = log.shared().state.lock();
        assert_eq!((state.retired.len(), state.free.len()), (kept, 3 - kept), "closed with {closed:?}");
        let known = |old: &&Retired| old.segment.synced.load(Ordering::Relaxed) == LINK_END;
        assert_eq!(state.retired.iter().filter(known).count(), synced, "closed with {closed:?}");
    }
}

/// Whatever is there: one that is too short is made longer, and one that is long enough stays.
#[test]
fn a_reserve_is_held_as_long_as_there_is_room_for() {
    let env = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let maker = SegmentMaker { env: Arc::new(faulty.clone()), ..maker(&env, RESERVE_BYTES, RESERVE_BYTES) };
    let path = Path::new("/db").join(RESERVE);
    let held = || env.file_bytes(&path).map(|bytes| bytes.len() as u64);
    SegmentMaker { smallest_bytes: RESERVE_BYTES - 1, ..maker.clone() }.reserve().hold();
    assert_eq!(held(), None, "a database that is meant to be small");
    faulty.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::Other)));
    maker.reserve().hold();
    assert_eq!((held(), faulty.fired()), (None, 1), "only on a full disk a shorter one is tried");
    env.set_file_bytes(&path, vec![0; SCARCE_BYTES as usize]);
    maker.reserve().hold();
    assert_eq!(held(), Some(RESERVE_BYTES), "there is room for more now");
    env.set_file_bytes(&path, vec![0; SCARCE_BYTES as usize]);
    env.set_capacity(Some(6 * SCARCE_BYTES - 1));
    maker.reserve().hold();
    assert_eq!(held(), Some(5 * SCARCE_BYTES), "as many steps as there is room for");
    env.set_capacity(None);
    maker.reserve().hold();
    let calls = env.mutations();
    maker.reserve().hold();
    assert_eq!(env.mutations(), calls, "it is long enough");
}

#[test]
fn segments_below_the_floor_are_kept_for_readers_of_changes_for_so_long() {
    let env = MemEnv::new();
    let mut archive = Archive::default();
    archive.keep(ChangeRetention::Bytes(KIB), 0, 0);
    let inherited = Inherited { archive, ..Inherited::default() };
    let mut log = LogWriter::start(maker(&env, KIB, KIB), inherited).expect("a healthy machine");
    fill_up_to(&mut log, 5);
    let shared = Arc::clone(log.shared());
    let mut state = shared.state.lock();
    state.leaving = state.retired.iter().map(|old| Arc::clone(&old.segment)).collect();
    drop(state);
    shared.archive(3, 0);
    let state = shared.state.lock();
    let retired: Vec<u64> = state.retired.iter().map(|old| old.segment.number).collect();
    let leaving: Vec<u64> = state.leaving.iter().map(|segment| segment.number).collect();
    let kept = [state.archive.oldest(), state.archive.newest()].map(|kept| kept.map(|kept| kept.number));
    drop(state);
    assert_eq!((retired, leaving, kept), (vec![3, 4], vec![3, 4], [Some(1), Some(2)]));
    assert_eq!((shared.oldest_segment(), shared.segment_before_active(), shared.active_segment()), (1, 4, 5));
    assert_eq!((shared.end(), shared.end_of_replayed().segment), (log.position(), 4));
    // A segment is enough of them.
    assert_eq!((shared.archived_bytes(), shared.changes_from(0)), (2 * KIB, Some((1, 2))));
    shared.forget_changes(2);
    assert_eq!(shared.release(3, usize::MAX), [Path::new("/db").join(file_name(1))]);
    assert_eq!((shared.archived_bytes(), shared.oldest_segment(), shared.changes_from(0)), (KIB, 2, None));
}

#[test]
fn what_was_kept_for_readers_of_changes_goes_where_none_are_kept_any_more() {
    let env = MemEnv::new();
    let maker = maker(&env, KIB, KIB);
    let archived = |number: u64| {
        let path = maker.directory.join(file_name(number));
        maker.env.open_log(&path, Some(KIB), true).expect("a healthy machine");
        Archived { number, path, file_bytes: KIB, written: LINK_END, next_sequence: Some(1), since_ms: 0 }
    };
    let archive = Archive::found([1, 2].into_iter().map(archived));
    let inherited = Inherited { archive, highest_number: 2, ..Inherited::default() };
    let log = LogWriter::start(maker, inherited).expect("a healthy machine");
    assert_eq!(log.shared().archived_bytes(), 0);
    let gone = [1, 2].map(|number| Path::new("/db").join(file_name(number)));
    assert_eq!(log.shared().release(3, usize::MAX), gone);
}
