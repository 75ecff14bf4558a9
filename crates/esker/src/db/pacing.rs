//! Slowing writers down a little before they would have to stop.
//!
//! When a memtable is put aside while others still wait for their flush, or while many runs wait for their merge, the next one may only fill as fast as flushes have
//! been, so that it is full about when there is room for it. The writer that is ahead of that pace sleeps for the difference, seldom and never long, and the time counts as
//! stalled. While the background keeps up, nothing of this costs anything: a memtable then has its whole size as its limit, which every write compares with anyway.
//!
//! Everything in here but the sleep is done under the writer lock.

use super::inner::{Inner, KeyspaceInner, KeyspaceWriter, Writer};
use super::pace::{MAX_FROZEN, Pace};
use crate::options::CompactionStyle;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Runs of one keyspace from which writes are slowed down, the more the more there are.
const SLOW_RUNS: u32 = 20;
/// A writer looks at the clock so many times in a memtable.
const LOOKS: usize = 256;
/// But not more often than each time it has grown by this much.
const LEAST_STEP_BYTES: usize = 64 << 10;
/// Shorter sleeps than this are left for later.
const LEAST_SLEEP: Duration = Duration::from_micros(200);
/// No sleep is longer: the pace is an estimate.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// How many times as long as its flush a memtable should take to fill; 0 if that does not matter.
fn slowness(inner: &Inner, keyspace: &KeyspaceInner) -> u32 {
    if inner.inline_jobs() {
        return 0;
    }
    let view = keyspace.view.load();
    let runs = match keyspace.compaction.style() {
        CompactionStyle::Fifo { .. } => 0,
        _ => view.tree.runs.len() as u32,
    };
    // Merging needs time beside the flushes.
    let for_runs = if runs < SLOW_RUNS { 0 } else { runs - SLOW_RUNS + 2 };
    for_runs.max(u32::from(view.frozen.len() >= MAX_FROZEN))
}

/// Sets the pace of the memtable that has just taken the place of another.
pub fn begin(inner: &Inner, target: &mut KeyspaceWriter) {
    target.pace = Pace::unlimited(inner.options.write_buffer_bytes);
    if slowness(inner, &target.keyspace) > 0 {
        target.pace.limit_bytes = target.pace.limit_bytes.min(step_bytes(inner));
    }
}

fn step_bytes(inner: &Inner) -> usize {
    (inner.options.write_buffer_bytes / LOOKS).max(LEAST_STEP_BYTES)
}

/// How long a write must wait whose keyspace has reached the limit of its pace; none if it goes on, with the next limit. `None` if that is the size of the memtable.
pub fn wait(inner: &Inner, writer: &mut Writer, keyspace: u64) -> Option<Duration> {
    let target = writer.keyspaces.get_mut(keyspace as usize)?.as_mut()?;
    let size = inner.options.write_buffer_bytes;
    let bytes = target.memtable.memtable().bytes();
    if bytes >= size || bytes < target.pace.limit_bytes {
        return None;
    }
    let slowness = slowness(inner, &target.keyspace);
    if slowness == 0 {
        target.pace.limit_bytes = size;
        return Some(Duration::ZERO);
    }
    let earliest = target.pace.since + inner.counters.flush_speed.time_for(bytes).saturating_mul(slowness);
    let left = earliest.saturating_duration_since(Instant::now()).min(LONGEST_SLEEP);
    target.pace.limit_bytes = size.min(bytes + step_bytes(inner));
    Some(if left >= LEAST_SLEEP { left } else { Duration::ZERO })
}

/// Why writes to the keyspace may be slowed down, if they may.
pub fn reason(inner: &Inner, keyspace: &KeyspaceInner) -> Option<&'static str> {
    (slowness(inner, keyspace) > 0).then_some("writes are slowed down: many runs wait for their compaction")
}

/// Sleeps so long, or until background work is done.
pub fn sleep(inner: &Inner, left: Duration) {
    if left.is_zero() {
        return;
    }
    let started = Instant::now();
    let mut signals = inner.signals.lock();
    if !signals.shutting_down {
        inner.work_done.wait_for(&mut signals, left);
    }
    drop(signals);
    inner.counters.stalls.fetch_add(1, Relaxed);
    inner.counters.stall_micros.fetch_add(started.elapsed().as_micros() as u64, Relaxed);
}
