//! Write delays: writers sleep a little before they would have to stop.
//!
//! A memtable that is begun while others wait for their flush may fill only at the measured rate of
//! flushes, so that it is full about when it can be rotated. While many runs wait for their
//! compaction it may fill only at a part of that rate, so that compaction gets the remaining time:
//! otherwise flushes alone could keep the background thread busy until writes stop for one long
//! compaction.
//!
//! A writer whose memtable is ahead of the target rate sleeps in slices of at most
//! [`LONGEST_SLEEP`], and the time counts as delayed. All writers do: of ten, one that sleeps
//! changes nothing. While the background keeps up, a memtable has its whole size as its limit,
//! which every write compares with anyway: nothing of this costs anything.
//!
//! Entries count, step by step: neither an index that grows all at once nor a rate that changes
//! makes a writer wait for what was written before. Everything but the sleep happens under the
//! writer lock.

use crate::db::state::inner::{Inner, KeyspaceWriter, Writer};
use crate::db::state::write_throttle::WriteThrottle;
use crate::db::write_controller::condition;
use std::time::{Duration, Instant};

/// Writers look at the clock so many times in a memtable.
const LOOKS: usize = 1024;
/// But not more often than each time it has grown by this much.
const LEAST_STEP_BYTES: usize = 64 << 10;
/// Shorter sleeps than this are left for later.
const LEAST_SLEEP: Duration = Duration::from_micros(200);
/// No sleep is longer: the target rate is an estimate, and background work may finish.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// No step takes longer, whatever the estimate says.
const LONGEST_STEP: Duration = Duration::from_millis(40);
/// How far writers that were slower than the target rate may catch up.
const CREDIT: Duration = Duration::from_millis(10);

/// Sets the target rate of the memtable that has just taken the place of another.
pub fn begin(inner: &Inner, target: &mut KeyspaceWriter) {
    target.throttle = WriteThrottle::unlimited(inner.options.write_buffer_bytes);
    let memtable = target.memtable.memtable();
    target.throttle.counted_bytes = memtable.end();
    if condition::delay(inner, &target.keyspace).is_some() {
        target.throttle.limit_bytes = target.throttle.limit_bytes.min(memtable.bytes() + step_bytes(inner));
    }
}

fn step_bytes(inner: &Inner) -> usize {
    (inner.options.write_buffer_bytes / LOOKS).max(LEAST_STEP_BYTES)
}

/// How long a write must sleep whose memtable has reached its current limit; none if it goes on,
/// with the next limit. `None` if that is the size of the memtable.
pub fn wait(inner: &Inner, writer: &mut Writer, keyspace: u64) -> Option<Duration> {
    wait_at(inner, writer, keyspace, Instant::now)
}

/// The clock is read only where the time matters.
fn wait_at(inner: &Inner, writer: &mut Writer, keyspace: u64, now: impl FnOnce() -> Instant) -> Option<Duration> {
    let size = inner.options.write_buffer_bytes;
    let target = writer.keyspaces.get_mut(keyspace as usize)?.as_mut()?;
    let (bytes, end) = (target.memtable.memtable().bytes(), target.memtable.memtable().end());
    if bytes >= size || bytes < target.throttle.limit_bytes {
        return None;
    }
    let now = now();
    let delay = condition::delay(inner, &target.keyspace);
    let grown = end.saturating_sub(target.throttle.counted_bytes);
    let sharing = if delay.is_some() && grown > 0 { sharing(writer, keyspace) } else { 0 };
    let throttle = &mut writer.keyspaces.get_mut(keyspace as usize)?.as_mut()?.throttle;
    let Some((_, halves)) = delay else {
        throttle.limit_bytes = size;
        return Some(Duration::ZERO);
    };
    let step = step_bytes(inner);
    if grown > 0 {
        let time = inner.counters.flush_speed.time_for(grown).saturating_mul(halves.saturating_mul(sharing)) / 2;
        let most = LONGEST_STEP.saturating_mul(u32::try_from(grown.div_ceil(step)).unwrap_or(u32::MAX));
        // From when the step began, or a little before: a writer that takes longer for it than it
        // must take does not wait.
        let begun = throttle.passed.checked_sub(CREDIT).unwrap_or(throttle.passed);
        throttle.due = throttle.due.max(begun) + time.min(most);
        throttle.counted_bytes = end;
    }
    let left = throttle.due.saturating_duration_since(now);
    if left >= LEAST_SLEEP {
        // The limit stays where it is: no other writer goes on before it is time.
        return Some(left.min(LONGEST_SLEEP));
    }
    throttle.limit_bytes = size.min(bytes + step);
    throttle.passed = now;
    Some(Duration::ZERO)
}

/// How many keyspaces, this one included, share the time for flushes: they take turns.
fn sharing(writer: &Writer, keyspace: u64) -> u32 {
    let others = writer.keyspaces.iter().flatten().filter(|other| other.keyspace.id != keyspace);
    1 + others.filter(|other| !other.keyspace.read_state.load().immutable.is_empty()).count() as u32
}

/// Sleeps so long, or until background work is done.
pub fn sleep(inner: &Inner, left: Duration) {
    if left.is_zero() {
        return;
    }
    let _delay = inner.counters.delays.begin();
    let mut signals = inner.signals.lock();
    if !signals.shutting_down {
        inner.work_done.wait_for(&mut signals, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::{Entry, Kind, hash};
    use crate::db::background::rotate::rotate;
    use crate::db::background::{compaction, flush};
    use crate::db::lifecycle::{keyspaces, open};
    use crate::db::maintenance::stats;
    use crate::db::state::write_throttle::MAX_IMMUTABLE_MEMTABLES;
    use crate::db::write_controller::condition::DELAY_RUNS;
    use crate::env::mem::MemEnv;
    use crate::memtable::WriteContext;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::Arc;

    /// A database without flushes, as no thread was started, with keyspace 1.
    fn database() -> Inner {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
        let inner = open::open(Path::new("/db"), options).unwrap();
        keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        inner
    }

    fn throttle(writer: &mut Writer, keyspace: u64) -> &mut WriteThrottle {
        &mut writer.keyspaces[keyspace as usize].as_mut().unwrap().throttle
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

    /// Rotates memtables until they wait, and fills the next one up to its first limit.
    fn fall_behind(inner: &Inner, writer: &mut Writer, keyspace: u64) {
        for _ in 0..MAX_IMMUTABLE_MEMTABLES {
            fill(writer, keyspace, 1);
            rotate(inner, writer, keyspace, 0);
        }
        let begun = writer.keyspaces[keyspace as usize].as_ref().unwrap().memtable.memtable().end();
        assert!(throttle(writer, keyspace).limit_bytes < inner.options.write_buffer_bytes);
        fill(writer, keyspace, begun + step_bytes(inner));
    }

    #[test]
    fn everybody_who_is_ahead_of_the_pace_waits_for_it() {
        let inner = database();
        let mut writer = inner.writer.lock();
        inner.counters.flush_speed.note(step_bytes(&inner), LONGEST_STEP / 2);
        fall_behind(&inner, &mut writer, 1);
        let begun = throttle(&mut writer, 1).passed;
        for writer_number in 0..10 {
            let left = wait_at(&inner, &mut writer, 1, || begun);
            assert_eq!(left, Some(LONGEST_SLEEP), "writer {writer_number} goes on");
        }
        // When the time has come, all go on, to the next limit.
        let limit = throttle(&mut writer, 1).limit_bytes;
        let due = throttle(&mut writer, 1).due;
        assert_eq!(wait_at(&inner, &mut writer, 1, || due - LEAST_SLEEP), Some(LEAST_SLEEP));
        assert_eq!(wait_at(&inner, &mut writer, 1, || due), Some(Duration::ZERO));
        assert_eq!(wait_at(&inner, &mut writer, 1, || unreachable!("nobody looks at the clock")), None);
        assert!(throttle(&mut writer, 1).limit_bytes > limit);
    }

    #[test]
    fn a_sleep_counts_as_delayed_and_not_as_stopped() {
        let inner = database();
        sleep(&inner, Duration::ZERO);
        sleep(&inner, Duration::from_millis(1));
        let stats = stats::collect(&inner);
        assert_eq!((stats.delays, stats.stalls, stats.stall_micros), (1, 0, 0));
        assert!(stats.delay_micros >= 1000);
    }

    #[test]
    fn no_estimate_makes_a_step_long_and_none_is_about_what_was_written_before() {
        let inner = database();
        let mut writer = inner.writer.lock();
        inner.counters.flush_speed.note(step_bytes(&inner), Duration::from_secs(3600));
        fall_behind(&inner, &mut writer, 1);
        let begun = throttle(&mut writer, 1).passed;
        assert!(wait_at(&inner, &mut writer, 1, || begun).unwrap() > Duration::ZERO);
        // A step, and the entry that went beyond it.
        assert!(throttle(&mut writer, 1).due <= begun + 2 * LONGEST_STEP);
        // The index has grown, and no entry came.
        throttle(&mut writer, 1).due = begun;
        throttle(&mut writer, 1).limit_bytes = 1;
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
            let throttle = throttle(&mut writer, 1);
            (throttle.counted_bytes, throttle.limit_bytes) = (0, 1);
            (throttle.passed, throttle.due) = (now - took, now - took);
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
                rotate(&inner, &mut writer, other, 0);
            }
            inner.counters.flush_speed.note(step_bytes(&inner), LONGEST_STEP / 8);
            fall_behind(&inner, &mut writer, 1);
            let begun = Instant::now();
            throttle(&mut writer, 1).due = begun;
            wait_at(&inner, &mut writer, 1, || begun);
            throttle(&mut writer, 1).due - begun
        };
        let alone = time_of_a_step(0);
        assert!(alone >= LONGEST_STEP / 8);
        assert_eq!(time_of_a_step(3), 4 * alone);
    }

    #[test]
    fn merges_get_a_second_thread_when_writers_wait_for_them_unless_one_was_asked_for() {
        for drain_requested in [false, true] {
            let options = Options::default().env(Arc::new(MemEnv::default()));
            let options = if drain_requested { options.background_threads(1) } else { options };
            // Nothing is compacted here: no thread was started.
            let inner = open::open(Path::new("/db"), options).unwrap();
            let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
            let mut threads = Vec::new();
            for run in 1..=DELAY_RUNS {
                let entry = Entry { key: b"k", sequence: run.into(), kind: Kind::Put, expiry_ms: 0, value: b"v" };
                let context = WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
                let mut writer = inner.writer.lock();
                writer.keyspaces[1].as_mut().unwrap().memtable.apply(hash(b"k"), entry, context);
                rotate(&inner, &mut writer, keyspace.id, 0);
                drop(writer);
                flush::flush_all(&inner).unwrap();
                assert_eq!(keyspace.read_state.load().version.runs.len() as u32, run);
                threads.push(compaction::merge_threads(&inner, &keyspace));
            }
            let several =
                if drain_requested { 1 } else { std::thread::available_parallelism().map_or(1, |n| n.get().min(2)) };
            assert_eq!(threads.pop(), Some(several));
            // If the system refused a thread, the next attempt does without.
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
