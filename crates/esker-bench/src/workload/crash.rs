//! What is to be recovered: entries put by a process that dies without closing its database, in the
//! middle of its work as far as the engine can tell. And the look, after the next start, whether
//! they are there.
//!
//! The keys lie behind those of the loads (`num`, `num + 1`, ...), each put once, in an order that
//! looks random.

use crate::shuffle::Shuffle;
use crate::worker::Worker;
use esker_engines::{Durability, EngineError, Result, Session};

/// Entries that are looked for, spread over all.
const SAMPLE: u64 = 1000;

/// Puts the entries, one by one.
pub fn put(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    const LOOK_EVERY: u64 = 1024;
    let job = worker.job;
    let order = Shuffle::new(job.ops);
    for place in 0..job.ops {
        if place % LOOK_EVERY == 0 && worker.meter.look() {
            break;
        }
        worker.key.set(job.num + order.at(place));
        session.put(worker.key.bytes(), worker.values.slice(job.value_size), job.mode)?;
    }
    Ok(())
}

/// Looks for some of them, the last one put among them: how many are there, and of how many. One
/// that is missing is an error unless the engine had promised nothing for the death of the process.
pub fn find(worker: &mut Worker<'_>, session: &mut dyn Session, promised: Durability) -> Result<(u64, u64)> {
    let job = worker.job;
    let order = Shuffle::new(job.ops);
    let sample = job.ops.min(SAMPLE);
    let mut found = 0;
    for index in 0..sample {
        let place = job.ops - 1 - (u128::from(job.ops) * u128::from(index) / u128::from(sample)) as u64;
        let number = job.num + order.at(place);
        worker.key.set(number);
        if session.get(worker.key.bytes(), &mut worker.value)? {
            found += 1;
        } else if promised != Durability::Process {
            let problem = "was put before the process died, and is missing (is --writes that of the crash?)";
            return Err(EngineError(format!("key {number} {problem}")));
        }
    }
    Ok((found, sample))
}
