//! Lookups of single keys. Their bytes are not counted, as in db_bench.

use crate::worker::Worker;
use esker_engines::{Result, Session};

/// Gets random keys and reports how many were there.
pub fn random(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let found = get_all(worker, session, 0)?;
    worker.report_found(found);
    Ok(())
}

/// Gets random keys and says nothing.
pub fn unreported(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    get_all(worker, session, 0).map(drop)
}

/// Gets random keys without their last byte, which are never there.
pub fn missing(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    get_all(worker, session, 1).map(drop)
}

#[inline]
fn get_all(worker: &mut Worker<'_>, session: &mut dyn Session, cut: usize) -> Result<u64> {
    let mut found = 0;
    let mut done = 0;
    let len = worker.key.bytes().len() - cut;
    while worker.goes_on(done) {
        worker.draw_key();
        if session.get(&worker.key.bytes()[..len], &mut worker.value)? {
            found += 1;
        }
        worker.meter.finished(0);
        done += 1;
    }
    Ok(found)
}
