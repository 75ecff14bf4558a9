//! The background thread: what is next, and when.
//!
//! One thread does all of it, so that on two cores the other belongs to the caller (only
//! compactions may use more, see `compaction.rs`): flushes first, then the next log segment, then
//! compactions. A flush that becomes due during a compaction is done inside the compaction. With no
//! background thread the same steps run inside the calls that add work, in the same order every
//! time.

use crate::db::background::commit_version_edit::lock_jobs;
use crate::db::background::compaction::{carry_out, collect_blobs, compress_blobs, due_ms, next_job};
use crate::db::background::flush::{RETRY_AFTER, flush_what_has_room, rotate_log_holders, unless_disk_full};
use crate::db::background::range_del_drop::reclaim_all;
use crate::db::background::{expired_memtables, idle};
use crate::db::files::remover;
use crate::db::state::inner::{Inner, Signals};
use crate::error::Result;
use parking_lot::MutexGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Without a write for this long writers count as paused: what need not be done beside them is.
const PAUSED_AFTER: Duration = Duration::from_millis(50);
/// Without a write for this long the database counts as idle: the log gives back what it keeps for
/// more of them. It is longer because the next write then begins with new files.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// The body of the background thread. A panic in it, which can only be a defect, ends writing and
/// not the process.
pub fn run(inner: &Inner) {
    if catch_unwind(AssertUnwindSafe(|| work_until_stopped(inner))).is_err() {
        inner.error_state.refuse_after_panic("background work panicked");
        inner.signals.lock().busy = false;
        inner.work_done.notify_all();
    }
    let mut signals = inner.signals.lock();
    signals.ended = true;
    let abandoned = signals.abandoned;
    drop(signals);
    if abandoned {
        inner.release();
    }
}

fn work_until_stopped(inner: &Inner) {
    loop {
        let (manual, paused, idle) = {
            let mut signals = inner.signals.lock();
            if signals.shutting_down {
                return;
            }
            signals.work = false;
            signals.busy = true;
            let manual = std::mem::take(&mut signals.manual);
            let pause = pause(inner);
            (manual, manual || pause >= PAUSED_AFTER, manual || pause >= IDLE_AFTER)
        };
        if !idle {
            inner.memory.note_idle(false);
        }
        let result = if idle { work_when_idle(inner, manual) } else { run_all(inner, paused) };
        match &result {
            Ok(()) => inner.error_state.recovered(),
            // Giving up for a close is no failure. Neither is finding the database read-only: that
            // was reported already.
            Err(_) if inner.stopping.load(Relaxed) || inner.error_state.check().is_err() => {}
            Err(error) => inner.error_state.note_background_failure(error),
        }
        let until_due = if paused && result.is_ok() { wait_for_due(inner) } else { None };
        // Also if a write has put an end to a pause before all was given back. Found out without
        // the lock: the program's clock is asked, which may use the database.
        let is_due = paused && result.is_ok() && !(idle && pause(inner) >= IDLE_AFTER);
        let gives_back = is_due && idle::gives_something_back(inner);
        let mut signals = inner.signals.lock();
        signals.busy = false;
        inner.work_done.notify_all();
        if signals.shutting_down {
            return;
        }
        // Once read-only there is nothing to do but to wait for the end.
        let patience = match (&result, paused) {
            (Err(_), _) if inner.error_state.check().is_err() => None,
            (Err(_), _) => Some(RETRY_AFTER),
            (Ok(()), false) => Some(PAUSED_AFTER),
            (Ok(()), true) if gives_back => Some(until_due.map_or(IDLE_AFTER, |until_due| until_due.min(IDLE_AFTER))),
            (Ok(()), true) => until_due,
        };
        if result.is_err() || !(signals.work || signals.manual) {
            wait(inner, &mut signals, patience);
        }
    }
}

/// How long to wait until an expiry is worth a check. The wait is bounded, because the clock may be
/// set, and because readers that hold obsolete files, before whose removal no more values are
/// compressed, do not signal when they leave.
fn wait_for_due(inner: &Inner) -> Option<Duration> {
    const LEAST_MS: u64 = 1000;
    const MOST_MS: u64 = 10_000;
    let in_memory = inner.all_keyspaces().iter().filter_map(|keyspace| expired_memtables::due_ms(keyspace)).min();
    let due = due_ms(inner).into_iter().chain(in_memory).min();
    let wait = due.map(|due| due.saturating_sub(inner.options.clock.now_ms()).clamp(LEAST_MS, MOST_MS));
    let waits_for_readers = inner.dropped.are_seen() || !inner.shrinking.lock().is_empty();
    let for_readers = waits_for_readers.then_some(MOST_MS);
    wait.into_iter().chain(for_readers).min().map(Duration::from_millis)
}

fn wait(inner: &Inner, signals: &mut MutexGuard<'_, Signals>, patience: Option<Duration>) {
    match patience {
        Some(patience) => drop(inner.work_arrived.wait_for(signals, patience)),
        None => inner.work_arrived.wait(signals),
    }
}

/// Has the background thread look for work, as if no write had come for `time` longer, and waits
/// until it has done all that it found.
#[cfg(feature = "internals")]
pub fn round_after(inner: &Inner, time: Duration) {
    // The writes until now are noted first.
    pause(inner);
    let mut last = inner.last_write.lock();
    last.1 = last.1.checked_sub(time).expect("the machine has run for longer");
    drop(last);
    let mut signals = inner.signals.lock();
    signals.work = true;
    while (signals.work || signals.busy) && !signals.ended {
        // Again each time: after a failure it waits, whatever was signalled before.
        inner.work_arrived.notify_one();
        inner.work_done.wait_for(&mut signals, Duration::from_millis(100));
    }
}

/// For how long no write has come, as far as the checks since then tell.
fn pause(inner: &Inner) -> Duration {
    // Large values come before the batch that they are part of is committed.
    let now = (inner.last_sequence.load(Relaxed), inner.thread_gate.writes() + inner.blobs.appends());
    let mut last = inner.last_write.lock();
    if last.0 != now {
        *last = (now, Instant::now());
    }
    last.1.elapsed()
}

/// Signals new work to the background thread; without one, does the work here.
pub fn work_was_added(inner: &Inner) -> Result<()> {
    if inner.inline_jobs() {
        return run_all(inner, false);
    }
    inner.wake();
    Ok(())
}

/// Does everything that is due, in the calling thread. The job lock is released between two jobs.
pub fn run_all(inner: &Inner, paused: bool) -> Result<()> {
    while !inner.stopping.load(Relaxed) {
        let _jobs = lock_jobs(inner)?;
        let done = run_next(inner, paused).inspect_err(|_| {
            // The next attempt may fail too, and what could go would be kept as long.
            remover::sweep(inner);
            // What a job that failed has written of large values would else be there again after
            // each attempt.
            remover::sweep_blobs(inner);
        });
        if !done? {
            break;
        }
    }
    remover::sweep(inner);
    Ok(())
}

/// Does everything that is due when no more writes are expected. The log gives back its space
/// first, which compactions can use; large values are compressed last.
fn work_when_idle(inner: &Inner, drain_requested: bool) -> Result<()> {
    if inner.stopping.load(Relaxed) {
        return Ok(());
    }
    // On a full disk there may be no room for its new segment, and jobs that make some.
    let emptied = idle::empty_log(inner, drain_requested);
    let done = run_all(inner, true);
    emptied?;
    done?;
    // Writes made meanwhile are left for the next time: the caller does not wait for ever.
    let before = inner.next_file.load(Relaxed);
    while !inner.stopping.load(Relaxed) && (drain_requested || is_idle(inner)) && compress_next(inner, before)? {
        // Writes that come must not wait for a compaction until all values are compressed.
        run_all(inner, true)?;
    }
    idle::reclaim(inner)
}

fn compress_next(inner: &Inner, before: u64) -> Result<bool> {
    let _jobs = lock_jobs(inner)?;
    compress_blobs(inner, before, false)
}

/// Whether neither a write nor a load is likely to come soon.
fn is_idle(inner: &Inner) -> bool {
    pause(inner) >= IDLE_AFTER && inner.in_progress.lock().is_empty()
}

/// Flushes, and does one job more. Whether there may be another. The caller holds the job lock.
///
/// Where there is no room for one thing, what comes behind it is done all the same, since it may
/// make some; the error is returned then.
fn run_next(inner: &Inner, paused: bool) -> Result<bool> {
    let flushed = flush_what_has_room(inner)?;
    rotate_log_holders(inner);
    if paused {
        expired_memtables::rotate_due(inner);
    }
    let reclaimed = unless_disk_full(reclaim_all(inner))?;
    // An error here is about compactions only.
    let due = next_job(inner, paused);
    let compacted = match due {
        Ok(Some(job)) => match unless_disk_full(carry_out(inner, job))? {
            None => return Ok(true),
            full => full,
        },
        Ok(None) => None,
        Err(error) => Some(error),
    };
    if collect_blobs(inner, false)? {
        return Ok(true);
    }
    match flushed.or(reclaimed).or(compacted) {
        Some(error) => Err(error),
        None => Ok(inner.all_keyspaces().iter().any(|keyspace| !keyspace.read_state.load().immutable.is_empty())),
    }
}

/// Waits until nothing is left to do in the background, as after a long pause.
pub fn wait_idle(inner: &Inner) -> Result<()> {
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    if inner.inline_jobs() {
        return work_when_idle(inner, true);
    }
    let mut signals = inner.signals.lock();
    signals.manual = true;
    inner.work_arrived.notify_one();
    while (signals.manual || signals.busy || signals.work) && !signals.shutting_down {
        inner.error_state.check()?;
        // Not before the work was tried again: what failed before the call may be done by then.
        if !signals.manual && !signals.busy {
            inner.error_state.check_background()?;
        }
        inner.work_done.wait_for(&mut signals, Duration::from_millis(100));
    }
    drop(signals);
    inner.error_state.check()?;
    inner.error_state.check_background()
}
