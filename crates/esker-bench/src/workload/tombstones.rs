//! Prefixes of which most entries were deleted: a scan of one must step over what is left of the deleted ones.

use crate::engine::{EngineError, Result, Session};
use crate::keys::number;
use crate::worker::Worker;
use std::hint::black_box;

/// Consecutive keys with a prefix in common: all but the last two digits.
const PREFIX_KEYS: u64 = 100;
const PREFIX_CUT: usize = 2;

/// One key in so many stays, not the first one: a scan begins among deleted ones.
const KEPT_EVERY: u64 = 20;
const KEPT: u64 = 7;

fn is_kept(number: u64) -> bool {
    number % KEPT_EVERY == KEPT
}

/// Deletes most entries of every prefix, in key order.
pub fn delete_most(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    const LOOK_EVERY: u64 = 1024;
    for number in (0..worker.job.keys).filter(|number| !is_kept(*number)) {
        if number % LOOK_EVERY == 0 && worker.meter.look() {
            break;
        }
        worker.key.set(number);
        session.delete(worker.key.bytes(), worker.job.mode)?;
    }
    Ok(())
}

/// Scans random prefixes, each with an iterator of its own. A deleted entry that comes back is an error.
pub fn scan_prefixes(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let prefixes = worker.job.keys.div_ceil(PREFIX_KEYS);
    let mut entries = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        let prefix = worker.random.uniform(prefixes);
        worker.key.set(prefix * PREFIX_KEYS);
        let len = worker.key.len() - PREFIX_CUT;
        let mut bytes = 0;
        let mut iteration = session.iterate()?;
        let mut there = iteration.seek(worker.key.bytes())?;
        while there && iteration.key().starts_with(&worker.key.bytes()[..len]) {
            let key = iteration.key();
            if number(key).is_none_or(|number| !is_kept(number)) {
                return Err(EngineError(format!("key {} was deleted and came back", key.escape_ascii())));
            }
            bytes += key.len() + black_box(iteration.value()).len();
            entries += 1;
            there = iteration.next()?;
        }
        drop(iteration);
        worker.meter.finished(bytes);
        done += 1;
    }
    worker.found = Some(entries);
    worker.message = format!("({entries} entries in {done} scans)");
    Ok(())
}
