//! Threads that write faster than the device takes it: they are held back, or refused where they
//! are not to wait, and memory and log stay within what the options say.
//!
//! What was refused has written nothing, and is tried again. In the end each of those that are not
//! to wait is left with a refused write: a process that opens the database then finds nothing of
//! it, and once the disk has caught up it can be made.

use super::acknowledged::Writer;
use super::machine::{bytes_ending, mib, status_bytes};
use super::share::{Share, eventually, failed};
use super::slow_disk::SlowDisk;
use crate::Checked;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, ReadMode, StallPolicy};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

const BUDGET_BYTES: u64 = 8 << 20;
/// What the device takes in a second: memory takes some hundred times as much.
const BYTES_PER_SECOND: u64 = 24 << 20;
const SEGMENT_BYTES: u64 = 1 << 20;
/// As in `tests/memory_budget.rs` of the engine: what the process takes beside the budget.
const CONSTANT_BYTES: u64 = 24 << 20;
/// What each of the writers does where writes are stalled.
const POLICIES: [StallPolicy; 4] = [StallPolicy::Wait, StallPolicy::Wait, StallPolicy::Fail, StallPolicy::For(SHORT)];
/// Less than the device takes for a memtable.
const SHORT: Duration = Duration::from_millis(1);
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

/// A writer, and what it does where writes are stalled.
struct PolicyWriter {
    writer: Writer,
    policy: StallPolicy,
}

/// What the threads of the writers share.
struct Load<'d> {
    keyspace: &'d Keyspace,
    /// Writes that were refused, by writer.
    refused: [AtomicU64; POLICIES.len()],
    /// Those that are not to wait end with their next refusal.
    ends_refused: AtomicBool,
    stop: AtomicBool,
}

/// Whether a write with that policy may be refused so: typed, to be tried again, and not before the
/// time that it was given.
fn is_refusal(error: &Error, policy: StallPolicy) -> bool {
    let Error::WriteStalled { waited, .. } = error else { return false };
    let has_waited = match policy {
        StallPolicy::Fail => waited.is_zero(),
        StallPolicy::For(most) => *waited >= most,
        // One that waits for as long as it takes is never refused.
        _ => false,
    };
    has_waited && error.is_retryable()
}

impl PolicyWriter {
    fn work(&mut self, load: &Load<'_>) -> Checked<()> {
        while !load.stop.load(Relaxed) {
            match self.writer.step_with(load.keyspace, self.policy) {
                Ok(()) => {}
                Err(error) if is_refusal(&error, self.policy) => {
                    self.check_refused(load.keyspace)?;
                    load.refused[self.writer.id as usize].fetch_add(1, Relaxed);
                    if load.ends_refused.load(Relaxed) {
                        break;
                    }
                    std::thread::sleep(SHORT);
                }
                Err(error) => return Err(format!("a write with {:?} failed: {error} ({error:?})", self.policy)),
            }
        }
        Ok(())
    }

    fn check_refused(&self, keyspace: &Keyspace) -> Checked<()> {
        let found = keyspace.get(self.writer.key(self.writer.acknowledged + 1)).map_err(failed("a get"))?;
        self.writer.check_refused(found.as_deref())
    }
}

/// Looks on for as long as requested, and until there has been more than memory holds, a wait, and
/// a refusal of each writer that is not to wait; then until each of these has ended with one.
fn watch(
    db: &Db,
    load: &Load<'_>,
    threads: &[ScopedJoinHandle<'_, Checked<()>>],
    time: Duration,
    peaks: &mut Peaks,
) -> Checked<()> {
    let started = Instant::now();
    let of = |waits: bool| (0..POLICIES.len()).filter(move |&at| (POLICIES[at] == StallPolicy::Wait) == waits);
    loop {
        peaks.look(db)?;
        let ends_refused = load.ends_refused.load(Relaxed);
        let is_ended = |at: usize| threads[at].is_finished();
        // One that ends before it is to has failed.
        let has_failed = of(true).any(is_ended) || !ends_refused && of(false).any(is_ended);
        if has_failed || of(false).all(is_ended) {
            return Ok(());
        }
        let stats = db.stats();
        let is_loaded = stats.wal_bytes > 2 * BUDGET_BYTES && stats.stalls > 0;
        if is_loaded && started.elapsed() >= time && of(false).all(|at| load.refused[at].load(Relaxed) > 0) {
            load.ends_refused.store(true, Relaxed);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Lets all of them write beside each other, and says how many writes were refused.
fn load(db: &Db, keyspace: &Keyspace, writers: &mut [PolicyWriter], time: Duration, peaks: &mut Peaks) -> Checked<u64> {
    let load = Load {
        keyspace,
        refused: Default::default(),
        ends_refused: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    };
    let outcomes: Vec<Checked<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| {
                let load = &load;
                scope.spawn(move || writer.work(load))
            })
            .collect();
        let seen = watch(db, &load, &threads, time, peaks);
        load.stop.store(true, Relaxed);
        let panicked = || Err("a writer panicked".to_string());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).chain([seen]).collect()
    });
    outcomes.into_iter().collect::<Checked<()>>()?;
    Ok(load.refused.iter().map(|refused| refused.load(Relaxed)).sum())
}

fn check_all(db: &Db, writers: &[PolicyWriter]) -> Checked<()> {
    let keyspace = db.existing_keyspace("k").map_err(failed("the keyspace"))?;
    writers.iter().try_for_each(|PolicyWriter { writer, .. }| writer.check_all(&keyspace).map(|_| ()))
}

/// Compares what a process finds that opens the database now.
fn check_beside(path: &Path, writers: &[PolicyWriter]) -> Checked<()> {
    // Flushes go on, and the files may change faster than they can be opened.
    let opened = eventually(|| match Db::open_read_only(path, options(None)) {
        Err(error @ Error::Stalled { .. }) => Err(error.to_string()),
        opened => Ok(opened),
    })?;
    let db = opened.map_err(failed("a read-only open"))?;
    check_all(&db, writers).map_err(|what| format!("beside the writers: {what}"))
}

/// The outcome of a write; an error if that is a refusal, after which it is to be tried again.
fn unless_refused(outcome: esker::Result<()>, policy: StallPolicy) -> Checked<esker::Result<()>> {
    match outcome {
        Err(error) if is_refusal(&error, policy) => {
            Err(format!("refused with {policy:?} although the disk has caught up: {error}"))
        }
        outcome => Ok(outcome),
    }
}

/// Once the disk has caught up, the writes that were refused last can be made, with their policies.
fn retry(db: &Db, keyspace: &Keyspace, writers: &mut [PolicyWriter]) -> Checked<()> {
    db.wait_idle().map_err(failed("the wait for the disk"))?;
    for PolicyWriter { writer, policy } in writers.iter_mut().filter(|writer| writer.policy != StallPolicy::Wait) {
        // A thread that does not get the processor may still hold the writer lock for too long.
        let written = eventually(|| unless_refused(writer.step_with(keyspace, *policy), *policy))?;
        written.map_err(failed("a write once the disk has caught up"))?;
    }
    Ok(())
}

pub(super) fn run(share: &Share) -> Checked<String> {
    let path = share.directory.join("db");
    let db = Db::open(&path, options(Some(SlowDisk::new(BYTES_PER_SECOND)))).map_err(failed("open"))?;
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).map_err(failed("a new keyspace"))?;
    let writer = |id: u64| Writer::new(share.seed, id, SLOTS, VALUE_BYTES);
    let mut writers: Vec<PolicyWriter> =
        POLICIES.into_iter().zip(0..).map(|(policy, id)| PolicyWriter { writer: writer(id), policy }).collect();
    let mut peaks = Peaks::default();
    let refused = load(&db, &keyspace, &mut writers, share.time, &mut peaks)?;
    let stats = db.stats();
    peaks.check(status_bytes("VmHWM")?)?;
    if stats.refused_writes != refused {
        return Err(format!("{refused} writes were refused, {} are counted", stats.refused_writes));
    }
    check_beside(&path, &writers)?;
    retry(&db, &keyspace, &mut writers)?;
    // Dropped, not closed: what is in the log only has to be read back.
    drop((keyspace, db));
    let db = Db::open(&path, options(None)).map_err(failed("open"))?;
    check_all(&db, &writers)?;
    let written: u64 = writers.iter().map(|writer| writer.writer.acknowledged).sum();
    Ok(format!(
        "{written} writes acknowledged, all there; {refused} refused, nothing of them there; {} stalls, {:.1} s \
         waited; counted at most {}, log at most {}",
        stats.stalls,
        stats.stall_micros as f64 / 1e6,
        mib(peaks.counted),
        mib(peaks.log)
    ))
}

#[cfg(test)]
mod tests {
    use super::{BUDGET_BYTES, Peaks, SHORT, is_refusal, unless_refused};
    use esker::{Error, StallCause, StallPolicy};
    use std::time::Duration;

    #[test]
    fn more_than_the_bound_is_noticed() {
        let good = Peaks { counted: BUDGET_BYTES, log: 1 << 20 };
        assert!(good.check(30 << 20).is_ok());
        assert!(good.check(80 << 20).is_err());
        assert!(Peaks { counted: BUDGET_BYTES + 1, ..good }.check(0).is_err());
        assert!(Peaks { log: 2 * BUDGET_BYTES, ..good }.check(0).is_err());
    }

    #[test]
    fn a_refusal_is_one_of_the_policy_and_no_other_error() {
        let stalled = |waited| Error::WriteStalled { keyspace: None, cause: StallCause::Flush, waited };
        let (at_once, later) = (stalled(Duration::ZERO), stalled(SHORT));
        assert!(is_refusal(&at_once, StallPolicy::Fail) && !is_refusal(&later, StallPolicy::Fail));
        assert!(is_refusal(&later, StallPolicy::For(SHORT)) && !is_refusal(&at_once, StallPolicy::For(SHORT)));
        assert!(!is_refusal(&at_once, StallPolicy::Wait) && !is_refusal(&later, StallPolicy::Wait));
        let other = Error::Stalled { reason: String::new() };
        assert!(!is_refusal(&other, StallPolicy::Fail) && !is_refusal(&other, StallPolicy::For(SHORT)));
    }

    #[test]
    fn only_a_right_refusal_is_tried_again() {
        let stalled = |waited| Err(Error::WriteStalled { keyspace: None, cause: StallCause::Flush, waited });
        assert!(unless_refused(stalled(Duration::ZERO), StallPolicy::Fail).is_err());
        assert!(unless_refused(stalled(SHORT), StallPolicy::For(SHORT)).is_err());
        let wrong_wait = unless_refused(stalled(Duration::ZERO), StallPolicy::For(SHORT));
        assert!(wrong_wait.is_ok_and(|outcome| outcome.is_err()), "it has not waited");
        let other = Err(Error::Stalled { reason: String::new() });
        assert!(unless_refused(other, StallPolicy::Fail).is_ok_and(|outcome| outcome.is_err()), "no refusal");
        assert!(unless_refused(Ok(()), StallPolicy::Fail).is_ok_and(|outcome| outcome.is_ok()));
    }
}
