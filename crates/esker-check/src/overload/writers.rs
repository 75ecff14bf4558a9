//! Threads that write faster than the device takes it: they are held back, and memory and log stay
//! within what the options say.

use super::acknowledged::Writer;
use super::machine::{bytes_ending, mib, status_bytes};
use super::share::{Share, failed};
use super::slow_disk::SlowDisk;
use crate::Checked;
use esker::{Db, KeyspaceOptions, Options, ReadMode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BUDGET_BYTES: u64 = 8 << 20;
/// What the device takes in a second: memory takes some hundred times as much.
const BYTES_PER_SECOND: u64 = 24 << 20;
const SEGMENT_BYTES: u64 = 1 << 20;
/// As in `tests/memory_budget.rs` of the engine: what the process takes beside the budget.
const CONSTANT_BYTES: u64 = 24 << 20;
const WRITERS: u64 = 4;
const SLOTS: u64 = 5_000;
const VALUE_BYTES: usize = 400;

/// What was seen at most.
#[derive(Clone, Copy, Debug, Default)]
struct Peaks {
    counted: u64,
    log: u64,
}

impl Peaks {
    fn look(&mut self, db: &Db) -> Checked<()> {
        self.counted = self.counted.max(db.stats().memory.total_bytes());
        self.log = self.log.max(bytes_ending(db.path(), ".wal")?);
        Ok(())
    }

    /// The log holds what is in no table, which is in memory, and a few segments ahead and behind.
    fn check(&self, resident: u64) -> Checked<()> {
        let bounds = [
            ("memory that the engine counts", self.counted, BUDGET_BYTES),
            ("log", self.log, BUDGET_BYTES / 2 + 6 * SEGMENT_BYTES),
            ("memory of the process", resident, BUDGET_BYTES * 115 / 100 + CONSTANT_BYTES),
        ];
        bounds.iter().try_for_each(|(name, bytes, most)| {
            if bytes > most { Err(format!("{name}: {} are more than {}", mib(*bytes), mib(*most))) } else { Ok(()) }
        })
    }
}

fn options(env: Option<SlowDisk>) -> Options {
    let options = Options::default()
        .memory_budget_bytes(BUDGET_BYTES as usize)
        .wal_segment_bytes(SEGMENT_BYTES)
        .read_mode(ReadMode::Pread);
    env.map_or(options.clone(), |env| options.env(Arc::new(env)))
}

pub(super) fn run(share: &Share) -> Checked<String> {
    let path = share.directory.join("db");
    let db = Db::open(&path, options(Some(SlowDisk::new(BYTES_PER_SECOND)))).map_err(failed("open"))?;
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).map_err(failed("a new keyspace"))?;
    let mut writers: Vec<Writer> = (0..WRITERS).map(|id| Writer::new(share.seed, id, SLOTS, VALUE_BYTES)).collect();
    let (stop, running) = (AtomicBool::new(false), AtomicU64::new(WRITERS));
    let started = Instant::now();
    let mut peaks = Peaks::default();
    let outcomes: Vec<Checked<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| {
                let (keyspace, stop, running) = (&keyspace, &stop, &running);
                scope.spawn(move || {
                    let mut outcome = Ok(());
                    while !stop.load(Relaxed) && outcome.is_ok() {
                        outcome = writer.step(keyspace).map_err(failed("a write"));
                    }
                    running.fetch_sub(1, Relaxed);
                    outcome
                })
            })
            .collect();
        let mut seen = Ok(());
        // As long as requested, and until there has been more than memory holds, and a wait.
        while seen.is_ok() && running.load(Relaxed) == WRITERS {
            seen = peaks.look(&db);
            let stats = db.stats();
            if started.elapsed() >= share.time && stats.wal_bytes > 2 * BUDGET_BYTES && stats.stalls > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Relaxed);
        let panicked = || Err("a writer panicked".to_string());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).chain([seen]).collect()
    });
    outcomes.into_iter().collect::<Checked<()>>()?;
    let stats = db.stats();
    peaks.check(status_bytes("VmHWM")?)?;
    // Dropped, not closed: what is in the log only has to be read back.
    drop((keyspace, db));
    let db = Db::open(&path, options(None)).map_err(failed("open"))?;
    let keyspace = db.existing_keyspace("k").map_err(failed("the keyspace"))?;
    writers.iter().try_for_each(|writer| writer.check_all(&keyspace).map(|_| ()))?;
    let written: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    Ok(format!(
        "{written} writes acknowledged, all there; {} stalls, {:.1} s waited; counted at most {}, log at most {}",
        stats.stalls,
        stats.stall_micros as f64 / 1e6,
        mib(peaks.counted),
        mib(peaks.log)
    ))
}

#[cfg(test)]
mod tests {
    use super::{BUDGET_BYTES, Peaks};

    #[test]
    fn more_than_the_bound_is_noticed() {
        let good = Peaks { counted: BUDGET_BYTES, log: 1 << 20 };
        assert!(good.check(30 << 20).is_ok());
        assert!(good.check(80 << 20).is_err());
        assert!(Peaks { counted: BUDGET_BYTES + 1, ..good }.check(0).is_err());
        assert!(Peaks { log: 2 * BUDGET_BYTES, ..good }.check(0).is_err());
    }
}
