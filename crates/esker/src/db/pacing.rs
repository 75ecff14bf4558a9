//! Slowing writers down a little before they would have to stop.
//!
//! When a memtable is put aside while others still wait for their flush, the next one may only fill as fast as flushes have been, so that it is full about when there is
//! room for it. While many runs wait for their merge it may only fill at a part of that, so that merging gets the rest of the time: else flushes alone could keep the
//! background busy until writes have to stop for one long merge. Whoever finds the memtable ahead of its pace sleeps until it is not, a little at a time, and the time
//! counts as stalled. All of them do: of ten writers, one that sleeps changes nothing. While the background keeps up, nothing of this costs anything: a memtable then has
//! its whole size as its limit, which every write compares with anyway.
//!
//! Everything in here but the sleep is done under the writer lock.

use super::inner::{Inner, KeyspaceInner, KeyspaceWriter, Writer};
use super::pace::{MAX_FROZEN, Pace};
use crate::options::CompactionStyle;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Runs of one keyspace that compaction leaves when it keeps up. With more of them writes are slowed down, the more the more there are.
const USUAL_RUNS: u32 = 13;
/// Writers look at the clock so many times in a memtable.
const LOOKS: usize = 1024;
/// But not more often than each time it has grown by this much.
const LEAST_STEP_BYTES: usize = 64 << 10;
/// Shorter sleeps than this are left for later.
const LEAST_SLEEP: Duration = Duration::from_micros(200);
/// No sleep is longer: the pace is an estimate, and background work may get done.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// How many halves of the time of its flush a memtable should take to fill; 0 if that does not matter.
fn slowness(inner: &Inner, keyspace: &KeyspaceInner) -> u32 {
    if inner.inline_jobs() {
        return 0;
    }
    let view = keyspace.view.load();
    let runs = match keyspace.compaction.style() {
        CompactionStyle::Fifo { .. } => 0,
        _ => view.tree.runs.len() as u32,
    };
    slowness_with(runs, view.frozen.len())
}

fn slowness_with(runs: u32, frozen: usize) -> u32 {
    // Merging needs time beside the flushes.
    let for_runs = if runs <= USUAL_RUNS { 0 } else { runs - USUAL_RUNS + 2 };
    for_runs.max(if frozen >= MAX_FROZEN { 2 } else { 0 })
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
    let earliest = target.pace.since + inner.counters.flush_speed.time_for(bytes).saturating_mul(slowness) / 2;
    let left = earliest.saturating_duration_since(Instant::now());
    if left >= LEAST_SLEEP {
        // The limit stays where it is: nobody else goes on before it is time.
        return Some(left.min(LONGEST_SLEEP));
    }
    target.pace.limit_bytes = size.min(bytes + step_bytes(inner));
    Some(Duration::ZERO)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::{Entry, Kind, hash};
    use crate::db::freeze::freeze;
    use crate::db::{keyspaces, open};
    use crate::env::mem::MemEnv;
    use crate::memtable::WriteContext;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn everybody_who_is_ahead_of_the_pace_waits_for_it() {
        // Nothing is flushed here: no thread was started.
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options).unwrap();
        let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        let id = keyspace.id as usize;
        let mut writer = inner.writer.lock();
        let fill = |writer: &mut Writer, bytes: usize| {
            let context = WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
            let memtable = &mut writer.keyspaces[id].as_mut().unwrap().memtable;
            for sequence in 1.. {
                if !memtable.memtable().is_empty() && memtable.memtable().bytes() >= bytes {
                    break;
                }
                let key = sequence.to_string();
                let entry = Entry { key: key.as_bytes(), sequence, kind: Kind::Put, expiry_ms: 0, value: &[7; 1000] };
                memtable.apply(hash(key.as_bytes()), entry, context);
            }
        };
        fill(&mut writer, 1);
        assert_eq!(wait(&inner, &mut writer, keyspace.id), None, "nothing waits");
        for _ in 0..MAX_FROZEN {
            fill(&mut writer, 1);
            freeze(&inner, &mut writer, keyspace.id, 0);
        }
        // A flush is said to take an hour for each step of the pace.
        let hour = Duration::from_secs(3600);
        inner.counters.flush_speed.note(step_bytes(&inner), hour);
        let limit = writer.keyspaces[id].as_ref().unwrap().pace.limit_bytes;
        assert_eq!(limit, step_bytes(&inner));
        fill(&mut writer, limit);
        for writer_number in 0..10 {
            let left = wait(&inner, &mut writer, keyspace.id);
            assert_eq!(left, Some(LONGEST_SLEEP), "writer {writer_number} goes on");
        }
        // When the time has come, all go on.
        let pace = &mut writer.keyspaces[id].as_mut().unwrap().pace;
        pace.since = pace.since.checked_sub(2 * hour).expect("the machine's clock began two hours ago");
        assert_eq!(wait(&inner, &mut writer, keyspace.id), Some(Duration::ZERO));
        assert_eq!(wait(&inner, &mut writer, keyspace.id), None);
    }

    #[test]
    fn the_more_runs_the_slower_and_merging_always_gets_a_share_before_writes_stop() {
        assert_eq!(slowness_with(0, 0), 0);
        assert_eq!(slowness_with(USUAL_RUNS, 0), 0);
        assert_eq!(slowness_with(USUAL_RUNS, MAX_FROZEN), 2);
        for runs in USUAL_RUNS + 1..100 {
            assert!(slowness_with(runs, 0) > 2, "flushes would take all of the time");
            assert!(slowness_with(runs, MAX_FROZEN) > slowness_with(runs - 1, MAX_FROZEN));
        }
    }
}
