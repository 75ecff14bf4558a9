//! When writers wait, and why.
//!
//! A writer whose memtable is full waits while too many full ones are waiting for their flush, or too many runs for their merge. It waits for exactly that to change,
//! is told the reason, and the time is counted. Before it comes to that, `write_delay.rs` slows it down. With a memory budget it also waits while memtables take their share of it (`memory.rs`). If the background work it waits for keeps failing, it gets that error instead.

use crate::db::background::{run, write_delay};
use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, Writer};
use crate::db::state::memory;
use crate::db::state::write_throttle::MAX_FROZEN;
use crate::error::Result;
use crate::memtable::Memtable;
use crate::options::CompactionStyle;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Runs of one keyspace at which writes wait for merging.
pub const MAX_RUNS: usize = 32;
/// How long a waiting writer sleeps before it looks again, whatever happens.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why a full memtable of the keyspace cannot be put aside now.
pub fn reason_to_wait(inner: &Inner, writer: &Writer, keyspace: u64) -> Option<&'static str> {
    let target = writer.keyspaces.get(keyspace as usize)?.as_ref()?;
    if inner.inline_jobs() {
        return None;
    }
    reason(&target.keyspace)
}

fn reason(keyspace: &crate::db::state::inner::KeyspaceInner) -> Option<&'static str> {
    let view = keyspace.view.load();
    if view.frozen.len() >= MAX_FROZEN {
        return Some("too many memtables wait for their flush");
    }
    let merges = !matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. });
    (merges && view.tree.runs.len() >= MAX_RUNS).then_some("too many runs wait for their compaction")
}

/// Waits while too much work waits in the keyspace, if that is done by another thread.
pub fn wait_if_behind(inner: &Inner, keyspace: &crate::db::state::inner::KeyspaceInner) -> Result<()> {
    if inner.inline_jobs() { Ok(()) } else { wait_while(inner, &keyspace.name, || reason(keyspace)) }
}

/// Why a write may have to wait at the moment, if it may.
pub fn current_reason(inner: &Inner) -> Option<String> {
    let keyspaces = inner.all_keyspaces();
    keyspaces
        .iter()
        .find_map(|keyspace| reason(keyspace).map(|reason| format!("{reason} in keyspace {:?}", keyspace.name)))
        .or_else(|| {
            let waits = inner.log.as_ref().is_some_and(|log| log.waits.one_waits());
            waits.then(|| "the next segment of the log is not ready".to_owned())
        })
        .or_else(|| keyspaces.iter().find_map(|keyspace| write_delay::reason(inner, keyspace).map(str::to_owned)))
        .or_else(|| memory::reason_to_wait(inner, &keyspaces, 0).map(str::to_owned))
}

/// Lets whoever does the work know that there is more of it; does it here where nobody else does.
pub fn work_was_added(inner: &Inner) -> Result<()> {
    if inner.inline_jobs() {
        return run::run_all(inner, false);
    }
    inner.wake();
    Ok(())
}

/// Waits until the keyspace's memtable, which is `full`, can be put aside, or somebody else has done that: of all that wait for the same flush one puts it aside, and
/// then there is room for the others, although as many memtables wait as before.
pub fn wait_for_room(inner: &Inner, keyspace: u64, full: &Weak<Memtable>) -> Result<()> {
    let keyspaces = inner.all_keyspaces();
    let target = keyspaces.iter().find(|candidate| candidate.id == keyspace);
    let Some(target) = target else { return Ok(()) };
    let is_active = || std::ptr::eq(Arc::as_ptr(&target.view.load().active), full.as_ptr());
    wait_while(inner, &target.name, || reason(target).filter(|_| is_active()))
}

/// Waits until memtables may take `needed` bytes more of the memory budget.
pub fn wait_for_memory(inner: &Inner, needed: usize) -> Result<()> {
    if inner.inline_jobs() {
        // Whoever flushes at the moment is waited for by its lock.
        return work_was_added(inner);
    }
    let keyspaces = inner.all_keyspaces();
    wait_while(inner, "", || memory::reason_to_wait(inner, &keyspaces, needed))
}

/// Waits while there is a reason to. `keyspace`: the name of the one that is written to; empty if that does not matter.
fn wait_while(inner: &Inner, keyspace: &str, reason: impl Fn() -> Option<&'static str>) -> Result<()> {
    if reason().is_none() {
        return Ok(());
    }
    let started = Instant::now();
    inner.counters.stalls.fetch_add(1, Relaxed);
    let why = || reason().unwrap_or("background work was behind").to_owned();
    inner.events.note(|| Event::StallBegan { keyspace: keyspace.to_owned(), reason: why() });
    let mut result = Ok(());
    let mut signals = inner.signals.lock();
    while reason().is_some() && !signals.shutting_down {
        result = inner.condition.check().and_then(|()| inner.condition.check_background());
        if result.is_err() {
            break;
        }
        signals.work = true;
        inner.work_arrived.notify_one();
        inner.work_done.wait_for(&mut signals, LOOK_AGAIN);
    }
    drop(signals);
    inner.events.note(|| Event::StallEnded { keyspace: keyspace.to_owned(), waited: started.elapsed() });
    inner.counters.stall_micros.fetch_add(started.elapsed().as_micros() as u64, Relaxed);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::{Entry, Kind, hash};
    use crate::db::background::rotate::freeze;
    use crate::db::lifecycle::{keyspaces, open};
    use crate::db::maintenance::stats;
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
        for _ in 0..MAX_FROZEN {
            fill();
            freeze(&inner, &mut inner.writer.lock(), keyspace.id, 0);
        }
        fill();
        let full = Arc::downgrade(&keyspace.view.load().active);
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let done = done.clone();
                let (inner, full, id) = (&inner, &full, keyspace.id);
                scope.spawn(move || done.send(wait_for_room(inner, id, full).is_ok()).unwrap());
            }
            let begun = Instant::now();
            while inner.counters.stalls.load(Relaxed) < 2 && begun.elapsed() < Duration::from_secs(300) {
                std::thread::yield_now();
            }
            assert!(is_done.recv_timeout(Duration::from_millis(250)).is_err(), "they did not wait");
            freeze(&inner, &mut inner.writer.lock(), keyspace.id, 0);
            assert!(reason(&keyspace).is_some(), "there are even more to be flushed");
            for _ in 0..2 {
                let gone_on = is_done.recv_timeout(Duration::from_secs(300));
                inner.signals.lock().shutting_down |= gone_on.is_err();
                assert_eq!(gone_on, Ok(true), "one of them waits for the next flush");
            }
        });
        assert_eq!(inner.counters.stalls.load(Relaxed), 2);
    }

    #[test]
    fn who_waits_for_a_segment_of_the_log_is_told_so() {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options).unwrap();
        assert_eq!(current_reason(&inner), None);
        let wait = inner.log.as_ref().unwrap().waits.begin();
        assert_eq!(current_reason(&inner).as_deref(), Some("the next segment of the log is not ready"));
        drop(wait);
        assert_eq!(current_reason(&inner), None);
        assert_eq!(stats::collect(&inner).stalls, 1);
    }
}
