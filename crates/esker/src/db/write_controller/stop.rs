//! The wait of a writer that a limit stops.
//!
//! It waits until exactly that limit allows it again; the listener receives the cause, and the time
//! counts as stopped. If the background work it waits for keeps failing, the write fails with that
//! error instead. A write with a limit (`wait_limit.rs`) ends its wait when that is reached.

use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::memory;
use crate::db::write_controller::condition::{StopCause, stop_cause};
use crate::error::Result;
use crate::memtable::Memtable;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a stopped writer sleeps at most before it checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Waits while the keyspace is stopped, if another thread does the background work.
pub fn wait_if_behind(inner: &Inner, keyspace: &KeyspaceInner) -> Result<()> {
    wait_while(inner, &keyspace.name(), None, || stop_cause(inner, keyspace))
}

/// Waits until the keyspace's memtable, which is `full`, can become immutable, or has: of all
/// writers that wait for the same flush one rotates the memtable, and then there is room for the
/// others, although as many memtables wait as before. No longer than `until`.
pub fn wait_for_room(inner: &Inner, keyspace: u64, full: &Weak<Memtable>, until: Option<Instant>) -> Result<()> {
    let keyspaces = inner.all_keyspaces();
    let target = keyspaces.iter().find(|candidate| candidate.id == keyspace);
    let Some(target) = target else { return Ok(()) };
    let is_active = || std::ptr::eq(Arc::as_ptr(&target.read_state.load().active), full.as_ptr());
    wait_while(inner, &target.name(), until, || stop_cause(inner, target).filter(|_| is_active()))
}

/// Waits until memtables may take `needed` bytes more of the memory budget; another thread does the
/// background work. No longer than `until`.
pub fn wait_for_memory(inner: &Inner, needed: usize, until: Option<Instant>) -> Result<()> {
    let keyspaces = inner.all_keyspaces();
    wait_while(inner, "", until, || memory::exceeds_budget(inner, &keyspaces, needed).then_some(StopCause::Memory))
}

/// Waits until the log has a segment ready for a record of so many bytes, no longer than `until`.
/// Without the writer lock, which a writer holds that waits for as long as it takes.
pub fn wait_for_segment(inner: &Inner, record_bytes: usize, until: Instant) -> Result<()> {
    let Some(log) = &inner.log else { return Ok(()) };
    let _wait = log.stalls.begin();
    loop {
        // Each time: another writer may have taken the segment that was requested.
        log.request(record_bytes);
        inner.wake();
        if log.wait_until_prepared(record_bytes, until.min(Instant::now() + LOOK_AGAIN)) || Instant::now() >= until {
            return Ok(());
        }
        inner.error_state.check()?;
        check_work(inner, StopCause::LogSegment)?;
    }
}

/// The error for a writer that would wait for the end of this, if the work that ends it keeps
/// failing.
pub fn check_work(inner: &Inner, cause: StopCause) -> Result<()> {
    match cause {
        StopCause::Runs => inner.error_state.check_background(),
        StopCause::ImmutableMemtables | StopCause::Memory | StopCause::LogSegment => inner.error_state.check_flush(),
    }
}

/// Waits while there is a cause, no longer than `until`. `keyspace`: the name of the one that is
/// written to; empty if that does not matter.
fn wait_while(
    inner: &Inner,
    keyspace: &str,
    until: Option<Instant>,
    cause: impl Fn() -> Option<StopCause>,
) -> Result<()> {
    let Some(first) = cause() else { return Ok(()) };
    let stop = inner.counters.stops.begin();
    inner.events.note(|| Event::StallBegan { keyspace: keyspace.to_owned(), reason: first.to_string() });
    let mut result = Ok(());
    let mut signals = inner.signals.lock();
    let left = || until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
    while let Some(now) = cause()
        && !signals.shutting_down
        && !left().is_zero()
    {
        result = inner.error_state.check().and_then(|()| check_work(inner, now));
        if result.is_err() {
            break;
        }
        signals.work = true;
        inner.work_arrived.notify_one();
        inner.work_done.wait_for(&mut signals, left().min(LOOK_AGAIN));
    }
    drop(signals);
    inner.events.note(|| Event::StallEnded { keyspace: keyspace.to_owned(), waited: stop.elapsed() });
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::{Entry, Kind, hash};
    use crate::db::background::rotate::rotate;
    use crate::db::lifecycle::{keyspaces, open};
    use crate::db::maintenance::stats;
    use crate::db::state::write_throttle::MAX_IMMUTABLE_MEMTABLES;
    use crate::db::write_controller::condition;
    use crate::env::mem::MemEnv;
    use crate::memtable::WriteContext;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::mpsc;

    #[test]
    fn whoever_waits_with_others_goes_on_when_one_of_them_has_made_room() {
        // Nothing is flushed here: no thread was started.
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        let fill = || {
            let mut writer = inner.writer.lock();
            let entry = Entry { key: b"k", sequence: 1, kind: Kind::Put, expiry_ms: 0, value: b"v" };
            let context = WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
            writer.keyspaces[keyspace.id as usize].as_mut().unwrap().memtable.apply(hash(b"k"), entry, context);
        };
        for _ in 0..MAX_IMMUTABLE_MEMTABLES {
            fill();
            rotate(&inner, &mut inner.writer.lock(), keyspace.id, 0);
        }
        fill();
        let full = Arc::downgrade(&keyspace.read_state.load().active);
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let done = done.clone();
                let (inner, full, id) = (&inner, &full, keyspace.id);
                scope.spawn(move || done.send(wait_for_room(inner, id, full, None).is_ok()).unwrap());
            }
            // Woken while nothing has changed, they look, and wait again.
            let both_wait = || {
                loop {
                    if inner.work_done.notify_all() == 2 {
                        return true;
                    }
                    if is_done.try_recv().is_ok() {
                        return false;
                    }
                    std::thread::yield_now();
                }
            };
            let have_waited = (0..3).all(|_| both_wait());
            inner.signals.lock().shutting_down |= !have_waited;
            assert!(have_waited, "they did not wait");
            rotate(&inner, &mut inner.writer.lock(), keyspace.id, 0);
            assert!(stop_cause(&inner, &keyspace).is_some(), "there are even more to be flushed");
            for _ in 0..2 {
                let gone_on = is_done.recv_timeout(Duration::from_secs(300));
                inner.signals.lock().shutting_down |= gone_on.is_err();
                assert_eq!(gone_on, Ok(true), "one of them waits for the next flush");
            }
        });
        assert_eq!(inner.counters.stops.count(), 2);
    }

    #[test]
    fn who_waits_for_a_segment_of_the_log_is_told_so() {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options).unwrap();
        assert_eq!(condition::reason(&inner), None);
        let stall = inner.log.as_ref().unwrap().stalls.begin();
        assert_eq!(condition::reason(&inner).as_deref(), Some("the next segment of the log is not ready"));
        drop(stall);
        assert_eq!(condition::reason(&inner), None);
        assert_eq!(stats::collect(&inner).stalls, 1);
    }
}
