//! The writer lock and room for a write that is not to wait for as long as it takes.
//!
//! The steps are those of `make_room.rs`. Where one of them would wait, the write fails instead, or
//! waits up to its limit. The log is part of it: a write that waits is given the next segment when
//! it appends, with the lock held; one that is not to wait looks before, so that append finds room.

use crate::db::background::rotate::rotate;
use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory;
use crate::db::state::memory::Step;
use crate::db::write::batch_size::ArenaReservation;
use crate::db::write::make_room::{active, full_memtable, lock_with_room, stop_cause_of};
use crate::db::write_controller::condition::{StopCause, delay_cause};
use crate::db::write_controller::wait_limit::WaitLimit;
use crate::db::write_controller::{delay, stop};
use crate::error::{Error, Result, StallCause};
use crate::memtable::Memtable;
use crate::options::{StallPolicy, WriteOptions};
use parking_lot::MutexGuard;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the lock is waited for at a time.
const SLICE: Duration = Duration::from_millis(1);

/// What a write needs room for.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// In the memtables.
    pub needs: &'a [ArenaReservation],
    /// In the log, with the header of the record.
    pub record_bytes: usize,
    pub is_logged: bool,
}

/// What is in the way of a write.
enum Obstacle {
    /// Its memtable is ahead of the target rate by so much.
    Delay { keyspace: u64, left: Duration },
    /// A memtable is full and cannot be rotated.
    Memtable { keyspace: u64, full: Weak<Memtable>, cause: StopCause },
    /// Memtables would take more than their share.
    Memory { needed: usize },
    /// The next segment of the log is not ready.
    LogSegment,
}

/// Takes the writer lock once there is room for the write. Fails with `WriteStalled` if the limit
/// expires first.
#[cold]
pub fn lock_within<'a>(inner: &'a Inner, room: Room<'_>, limit: &WaitLimit) -> Result<MutexGuard<'a, Writer>> {
    if inner.inline_jobs() {
        // The write does the work itself.
        return lock_with_room(inner, room.needs);
    }
    loop {
        inner.error_state.check()?;
        let mut writer = take_turn(inner, limit)?;
        // Again under the lock: a write that failed may just have released it.
        inner.error_state.check()?;
        let obstacle = match make_room(inner, &mut writer, room)? {
            Made::Room => return Ok(writer),
            Made::Progress => continue,
            Made::None(obstacle) => obstacle,
        };
        drop(writer);
        match limit.left() {
            None => return Err(refuse(inner, &obstacle, limit)),
            Some(left) => wait(inner, &obstacle, room, left, limit.until())?,
        }
    }
}

/// Waits as the options say until there seems to be room, and returns the options for the rest of
/// the call: before a large value is written that the write would leave behind as garbage.
pub fn before_large_value(inner: &Inner, room: Room<'_>, options: &WriteOptions) -> Result<WriteOptions> {
    match WaitLimit::begin(options.stall) {
        None => Ok(options.stall(StallPolicy::Wait)),
        Some(limit) => {
            drop(lock_within(inner, room, &limit)?);
            Ok(options.stall(limit.policy()))
        }
    }
}

/// The writer lock. A write that waits for a segment of the log holds it meanwhile.
fn take_turn<'a>(inner: &'a Inner, limit: &WaitLimit) -> Result<MutexGuard<'a, Writer>> {
    if let Some(writer) = inner.try_lock_writer() {
        return Ok(writer);
    }
    loop {
        let left = limit.turn().saturating_duration_since(Instant::now());
        if let Some(writer) = inner.writer.try_lock_for(left.min(SLICE)) {
            return Ok(writer);
        }
        let waits_for_log = inner.log.as_ref().is_some_and(|log| log.stalls.is_waiting());
        if left.is_zero() || (waits_for_log && limit.left().is_none()) {
            let cause = if waits_for_log { StallCause::LogSegment } else { StallCause::WriterLock };
            return Err(stalled(inner, None, cause, limit));
        }
    }
}

/// The result of an attempt to make room.
enum Made {
    Room,
    /// Something has changed: another look is worth while.
    Progress,
    None(Obstacle),
}

fn make_room(inner: &Inner, writer: &mut Writer, room: Room<'_>) -> Result<Made> {
    let Room { needs, record_bytes, is_logged } = room;
    let rotated = |writer: &mut Writer, keyspace, bytes| {
        rotate(inner, writer, keyspace, bytes);
        inner.wake();
        Ok(Made::Progress)
    };
    let blocked = |writer: &Writer, keyspace, cause| {
        Ok(Made::None(Obstacle::Memtable { keyspace, full: active(writer, keyspace), cause }))
    };
    if !inner.write_buffer_manager.has_credit(needs) {
        let needed = needs.iter().map(|(_, bytes)| bytes).sum();
        match memory::next_step(inner, needed) {
            None => {}
            Some(Step::Wait) => return Ok(Made::None(Obstacle::Memory { needed })),
            Some(Step::Rotate(keyspace)) => match stop_cause_of(inner, writer, keyspace) {
                Some(cause) => return blocked(writer, keyspace, cause),
                None => return rotated(writer, keyspace, 0),
            },
        }
    }
    if let Some((keyspace, bytes)) = full_memtable(inner, writer, needs)? {
        return match delay::wait(inner, writer, keyspace) {
            Some(left) if left.is_zero() => Ok(Made::Progress),
            Some(left) => Ok(Made::None(Obstacle::Delay { keyspace, left })),
            None => match stop_cause_of(inner, writer, keyspace) {
                Some(cause) => blocked(writer, keyspace, cause),
                None => rotated(writer, keyspace, bytes),
            },
        };
    }
    match &writer.log {
        Some(log) if is_logged && !log.has_room(record_bytes) => Ok(Made::None(Obstacle::LogSegment)),
        _ => Ok(Made::Room),
    }
}

/// Waits until the obstacle may be gone, for no longer than is `left`, which is up to `until`.
fn wait(inner: &Inner, obstacle: &Obstacle, room: Room<'_>, left: Duration, until: Instant) -> Result<()> {
    match obstacle {
        Obstacle::Delay { left: sleep, .. } => {
            delay::sleep(inner, left.min(*sleep));
            Ok(())
        }
        Obstacle::Memtable { keyspace, full, .. } => stop::wait_for_room(inner, *keyspace, full, Some(until)),
        Obstacle::Memory { needed } => stop::wait_for_memory(inner, *needed, Some(until)),
        Obstacle::LogSegment => stop::wait_for_segment(inner, room.record_bytes, until),
    }
}

/// The error for a write that does not wait for the obstacle. If the work that would remove it
/// keeps failing, that is the error.
fn refuse(inner: &Inner, obstacle: &Obstacle, limit: &WaitLimit) -> Error {
    // Nobody who waits may be there to do it.
    inner.wake();
    let (keyspace, cause) = match obstacle {
        Obstacle::Delay { keyspace, .. } => {
            return stalled(inner, Some(*keyspace), delay_cause(inner, *keyspace), limit);
        }
        Obstacle::Memtable { keyspace, cause, .. } => (Some(*keyspace), *cause),
        Obstacle::Memory { .. } => (None, StopCause::Memory),
        Obstacle::LogSegment => (None, StopCause::LogSegment),
    };
    match stop::check_work(inner, cause) {
        Ok(()) => stalled(inner, keyspace, cause.into(), limit),
        Err(error) => error,
    }
}

fn stalled(inner: &Inner, keyspace: Option<u64>, cause: StallCause, limit: &WaitLimit) -> Error {
    inner.counters.refused_writes.fetch_add(1, Ordering::Relaxed);
    let named =
        |id| inner.all_keyspaces().iter().find(|keyspace| keyspace.id == id).map(|found| found.name().to_string());
    Error::WriteStalled { keyspace: keyspace.and_then(named), cause, waited: limit.waited() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::batch::{Operation, encode};
    use crate::base::expiry::Ttl;
    use crate::base::key::{Kind, NEVER};
    use crate::db::background::flush;
    use crate::db::lifecycle::{keyspaces, open};
    use crate::db::maintenance::stats;
    use crate::db::write::batch_size::{reservation_bytes, start_record};
    use crate::db::write::commit::{Content, Precondition, Verdict, commit, commit_if};
    use crate::db::write_controller::condition::{DELAY_RUNS, STOP_RUNS};
    use crate::env::fault::{Action, Class, FaultEnv, Rule};
    use crate::env::mem::MemEnv;
    use crate::merge_operator::UInt64Add;
    use crate::options::{KeyspaceOptions, Options};
    use std::io::ErrorKind;
    use std::path::Path;
    use std::sync::Arc;

    const SHORT: Duration = Duration::from_millis(20);

    /// A database with keyspace 1, in which nothing is done in the background: no thread was
    /// started.
    fn database(options: impl FnOnce(Options) -> Options) -> Inner {
        let small = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options(small)).unwrap();
        keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        inner
    }

    fn put(inner: &Inner, key: u64, bytes: usize, options: &WriteOptions) -> Result<()> {
        let (key, value) = (key.to_be_bytes(), vec![7; bytes]);
        let operation = Operation { keyspace: 1, kind: Kind::Put, expiry_ms: NEVER, key: &key, value: &value };
        let mut record = Vec::new();
        start_record(&mut record);
        encode(&mut record, &operation);
        commit(inner, &mut record, Content::One(operation), &[(1, reservation_bytes(&operation))], options)
    }

    /// Writes until a write is refused: how many were not, and why that one was.
    fn until_refused(inner: &Inner, options: WriteOptions) -> (u64, Option<String>, StallCause) {
        for key in 0..1_000_000 {
            match put(inner, key, 1000, &options) {
                Ok(()) => {}
                Err(Error::WriteStalled { keyspace, cause, .. }) => return (key, keyspace, cause),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("nothing was refused")
    }

    fn failing() -> WriteOptions {
        WriteOptions::new().stall(StallPolicy::Fail)
    }

    fn unlogged() -> WriteOptions {
        failing().disable_wal(true)
    }

    fn with_runs(runs: u32) -> Inner {
        let inner = database(|options| options.write_buffer_bytes(1 << 20));
        for run in 0..runs {
            put(&inner, 0, 10, &unlogged()).unwrap();
            rotate(&inner, &mut inner.writer.lock(), 1, 0);
            flush::flush_all(&inner).unwrap();
            let keyspace = &inner.all_keyspaces()[0];
            assert_eq!(keyspace.read_state.load().version.runs.len() as u32, run + 1);
        }
        inner
    }

    /// The refusal, and the same one after a wait; both are counted, and nothing is written.
    fn refuses(inner: &Inner, options: WriteOptions, expected: StallCause) {
        let (written, keyspace, cause) = until_refused(inner, options);
        assert_eq!(cause, expected, "after {written} writes");
        let is_local = !matches!(cause, StallCause::MemoryBudget | StallCause::LogSegment);
        assert_eq!(keyspace.as_deref(), is_local.then_some("k"));
        let last = inner.last_sequence.load(Ordering::Relaxed);
        let before = stats::collect(inner);
        assert_eq!((before.refused_writes, before.stalls + before.delays), (1, 0), "{cause:?}");
        match put(inner, written, 1000, &options.stall(StallPolicy::For(SHORT))) {
            // The time for it has come meanwhile.
            Ok(()) if cause == StallCause::FlushDelay || cause == StallCause::CompactionDelay => {}
            Err(Error::WriteStalled { cause, waited, .. }) => {
                assert_eq!(cause, expected);
                assert!(waited >= SHORT, "{waited:?}");
                assert_eq!(inner.last_sequence.load(Ordering::Relaxed), last);
                assert_eq!(stats::collect(inner).refused_writes, 2);
            }
            other => panic!("{cause:?}: {other:?}"),
        }
        let after = stats::collect(inner);
        assert!(after.stalls + after.delays >= 1 && after.stall_micros + after.delay_micros >= 1000, "{after}");
    }

    #[test]
    fn memtables_that_wait_for_their_flush() {
        refuses(&database(|options| options.write_buffer_bytes(256 << 10)), unlogged(), StallCause::Flush);
    }

    #[test]
    fn a_memtable_ahead_of_the_rate_of_flushes() {
        let inner = database(|options| options.write_buffer_bytes(1 << 20));
        inner.counters.flush_speed.note(64 << 10, Duration::from_secs(3600));
        refuses(&inner, unlogged(), StallCause::FlushDelay);
    }

    #[test]
    fn runs_that_wait_for_their_compaction() {
        refuses(&with_runs(STOP_RUNS), unlogged(), StallCause::Compaction);
    }

    #[test]
    fn a_memtable_ahead_of_compactions() {
        let inner = with_runs(DELAY_RUNS);
        inner.counters.flush_speed.note(64 << 10, Duration::from_secs(3600));
        refuses(&inner, unlogged(), StallCause::CompactionDelay);
    }

    #[test]
    fn memtables_at_their_share_of_the_budget() {
        refuses(&database(|options| options.memory_budget_bytes(8 << 20)), unlogged(), StallCause::MemoryBudget);
    }

    #[test]
    fn a_segment_of_the_log_that_is_not_ready_however_long_the_record_is() {
        let inner = database(|options| options.wal_segment_bytes(64 << 10));
        refuses(&inner, failing(), StallCause::LogSegment);
        let log = inner.log.as_ref().unwrap();
        for bytes in [1000, 1 << 20, 3 << 20] {
            let stalled = || match put(&inner, 0, bytes, &failing()) {
                Ok(()) => false,
                Err(Error::WriteStalled { cause: StallCause::LogSegment, .. }) => true,
                Err(error) => panic!("{error}"),
            };
            while !stalled() {}
            assert!(log.wants_preparation(), "{bytes}");
            log.prepare_next().unwrap();
            assert!(!log.wants_preparation() && !stalled(), "what was prepared for it is too short: {bytes}");
        }
        // Not a wait of these writes.
        assert_eq!(inner.log.as_ref().unwrap().stalls.count(), 1);
    }

    #[test]
    fn a_write_that_waits_gets_the_segment_that_comes() {
        let inner = database(|options| options.wal_segment_bytes(64 << 10));
        let (written, ..) = until_refused(&inner, failing());
        let log = inner.log.as_ref().unwrap();
        let hour = failing().stall(StallPolicy::For(Duration::from_secs(3600)));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| put(&inner, written, 1000, &hour));
            while !log.stalls.is_waiting() {
                std::thread::yield_now();
            }
            assert!(!writer.is_finished());
            log.prepare_next().unwrap();
            writer.join().unwrap().unwrap();
        });
        assert_eq!(stats::collect(&inner).refused_writes, 1);
    }

    #[test]
    fn the_writer_lock_while_another_call_holds_it() {
        let inner = database(|options| options);
        let short = failing().stall(StallPolicy::For(SHORT));
        let writer = inner.writer.lock();
        let refused = |options: WriteOptions| match put(&inner, 0, 10, &options) {
            Err(Error::WriteStalled { keyspace: None, cause, .. }) => cause,
            other => panic!("{other:?}"),
        };
        assert_eq!((refused(failing()), refused(short)), (StallCause::WriterLock, StallCause::WriterLock));
        // That call waits for a segment of the log.
        let stall = inner.log.as_ref().unwrap().stalls.begin();
        assert_eq!((refused(failing()), refused(short)), (StallCause::LogSegment, StallCause::LogSegment));
        drop((writer, stall));
        put(&inner, 0, 10, &failing()).unwrap();
        assert_eq!(stats::collect(&inner).refused_writes, 4);
    }

    fn let_pass(time: Duration) {
        let inner = database(|options| options);
        let _held = inner.writer.lock();
        let refused = put(&inner, 0, 1, &failing().stall(StallPolicy::For(time)));
        assert!(matches!(refused, Err(Error::WriteStalled { .. })), "{refused:?}");
    }

    /// Takes so long before the writer lock is taken; the second time another call has it then.
    struct Slow<'a>(&'a Inner, Duration, u32);

    impl Precondition for Slow<'_> {
        fn catch_up(&mut self) -> Result<Verdict> {
            self.2 += 1;
            match self.2 {
                1 => let_pass(self.1),
                _ => std::mem::forget(self.0.writer.lock()),
            }
            Ok(Verdict::Holds)
        }

        fn holds(&mut self, _: &Writer) -> Result<Verdict> {
            Ok(Verdict::Holds)
        }
    }

    /// Seen: twice the limit. Trigger: a keyspace that gets times to live while a merge waits.
    #[test]
    fn a_merge_whose_rules_change_while_it_waits_has_one_limit() {
        let inner = database(|options| options);
        let living = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }).merge_operator(UInt64Add);
        let keyspace = keyspaces::open_or_create(&inner, "living", living).unwrap();
        inner.writer.lock().altered_merges.push(keyspace.id);
        let value = 1u64.to_le_bytes();
        let merge = Operation { keyspace: keyspace.id, kind: Kind::Merge, expiry_ms: NEVER, key: b"k", value: &value };
        let mut record = Vec::new();
        start_record(&mut record);
        encode(&mut record, &merge);
        let needs = [(keyspace.id, reservation_bytes(&merge))];
        let (options, mut slow) = (failing().stall(StallPolicy::For(SHORT)), Slow(&inner, SHORT, 0));
        match commit_if(&inner, &mut record, Content::One(merge), &needs, &options, &mut slow) {
            // Nothing was left of the limit, and that is how long it has waited since.
            Err(Error::WriteStalled { waited, .. }) => assert_eq!(waited, Duration::ZERO),
            other => panic!("{other:?}"),
        }
        assert_eq!(slow.2, 2);
    }

    fn failed() -> Error {
        Error::io("read", "/db/7.table", std::io::Error::other("on purpose"))
    }

    /// Seen: writes and flushes failed that had only to wait. Trigger: a compaction had failed, as
    /// each does that reads a damaged table.
    #[test]
    fn a_compaction_that_fails_is_told_to_those_that_wait_for_one() {
        let after_failure = |inner: Inner| {
            inner.error_state.note_background_failure(&failed());
            inner
        };
        let small = after_failure(database(|options| options.write_buffer_bytes(256 << 10)));
        refuses(&small, unlogged(), StallCause::Flush);
        let budget = after_failure(database(|options| options.memory_budget_bytes(8 << 20)));
        refuses(&budget, unlogged(), StallCause::MemoryBudget);
        let log = after_failure(database(|options| options.wal_segment_bytes(64 << 10)));
        refuses(&log, failing(), StallCause::LogSegment);
        let runs = after_failure(with_runs(STOP_RUNS));
        let refused = (0..1_000_000).find_map(|key| put(&runs, key, 1000, &unlogged()).err());
        assert!(matches!(refused, Some(Error::Io { .. })), "{refused:?}");
    }

    #[test]
    fn a_flush_waits_for_another_job_although_a_compaction_has_failed() {
        let inner = database(|options| options);
        inner.error_state.note_background_failure(&failed());
        put(&inner, 0, 10, &unlogged()).unwrap();
        std::thread::scope(|scope| {
            let jobs = inner.jobs.lock();
            let flushing = scope.spawn(|| flush::flush_now(&inner));
            while inner.jobs.waiting() == 0 && !flushing.is_finished() {
                std::thread::yield_now();
            }
            // Too short a time would hide a failure, and make none.
            let_pass(SHORT);
            flush::flush_all(&inner).unwrap();
            drop(jobs);
            flushing.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_flush_that_fails_in_whatever_way_is_told_until_one_succeeds() {
        let fault = FaultEnv::new(Arc::new(MemEnv::default()));
        let inner = database(|options| options.env(Arc::new(fault.clone())));
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            put(&inner, 0, 10, &unlogged()).unwrap();
            rotate(&inner, &mut inner.writer.lock(), 1, 0);
            fault.add(Rule::new(Class::Create, 0, Action::Fail(kind)).on_names_with(".table").from_then_on());
            let error = flush::flush_what_has_room(&inner).unwrap_or_else(Some).unwrap();
            assert!(inner.error_state.check_flush().is_err(), "{kind:?}");
            inner.error_state.note_background_failure(&error);
            fault.clear();
            flush::flush_what_has_room(&inner).unwrap();
            // Nor is it one of the round.
            assert!(inner.error_state.check_background().is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn nothing_stalls_where_writes_do_the_work() {
        let inner = database(|options| options.background_threads(0).write_buffer_bytes(64 << 10));
        (0..2000).for_each(|key| put(&inner, key, 1000, &failing()).unwrap());
        let stats = stats::collect(&inner);
        assert!(stats.flushes > 2 && stats.refused_writes == 0, "{stats}");
    }
}
