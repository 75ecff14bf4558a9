//! Slowing writers down a little before they would have to stop.
//!
//! When a memtable is put aside while others still wait for their flush, the next one may only fill as fast as flushes have been, so that it is full about when there is
//! room for it. While many runs wait for their merge it may only fill at a part of that, so that merging gets the rest of the time: else flushes alone could keep the
//! background busy until writes have to stop for one long merge. While scans search all runs again and again (`read_stats.rs`), that holds however few there are.
//!
//! Whoever finds the memtable ahead of its pace sleeps until it is not, a little at a time, and the time counts as stalled. All of them do: of ten writers, one that sleeps
//! changes nothing. While the background keeps up, nothing of this costs anything: a memtable then has its whole size as its limit, which every write compares with anyway.
//!
//! What counts is entries, step by step: neither an index that grows all at once nor a pace that changes makes anybody wait for what was written before.
//!
//! Everything in here but the sleep is done under the writer lock.

use crate::db::state::inner::{Inner, KeyspaceInner, KeyspaceWriter, Writer};
use crate::db::state::write_throttle::{MAX_FROZEN, Pace};
use crate::options::CompactionStyle;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Runs of one keyspace from which on writes are slowed down, the more the more there are: with the flushes during a merge, compaction that keeps up leaves fewer.
const SLOW_RUNS: u32 = 17;
/// How many halves of the time of its flush a memtable takes to fill while scans suffer: an entry is merged several times after its flush, and scans need a processor too.
const SLOWNESS_FOR_SCANS: u32 = 16;
/// Writers look at the clock so many times in a memtable.
const LOOKS: usize = 1024;
/// But not more often than each time it has grown by this much.
const LEAST_STEP_BYTES: usize = 64 << 10;
/// Shorter sleeps than this are left for later.
const LEAST_SLEEP: Duration = Duration::from_micros(200);
/// No sleep is longer: the pace is an estimate, and background work may get done.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// No step takes longer, whatever the estimate says.
const LONGEST_STEP: Duration = Duration::from_millis(40);
/// How far writers that were slower than the pace may catch up.
const CREDIT: Duration = Duration::from_millis(10);

/// How many halves of the time of its flush a memtable should take to fill; 0 if that does not matter.
fn slowness(inner: &Inner, keyspace: &KeyspaceInner) -> u32 {
    if inner.inline_jobs() {
        return 0;
    }
    let view = keyspace.view.load();
    slowness_with(waiting_runs(keyspace), view.frozen.len(), scans_suffer(keyspace))
}

fn slowness_with(runs: u32, frozen: usize, scans_suffer: bool) -> u32 {
    // Merging needs time beside the flushes.
    let for_runs = if runs < SLOW_RUNS { 0 } else { 2 * (runs - SLOW_RUNS) + 3 };
    let for_scans = if scans_suffer { SLOWNESS_FOR_SCANS } else { 0 };
    for_runs.max(for_scans).max(if frozen >= MAX_FROZEN { 2 } else { 0 })
}

/// Whether scans search runs that merging could make fewer.
fn scans_suffer(keyspace: &KeyspaceInner) -> bool {
    let merges = !matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. });
    merges && keyspace.searches.scans_suffer()
}

/// Runs that merging could make fewer.
fn waiting_runs(keyspace: &KeyspaceInner) -> u32 {
    match keyspace.compaction.style() {
        CompactionStyle::Fifo { .. } => 0,
        _ => keyspace.view.load().tree.runs.len() as u32,
    }
}

/// Whether writers are slowed down so that compaction can catch up.
pub fn compaction_is_behind(keyspace: &KeyspaceInner) -> bool {
    waiting_runs(keyspace) >= SLOW_RUNS
}

/// Sets the pace of the memtable that has just taken the place of another.
pub fn begin(inner: &Inner, target: &mut KeyspaceWriter) {
    target.pace = Pace::unlimited(inner.options.write_buffer_bytes, &target.keyspace.searches);
    let memtable = target.memtable.memtable();
    target.pace.counted_bytes = memtable.end();
    if slowness(inner, &target.keyspace) > 0 {
        target.pace.limit_bytes = target.pace.limit_bytes.min(memtable.bytes() + step_bytes(inner));
    }
}

fn step_bytes(inner: &Inner) -> usize {
    (inner.options.write_buffer_bytes / LOOKS).max(LEAST_STEP_BYTES)
}

/// How long a write must wait whose keyspace has reached the limit of its pace; none if it goes on, with the next limit. `None` if that is the size of the memtable.
pub fn wait(inner: &Inner, writer: &mut Writer, keyspace: u64) -> Option<Duration> {
    wait_at(inner, writer, keyspace, Instant::now)
}

/// The clock is read only where the time matters.
fn wait_at(inner: &Inner, writer: &mut Writer, keyspace: u64, now: impl FnOnce() -> Instant) -> Option<Duration> {
    let size = inner.options.write_buffer_bytes;
    let target = writer.keyspaces.get_mut(keyspace as usize)?.as_mut()?;
    let (bytes, end) = (target.memtable.memtable().bytes(), target.memtable.memtable().end());
    if bytes >= size || bytes < target.pace.limit_bytes {
        return None;
    }
    let now = now();
    target.keyspace.searches.look_again(&mut target.pace.look, now, target.memtable.keys());
    let slowness = slowness(inner, &target.keyspace);
    let grown = end.saturating_sub(target.pace.counted_bytes);
    let halves = if slowness > 0 && grown > 0 { slowness.saturating_mul(sharing(writer, keyspace)) } else { 0 };
    let pace = &mut writer.keyspaces.get_mut(keyspace as usize)?.as_mut()?.pace;
    if slowness == 0 {
        pace.limit_bytes = size;
        return Some(Duration::ZERO);
    }
    let step = step_bytes(inner);
    if grown > 0 {
        let time = inner.counters.flush_speed.time_for(grown).saturating_mul(halves) / 2;
        let most = LONGEST_STEP.saturating_mul(u32::try_from(grown.div_ceil(step)).unwrap_or(u32::MAX));
        // From when the step began, or a little before: whoever takes longer for it than it must take does not wait.
        let begun = pace.passed.checked_sub(CREDIT).unwrap_or(pace.passed);
        pace.due = pace.due.max(begun) + time.min(most);
        pace.counted_bytes = end;
    }
    let left = pace.due.saturating_duration_since(now);
    if left >= LEAST_SLEEP {
        // The limit stays where it is: nobody else goes on before it is time.
        return Some(left.min(LONGEST_SLEEP));
    }
    pace.limit_bytes = size.min(bytes + step);
    pace.passed = now;
    Some(Duration::ZERO)
}

/// How many keyspaces, this one included, share the time for flushes: they take turns.
fn sharing(writer: &Writer, keyspace: u64) -> u32 {
    let others = writer.keyspaces.iter().flatten().filter(|other| other.keyspace.id != keyspace);
    1 + others.filter(|other| !other.keyspace.view.load().frozen.is_empty()).count() as u32
}

/// Why writes to the keyspace may be slowed down, if they may.
pub fn reason(inner: &Inner, keyspace: &KeyspaceInner) -> Option<&'static str> {
    match slowness(inner, keyspace) {
        0 => None,
        _ if waiting_runs(keyspace) >= SLOW_RUNS => Some("writes are slowed down: many runs wait for their compaction"),
        _ if scans_suffer(keyspace) => {
            Some("writes are slowed down: scans search the runs that compaction has not come to")
        }
        _ => Some("writes are slowed down: memtables wait for their flush"),
    }
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
    use crate::db::background::rotate::freeze;
    use crate::db::background::{compaction, flush};
    use crate::db::lifecycle::{keyspaces, open};
    use crate::db::write::stall;
    use crate::env::mem::MemEnv;
    use crate::memtable::WriteContext;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::Arc;

    /// A database whose flushes nobody does, as no thread was started, with keyspace 1.
    fn database() -> Inner {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options).unwrap();
        keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        inner
    }

    fn pace(writer: &mut Writer, keyspace: u64) -> &mut Pace {
        &mut writer.keyspaces[keyspace as usize].as_mut().unwrap().pace
    }

    /// Writes until the memtable has at least so many bytes of entries.
    fn fill(writer: &mut Writer, keyspace: u64, bytes: usize) {
        let context = WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
        let memtable = &mut writer.keyspaces[keyspace as usize].as_mut().unwrap().memtable;
        for sequence in 1.. {
            let key = sequence.to_string();
            let entry = Entry { key: key.as_bytes(), sequence, kind: Kind::Put, expiry_ms: 0, value: &[7; 1000] };
            memtable.apply(hash(key.as_bytes()), entry, context);
            if memtable.memtable().end() >= bytes {
                break;
            }
        }
    }

    /// Puts memtables aside until they wait, and fills the next one up to its first limit.
    fn fall_behind(inner: &Inner, writer: &mut Writer, keyspace: u64) {
        for _ in 0..MAX_FROZEN {
            fill(writer, keyspace, 1);
            freeze(inner, writer, keyspace, 0);
        }
        let begun = writer.keyspaces[keyspace as usize].as_ref().unwrap().memtable.memtable().end();
        assert!(pace(writer, keyspace).limit_bytes < inner.options.write_buffer_bytes);
        fill(writer, keyspace, begun + step_bytes(inner));
    }

    #[test]
    fn everybody_who_is_ahead_of_the_pace_waits_for_it() {
        let inner = database();
        let mut writer = inner.writer.lock();
        inner.counters.flush_speed.note(step_bytes(&inner), LONGEST_STEP / 2);
        fall_behind(&inner, &mut writer, 1);
        let begun = pace(&mut writer, 1).passed;
        for writer_number in 0..10 {
            let left = wait_at(&inner, &mut writer, 1, || begun);
            assert_eq!(left, Some(LONGEST_SLEEP), "writer {writer_number} goes on");
        }
        // When the time has come, all go on, to the next limit.
        let limit = pace(&mut writer, 1).limit_bytes;
        let due = pace(&mut writer, 1).due;
        assert_eq!(wait_at(&inner, &mut writer, 1, || due - LEAST_SLEEP), Some(LEAST_SLEEP));
        assert_eq!(wait_at(&inner, &mut writer, 1, || due), Some(Duration::ZERO));
        assert_eq!(wait_at(&inner, &mut writer, 1, || unreachable!("nobody looks at the clock")), None);
        assert!(pace(&mut writer, 1).limit_bytes > limit);
    }

    #[test]
    fn no_estimate_makes_a_step_long_and_none_is_about_what_was_written_before() {
        let inner = database();
        let mut writer = inner.writer.lock();
        inner.counters.flush_speed.note(step_bytes(&inner), Duration::from_secs(3600));
        fall_behind(&inner, &mut writer, 1);
        let begun = pace(&mut writer, 1).passed;
        assert!(wait_at(&inner, &mut writer, 1, || begun).unwrap() > Duration::ZERO);
        // A step, and the entry that went beyond it.
        assert!(pace(&mut writer, 1).due <= begun + 2 * LONGEST_STEP);
        // The index has grown, and no entry came.
        pace(&mut writer, 1).due = begun;
        pace(&mut writer, 1).limit_bytes = 1;
        assert_eq!(wait_at(&inner, &mut writer, 1, || begun), Some(Duration::ZERO));
    }

    #[test]
    fn a_writer_that_takes_as_long_as_it_must_does_not_wait() {
        let inner = database();
        let mut writer = inner.writer.lock();
        // Longer than the credit.
        let step = 3 * CREDIT;
        inner.counters.flush_speed.note(step_bytes(&inner), step);
        fall_behind(&inner, &mut writer, 1);
        let now = Instant::now();
        for (took, waits) in [(step + CREDIT, false), (step / 2, true)] {
            let pace = pace(&mut writer, 1);
            (pace.counted_bytes, pace.limit_bytes) = (0, 1);
            (pace.passed, pace.due) = (now - took, now - took);
            let bytes = writer.keyspaces[1].as_ref().unwrap().memtable.memtable().end();
            let exact = inner.counters.flush_speed.time_for(bytes);
            assert!(exact >= step && exact < step + CREDIT, "{exact:?}");
            let left = wait_at(&inner, &mut writer, 1, || now);
            assert_eq!(left.is_some_and(|left| left > Duration::ZERO), waits, "{took:?}");
        }
    }

    #[test]
    fn keyspaces_share_the_time_for_flushes() {
        let time_of_a_step = |others: u64| {
            let inner = database();
            for other in 0..others {
                let name = format!("other {other}");
                keyspaces::open_or_create(&inner, &name, KeyspaceOptions::default()).unwrap();
            }
            let mut writer = inner.writer.lock();
            for other in 2..2 + others {
                fill(&mut writer, other, 1);
                freeze(&inner, &mut writer, other, 0);
            }
            inner.counters.flush_speed.note(step_bytes(&inner), LONGEST_STEP / 8);
            fall_behind(&inner, &mut writer, 1);
            let begun = Instant::now();
            pace(&mut writer, 1).due = begun;
            wait_at(&inner, &mut writer, 1, || begun);
            pace(&mut writer, 1).due - begun
        };
        let alone = time_of_a_step(0);
        assert!(alone >= LONGEST_STEP / 8);
        assert_eq!(time_of_a_step(3), 4 * alone);
    }

    #[test]
    fn the_more_runs_the_slower_and_merging_gets_a_share_long_before_writes_stop() {
        assert_eq!(slowness_with(SLOW_RUNS - 1, 0, false), 0);
        assert_eq!(slowness_with(SLOW_RUNS - 1, MAX_FROZEN, false), 2);
        assert_eq!(slowness_with(0, 0, true), SLOWNESS_FOR_SCANS);
        assert!(slowness_with(stall::MAX_RUNS as u32 - 1, 0, true) > SLOWNESS_FOR_SCANS);
        assert!(SLOW_RUNS + 8 < stall::MAX_RUNS as u32);
        for runs in SLOW_RUNS..stall::MAX_RUNS as u32 {
            assert!(slowness_with(runs, 0, false) > 2, "flushes would take all of the time");
            assert!(slowness_with(runs, MAX_FROZEN, false) > slowness_with(runs - 1, MAX_FROZEN, false));
        }
    }

    #[test]
    fn merges_get_a_second_thread_when_writers_wait_for_them_unless_one_was_asked_for() {
        for asked_for in [false, true] {
            let options = Options::default().env(Arc::new(MemEnv::default()));
            let options = if asked_for { options.background_threads(1) } else { options };
            // Nothing is merged here: no thread was started.
            let inner = open::open(Path::new("/db"), options).unwrap();
            let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
            let mut threads = Vec::new();
            for run in 1..=SLOW_RUNS {
                let entry = Entry { key: b"k", sequence: run.into(), kind: Kind::Put, expiry_ms: 0, value: b"v" };
                let context = WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
                let mut writer = inner.writer.lock();
                writer.keyspaces[1].as_mut().unwrap().memtable.apply(hash(b"k"), entry, context);
                freeze(&inner, &mut writer, keyspace.id, 0);
                drop(writer);
                flush::flush_all(&inner).unwrap();
                assert_eq!(keyspace.view.load().tree.runs.len() as u32, run);
                threads.push(compaction::merge_threads(&inner, &keyspace));
            }
            let several =
                if asked_for { 1 } else { std::thread::available_parallelism().map_or(1, |n| n.get().min(2)) };
            assert_eq!(threads.pop(), Some(several));
            // If there was no thread to be had, the next attempt does without.
            keyspace.compaction.note_failed_division(true);
            assert_eq!(compaction::merge_threads(&inner, &keyspace), 1);
            assert!(threads.iter().all(|&threads| threads == 1), "{threads:?}");
        }
    }

    #[test]
    fn a_flush_that_hung_does_not_become_the_rule() {
        let inner = database();
        let speed = &inner.counters.flush_speed;
        speed.note(1 << 20, Duration::from_secs(1));
        speed.note(1 << 20, Duration::from_secs(3600));
        assert!(speed.time_for(1 << 20) < Duration::from_secs(2));
    }
}
