//! Entries that expire while they are scanned. All live equally long (`--ttl_ms`); one thread puts
//! random keys, again and again, and the others scan ranges of them. What a scan returns is
//! checked: no entry that had expired before it began, and every one that lives on.

use super::mixed::until_readers_end;
use crate::expiries::{Seen, now_ms};
use crate::worker::Worker;
use esker_engines::{EngineError, Result, Session};
use std::hint::black_box;
use std::time::Instant;

/// Keys of one scan, dead or alive.
const RANGE: u64 = 10_000;

/// Scans of a run over so many reads.
pub const READS_PER_SCAN: u64 = 1000;

/// Puts random keys for the time that an entry lives: from then on as many expire as are put.
pub fn put_for_one_life(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() <= worker.job.ttl && !worker.meter.look() {
        put(worker, session)?;
    }
    Ok(())
}

/// Puts random keys that expire until the scanning threads are done.
pub fn put_until_readers_end(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    until_readers_end(worker, session, put)
}

fn put(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (job, value) = (worker.job, worker.values.slice(worker.job.value_size));
    let number = worker.random.uniform(job.keys);
    worker.key.set(number);
    let key = worker.key.bytes();
    job.expiries.put(number, job.ttl, || session.put_ttl(key, value, job.ttl, job.mode))
}

/// Scans ranges that begin at random keys.
pub fn scan_ranges(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let began_ms = now_ms();
    let mut all = Seen::default();
    let mut done = 0;
    while worker.goes_on(done) {
        let starts = worker.job.keys.saturating_sub(RANGE) + 1;
        let first = worker.random.uniform(starts);
        let (bytes, seen) = scan(first, worker, session).map_err(|problem| {
            EngineError(format!("{} ({} ms into the benchmark)", problem.0, now_ms().saturating_sub(began_ms)))
        })?;
        all.returned += seen.returned;
        all.hidden += seen.hidden;
        all.meanwhile += seen.meanwhile;
        worker.meter.finished(bytes);
        done += 1;
    }
    worker.found = Some(all.returned);
    worker.message = format!("(entries:{} hidden:{} expired meanwhile:{})", all.returned, all.hidden, all.meanwhile);
    Ok(())
}

/// One scan: its bytes, and what it saw.
fn scan(first: u64, worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<(usize, Seen)> {
    let mut look = worker.job.expiries.look(first, RANGE);
    worker.key.set(first);
    let mut bytes = 0;
    let mut iteration = session.iterate()?;
    let mut there = iteration.seek(worker.key.bytes())?;
    while there {
        let key = iteration.key();
        let number = worker.key.number_of(key).unwrap_or(u64::MAX);
        if number >= look.end() {
            break;
        }
        bytes += key.len() + black_box(iteration.value()).len();
        look.returned(number).map_err(EngineError)?;
        there = iteration.next()?;
    }
    drop(iteration);
    Ok((bytes, look.end_of_scan().map_err(EngineError)?))
}
