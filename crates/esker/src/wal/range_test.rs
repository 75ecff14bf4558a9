//! What syncs of parts of a segment promise, and that what they leave out stays away.

use super::format::RECORD_HEADER_BYTES;
use super::log_sync::LogSync;
use super::reader::{Visited, replay};
use super::segment::Position;
use super::segment::{SegmentMaker, file_name};
use super::writer::{Inherited, LogWriter};
use crate::env::Env;
use crate::env::fault::{Action, Class, FaultEnv, Rule};
use crate::env::mem::{CrashMode, MemEnv};
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

const SEGMENT_BYTES: u64 = 1 << 10;

fn maker(env: Arc<dyn Env>) -> SegmentMaker {
    SegmentMaker {
        env,
        directory: Path::new("/db").to_path_buf(),
        mapped: true,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes: SEGMENT_BYTES,
        largest_bytes: SEGMENT_BYTES,
    }
}

fn start(env: Arc<dyn Env>) -> LogWriter {
    env.create_dir_all(Path::new("/db")).expect("an empty machine");
    env.sync_dir(Path::new("/")).expect("a healthy machine");
    LogWriter::start(maker(env), Inherited::default()).expect("a healthy machine")
}

/// The payload of a write, of a length of its own.
fn payload(sequence: u64) -> Vec<u8> {
    vec![sequence as u8; 40 + (sequence % 23) as usize]
}

fn append(log: &mut LogWriter, sequence: u64) {
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend_from_slice(&payload(sequence));
    log.append(&mut record, sequence, sequence - 1, sequence.is_multiple_of(5)).expect("a healthy machine");
}

/// The sequence numbers that a start would find from segment `floor` on.
fn found(env: &MemEnv, floor: u64) -> Vec<u64> {
    let mut found = Vec::new();
    replay(&maker(Arc::new(env.clone())), floor, Position::default(), &mut |record| {
        assert_eq!(record.payload, payload(record.sequence));
        found.push(record.sequence);
        Ok(Visited::Last(record.sequence))
    })
    .expect("a log after a power loss");
    found
}

#[test]
fn a_durable_link_says_nothing_about_what_is_behind_it() {
    let env = MemEnv::new();
    let mut log = start(Arc::new(env.clone()));
    let mut sequence = 0;
    while log.position().segment < 3 {
        sequence += 1;
        append(&mut log, sequence);
    }
    let floor = log.position().segment;
    let calls = env.mutations();
    log.shared().sync_link(floor).expect("a healthy machine");
    log.shared().sync_link(floor).expect("a healthy machine");
    assert_eq!(env.mutations(), calls + 1, "once is enough");
    assert_eq!(found(&env.crash(&CrashMode::LoseAll, 0), floor), []);
    // Neither does it keep a later sync from covering the records.
    log.shared().sync_all().expect("a healthy machine");
    assert_eq!(found(&env.crash(&CrashMode::LoseAll, 0), floor), [sequence]);
    assert_eq!(found(&env.crash(&CrashMode::LoseAll, 0), 1), (1..=sequence).collect::<Vec<_>>());
}

/// Files go through several lives, most of whose bytes are never synced, so that what a power loss
/// leaves behind the end of the log may be of any of them.
#[test]
fn bytes_of_earlier_lives_of_a_segment_never_come_back() {
    for seed in 0..60u64 {
        let env = MemEnv::new();
        let mut log = start(Arc::new(env.clone()));
        let shared = Arc::clone(log.shared());
        let (mut synced, mut floor, mut first) = (0, 1, 1);
        for sequence in 1..=150 + seed {
            let before = log.position().segment;
            append(&mut log, sequence);
            if log.position().segment != before && sequence % 3 > 0 {
                // As after a flush of all that came before.
                (floor, first) = (log.position().segment, sequence);
                shared.sync_link(floor).expect("a healthy machine");
                assert!(shared.release(floor, usize::MAX).is_empty());
            }
            if sequence.is_multiple_of(47) {
                shared.sync_all().expect("a healthy machine");
                synced = sequence;
            }
        }
        assert!(env.files().len() < 8, "segments are used again: {:?}", env.files());
        for mode in CrashMode::FIXED.into_iter().chain([CrashMode::Random; 8]) {
            for image in 0..4 {
                let found = found(&env.crash(&mode, seed * 10 + image), floor);
                let end = first + found.len() as u64;
                assert_eq!(found, (first..end).collect::<Vec<_>>(), "seed {seed}, {mode:?}");
                assert!(end > synced, "seed {seed}, {mode:?}: {end} of {synced}");
            }
        }
    }
}

#[test]
fn a_failed_sync_of_a_range_is_the_last_one() {
    let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
    let mut log = start(Arc::new(faulty.clone()));
    append(&mut log, 1);
    faulty.add(Rule::new(Class::Sync, 0, Action::FailAfter(std::io::ErrorKind::Other)).on_names_with(file_name(1)));
    assert!(log.shared().sync_all().is_err());
    let calls = faulty.calls(Class::Sync);
    assert!(log.shared().sync_all().is_err() && log.shared().sync_link(1).is_err() && log.close().is_err());
    assert_eq!(faulty.calls(Class::Sync), calls);
}

#[test]
fn a_panic_while_a_segment_is_prepared_holds_up_no_writer() {
    let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
    let mut log = start(Arc::new(faulty.clone()));
    faulty.add(Rule::new(Class::Create, 0, Action::Panic).on_names_with(".wal"));
    let shared = Arc::clone(log.shared());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.prepare_next())).is_err());
    let (done, is_done) = std::sync::mpsc::channel();
    // Not scoped: if it hangs, the test must end all the same.
    std::thread::spawn(move || {
        // More than a segment holds: the next one is made here.
        (1..=50).for_each(|sequence| append(&mut log, sequence));
        done.send(()).expect("the test waits");
    });
    is_done.recv_timeout(std::time::Duration::from_secs(300)).expect("the writer waits for a preparation that is over");
}

#[test]
fn who_finds_no_segment_ready_is_seen_to_wait() {
    let mut log = start(Arc::new(MemEnv::new()));
    let shared = Arc::clone(log.shared());
    shared.prepare_next().expect("a healthy machine");
    let fill = |log: &mut LogWriter, segment| {
        while log.position().segment < segment {
            append(log, 1);
        }
    };
    fill(&mut log, 2);
    assert_eq!(shared.stalls.count(), 0, "it was ready");
    fill(&mut log, 4);
    assert_eq!(shared.stalls.count(), 2);
    assert!(!shared.stalls.is_waiting(), "that is over");
}

#[test]
fn a_panic_during_a_sync_is_a_sync_that_failed() {
    let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
    let mut log = start(Arc::new(faulty.clone()));
    append(&mut log, 1);
    faulty.add(Rule::new(Class::Sync, 0, Action::Panic).on_names_with(file_name(1)));
    let shared = Arc::clone(log.shared());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.sync_all())).is_err());
    let (done, is_done) = std::sync::mpsc::channel();
    // Not scoped: if it hangs, the test must end all the same.
    std::thread::spawn(move || done.send(shared.sync_all().is_err() && shared.sync_link(1).is_err()));
    let failed = is_done.recv_timeout(std::time::Duration::from_secs(300)).expect("a sync waits for one that is over");
    assert!(failed, "nobody knows what the device has");
}

/// The database is told before any other thread can meet the failure, and say something else.
#[test]
fn all_that_meet_a_failed_sync_give_the_reason_that_the_database_is_told() {
    for (action, cause) in [(Action::Fail(ErrorKind::Other), "injected failure"), (Action::Panic, "a panic")] {
        let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
        let mut log = start(Arc::new(faulty.clone()));
        append(&mut log, 1);
        let shared = Arc::clone(log.shared());
        let (tell, told) = mpsc::channel();
        let telling = Arc::downgrade(&shared);
        shared.on_failure(Box::new(move |why: &str| {
            let known = telling.upgrade().and_then(|log| log.state.lock().failure.clone());
            tell.send((why.to_owned(), known)).expect("the test listens");
        }));
        faulty.add(Rule::new(Class::Sync, 0, action).on_names_with(file_name(1)));
        let first = catch_unwind(AssertUnwindSafe(|| shared.sync_all()));
        assert!(!matches!(first, Ok(Ok(()))), "{first:?}");
        let (why, known) = told.try_recv().expect("it is told");
        assert!(why.contains(cause), "{why}");
        assert_eq!(known, None, "others know it already");
        for again in [shared.sync_all(), shared.sync_link(1), log.close()] {
            assert!(matches!(&again, Err(Error::ReadOnly { why: given }) if *given == why), "{again:?}");
        }
        assert!(told.try_recv().is_err(), "it is told once");
    }
}

#[test]
fn a_panic_in_a_sync_is_told_to_those_who_wait_for_it() {
    let mut log = start(Arc::new(MemEnv::new()));
    append(&mut log, 1);
    let shared = Arc::clone(log.shared());
    let (begin, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    shared.sync_before(Box::new(move || -> Result<()> {
        begin.send(()).expect("the test waits");
        goes_on.lock().expect("one thread syncs").recv().expect("the test goes on");
        // Without a message to standard error.
        resume_unwind(Box::new("on purpose"))
    }));
    let other = Arc::clone(&shared);
    let syncing = std::thread::spawn(move || other.sync_all());
    begun.recv().expect("a sync begins");
    let (done, is_done) = mpsc::channel();
    // Not scoped: if it hangs, the test must end all the same.
    std::thread::spawn(move || done.send(shared.sync_all()));
    go_on.send(()).expect("the sync waits");
    let waited = is_done.recv_timeout(std::time::Duration::from_secs(300)).expect("it waits for a sync that is over");
    assert!(matches!(&waited, Err(Error::ReadOnly { why }) if why.contains("a panic interrupted")), "{waited:?}");
    assert!(syncing.join().is_err(), "the panic is that of the thread that synced");
}

/// Syncs when it goes.
struct SyncsAtEnd(Arc<LogSync>);

impl Drop for SyncsAtEnd {
    fn drop(&mut self) {
        self.0.sync_all().expect("a healthy machine");
    }
}

/// What the program does while it unwinds says nothing of the device.
#[test]
fn a_sync_in_a_thread_that_has_panicked_is_not_taken_for_one_that_did() {
    let mut log = start(Arc::new(MemEnv::new()));
    append(&mut log, 1);
    let syncs = SyncsAtEnd(Arc::clone(log.shared()));
    let unwound = catch_unwind(AssertUnwindSafe(move || -> Result<()> {
        let _syncs = syncs;
        resume_unwind(Box::new("on purpose"))
    }));
    assert!(unwound.is_err());
    append(&mut log, 2);
    log.shared().sync_all().expect("no sync has failed");
}

#[test]
fn a_segment_is_prepared_when_the_one_before_fills_and_not_earlier() {
    let env = MemEnv::new();
    let mut log = start(Arc::new(env.clone()));
    let shared = Arc::clone(log.shared());
    assert!(!shared.wants_preparation() && !log.take_notice() && shared.is_idle(true));
    append(&mut log, 1);
    assert!(shared.wants_preparation() && log.take_notice() && !log.take_notice());
    shared.prepare_next().expect("a healthy machine");
    assert!(!shared.wants_preparation() && !shared.is_idle(false));
    log.rest(false, 1).expect("a healthy machine");
    assert_eq!(shared.release(1, 0), [Path::new("/db").join(file_name(2))]);
    assert!(!shared.wants_preparation() && !log.take_notice() && shared.is_idle(true));
    append(&mut log, 2);
    append(&mut log, 3);
    assert!(shared.wants_preparation() && log.take_notice());
}

/// Under the log's lock each time, so every step says something new, and there is an end.
#[test]
fn prefault_ends_when_nothing_is_left_to_do() {
    let env = MemEnv::new();
    let mut log = start(Arc::new(env.clone()));
    let shared = Arc::clone(log.shared());
    assert!(!shared.prefault_step());
    let mut sequence = 0;
    while log.position().segment < 4 {
        sequence += 1;
        append(&mut log, sequence);
    }
    let steps = (0..100).take_while(|_| shared.prefault_step()).count();
    // Of the three full segments the writer has taken two out of memory, each when the next one was
    // full and the background thread had not.
    assert!((1..3).contains(&steps), "{steps}");
    assert!(!shared.prefault_step());
}

#[test]
fn a_log_that_was_emptied_counts_anew() {
    let mut log = start(Arc::new(MemEnv::new()));
    let shared = Arc::clone(log.shared());
    append(&mut log, 1);
    assert!(shared.bytes_since_idle() > 0 && shared.held_bytes() == SEGMENT_BYTES);
    shared.note_idle();
    assert_eq!(shared.bytes_since_idle(), 0);
    append(&mut log, 2);
    assert!(shared.bytes_since_idle() > 0);
}
