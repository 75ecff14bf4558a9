//! Those that read along while all others are at work: a follower, and a reader of the changes.

use super::altering;
use crate::Checked;
use esker::{Change, ChangeOperation, Db, Error, Follower};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Catches up again and again, and has `check` look at what is there then: that gets what `before`
/// said in front of the catch-up.
pub fn follow<T>(
    follower: &Follower,
    stop: &AtomicBool,
    before: impl Fn() -> T,
    check: impl Fn(T) -> Checked<()>,
) -> Checked<()> {
    while !stop.load(Ordering::Acquire) {
        let before = before();
        match follower.catch_up() {
            // Segments this small last less than a millisecond here.
            Err(Error::Stalled { .. }) => continue,
            caught_up => drop(caught_up.map_err(|error| format!("the follower failed: {error}"))?),
        }
        check(before).map_err(|what| format!("the follower: {what}"))?;
    }
    Ok(())
}

/// Reads the changes as they come: they have every commit of every writer, which puts its number
/// under its name into two keyspaces, once, in order and whole, and every step of the altered
/// keyspace. Counts the batches in `batches`.
pub fn read_changes(db: &Db, stop: &AtomicBool, writers: &[Vec<u8>], batches: &AtomicU64) -> Checked<()> {
    let failed = |error: Error| format!("the changes cannot be read: {error}");
    let (mut from, mut told, mut altered) = (0, vec![None; writers.len()], altering::Told::default());
    while !stop.load(Ordering::Acquire) {
        let changes = match db.changes(from) {
            // The others were faster than this thread.
            Err(Error::Gone { oldest }) => {
                (from, told, altered) = (oldest, vec![None; writers.len()], altering::Told::default());
                continue;
            }
            changes => changes.map_err(failed)?,
        };
        for batch in changes {
            let batch = match batch {
                Err(Error::Gone { .. }) => break,
                batch => batch.map_err(failed)?,
            };
            from = batch.next_sequence();
            check_batch(&batch.changes, writers, &mut told)?;
            altered.take(&batch.changes)?;
            batches.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

fn check_batch(changes: &[Change], writers: &[Vec<u8>], told: &mut [Option<u64>]) -> Checked<()> {
    for (writer, told) in writers.iter().zip(told) {
        let [number, copy] = ["numbers", "copies"].map(|keyspace| number_in(changes, keyspace, writer));
        if number != copy || told.zip(number).is_some_and(|(told, number)| number != told + 1) {
            let writer = String::from_utf8_lossy(writer);
            return Err(format!("the changes of {writer} go on with {number:?} and {copy:?} behind {told:?}"));
        }
        *told = number.or(*told);
    }
    Ok(())
}

/// The number that was put under the key.
fn number_in(changes: &[Change], keyspace: &str, key: &[u8]) -> Option<u64> {
    changes.iter().find_map(|change| match &change.operation {
        ChangeOperation::Put { key: found, value, .. } if *change.keyspace == *keyspace && **found == *key => {
            value[..].try_into().ok().map(u64::from_le_bytes)
        }
        _ => None,
    })
}
