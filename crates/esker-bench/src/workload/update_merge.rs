//! The two ways to count: read, then write; or merge without reading.

use crate::flags::config::MergeOperand;
use crate::worker::Worker;
use esker_engines::{Result, Session};

/// Gets a random key, then puts the same key. Bytes of both count.
pub fn update(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let mut found = 0;
    let mut done = 0;
    while worker.goes_on(done) {
        worker.draw_key();
        let mut bytes = worker.key.bytes().len() + size;
        if session.get(worker.key.bytes(), &mut worker.value)? {
            found += 1;
            bytes += worker.key.bytes().len() + worker.value.len();
        }
        session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
        worker.meter.finished(bytes);
        done += 1;
    }
    worker.found = Some(found);
    worker.message = format!("( updates:{done} found:{found})");
    Ok(())
}

/// Merges operands into random keys.
pub fn merge(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    merge_all(worker, session, |worker| worker.draw_key())
}

/// Merges operands into keys of which some are far more popular than others.
pub fn merge_popular(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    merge_all(worker, session, |worker| worker.draw_popular_key())
}

#[inline]
fn merge_all(worker: &mut Worker<'_>, session: &mut dyn Session, draw_key: impl Fn(&mut Worker<'_>)) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let one = one_operand(size);
    let mut done = 0;
    while worker.goes_on(done) {
        draw_key(worker);
        let operand = match worker.job.merge_operand {
            MergeOperand::Random => worker.values.slice(size),
            MergeOperand::One => &one,
        };
        session.merge(worker.key.bytes(), operand, mode)?;
        worker.meter.finished(worker.key.bytes().len() + size);
        done += 1;
    }
    worker.message = format!("( updates:{done})");
    Ok(())
}

/// The number 1, little endian, in `size` bytes.
pub fn one_operand(size: usize) -> Vec<u8> {
    let mut operand = vec![0; size];
    if let Some(lowest) = operand.first_mut() {
        *lowest = 1;
    }
    operand
}
