//! Prefixes of which most entries were deleted: a scan of one must step over what is left of the
//! deleted ones.

use crate::worker::Worker;
use esker_engines::{EngineError, Result, Session};
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

/// Scans random prefixes, each with an iterator of its own. A deleted entry that comes back is an
/// error, and one of the others that is missing where all are known to have been there.
pub fn scan_prefixes(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let prefixes = worker.job.keys.div_ceil(PREFIX_KEYS);
    let mut entries = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        let first = worker.random.uniform(prefixes) * PREFIX_KEYS;
        let mut kept = Kept::of_prefix(first, worker.job.keys);
        worker.key.set(first);
        let len = worker.key.bytes().len() - PREFIX_CUT;
        let mut bytes = 0;
        let mut iteration = session.iterate()?;
        let mut there = iteration.seek(worker.key.bytes())?;
        while there && iteration.key().starts_with(&worker.key.bytes()[..len]) {
            let key = iteration.key();
            match worker.key.number_of(key).filter(|number| *number >= worker.job.keys || is_kept(*number)) {
                Some(number) => kept.lack = kept.lack.or(kept.comes(number)),
                None => return Err(EngineError(format!("key {} was deleted and came back", key.escape_ascii()))),
            }
            bytes += key.len() + black_box(iteration.value()).len();
            entries += 1;
            there = iteration.next()?;
        }
        drop(iteration);
        if let (true, Some(number)) = (worker.job.complete, kept.lacks()) {
            return Err(EngineError(format!("key {number} was not deleted and is lost")));
        }
        worker.meter.finished(bytes);
        done += 1;
    }
    worker.found = Some(entries);
    worker.message = format!("({entries} entries in {done} scans)");
    Ok(())
}

/// The entries of a prefix that were not deleted, as a scan comes to them.
struct Kept {
    next: u64,
    end: u64,
    /// The first one that the scan has passed over.
    lack: Option<u64>,
}

impl Kept {
    fn of_prefix(first: u64, keys: u64) -> Kept {
        Kept { next: first + KEPT, end: (first + PREFIX_KEYS).min(keys), lack: None }
    }

    /// The scan came to `number`: the one that should have come instead, if any.
    fn comes(&mut self, number: u64) -> Option<u64> {
        let lack = (self.next < self.end && number > self.next).then_some(self.next);
        self.next += KEPT_EVERY;
        lack
    }

    /// The first that the whole scan did not come to.
    fn lacks(&self) -> Option<u64> {
        self.lack.or((self.next < self.end).then_some(self.next))
    }
}
