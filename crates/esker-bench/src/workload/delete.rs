//! Deletions. Their bytes are not counted, as in db_bench.

use crate::engine::{Result, Session};
use crate::worker::Worker;

/// Deletes keys 0, 1, ...
pub fn sequential(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    delete_all(worker, session, |_, number| number)
}

/// Deletes random keys.
pub fn random(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    delete_all(worker, session, |worker, _| worker.random.uniform(worker.job.keys))
}

#[inline]
fn delete_all(
    worker: &mut Worker<'_>,
    session: &mut dyn Session,
    number_of: impl Fn(&mut Worker<'_>, u64) -> u64,
) -> Result<()> {
    let mut done = 0;
    while worker.goes_on(done) {
        let number = number_of(worker, done);
        worker.key.set(number);
        session.delete(worker.key.bytes(), worker.job.mode)?;
        worker.meter.finished(0);
        done += 1;
    }
    Ok(())
}
