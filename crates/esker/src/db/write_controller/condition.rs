//! Whether writes go on, are delayed, or stop. The decision depends on the state of the database
//! alone.

use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::memory;
use crate::db::state::write_throttle::MAX_IMMUTABLE_MEMTABLES;
use crate::error::StallCause;
use crate::options::CompactionStyle;
use std::fmt;

/// Runs of one keyspace from which on writes are delayed, the more the more there are: with the
/// flushes during a compaction, one that keeps up leaves fewer.
pub const DELAY_RUNS: u32 = 17;
/// Runs of one keyspace at which writes stop.
pub const STOP_RUNS: u32 = 32;

/// What becomes of a write to a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCondition {
    /// It goes on at once.
    Open,
    /// It sleeps while its memtable is ahead of the target rate.
    Delayed(DelayCause),
    /// It waits once its memtable is full.
    Stopped(StopCause),
}

/// Why writes are delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayCause {
    /// Immutable memtables wait for their flush.
    ImmutableMemtables,
    /// Runs wait for their compaction.
    Runs,
}

/// Why writes stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// [`MAX_IMMUTABLE_MEMTABLES`] memtables wait for their flush.
    ImmutableMemtables,
    /// [`STOP_RUNS`] runs wait for their compaction.
    Runs,
    /// Memtables take their share of the memory budget.
    Memory,
    /// The next segment of the log is not prepared.
    LogSegment,
}

impl From<DelayCause> for StallCause {
    fn from(cause: DelayCause) -> StallCause {
        match cause {
            DelayCause::ImmutableMemtables => StallCause::FlushDelay,
            DelayCause::Runs => StallCause::CompactionDelay,
        }
    }
}

impl From<StopCause> for StallCause {
    fn from(cause: StopCause) -> StallCause {
        match cause {
            StopCause::ImmutableMemtables => StallCause::Flush,
            StopCause::Runs => StallCause::Compaction,
            StopCause::Memory => StallCause::MemoryBudget,
            StopCause::LogSegment => StallCause::LogSegment,
        }
    }
}

impl fmt::Display for DelayCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        StallCause::from(*self).fmt(f)
    }
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        StallCause::from(*self).fmt(f)
    }
}

/// Runs that compaction could make fewer.
fn compactable_runs(keyspace: &KeyspaceInner) -> u32 {
    match keyspace.compaction.style() {
        CompactionStyle::Fifo { .. } => 0,
        _ => keyspace.read_state.load().version.runs.len() as u32,
    }
}

/// Whether compaction has fallen so far behind that writes are delayed for it.
pub fn compaction_is_behind(keyspace: &KeyspaceInner) -> bool {
    compactable_runs(keyspace) >= DELAY_RUNS
}

/// Why a write that finds the keyspace's memtable full has to wait; none where it does the
/// background work itself.
pub fn stop_cause(inner: &Inner, keyspace: &KeyspaceInner) -> Option<StopCause> {
    if inner.inline_jobs() {
        return None;
    }
    if keyspace.read_state.load().immutable.len() >= MAX_IMMUTABLE_MEMTABLES {
        return Some(StopCause::ImmutableMemtables);
    }
    (compactable_runs(keyspace) >= STOP_RUNS).then_some(StopCause::Runs)
}

/// Why writes to the keyspace are delayed, and how many halves of the time of its flush a memtable
/// should take to fill.
pub fn delay(inner: &Inner, keyspace: &KeyspaceInner) -> Option<(DelayCause, u32)> {
    if inner.inline_jobs() {
        return None;
    }
    delay_for(compactable_runs(keyspace), keyspace.read_state.load().immutable.len())
}

/// Why writes to the keyspace of this number are delayed; that they were, a moment ago.
pub fn delay_cause(inner: &Inner, keyspace: u64) -> StallCause {
    let keyspaces = inner.all_keyspaces();
    let target = keyspaces.iter().find(|candidate| candidate.id == keyspace);
    let cause = target.and_then(|target| delay(inner, target));
    cause.map_or(DelayCause::ImmutableMemtables, |(cause, _)| cause).into()
}

fn delay_for(runs: u32, immutable_memtables: usize) -> Option<(DelayCause, u32)> {
    if runs >= DELAY_RUNS {
        // Compaction needs time beside the flushes.
        return Some((DelayCause::Runs, 2 * (runs - DELAY_RUNS) + 3));
    }
    (immutable_memtables >= MAX_IMMUTABLE_MEMTABLES).then_some((DelayCause::ImmutableMemtables, 2))
}

/// The worst condition of any keyspace, for `health()` and monitors, with the name of the keyspace
/// where there is one.
pub fn of_database(inner: &Inner) -> (WriteCondition, Option<String>) {
    let keyspaces = inner.all_keyspaces();
    for keyspace in &keyspaces {
        if let Some(cause) = stop_cause(inner, keyspace) {
            return (WriteCondition::Stopped(cause), Some(keyspace.name().to_string()));
        }
    }
    if inner.log.as_ref().is_some_and(|log| log.stalls.is_waiting()) {
        return (WriteCondition::Stopped(StopCause::LogSegment), None);
    }
    if memory::exceeds_budget(inner, &keyspaces, 0) {
        return (WriteCondition::Stopped(StopCause::Memory), None);
    }
    for keyspace in &keyspaces {
        if let Some((cause, _)) = delay(inner, keyspace) {
            return (WriteCondition::Delayed(cause), Some(keyspace.name().to_string()));
        }
    }
    (WriteCondition::Open, None)
}

/// The same in words, unless writes go on.
pub fn reason(inner: &Inner) -> Option<String> {
    let (condition, keyspace) = of_database(inner);
    let place = keyspace.map_or_else(String::new, |name| format!(" in keyspace {name:?}"));
    match condition {
        WriteCondition::Open => None,
        WriteCondition::Delayed(cause) => Some(format!("{cause}{place}")),
        WriteCondition::Stopped(cause) => Some(format!("{cause}{place}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_runs_the_longer_the_delay_and_compaction_gets_a_share_long_before_writes_stop() {
        assert_eq!(delay_for(DELAY_RUNS - 1, 0), None);
        assert_eq!(delay_for(DELAY_RUNS - 1, MAX_IMMUTABLE_MEMTABLES), Some((DelayCause::ImmutableMemtables, 2)));
        const { assert!(DELAY_RUNS + 8 < STOP_RUNS) };
        let mut before = 2;
        for runs in DELAY_RUNS..STOP_RUNS {
            let (cause, halves) = delay_for(runs, 0).unwrap();
            assert!(cause == DelayCause::Runs && halves > before, "flushes would take all of the time");
            assert_eq!(delay_for(runs, MAX_IMMUTABLE_MEMTABLES), Some((cause, halves)));
            before = halves;
        }
    }
}
