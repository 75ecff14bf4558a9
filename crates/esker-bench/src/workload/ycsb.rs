//! The six core workloads of YCSB (Cooper et al., "Benchmarking cloud serving systems with YCSB",
//! 2010), on a database that holds every key: load it with `fillseq` or `fillshuffled`.
//!
//! The mixes and distributions are YCSB's. What differs: a record is one key and one value of
//! `--value_size` bytes, where YCSB has ten fields of 100 bytes and updates one of them; keys are
//! the dense numbers of all benchmarks here, so that inserts append, which YCSB calls ordered
//! inserts (its default hashes the numbers, and an insert lands anywhere). Popular keys are spread
//! over all keys by a hash, as in YCSB. `ycsbd` inserts from number `num` on and `ycsbe` from twice
//! that, so both may follow on one load; running one again writes the same keys again.

use super::scan::bytes_here;
use crate::worker::Worker;
use esker_engines::{EngineError, Result, Session};
use std::fmt::Write;

/// The most entries of a scan; the number is drawn uniformly from 1 on.
const LONGEST_SCAN: u64 = 100;

/// Half reads, half updates.
pub const A: Mix = Mix { percent: 50, mostly: Request::Read, rarely: Request::Update };
/// Reads, and an update in twenty requests.
pub const B: Mix = Mix { percent: 95, mostly: Request::Read, rarely: Request::Update };
/// Reads.
pub const C: Mix = Mix { percent: 100, mostly: Request::Read, rarely: Request::Read };
/// Reads of what was inserted last, and an insert in twenty requests.
pub const D: Mix = Mix { percent: 95, mostly: Request::ReadLatest, rarely: Request::Insert };
/// Short scans, and an insert in twenty requests.
pub const E: Mix = Mix { percent: 95, mostly: Request::Scan, rarely: Request::Insert };
/// Half reads, half reads followed by a write of the same key.
pub const F: Mix = Mix { percent: 50, mostly: Request::Read, rarely: Request::ReadModifyWrite };

#[derive(Clone, Copy)]
enum Request {
    Read,
    ReadLatest,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// Two kinds of requests, and how many in a hundred are of the first.
#[derive(Clone, Copy)]
pub struct Mix {
    percent: u64,
    mostly: Request,
    rarely: Request,
}

/// What was done.
#[derive(Default)]
struct Counts {
    reads: u64,
    found: u64,
    updates: u64,
    inserts: u64,
    scans: u64,
    entries: u64,
}

/// Does requests of a mix.
pub fn run(mix: Mix, worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let mut counts = Counts::default();
    let mut done = 0;
    while worker.goes_on(done) {
        let request = if worker.random.uniform(100) < mix.percent { mix.mostly } else { mix.rarely };
        let bytes = match request {
            Request::Read => {
                worker.draw_popular_key();
                read(worker, session, &mut counts)?
            }
            Request::ReadLatest => read_latest(worker, session, &mut counts)?,
            Request::Update => {
                worker.draw_popular_key();
                update(worker, session, &mut counts)?
            }
            Request::Insert => insert(worker, session, &mut counts)?,
            Request::Scan => scan(worker, session, &mut counts)?,
            Request::ReadModifyWrite => {
                worker.draw_popular_key();
                read(worker, session, &mut counts)? + update(worker, session, &mut counts)?
            }
        };
        worker.meter.finished(bytes);
        done += 1;
    }
    worker.found = (counts.reads > 0).then_some(counts.found);
    worker.message = counts.message();
    Ok(())
}

/// Gets the key in the buffer; bytes found.
fn read(worker: &mut Worker<'_>, session: &mut dyn Session, counts: &mut Counts) -> Result<usize> {
    counts.reads += 1;
    if !session.get(worker.key.bytes(), &mut worker.value)? {
        return Ok(0);
    }
    counts.found += 1;
    Ok(worker.key.bytes().len() + worker.value.len())
}

fn read_latest(worker: &mut Worker<'_>, session: &mut dyn Session, counts: &mut Counts) -> Result<usize> {
    let rank = worker.draw_rank();
    let Some(inserts) = &worker.job.inserts else { return Ok(0) };
    let thread = worker.random.uniform(inserts.threads());
    let chosen = inserts.by_age(thread, rank);
    worker.key.set(chosen.number);
    let bytes = read(worker, session, counts)?;
    if bytes == 0 && chosen.inserted {
        return Err(EngineError(format!("key {} was inserted and is not found", chosen.number)));
    }
    Ok(bytes)
}

/// Puts the key in the buffer; bytes put.
fn update(worker: &mut Worker<'_>, session: &mut dyn Session, counts: &mut Counts) -> Result<usize> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
    counts.updates += 1;
    Ok(worker.key.bytes().len() + size)
}

fn insert(worker: &mut Worker<'_>, session: &mut dyn Session, counts: &mut Counts) -> Result<usize> {
    let Some(inserts) = &worker.job.inserts else { return Ok(0) };
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    worker.key.set(inserts.next(worker.index));
    session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
    inserts.finish(worker.index);
    counts.inserts += 1;
    Ok(worker.key.bytes().len() + size)
}

fn scan(worker: &mut Worker<'_>, session: &mut dyn Session, counts: &mut Counts) -> Result<usize> {
    worker.draw_popular_key();
    let wanted = 1 + worker.random.uniform(LONGEST_SCAN);
    let mut iteration = session.iterate()?;
    let mut there = iteration.seek(worker.key.bytes())?;
    let (mut bytes, mut entries) = (0, 0);
    while there {
        bytes += bytes_here(iteration.as_ref());
        entries += 1;
        if entries == wanted {
            break;
        }
        there = iteration.next()?;
    }
    counts.scans += 1;
    counts.entries += entries;
    Ok(bytes)
}

impl Counts {
    /// What there was any of, in brackets.
    fn message(&self) -> String {
        let mut text = String::new();
        for (name, count) in [
            ("reads", self.reads),
            ("found", self.found),
            ("updates", self.updates),
            ("inserts", self.inserts),
            ("scans", self.scans),
            ("entries", self.entries),
        ] {
            if count > 0 {
                let _ = write!(text, "{}{name}:{count}", if text.is_empty() { "(" } else { " " });
            }
        }
        if !text.is_empty() {
            text.push(')');
        }
        text
    }
}
