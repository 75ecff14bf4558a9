//! Benchmarks that do more than one kind of operation, and the one that does none.

use super::update_merge::one_operand;
use crate::flags::config::MergeOperand;
use crate::pace::Pace;
use crate::worker::Worker;
use esker_engines::{Result, Session};
use std::hint::black_box;

/// Puts random keys until the reading threads are done, at the job's rate if it has one.
pub fn write_until_readers_end(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    until_readers_end(worker, session, |worker, session| {
        worker.draw_key();
        session.put(worker.key.bytes(), worker.values.slice(size), mode)
    })
}

/// Writes until the reading threads are done, at the job's rate if it has one.
#[inline]
pub fn until_readers_end(
    worker: &mut Worker<'_>,
    session: &mut dyn Session,
    mut write: impl FnMut(&mut Worker<'_>, &mut dyn Session) -> Result<()>,
) -> Result<()> {
    let mut pace = worker.job.writes_per_second.map(Pace::new);
    while worker.readers_work() && !worker.meter.should_stop() {
        if pace.as_mut().is_some_and(|pace| !pace.admits(worker.meter.done())) {
            continue;
        }
        write(worker, session)?;
        worker.meter.finished(0);
    }
    Ok(())
}

/// Merges into random keys, or gets them.
pub fn read_or_merge(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let one = one_operand(size);
    let (mut reads, mut merges, mut hits, mut longest) = (0u64, 0u64, 0u64, 0usize);
    while worker.goes_on(reads + merges) {
        worker.draw_key();
        if worker.random.uniform(100) < worker.job.merge_percent {
            let operand = match worker.job.merge_operand {
                MergeOperand::Random => worker.values.slice(size),
                MergeOperand::One => &one,
            };
            session.merge(worker.key.bytes(), operand, mode)?;
            merges += 1;
            worker.meter.finished(worker.key.bytes().len() + size);
        } else {
            let mut bytes = 0;
            if session.get(worker.key.bytes(), &mut worker.value)? {
                hits += 1;
                longest = longest.max(worker.value.len());
                bytes = worker.key.bytes().len() + worker.value.len();
            }
            reads += 1;
            worker.meter.finished(bytes);
        }
    }
    worker.found = Some(hits);
    let total = reads + merges;
    worker.message = format!("(reads:{reads} merges:{merges} total:{total} hits:{hits} maxlength:{longest})");
    Ok(())
}

/// Gets a popular key or puts one, half and half.
pub fn read_or_put(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let (mut reads, mut writes, mut hits) = (0u64, 0u64, 0u64);
    while worker.goes_on(reads + writes) {
        let is_read = worker.random.uniform(2) == 0;
        worker.draw_popular_key();
        if is_read {
            hits += u64::from(session.get(worker.key.bytes(), &mut worker.value)?);
            reads += 1;
        } else {
            session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
            writes += 1;
        }
        worker.meter.finished(0);
    }
    worker.found = Some(hits);
    worker.message = format!("(reads:{reads} writes:{writes} hits:{hits})");
    Ok(())
}

/// Checksums a block of 4096 bytes again and again; touches no engine.
pub fn checksum(worker: &mut Worker<'_>, _: &mut dyn Session) -> Result<()> {
    let block = vec![b'x'; 4096];
    let mut done = 0;
    while worker.goes_on(done) {
        black_box(crc32c::crc32c(black_box(&block)));
        worker.meter.finished(block.len());
        done += 1;
    }
    worker.message = "(4K per op)".into();
    Ok(())
}
