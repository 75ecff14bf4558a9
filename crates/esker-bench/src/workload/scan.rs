//! Iteration.

use crate::worker::Worker;
use esker_engines::{Iteration, Result, Session};
use std::hint::black_box;

/// Entries of a short scan.
pub const RANGE_ENTRIES: u64 = 100;

/// The bytes at the position. They are fetched, and the compiler must believe that they are used.
#[inline]
pub fn bytes_here(iteration: &dyn Iteration) -> usize {
    black_box(iteration.key()).len() + black_box(iteration.value()).len()
}

/// Steps from the first key on.
pub fn forward(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut iteration = session.iterate()?;
    let mut there = iteration.seek_to_first()?;
    let mut done = 0;
    while there && worker.goes_on(done) {
        worker.meter.finished(bytes_here(iteration.as_ref()));
        done += 1;
        there = iteration.next()?;
    }
    Ok(())
}

/// Steps from the last key back.
pub fn backward(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut iteration = session.iterate()?;
    let mut there = iteration.seek_to_last()?;
    let mut done = 0;
    while there && worker.goes_on(done) {
        worker.meter.finished(bytes_here(iteration.as_ref()));
        done += 1;
        there = iteration.prev()?;
    }
    Ok(())
}

/// Makes an iterator for each random key and seeks it.
pub fn seek_random(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut found = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        worker.draw_key();
        let mut iteration = session.iterate()?;
        if iteration.seek(worker.key.bytes())? && black_box(iteration.key()) == worker.key.bytes() {
            found += 1;
        }
        drop(iteration);
        worker.meter.finished(0);
        done += 1;
    }
    worker.report_found(found);
    Ok(())
}

/// Puts a random key, then makes an iterator and seeks another: no seek finds what an earlier one
/// prepared.
pub fn write_then_seek(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let mut found = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        worker.draw_key();
        session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
        worker.draw_key();
        let mut iteration = session.iterate()?;
        if iteration.seek(worker.key.bytes())? && black_box(iteration.key()) == worker.key.bytes() {
            found += 1;
        }
        drop(iteration);
        worker.meter.finished(0);
        done += 1;
    }
    worker.report_found(found);
    Ok(())
}

/// Makes an iterator for each random key, seeks it, and fetches [`RANGE_ENTRIES`] entries from
/// there.
pub fn ranges(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut done = 0;
    while worker.goes_on(done) {
        worker.draw_key();
        let mut bytes = 0;
        let mut iteration = session.iterate()?;
        let mut there = iteration.seek(worker.key.bytes())?;
        let mut entries = 0;
        while there && entries < RANGE_ENTRIES {
            bytes += bytes_here(iteration.as_ref());
            entries += 1;
            there = iteration.next()?;
        }
        drop(iteration);
        worker.meter.finished(bytes);
        done += 1;
    }
    Ok(())
}

/// Seeks ascending keys, a random small distance apart, with one iterator.
pub fn seek_ordered(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut iteration = session.iterate()?;
    let mut found = 0;
    let mut number = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        number = (number + worker.random.uniform(100)) % worker.job.keys.max(1);
        worker.key.set(number);
        if iteration.seek(worker.key.bytes())? && black_box(iteration.key()) == worker.key.bytes() {
            found += 1;
        }
        worker.meter.finished(0);
        done += 1;
    }
    worker.report_found(found);
    Ok(())
}
