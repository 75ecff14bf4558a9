//! Loads, overwrites and deletions. The bytes of a deletion are not counted, as in db_bench.

use crate::shuffle::Shuffle;
use crate::worker::Worker;
use esker_engines::{Operation, Result, Session};

/// Puts keys 0, 1, ...
pub fn sequential(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    put_all(worker, session, |_, number| number)
}

/// Puts random keys.
pub fn random(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    put_all(worker, session, |worker, _| worker.random.uniform(worker.job.keys))
}

/// Puts the keys of the job's permutation.
pub fn permuted(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let job = worker.job;
    put_all(worker, session, |_, number| job.permutation.get(number as usize).copied().unwrap_or(number))
}

/// Puts every key once, in an order that looks random and is kept in no memory; the threads share
/// the keys.
pub fn shuffled(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let shuffle = Shuffle::new(worker.job.num);
    let first = u64::from(worker.index) * worker.job.ops;
    let num = worker.job.num;
    put_all(worker, session, |_, number| shuffle.at((first + number) % num))
}

#[inline]
fn put_all(
    worker: &mut Worker<'_>,
    session: &mut dyn Session,
    number_of: impl Fn(&mut Worker<'_>, u64) -> u64,
) -> Result<()> {
    if worker.job.batch > 1 {
        return write_batches(worker, session, number_of);
    }
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let bytes = worker.key.bytes().len() + size;
    let mut done = 0;
    while worker.goes_on(done) {
        let number = number_of(worker, done);
        worker.key.set(number);
        session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
        worker.meter.finished(bytes);
        done += 1;
    }
    Ok(())
}

/// As db_bench does, an operation counts when it is added to its batch, before the batch is
/// written.
fn write_batches(
    worker: &mut Worker<'_>,
    session: &mut dyn Session,
    number_of: impl Fn(&mut Worker<'_>, u64) -> u64,
) -> Result<()> {
    let (size, mode, batch) = (worker.job.value_size, worker.job.mode, worker.job.batch);
    let key_len = worker.key.bytes().len();
    let mut keys = vec![0; key_len * batch as usize];
    let mut values: Vec<&[u8]> = Vec::with_capacity(batch as usize);
    let mut done = 0;
    while worker.goes_on(done) {
        values.clear();
        for slot in keys.chunks_exact_mut(key_len) {
            if done == worker.job.ops {
                break;
            }
            let number = number_of(worker, done);
            worker.key.set(number);
            slot.copy_from_slice(worker.key.bytes());
            values.push(worker.values.slice(size));
            worker.meter.finished(key_len + size);
            done += 1;
        }
        let entries = keys.chunks_exact(key_len).zip(&values);
        let operations: Vec<Operation<'_>> = entries.map(|(key, value)| Operation::Put(key, value)).collect();
        session.write(&operations, mode)?;
    }
    Ok(())
}

/// Deletes keys 0, 1, ...
pub fn delete_sequential(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    delete_all(worker, session, |_, number| number)
}

/// Deletes random keys.
pub fn delete_random(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
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
