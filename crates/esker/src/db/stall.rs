//! When writers wait, and why.
//!
//! A writer whose memtable is full waits while too many full ones are waiting for their flush, or too many runs for their merge. It waits for exactly that to change,
//! is told the reason, and the time is counted. Before it comes to that, `pacing.rs` slows it down. With a memory budget it also waits while memtables take their share of it (`memory.rs`). If the background work it waits for keeps failing, it gets that error instead.

use super::background;
use super::events::Event;
use super::inner::{Inner, Writer};
use super::pace::MAX_FROZEN;
use super::{memory, pacing};
use crate::error::Result;
use crate::options::CompactionStyle;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Runs of one keyspace at which writes wait for merging.
const MAX_RUNS: usize = 32;
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

fn reason(keyspace: &super::inner::KeyspaceInner) -> Option<&'static str> {
    let view = keyspace.view.load();
    if view.frozen.len() >= MAX_FROZEN {
        return Some("too many memtables wait for their flush");
    }
    let merges = !matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. });
    (merges && view.tree.runs.len() >= MAX_RUNS).then_some("too many runs wait for their compaction")
}

/// Waits while too much work waits in the keyspace, if that is done by another thread.
pub fn wait_if_behind(inner: &Inner, keyspace: &super::inner::KeyspaceInner) -> Result<()> {
    if inner.inline_jobs() || reason(keyspace).is_none() { Ok(()) } else { wait_for_room(inner, keyspace.id) }
}

/// Why a write may have to wait at the moment, if it may.
pub fn current_reason(inner: &Inner) -> Option<String> {
    let keyspaces = inner.all_keyspaces();
    keyspaces
        .iter()
        .find_map(|keyspace| reason(keyspace).map(|reason| format!("{reason} in keyspace {:?}", keyspace.name)))
        .or_else(|| keyspaces.iter().find_map(|keyspace| pacing::reason(inner, keyspace).map(str::to_owned)))
        .or_else(|| memory::reason_to_wait(inner, &keyspaces, 0).map(str::to_owned))
}

/// Lets whoever does the work know that there is more of it; does it here where nobody else does.
pub fn work_was_added(inner: &Inner) -> Result<()> {
    if inner.inline_jobs() {
        return background::run_all(inner, false);
    }
    inner.wake();
    Ok(())
}

/// Waits until the keyspace's full memtable can be put aside.
pub fn wait_for_room(inner: &Inner, keyspace: u64) -> Result<()> {
    let keyspaces = inner.all_keyspaces();
    let target = keyspaces.iter().find(|candidate| candidate.id == keyspace);
    let Some(target) = target else { return Ok(()) };
    wait_while(inner, &target.name, || reason(target))
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
